/* SPDX-License-Identifier: MIT */
/*
 * Names of tasks as small numbers. Samples are summed up by name, and the header may have one
 * name more than once.
 */
#ifndef KB_LIB_ANALYSIS_COMM_H
#define KB_LIB_ANALYSIS_COMM_H

#include <stdint.h>

#include <kbarman/tasks.h>

#include "table.h"

struct kb_comm {
	uint32_t id;		/* dense, in the order of first use */
	char name[];
};

#define KB_COMMS_CACHED	64U	/* a power of two */

struct kb_comms {
	const struct kb_tasks *tasks;
	struct kb_table rows;		/* from the place of a name to the name */
	void *comms;			/* all names: tsearch(3) */
	uint32_t nr;

	/*
	 * Cached answers, by task, with the time during which they hold. Requests of several
	 * CPUs take turns, so more than one answer is cached.
	 */
	struct kb_comms_answer {
		const struct kb_comm *comm;	/* NULL: empty */
		uint64_t since, until;		/* ticks, inclusive */
		uint32_t task_id;
	} cache[KB_COMMS_CACHED];
};

/* @tasks must live as long as @comms. */
void kb_comms_init(struct kb_comms *comms, const struct kb_tasks *tasks);
void kb_comms_release(struct kb_comms *comms);

/* The name of @task_id at @timestamp (ticks); NULL without memory. Lives as long as @comms. */
const struct kb_comm *kb_comms_find(struct kb_comms *comms, uint32_t task_id,
				    uint64_t timestamp);

#endif
