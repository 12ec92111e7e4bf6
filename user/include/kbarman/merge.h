/* SPDX-License-Identifier: MIT */
/*
 * Merge the rings of many CPUs, running or not, into one stream of records ordered by time.
 * Only the header of a record is decoded. Records are not copied: a record that is handed out
 * points into its ring.
 *
 *	kb_merge_add()		once per ring
 *	for each round:
 *		kb_merge_extend()	per ring: its bytes up to there can be read now
 *		kb_merge_horizon()	no older records will follow
 *		kb_merge_next()		until 0; or kb_merge_next_run(), which is faster
 *		kb_merge_position()	per ring: the bytes before it may be given back
 */
#ifndef KBARMAN_MERGE_H
#define KBARMAN_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A record in its ring. It is valid until the ring's bytes are given back. */
struct kb_raw_record {
	const void *data;		/* behind the length word; aligned to a word */
	size_t length;			/* bytes, a multiple of the word size */
	uint64_t timestamp;		/* ticks */
	unsigned int source;
};

/*
 * Records of one ring that follow each other, as the blocks that they are there: each has a length
 * word in front of it, and none is padding. They are valid until the ring's bytes are given back.
 */
struct kb_raw_run {
	const void *blocks;		/* aligned to a word */
	size_t bytes;
	uint64_t records;		/* one or more */
	uint64_t first, last;		/* timestamps: of the first record, and the newest */
	unsigned int source;
};

struct kb_merge;

/*
 * Create a merge of at most @max_sources rings. Returns 0 or -ENOMEM. kb_merge_destroy() frees
 * it, and may be called with NULL.
 */
int kb_merge_create(struct kb_merge **out, unsigned int max_sources, struct kb_error *err);
void kb_merge_destroy(struct kb_merge *merge);

/*
 * Add a ring of @size bytes: a power of two, aligned to 8, in this machine's word size and byte
 * order. It is read from @position on, a block boundary. Returns its number (0, 1, 2, …) or a
 * negative errno. The bytes stay the caller's.
 */
int kb_merge_add(struct kb_merge *merge, const void *ring, uint64_t size, uint64_t position,
		 struct kb_error *err);

/* The bytes of the ring before @end, a block boundary, can be read and will not change. */
void kb_merge_extend(struct kb_merge *merge, unsigned int source, uint64_t end);

/*
 * Records that kb_merge_extend() has not covered yet have a timestamp of at least @timestamp
 * (ticks); UINT64_MAX: there are no more. Records newer than that are held back as long as a
 * ring without unread records may still get an older one.
 */
void kb_merge_horizon(struct kb_merge *merge, uint64_t timestamp);

/*
 * Take the oldest record. Returns 1 and fills @record; 0 if no record may be handed out yet;
 * -EBADMSG and @err, once, for a ring that is damaged. The rest of that ring's readable bytes
 * is skipped then, and the caller may go on.
 */
int kb_merge_next(struct kb_merge *merge, struct kb_raw_record *record, struct kb_error *err);

/*
 * Take the oldest record, and the records behind it as far as they are older than those of the other
 * rings. The same records in the same order as by kb_merge_next(), and the same return values.
 */
int kb_merge_next_run(struct kb_merge *merge, struct kb_raw_run *run, struct kb_error *err);

/* Everything before this position has been handed out. Always a block boundary. */
uint64_t kb_merge_position(const struct kb_merge *merge, unsigned int source);

/* Number of records that were handed out after a newer one, because they came too late. */
uint64_t kb_merge_unordered(const struct kb_merge *merge);

#ifdef __cplusplus
}
#endif

#endif
