/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The string table of a capture: every string stands in it once, is counted by those
 * that mean it, and gives its room back with the last of them.
 *
 * Room is handed out in blocks of a power of two of 16 bytes. Two free neighbours become
 * one block again, so a table in which strings come and go for a year stays as good as a
 * new one. What no string stands in is zero. A table that only grows is different: every
 * string stands behind all former ones, so a reader can follow, and none ever goes.
 *
 * Whoever is recorded chooses the strings. The hash has a random key, so nobody can choose
 * strings that collide.
 *
 * Context: the caller's lock, but for kbarman_strings_text(): the hash of a path of 4 KiB takes
 * ten thousand instructions, and is to be had before the lock is. All others take a few hundred
 * instructions, one for every byte of a string that is compared, and what it takes to copy or
 * clear one.
 */
#ifndef KBARMAN_STRING_TABLE_H
#define KBARMAN_STRING_TABLE_H

#include "table_env.h"

#define KBARMAN_STRING_UNIT	16U
#define KBARMAN_STRING_ORDERS	10	/* the longest string has 8191 bytes and a NUL */

/* One unit of the table; what it says is of the block that begins there. */
struct kbarman_string {
	u32 next;	/* unit + 1: of the bucket, or of the free blocks of that order */
	union {
		u32 refs;	/* in use */
		u32 previous;	/* free: unit + 1 */
	};
	u32 hash;	/* in use: of the string */
	u16 length;	/* in use: bytes without the NUL */
	u8 payer;	/* in use: whose share it is part of */
	u8 state;	/* STRING_*, and the block's order */
};

struct kbarman_strings {
	char *table;
	u32 *end;	/* the table's length as its readers see it: never shrinks */
	bool grows;	/* only */
	u32 units;
	u32 used;	/* units in blocks that are in use */
	u32 free[KBARMAN_STRING_ORDERS];	/* unit + 1: the first free block of each order */
	struct kbarman_string *blocks;		/* [units] */
	u32 *buckets;				/* [mask + 1]: unit + 1 */
	u32 mask;
	siphash_key_t key;
};

/* A string that is looked for or is to be added: bytes without NUL. */
struct kbarman_text {
	const char *bytes;
	size_t length;
	u32 hash;	/* of that table */
};

/* How many buckets a table of @bytes bytes has: a power of two. */
u32 kbarman_strings_buckets(u32 bytes);

/*
 * An empty table of @bytes bytes at @table, which are zero; its length is kept in @end.
 * ->blocks and ->buckets are set, ->mask as well, and all of both is zero.
 */
void kbarman_strings_init(struct kbarman_strings *strings, char *table, u32 bytes, u32 *end,
			  bool grows);

/* Context: any, while the table is in use. */
struct kbarman_text kbarman_strings_text(const struct kbarman_strings *strings, const char *bytes,
					 size_t length);

/* The offset of the string @text, or -ENOENT. */
s64 kbarman_strings_find(const struct kbarman_strings *strings, const struct kbarman_text *text);

/* One reference more to the string at @offset. */
void kbarman_strings_hold(struct kbarman_strings *strings, u32 offset);

/* How many units a new string of @length bytes takes. */
u32 kbarman_strings_units(const struct kbarman_strings *strings, size_t length);

/* So many units are free; they may be blocks that are too small. */
bool kbarman_strings_has_room(const struct kbarman_strings *strings, u32 units);

/* The bytes of the block at @offset, in equal parts for each reference to its string. */
u32 kbarman_strings_part(const struct kbarman_strings *strings, u32 offset);

/*
 * The offset of @text, which is one reference more, and of @payer's share if it is new.
 * -ENOSPC if there is no block that is long enough.
 */
s64 kbarman_strings_get(struct kbarman_strings *strings, const struct kbarman_text *text,
			u8 payer);

/*
 * A reference to the string that begins at @offset goes. If it was the last one, and the
 * table does not only grow, returns how many units are free now, and in @payer whose they
 * were; else 0.
 */
u32 kbarman_strings_put(struct kbarman_strings *strings, u32 offset, u8 *payer);

#endif /* KBARMAN_STRING_TABLE_H */
