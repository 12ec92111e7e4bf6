// SPDX-License-Identifier: MIT
/* See fill.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/parquet/fill.h"

#define NOT_VALID	UINT64_MAX	/* of a counter */

/* ---- names ---- */

void kb_parquet_fill_init(struct kb_parquet_fill *fill)
{
	*fill = (struct kb_parquet_fill) { 0 };
	kb_name_pool_init(&fill->pool);
	kb_task_names_init(&fill->tasks);
}

void kb_parquet_fill_release(struct kb_parquet_fill *fill)
{
	struct kb_numbered *const all[] = {
		&fill->symbols, &fill->images, &fill->labels, &fill->handlers, &fill->series,
		&fill->events, &fill->first_events,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->names);
	kb_name_pool_release(&fill->pool);
	kb_task_names_release(&fill->tasks);
}

static uint32_t add_name(struct kb_parquet_fill *fill, struct kb_text text)
{
	uint32_t name = kb_name_pool_add(&fill->pool, text);

	fill->no_memory |= name == KB_NAME_NONE;
	return name;
}

static uint32_t name_of(const struct kb_numbered *names, uint32_t number)
{
	return number < names->nr ? names->names[number] : KB_NAME_NONE;
}

static void set_name(struct kb_parquet_fill *fill, struct kb_numbered *names, uint32_t number,
		     uint32_t name)
{
	if (!KB_ARRAY_ROOM(names->names, names->max, number + 1U)) {
		fill->no_memory = true;
		return;
	}
	while (names->nr <= number)
		names->names[names->nr++] = KB_NAME_NONE;
	names->names[number] = name;
}

static void append_name(struct kb_parquet_fill *fill, struct kb_numbered *names, uint32_t name)
{
	set_name(fill, names, names->nr, name);
}

static uint64_t values_of(const struct kb_columns_part *part, const char *table, const char *column,
			  struct kb_column_values *values)
{
	uint32_t at;
	int number = kb_columns_find(table, &at, column);

	if (number < 0 || !kb_columns_values(part, (uint32_t)number, at, values))
		return 0;
	return kb_columns_rows(part, (uint32_t)number);
}

static struct kb_text text_at(const struct kb_column_values *values, uint64_t row)
{
	const char *texts = values->values ? values->values : "";	/* all may be empty */

	return (struct kb_text) {
		texts + values->offsets[row],
		(size_t)(values->offsets[row + 1] - values->offsets[row]),
	};
}

/* What stands in a stack for a function without a name: its file in brackets. */
static uint32_t label_of(struct kb_parquet_fill *fill, struct kb_text image)
{
	const char *slash = memrchr(image.data, '/', image.length);
	size_t front = slash ? (size_t)(slash + 1 - image.data) : 0;
	char label[256];

	if (!image.length)
		return add_name(fill, kb_text("[unknown]"));
	if (*image.data == '[')
		return add_name(fill, image);
	snprintf(label, sizeof(label), "[%.*s]", (int)(image.length - front), image.data + front);
	return add_name(fill, kb_text(label));
}

static bool is_text(struct kb_text text, const char *other)
{
	return text.length == strlen(other) && memcmp(text.data, other, text.length) == 0;
}

static void take_functions(struct kb_parquet_fill *fill, const struct kb_columns_part *part)
{
	struct kb_column_values symbols, images;
	uint64_t nr = values_of(part, "functions", "symbol", &symbols);

	values_of(part, "functions", "image", &images);
	for (uint64_t i = 0; i < nr; i++) {
		struct kb_text symbol = text_at(&symbols, i), image = text_at(&images, i);
		uint32_t name = symbol.length ? add_name(fill, symbol) : KB_NAME_NONE;

		append_name(fill, &fill->symbols, name);
		append_name(fill, &fill->labels, symbol.length ? name : label_of(fill, image));
		append_name(fill, &fill->images, is_text(image, "[unknown]") ? KB_NAME_NONE :
			    add_name(fill, image));
	}
}

static void take_tasks(struct kb_parquet_fill *fill, const struct kb_columns_part *part)
{
	struct kb_column_values tids, pids, names, since;
	uint64_t nr = values_of(part, "tasks", "tid", &tids);

	values_of(part, "tasks", "pid", &pids);
	values_of(part, "tasks", "task", &names);
	values_of(part, "tasks", "since_ns", &since);
	for (uint64_t i = 0; i < nr; i++) {
		const struct kb_task_at row = {
			.tid = ((const uint32_t *)tids.values)[i],
			.pid = ((const uint32_t *)pids.values)[i],
			.since = ((const int64_t *)since.values)[i],
			.name = add_name(fill, text_at(&names, i)),
		};

		fill->no_memory |= kb_task_names_add(&fill->tasks, row) < 0;
	}
}

