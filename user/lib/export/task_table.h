/* SPDX-License-Identifier: MIT */
/*
 * Tasks as small numbers, for formats whose events refer to a table of tasks. Each pair of task
 * and name has a number, in the order of first use.
 */
#ifndef KB_LIB_EXPORT_TASK_TABLE_H
#define KB_LIB_EXPORT_TASK_TABLE_H

#include <stdint.h>

#include "analysis/trace/inside.h"
#include "base/table.h"

struct kb_task_id {
	uint64_t key[2];		/* the task's id; the place of its name */
	uint32_t tgid;
	struct kb_text name;		/* "" where the capture has none */
	uint32_t user;			/* free for the export; 0 at first */
};

struct kb_task_table {
	struct kb_table rows;
	struct kb_names *names;
	const char *strings;		/* the capture's */
	uint32_t length;
};

/* @trace, which has its names, must live as long as @ids. */
void kb_task_table_init(struct kb_task_table *ids, const struct kb_trace *trace);
void kb_task_table_release(struct kb_task_table *ids);

/* The number of @task_id with its name at @timestamp (ticks); -ENOMEM. */
int64_t kb_task_table_find(struct kb_task_table *ids, uint32_t task_id, uint64_t timestamp);

static inline struct kb_task_id *kb_task_id(const struct kb_task_table *ids, uint32_t i)
{
	return kb_table_row(&ids->rows, i);
}

/*
 * The label of a task: its name, or "task 12" without one. Valid UTF-8 without NULs. Returns
 * its length.
 */
#define KB_TASK_LABEL	256
size_t kb_task_label(const struct kb_task_table *ids, uint32_t i, char label[KB_TASK_LABEL]);

#endif
