/* SPDX-License-Identifier: MIT */
/*
 * Where the symbols and the lines of a stripped file went: debug files below
 * /usr/lib/debug by build-id, beside the file or below /usr/lib/debug by .gnu_debuglink,
 * and at last, if that is set up, debuginfod servers.
 */
#ifndef KBARMAN_SYM_DEBUGFILE_H
#define KBARMAN_SYM_DEBUGFILE_H

#include "sym/elf.h"

/*
 * Add the symbols of the debug file of @elf, which was read from @path (as mapped)
 * below @symfs ("" for the root), if there is one. True if there was.
 */
bool kb_debugfile_add(struct kb_elf *elf, const char *symfs, const char *path);

/* The path of the debug file of @elf with DWARF, to be freed; NULL: there is none. */
char *kb_debugfile_dwarf(const struct kb_elf *elf, const char *symfs, const char *path);

#endif
