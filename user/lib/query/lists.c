// SPDX-License-Identifier: MIT
/* The virtual tables over the header of captures: rows that are known before a record is read. */
#include "base/array.h"
#include "query/module.h"
#include "query/query_put.h"

struct list {
	const struct query_columns *is;
	uint32_t (*count)(struct query_file *file);
	void (*column)(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i);
};

static void put_file(const struct query_file *file, struct sqlite3_context *context)
{
	query_put_i64(context, file->number + 1);
}

/* ---- files ---- */

static uint32_t one(struct query_file *file)
{
	(void)file;
	return 1;
}

static void put_fact(const struct query_file *file, struct sqlite3_context *context, const char *key)
{
	query_put_text(context, kb_barman_fact(kb_trace_barman(file->trace), key));
}

/* What is known after all of it was read; NULL if that failed. */
static void put_times(struct query_file *file, struct sqlite3_context *context, int i)
{
	struct kb_error err = { 0 };

	query_file_places(file, &err);
	if (!file->places.read)
		return;
	switch (i) {
	case QUERY_files_records:
		query_put_u64(context, file->places.records);
		break;
	case QUERY_files_first_ns:
		query_put_i64(context, file->places.first);
		break;
	case QUERY_files_last_ns:
		query_put_i64(context, file->places.last);
		break;
	default:
		query_put_u64(context, file->places.duration);
	}
}

static void put_losses(struct query_file *file, struct sqlite3_context *context, int i)
{
	const struct kb_losses *losses = kb_trace_losses(file->trace, NULL);

	if (!losses || !losses->stated)
		return;
	query_put_u64(context, i == QUERY_files_written ? losses->written :
		      i == QUERY_files_overwritten ? losses->overwritten : losses->lost);
}

static void files_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	static const char *const facts[] = {
		[QUERY_files_host] = "host", [QUERY_files_release] = "release", [QUERY_files_command] = "command",
		[QUERY_files_filter] = "filter", [QUERY_files_sources] = "sources",
	};

	(void)row;
	switch (i) {
	case QUERY_files_file:
		put_file(file, context);
		break;
	case QUERY_files_path:
		query_put_text(context, file->name);
		break;
	case QUERY_files_target:
		query_put_text(context, file->header->target_name);
		break;
	case QUERY_files_unix_base_ns:
		query_put_u64(context, file->header->unix_base_ns);
		break;
	case QUERY_files_cpus:
		query_put_u64(context, file->header->max_cores);
		break;
	case QUERY_files_records:
	case QUERY_files_first_ns:
	case QUERY_files_last_ns:
	case QUERY_files_duration_ns:
		put_times(file, context, i);
		break;
	case QUERY_files_written:
	case QUERY_files_overwritten:
	case QUERY_files_lost:
		put_losses(file, context, i);
		break;
	default:
		put_fact(file, context, facts[i]);
	}
}

/* ---- facts ---- */

static uint32_t facts_count(struct query_file *file)
{
	return (uint32_t)kb_trace_barman(file->trace)->nr_facts;
}

static void facts_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	const char *fact = kb_trace_barman(file->trace)->facts[row], *equals = strchr(fact, '=');
	size_t front = strlen("kbarman.");

	if (i == QUERY_facts_file)
		put_file(file, context);
	else if (i == QUERY_facts_value)
		query_put_text(context, equals ? equals + 1 : NULL);
	else if (strnlen(fact, front) == front)
		query_put_copy(context, fact + front,
			       equals ? (size_t)(equals - fact) - front : strlen(fact) - front);
}

/* ---- tasks ---- */

static uint32_t tasks_count(struct query_file *file)
{
	return file->header->nr_tasks;
}

static void tasks_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	const struct kb_task *task = &file->header->tasks[row];
	const struct kb_barman *barman = kb_trace_barman(file->trace);
	struct kb_task_hit hit;

	kb_tasks_find(file->tasks, task->task_id, task->timestamp, &hit);
	switch (i) {
	case QUERY_tasks_file:
		put_file(file, context);
		break;
	case QUERY_tasks_tid:
		query_put_u64(context, task->task_id);
		break;
	case QUERY_tasks_pid:
		query_put_u64(context, hit.tgid);
		break;
	case QUERY_tasks_task:
		query_put_text(context, task->name);
		break;
	case QUERY_tasks_cgroup:
		query_put_text(context, query_file_note(file, hit.tgid, task->timestamp).cgroup ?: "");
		break;
	case QUERY_tasks_command:
		query_put_text(context, query_file_note(file, hit.tgid, task->timestamp).command ?: "");
		break;
	case QUERY_tasks_since_ns:
		if (task->timestamp)
			query_put_i64(context, kb_barman_ns(barman, task->timestamp));
		break;
	default:
		if (hit.until != UINT64_MAX)
			query_put_i64(context, kb_barman_ns(barman, hit.until));
	}
}

