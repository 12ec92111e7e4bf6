/* SPDX-License-Identifier: MIT */
/*
 * The rings of many CPUs, live or at rest, as one stream of records in the order
 * of time. Records are not decoded beyond their header and not copied: they are
 * handed out where they lie.
 *
 *	kb_merge_add()		once per ring
 *	for each round:
 *		kb_merge_extend()	per ring: it can now be read up to there
 *		kb_merge_horizon()	nothing older than that will come any more
 *		kb_merge_next()		until 0
 *		kb_merge_position()	per ring: what may be given back
 */
#ifndef KBARMAN_MERGE_H
#define KBARMAN_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A record where it lies in its ring: valid until the ring's bytes are given back. */
struct kb_raw_record {
	const void *data;		/* behind the length word; aligned to a word */
	size_t length;			/* bytes, a multiple of the word size */
	uint64_t timestamp;		/* ticks */
	unsigned int source;
};

struct kb_merge;

int kb_merge_create(struct kb_merge **out, unsigned int max_sources, struct kb_error *err);
void kb_merge_destroy(struct kb_merge *merge);

/*
 * One more ring of @size bytes, a power of two, aligned to 8, in this machine's
 * word size and byte order, to be read from @position, a block boundary, on.
 * Returns its number: 0, 1, 2, …
 */
int kb_merge_add(struct kb_merge *merge, const void *ring, uint64_t size, uint64_t position,
		 struct kb_error *err);

/* The ring's bytes before @end, a block boundary, can be read, and will not change. */
void kb_merge_extend(struct kb_merge *merge, unsigned int source, uint64_t end);

/*
 * Records that were not in reach at the last kb_merge_extend() have a @timestamp of
 * at least that; UINT64_MAX: there will be none. What is newer than the horizon is
 * held back as long as a ring that has run dry may still bring something older.
 */
void kb_merge_horizon(struct kb_merge *merge, uint64_t timestamp);

/*
 * The oldest record. Returns 1 with @record filled; 0 if there is none that may be
 * given out yet; -EBADMSG with @err filled once for a ring that is damaged, the
 * rest of whose bytes in reach has been skipped: the caller may go on.
 */
int kb_merge_next(struct kb_merge *merge, struct kb_raw_record *record, struct kb_error *err);

/* Everything before it has been given out; always a block boundary. */
uint64_t kb_merge_position(const struct kb_merge *merge, unsigned int source);

/* Records that were given out although a newer one had been: they came too late. */
uint64_t kb_merge_unordered(const struct kb_merge *merge);

#ifdef __cplusplus
}
#endif

#endif
