// SPDX-License-Identifier: MIT
#include <errno.h>

#include "analysis/time/task_cpus.h"

struct row {
	uint64_t key;
	uint64_t cpu;	/* + 1; 0: unknown */
};

void kb_task_cpus_init(struct kb_task_cpus *cpus)
{
	kb_table_init(&cpus->rows, sizeof(struct row), 1);
}

void kb_task_cpus_release(struct kb_task_cpus *cpus)
{
	kb_table_release(&cpus->rows);
}

/* Whether @event says where a task belongs: fills both. */
static bool find_place(const struct kb_event *event, uint64_t *task, uint32_t *cpu)
{
	if (event->type == KB_EVENT_TASK_SWITCH) {
		*task = event->task_id;
		*cpu = event->core;
		return true;
	}
	if (event->type != KB_EVENT_CUSTOM_COUNTER)
		return false;
	*task = event->custom_counter.id;
	*cpu = event->custom_counter.cpu;
	return event->custom_counter.what == KB_WHAT_WAKING ||
	       event->custom_counter.what == KB_WHAT_WAKING_NEW ||
	       event->custom_counter.what == KB_WHAT_MIGRATE;
}

int64_t kb_task_cpus_feed(struct kb_task_cpus *cpus, const struct kb_event *event)
{
	struct row *row;
	uint64_t task, before;
	uint32_t cpu;

	/* Captures without wakeups and migrations need not wait for a table. */
	if (event->type == KB_EVENT_TASK_SWITCH && !cpus->rows.nr)
		return 0;
	/* Task 0 is another one on each CPU. */
	if (!find_place(event, &task, &cpu) || !task)
		return 0;
	row = kb_table_get(&cpus->rows, &task);
	if (!row)
		return -ENOMEM;
	before = row->cpu;
	row->cpu = (uint64_t)cpu + 1;
	if (event->type == KB_EVENT_TASK_SWITCH || event->custom_counter.what != KB_WHAT_MIGRATE)
		return 0;
	return before ? (int64_t)before - 1 : (int64_t)event->core;
}
