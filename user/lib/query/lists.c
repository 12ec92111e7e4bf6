// SPDX-License-Identifier: MIT
/* The virtual tables over the header of captures: rows that are known before a record is read. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/query_inside.h"
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

/* ---- the module ---- */

struct aux {
	struct kb_query *query;
	const struct list *list;
};

struct vtab {
	struct sql_vtab base;	/* the first member */
	struct kb_query *query;
	const struct list *list;
};

struct cursor {
	struct sql_cursor base;	/* the first member */
	struct vtab *vtab;
	unsigned int file;
	uint32_t row, nr;	/* of the file */
};

static int connect_list(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
			struct sql_vtab **out, char **message)
{
	const struct aux *made = aux;
	struct vtab *vtab;
	int ret;

	(void)argc;
	(void)argv;
	(void)message;
	ret = query_connect(made->query, db, made->list->is->name, sizeof(*vtab), out);
	if (ret)
		return ret;
	vtab = (struct vtab *)*out;
	vtab->query = made->query;
	vtab->list = made->list;
	return SQL_OK;
}

static int best_index(struct sql_vtab *base, struct sql_index_info *info)
{
	const struct vtab *vtab = (const struct vtab *)base;

	info->rows = 0;
	for (unsigned int i = 0; i < vtab->query->nr_files; i++)
		info->rows += vtab->list->count(&vtab->query->files[i]);
	info->cost = (double)info->rows * 10 + 10;
	return SQL_OK;
}

static int open_cursor(struct sql_vtab *base, struct sql_cursor **out)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return SQL_NOMEM;
	cursor->vtab = (struct vtab *)base;
	*out = &cursor->base;
	return SQL_OK;
}

static int close_cursor(struct sql_cursor *base)
{
	free(base);
	return SQL_OK;
}

/* Go to the next file that has a row, from the current one on. */
static int find_row(struct cursor *cursor)
{
	const struct kb_query *query = cursor->vtab->query;

	while (cursor->row >= cursor->nr && cursor->file + 1 < query->nr_files) {
		cursor->row = 0;
		cursor->nr = cursor->vtab->list->count(&query->files[++cursor->file]);
	}
	return SQL_OK;
}

static int filter(struct sql_cursor *base, int number, const char *text, int argc,
		  struct sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;

	(void)number;
	(void)text;
	(void)argc;
	(void)argv;
	cursor->file = 0;
	cursor->row = 0;
	cursor->nr = cursor->vtab->list->count(&cursor->vtab->query->files[0]);
	return find_row(cursor);
}

static int next(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->row++;
	return find_row(cursor);
}

static int eof(struct sql_cursor *base)
{
	const struct cursor *cursor = (const struct cursor *)base;

	return cursor->row >= cursor->nr;
}

static int column(struct sql_cursor *base, struct sqlite3_context *context, int i)
{
	const struct cursor *cursor = (const struct cursor *)base;

	cursor->vtab->list->column(&cursor->vtab->query->files[cursor->file], context, cursor->row,
			     i + QUERY_COMMONS);
	return SQL_OK;
}

static int rowid(struct sql_cursor *base, long long *id)
{
	const struct cursor *cursor = (const struct cursor *)base;

	*id = (long long)cursor->file << 32 | cursor->row;
	return SQL_OK;
}

static const struct sql_module module = {
	.connect = connect_list,
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

int query_add_lists(struct kb_query *query, struct kb_error *err)
{
	struct aux *aux = calloc(ARRAY_SIZE(lists), sizeof(*aux));
	int ret = 0;

	if (!aux)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	query->list_aux = aux;
	for (size_t i = 0; i < ARRAY_SIZE(lists) && !ret; i++, aux++) {
		*aux = (struct aux){ .query = query, .list = &lists[i] };
		ret = query_add_module(query, lists[i].is->name, lists[i].is->columns + 2,
				       lists[i].is->what, &module, aux, err);
	}
	return ret;
}
