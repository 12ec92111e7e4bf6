/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The string table of a capture. Every string stands in it once and counts its references. Its
 * room is free again when the last reference goes.
 *
 * A block has 16 bytes times a power of two. Two free neighbours become one block again, so a
 * table in which strings come and go for a year stays as good as a new one. Bytes that are part
 * of no string are zero.
 *
 * A table that only grows has no blocks: every string stands behind all former ones, so that a
 * reader can follow, and no string ever goes.
 *
 * The tasks that are recorded choose the strings. The hash has a random key, so they can't choose
 * strings that collide.
 *
 * Context: the caller's lock, except for kbarman_strings_text(). The hash of a path of 4 KiB takes
 * ten thousand instructions, so compute it before taking the lock. All others take a few hundred
 * instructions, one for every byte of a string that is compared, and what it takes to copy or
 * clear one.
 */
#ifndef KBARMAN_STRING_TABLE_H
#define KBARMAN_STRING_TABLE_H

#include "capture/table_env.h"

#define KBARMAN_STRING_UNIT	16U
#define KBARMAN_STRING_ORDERS	10	/* the longest string has 8191 bytes and a NUL */

/* One for each unit of the table. It describes the block that begins there. */
struct kbarman_string {
	u32 next;	/* unit + 1: the next string of the bucket, or free block of the order */
	union {
		u32 refs;	/* of a string */
		u32 previous;	/* unit + 1: the free block in front of this one in the list */
	};
	u32 hash;	/* of a string */
	u16 length;	/* of a string: bytes without the NUL */
	u8 payer;	/* of a string: who pays for it */
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
 * Make an empty table of @bytes bytes at @table, whose length goes to @end. The caller has set
 * ->blocks, ->buckets and ->mask; the blocks, the buckets and the table are all zero.
 */
void kbarman_strings_init(struct kbarman_strings *strings, char *table, u32 bytes, u32 *end,
			  bool grows);

/* Context: any, while the table is in use. */
struct kbarman_text kbarman_strings_text(const struct kbarman_strings *strings, const char *bytes,
					 size_t length);

/* The offset of the string @text, or -ENOENT. */
s64 kbarman_strings_find(const struct kbarman_strings *strings, const struct kbarman_text *text);

/* One reference more to the string at @offset. */
static inline void kbarman_strings_hold(struct kbarman_strings *strings, u32 offset)
{
	strings->blocks[offset / KBARMAN_STRING_UNIT].refs++;
}

/* How many units a new string of @length bytes takes. */
u32 kbarman_strings_units(const struct kbarman_strings *strings, size_t length);

/* So many units are free. The free blocks may be too small all the same. */
static inline bool kbarman_strings_has_room(const struct kbarman_strings *strings, u32 units)
{
	return units <= strings->units - strings->used;
}

/* The bytes of the block at @offset, in equal parts for each reference to its string. */
u32 kbarman_strings_part(const struct kbarman_strings *strings, u32 offset);

/*
 * Returns the offset of @text, which has one reference more. If @text is new, @payer pays for it.
 * -ENOSPC if no free block is long enough.
 */
s64 kbarman_strings_get(struct kbarman_strings *strings, const struct kbarman_text *text,
			u8 payer);

/*
 * The string at @offset has one reference less. If that was the last one the string goes, unless
 * the table only grows. Returns how many units became free, and in @payer who paid for them; 0 if
 * none did.
 */
u32 kbarman_strings_put(struct kbarman_strings *strings, u32 offset, u8 *payer);

#endif /* KBARMAN_STRING_TABLE_H */