/* ---- images ---- */

static uint32_t images_count(struct query_file *file)
{
	return file->header->nr_maps;
}

static void images_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	const struct kb_map *map = &file->header->maps[row];

	switch (i) {
	case QUERY_images_file:
		put_file(file, context);
		break;
	case QUERY_images_tid:
		query_put_u64(context, map->task_id);
		break;
	case QUERY_images_pid:
		query_put_u64(context, query_file_pid(file, map->task_id, map->timestamp));
		break;
	case QUERY_images_since_ns:
		if (map->timestamp)
			query_put_i64(context, kb_barman_ns(kb_trace_barman(file->trace),
							    map->timestamp));
		break;
	case QUERY_images_address:
		query_put_address(context, map->base_address);
		break;
	case QUERY_images_length:
		query_put_u64(context, map->length);
		break;
	case QUERY_images_offset:
		query_put_u64(context, map->image_offset);
		break;
	case QUERY_images_image:
		query_put_text(context, map->image);
		break;
	default:
		query_put_kb_text(context, map->file);
	}
}

/* ---- losses ---- */

static uint32_t losses_count(struct query_file *file)
{
	const struct kb_losses *losses = kb_trace_losses(file->trace, NULL);

	return losses ? losses->nr_rows + losses->nr_missed + losses->nr_stopped : 0;
}

static void put_loss(struct sqlite3_context *context, const struct kb_loss *loss, const char *kind,
		     int i)
{
	switch (i) {
	case QUERY_losses_kind:
		query_put_text(context, kind);
		break;
	case QUERY_losses_cpu:
		if (strcmp(kind, "missed"))
			query_put_u64(context, loss->core);
		break;
	case QUERY_losses_what:
		query_put_text(context, loss->what);
		break;
	case QUERY_losses_count:
		query_put_u64(context, loss->count);
		break;
	default:
		query_put_text(context, strcmp(kind, "stopped") ? kb_loss_advice(loss->what)
								: NULL);
	}
}

static void losses_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	const struct kb_losses *losses = kb_trace_losses(file->trace, NULL);

	if (i == QUERY_losses_file)
		put_file(file, context);
	else if (row < losses->nr_rows)
		put_loss(context, &losses->rows[row], "lost", i);
	else if (row - losses->nr_rows < losses->nr_missed)
		put_loss(context, &losses->missed[row - losses->nr_rows], "missed", i);
	else
		put_loss(context, &losses->stopped[row - losses->nr_rows - losses->nr_missed],
			 "stopped", i);
}

/* ---- all of them ---- */

static const struct list lists[] = {
	{ &query_columns_files, one, files_column },
	{ &query_columns_facts, facts_count, facts_column },
	{ &query_columns_tasks, tasks_count, tasks_column },
	{ &query_columns_images, images_count, images_column },
	{ &query_columns_losses, losses_count, losses_column },
};

/* ---- the tables ---- */

struct cursor {
	struct query_cursor base;	/* the first member */
	uint32_t nr;			/* rows of the file */
};

static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	const struct query_told *told = ((const struct query_vtab *)base)->told;
	const struct list *list = told->table;

	info->rows = 0;
	for (unsigned int i = 0; i < told->query->nr_files; i++)
		info->rows += list->count(&told->query->files[i]);
	info->cost = (double)info->rows * 10 + 10;
	return SQL_OK;
}

static const struct list *list_of(const struct query_cursor *cursor)
{
	return query_told_of(cursor)->table;
}

static int begin(struct query_cursor *base, struct kb_error *err)
{
	(void)err;
	base->row = UINT64_MAX;
	((struct cursor *)base)->nr = list_of(base)->count(query_file_of(base));
	return 0;
}

static int step(struct query_cursor *base, struct kb_error *err)
{
	(void)err;
	return ++base->row < ((const struct cursor *)base)->nr;
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct query_cursor *cursor = (const struct query_cursor *)base;
	const struct list *list = list_of(cursor);

	list->column(query_file_of(cursor), context, (uint32_t)cursor->row, i + QUERY_COMMONS);
	return SQL_OK;
}

static const struct query_kind kind = {
	.cursor_bytes = sizeof(struct cursor),
	.begin = begin,
	.step = step,
	.module = QUERY_MODULE(best_index, column, query_rowid),
};

int query_add_lists(struct kb_query *query, struct kb_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists) && !ret; i++)
		ret = query_add_table(query, &kind, &lists[i], lists[i].is->name,
				      lists[i].is->columns + 2, lists[i].is->what, err);
	return ret;
}
