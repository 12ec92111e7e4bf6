/* SPDX-License-Identifier: MIT */
/*
 * Names of tasks as small numbers. Samples are summed up by name, and the header may have one
 * name more than once.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_NAME_IDS_H
#define KB_LIB_ANALYSIS_FACTS_NAME_IDS_H

#include <stdint.h>

#include <kbarman/tasks.h>

#include "base/table.h"

struct kb_name_id {
	uint32_t id;		/* dense, in the order of first use */
	char name[];
};

#define KB_NAME_IDS_CACHED	64U	/* a power of two */

struct kb_name_ids {
	const struct kb_tasks *tasks;
	struct kb_table rows;		/* from the place of a name to the name */
	void *comms;			/* all names: tsearch(3) */
	const struct kb_name_id **by_id;
	uint32_t nr, max;

	/*
	 * Cached answers, by task, with the time during which they hold. Requests of several
	 * CPUs take turns, so more than one answer is cached.
	 */
	struct kb_name_ids_answer {
		const struct kb_name_id *comm;	/* NULL: empty */
		uint64_t since, until;		/* ticks, inclusive */
		uint32_t task_id;
	} cache[KB_NAME_IDS_CACHED];
};

/* @tasks must live as long as @comms. */
void kb_name_ids_init(struct kb_name_ids *comms, const struct kb_tasks *tasks);
void kb_name_ids_release(struct kb_name_ids *comms);

/* The name of @task_id at @timestamp (ticks); NULL without memory. Lives as long as @comms. */
const struct kb_name_id *kb_name_ids_find(struct kb_name_ids *comms, uint32_t task_id,
					  uint64_t timestamp);

/* The name with @id, which one of the answers had. */
static inline const char *kb_name_ids_name(const struct kb_name_ids *comms, uint32_t id)
{
	return comms->by_id[id]->name;
}

#endif
