/* SPDX-License-Identifier: MIT */
/*
 * The state of the machine: who runs on which CPU, and when it idles. Events go in, in
 * the capture's order; out come slices, each when it ends, which cover a CPU's time from
 * the first record that says who runs to the end, without gap or overlap:
 *
 *	run	a task runs, from the switch to it or from the CPU's leaving a halt
 *	idle	the CPU halts
 *	lost	records are missing: nobody knows; also those that the capture's facts say
 *		are missing behind a CPU's last record
 */
#ifndef KB_LIB_ANALYSIS_TIMELINE_H
#define KB_LIB_ANALYSIS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#include "analysis/names.h"

enum kb_slice_kind {
	KB_SLICE_RUN,
	KB_SLICE_IDLE,
	KB_SLICE_LOST,
};

enum kb_slice_end {
	KB_END_PREEMPTED,	/* a switch, whose reason it is */
	KB_END_BLOCKED,
	KB_END_HALT,		/* the CPU halts, or goes from one idle state to another */
	KB_END_RESUME,		/* the CPU leaves the halt */
	KB_END_LOST,		/* records are missing from here on */
	KB_END_FOUND,		/* the record that says how many were missing */
	KB_END_CAPTURE,		/* the capture ends */
};

struct kb_slice {
	enum kb_slice_kind kind;
	enum kb_slice_end how;		/* it ended */
	uint32_t core;
	uint32_t task_id;		/* run, and idle if has_task */
	bool has_task;
	int idle_state;			/* idle: cpuidle index, or KB_STATE_UNKNOWN */
	int prev_state;			/* ended by a switch: see struct kb_event */
	uint32_t next_task;		/* ended by a switch: who comes */
	int64_t start, end;		/* ns, as kb_barman_ns(); end >= start */
	uint64_t lost;			/* lost: records */
};

#define KB_TIMELINE_SLICES	2	/* the most that one event can end */

struct kb_timeline;

int kb_timeline_create(struct kb_timeline **out, const struct kb_barman *barman,
		       const struct kb_names *names, struct kb_error *err);
void kb_timeline_destroy(struct kb_timeline *timeline);

/*
 * The slices that end with @event, which is at @ns: kb_barman_ns(), that the caller has
 * a use for as well. Fills @slices, returns how many.
 */
unsigned int kb_timeline_feed(struct kb_timeline *timeline, const struct kb_event *event,
			      int64_t ns, struct kb_slice slices[KB_TIMELINE_SLICES]);

/* After the last event, until it returns false: the slices that are still open. */
bool kb_timeline_end(struct kb_timeline *timeline, struct kb_slice *slice);

/* From when to when it was recorded: see analysis/recorded.h. ns, by the events so far. */
int64_t kb_timeline_first(const struct kb_timeline *timeline);
int64_t kb_timeline_last(const struct kb_timeline *timeline);
uint64_t kb_timeline_duration(const struct kb_timeline *timeline);

/* Who runs on @core after the events fed so far; false: unknown. */
bool kb_timeline_running(const struct kb_timeline *timeline, uint32_t core, uint32_t *task_id);

#endif
