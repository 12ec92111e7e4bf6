/* SPDX-License-Identifier: MIT */
/*
 * Inserted records on their way into the merge. They are ordered by time until no older one can
 * come any more, then they go into a ring like those of the CPUs.
 */
#ifndef KB_LIB_RECORD_RECORDER_INSERT_H
#define KB_LIB_RECORD_RECORDER_INSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_insert {
	struct kb_inserted {
		uint64_t timestamp;
		size_t length;		/* a multiple of the word size */
		uint8_t *record;
	} *pending;			/* [first, first + nr) of room, ordered by time */
	size_t first, nr, room;
	size_t bytes, limit;		/* of what is pending */
	bool newest;			/* at the limit drop the oldest, else the new one */
	uint64_t count, dropped;

	uint8_t *ring;
	uint64_t size, end;		/* of the ring, bytes; a position */
};

/* Returns 0 or -ENOMEM. A zeroed struct may be destroyed, too. */
int kb_insert_create(struct kb_insert *insert, size_t limit, bool newest);
void kb_insert_destroy(struct kb_insert *insert);

/*
 * Add @record of @length bytes, not counting padding to a word. It begins with its record
 * header, whose timestamp gives its place. Returns 0 or -ENOMEM. A record that finds no room is
 * counted as dropped.
 */
int kb_insert_add(struct kb_insert *insert, const void *record, size_t length);

/*
 * Move the records up to @horizon into the ring, whose bytes before @position are free. Returns
 * @horizon, or the time of the first record that found no room.
 */
uint64_t kb_insert_move(struct kb_insert *insert, uint64_t horizon, uint64_t position);

#endif
