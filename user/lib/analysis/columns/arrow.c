// SPDX-License-Identifier: MIT
/*
 * Parts as Arrow. Each array holds the part by itself, because a reader may take a child out of its
 * parent and keep it longer. Source: "The Arrow C data interface" and "The Arrow C stream
 * interface" of Arrow's documentation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/arrow.h>

#include "analysis/columns/fill.h"

/* ---- schemas: their strings are constants ---- */

static void release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		struct ArrowSchema *child = schema->children[i];

		if (child && child->release)
			child->release(child);
		free(child);
	}
	free(schema->children);
	if (schema->dictionary && schema->dictionary->release)
		schema->dictionary->release(schema->dictionary);
	free(schema->dictionary);
	schema->release = NULL;
}

static void begin_schema(struct ArrowSchema *schema, const char *format, const char *name)
{
	*schema = (struct ArrowSchema){
		.format = format, .name = name, .release = release_schema,
	};
}

/* Room for @nr children. */
static int add_children(struct ArrowSchema *schema, uint32_t nr)
{
	schema->children = calloc(nr, sizeof(struct ArrowSchema *));
	if (!schema->children)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		schema->children[i] = calloc(1, sizeof(struct ArrowSchema));
		if (!schema->children[i])
			return -ENOMEM;
		schema->n_children++;
	}
	return 0;
}

static const char *format_of(enum kb_column_type type)
{
	switch (type) {
	case KB_COLUMN_U32:
		return "I";
	case KB_COLUMN_I32:
		return "i";
	case KB_COLUMN_U64:
		return "L";
	case KB_COLUMN_I64:
		return "l";
	case KB_COLUMN_F64:
		return "g";
	case KB_COLUMN_TEXT:
		return "U";
	case KB_COLUMN_LIST32:
	case KB_COLUMN_LIST64:
		return "+L";
	default:
		return "C";
	}
}

static bool is_list(enum kb_column_type type)
{
	return type == KB_COLUMN_LIST32 || type == KB_COLUMN_LIST64;
}

static int column_schema(struct ArrowSchema *schema, const struct kb_column *column)
{
	begin_schema(schema, format_of(column->type), column->name);
	if (is_list(column->type)) {
		if (add_children(schema, 1))
			return -ENOMEM;
		begin_schema(schema->children[0], column->type == KB_COLUMN_LIST64 ? "L" : "I",
			     "item");
	} else if (column->words) {
		schema->dictionary = calloc(1, sizeof(*schema->dictionary));
		if (!schema->dictionary)
			return -ENOMEM;
		begin_schema(schema->dictionary, "U", "");
	}
	return 0;
}

/* ---- arrays ---- */

/* What an array owns. */
struct owned {
	struct kb_columns_part *part;
	const void *buffers[3];
	int64_t *offsets;	/* of a dictionary: they and its bytes, else NULL */
};

static void release_array(struct ArrowArray *array)
{
	struct owned *owned = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++) {
		struct ArrowArray *child = array->children[i];

		if (child && child->release)
			child->release(child);
		free(child);
	}
	free(array->children);
	if (array->dictionary && array->dictionary->release)
		array->dictionary->release(array->dictionary);
	free(array->dictionary);
	kb_columns_part_free(owned->part);
	free(owned->offsets);
	free(owned);
	array->release = NULL;
}

/* @nr_buffers: the first one says which values are valid, and NULL that all are. */
static int begin_array(struct ArrowArray *array, struct kb_columns_part *part, uint64_t length,
		       int64_t nr_buffers)
{
	struct owned *owned = calloc(1, sizeof(*owned));

	if (!owned)
		return -ENOMEM;
	owned->part = kb_columns_part_hold(part);
	*array = (struct ArrowArray){
		.length = (int64_t)length, .n_buffers = nr_buffers, .buffers = owned->buffers,
		.release = release_array, .private_data = owned,
	};
	return 0;
}

static int add_child_arrays(struct ArrowArray *array, uint32_t nr)
{
	array->children = calloc(nr, sizeof(struct ArrowArray *));
	if (!array->children)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		array->children[i] = calloc(1, sizeof(struct ArrowArray));
		if (!array->children[i])
			return -ENOMEM;
		array->n_children++;
	}
	return 0;
}

