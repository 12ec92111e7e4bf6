// SPDX-License-Identifier: MIT
/* An index that grows with the table, and begins anew when rows were emptied. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/tasks.h>

#include "trigger/live_tasks.h"

struct last {
	uint64_t task_id;		/* the key */
	uint32_t row;
};

int kb_live_tasks_init(struct kb_live_tasks *tasks, const struct kb_mapped *mapped)
{
	uint32_t max = mapped->header->config_constants.max_task_infos;

	*tasks = (struct kb_live_tasks){ .mapped = mapped };
	tasks->before = calloc((size_t)max + 1, sizeof(*tasks->before));
	kb_table_init(&tasks->last, sizeof(struct last), 1);
	return tasks->before ? 0 : -ENOMEM;
}

void kb_live_tasks_release(struct kb_live_tasks *tasks)
{
	free(tasks->before);
	kb_table_release(&tasks->last);
	tasks->before = NULL;
}

static int add(struct kb_live_tasks *tasks, uint32_t row)
{
	uint64_t key = tasks->mapped->tasks[row].task_id;
	uint32_t nr = tasks->last.nr;
	struct last *last;

	tasks->before[row] = 0;
	if (key == KBARMAN_NO_TASK)
		return 0;
	last = kb_table_get(&tasks->last, &key);
	if (!last)
		return -ENOMEM;
	if (tasks->last.nr == nr)
		tasks->before[row] = last->row + 1;
	last->row = row;
	return 0;
}

int kb_live_tasks_look(struct kb_live_tasks *tasks, uint32_t generation)
{
	uint32_t count = kb_mapped_count(tasks->mapped->nr_tasks);
	uint32_t max = tasks->mapped->header->config_constants.max_task_infos;
	int ret = 0;

	if (generation != tasks->generation) {
		kb_table_release(&tasks->last);
		tasks->done = 0;
		tasks->generation = generation;
	}
	count = count < max ? count : max;
	for (; tasks->done < count && !ret; tasks->done++)
		ret = add(tasks, tasks->done);
	return ret;
}

/*
 * The newest row of the task that is not behind @ticks; else its oldest. Rows that were used again are
 * in any order, so all rows of the task are looked at; they are few.
 */
static const struct bm_protocol_header_task_info *
find(const struct kb_live_tasks *tasks, const struct last *last, uint64_t ticks)
{
	const struct bm_protocol_header_task_info *rows = tasks->mapped->tasks, *best = NULL;

	for (uint32_t at = last->row + 1; at; at = tasks->before[at - 1]) {
		const struct bm_protocol_header_task_info *row = &rows[at - 1];
		bool fits = row->timestamp <= ticks;

		if (row->task_id != last->task_id)
			continue;	/* emptied meanwhile */
		if (!best || (fits && (best->timestamp > ticks || row->timestamp > best->timestamp)) ||
		    (!fits && best->timestamp > ticks && row->timestamp < best->timestamp))
			best = row;
	}
	return best;
}

const char *kb_live_tasks_name(const struct kb_live_tasks *tasks, uint32_t task_id, uint64_t ticks,
			       char *buffer)
{
	const struct bm_protocol_header_task_info *row;
	uint64_t key = task_id;
	const struct last *last = kb_table_find(&tasks->last, &key);
	const char *name;

	row = last ? find(tasks, last, ticks) : NULL;
	name = row ? kb_mapped_string(tasks->mapped, row->task_name_ptr) : NULL;
	if (name)
		snprintf(buffer, KB_TASK_NAME_BUFFER, "%s", name);
	else if (!task_id)
		snprintf(buffer, KB_TASK_NAME_BUFFER, "idle");
	else
		snprintf(buffer, KB_TASK_NAME_BUFFER, ":%" PRIu32, task_id);
	return buffer;
}
