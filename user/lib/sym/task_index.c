// SPDX-License-Identifier: MIT
/*
 * The task table sorted by (task id, timestamp); of equal rows the later one counts. Each
 * request is one binary search.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/tasks.h>

struct kb_tasks {
	const struct kb_task *rows;
	uint32_t nr;
	uint32_t *order;		/* rows by (task_id, timestamp, index) */
	uint32_t *tgids;		/* by row; NULL: no facts */
};

static int compare(const void *left, const void *right, void *context)
{
	const struct kb_task *rows = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (rows[a].task_id != rows[b].task_id)
		return rows[a].task_id < rows[b].task_id ? -1 : 1;
	if (rows[a].timestamp != rows[b].timestamp)
		return rows[a].timestamp < rows[b].timestamp ? -1 : 1;
	return a < b ? -1 : 1;
}

/* "kbarman.tgid.ROW=TGID" */
static void take_fact(struct kb_tasks *tasks, const char *string)
{
	static const char prefix[] = "kbarman.tgid.";
	unsigned long row, tgid;
	char *end;

	if (strncmp(string, prefix, sizeof(prefix) - 1) != 0)
		return;
	errno = 0;
	row = strtoul(string + sizeof(prefix) - 1, &end, 10);
	if (errno || *end != '=' || row >= tasks->nr)
		return;
	tgid = strtoul(end + 1, &end, 10);
	if (!errno && *end == '\0' && tgid <= UINT32_MAX)
		tasks->tgids[row] = tgid;
}

static int read_tgids(struct kb_tasks *tasks, const struct kb_header *header)
{
	uint32_t i;
	size_t at;

	tasks->tgids = reallocarray(NULL, tasks->nr + 1, sizeof(*tasks->tgids));
	if (!tasks->tgids)
		return -ENOMEM;
	for (i = 0; i < tasks->nr; i++)
		tasks->tgids[i] = tasks->rows[i].task_id;
	for (at = 0; at < header->string_table_length; at += strlen(header->strings + at) + 1)
		take_fact(tasks, header->strings + at);
	return 0;
}

int kb_tasks_create(struct kb_tasks **out, const struct kb_barman *barman)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_tasks *tasks;
	uint32_t i;

	tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	tasks->rows = header->tasks;
	tasks->nr = header->nr_tasks;
	tasks->order = reallocarray(NULL, tasks->nr + 1, sizeof(*tasks->order));
	if (!tasks->order || read_tgids(tasks, header)) {
		kb_tasks_destroy(tasks);
		return -ENOMEM;
	}
	for (i = 0; i < tasks->nr; i++)
		tasks->order[i] = i;
	if (tasks->nr)
		qsort_r(tasks->order, tasks->nr, sizeof(*tasks->order), compare,
			(void *)tasks->rows);
	*out = tasks;
	return 0;
}

void kb_tasks_destroy(struct kb_tasks *tasks)
{
	if (!tasks)
		return;
	free(tasks->order);
	free(tasks->tgids);
	free(tasks);
}

void kb_tasks_find(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
		   struct kb_task_hit *hit)
{
	uint32_t low = 0, high = tasks->nr;
	const struct kb_task *row, *next;

	/* low becomes the first row that is of a later task, or newer than timestamp */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		row = &tasks->rows[tasks->order[middle]];
		if (row->task_id < task_id ||
		    (row->task_id == task_id && row->timestamp <= timestamp))
			low = middle + 1;
		else
			high = middle;
	}
	*hit = (struct kb_task_hit) { .tgid = task_id, .until = UINT64_MAX };

	next = low < tasks->nr ? &tasks->rows[tasks->order[low]] : NULL;
	if (next && next->task_id != task_id)
		next = NULL;
	if (next)
		hit->until = next->timestamp - 1;

	if (low && tasks->rows[tasks->order[low - 1]].task_id == task_id) {
		hit->index = tasks->order[low - 1];
		hit->since = tasks->rows[hit->index].timestamp;
	} else if (next) {
		hit->index = tasks->order[low];
	} else {
		return;
	}
	hit->row = &tasks->rows[hit->index];
	hit->tgid = tasks->tgids[hit->index];
}

const char *kb_tasks_name(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
			  char buffer[KB_TASK_NAME_BUFFER])
{
	struct kb_task_hit hit;

	kb_tasks_find(tasks, task_id, timestamp, &hit);
	if (hit.row && hit.row->name && hit.row->name[0])
		return hit.row->name;
	if (task_id == 0)
		return "idle";
	snprintf(buffer, KB_TASK_NAME_BUFFER, ":%u", task_id);
	return buffer;
}
