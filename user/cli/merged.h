/* SPDX-License-Identifier: MIT */
/* The output of verbs that make one capture of those of a session's CPUs. */
#ifndef KBARMAN_CLI_MERGED_H
#define KBARMAN_CLI_MERGED_H

#include <stdint.h>

#include <kbarman/barman.h>

#define MERGED_WINDOWS_BYTES	((size_t)16 << 20)	/* of all inputs together, if possible */

/*
 * Writes @captures, which agree, to @path, with @facts, as kb_captures_merge(). Returns an exit
 * status, after a message if nothing was written.
 */
int merged_write(struct kb_barman *const *captures, unsigned int count, const char *const *facts,
		 const char *path, uint64_t *records);

/* Says what was damaged in them, when they were read. Returns an exit status. */
int merged_complain(struct kb_barman *const *captures, unsigned int count);

#endif
