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

#define KB_COMMS_CACHED	64U	/* a power of two */

struct kb_comms {
	const struct kb_tasks *tasks;
	struct kb_table rows;		/* where a name comes from, to the name */
	void *comms;			/* by name: tsearch(3) */
	uint32_t nr;

	/* Answers that hold for a while, by task: CPUs take turns with their questions. */
	struct kb_comms_answer {
		const struct kb_comm *comm;	/* NULL: there is none */
		uint64_t since, until;		/* ticks, inclusive */
		uint32_t task_id;
	} cache[KB_COMMS_CACHED];
};

/* @tasks must stay. */
void kb_comms_init(struct kb_comms *comms, const struct kb_tasks *tasks);
void kb_comms_release(struct kb_comms *comms);

/* What @task_id was called at @timestamp; NULL without memory. Stays. */
const struct kb_comm *kb_comms_find(struct kb_comms *comms, uint32_t task_id,
				    uint64_t timestamp);

#endif
