// SPDX-License-Identifier: MIT
/*
 * There are many rows but few files: names are compared only for strings that were not seen
 * before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "sym/files/namesakes.h"

static int by_name(const void *left, const void *right)
{
	const struct kb_map *a = *(const struct kb_map *const *)left;
	const struct kb_map *b = *(const struct kb_map *const *)right;
	size_t shorter = a->file.length < b->file.length ? a->file.length : b->file.length;

	return strcmp(a->image, b->image) ?: memcmp(a->file.data, b->file.data, shorter) ?:
		(a->file.length > b->file.length) - (a->file.length < b->file.length);
}

/* Collect one row for each string, in the order of the table. */
static void collect(struct kb_namesakes *namesakes, const struct kb_header *header)
{
	uint8_t *seen = calloc(header->string_table_length / 8 + 1, 1);
	uint32_t i, room = 0;

	for (i = 0; seen && i < header->nr_maps; i++) {
		const struct kb_map *row = &header->maps[i];
		uint8_t *byte = &seen[row->image_ptr / 8], bit = 1U << row->image_ptr % 8;

		/* The name of a row with a file is inside the table. */
		if (!row->file.length || *byte & bit)
			continue;
		*byte |= bit;
		if (!KB_ARRAY_ROOM(namesakes->rows, room, namesakes->nr + 1))
			break;
		namesakes->rows[namesakes->nr++] = row;
	}
	free(seen);
}

static void make(struct kb_namesakes *namesakes, const struct kb_header *header)
{
	uint32_t i, kept = 0;

	namesakes->made = true;
	collect(namesakes, header);
	if (!namesakes->nr)
		return;
	qsort(namesakes->rows, namesakes->nr, sizeof(*namesakes->rows), by_name);
	/* The table may have equal strings. */
	for (i = 0; i < namesakes->nr; i++)
		if (!kept || by_name(&namesakes->rows[kept - 1], &namesakes->rows[i]))
			namesakes->rows[kept++] = namesakes->rows[i];
	namesakes->nr = kept;
}

uint32_t kb_namesakes_find(struct kb_namesakes *namesakes, const struct kb_header *header,
			   const char *name, const struct kb_map *const **rows)
{
	uint32_t low, count = 0;

	if (!namesakes->made && header)
		make(namesakes, header);
	low = KB_BISECT(i, 0, namesakes->nr, strcmp(namesakes->rows[i]->image, name) < 0);
	while (count < KB_NAMESAKES_MAX && low + count < namesakes->nr &&
	       strcmp(namesakes->rows[low + count]->image, name) == 0)
		count++;
	*rows = count ? namesakes->rows + low : NULL;
	return count;
}

void kb_namesakes_release(struct kb_namesakes *namesakes)
{
	free(namesakes->rows);
	*namesakes = (struct kb_namesakes) { 0 };
}
