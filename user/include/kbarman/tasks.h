/* SPDX-License-Identifier: MIT */
/*
 * The name and the thread group of a task id at a time. Task ids are reused, and tasks change
 * their names by exec and prctl, so a capture may have many rows for one id.
 *
 *	char buffer[KB_TASK_NAME_BUFFER];
 *
 *	puts(kb_tasks_name(tasks, event.task_id, event.timestamp, buffer));
 *
 * Any number of threads may look up tasks at the same time.
 */
#ifndef KBARMAN_TASKS_H
#define KBARMAN_TASKS_H

#include <stdint.h>

#include <kbarman/barman.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_tasks;

/* What the capture says of a task at a time. */
struct kb_task_hit {
	const struct kb_task *row;	/* NULL: the capture has no row for this task. The reader of
					 * the capture owns it */
	uint32_t index;			/* of row in the header's task table */
	uint32_t tgid;			/* the task id itself if it is unknown */
	uint64_t since, until;		/* ticks, inclusive: the answer is the same there */
};

/* Index the tasks of @barman, which stays open until kb_tasks_destroy(). Returns 0 or -ENOMEM. */
int kb_tasks_create(struct kb_tasks **out, const struct kb_barman *barman);

/* Free the index. @tasks may be NULL. */
void kb_tasks_destroy(struct kb_tasks *tasks);

/*
 * Find the newest row of @task_id that is not newer than @timestamp (ticks). If all rows are
 * newer, find the oldest.
 */
void kb_tasks_find(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
		   struct kb_task_hit *hit);

/*
 * The name to print: that of the row; "idle" for task 0 without a row; else ":ID", which is
 * written to @buffer. It may be invalid UTF-8 and may have control characters. It lives as long
 * as the reader of the capture and @buffer.
 */
#define KB_TASK_NAME_BUFFER	16
const char *kb_tasks_name(const struct kb_tasks *tasks, uint32_t task_id, uint64_t timestamp,
			  char buffer[KB_TASK_NAME_BUFFER]);

#ifdef __cplusplus
}
#endif

#endif
