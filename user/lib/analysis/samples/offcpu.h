/* SPDX-License-Identifier: MIT */
/*
 * Where tasks waited: a tree of the call chains of task switches, weighted by the nanoseconds
 * until the task ran again, and the longest of these waits. [blocked] or [preempted] replaces a
 * missing chain. Waits that are not over at the end do not count.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_OFFCPU_H
#define KB_LIB_ANALYSIS_SAMPLES_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/samples/calltree.h"
#include "analysis/time/sched.h"

#define KB_OFFCPU_LONGEST	32	/* number of waits kept individually */

struct kb_offcpu;

/* Listens to @sched. All parameters must live until kb_offcpu_destroy(). */
int kb_offcpu_create(struct kb_offcpu **out, const struct kb_barman *barman,
		     const struct kb_tasks *tasks, struct kb_symbolizer *symbolizer,
		     struct kb_sched *sched, struct kb_error *err);
void kb_offcpu_destroy(struct kb_offcpu *offcpu);

/* Call it before the first switch: count only waits for which @wanted returns true. */
void kb_offcpu_filter(struct kb_offcpu *offcpu,
		      bool (*wanted)(void *context, const struct kb_wait *wait),
		      void *context);

/* Add a task switch. Give the slices that it ends to @sched first. Returns 0 or -ENOMEM. */
int kb_offcpu_switch(struct kb_offcpu *offcpu, const struct kb_event *event,
		     const struct kb_slice *slice);

/*
 * The longest waits in which the task was asleep, or the other waits; longest first. Their
 * marks are nodes of the tree. Nothing can be added afterwards.
 */
const struct kb_wait *kb_offcpu_longest(struct kb_offcpu *offcpu, bool asleep, uint32_t *nr);

struct kb_calltree *kb_offcpu_tree(struct kb_offcpu *offcpu);

/* Whether any switch had a call chain. */
bool kb_offcpu_has_chains(const struct kb_offcpu *offcpu);

#endif
