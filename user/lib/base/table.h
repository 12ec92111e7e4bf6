/* SPDX-License-Identifier: MIT */
/*
 * Rows found by a key of a few 64-bit words, for analyses and caches. Rows begin with their
 * key, are stored in the order of their first request, and move when the table grows. The hash
 * is seeded at random, so no input can force collisions. Printed results must not depend on the
 * hash.
 */
#ifndef KB_LIB_BASE_TABLE_H
#define KB_LIB_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct kb_table {
	char *rows;
	uint32_t nr, max;
	uint32_t row_size;	/* bytes, a multiple of 8 */
	uint32_t key_words;
	uint64_t *slots;	/* row number + 1 and, above it, the upper half of the key's
				 * hash; 0 = free; the number of slots is a power of two */
	uint32_t nr_slots;
	uint32_t shift;		/* 64 - log2(nr_slots): a hash, shifted by it, is the number of a slot */
	uint64_t seed;
};

void kb_table_init(struct kb_table *table, uint32_t row_size, uint32_t key_words);
void kb_table_release(struct kb_table *table);

/* The row with @key. A new row is zero after its key. NULL without memory. */
void *kb_table_get(struct kb_table *table, const uint64_t *key);

/* The same, NULL if there is no such row. */
void *kb_table_find(const struct kb_table *table, const uint64_t *key);

/*
 * kb_table_get() in steps, for callers that know their keys in advance. Rows of a large table
 * are usually not in the cache: prefetch the slot first, later prefetch the row, then get it,
 * and do other work in between.
 */
#define KB_TABLE_NONE	UINT32_MAX

uint64_t kb_table_hash(const struct kb_table *table, const uint64_t *key);
void kb_table_fetch_slot(const struct kb_table *table, uint64_t hash);

/* The likely number of the row; KB_TABLE_NONE: the row is likely a new one. */
uint32_t kb_table_fetch_row(const struct kb_table *table, uint64_t hash);

/* The number of the row with @key, whose hash is @hash. KB_TABLE_NONE without memory. */
uint32_t kb_table_number(struct kb_table *table, const uint64_t *key, uint64_t hash);

/* Free what finds rows. Rows can still be read by number; no row can be found or added. */
void kb_table_close(struct kb_table *table);

static inline void *kb_table_row(const struct kb_table *table, uint32_t i)
{
	return table->rows + (size_t)i * table->row_size;
}

/* Rows that were found a moment ago, of a table whose keys are task ids. All zero: none. */
#define KB_TABLE_RECENT	256U

struct kb_table_recent {
	uint32_t rows[KB_TABLE_RECENT];	/* by the lowest bits of the key: number of the row, plus 1 */
};

/* kb_table_get(), which computes no hash for a row that was found a moment ago. */
static inline void *kb_table_get_recent(struct kb_table *table, struct kb_table_recent *recent,
					uint64_t key)
{
	uint32_t *found_at = &recent->rows[key % KB_TABLE_RECENT];
	char *row = *found_at ? kb_table_row(table, *found_at - 1) : NULL;

	if (row && *(const uint64_t *)(const void *)row == key)
		return row;
	row = kb_table_get(table, &key);
	if (row)
		*found_at = (uint32_t)((size_t)(row - table->rows) / table->row_size) + 1;
	return row;
}

#endif
