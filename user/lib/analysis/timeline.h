/* SPDX-License-Identifier: MIT */
/*
 * The state of the machine: which task runs on which CPU, and when a CPU idles. Add events in
 * the order of the capture. Each slice comes out when it ends. The slices of a CPU cover its
 * time from the first record that says which task runs to the end, without gaps or overlaps:
 *
 *	run	a task runs, from the switch to it, or from the end of a halt
 *	idle	the CPU halts
 *	lost	records are missing, so the state is unknown; also behind a CPU's
 *		last record, if the capture's facts say that records are missing there
 */
#ifndef KB_LIB_ANALYSIS_TIMELINE_H
#define KB_LIB_ANALYSIS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#include "analysis/capture_names.h"

enum kb_slice_kind {
	KB_SLICE_RUN,
	KB_SLICE_IDLE,
	KB_SLICE_LOST,
};

enum kb_slice_end {
	KB_END_PREEMPTED,	/* a switch, with its reason */
	KB_END_BLOCKED,
	KB_END_HALT,		/* the CPU halts or changes its idle state */
	KB_END_RESUME,		/* the CPU leaves the halt */
	KB_END_LOST,		/* records are missing from here on */
	KB_END_FOUND,		/* the record with the number of missing records */
	KB_END_CAPTURE,		/* the capture ends */
};

struct kb_slice {
	enum kb_slice_kind kind;
	enum kb_slice_end how;		/* how it ended */
	uint32_t core;
	uint32_t task_id;		/* run, and idle if has_task */
	bool has_task;
	int idle_state;			/* idle: cpuidle index, or KB_STATE_UNKNOWN */
	int prev_state;			/* ended by a switch: see struct kb_event */
	uint32_t next_task;		/* ended by a switch: the next task */
	int64_t start, end;		/* ns, as kb_barman_ns(); end >= start */
	uint64_t lost;			/* of kind lost: number of records */
};

#define KB_TIMELINE_SLICES	2	/* one event ends at most so many slices */

struct kb_timeline;

int kb_timeline_create(struct kb_timeline **out, const struct kb_barman *barman,
		       const struct kb_names *names, struct kb_error *err);
void kb_timeline_destroy(struct kb_timeline *timeline);

/*
 * Add @event; @ns is its time by kb_barman_ns(), which callers need anyway. Fills @slices with
 * the slices that end with it and returns their number.
 */
unsigned int kb_timeline_feed(struct kb_timeline *timeline, const struct kb_event *event,
			      int64_t ns, struct kb_slice slices[KB_TIMELINE_SLICES]);

/* Call it after the last event until it returns false: gives the slices that are still open. */
bool kb_timeline_end(struct kb_timeline *timeline, struct kb_slice *slice);

/* Start and end of the recorded time by the events so far, ns: see analysis/recorded.h. */
int64_t kb_timeline_first(const struct kb_timeline *timeline);
int64_t kb_timeline_last(const struct kb_timeline *timeline);
uint64_t kb_timeline_duration(const struct kb_timeline *timeline);

/* The task that runs on @core after the events so far; false: unknown. */
bool kb_timeline_running(const struct kb_timeline *timeline, uint32_t core, uint32_t *task_id);

#endif
