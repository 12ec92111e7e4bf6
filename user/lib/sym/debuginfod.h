/* SPDX-License-Identifier: MIT */
/*
 * Debug files by build-id from the servers in $DEBUGINFOD_URLS, if that is set and
 * libdebuginfod is installed. The library keeps downloaded files. A server that does not answer
 * is waited for once, not for every file.
 */
#ifndef KBARMAN_SYM_DEBUGINFOD_H
#define KBARMAN_SYM_DEBUGINFOD_H

#include "sym/elf_data.h"

/* The path of the debug file of @id; the caller frees it. NULL: it is not available. */
char *kb_debuginfod_find(const struct kb_build_id *id);

#endif
