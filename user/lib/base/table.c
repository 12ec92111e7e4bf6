// SPDX-License-Identifier: MIT
/* Open addressing over an array of rows. The table is at most half full. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/table.h"

#define MAX_ROWS	(1U << 30)
#define LINE		64U	/* usual bytes of a cache line */

void kb_table_init(struct kb_table *table, uint32_t row_size, uint32_t key_words)
{
	*table = (struct kb_table) { .row_size = row_size, .key_words = key_words };
	if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) < 0)
		table->seed = (uintptr_t)table;
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

uint64_t kb_table_hash(const struct kb_table *table, const uint64_t *key)
{
	uint64_t value = table->seed;
	uint32_t i;

	for (i = 0; i < table->key_words; i++)
		value = kb_hash_word(value, key[i]);
	return value;
}

static bool is_key(const struct kb_table *table, uint64_t slot, const uint64_t *key)
{
	const uint64_t *other = kb_table_row(table, (uint32_t)slot - 1);
	uint32_t word = 0;

	while (word < table->key_words && other[word] == key[word])
		word++;
	return word == table->key_words;
}

/*
 * The slot that has @key, whose hash is @value, or the free slot where it belongs. The hash
 * bits in the slot avoid most accesses to rows of other keys, which are cache misses.
 */
static uint64_t *find_slot(const struct kb_table *table, const uint64_t *key, uint64_t value)
{
	uint32_t mask = table->nr_slots - 1, i = value & mask;

	while (table->slots[i] &&
	       (table->slots[i] >> 32 != value >> 32 || !is_key(table, table->slots[i], key)))
		i = (i + 1) & mask;
	return &table->slots[i];
}

/* The free slot for @value in a table that does not have its row. */
static uint64_t *free_slot(uint64_t *slots, uint32_t nr_slots, uint64_t value)
{
	uint32_t i = value & (nr_slots - 1);

	while (slots[i])
		i = (i + 1) & (nr_slots - 1);
	return &slots[i];
}

static uint64_t slot_of(uint64_t value, uint32_t row)
{
	return value >> 32 << 32 | (row + 1);
}

static int grow(struct kb_table *table)
{
	uint32_t max = table->max ? table->max * 2 : 64, i;
	uint64_t *slots;
	char *rows;

	if (max > MAX_ROWS)
		return -1;
	slots = calloc((size_t)max * 2, sizeof(*slots));
	rows = slots ? reallocarray(table->rows, max, table->row_size) : NULL;
	if (!rows) {
		free(slots);
		return -1;
	}
	free(table->slots);
	table->rows = rows;
	table->max = max;
	table->slots = slots;
	table->nr_slots = max * 2;
	for (i = 0; i < table->nr; i++) {
		uint64_t value = kb_table_hash(table, kb_table_row(table, i));

		*free_slot(slots, table->nr_slots, value) = slot_of(value, i);
	}
	return 0;
}

void *kb_table_find(const struct kb_table *table, const uint64_t *key)
{
	uint64_t slot = table->nr ? *find_slot(table, key, kb_table_hash(table, key)) : 0;

	return slot ? kb_table_row(table, (uint32_t)slot - 1) : NULL;
}

uint32_t kb_table_number(struct kb_table *table, const uint64_t *key, uint64_t hash)
{
	uint64_t *slot = NULL;
	char *row;

	if (table->nr_slots)
		slot = find_slot(table, key, hash);
	if (slot && *slot)
		return (uint32_t)*slot - 1;
	if (!slot || table->nr == table->max) {
		if (grow(table))
			return KB_TABLE_NONE;
		slot = free_slot(table->slots, table->nr_slots, hash);
	}
	row = kb_table_row(table, table->nr);
	memset(row, 0, table->row_size);
	memcpy(row, key, table->key_words * sizeof(*key));
	*slot = slot_of(hash, table->nr);
	return table->nr++;
}

void *kb_table_get(struct kb_table *table, const uint64_t *key)
{
	uint32_t number = kb_table_number(table, key, kb_table_hash(table, key));

	return number == KB_TABLE_NONE ? NULL : kb_table_row(table, number);
}

void kb_table_fetch_slot(const struct kb_table *table, uint64_t hash)
{
	if (table->nr_slots)
		__builtin_prefetch(&table->slots[hash & (table->nr_slots - 1)]);
}

uint32_t kb_table_fetch_row(const struct kb_table *table, uint64_t hash)
{
	uint32_t mask = table->nr_slots - 1, i = hash & mask, number;
	const char *row;

	if (!table->nr_slots)
		return KB_TABLE_NONE;
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
