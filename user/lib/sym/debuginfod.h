/* SPDX-License-Identifier: MIT */
/*
 * Debug files from the servers that $DEBUGINFOD_URLS names, by build-id, if the user has
 * set that and libdebuginfod is on this machine; it keeps what it fetched. A server that
 * does not answer is waited for once, not for every file.
 */
#ifndef KBARMAN_SYM_DEBUGINFOD_H
#define KBARMAN_SYM_DEBUGINFOD_H

#include "sym/elf.h"

/* The path of the debug file of @id, to be freed; NULL: there is none to be had. */
char *kb_debuginfod_find(const struct kb_build_id *id);

#endif
