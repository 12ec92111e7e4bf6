/* SPDX-License-Identifier: MIT */
/* kbarman merge, in two parts: the tables of several captures, and their records. */
#ifndef KBARMAN_CLI_MERGE_H
#define KBARMAN_CLI_MERGE_H

#include <kbarman/barman.h>

struct merge_input {
	const char *path;
	struct kb_barman *barman;
	const struct kb_header *header;
	struct kb_event event;		/* the next record */
	uint64_t order;			/* its timestamp, or the last known one */
};

/*
 * Can the captures be merged? They must have the same layout, clock and custom series, and the same
 * counters for each core. Returns false after a message.
 */
bool merge_check(const struct merge_input *inputs, unsigned int count);

/* The layout of a capture with room for the rows of all inputs. */
void merge_layout(const struct merge_input *inputs, unsigned int count,
		  struct kb_barman_layout *layout);

/* Writes the rows of all inputs, each row once. Returns 0 or a negative errno. */
int merge_tables(const struct merge_input *inputs, unsigned int count,
		 struct kb_barman_writer *writer);

#endif