/* The words of a column, one behind the other. */
static int dictionary(struct ArrowArray *array, struct kb_columns_part *part,
		      const struct kb_column *column)
{
	size_t bytes = 0, at = (column->nr_words + 1) * sizeof(int64_t);
	struct owned *owned;
	char *text;

	if (begin_array(array, part, column->nr_words, 3))
		return -ENOMEM;
	owned = array->private_data;
	for (uint32_t i = 0; i < column->nr_words; i++)
		bytes += strlen(column->words[i]);
	owned->offsets = malloc(at + bytes + 1);
	if (!owned->offsets)
		return -ENOMEM;
	text = (char *)owned->offsets + at;
	owned->offsets[0] = 0;
	for (uint32_t i = 0; i < column->nr_words; i++) {
		size_t length = strlen(column->words[i]);

		memcpy(text + owned->offsets[i], column->words[i], length);
		owned->offsets[i + 1] = owned->offsets[i] + (int64_t)length;
	}
	owned->buffers[1] = owned->offsets;
	owned->buffers[2] = text;
	return 0;
}

static int column_array(struct ArrowArray *array, struct kb_columns_part *part, uint64_t rows,
			const struct kb_column *column, const struct kb_column_values *values)
{
	static const uint64_t nothing;	/* where there are no values yet */
	const void *at = values->values ? values->values : &nothing;
	struct owned *owned;

	if (begin_array(array, part, rows, column->type == KB_COLUMN_TEXT ? 3 : 2))
		return -ENOMEM;
	owned = array->private_data;
	owned->buffers[1] = values->offsets ? (const void *)values->offsets : at;
	if (column->type == KB_COLUMN_TEXT)
		owned->buffers[2] = at;
	if (column->words) {
		array->dictionary = calloc(1, sizeof(*array->dictionary));
		return array->dictionary ? dictionary(array->dictionary, part, column) : -ENOMEM;
	}
	if (!is_list(column->type))
		return 0;
	if (add_child_arrays(array, 1) ||
	    begin_array(array->children[0], part, values->nr_values, 2))
		return -ENOMEM;
	owned = array->children[0]->private_data;
	owned->buffers[1] = at;
	return 0;
}

/* ---- tables ---- */

static uint32_t wanted_columns(const struct kb_columns_part *part, uint32_t table)
{
	struct kb_column_values values;
	uint32_t nr, wanted = 0;
	const struct kb_column_table *tables = kb_columns_tables(&nr);

	for (uint32_t i = 0; table < nr && i < tables[table].nr_columns; i++)
		wanted += kb_columns_values(part, table, i, &values);
	return wanted;
}

static int table_schema(const struct kb_columns_part *part, uint32_t table, uint32_t wanted,
			struct ArrowSchema *schema)
{
	struct kb_column_values values;
	uint32_t nr, at = 0;
	const struct kb_column_table *tables = kb_columns_tables(&nr);
	int ret;

	begin_schema(schema, "+s", tables[table].name);
	ret = add_children(schema, wanted);
	for (uint32_t i = 0; i < tables[table].nr_columns && at < wanted && !ret; i++)
		if (kb_columns_values(part, table, i, &values))
			ret = column_schema(schema->children[at++], &tables[table].columns[i]);
	if (ret)
		release_schema(schema);
	return ret;
}

static int table_array(struct kb_columns_part *part, uint32_t table, uint32_t wanted,
		       struct ArrowArray *array)
{
	uint64_t rows = kb_columns_rows(part, table);
	struct kb_column_values values;
	uint32_t nr, at = 0;
	const struct kb_column_table *tables = kb_columns_tables(&nr);
	int ret = begin_array(array, part, rows, 1);

	if (ret)
		return ret;
	ret = add_child_arrays(array, wanted);
	for (uint32_t i = 0; i < tables[table].nr_columns && at < wanted && !ret; i++)
		if (kb_columns_values(part, table, i, &values))
			ret = column_array(array->children[at++], part, rows,
					   &tables[table].columns[i], &values);
	if (ret)
		release_array(array);
	return ret;
}

