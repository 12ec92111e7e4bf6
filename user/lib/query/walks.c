// SPDX-License-Identifier: MIT
/* The virtual tables over records: which rows SQLite asks for, and a cursor over them. */
#include <errno.h>

#include "base/array.h"
#include "query/module.h"
#include "query/query_put.h"
#include "query/walks.h"

#define RECORD_BYTES	32.0	/* of most records */

static const struct query_table *const tables[] = {
	&query_records, &query_switches, &query_slices, &query_waits, &query_samples, &query_frames,
	&query_counters, &query_wakeups, &query_delays, &query_migrations, &query_interrupts,
	&query_syscalls, &query_faults, &query_block, &query_marks, &query_series, &query_details,
};

struct cursor {
	struct query_cursor base;	/* the first member */
	struct query_bounds bounds;
	struct query_walk walk;		/* trace NULL: none is open */
	bool skips;			/* no row of the current file is wanted; the walk may be resumed */
};

/* ---- which rows ---- */

/*
 * The letter of a constraint that a walk can use, '\0': none. The letters of a plan are, in the order
 * of filter()'s arguments, the text that best_index() leaves.
 */
static char letter(const struct sql_index_info *info, int i)
{
	const struct sql_constraint *constraint = &info->constraints[i];
	bool equal = constraint->op == SQL_EQ;

	if (!constraint->usable)
		return '\0';
	switch (constraint->column) {
	case QUERY_FILE:
		return equal ? 'f' : '\0';
	case QUERY_RECORD:
		return equal ? 'r' : '\0';
	case QUERY_CPU:
		return equal ? 'c' : '\0';
	case QUERY_TID:
		return equal ? 't' : '\0';
	case QUERY_AT:
		break;
	default:
		return '\0';
	}
	switch (constraint->op) {
	case SQL_EQ:
		return '=';
	case SQL_GT:
	case SQL_GE:
		return '>';
	case SQL_LT:
	case SQL_LE:
		return '<';
	default:
		return '\0';
	}
}

/* Records of all files, about. */
static double records_of(const struct kb_query *query)
{
	double records = 0;

	for (unsigned int i = 0; i < query->nr_files; i++) {
		uint64_t size = kb_trace_barman(query->files[i].trace)->source.size;

		if (size != KB_SOURCE_SIZE_UNKNOWN)
			records += (double)size / RECORD_BYTES;
	}
	return records;
}

static uint32_t cores_of(const struct kb_query *query)
{
	uint32_t cores = 0;

	for (unsigned int i = 0; i < query->nr_files; i++)
		cores += query->files[i].header->max_cores;
	return cores / query->nr_files + 1;
}

/* What a constraint leaves of the rows, and of the work. */
static void weigh(const struct query_told *told, char what, double *rows, double *work)
{
	bool seeks = ((const struct query_table *)told->table)->seeks;

	switch (what) {
	case 'f':
		*rows /= told->query->nr_files;
		*work /= told->query->nr_files;
		break;
	case 'r':
	case '=':
		*rows = what == 'r' ? 2 : 10;
		if (seeks && *work > 4000)
			*work = 4000;
		break;
	case '<':
	case '>':
		*rows /= 4;
		*work /= seeks ? 4 : 1;
		break;
	case 'c':
		*rows /= cores_of(told->query);
		break;
	default:
		*rows /= 16;
		break;
	}
}

static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	const struct query_told *told = ((const struct query_vtab *)base)->told;
	double rows = records_of(told->query) + 10, work = rows;
	char *text = kb_sql.malloc64((uint64_t)info->nr_constraints + 1);
	int nr = 0;

	if (!text)
		return SQL_NOMEM;
	for (int i = 0; i < info->nr_constraints; i++) {
		char what = letter(info, i);

		if (!what)
			continue;
		weigh(told, what, &rows, &work);
		text[nr++] = what;
		info->usage[i].argument = nr;
	}
	text[nr] = '\0';
	info->text = text;
	info->free_text = 1;
	info->cost = work + 10 * rows;
	info->rows = rows < 1 ? 1 : (long long)rows;
	return SQL_OK;
}

/* Round @value away from what it excludes, and keep it in the range. */
static int64_t whole(double value, bool up)
{
	if (value >= 9.2e18)
		return INT64_MAX;
	if (value <= -9.2e18)
		return INT64_MIN;
	return (int64_t)value + (up ? 1 : -1);
}

static void bound_number(struct query_bounds *bounds, char what, int64_t low, int64_t high)
{
	bool exact = low == high;

	switch (what) {
	case 'f':
		bounds->has_file = exact;
		bounds->file = (unsigned int)low - 1;
		bounds->nothing |= exact && (low < 1 || low > KB_QUERY_FILES_MAX);
		break;
	case 'r':
		bounds->has_record = exact && low >= 0;
		bounds->record = (uint64_t)low;
		bounds->nothing |= exact && low < 0;
		break;
	case 'c':
		bounds->has_core = exact;
		bounds->core = (uint32_t)low;
		bounds->nothing |= exact && (low < 0 || low > UINT32_MAX);
		break;
	case 't':
		bounds->has_task = exact;
		bounds->task_id = (uint32_t)low;
		bounds->nothing |= exact && (low < 0 || low > UINT32_MAX);
		break;
	default:
		if (what != '<' && low > bounds->from)
			bounds->from = low;
		if (what != '>' && high < bounds->until)
			bounds->until = high;
	}
}

