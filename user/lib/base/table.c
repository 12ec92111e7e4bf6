// SPDX-License-Identifier: MIT
/*
 * Open addressing over an array of rows. The table is at most half full. Slots are in the order of
 * their hashes, but for those that were taken: so a table grows from its first slot to its last one,
 * without a look at its rows.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"

#define MAX_ROWS	(1U << 30)
#define LINE		64U	/* usual bytes of a cache line */

void kb_table_init(struct kb_table *table, uint32_t row_size, uint32_t key_words)
{
	*table = (struct kb_table) {
		.row_size = row_size, .key_words = key_words, .seed = kb_hash_seed(table),
	};
}

void kb_table_release(struct kb_table *table)
{
	free(table->rows);
	free(table->slots);
	table->rows = NULL;
	table->slots = NULL;
	table->nr = table->max = table->nr_slots = 0;
}

void kb_table_close(struct kb_table *table)
{
	free(table->slots);
	table->slots = NULL;
	table->nr_slots = 0;
}

static inline uint64_t hash_of(const struct kb_table *table, const uint64_t *key)
{
	uint64_t value = table->seed;
	uint32_t i;

	for (i = 0; i < table->key_words; i++)
		value = kb_hash_word(value, key[i]);
	return value;
}

uint64_t kb_table_hash(const struct kb_table *table, const uint64_t *key)
{
	return hash_of(table, key);
}

static inline bool is_key(const struct kb_table *table, uint32_t row, const uint64_t *key)
{
	const uint64_t *other = kb_table_row(table, row);
	uint32_t word = 0;

	while (other[word] == key[word])
		if (++word == table->key_words)
			return true;
	return false;
}

/*
 * Where the slot of a row is, unless others have taken it. Only the upper half of the row's hash
 * counts, which is in the slot, too.
 */
static inline uint32_t home_of(const struct kb_table *table, uint64_t value)
{
	return (uint32_t)(value >> table->shift);
}

/*
 * The number of the row that has @key, whose hash is @value. The hash bits in a slot avoid most
 * accesses to rows of other keys, which are cache misses.
 */
static inline uint32_t find_row(const struct kb_table *table, const uint64_t *key, uint64_t value)
{
	const uint64_t *slots = table->slots;
	uint32_t mask = table->nr_slots - 1, i;
	uint64_t slot;

	if (!slots)
		return KB_TABLE_NONE;
	for (i = home_of(table, value); (slot = slots[i]); i = (i + 1) & mask)
		if (slot >> 32 == value >> 32 && is_key(table, (uint32_t)slot - 1, key))
			return (uint32_t)slot - 1;
	return KB_TABLE_NONE;
}

/* The free slot for a row with the hash @value, which the table does not have. */
static uint64_t *free_slot(const struct kb_table *table, uint64_t value)
{
	uint32_t i = home_of(table, value);

	while (table->slots[i])
		i = (i + 1) & (table->nr_slots - 1);
	return &table->slots[i];
}

static uint64_t slot_of(uint64_t value, uint32_t row)
{
	return value >> 32 << 32 | (row + 1);
}

static int grow(struct kb_table *table)
{
	uint32_t max = table->max ? table->max * 2 : 64, nr_old = table->nr_slots, i;
	uint64_t *slots, *old = table->slots;
	char *rows;

	if (max > MAX_ROWS)
		return -1;
	slots = calloc((size_t)max * 2, sizeof(*slots));
	rows = slots ? reallocarray(table->rows, max, table->row_size) : NULL;
	if (!rows) {
		free(slots);
		return -1;
	}
	table->rows = rows;
	table->max = max;
	table->slots = slots;
	table->nr_slots = max * 2;
	table->shift = 32 + (uint32_t)__builtin_clz(max);
	for (i = 0; i < nr_old; i++)
		if (old[i])
			*free_slot(table, old[i]) = old[i];
	free(old);
	return 0;
}

void *kb_table_find(const struct kb_table *table, const uint64_t *key)
{
	uint32_t row = find_row(table, key, hash_of(table, key));

	return row == KB_TABLE_NONE ? NULL : kb_table_row(table, row);
}

/* Add the row of @key, whose hash is @hash. Not inlined, so that the usual way saves no registers. */
static uint32_t __attribute__((noinline)) add_row(struct kb_table *table, const uint64_t *key,
						  uint64_t hash)
{
	char *row;

	if (table->nr == table->max && grow(table))
		return KB_TABLE_NONE;
	row = kb_table_row(table, table->nr);
	memset(row, 0, table->row_size);
	memcpy(row, key, table->key_words * sizeof(*key));
	*free_slot(table, hash) = slot_of(hash, table->nr);
	return table->nr++;
}

static inline uint32_t number_of(struct kb_table *table, const uint64_t *key, uint64_t hash)
{
	uint32_t row = find_row(table, key, hash);

	return row == KB_TABLE_NONE ? add_row(table, key, hash) : row;
}

uint32_t kb_table_number(struct kb_table *table, const uint64_t *key, uint64_t hash)
{
	return number_of(table, key, hash);
}

void *kb_table_get(struct kb_table *table, const uint64_t *key)
{
	uint32_t number = number_of(table, key, hash_of(table, key));

	return number == KB_TABLE_NONE ? NULL : kb_table_row(table, number);
}

void kb_table_fetch_slot(const struct kb_table *table, uint64_t hash)
{
	if (table->nr_slots)
		__builtin_prefetch(&table->slots[home_of(table, hash)]);
}

uint32_t kb_table_fetch_row(const struct kb_table *table, uint64_t hash)
{
	uint32_t mask = table->nr_slots - 1, i, number;
	const char *row;

	if (!table->nr_slots)
		return KB_TABLE_NONE;
	i = home_of(table, hash);
	while (table->slots[i] && table->slots[i] >> 32 != hash >> 32)
		i = (i + 1) & mask;
	if (!table->slots[i])
		return KB_TABLE_NONE;
	number = (uint32_t)table->slots[i] - 1;
	row = kb_table_row(table, number);
	/* a row of up to one cache line may lie across two */
	__builtin_prefetch(row, 1);
	__builtin_prefetch(row + (table->row_size < LINE ? table->row_size : LINE) - 1, 1);
	return number;
}
