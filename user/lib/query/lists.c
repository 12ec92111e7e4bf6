// SPDX-License-Identifier: MIT
/* The virtual tables over the header of captures: rows that are known before a record is read. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/query_inside.h"
#include "query/query_put.h"

struct list {
	const char *name, *columns, *what;
	uint32_t (*count)(struct query_file *file);
	void (*column)(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i);
};

static void put_file(const struct query_file *file, struct sqlite3_context *context)
{
	query_put_i64(context, file->number + 1);
}

/* ---- files ---- */

enum {
	FILE_NUMBER, FILE_PATH, FILE_TARGET, FILE_HOST, FILE_RELEASE, FILE_COMMAND, FILE_FILTER, FILE_SOURCES,
	FILE_UNIX_BASE, FILE_CPUS, FILE_RECORDS, FILE_FIRST, FILE_LAST, FILE_DURATION, FILE_WRITTEN,
	FILE_OVERWRITTEN, FILE_LOST,
};

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
	case FILE_RECORDS:
		query_put_u64(context, file->places.records);
		break;
	case FILE_FIRST:
		query_put_i64(context, file->places.first);
		break;
	case FILE_LAST:
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
	query_put_u64(context, i == FILE_WRITTEN ? losses->written :
		      i == FILE_OVERWRITTEN ? losses->overwritten : losses->lost);
}

static void files_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	static const char *const facts[] = {
		[FILE_HOST] = "host", [FILE_RELEASE] = "release", [FILE_COMMAND] = "command",
		[FILE_FILTER] = "filter", [FILE_SOURCES] = "sources",
	};

	(void)row;
	switch (i) {
	case FILE_NUMBER:
		put_file(file, context);
		break;
	case FILE_PATH:
		query_put_text(context, file->name);
		break;
	case FILE_TARGET:
		query_put_text(context, file->header->target_name);
		break;
	case FILE_UNIX_BASE:
		query_put_u64(context, file->header->unix_base_ns);
		break;
	case FILE_CPUS:
		query_put_u64(context, file->header->max_cores);
		break;
	case FILE_RECORDS:
	case FILE_FIRST:
	case FILE_LAST:
	case FILE_DURATION:
		put_times(file, context, i);
		break;
	case FILE_WRITTEN:
	case FILE_OVERWRITTEN:
	case FILE_LOST:
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

	if (i == 0)
		put_file(file, context);
	else if (i == 2)
		query_put_text(context, equals ? equals + 1 : NULL);
	else if (strnlen(fact, front) == front)
		query_put_copy(context, fact + front,
			       equals ? (size_t)(equals - fact) - front : strlen(fact) - front);
}

/* ---- tasks ---- */

enum { TASK_FILE, TASK_TID, TASK_PID, TASK_NAME, TASK_SINCE, TASK_UNTIL };

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
	case TASK_FILE:
		put_file(file, context);
		break;
	case TASK_TID:
		query_put_u64(context, task->task_id);
		break;
	case TASK_PID:
		query_put_u64(context, hit.tgid);
		break;
	case TASK_NAME:
		query_put_text(context, task->name);
		break;
	case TASK_SINCE:
		if (task->timestamp)
			query_put_i64(context, kb_barman_ns(barman, task->timestamp));
		break;
	default:
		if (hit.until != UINT64_MAX)
			query_put_i64(context, kb_barman_ns(barman, hit.until));
	}
}

/* ---- images ---- */

enum {
	IMAGE_FILE, IMAGE_TID, IMAGE_PID, IMAGE_SINCE, IMAGE_ADDRESS, IMAGE_LENGTH, IMAGE_OFFSET,
	IMAGE_PATH, IMAGE_IDENTITY,
};

static uint32_t images_count(struct query_file *file)
{
	return file->header->nr_maps;
}

