/* SPDX-License-Identifier: MIT */
/*
 * The state of the machine: which task runs on which CPU, and when a CPU idles. Add events in the
 * order of the capture. Each slice (struct kb_slice) comes out when it ends. A CPU's last record
 * may be followed by a slice of lost records, if the capture's facts say that records are missing
 * there.
 */
#ifndef KB_LIB_ANALYSIS_TRACE_TIMELINE_H
#define KB_LIB_ANALYSIS_TRACE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/losses.h>

struct kb_timeline;

/* @losses: those of @barman, which are needed no longer afterwards. */
int kb_timeline_create(struct kb_timeline **out, const struct kb_barman *barman,
		       const struct kb_losses *losses, struct kb_error *err);
void kb_timeline_destroy(struct kb_timeline *timeline);

/*
 * Add @event; @ns is its time by kb_barman_ns(), which callers need anyway. Fills @slices with
 * the slices that end with it and returns their number.
 */
unsigned int kb_timeline_feed(struct kb_timeline *timeline, const struct kb_event *event,
			      int64_t ns, struct kb_slice slices[KB_WALK_SLICES]);

/* Call it after the last event until it returns false: gives the slices that are still open. */
bool kb_timeline_end(struct kb_timeline *timeline, struct kb_slice *slice);

/* Start and end of the recorded time by the events so far, ns: see analysis/facts/recorded.h. */
int64_t kb_timeline_first(const struct kb_timeline *timeline);
int64_t kb_timeline_last(const struct kb_timeline *timeline);
uint64_t kb_timeline_duration(const struct kb_timeline *timeline);

/*
 * What it knows after the events so far, to go on from there later with a timeline of the same
 * capture: as many bytes as kb_timeline_room() says.
 */
size_t kb_timeline_room(const struct kb_timeline *timeline);
void kb_timeline_save(const struct kb_timeline *timeline, void *state);
void kb_timeline_restore(struct kb_timeline *timeline, const void *state);

/* No slice that ends from now on begins before that, ns. INT64_MAX: there was no event. */
int64_t kb_timeline_oldest(const struct kb_timeline *timeline);

/* The task that runs on @core after the events so far; false: unknown. */
bool kb_timeline_running(const struct kb_timeline *timeline, uint32_t core, uint32_t *task_id);

#endif
