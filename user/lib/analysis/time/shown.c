// SPDX-License-Identifier: MIT
/* See shown.h. */
#include "analysis/time/shown.h"

int64_t kb_shown_first(const struct kb_trace *trace)
{
	int64_t first = kb_trace_first(trace), last = kb_trace_last(trace);

	if (!trace->wanted || !trace->wanted->filter.has_time)
		return first;
	first = kb_wanted_from(trace->wanted);
	return first < last ? first : last;
}

int64_t kb_shown_last(const struct kb_trace *trace)
{
	int64_t last = kb_trace_last(trace), until;

	if (!trace->wanted || !trace->wanted->filter.has_time)
		return last;
	until = kb_wanted_until(trace->wanted);
	return until < last ? until : last;
}

/* Cuts @slice to the wanted time; false: nothing is left of it. */
static bool cut(const struct kb_wanted *wanted, struct kb_slice *slice)
{
	int64_t from = kb_wanted_from(wanted), until = kb_wanted_until(wanted);

	/* One of no length is wanted at the borders, too. */
	if (slice->start < from) {
		if (slice->end <= from)
			return false;
		slice->start = from;
	}
	if (slice->end > until) {
		if (slice->start >= until)
			return false;
		slice->end = until;
		slice->how = KB_END_CAPTURE;
		slice->prev_state = KB_STATE_UNKNOWN;
	}
	return true;
}

/* @timestamp: ticks at which the task has the name that is written. */
static bool is_slice_shown(const struct kb_wanted *wanted, struct kb_slice *slice,
			   uint64_t timestamp)
{
	if (!kb_wanted_cpu(wanted, slice->core))
		return false;
	/* Nobody knows which task had the lost records. */
	if (kb_wanted_has_task(wanted) && slice->kind != KB_SLICE_LOST &&
	    !(slice->has_task && kb_wanted_task(wanted, slice->task_id, timestamp)))
		return false;
	return !wanted->filter.has_time || cut(wanted, slice);
}

static void hide_others(const struct kb_wanted *wanted, struct kb_walk *shown)
{
	struct kb_event *event = &shown->event;

	if (!kb_wanted_task(wanted, event->task_id, event->timestamp))
		event->task_id = 0;
	if (!kb_wanted_task(wanted, shown->running, event->timestamp))
		shown->running = 0;
	for (unsigned int i = 0; i < shown->nr_slices; i++)
		shown->slices[i].next_task = event->task_id;
}

/* Only slices of the record are wanted, which may be cut, and its time is none that is wanted. */
static void hide_record(const struct kb_trace *trace, struct kb_walk *shown)
{
	shown->event.type = KB_EVENT_UNKNOWN;
	if (shown->ns > kb_shown_last(trace))
		shown->ns = kb_shown_last(trace);
}

const struct kb_walk *kb_shown_part(struct kb_trace *trace)
{
	const struct kb_wanted *wanted = trace->wanted;
	const struct kb_walk *walk = &trace->walk;
	struct kb_walk *shown = &trace->shown;
	bool record = kb_wanted_record(wanted, walk);

	shown->nr_slices = 0;
	for (unsigned int i = 0; i < walk->nr_slices; i++) {
		struct kb_slice *slice = &shown->slices[shown->nr_slices];

		*slice = walk->slices[i];
		shown->nr_slices += is_slice_shown(wanted, slice, walk->event.timestamp);
	}
	trace->nr_shown += record;
	if (!record && !shown->nr_slices)
		return NULL;
	shown->event = walk->event;
	shown->ns = walk->ns;
	shown->known = walk->known;
	shown->running = walk->running;
	if (!record)
		hide_record(trace, shown);
	else if (walk->event.type == KB_EVENT_TASK_SWITCH && kb_wanted_has_task(wanted))
		hide_others(wanted, shown);
	return shown;
}

bool kb_shown_end(struct kb_trace *trace, struct kb_slice *slice)
{
	while (kb_trace_end(trace, slice))
		if (!trace->wanted || is_slice_shown(trace->wanted, slice, UINT64_MAX))
			return true;
	return false;
}

bool kb_is_shown_wait(const struct kb_trace *trace, const struct kb_wait *wait)
{
	return !trace->wanted || kb_wanted_wait(trace->wanted, wait);
}

bool kb_is_shown_arrow(const struct kb_trace *trace, const struct kb_arrow *arrow)
{
	const struct kb_wanted *wanted = trace->wanted;

	return !wanted ||
	       (kb_wanted_cpu(wanted, arrow->to_core) && kb_wanted_time(wanted, arrow->from) &&
		kb_wanted_time(wanted, arrow->to) &&
		(kb_wanted_task(wanted, arrow->task_id, arrow->timestamp) ||
		 kb_wanted_task(wanted, arrow->waker, arrow->timestamp)));
}

bool kb_is_shown_handler(const struct kb_trace *trace, const struct kb_handler *handler)
{
	const struct kb_wanted *wanted = trace->wanted;

	return !wanted ||
	       (kb_wanted_cpu(wanted, handler->core) && kb_wanted_time(wanted, handler->start) &&
		kb_wanted_time(wanted, handler->end) &&
		kb_wanted_task(wanted, handler->task_id, handler->timestamp));
}
