// SPDX-License-Identifier: MIT
/*
 * critical_path('TASK') and critical_path('FROM..UNTIL'): the links of the path in each capture that
 * has such a task or such marks. What is asked for is a hidden column, as SQLite has it for tables
 * that are called like functions.
 */
#include <errno.h>
#include <stdlib.h>

#include <kbarman/path.h>

#include "query/module.h"
#include "query/query_put.h"

struct cursor {
	struct query_cursor base;	/* the first member */
	char *of;
	struct query_file *from;	/* of the path */
	struct kb_trace *trace;		/* NULL: there is no path */
	const struct kb_path *path;
	bool found;			/* in this file or one before */
};

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

static void leave_file(struct cursor *cursor)
{
	kb_path_destroy(cursor->path);
	cursor->path = NULL;
	if (cursor->trace)
		query_file_done(cursor->from, cursor->trace);
	cursor->trace = NULL;
}

static void end(struct query_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	leave_file(cursor);
	free(cursor->of);
}

/* Make the path in the current file. Returns 0, also if there is none, or a negative errno. */
static int begin(struct query_cursor *base, struct kb_error *err)
{
	struct kb_path_options how = { .size = sizeof(how) };
	struct cursor *cursor = (struct cursor *)base;
	struct query_file *file = query_file_of(base);
	char *text = strdup(cursor->of);
	int ret;

	leave_file(cursor);
	if (!text)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_path_parse(&how, text);
	cursor->from = file;
	base->row = UINT64_MAX;
	cursor->trace = query_file_walk(file, err);
	ret = cursor->trace ? kb_path_create(&cursor->path, cursor->trace, &how, err) : err->code;
	free(text);
	if (*file->stop)
		return kb_error_set(err, -EINTR, KB_NO_OFFSET, "interrupted");
	if (ret > 0)
		file->damage = *err;
	cursor->found |= ret >= 0;
	/* that there is none is said when all files were asked */
	if (ret == -ENOENT && (cursor->found || base->file + 1 < query_told_of(base)->query->nr_files))
		return 0;
	return ret < 0 ? ret : 0;
}

static int step(struct query_cursor *base, struct kb_error *err)
{
	const struct cursor *cursor = (const struct cursor *)base;

	(void)err;
	return cursor->path && ++base->row < cursor->path->nr;
}

static int ask(struct query_cursor *base, const char *plan, int argc, struct sqlite3_value **argv,
	       struct kb_error *err)
{
	struct cursor *cursor = (struct cursor *)base;
	const char *of = argc ? (const char *)kb_sql.value_text(argv[0]) : NULL;

	(void)plan;
	free(cursor->of);
	cursor->of = of ? strdup(of) : NULL;
	cursor->found = false;
	return cursor->of ? 0 :
	       kb_error_set(err, of ? -ENOMEM : -EINVAL, KB_NO_OFFSET, "say which path: "
			    "critical_path('TASK') or critical_path('FROM..UNTIL'), with a task's "
			    "name or number, or the texts of two marks");
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
		kb_origin_name(cursor->from->trace, &link->by, link->ticks, name, sizeof(name));
		query_put_copy(context, name, strlen(name));
	}
}

static void put_wait(const struct cursor *cursor, struct sqlite3_context *context, const struct kb_link *link, int i)
{
	char name[KB_TASK_NAME_BUFFER];
	const struct kb_waits_row row = kb_link_wait(link, cursor->trace, name);

	if (!row.object)
		return;
	if (i == QUERY_critical_path_waiter_tid)
		query_put_u64(context, link->waiter);
	else if (i == QUERY_critical_path_waiter)
		query_put_copy(context, row.task, strlen(row.task));
	else if (i == QUERY_critical_path_call)
		query_put_text(context, row.call);
	else if (i == QUERY_critical_path_object)
		query_put_text(context, kb_object_name(row.object) ?: "other");
	else if (i == QUERY_critical_path_object_name)
		query_put_text(context, row.name);
	else if (i == QUERY_critical_path_iowait)
		query_put_i64(context, row.iowait);
	else if (row.value)
		query_put_u64(context, row.value);
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct cursor *cursor = (const struct cursor *)base;
	const struct kb_link *link = &cursor->path->links[cursor->base.row];
	struct query_file *file = cursor->from;

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
	case QUERY_critical_path_waiter_tid:
	case QUERY_critical_path_waiter:
	case QUERY_critical_path_call:
	case QUERY_critical_path_object:
	case QUERY_critical_path_object_value:
	case QUERY_critical_path_object_name:
	case QUERY_critical_path_iowait:
		put_wait(cursor, context, link, i);
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

static const struct query_kind kind = {
	.cursor_bytes = sizeof(struct cursor),
	.ask = ask,
	.begin = begin,
	.step = step,
	.end = end,
	.module = QUERY_MODULE(best_index, column, query_rowid),
};

int query_add_path(struct kb_query *query, struct kb_error *err)
{
	const struct query_columns *is = &query_columns_critical_path;

	return query_add_table(query, &kind, NULL, is->name, is->columns + 2, is->what, err);
}
