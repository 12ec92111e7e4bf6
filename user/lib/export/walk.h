/* SPDX-License-Identifier: MIT */
/* Iterates over a capture: every record, with what the timeline says about it. */
#ifndef KB_LIB_WALK_H
#define KB_LIB_WALK_H

#include <kbarman/out.h>

#include "analysis/capture_names.h"
#include "analysis/timeline.h"

struct kb_walk {
	struct kb_barman *barman;
	struct kb_names *names;
	struct kb_timeline *timeline;
	int damage;		/* last result of kb_barman_next(), for kb_export_end() */

	/* the current record */
	struct kb_event event;
	int64_t ns;		/* its time by kb_barman_ns() */
	uint32_t running;	/* task that ran on its CPU before it; 0: unknown */
	struct kb_slice slices[KB_TIMELINE_SLICES];	/* slices that ended with it */
	unsigned int nr_slices;
};

/* Start in front of the first record of @barman. Release @walk in any case. */
int kb_walk_init(struct kb_walk *walk, struct kb_barman *barman, struct kb_error *err);
void kb_walk_release(struct kb_walk *walk);

/* Go to the next record; false: there is none, or it is damaged. */
bool kb_walk_next(struct kb_walk *walk, struct kb_error *err);

/*
 * One of enum kb_ftrace_state: the state in which @task_id leaves the CPU at the current record, a
 * task switch. An ending task has TASK_DEAD, which the trace event sched_switch does not show: it
 * shows the first thread of a process as a zombie until its parent has waited for it, and all
 * others as dead.
 */
uint32_t kb_walk_state(const struct kb_walk *walk, uint32_t task_id);

/* As kb_export_end(), with an error if there was no memory. */
int kb_walk_end(const struct kb_walk *walk, struct kb_out *out, bool no_memory,
		struct kb_error *err);

#endif
