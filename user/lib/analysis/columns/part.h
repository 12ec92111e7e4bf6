/* SPDX-License-Identifier: MIT */
/*
 * The memory of a part: growing columns. A row is begun in a table, and then each column that is
 * wanted gets its value. Room is a power of two, so that readers in other languages need few
 * types for it.
 */
#ifndef KB_LIB_ANALYSIS_COLUMNS_PART_H
#define KB_LIB_ANALYSIS_COLUMNS_PART_H

#include <stdatomic.h>

#include "analysis/columns/tables.h"
#include "format/wire.h"

struct kb_part_column {
	void *values;		/* NULL: not wanted, or no room yet */
	int64_t *offsets;	/* of text and lists */
	uint64_t nr, max;	/* text and lists: values, and room for them */
	size_t bytes, offset_bytes;	/* at values and at offsets */
	uint32_t size;		/* bytes of a value */
	bool wanted, ragged;	/* ragged: text or list */
};

struct kb_part_table {
	uint64_t nr, max;	/* rows, and room for them: always one more */
	uint64_t row_bytes;	/* of a row, without texts and lists */
	struct kb_part_column columns[KB_COLUMNS_MOST];
};

struct kb_columns_part {
	atomic_uint holders;
	bool failed;		/* there was no memory for something */
	uint64_t records, bytes;
	kb_columns_wanted wanted;
	struct kb_part_table tables[KB_COLUMN_TABLES];
};

/* A part without rows; NULL without memory. */
struct kb_columns_part *kb_columns_part_create(const kb_columns_wanted wanted);

/* Forget all rows, keep the memory. */
void kb_columns_part_clear(struct kb_columns_part *part);

/* Make room for one more row and the end of its texts and lists. False and `failed`: no memory. */
bool kb_columns_part_grow(struct kb_columns_part *part, struct kb_part_table *table);

/* Begin a row; false: there is no memory. */
static kb_always_inline bool kb_part_row(struct kb_columns_part *part, struct kb_part_table *table)
{
	if (kb_unlikely(table->nr + 1 >= table->max) && !kb_columns_part_grow(part, table))
		return false;
	table->nr++;
	part->bytes += table->row_bytes;
	return true;
}

/* Set a number of the row that was begun last, in the table at @part_table, if it is wanted. */
#define KB_PUT(part_table, table, column, value)						\
	KB_PUT_AT(part_table, KB_AT_##table##_##column, kb_type_##table##_##column, value)

/* The same by the number of the column. */
#define KB_PUT_AT(part_table, at, type, value)							\
do {												\
	type *values_ = (part_table)->columns[at].values;					\
												\
	if (values_)										\
		values_[(part_table)->nr - 1] = (type)(value);					\
} while (0)

/* Make room for @nr more values of a list or a text. False and `failed` without memory. */
bool kb_columns_part_widen(struct kb_columns_part *part, struct kb_part_column *column,
			   uint64_t nr);

/*
 * Room for @nr values of a list of that row, behind those that it has already. Each row calls this
 * for each of its lists, if only for 0 values. NULL: it is not wanted, or there is no memory.
 */
static kb_always_inline void *kb_part_room(struct kb_columns_part *part,
					   struct kb_part_table *table, unsigned int at,
					   uint64_t nr)
{
	struct kb_part_column *column = &table->columns[at];
	void *room;

	if (!column->wanted)
		return NULL;
	if (kb_unlikely(nr > column->max - column->nr || !column->values) &&
	    !kb_columns_part_widen(part, column, nr))
		return NULL;
	room = (char *)column->values + column->nr * column->size;
	column->nr += nr;
	column->offsets[table->nr] = (int64_t)column->nr;
	part->bytes += nr * column->size;
	return room;
}

/* Append to a text of that row. Broken UTF-8 becomes U+FFFD. */
void kb_columns_part_text(struct kb_columns_part *part, struct kb_part_table *table,
			  unsigned int at, const char *text, size_t length);

#define KB_PUT_TEXT(part, part_table, table, column, text, length)				\
	kb_columns_part_text(part, part_table, KB_AT_##table##_##column, text, length)

#endif
