/* SPDX-License-Identifier: MIT */
/* Copies the tables of captures to a writer: those of one capture, or of several merged. */
#ifndef KB_LIB_ANALYSIS_FACTS_CAPTURE_TABLES_H
#define KB_LIB_ANALYSIS_FACTS_CAPTURE_TABLES_H

#include <kbarman/barman.h>

/* The layout of a capture with room for the rows of @h. */
void kb_tables_layout(const struct kb_header *h, struct kb_barman_layout *layout);

/*
 * Write the rows of @h, and all facts but @without, "KEY=VALUE"; NULL: all. Returns 0 or a negative
 * errno.
 */
int kb_tables_copy(const struct kb_header *h, const char *without, struct kb_barman_writer *writer);

/* The layout of a capture with room for the rows of all @captures, of which there is one. */
void kb_tables_merged_layout(struct kb_barman *const *captures, unsigned int count,
			     struct kb_barman_layout *layout);

/* Write the rows of all @captures, each row once. Returns 0 or a negative errno. */
int kb_tables_merge(struct kb_barman *const *captures, unsigned int count,
		    struct kb_barman_writer *writer);

#endif
