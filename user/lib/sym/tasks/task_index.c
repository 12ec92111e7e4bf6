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

#include "base/bisect.h"
#include "sym/tasks/row_order.h"

struct kb_tasks {
	const struct kb_task *rows;
	uint32_t nr;
	struct kb_row_place *places;	/* of the rows, by task and time */
};

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
	tasks->places = reallocarray(NULL, tasks->nr + 1, sizeof(*tasks->places));
	if (!tasks->places) {
		kb_tasks_destroy(tasks);
		return -ENOMEM;
	}
	for (i = 0; i < tasks->nr; i++)
		tasks->places[i] = (struct kb_row_place) {
			tasks->rows[i].timestamp, tasks->rows[i].task_id, i };
	kb_row_order(tasks->places, tasks->nr);
	*out = tasks;
	return 0;
}

void kb_tasks_destroy(struct kb_tasks *tasks)
{
	if (!tasks)
		return;
	free(tasks->places);
	free(tasks);
}

void kb_tasks_find(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
		   struct kb_task_hit *hit)
{
	const struct kb_row_place *places = tasks->places, *next;
	/* the first row that is of a later task, or newer than timestamp */
	uint32_t i = KB_BISECT(k, 0, tasks->nr, places[k].task_id < task_id ||
			       (places[k].task_id == task_id && places[k].timestamp <= timestamp));

	*hit = (struct kb_task_hit) { .tgid = task_id, .until = UINT64_MAX };

	next = i < tasks->nr && places[i].task_id == task_id ? &places[i] : NULL;
	if (next)
		hit->until = next->timestamp - 1;

	if (i && places[i - 1].task_id == task_id) {
		hit->index = places[i - 1].index;
		hit->since = places[i - 1].timestamp;
	} else if (next) {
		hit->index = next->index;
	} else {
		return;
	}
	hit->row = &tasks->rows[hit->index];
	hit->tgid = hit->row->tgid;
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
