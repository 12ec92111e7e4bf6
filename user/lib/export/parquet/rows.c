// SPDX-License-Identifier: MIT
/* See rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/parquet/rows.h"

static size_t size_of(enum kb_parquet_type type)
{
	return type == KB_PARQUET_BOOL || type == KB_PARQUET_TEXT ? 1 :
	       type == KB_PARQUET_NAME ? 4 : 8;
}

static bool has_ends(const struct kb_rows_column *column)
{
	return column->is.list || column->is.type == KB_PARQUET_TEXT;
}

void kb_rows_init(struct kb_rows *rows, const struct kb_parquet_table *table)
{
	*rows = (struct kb_rows) { 0 };
	while (rows->nr_columns < KB_PARQUET_COLUMNS && table->columns[rows->nr_columns].name) {
		rows->columns[rows->nr_columns].is =
			kb_parquet_column_of(&table->columns[rows->nr_columns]);
		rows->nr_columns++;
	}
}

void kb_rows_release(struct kb_rows *rows)
{
	for (uint32_t i = 0; i < rows->nr_columns; i++) {
		struct kb_rows_column *column = &rows->columns[i];

		free(column->values);
		free(column->missing);
		free(column->ends);
		*column = (struct kb_rows_column) { .is = column->is };
	}
	rows->nr = 0;
}

uint64_t kb_rows_bytes(const struct kb_rows *rows)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < rows->nr_columns; i++) {
		const struct kb_rows_column *column = &rows->columns[i];

		bytes += column->nr * size_of(column->is.type) + rows->nr * column->is.optional +
			 rows->nr * 8 * has_ends(column);
	}
	return bytes;
}

uint64_t kb_rows_memory(const struct kb_rows *rows)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < rows->nr_columns; i++)
		bytes += rows->columns[i].max + rows->columns[i].max_missing +
			 rows->columns[i].max_ends * 8;
	return bytes;
}

/* ---- filling ---- */

void *kb_rows_room(struct kb_rows *rows, uint32_t at, size_t nr)
{
	struct kb_rows_column *column = &rows->columns[at];
	size_t size = size_of(column->is.type), begin = column->nr * size;

	if (!KB_ARRAY_ROOM(column->values, column->max, begin + nr * size)) {
		rows->no_memory = true;
		return NULL;
	}
	column->nr += nr;
	return column->values ? column->values + begin : NULL;
}

uint8_t *kb_rows_missing(struct kb_rows *rows, uint32_t at, size_t nr)
{
	struct kb_rows_column *column = &rows->columns[at];

	if (!KB_ARRAY_ROOM(column->missing, column->max_missing, rows->nr + nr)) {
		rows->no_memory = true;
		return NULL;
	}
	return memset(column->missing + rows->nr, 0, nr);
}

uint64_t *kb_rows_ends(struct kb_rows *rows, uint32_t at, size_t nr)
{
	struct kb_rows_column *column = &rows->columns[at];

	if (!KB_ARRAY_ROOM(column->ends, column->max_ends, rows->nr + nr)) {
		rows->no_memory = true;
		return NULL;
	}
	return column->ends + rows->nr;
}

/* ---- sorting ---- */

struct place {
	int64_t ns;
	uint64_t row;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static bool is_sorted(const int64_t *ns, uint64_t nr)
{
	for (uint64_t i = 1; i < nr; i++)
		if (ns[i] < ns[i - 1])
			return false;
	return true;
}

static void order_values(struct kb_rows_column *column, const struct place *order, uint64_t nr,
			 uint8_t *to)
{
	size_t size = size_of(column->is.type);

	for (uint64_t i = 0; i < nr; i++)
		memcpy(to + i * size, column->values + order[i].row * size, size);
	memcpy(column->values, to, nr * size);
}

static void order_ragged(struct kb_rows_column *column, const struct place *order, uint64_t nr,
			 uint8_t *to, uint64_t *ends)
{
	size_t size = size_of(column->is.type);
	uint64_t at = 0;

	for (uint64_t i = 0; i < nr; i++) {
		uint64_t row = order[i].row, begin = row ? column->ends[row - 1] : 0;
		uint64_t length = column->ends[row] - begin;

		memcpy(to + at * size, column->values + begin * size, length * size);
		at += length;
		ends[i] = at;
	}
	memcpy(column->values, to, at * size);
	memcpy(column->ends, ends, nr * sizeof(*ends));
}

static int order_column(struct kb_rows_column *column, const struct place *order, uint64_t nr)
{
	size_t bytes = column->nr * size_of(column->is.type);
	uint8_t *to = malloc(bytes > nr ? bytes : nr);
	uint64_t *ends = has_ends(column) ? malloc(nr * sizeof(*ends)) : NULL;
	int ret = 0;

	if (!to || (has_ends(column) && !ends))
		ret = -ENOMEM;
	else if (!column->values)
		ret = 0;	/* of lists, all of which are empty */
	else if (has_ends(column))
		order_ragged(column, order, nr, to, ends);
	else
		order_values(column, order, nr, to);
	if (!ret && column->is.optional) {
		for (uint64_t i = 0; i < nr; i++)
			to[i] = column->missing[order[i].row];
		memcpy(column->missing, to, nr);
	}
	free(to);
	free(ends);
	return ret;
}

static int sort(struct kb_rows *rows)
{
	const int64_t *ns = (const int64_t *)rows->columns[0].values;
	struct place *order;
	int ret = 0;

	if (is_sorted(ns, rows->nr))
		return 0;
	order = malloc(rows->nr * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint64_t i = 0; i < rows->nr; i++)
		order[i] = (struct place) { ns[i], i };
	qsort(order, rows->nr, sizeof(*order), compare_places);
	for (uint32_t i = 0; i < rows->nr_columns && !ret; i++)
		ret = order_column(&rows->columns[i], order, rows->nr);
	free(order);
	return ret;
}

int kb_rows_write(struct kb_rows *rows, struct kb_parquet *to, const struct kb_text *names,
		  uint32_t nr_names)
{
	struct kb_parquet_values values[KB_PARQUET_COLUMNS];
	int ret = rows->no_memory ? -ENOMEM : 0;

	if (ret || !rows->nr)
		return ret;
	ret = sort(rows);
	for (uint32_t i = 0; i < rows->nr_columns; i++)
		values[i] = (struct kb_parquet_values) {
			.values = rows->columns[i].values ? (void *)rows->columns[i].values : "",
			.missing = rows->columns[i].missing, .ends = rows->columns[i].ends,
		};
	if (!ret)
		ret = kb_parquet_group(to, rows->nr, values, 0, names, nr_names);
	for (uint32_t i = 0; i < rows->nr_columns; i++)
		rows->columns[i].nr = 0;
	rows->nr = 0;
	return ret;
}