int kb_arrow_part(struct kb_columns_part *part, uint32_t table, struct ArrowSchema *schema,
		  struct ArrowArray *array)
{
	uint32_t wanted = wanted_columns(part, table);
	int ret;

	if (!wanted)
		return -ENOENT;
	ret = schema ? table_schema(part, table, wanted, schema) : 0;
	if (ret || !array)
		return ret;
	ret = table_array(part, table, wanted, array);
	if (ret && schema)
		release_schema(schema);
	return ret;
}

/* ---- streams ---- */

struct batches {
	struct kb_columns_part *part;	/* the only batch, or one without rows: for the schema */
	struct kb_columns *columns;	/* where batches come from; NULL: there is one */
	struct kb_trace *trace;
	uint64_t records, bytes;	/* of each */
	uint32_t table;
	bool ended;
	struct kb_error err;
};

/* Streams return positive numbers of errors. */
static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct batches *batches = stream->private_data;
	int ret = kb_arrow_part(batches->part, batches->table, out, NULL);

	if (ret)
		kb_error_set(&batches->err, ret, KB_NO_OFFSET, "out of memory");
	return -ret;
}

static int give_part(struct batches *batches, struct kb_columns_part *part, struct ArrowArray *out)
{
	int ret = kb_arrow_part(part, batches->table, NULL, out);

	if (ret)
		kb_error_set(&batches->err, ret, KB_NO_OFFSET, "out of memory");
	return -ret;
}

/* The next part that has rows of the table. */
static int next_part(struct batches *batches, struct ArrowArray *out)
{
	struct kb_columns_part *part = NULL;
	int ret;

	do
		ret = kb_columns_next(batches->columns, batches->records, batches->bytes, &part,
				      &batches->err);
	while (ret > 0 && !kb_columns_rows(part, batches->table));
	if (ret <= 0) {
		batches->ended = true;
		return -ret;
	}
	ret = give_part(batches, part, out);
	kb_columns_part_free(part);
	return ret;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct batches *batches = stream->private_data;

	out->release = NULL;	/* the end */
	if (batches->ended)
		return 0;
	if (batches->columns)
		return next_part(batches, out);
	batches->ended = true;
	return give_part(batches, batches->part, out);
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
	struct batches *batches = stream->private_data;

	return batches->err.code ? kb_error_text(&batches->err) : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
	struct batches *batches = stream->private_data;

	kb_columns_part_free(batches->part);
	kb_columns_destroy(batches->columns);
	kb_trace_close(batches->trace);
	free(batches);
	stream->release = NULL;
}

/* Takes over the part. */
static int begin_stream(struct ArrowArrayStream *stream, struct kb_columns_part *part,
			uint32_t table, struct batches **out)
{
	struct batches *batches = calloc(1, sizeof(*batches));
	int ret = !part || !batches ? -ENOMEM : wanted_columns(part, table) ? 0 : -ENOENT;

	if (ret) {
		kb_columns_part_free(part);
		free(batches);
		return ret;
	}
	batches->part = part;
	batches->table = table;
	*stream = (struct ArrowArrayStream){
		.get_schema = stream_schema, .get_next = stream_next,
		.get_last_error = stream_error, .release = release_stream,
		.private_data = batches,
	};
	*out = batches;
	return 0;
}

int kb_arrow_stream(struct kb_columns_part *part, uint32_t table, struct ArrowArrayStream *stream)
{
	struct batches *batches;

	return begin_stream(stream, kb_columns_part_hold(part), table, &batches);
}

int kb_arrow_reader(struct kb_columns *columns, struct kb_trace *trace, uint32_t table,
		    uint64_t records, uint64_t bytes, struct ArrowArrayStream *stream)
{
	struct batches *batches;
	int ret = begin_stream(stream, kb_columns_part_create(columns->wanted), table, &batches);

	if (ret)
		return ret;
	batches->columns = columns;
	batches->trace = trace;
	batches->records = records;
	batches->bytes = bytes;
	return 0;
}
