/* SPDX-License-Identifier: MIT */
/*
 * Where the symbols of a stripped file went: debug files below /usr/lib/debug by
 * build-id, and beside the file or below /usr/lib/debug by .gnu_debuglink.
 */
#ifndef KBARMAN_SYM_DEBUGFILE_H
#define KBARMAN_SYM_DEBUGFILE_H

#include "sym/elf.h"

/*
 * Add the symbols of the debug file of @elf, which was read from @path (as mapped)
 * below @symfs ("" for the root), if there is one. True if there was.
 */
bool kb_debugfile_add(struct kb_elf *elf, const char *symfs, const char *path);

#endif
