// SPDX-License-Identifier: MIT
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/table.h"
#include "stats/blocks.h"

int kb_diff_table_init(struct kb_diff_table *table)
{
	struct kb_diff_place *root;

	*table = (struct kb_diff_table){ 0 };
	kb_table_init(&table->lines, sizeof(struct kb_diff_line), 4);
	kb_table_init(&table->places, sizeof(struct kb_diff_place), 3);
	root = kb_table_get(&table->places, (uint64_t[]){ UINT64_MAX, 0, 0 });
	if (!root)
		return -ENOMEM;
	root->name = root->image = "";
	return 0;
}

static void release_line(struct kb_diff_line *line)
{
	for (uint32_t i = 0; i < line->nr; i++)
		free(line->cells[i].blocks);
	free(line->cells);
}

void kb_diff_table_release(struct kb_diff_table *table)
{
	for (uint32_t i = 0; i < table->lines.nr; i++)
		release_line(kb_table_row(&table->lines, i));
	kb_table_release(&table->lines);
	kb_table_release(&table->places);
	tdestroy(table->texts, free);
}

static int compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

const char *kb_diff_table_text(struct kb_diff_table *table, const char *text, size_t length)
{
	char *copy = strndup(text, length);
	const char *const *found = copy ? tsearch(copy, &table->texts, compare) : NULL;

	if (!found || *found != copy)
		free(copy);
	return found ? *found : NULL;
}

static int add_cell(struct kb_diff_line *line, const struct kb_diff_cell *cell)
{
	uint32_t room = line->room ? 2 * line->room : 2;
	struct kb_diff_cell *cells;

	if (line->nr == line->room) {
		cells = reallocarray(line->cells, room, sizeof(*cells));
		if (!cells) {
			free(cell->blocks);
			return -ENOMEM;
		}
		line->cells = cells;
		line->room = room;
	}
	line->cells[line->nr++] = *cell;
	return 0;
}

/* Two rows of a capture may become one here, such as functions of one name in files of one name. */
static void add_up(struct kb_diff_cell *to, const struct kb_diff_cell *from, bool mean)
{
	double weight = to->weight + from->weight;

	if (mean && weight > 0)
		to->value = (to->value * to->weight + from->value * from->weight) / weight;
	else
		to->value += from->value;
	for (unsigned int i = 0; to->blocks && from->blocks && i < KB_BLOCKS_SLICES; i++)
		to->blocks[i] += from->blocks[i];
	if (!to->blocks)
		to->blocks = from->blocks;
	else
		free(from->blocks);
	to->variance += from->variance;
	to->weight = weight;
	to->events += from->events;
}

int kb_diff_table_put(struct kb_diff_table *table, const struct kb_diff_what *what,
		      const struct kb_diff_cell *cell)
{
	const uint64_t key[4] = {
		(uint64_t)what->measure | (uint64_t)what->by << 8 |
			(uint64_t)what->kernel << 16 | (uint64_t)what->node << 32,
		(uintptr_t)what->counter, (uintptr_t)what->name, (uintptr_t)what->image,
	};
	struct kb_diff_line *line = kb_table_get(&table->lines, key);

	if (!line) {
		free(cell->blocks);
		return -ENOMEM;
	}
	line->what = *what;
	if (line->nr && line->cells[line->nr - 1].capture == cell->capture) {
		add_up(&line->cells[line->nr - 1], cell, kb_diff_is_mean(what->measure));
		return 0;
	}
	return add_cell(line, cell);
}

void kb_diff_table_drop(struct kb_diff_table *table, enum kb_diff_by by)
{
	uint32_t nr = 0;

	kb_table_close(&table->lines);
	for (uint32_t i = 0; i < table->lines.nr; i++) {
		struct kb_diff_line *line = kb_table_row(&table->lines, i);

		if (line->what.by == by)
			release_line(line);
		else
			memmove(kb_table_row(&table->lines, nr++), line, sizeof(*line));
	}
	table->lines.nr = nr;
}

int64_t kb_diff_table_place(struct kb_diff_table *table, uint32_t parent, const char *name,
			    const char *image, bool kernel)
{
	const uint64_t key[3] = { (uint64_t)parent << 1 | kernel, (uintptr_t)name,
				  (uintptr_t)image };
	struct kb_diff_place *above, *place = kb_table_get(&table->places, key);

	if (!place)
		return -ENOMEM;
	above = kb_table_row(&table->places, parent);
	place->name = name;
	place->image = image;
	place->kernel = kernel;
	place->parent = parent;
	place->depth = above->depth + 1;
	return ((char *)place - table->places.rows) / table->places.row_size;
}