static void take_events(struct kb_parquet_fill *fill, const struct kb_columns_part *part)
{
	struct kb_column_values cpus, places, ids, names;
	uint64_t nr = values_of(part, "events", "cpu", &cpus);

	values_of(part, "events", "place", &places);
	values_of(part, "events", "id", &ids);
	values_of(part, "events", "event", &names);
	for (uint64_t i = 0; i < nr; i++) {
		uint32_t name = add_name(fill, text_at(&names, i));

		set_name(fill, &fill->events, ((const uint32_t *)ids.values)[i], name);
		if (!((const uint32_t *)places.values)[i])
			set_name(fill, &fill->first_events, ((const uint32_t *)cpus.values)[i], name);
	}
}

static void take_texts(struct kb_parquet_fill *fill, const struct kb_columns_part *part,
		       const char *table, const char *column, struct kb_numbered *to)
{
	struct kb_column_values names;
	uint64_t nr = values_of(part, table, column, &names);

	for (uint64_t i = 0; i < nr; i++)
		append_name(fill, to, add_name(fill, text_at(&names, i)));
}

void kb_parquet_fill_names(struct kb_parquet_fill *fill, const struct kb_columns_part *part)
{
	take_tasks(fill, part);
	take_functions(fill, part);
	take_events(fill, part);
	take_texts(fill, part, "handlers", "handler", &fill->handlers);
	take_texts(fill, part, "series_names", "series", &fill->series);
}

/* ---- where columns come from ---- */

bool kb_parquet_fill_from(struct kb_filled_from *from, const struct kb_parquet_table *table,
			  const struct kb_columns_part *part)
{
	int number = kb_columns_find(table->from, NULL, NULL);
	const struct kb_column_table *known = kb_columns_tables(&(uint32_t) { 0 });
	uint32_t at;

	*from = (struct kb_filled_from) { .table = (uint32_t)number };
	from->rows = number < 0 ? 0 : kb_columns_rows(part, from->table);
	for (uint32_t i = 0; from->rows && i < KB_PARQUET_COLUMNS && table->columns[i].name; i++) {
		const struct kb_parquet_source *source = &table->columns[i];

		if (source->from && kb_columns_find(table->from, &at, source->from) >= 0 &&
		    kb_columns_values(part, from->table, at, &from->values[i]))
			from->kinds[i] = &known[number].columns[at];
		if (source->unless && kb_columns_find(table->from, &at, source->unless) >= 0)
			kb_columns_values(part, from->table, at, &from->unless[i]);
	}
	return from->rows;
}