/* A constraint with a value that is no number is left to SQLite, except NULL: nothing is equal to it. */
static void bound(struct query_bounds *bounds, char what, struct sqlite3_value *value)
{
	int type = kb_sql.value_numeric_type(value);

	bounds->any = true;
	if (type == SQL_NULL)
		bounds->nothing = true;
	else if (type == SQL_INTEGER)
		bound_number(bounds, what, kb_sql.value_int64(value), kb_sql.value_int64(value));
	else if (type == SQL_FLOAT)
		bound_number(bounds, what, whole(kb_sql.value_double(value), false),
			     whole(kb_sql.value_double(value), true));
}

/* ---- the cursor ---- */

static int begin(struct query_cursor *base, struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->skips = cursor->bounds.nothing ||
			(cursor->bounds.has_file && base->file != cursor->bounds.file);
	if (cursor->skips)
		return 0;
	query_walk_end(&cursor->walk);
	return query_walk_begin(&cursor->walk, query_told_of(base)->table, query_file_of(base),
				&cursor->bounds, err);
}

static int step(struct query_cursor *base, struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;

	return cursor->skips ? 0 : query_walk_next(&cursor->walk, err);
}

static int ask(struct query_cursor *base, const char *plan, int argc, struct sqlite3_value **argv,
	       struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;
	unsigned int nr_files = query_told_of(base)->query->nr_files;

	(void)err;
	cursor->bounds = (struct query_bounds){ .from = INT64_MIN, .until = INT64_MAX };
	for (int i = 0; i < argc; i++)
		bound(&cursor->bounds, plan[i], argv[i]);
	/* one file is the only one that can be meant; if another one was asked for, it has no rows */
	cursor->bounds.has_file |= nr_files == 1;
	if (cursor->bounds.has_file && cursor->bounds.file < nr_files)
		base->file = cursor->bounds.file;
	if (cursor->bounds.nothing || !cursor->walk.trace || !cursor->bounds.has_file)
		return 0;
	cursor->skips = false;
	return query_walk_resume(&cursor->walk, &cursor->bounds);
}

static void end(struct query_cursor *base)
{
	query_walk_end(&((struct cursor *)base)->walk);
}

/* A counter in the current record; false: it has no value there. */
static bool measure_of(const struct query_walk *walk, const struct query_measure *measure,
		       uint64_t *value)
{
	const struct query_file *file = walk->file;
	const struct kb_event *event = walk->event;
	uint32_t nr = kb_names_of_core(file->names, event->core);

	for (uint32_t i = 0; i < nr && i < event->sample.nr_counters; i++) {
		if (kb_names_counter_id(file->names, event->core, i) != measure->ids[file->number])
			continue;
		*value = event->sample.counters[i];
		return *value != KB_COUNTER_INVALID;
	}
	return false;
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	struct query_walk *walk = &((struct cursor *)base)->walk;
	const struct query_table *table = walk->table;
	const struct query_measure *measures;
	uint64_t value;

	if (i < QUERY_COMMONS) {
		query_walk_common(walk, context, i);
	} else if (i < table->is->nr_columns) {
		table->column(walk, context, i);
	} else {
		measures = query_told_of((struct query_cursor *)base)->query->measures;
		if (measure_of(walk, &measures[i - table->is->nr_columns], &value))
			query_put_u64(context, value);
	}
	return SQL_OK;
}

static int rowid(struct sql_cursor *base, long long *id)
{
	*id = query_walk_rowid(&((struct cursor *)base)->walk);
	return SQL_OK;
}

static const struct query_kind kind = {
	.cursor_bytes = sizeof(struct cursor),
	.ask = ask,
	.begin = begin,
	.step = step,
	.end = end,
	.module = QUERY_MODULE(best_index, column, rowid),
};

/* ---- all of them ---- */

/* Is @name that of a column in @columns? Columns are not told apart by case. */
static bool is_column(const char *columns, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = columns; at; at = strchr(at, ',')) {
		at += strspn(at, ", ");
		if (!strncasecmp(at, name, length) && at[length] == ' ')
			return true;
	}
	return false;
}

/* The columns of the counters, quoted. A counter that is called as another column has none. */
static int put_measures(struct kb_query *query, const char *columns, struct kb_out *out)
{
	for (unsigned int i = 0; i < query->nr_measures; i++) {
		struct query_measure *measure = &query->measures[i];

		if (is_column(QUERY_COMMON, measure->name) || is_column(columns, measure->name))
			kb_out_printf(out, ", \"counter %u\" INTEGER HIDDEN", i);
		else {
			kb_out_printf(out, ", \"");
			for (const char *at = measure->name; *at; at++)
				kb_out_bytes(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
			kb_out_printf(out, "\" INTEGER");
		}
	}
	return kb_out_error(out);
}

static int add_table(struct kb_query *query, const struct query_table *table, struct kb_error *err)
{
	struct kb_out *out;
	size_t size;
	int ret;

	if (kb_out_memory(&out))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_out_printf(out, "%s%s", QUERY_COMMON, table->is->columns);
	if (table->measures)
		put_measures(query, table->is->columns, out);
	kb_out_bytes(out, "", 1);
	ret = kb_out_error(out) ? kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory") :
	      query_add_table(query, &kind, table, table->is->name, kb_out_data(out, &size),
			      table->is->what, err);
	kb_out_destroy(out);
	return ret;
}

int query_add_walks(struct kb_query *query, struct kb_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && !ret; i++)
		ret = add_table(query, tables[i], err);
	return ret;
}
