/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rows of a table by number, and in some tables also by key. Rows come back in a session that
 * overwrites: see tables.h.
 *
 * Context: the caller's lock.
 */
#ifndef KBARMAN_ROWS_H
#define KBARMAN_ROWS_H

#include <linux/types.h>

/* The rows of a table, by number; in some tables also by key, those rows that still hold. */
struct kbarman_rows {
	u32 size;
	u32 bits;	/* of a bucket's number; 0: rows have no key */
	u32 seed;	/* of the hash */
	u32 *buckets;	/* [1 << bits]: row + 1. Of each key the newest row is linked alone */
	u32 *next;	/* [size]: row + 1: the next row of the bucket, or the next empty row */
	u32 empty;	/* row + 1: the first empty row */
	u64 *until;	/* [size]: when the row was over; 0: it is not */
	u8 *payer;	/* [size]: who pays for the row (shares.h) */
};

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key);
void kbarman_rows_free(struct kbarman_rows *rows);
void kbarman_rows_reset(struct kbarman_rows *rows);

/* Bytes that kbarman_rows_create() allocates for @count rows without the buckets of a key. */
u64 kbarman_rows_bytes(u32 count);

/* The bucket of that key. Nobody can guess the hash. */
u32 *kbarman_rows_bucket(struct kbarman_rows *rows, u32 id, u64 address);
void kbarman_rows_link(struct kbarman_rows *rows, u32 *bucket, u32 row);
void kbarman_rows_unlink(struct kbarman_rows *rows, u32 *bucket, u32 row);

/* A row for a new entry: an empty row, or the row behind the last one; -1 if there is none. */
s64 kbarman_rows_take(struct kbarman_rows *rows, u32 count);
void kbarman_rows_give(struct kbarman_rows *rows, u32 row);

#endif /* KBARMAN_ROWS_H */