static int64_t add_saturated(int64_t one, int64_t other)
{
	int64_t sum;

	if (!__builtin_add_overflow(one, other, &sum))
		return sum;
	return one < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t wall_time(const struct kb_parquet_fill *fill, int64_t ns)
{
	return add_saturated(ns, fill->unix_base);
}

static int64_t time_at(const struct kb_filled_from *from, uint32_t column, uint64_t row)
{
	return ((const int64_t *)from->values[column].values)[row];
}

int64_t kb_parquet_fill_time(const struct kb_parquet_fill *fill, const struct kb_parquet_table *table,
			     const struct kb_filled_from *from, uint64_t row)
{
	return wall_time(fill, table->columns[0].how == KB_FROM_START ? fill->start :
			 time_at(from, 0, row));
}

/* A number of any type. Those above what the file can have become the largest one. */
static int64_t number_at(const struct kb_filled_from *from, uint32_t column, uint64_t row)
{
	const void *values = from->values[column].values;
	uint64_t number;

	switch (from->kinds[column]->type) {
	case KB_COLUMN_BOOL:
	case KB_COLUMN_U8:
		return ((const uint8_t *)values)[row];
	case KB_COLUMN_U32:
		return ((const uint32_t *)values)[row];
	case KB_COLUMN_I32:
		return ((const int32_t *)values)[row];
	case KB_COLUMN_I64:
		return ((const int64_t *)values)[row];
	case KB_COLUMN_U64:
		number = ((const uint64_t *)values)[row];
		return number == NOT_VALID ? -1 : number > INT64_MAX ? INT64_MAX : (int64_t)number;
	default:
		return 0;
	}
}

/* ---- columns of rows ---- */

/* The rows to fill, and where. */
struct filling {
	struct kb_parquet_fill *fill;
	const struct kb_parquet_source *source;
	const struct kb_filled_from *from;
	struct kb_rows *rows;
	uint32_t at;		/* the column */
	uint64_t row, nr;
	uint8_t *missing;	/* of those rows; NULL: none may be missing */
};

static void miss(const struct filling *f, uint64_t i)
{
	if (f->missing)
		f->missing[i] = 1;
}

static void fill_numbers(const struct filling *f, int64_t *to)
{
	for (uint64_t i = 0; i < f->nr; i++) {
		to[i] = number_at(f->from, f->at, f->row + i);
		if (f->source->none && to[i] == f->source->none)
			miss(f, i);
	}
}

static void fill_times(const struct filling *f, int64_t *to)
{
	for (uint64_t i = 0; i < f->nr; i++)
		to[i] = wall_time(f->fill, time_at(f->from, f->at, f->row + i));
}

static int64_t length(int64_t begin, int64_t end)
{
	uint64_t ns = end < begin ? 0 : (uint64_t)end - (uint64_t)begin;

	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void fill_same(const struct filling *f, int64_t *to, int64_t value)
{
	for (uint64_t i = 0; i < f->nr; i++)
		to[i] = value;
}

/* The task of a row, as it is called then. */
static struct kb_task_at task_at(const struct filling *f, uint64_t row)
{
	const uint32_t *tids = f->from->values[f->at].values;
	int64_t at = time_at(f->from, 0, row);

	if (f->source->at_end)
		at = add_saturated(at, number_at(f->from, 1, row));
	return kb_task_names_find(&f->fill->tasks, &f->fill->pool, tids[row], at);
}

static void fill_pids(const struct filling *f, int64_t *to)
{
	for (uint64_t i = f->row; i < f->row + f->nr; i++)
		*to++ = task_at(f, i).pid;
}

/* The first numbers of lists. */
static void fill_first(const struct filling *f, int64_t *to)
{
	const struct kb_column_values *values = &f->from->values[f->at];
	const uint64_t *numbers = values->values;

	for (uint64_t i = 0; i < f->nr; i++) {
		int64_t at = values->offsets[f->row + i];
		bool known = at < values->offsets[f->row + i + 1] && numbers[at] != NOT_VALID;

		if (!known)
			miss(f, i);
		to[i] = !known ? 0 : numbers[at] > INT64_MAX ? INT64_MAX : (int64_t)numbers[at];
	}
}

static void fill_waits(const struct filling *f, int64_t *to)
{
	for (uint64_t i = 0; i < f->nr; i++) {
		to[i] = f->fill->waits ? f->fill->waits[f->row + i] : -1;
		if (to[i] < 0)
			miss(f, i);
	}
}

static void fill_integers(const struct filling *f, int64_t *to)
{
	const struct kb_parquet_fill *fill = f->fill;

	switch (f->source->how) {
	case KB_FROM_TIME:
		fill_times(f, to);
		break;
	case KB_FROM_PID:
		fill_pids(f, to);
		break;
	case KB_FROM_FIRST:
		fill_first(f, to);
		break;
	case KB_FROM_WAIT:
		fill_waits(f, to);
		break;
	case KB_FROM_START:
		fill_same(f, to, wall_time(fill, fill->start));
		break;
	case KB_FROM_LENGTH:
		fill_same(f, to, length(fill->start, fill->end));
		break;
	case KB_FROM_RECORDS:
		fill_same(f, to, (int64_t)fill->records);
		break;
	default:
		fill_numbers(f, to);
	}
}

/* The name of a number of that kind; KB_NAME_NONE: it has none. */
static uint32_t find_name(const struct filling *f, uint64_t row)
{
	struct kb_parquet_fill *fill = f->fill;
	const struct kb_column_values *values = &f->from->values[f->at];
	uint32_t number;

	switch (f->source->how) {
	case KB_FROM_TEXT:
		return add_name(fill, text_at(values, row));
	case KB_FROM_SYMBOL:
	case KB_FROM_IMAGE:
		if (values->offsets[row] == values->offsets[row + 1])
			return KB_NAME_NONE;
		number = ((const uint32_t *)values->values)[values->offsets[row]];
		return name_of(f->source->how == KB_FROM_SYMBOL ? &fill->symbols : &fill->images,
			       number);
	default:
		break;
	}
	number = ((const uint32_t *)values->values)[row];
	switch (f->source->how) {
	case KB_FROM_TASK:
		return task_at(f, row).name;
	case KB_FROM_EVENT:
		return name_of(&fill->events, number);
	case KB_FROM_FIRST_EVENT:
		return name_of(&fill->first_events, number);
	case KB_FROM_SERIES:
		return name_of(&fill->series, number);
	case KB_FROM_HANDLER:
		return name_of(&fill->handlers, number);
	default:
		return KB_NAME_NONE;
	}
}

static void fill_words(const struct filling *f, uint32_t *to)
{
	const struct kb_column *kind = f->from->kinds[f->at];
	const uint8_t *values = f->from->values[f->at].values;
	uint32_t names[256];

	for (uint32_t i = 0; i < 256; i++)
		names[i] = KB_NAME_NONE;
	for (uint64_t i = 0; i < f->nr; i++) {
		uint8_t value = values[f->row + i];

		if (names[value] == KB_NAME_NONE)
			names[value] = add_name(f->fill, kb_text(value < kind->nr_words ?
								 kind->words[value] : ""));
		to[i] = names[value];
	}
}

static void fill_names(const struct filling *f, uint32_t *to)
{
	uint32_t unnamed = add_name(f->fill, kb_text(""));

	if (f->source->how == KB_FROM_WORD) {
		fill_words(f, to);
		return;
	}
	for (uint64_t i = 0; i < f->nr; i++) {
		to[i] = f->source->how == KB_FROM_CAPTURE ? f->fill->capture :
			find_name(f, f->row + i);
		if (to[i] != KB_NAME_NONE)
			continue;
		to[i] = unnamed;
		if (f->source->optional)
			miss(f, i);
	}
}

/* Where the lists or texts of the rows stand, from *@begin to *@end, and room for them. */
static void *take_ends(const struct filling *f, int64_t *begin, int64_t *end)
{
	const int64_t *offsets = f->from->values[f->at].offsets + f->row;
	uint64_t before = f->rows->columns[f->at].nr;
	uint64_t *ends = kb_rows_ends(f->rows, f->at, f->nr);

	*begin = offsets[0];
	*end = offsets[f->nr];
	for (uint64_t i = 0; ends && i < f->nr; i++)
		ends[i] = before + (uint64_t)(offsets[i + 1] - *begin);
	return kb_rows_room(f->rows, f->at, (size_t)(*end - *begin));
}

static void fill_stacks(const struct filling *f)
{
	const uint32_t *frames = f->from->values[f->at].values;
	int64_t begin, end;
	uint32_t *to = take_ends(f, &begin, &end);

	for (int64_t i = begin; to && i < end; i++) {
		uint32_t name = name_of(&f->fill->labels, frames[i]);

		*to++ = name == KB_NAME_NONE ? add_name(f->fill, kb_text("[unknown]")) : name;
	}
}

static void fill_texts(const struct filling *f)
{
	const char *texts = f->from->values[f->at].values;
	int64_t begin, end;
	char *to = take_ends(f, &begin, &end);

	if (to && end > begin)
		memcpy(to, texts + begin, (size_t)(end - begin));
}

static void fill_column(const struct filling *f)
{
	const struct kb_column_values *unless = &f->from->unless[f->at];
	void *to;

	if (f->source->how == KB_FROM_STACK) {
		fill_stacks(f);
		return;
	}
	if (f->source->type == KB_PARQUET_TEXT) {
		fill_texts(f);
		return;
	}
	to = kb_rows_room(f->rows, f->at, f->nr);
	if (!to)
		return;
	if (f->source->type == KB_PARQUET_NAME)
		fill_names(f, to);
	else if (f->source->type == KB_PARQUET_I64)
		fill_integers(f, to);
	else if (f->source->type == KB_PARQUET_BOOL)
		memcpy(to, (const uint8_t *)f->from->values[f->at].values + f->row, f->nr);
	else	/* the same 8 bytes */
		memcpy(to, (const uint64_t *)f->from->values[f->at].values + f->row, f->nr * 8);
	for (uint64_t i = 0; f->source->unless && i < f->nr; i++)
		if (!((const uint8_t *)unless->values)[f->row + i])
			miss(f, i);
}

void kb_parquet_fill_rows(struct kb_parquet_fill *fill, const struct kb_parquet_table *table,
			  const struct kb_filled_from *from, uint64_t row, uint64_t nr,
			  struct kb_rows *rows)
{
	for (uint32_t i = 0; i < rows->nr_columns; i++) {
		struct filling filling = {
			.fill = fill, .source = &table->columns[i], .from = from, .rows = rows,
			.at = i, .row = row, .nr = nr,
		};

		if (rows->columns[i].is.optional) {
			filling.missing = kb_rows_missing(rows, i, nr);
			if (!filling.missing)
				break;
		}
		fill_column(&filling);
		if (rows->no_memory)
			break;
	}
	fill->no_memory |= rows->no_memory;
	rows->nr += nr;
}
