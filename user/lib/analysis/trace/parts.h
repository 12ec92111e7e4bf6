/* SPDX-License-Identifier: MIT */
/* The parts of a trace that are not public. */
#ifndef KB_LIB_ANALYSIS_TRACE_PARTS_H
#define KB_LIB_ANALYSIS_TRACE_PARTS_H

#include <kbarman/trace.h>

struct kb_process_notes;
struct kb_timeline;

/*
 * A trace of a capture that is open already. The trace closes @barman, also on error. @path finds
 * its side files; NULL: it has none.
 */
int kb_trace_adopt(struct kb_trace **out, struct kb_barman *barman, const char *path,
		   const struct kb_trace_options *options, struct kb_error *err);

/* What was noted of processes: analysis/facts/process_notes.h. NULL and @err without memory. */
const struct kb_process_notes *kb_trace_notes(struct kb_trace *trace, struct kb_error *err);

/* The timeline of the walk. NULL and @err without memory. */
struct kb_timeline *kb_trace_timeline(struct kb_trace *trace, struct kb_error *err);

/*
 * Go to @event, which comes from elsewhere than the capture: what kb_trace_next() does. The timeline
 * was asked for before.
 */
const struct kb_walk *kb_trace_feed(struct kb_trace *trace, const struct kb_event *event);

/*
 * Whether the capture is damaged, after a walk whose last step returned @step. @err, which may be NULL, says where;
 * of a step that failed it says so already.
 */
bool kb_trace_is_damaged(struct kb_trace *trace, int step, struct kb_error *err);

/* The number of records of which an export has written something since the last kb_trace_rewind(). */
uint64_t kb_trace_nr_shown(const struct kb_trace *trace);

#endif
