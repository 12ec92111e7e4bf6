/* SPDX-License-Identifier: MIT */
/* kbarman merge, in two parts: the tables of several captures, and their records. */
#ifndef KBARMAN_CLI_MERGE_H
#define KBARMAN_CLI_MERGE_H

#include <kbarman/barman.h>

struct merge_input {
	const char *path;
	struct kb_barman *barman;
	const struct kb_header *header;
	struct kb_event event;		/* the next one */
	uint64_t order;			/* its timestamp, or the last one that was known */
};

/*
 * Can the captures be one? They must share layout, clock and custom series, and
 * agree about each core's counters. False after a complaint.
 */
bool merge_check(const struct merge_input *inputs, unsigned int count);

/* The layout of a capture that has room for the rows of all. */
void merge_layout(const struct merge_input *inputs, unsigned int count,
		  struct kb_barman_layout *layout);

/* Their tables, each row once. 0 or a negative errno. */
int merge_tables(const struct merge_input *inputs, unsigned int count,
		 struct kb_barman_writer *writer);

#endif
