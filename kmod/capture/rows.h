/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rows of a table by number, and in some tables also by key. Rows come back in a session that
 * overwrites: see tables.h. Below: what the tables of a capture take, rows and strings, for which a
 * user pays (shares.h). If little is left, the collector is told.
 *
 * Context: any but NMI; the capture's lock is held, but while rows are created and freed.
 */
#ifndef KBARMAN_ROWS_H
#define KBARMAN_ROWS_H

#include <linux/types.h>

#include "capture/shares.h"

struct kbarman_capture;
struct kbarman_rows;
struct kbarman_text;

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key);
void kbarman_rows_free(struct kbarman_rows *rows);
void kbarman_rows_reset(struct kbarman_rows *rows);

/* Bytes that kbarman_rows_create() allocates for @count rows without the buckets of a key. */
u64 kbarman_rows_bytes(u32 count);

/* The bucket of that key. Nobody can guess the hash. */
u32 *kbarman_rows_bucket(struct kbarman_rows *rows, u32 id, u64 address);
void kbarman_rows_link(struct kbarman_rows *rows, u32 *bucket, u32 row);
void kbarman_rows_unlink(struct kbarman_rows *rows, u32 *bucket, u32 row);

/* Units of strings that are kept for what a session says of its clock at its end. */
#define KBARMAN_END_UNITS	16

/*
 * Returns the string's offset; the string has one reference more. -ENOSPC (counted). If the string
 * is new, @payer pays for it, whether or not the share allows that.
 */
s64 kbarman_intern(struct kbarman_capture *capture, const struct kbarman_text *text, u8 payer);

/*
 * The same for a string whose length others choose. If the string is new, @payer's share must
 * allow it, and it must leave room for the names of all tasks and for what is said at the end.
 */
s64 kbarman_intern_shared(struct kbarman_capture *capture, const struct kbarman_text *text,
			  u8 payer);

/* The string at @offset has one reference less. Returns how many units became free. */
u32 kbarman_forget(struct kbarman_capture *capture, u32 offset);

/* A row of @what for @payer, or -1 (counted). @count: of the rows that the table shows. */
s64 kbarman_row_take(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 count,
		     u8 payer, enum kbarman_resource what);
void kbarman_row_give(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 row,
		      enum kbarman_resource what);

#endif /* KBARMAN_ROWS_H */
