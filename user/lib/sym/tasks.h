/* SPDX-License-Identifier: MIT */
/*
 * Who a task id was at a time: ids are used again, and tasks change their names by
 * exec and prctl, so a capture may have many rows for one id. Also what belongs
 * together: the thread group of a task, from the kbarman.tgid.ROW facts.
 */
#ifndef KBARMAN_SYM_TASKS_H
#define KBARMAN_SYM_TASKS_H

#include <stdint.h>

#include <kbarman/barman.h>

struct kb_tasks;

struct kb_task_hit {
	const struct kb_task *row;	/* NULL: the capture knows nothing of this task */
	uint32_t index;			/* of row in the header's task table */
	uint32_t tgid;			/* the task id itself where nothing else is known */
	uint64_t since, until;		/* ticks, inclusive: the same answer holds there */
};

/* @barman must stay open until kb_tasks_destroy(). 0 or -ENOMEM. */
int kb_tasks_create(struct kb_tasks **out, const struct kb_barman *barman);
void kb_tasks_destroy(struct kb_tasks *tasks);

/*
 * The newest row of @task_id that is not newer than @timestamp; if all are, the
 * oldest.
 */
void kb_tasks_find(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
		   struct kb_task_hit *hit);

/*
 * A name to print: the row's, "idle" for task 0 without a row, else ":ID" written
 * into @buffer. Lives as long as @tasks and @buffer.
 */
#define KB_TASK_NAME_BUFFER	16
const char *kb_tasks_name(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
			  char buffer[KB_TASK_NAME_BUFFER]);

#endif
