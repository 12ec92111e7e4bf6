// SPDX-License-Identifier: MIT
/* The table may be hostile: each number is checked before it is followed. */
#include <string.h>

#include "unwind/go_starts.h"

#define MAGIC_118	0xfffffff0U
#define MAGIC_120	0xfffffff1U	/* a function has one more word, its first line */
#define TOP_FRAME	1U
#define MCALL		"runtime.mcall"

static uint32_t read32(const struct kb_go_starts *starts, uint64_t at)
{
	uint32_t value = 0;

	if (at <= starts->table->size && starts->table->size - at >= sizeof(value))
		memcpy(&value, starts->table->data + at, sizeof(value));
	return starts->swap ? __builtin_bswap32(value) : value;
}

/* The word @number of the header, which is as long as a pointer. */
static uint64_t read_word(const struct kb_go_starts *starts, unsigned int number)
{
	const unsigned int size = starts->table->data[7];
	uint64_t at = 8 + (uint64_t)number * size, value = 0;

	if (size == 4)
		return read32(starts, at);
	if (at + sizeof(value) <= starts->table->size)
		memcpy(&value, starts->table->data + at, sizeof(value));
	return starts->swap ? __builtin_bswap64(value) : value;
}

void kb_go_starts_begin(struct kb_go_starts *starts, const struct kb_unwind_section *table,
			bool swap)
{
	uint32_t magic;
	uint64_t nr;

	*starts = (struct kb_go_starts) { .table = table, .swap = swap };
	magic = read32(starts, 0);
	if ((magic != MAGIC_118 && magic != MAGIC_120) || table->size < 8 ||
	    (table->data[7] != 4 && table->data[7] != 8))
		return;
	nr = read_word(starts, 0);
	starts->text = read_word(starts, 2);
	starts->names = read_word(starts, 3);
	starts->functions = read_word(starts, 7);
	starts->flag = magic == MAGIC_118 ? 37 : 41;
	/* The table has two words for a function, and ends with where the last one ends. */
	if (starts->text && nr < table->size / 8)
		starts->nr = (uint32_t)nr;
}

static bool is_start(const struct kb_go_starts *starts, uint64_t function)
{
	const struct kb_unwind_section *table = starts->table;
	uint64_t name = starts->names + read32(starts, function + 4);

	if (function > table->size || table->size - function <= starts->flag)
		return false;
	return table->data[function + starts->flag] & TOP_FRAME ||
	       (name < table->size && table->size - name >= sizeof(MCALL) &&
		memcmp(table->data + name, MCALL, sizeof(MCALL)) == 0);
}

bool kb_go_starts_next(struct kb_go_starts *starts, uint64_t *start, uint64_t *end)
{
	while (starts->next < starts->nr) {
		uint64_t at = starts->functions + 8 * (uint64_t)starts->next++;

		if (!is_start(starts, starts->functions + read32(starts, at + 4)))
			continue;
		*start = starts->text + read32(starts, at);
		*end = starts->text + read32(starts, at + 8);
		return true;
	}
	return false;
}
