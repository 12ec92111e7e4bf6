// SPDX-License-Identifier: MIT
/* The virtual tables over records: which rows SQLite asks for, and a cursor over them. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/query_put.h"
#include "query/walks.h"

#define RECORD_BYTES	32.0	/* of most records */

/* What connect() gets. */
struct aux {
	struct kb_query *query;
	const struct query_table *table;
};

static const struct query_table *const tables[] = {
	&query_records, &query_switches, &query_slices, &query_waits, &query_samples, &query_frames,
	&query_counters, &query_wakeups, &query_delays, &query_migrations, &query_interrupts,
	&query_marks, &query_series, &query_details,
};

/* They live as long as the tool: a query has them all. */
struct vtab {
	struct sql_vtab base;	/* the first member */
	struct kb_query *query;
	const struct query_table *table;
	int nr_columns;		/* in front of those of counters */
	double rows;		/* records of all files, about */
	uint32_t cores;
};

struct cursor {
	struct sql_cursor base;	/* the first member */
	struct vtab *vtab;
	struct query_bounds bounds;
	struct query_walk walk;	/* trace NULL: none is open */
	unsigned int file;	/* the next one */
	bool eof;
};

/* ---- connect ---- */

static int count_columns(const char *columns)
{
	int nr = QUERY_COMMONS;

	for (; *columns; columns++)
		nr += *columns == ',';
	return nr;
}

static void estimate(struct vtab *vtab)
{
	for (unsigned int i = 0; i < vtab->query->nr_files; i++) {
		const struct query_file *file = &vtab->query->files[i];
		const struct kb_barman *barman = kb_trace_barman(file->trace);

		if (barman->source.size != KB_SOURCE_SIZE_UNKNOWN)
			vtab->rows += (double)barman->source.size / RECORD_BYTES;
		vtab->cores += file->header->max_cores;
	}
	if (vtab->query->nr_files)
		vtab->cores /= vtab->query->nr_files;
	vtab->cores++;
}

static int connect_table(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
			 struct sql_vtab **out, char **message)
{
	const struct aux *made = aux;
	struct vtab *vtab;
	int ret;

	(void)argc;
	(void)argv;
	(void)message;
	ret = query_connect(made->query, db, made->table->is->name, sizeof(*vtab), out);
	if (ret)
		return ret;
	vtab = (struct vtab *)*out;
	vtab->query = made->query;
	vtab->table = made->table;
	vtab->nr_columns = count_columns(made->table->is->columns);
	estimate(vtab);
	return SQL_OK;
}

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

/* What a constraint leaves of the rows, and of the work. */
static void weigh(const struct vtab *vtab, char what, double *rows, double *work)
{
	bool seeks = vtab->table->seeks;

	switch (what) {
	case 'f':
		*rows /= vtab->query->nr_files;
		*work /= vtab->query->nr_files;
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
		*rows /= vtab->cores;
		break;
	default:
		*rows /= 16;
		break;
	}
}

static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	const struct vtab *vtab = (const struct vtab *)base;
	double rows = vtab->rows + 10, work = rows;
	char *text = kb_sql.malloc64((uint64_t)info->nr_constraints + 1);
	int nr = 0;

	if (!text)
		return SQL_NOMEM;
	for (int i = 0; i < info->nr_constraints; i++) {
		char what = letter(info, i);

		if (!what)
			continue;
		weigh(vtab, what, &rows, &work);
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

static int open_cursor(struct sql_vtab *base, struct sql_cursor **out)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return SQL_NOMEM;
	cursor->vtab = (struct vtab *)base;
	cursor->eof = true;
	*out = &cursor->base;
	return SQL_OK;
}

static int close_cursor(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	query_walk_end(&cursor->walk);
	free(cursor);
	return SQL_OK;
}

