/* SPDX-License-Identifier: MIT */
/*
 * Finds symbols and lines of a stripped file in its debug file: below /usr/lib/debug by
 * build-id, beside the file or below /usr/lib/debug by .gnu_debuglink, and finally on
 * debuginfod servers, if they are configured.
 */
#ifndef KB_LIB_SYM_IMAGE_DEBUGFILE_H
#define KB_LIB_SYM_IMAGE_DEBUGFILE_H

#include "sym/tables/elf_data.h"

/*
 * Add the symbols of the debug file of @elf, if there is one. @elf was read from @path (as
 * mapped) below @symfs ("" for the root). True: there was one.
 */
bool kb_debugfile_add(struct kb_elf *elf, const char *symfs, const char *path);

/* The path of a debug file of @elf with DWARF; the caller frees it. NULL: there is none. */
char *kb_debugfile_dwarf(const struct kb_elf *elf, const char *symfs, const char *path);

#endif
