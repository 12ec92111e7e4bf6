/* SPDX-License-Identifier: MIT */
/*
 * Debug files by build-id from the servers in $DEBUGINFOD_URLS, if that is set and
 * libdebuginfod is installed. The library keeps downloaded files. A server that does not answer
 * is waited for once, not for every file.
 */
#ifndef KB_LIB_SYM_IMAGE_DEBUGINFOD_H
#define KB_LIB_SYM_IMAGE_DEBUGINFOD_H

#include "sym/tables/elf_data.h"

/* The path of the debug file of @id; the caller frees it. NULL: it is not available. */
char *kb_debuginfod_find(const struct kb_build_id *id);

#endif
