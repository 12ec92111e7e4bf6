/* SPDX-License-Identifier: MIT */
/*
 * Names of tasks as small numbers: samples are summed up by name, and one name may
 * stand in the header more than once.
 */
#ifndef KB_LIB_ANALYSIS_COMM_H
#define KB_LIB_ANALYSIS_COMM_H

#include <stdint.h>

#include "table.h"
#include "sym/tasks.h"

struct kb_comm {
	uint32_t id;		/* dense, in the order of first use */
	char name[];
};

struct kb_comms {
	const struct kb_tasks *tasks;
	struct kb_table rows;		/* where a name comes from, to the name */
	void *comms;			/* by name: tsearch(3) */
	uint32_t nr;

	/* The task asked last: the same answer holds for a while. */
	uint32_t last_task;
	struct kb_task_hit last_hit;
	const struct kb_comm *last;	/* NULL: there was none */
};

/* @tasks must stay. */
void kb_comms_init(struct kb_comms *comms, const struct kb_tasks *tasks);
void kb_comms_release(struct kb_comms *comms);

/* What @task_id was called at @timestamp; NULL without memory. Stays. */
const struct kb_comm *kb_comms_find(struct kb_comms *comms, uint32_t task_id,
				    uint64_t timestamp);

#endif
