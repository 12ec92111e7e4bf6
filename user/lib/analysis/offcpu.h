/* SPDX-License-Identifier: MIT */
/*
 * Where tasks waited: the call chains of task switches, as far as the capture has them, as
 * a tree that is weighed by the nanoseconds until the task ran again; and the longest of
 * these waits. Where there is no chain, [blocked] or [preempted] stands for it. Waits that
 * are still open at the end do not count.
 */
#ifndef KB_LIB_ANALYSIS_OFFCPU_H
#define KB_LIB_ANALYSIS_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/calltree.h"
#include "analysis/sched.h"

#define KB_OFFCPU_LONGEST	32	/* waits that are remembered one by one */

struct kb_offcpu;

/* Listens to @sched, which must stay until kb_offcpu_destroy(), as must @barman. */
int kb_offcpu_create(struct kb_offcpu **out, const struct kb_barman *barman,
		     struct kb_symbolizer *symbolizer, struct kb_sched *sched,
		     struct kb_error *err);
void kb_offcpu_destroy(struct kb_offcpu *offcpu);

/* Count only waits for which @wanted returns true; before the first switch. */
void kb_offcpu_filter(struct kb_offcpu *offcpu,
		      bool (*wanted)(void *context, const struct kb_wait *wait),
		      void *context);

/* A task switch, after the slices that it ends were given to @sched. 0 or -ENOMEM. */
int kb_offcpu_switch(struct kb_offcpu *offcpu, const struct kb_event *event,
		     const struct kb_slice *slice);

/*
 * Those in which the task was asleep, or the others; the longest first. Their marks are nodes
 * of the tree. Nothing can be added afterwards.
 */
const struct kb_wait *kb_offcpu_longest(struct kb_offcpu *offcpu, bool asleep, uint32_t *nr);

struct kb_calltree *kb_offcpu_tree(struct kb_offcpu *offcpu);

/* Had any of the switches a call chain? */
bool kb_offcpu_has_chains(const struct kb_offcpu *offcpu);

#endif
