// SPDX-License-Identifier: MIT
/* See part.h. */
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/part.h"
#include "base/large.h"
#include "base/text/utf8.h"

#define FIRST_ROWS	16U
#define FIRST_VALUES	64U

struct kb_columns_part *kb_columns_part_create(const kb_columns_wanted wanted)
{
	struct kb_columns_part *part = calloc(1, sizeof(*part));
	uint32_t nr;
	const struct kb_column_table *tables = kb_columns_tables(&nr);

	if (!part)
		return NULL;
	atomic_init(&part->holders, 1);
	memcpy(part->wanted, wanted, sizeof(part->wanted));
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t j = 0; j < tables[i].nr_columns; j++) {
			struct kb_part_column *column = &part->tables[i].columns[j];
			enum kb_column_type type = tables[i].columns[j].type;

			column->wanted = wanted[i] >> j & 1;
			column->ragged = type == KB_COLUMN_TEXT || type == KB_COLUMN_LIST32 ||
					 type == KB_COLUMN_LIST64;
			column->size = type == KB_COLUMN_U8 || type == KB_COLUMN_BOOL ||
				       type == KB_COLUMN_TEXT ? 1 :
				       type == KB_COLUMN_U32 || type == KB_COLUMN_I32 ||
				       type == KB_COLUMN_LIST32 ? 4 : 8;
			if (column->wanted)
				part->tables[i].row_bytes += column->ragged ? sizeof(int64_t) :
									       column->size;
		}
	}
	return part;
}

struct kb_columns_part *kb_columns_part_hold(struct kb_columns_part *part)
{
	atomic_fetch_add_explicit(&part->holders, 1, memory_order_relaxed);
	return part;
}

void kb_columns_part_free(struct kb_columns_part *part)
{
	if (!part || atomic_fetch_sub_explicit(&part->holders, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned int i = 0; i < KB_COLUMN_TABLES; i++) {
		for (unsigned int j = 0; j < KB_COLUMNS_MOST; j++) {
			struct kb_part_column *column = &part->tables[i].columns[j];

			kb_large_free(column->values, column->bytes);
			kb_large_free(column->offsets, column->offset_bytes);
		}
	}
	free(part);
}

void kb_columns_part_clear(struct kb_columns_part *part)
{
	for (unsigned int i = 0; i < KB_COLUMN_TABLES; i++) {
		part->tables[i].nr = 0;
		for (unsigned int j = 0; j < KB_COLUMNS_MOST; j++)
			part->tables[i].columns[j].nr = 0;
	}
	part->records = part->bytes = 0;
	part->failed = false;
}

/* Room for @max values of @size bytes at *@values, which has *@bytes: fewer than that. */
static bool make_room(void **values, size_t *bytes, uint64_t max, uint32_t size)
{
	void *grown = max > SIZE_MAX / 2 / size ? NULL :
		      kb_large_grow(*values, *bytes, max * size);

	if (!grown)
		return false;
	*values = grown;
	*bytes = max * size;
	return true;
}

static bool grow_column(struct kb_part_column *column, uint64_t rows)
{
	void *offsets = column->offsets;
	bool first = !offsets;

	if (!column->wanted)
		return true;
	if (!column->ragged)
		return make_room(&column->values, &column->bytes, rows, column->size);
	if (!make_room(&offsets, &column->offset_bytes, rows, sizeof(*column->offsets)))
		return false;
	column->offsets = offsets;
	if (first)
		column->offsets[0] = 0;
	return true;
}

bool kb_columns_part_grow(struct kb_columns_part *part, struct kb_part_table *table)
{
	uint64_t rows = table->max ? table->max * 2 : FIRST_ROWS;

	for (unsigned int j = 0; j < KB_COLUMNS_MOST; j++) {
		if (!grow_column(&table->columns[j], rows)) {
			part->failed = true;
			return false;
		}
	}
	table->max = rows;
	return true;
}

bool kb_columns_part_widen(struct kb_columns_part *part, struct kb_part_column *column,
			   uint64_t nr)
{
	uint64_t max = column->max ? column->max : FIRST_VALUES;

	while (max - column->nr < nr && max < SIZE_MAX / 2)
		max *= 2;
	if (max - column->nr < nr || !make_room(&column->values, &column->bytes, max, column->size)) {
		part->failed = true;
		return false;
	}
	column->max = max;
	return true;
}

void kb_columns_part_text(struct kb_columns_part *part, struct kb_part_table *table,
			  unsigned int at, const char *text, size_t length)
{
	struct kb_part_column *column = &table->columns[at];
	size_t good = kb_utf8_valid(text, length), clean;
	char *room;

	room = kb_part_room(part, table, at, good);
	if (room && good)
		memcpy(room, text, good);
	if (!column->wanted || good == length)
		return;
	room = kb_part_room(part, table, at, KB_UTF8_GROWTH * (length - good));
	if (!room)
		return;
	clean = kb_utf8_clean(room, text + good, length - good);
	column->nr -= KB_UTF8_GROWTH * (length - good) - clean;
	column->offsets[table->nr] = (int64_t)column->nr;
}

/* ---- what is public ---- */

uint64_t kb_columns_records(const struct kb_columns_part *part)
{
	return part->records;
}

uint64_t kb_columns_rows(const struct kb_columns_part *part, uint32_t table)
{
	return table < KB_COLUMN_TABLES ? part->tables[table].nr : 0;
}

bool kb_columns_values(const struct kb_columns_part *part, uint32_t table, uint32_t column,
		       struct kb_column_values *out)
{
	static const int64_t nothing[1];
	const struct kb_part_column *found;

	if (table >= KB_COLUMN_TABLES || column >= KB_COLUMNS_MOST)
		return false;
	found = &part->tables[table].columns[column];
	if (!found->wanted)
		return false;
	*out = (struct kb_column_values){
		.values = found->values,
		.nr_values = found->ragged ? found->nr : part->tables[table].nr,
		.room = found->bytes,
	};
	if (found->ragged) {
		out->offsets = found->offsets ? found->offsets : nothing;
		out->offsets_room = found->offsets ? found->offset_bytes : sizeof(nothing);
	}
	return true;
}
