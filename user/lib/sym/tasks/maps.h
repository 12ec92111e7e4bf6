/* SPDX-License-Identifier: MIT */
/*
 * sym/tasks/: who had what when: mappings by task and time, and the names of tasks. It knows rows
 * of a capture and no file.
 *
 * Finds the mapping of an address. A row of a capture says: from this time on, this range of
 * the task's memory maps this image. No row says that a mapping ended; a newer row over its
 * range replaces it.
 *
 * A request takes O(log^2 rows of the task), whatever the rows are, and memory is O(n log n): a
 * stabbing query on a segment tree over the addresses, which is built for a task at the first
 * request.
 */
#ifndef KB_LIB_SYM_TASKS_MAPS_H
#define KB_LIB_SYM_TASKS_MAPS_H

#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/tasks.h>



struct kb_maps;

/* The answer is the same for all addresses and times within these inclusive limits. */
struct kb_maps_hit {
	const struct kb_map *row;	/* NULL: nothing is mapped there */
	uint32_t index;			/* of row in the header's mmap table */
	uint64_t low, high;		/* addresses */
	uint64_t since, until;		/* ticks */
};

/* @barman must stay open until kb_maps_destroy(). Returns 0 or -ENOMEM. */
int kb_maps_create(struct kb_maps **out, const struct kb_barman *barman);
void kb_maps_destroy(struct kb_maps *maps);

/*
 * Find the newest row not newer than @timestamp that covers @pc: of @task_id (not if the capture
 * has the fact kbarman.maps=process), else of its thread group, else of task 0 (the kernel, and
 * rows that are valid for every task). If there is none, find the oldest newer row in the same
 * order of tasks. Returns 0 or -ENOMEM.
 */
int kb_maps_find(struct kb_maps *maps, const struct kb_tasks *tasks, uint32_t task_id,
		 uint64_t timestamp, uint64_t pc, struct kb_maps_hit *hit);

#endif
