// SPDX-License-Identifier: MIT
/*
 * Two steps: the place of a name in the string table identifies it; only the text of a new
 * place is compared with other names.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/name_ids.h"
#include "base/array.h"

/* The offset of a row's name in the string table, or a task without a row. */
struct comm_row {
	uint64_t key;
	const struct kb_name_id *comm;
};

#define NO_ROW_KEY	(1ULL << 32)

void kb_name_ids_init(struct kb_name_ids *comms, const struct kb_tasks *tasks)
{
	*comms = (struct kb_name_ids) { .tasks = tasks };
	kb_table_init(&comms->rows, sizeof(struct comm_row), 1);
}

void kb_name_ids_release(struct kb_name_ids *comms)
{
	kb_table_release(&comms->rows);
	tdestroy(comms->comms, free);
	free(comms->by_id);
}

static int compare_comms(const void *left, const void *right)
{
	const struct kb_name_id *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static const struct kb_name_id *intern(struct kb_name_ids *comms, const char *name)
{
	size_t size = strlen(name) + 1;
	struct kb_name_id *comm, **node;

	if (!KB_ARRAY_ROOM(comms->by_id, comms->max, (size_t)comms->nr + 1))
		return NULL;
	comm = malloc(sizeof(*comm) + size);
	if (!comm)
		return NULL;
	memcpy(comm->name, name, size);
	node = tsearch(comm, &comms->comms, compare_comms);
	if (!node || *node != comm) {
		free(comm);
	} else {
		comm->id = comms->nr++;
		comms->by_id[comm->id] = comm;
	}
	return node ? *node : NULL;
}

const struct kb_name_id *kb_name_ids_find(struct kb_name_ids *comms, uint32_t task_id,
					  uint64_t timestamp)
{
	struct kb_name_ids_answer *cached = &comms->cache[task_id % KB_NAME_IDS_CACHED];
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;
	struct comm_row *row;
	uint64_t key;

	if (cached->comm && task_id == cached->task_id && timestamp >= cached->since &&
	    timestamp <= cached->until)
		return cached->comm;

	kb_tasks_find(comms->tasks, task_id, timestamp, &hit);
	key = hit.row && hit.row->name ? hit.row->name_ptr : NO_ROW_KEY | task_id;
	row = kb_table_get(&comms->rows, &key);
	if (row && !row->comm)
		row->comm = intern(comms, kb_tasks_name(comms->tasks, task_id, timestamp, buffer));
	*cached = (struct kb_name_ids_answer) {
		.comm = row ? row->comm : NULL,
		.since = hit.since,
		.until = hit.until,
		.task_id = task_id,
	};
	return cached->comm;
}
