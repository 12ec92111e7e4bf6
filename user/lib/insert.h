/* SPDX-License-Identifier: MIT */
/*
 * Records that no kernel wrote, on their way into the merge: kept in the order of time
 * until no older one is to be expected, then in a ring like those of the CPUs.
 */
#ifndef KB_LIB_INSERT_H
#define KB_LIB_INSERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_insert {
	struct kb_inserted {
		uint64_t timestamp;
		size_t length;		/* a multiple of the word */
		uint8_t *record;
	} *pending;			/* [first, first + nr) of room, by time */
	size_t first, nr, room;
	size_t bytes, limit;		/* of what is pending */
	bool newest;			/* at the limit the oldest goes, else the new one */
	uint64_t count, dropped;

	uint8_t *ring;
	uint64_t size, end;		/* of the ring; a position */
};

/* 0 or -ENOMEM; all zero is good to be destroyed, too. */
int kb_insert_create(struct kb_insert *insert, size_t limit, bool newest);
void kb_insert_destroy(struct kb_insert *insert);

/*
 * @record has @length bytes, of which the padding to a word is not one, and begins with
 * its header, whose timestamp counts. 0 or -ENOMEM; what finds no room is counted.
 */
int kb_insert_add(struct kb_insert *insert, const void *record, size_t length);

/*
 * What is no newer than @horizon goes into the ring, of which everything before
 * @position is free. Returns @horizon, or the time of the first one for which there was
 * no room.
 */
uint64_t kb_insert_move(struct kb_insert *insert, uint64_t horizon, uint64_t position);

#endif
