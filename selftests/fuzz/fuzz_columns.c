// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the tables of columns: a capture with whatever in its header and records. Every
 * value with words has one, texts are UTF-8, offsets rise, references have a row, and small parts
 * have as many rows as the whole. The last byte, which stands behind the records of most captures,
 * chooses the size of parts.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/arrow.h>
#include <kbarman/columns.h>

#include "base/text/utf8.h"

#define TABLES	32

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_ragged(const struct kb_column_values *values, uint64_t rows,
			 enum kb_column_type type)
{
	must(values->offsets[0] == 0);
	for (uint64_t i = 0; i < rows; i++) {
		must(values->offsets[i] <= values->offsets[i + 1]);
		if (type == KB_COLUMN_TEXT) {
			size_t length = (size_t)(values->offsets[i + 1] - values->offsets[i]);

			must(kb_utf8_valid((const char *)values->values + values->offsets[i],
					   length) == length);
		}
	}
	must(!rows || (uint64_t)values->offsets[rows] == values->nr_values);
}

static void check_column(const struct kb_columns_part *part, uint32_t table, uint32_t at,
			 const struct kb_column *column)
{
	uint64_t rows = kb_columns_rows(part, table);
	struct kb_column_values values;

	must(kb_columns_values(part, table, at, &values));
	if (values.offsets)
		check_ragged(&values, rows, column->type);
	else
		must(values.nr_values == rows);
	for (uint64_t i = 0; i < rows && column->words; i++)
		must(((const uint8_t *)values.values)[i] < column->nr_words);
	for (uint64_t i = 0; i < rows && column->type == KB_COLUMN_BOOL; i++)
		must(((const uint8_t *)values.values)[i] <= 1);
}

/* Numbers of frames and handlers have had their rows. */
static void check_numbers(const struct kb_columns_part *part, const char *table, const char *column,
			  uint64_t known)
{
	struct kb_column_values values;
	uint32_t at;
	int found = kb_columns_find(table, &at, column);

	must(found >= 0 && kb_columns_values(part, (uint32_t)found, at, &values));
	for (uint64_t i = 0; i < values.nr_values; i++)
		must(((const uint32_t *)values.values)[i] < known);
}

static void check_arrow(struct kb_columns_part *part, uint32_t table)
{
	struct ArrowSchema schema;
	struct ArrowArray array;

	if (kb_arrow_part(part, table, &schema, &array))
		return;
	must(array.n_children == schema.n_children);
	schema.release(&schema);
	array.release(&array);
}

static void check_part(struct kb_columns_part *part, uint64_t rows[TABLES])
{
	uint32_t nr;
	const struct kb_column_table *tables = kb_columns_tables(&nr);

	must(nr <= TABLES);
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t j = 0; j < tables[i].nr_columns; j++)
			check_column(part, i, j, &tables[i].columns[j]);
		check_arrow(part, i);
		rows[i] += kb_columns_rows(part, i);
	}
	check_numbers(part, "samples", "frames", rows[kb_columns_find("functions", NULL, NULL)]);
	check_numbers(part, "switches", "frames", rows[kb_columns_find("functions", NULL, NULL)]);
	check_numbers(part, "interrupts", "handler",
		      rows[kb_columns_find("handlers", NULL, NULL)]);
}

/* All tables with all columns, in parts of @records; false: they could not be read. */
static bool read_all(struct kb_trace *trace, uint64_t records, uint64_t bytes,
		     uint64_t rows[TABLES])
{
	struct kb_columns_options options = { .size = sizeof(options) };
	uint32_t nr;
	const struct kb_column_table *tables = kb_columns_tables(&nr);
	struct kb_columns_part *part = NULL;
	struct kb_columns *columns;
	struct kb_error err;
	char text[1024] = "samples.frames switches.frames";

	for (uint32_t i = 0; i < nr; i++) {
		strncat(text, " ", sizeof(text) - strlen(text) - 1);
		strncat(text, tables[i].name, sizeof(text) - strlen(text) - 1);
	}
	options.tables = text;
	if (kb_columns_create(&columns, trace, &options, &err))
		return false;
	while (kb_columns_next(columns, records, bytes, &part, &err) > 0)
		check_part(part, rows);
	must(!part);
	kb_columns_destroy(columns);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* no image of this machine is read, whatever the capture calls for */
	const struct kb_symbol_options nothing = {
		.size = sizeof(nothing), .symfs = "/nonexistent",
	};
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &nothing };
	uint64_t whole[TABLES] = { 0 }, parts[TABLES] = { 0 };
	struct kb_trace *trace;
	struct kb_error err;

	if (!size || kb_trace_open_memory(&trace, data, size, &how, &err))
		return 0;
	if (read_all(trace, UINT64_MAX, UINT64_MAX, whole) &&
	    read_all(trace, data[size - 1] % 16 + 1, data[size - 1] * 16 + 64, parts))
		must(!memcmp(whole, parts, sizeof(whole)));
	kb_trace_close(trace);
	return 0;
}
