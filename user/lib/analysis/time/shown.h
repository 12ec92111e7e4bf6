/* SPDX-License-Identifier: MIT */
/*
 * What exports write of a trace of which only a part is wanted. They read all records, so what needs
 * several of them, such as a wait, is right at the borders of the part, too. They write what is
 * wanted: slices are cut at the borders of the time, and where only some tasks are wanted, a switch
 * has the idle task in place of the others.
 */
#ifndef KB_LIB_ANALYSIS_TIME_SHOWN_H
#define KB_LIB_ANALYSIS_TIME_SHOWN_H

#include "analysis/time/arrows.h"
#include "analysis/time/handlers.h"
#include "analysis/trace/inside.h"
#include "analysis/trace/wanted.h"

/*
 * From now on only what @wanted chooses is shown; NULL: everything. It must live as long, or until
 * the next call.
 */
static inline void kb_show_only(struct kb_trace *trace, struct kb_wanted *wanted)
{
	trace->wanted = wanted;
}

/* kb_shown() of a trace that has `wanted`. */
const struct kb_walk *kb_shown_part(struct kb_trace *trace);

/*
 * The current record as it is to be written, up to the next record. If only some of its slices are
 * wanted, the type of its event is KB_EVENT_UNKNOWN. NULL: nothing of it is wanted.
 */
static inline const struct kb_walk *kb_shown(struct kb_trace *trace)
{
	if (kb_unlikely(trace->wanted != NULL))
		return kb_shown_part(trace);
	trace->nr_shown++;
	return &trace->walk;
}

/*
 * Whether the current record is to be written, for exports that write no slices: call it once for each
 * record, if at all.
 */
static inline bool kb_is_shown(struct kb_trace *trace)
{
	bool shown = !trace->wanted || kb_wanted_record(trace->wanted, &trace->walk);

	trace->nr_shown += shown;
	return shown;
}

/* kb_trace_end(), of the slices that are wanted. */
bool kb_shown_end(struct kb_trace *trace, struct kb_slice *slice);

/* kb_trace_first() and kb_trace_last(), of the time that is wanted. */
int64_t kb_shown_first(const struct kb_trace *trace);
int64_t kb_shown_last(const struct kb_trace *trace);

bool kb_is_shown_wait(const struct kb_trace *trace, const struct kb_wait *wait);
/* Of the woken task or its waker, on the CPU where it runs then; both ends are in the time. */
bool kb_is_shown_arrow(const struct kb_trace *trace, const struct kb_arrow *arrow);
/* Both ends are in the time. */
bool kb_is_shown_handler(const struct kb_trace *trace, const struct kb_handler *handler);

#endif