static void images_column(struct query_file *file, struct sqlite3_context *context, uint32_t row, int i)
{
	const struct kb_map *map = &file->header->maps[row];

	switch (i) {
	case IMAGE_FILE:
		put_file(file, context);
		break;
	case IMAGE_TID:
		query_put_u64(context, map->task_id);
		break;
	case IMAGE_PID:
		query_put_u64(context, query_file_pid(file, map->task_id, map->timestamp));
		break;
	case IMAGE_SINCE:
		if (map->timestamp)
			query_put_i64(context, kb_barman_ns(kb_trace_barman(file->trace),
							    map->timestamp));
		break;
	case IMAGE_ADDRESS:
		query_put_address(context, map->base_address);
		break;
	case IMAGE_LENGTH:
		query_put_u64(context, map->length);
		break;
	case IMAGE_OFFSET:
		query_put_u64(context, map->image_offset);
		break;
	case IMAGE_PATH:
		query_put_text(context, map->image);
		break;
	default:
		query_put_kb_text(context, map->file);
	}
}

/* ---- losses ---- */

enum { LOSS_FILE, LOSS_KIND, LOSS_CPU, LOSS_WHAT, LOSS_COUNT, LOSS_ADVICE };

static uint32_t losses_count(struct query_file *file)
{
	const struct kb_losses *losses = kb_trace_losses(file->trace, NULL);

	return losses ? losses->nr_rows + losses->nr_missed + losses->nr_stopped : 0;
}

static void put_loss(struct sqlite3_context *context, const struct kb_loss *loss, const char *kind,
		     int i)
{
	switch (i) {
	case LOSS_KIND:
		query_put_text(context, kind);
		break;
	case LOSS_CPU:
		if (strcmp(kind, "missed"))
			query_put_u64(context, loss->core);
		break;
	case LOSS_WHAT:
		query_put_text(context, loss->what);
		break;
	case LOSS_COUNT:
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

	if (i == LOSS_FILE)
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
	{
		.name = "files",
		.columns = "file INTEGER, path TEXT, target TEXT, host TEXT, release TEXT, command TEXT, "
			   "filter TEXT, sources TEXT, unix_base_ns INTEGER, cpus INTEGER, "
			   "records INTEGER, first_ns INTEGER, last_ns INTEGER, "
			   "duration_ns INTEGER, written INTEGER, overwritten INTEGER, lost INTEGER",
		.what = "the captures by number, as they were given; records and the three columns behind "
			"it take a reading",
		.count = one,
		.column = files_column,
	},
	{
		.name = "facts",
		.columns = "file INTEGER, key TEXT, value TEXT",
		.what = "what captures say of themselves: see kbarman-formats(5)",
		.count = facts_count,
		.column = facts_column,
	},
	{
		.name = "tasks",
		.columns = "file INTEGER, tid INTEGER, pid INTEGER, task TEXT, since_ns INTEGER, "
			   "until_ns INTEGER",
		.what = "the names of tasks, each with the time during which it holds",
		.count = tasks_count,
		.column = tasks_column,
	},
	{
		.name = "images",
		.columns = "file INTEGER, tid INTEGER, pid INTEGER, since_ns INTEGER, address TEXT, "
			   "length INTEGER, offset INTEGER, image TEXT, identity TEXT",
		.what = "the executable mappings of each process; tid 0 is the kernel",
		.count = images_count,
		.column = images_column,
	},
	{
		.name = "losses",
		.columns = "file INTEGER, kind TEXT, cpu INTEGER, what TEXT, count INTEGER, advice TEXT",
		.what = "what captures lack: kind is lost (records), missed (facts) or stopped (the "
			"counter that samples stood still so often)",
		.count = losses_count,
		.column = losses_column,
	},
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
	ret = query_connect(made->query, db, made->list->name, sizeof(*vtab), out);
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

	cursor->vtab->list->column(&cursor->vtab->query->files[cursor->file], context, cursor->row, i);
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
		ret = query_add_module(query, lists[i].name, lists[i].columns, lists[i].what, &module,
				       aux, err);
	}
	return ret;
}
