/* SPDX-License-Identifier: MIT */
/*
 * Tasks as text. Every record has one or two tasks, and there are few of them, so what a line says of
 * a task is made once for as long as the task has its name.
 */
#ifndef KB_CLI_SCRIPT_TASKS_H
#define KB_CLI_SCRIPT_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include <kbarman/tasks.h>

#include "base/io/out_packet.h"
#include "cli/script/line.h"

#define SCRIPT_TASKS	1024U	/* that are kept */

/* LINE_SLACK bytes may be read behind it. */
struct task_text {
	const char *text;
	size_t length;
	size_t start;		/* while it is made */
};

struct script_task {
	bool used;
	uint32_t task_id, tgid;
	uint64_t since, until;		/* ticks, inclusive */

	/* Text: these five, clean, of which the first two begin with blanks. */
	size_t blanks;
	struct task_text comm;		/* "            comm" */
	struct task_text head;		/* "            comm   pid/tid   " */
	struct task_text previous;	/* "prev_comm=comm prev_pid=tid prev_state=" */
	struct task_text next;		/* "next_comm=comm next_pid=tid" */
	struct task_text about;		/* "comm=comm pid=tid" */

	/* JSON: its members, each with a comma in front. */
	struct task_text members[3];	/* task, pid, tid */
	struct task_text all;		/* these three */
	struct task_text next_all;	/* the same with "next_" in front of each key */
	struct task_text woken_all;	/* the same with "woken_" */
	struct task_text moved_all;	/* the same with "moved_" */

	char *bytes;			/* of all texts */
};

struct script_tasks {
	const struct kb_tasks *tasks;
	bool json;
	struct kb_out *out;		/* where texts are made */
	struct script_task rows[SCRIPT_TASKS];	/* see script_tasks_place() */
};

/* @json: which texts are needed. NULL without memory. @tasks must live as long. */
struct script_tasks *script_tasks_create(const struct kb_tasks *tasks, bool json);
void script_tasks_destroy(struct script_tasks *tasks);

/* Where a task is. Many have numbers near each other; the idle task, in many records, is alone. */
static inline uint32_t script_tasks_place(uint32_t task_id)
{
	return task_id ? 1 + task_id % (SCRIPT_TASKS - 1) : 0;
}

void script_tasks_fill(struct script_tasks *tasks, uint32_t task_id, uint64_t timestamp);

/* The task at @timestamp (ticks). Holds until the next call. Without memory all texts are empty. */
static inline const struct script_task *script_tasks_get(struct script_tasks *tasks,
							 uint32_t task_id, uint64_t timestamp)
{
	const struct script_task *task = &tasks->rows[script_tasks_place(task_id)];

	if (__builtin_expect(!task->used || task->task_id != task_id || timestamp < task->since ||
			     timestamp > task->until, 0))
		script_tasks_fill(tasks, task_id, timestamp);
	return task;
}

#endif