/* The walk of the next file; sets eof if there is none. */
static int next_file(struct cursor *cursor, struct kb_error *err)
{
	struct kb_query *query = cursor->vtab->query;
	const struct query_bounds *bounds = &cursor->bounds;

	while (cursor->file < query->nr_files && bounds->has_file && cursor->file != bounds->file)
		cursor->file++;
	if (cursor->file >= query->nr_files) {
		cursor->eof = true;	/* the walk stays: it may be resumed */
		return 0;
	}
	query_walk_end(&cursor->walk);
	return query_walk_begin(&cursor->walk, cursor->vtab->table, &query->files[cursor->file++],
				bounds, err);
}

static int next_row(struct cursor *cursor)
{
	struct kb_error err = { 0 };
	int ret;

	while (!cursor->eof) {
		ret = query_walk_next(&cursor->walk, &err);
		if (kb_likely(ret > 0))
			return SQL_OK;
		if (!ret)
			ret = next_file(cursor, &err);
		if (ret < 0) {
			err.code = ret;
			return query_say(&cursor->vtab->base, &err);
		}
	}
	return SQL_OK;
}

static int filter(struct sql_cursor *base, int number, const char *text, int argc,
		  struct sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct kb_error err = { 0 };
	int ret;

	(void)number;
	cursor->bounds = (struct query_bounds){ .from = INT64_MIN, .until = INT64_MAX };
	for (int i = 0; i < argc; i++)
		bound(&cursor->bounds, text[i], argv[i]);
	cursor->eof = cursor->bounds.nothing;
	if (cursor->eof)
		return SQL_OK;
	/* one file is the only one that can be meant; if another one was asked for, it has no rows */
	if (cursor->vtab->query->nr_files == 1)
		cursor->bounds.has_file = true;
	if (cursor->walk.trace && cursor->bounds.has_file &&
	    query_walk_resume(&cursor->walk, &cursor->bounds))
		return next_row(cursor);
	cursor->file = 0;
	ret = next_file(cursor, &err);
	if (ret < 0) {
		err.code = ret;
		return query_say(&cursor->vtab->base, &err);
	}
	return next_row(cursor);
}

static int next(struct sql_cursor *base)
{
	return next_row((struct cursor *)base);
}

static int eof(struct sql_cursor *base)
{
	return ((struct cursor *)base)->eof;
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
	struct cursor *cursor = (struct cursor *)base;
	struct vtab *vtab = cursor->vtab;
	uint64_t value;

	if (i < QUERY_COMMONS)
		query_walk_common(&cursor->walk, context, i);
	else if (i < vtab->nr_columns)
		vtab->table->column(&cursor->walk, context, i);
	else if (measure_of(&cursor->walk, &vtab->query->measures[i - vtab->nr_columns], &value))
		query_put_u64(context, value);
	return SQL_OK;
}

static int rowid(struct sql_cursor *base, long long *id)
{
	*id = query_walk_rowid(&((struct cursor *)base)->walk);
	return SQL_OK;
}

static const struct sql_module module = {
	.connect = connect_table,
	.best_index = best_index,
	.disconnect = query_disconnect,
	.open = open_cursor,
	.close = close_cursor,
	.filter = filter,
	.next = next,
	.eof = eof,
	.column = column,
	.rowid = rowid,
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

static int add_table(struct kb_query *query, struct aux *aux, struct kb_error *err)
{
	const struct query_table *table = aux->table;
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
	      query_add_module(query, table->is->name, kb_out_data(out, &size), table->is->what, &module,
			       aux, err);
	kb_out_destroy(out);
	return ret;
}

int query_add_walks(struct kb_query *query, struct kb_error *err)
{
	int ret = 0;

	query->aux = calloc(ARRAY_SIZE(tables), sizeof(struct aux));
	if (!query->aux)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(tables) && !ret; i++) {
		struct aux *aux = (struct aux *)query->aux + i;

		*aux = (struct aux){ .query = query, .table = tables[i] };
		ret = add_table(query, aux, err);
	}
	return ret;
}
