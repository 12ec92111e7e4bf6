/* SPDX-License-Identifier: MIT */
/*
 * The names of tasks in the tables of a running session, in which rows come, and in overwrite mode
 * go.
 */
#ifndef KB_LIB_TRIGGER_LIVE_TASKS_H
#define KB_LIB_TRIGGER_LIVE_TASKS_H

#include <kbarman/device.h>

#include "base/table.h"

struct kb_live_tasks {
	const struct kb_mapped *mapped;
	uint32_t done;			/* rows that are in the index */
	uint32_t generation;		/* of the tables, when the index was begun */
	uint32_t *before;		/* by row: the row of the same task before it, + 1; 0: none */
	struct kb_table last;		/* by task: its last row */
};

/* @mapped must live as long. Returns 0 or -ENOMEM. */
int kb_live_tasks_init(struct kb_live_tasks *tasks, const struct kb_mapped *mapped);
void kb_live_tasks_release(struct kb_live_tasks *tasks);

/* Look for new rows; @generation: of the tables now (struct kbarman_query). Returns 0 or -ENOMEM. */
int kb_live_tasks_look(struct kb_live_tasks *tasks, uint32_t generation);

/* As kb_tasks_name(): @buffer has KB_TASK_NAME_BUFFER bytes, and gets every name. */
const char *kb_live_tasks_name(const struct kb_live_tasks *tasks, uint32_t task_id, uint64_t ticks,
			       char *buffer);

#endif
