/* SPDX-License-Identifier: MIT */
/*
 * Which mapping an address belonged to. The rows of a capture say "from then on
 * this range of that task's memory shows this image"; there is no row for the end
 * of a mapping, a newer one over it supersedes it.
 *
 * A question costs O(log^2 rows of the task), whatever the rows look like, and
 * memory is O(n log n): a stabbing query on a segment tree over the addresses,
 * built for a task when it is first asked for.
 */
#ifndef KBARMAN_SYM_MAPS_H
#define KBARMAN_SYM_MAPS_H

#include <stdint.h>

#include <kbarman/barman.h>

#include "sym/tasks.h"

struct kb_maps;

/* The same answer holds for all addresses and times between the inclusive limits. */
struct kb_maps_hit {
	const struct kb_map *row;	/* NULL: nothing is mapped there */
	uint32_t index;			/* of row in the header's mmap table */
	uint64_t low, high;		/* addresses */
	uint64_t since, until;		/* ticks */
};

/* @barman must stay open until kb_maps_destroy(). 0 or -ENOMEM. */
int kb_maps_create(struct kb_maps **out, const struct kb_barman *barman);
void kb_maps_destroy(struct kb_maps *maps);

/*
 * The newest row not newer than @timestamp that covers @pc, of @task_id, else of
 * its thread group, else of task 0 (the kernel, and what holds for every task).
 * Only if there is none, the oldest of the newer rows, in the same order.
 * 0 or -ENOMEM.
 */
int kb_maps_find(struct kb_maps *maps, const struct kb_tasks *tasks, uint32_t task_id,
		 uint64_t timestamp, uint64_t pc, struct kb_maps_hit *hit);

#endif
