// SPDX-License-Identifier: MIT
/* Open addressing, at most half full, over an array of rows. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "table.h"

#define MAX_ROWS	(1U << 30)

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

static uint64_t hash(const struct kb_table *table, const uint64_t *key)
{
	uint64_t value = table->seed;
	uint32_t i;

	for (i = 0; i < table->key_words; i++) {
		value = (value ^ key[i]) * 0x9e3779b97f4a7c15U;
		value ^= value >> 32;
	}
	return value;
}

/* The slot that has @key, or the free one where it belongs. */
static uint32_t *find_slot(const struct kb_table *table, const uint64_t *key)
{
	uint32_t mask = table->nr_slots - 1, i = hash(table, key) & mask;

	while (table->slots[i]) {
		const uint64_t *other = kb_table_row(table, table->slots[i] - 1);
		uint32_t word = 0;

		while (word < table->key_words && other[word] == key[word])
			word++;
		if (word == table->key_words)
			break;
		i = (i + 1) & mask;
	}
	return &table->slots[i];
}

static int grow(struct kb_table *table)
{
	uint32_t max = table->max ? table->max * 2 : 64, i, *slots;
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
	for (i = 0; i < table->nr; i++)
		*find_slot(table, kb_table_row(table, i)) = i + 1;
	return 0;
}

void *kb_table_find(const struct kb_table *table, const uint64_t *key)
{
	uint32_t *slot = table->nr ? find_slot(table, key) : NULL;

	return slot && *slot ? kb_table_row(table, *slot - 1) : NULL;
}

void *kb_table_get(struct kb_table *table, const uint64_t *key)
{
	uint32_t *slot;
	char *row;

	if (table->nr == table->max) {
		row = kb_table_find(table, key);
		if (row)
			return row;
		if (grow(table))
			return NULL;
	}
	slot = find_slot(table, key);
	if (*slot)
		return kb_table_row(table, *slot - 1);
	row = kb_table_row(table, table->nr);
	memset(row, 0, table->row_size);
	memcpy(row, key, table->key_words * sizeof(*key));
	*slot = ++table->nr;
	return row;
}
