/* SPDX-License-Identifier: MIT */
/* Names as small numbers, each different text once; and the names of tasks over time. */
#ifndef KB_LIB_EXPORT_PARQUET_NAMES_H
#define KB_LIB_EXPORT_PARQUET_NAMES_H

#include <stdint.h>

#include <kbarman/text.h>

#include "base/table.h"

#define KB_NAME_NONE	UINT32_MAX

struct kb_name_pool {
	struct kb_text *texts;		/* by number */
	uint32_t nr;
	size_t max;
	struct kb_table rows;		/* to find them */
};

void kb_name_pool_init(struct kb_name_pool *pool);
void kb_name_pool_release(struct kb_name_pool *pool);

/* The number of a name, which is copied. KB_NAME_NONE without memory. */
uint32_t kb_name_pool_add(struct kb_name_pool *pool, struct kb_text name);

struct kb_task_at {
	uint32_t tid, pid, name;	/* name: a number of the pool */
	int64_t since;			/* ns */
	uint32_t order;			/* of rows of one time: the last one holds */
};

struct kb_task_names {
	struct kb_task_at *rows;	/* by task, then time */
	uint32_t nr;
	size_t max;
	struct kb_table first;		/* from a task to its rows */
};

void kb_task_names_init(struct kb_task_names *tasks);
void kb_task_names_release(struct kb_task_names *tasks);

/* Add what is known of a task from @row.since on. Returns 0 or -ENOMEM. */
int kb_task_names_add(struct kb_task_names *tasks, struct kb_task_at row);

/*
 * What a task is at @ns: its newest row that is not newer, or else its oldest one. Without a row its
 * name is "idle" (task 0) or ":TID", and its process is itself. A name of KB_NAME_NONE: no memory.
 */
struct kb_task_at kb_task_names_find(struct kb_task_names *tasks, struct kb_name_pool *pool,
				     uint32_t tid, int64_t ns);

#endif
