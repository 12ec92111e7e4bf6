// SPDX-License-Identifier: MIT
/*
 * critical_path('TASK') and critical_path('FROM..UNTIL'): the links of the path in each capture that
 * has such a task or such marks. What is asked for is a hidden column, as SQLite has it for tables
 * that are called like functions.
 */
#include <errno.h>
#include <stdlib.h>

#include <kbarman/path.h>

#include "query/query_inside.h"
#include "query/query_put.h"

struct vtab {
	struct sql_vtab base;	/* the first member */
	struct kb_query *query;
};

struct cursor {
	struct sql_cursor base;	/* the first member */
	char *of;
	unsigned int file;
	struct kb_trace *trace;		/* NULL: there is no path */
	const struct kb_path *path;
	uint64_t row;
	bool found;			/* in this file or one before */
};

static struct kb_query *query_of(const struct cursor *cursor)
{
	return ((const struct vtab *)cursor->base.vtab)->query;
}

static struct query_file *file_of(const struct cursor *cursor)
{
	return &query_of(cursor)->files[cursor->file];
}

static int connect_path(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
			struct sql_vtab **out, char **message)
{
	int ret = query_connect(aux, db, "critical_path", sizeof(struct vtab), out);

	(void)argc;
	(void)argv;
	(void)message;
	if (!ret)
		((struct vtab *)*out)->query = aux;
	return ret;
}

static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	(void)base;
	info->cost = 1e9;
	for (int i = 0; i < info->nr_constraints; i++) {
		const struct sql_constraint *constraint = &info->constraints[i];

		if (constraint->column != QUERY_critical_path_of - QUERY_COMMONS ||
		    constraint->op != SQL_EQ || !constraint->usable)
			continue;
		info->usage[i].argument = 1;
		info->usage[i].omit = 1;
		info->rows = 1000;
		info->cost = 1e6;
		break;
	}
	return SQL_OK;
}

static int open_cursor(struct sql_vtab *base, struct sql_cursor **out)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	(void)base;
	if (!cursor)
		return SQL_NOMEM;
	*out = &cursor->base;
	return SQL_OK;
}

static void leave_file(struct cursor *cursor)
{
	kb_path_destroy(cursor->path);
	cursor->path = NULL;
	if (cursor->trace)
		query_file_done(file_of(cursor), cursor->trace);
	cursor->trace = NULL;
	cursor->row = 0;
}

static int close_cursor(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	leave_file(cursor);
	free(cursor->of);
	free(cursor);
	return SQL_OK;
}

/* Make the path in the current file. Returns 0, also if there is none, or a negative errno. */
static int make_path(struct cursor *cursor, struct kb_error *err)
{
	struct kb_path_options how = { .size = sizeof(how) };
	struct query_file *file = file_of(cursor);
	char *text = strdup(cursor->of);
	int ret;

	if (!text)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_path_parse(&how, text);
	cursor->trace = query_file_walk(file, err);
	ret = cursor->trace ? kb_path_create(&cursor->path, cursor->trace, &how, err) : err->code;
	free(text);
	if (*file->stop)
		return kb_error_set(err, -EINTR, KB_NO_OFFSET, "interrupted");
	if (ret > 0)
		file->damage = *err;
	cursor->found |= ret >= 0;
	return ret >= 0 || ret == -ENOENT ? 0 : ret;
}

static bool has_row(const struct cursor *cursor)
{
	return cursor->path && cursor->row < cursor->path->nr;
}

/* Go to the next file that has a link, from the current one on. */
static int find_row(struct cursor *cursor)
{
	struct kb_error err = { 0 };
	int ret;

	while (!has_row(cursor) && cursor->file + 1 < query_of(cursor)->nr_files) {
		leave_file(cursor);
		cursor->file++;
		ret = make_path(cursor, &err);
		if (ret)
			return query_say(cursor->base.vtab, &err);
	}
	if (!cursor->found)		/* as the path of the last file says */
		return query_say(cursor->base.vtab, &err);
	return SQL_OK;
}

