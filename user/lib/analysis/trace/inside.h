/* SPDX-License-Identifier: MIT */
/*
 * analysis/trace/: a capture with all that its readers need, each part made when it is first asked
 * for. Whoever reads a capture begins here. wanted.h has the part of it that is asked for.
 *
 * A trace for the exports, and its walk for loops that do little with a record.
 */
#ifndef KB_LIB_ANALYSIS_TRACE_INSIDE_H
#define KB_LIB_ANALYSIS_TRACE_INSIDE_H

#include "analysis/facts/capture_names.h"
#include "analysis/trace/parts.h"
#include "analysis/trace/timeline.h"
#include "format/barman/inside.h"

struct kb_machine;
struct kb_process_notes;
struct kb_wanted;

struct kb_trace {
	struct kb_barman *barman;
	char *path;			/* of the capture; NULL: it has no side files */
	struct kb_symbol_options symbols;
	struct kb_walk walk;		/* the current record */
	int result;			/* of the last step to a record */

	const struct kb_machine *machine;	/* NULL: it is exported alone; see wall.h */

	/* What exports show of it: see shown.h. */
	struct kb_wanted *wanted;	/* NULL: everything */
	struct kb_walk shown;
	uint64_t nr_shown;		/* records so far */

	/* NULL: not asked for yet. */
	struct kb_tasks *tasks;
	struct kb_losses *losses;
	struct kb_process_notes *notes;
	struct kb_names *names;
	struct kb_timeline *timeline;
	struct kb_symbolizer *symbolizer;
};

/* The event alone, for loops that need no slices. */
static kb_always_inline int trace_next_event(struct kb_trace *trace, struct kb_error *err)
{
	return trace->result = barman_next(trace->barman, &trace->walk.event, err);
}

/*
 * kb_trace_next() inlined, for a trace whose timeline was asked for; without `running`, unless only a
 * part is wanted.
 */
static kb_always_inline int trace_next(struct kb_trace *trace, struct kb_error *err)
{
	struct kb_walk *walk = &trace->walk;
	int ret = trace_next_event(trace, err);

	if (kb_unlikely(ret <= 0))
		return ret;
	walk->ns = barman_clock_ns(&trace->barman->clock, walk->event.timestamp);
	if (kb_unlikely(trace->wanted != NULL)) {
		walk->running = 0;
		walk->known = kb_timeline_running(trace->timeline, walk->event.core, &walk->running);
	}
	walk->nr_slices = kb_timeline_feed(trace->timeline, &walk->event, walk->ns, walk->slices);
	return 1;
}

#endif