static int filter(struct sql_cursor *base, int number, const char *plan, int argc,
		  struct sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	const char *of = argc ? (const char *)kb_sql.value_text(argv[0]) : NULL;
	struct kb_error err = { 0 };

	(void)number;
	(void)plan;
	leave_file(cursor);
	free(cursor->of);
	cursor->of = of ? strdup(of) : NULL;
	cursor->file = 0;
	cursor->found = false;
	if (!cursor->of)
		kb_error_set(&err, of ? -ENOMEM : -EINVAL, KB_NO_OFFSET, "say which path: "
			     "critical_path('TASK') or critical_path('FROM..UNTIL'), with a task's "
			     "name or number, or the texts of two marks");
	else if (!make_path(cursor, &err) && (cursor->found || query_of(cursor)->nr_files > 1))
		return find_row(cursor);
	return query_say(base->vtab, &err);
}

static int next(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->row++;
	return find_row(cursor);
}

static int eof(struct sql_cursor *base)
{
	return !has_row((const struct cursor *)base);
}

static void put_by(const struct cursor *cursor, struct sqlite3_context *context,
		   const struct kb_link *link, int i)
{
	char name[KB_ORIGIN_NAME];

	if (link->by.kind == KB_TILE_UNKNOWN)
		return;
	if (i == QUERY_critical_path_by) {
		query_put_text(context, kb_origin_kind(link->by.kind));
	} else if (i == QUERY_critical_path_by_id) {
		if (link->by.id != KB_ORIGIN_ANY)
			query_put_u64(context, link->by.id);
	} else {
		kb_origin_name(file_of(cursor)->trace, &link->by, link->ticks, name, sizeof(name));
		query_put_copy(context, name, strlen(name));
	}
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct cursor *cursor = (const struct cursor *)base;
	const struct kb_link *link = &cursor->path->links[cursor->row];
	struct query_file *file = file_of(cursor);

	i += QUERY_COMMONS;
	switch (i) {
	case QUERY_critical_path_file:
		query_put_i64(context, file->number + 1);
		break;
	case QUERY_critical_path_tid:
		query_put_u64(context, link->task_id);
		break;
	case QUERY_critical_path_pid:
		query_put_u64(context, query_file_pid(file, link->task_id, link->ticks));
		break;
	case QUERY_critical_path_task:
		query_put_text(context, query_file_task(file, link->task_id, link->ticks));
		break;
	case QUERY_critical_path_what:
		query_put_text(context, kb_link_name(link->kind));
		break;
	case QUERY_critical_path_by:
	case QUERY_critical_path_by_id:
	case QUERY_critical_path_by_name:
		put_by(cursor, context, link, i);
		break;
	case QUERY_critical_path_at_ns:
		query_put_i64(context, link->start);
		break;
	case QUERY_critical_path_end_ns:
		query_put_i64(context, link->end);
		break;
	case QUERY_critical_path_duration_ns:
		query_put_u64(context, (uint64_t)link->end - (uint64_t)link->start);
		break;
	case QUERY_critical_path_gap:
		query_put_i64(context, link->in_gap);
		break;
	default:
		query_put_copy(context, cursor->of, strlen(cursor->of));
	}
	return SQL_OK;
}

static int rowid(struct sql_cursor *base, long long *id)
{
	const struct cursor *cursor = (const struct cursor *)base;

	*id = (long long)((uint64_t)cursor->file << 32 | cursor->row);
	return SQL_OK;
}

static const struct sql_module module = {
	.connect = connect_path,
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

int query_add_path(struct kb_query *query, struct kb_error *err)
{
	const struct query_columns *is = &query_columns_critical_path;

	return query_add_module(query, is->name, is->columns + 2, is->what, &module, query, err);
}
