/* SPDX-License-Identifier: MIT */
/*
 * The walk over a trace that the exports share. An export defines SINK, its own struct, which begins
 * with KB_RUN (run.h), includes this file behind it, and has one constant table of functions: what it
 * shows. The walk is inlined into it, so what an export does not show costs nothing.
 *
 * A record is shown if it is wanted (shown.h), in this order: what ended with it, and then the record.
 * What a kind of detail is, and that values of other kinds are those of their series, stands here: an
 * export that does not know a kind shows its series.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/run.h"
#include "format/wire.h"

/* Each of them may be NULL. @x has the trace, whose walk is the record before it was cut to what is wanted. */
struct sink {
	unsigned int uses;		/* bits of enum kb_uses */
	int (*begin)(SINK *x);		/* in front of the first record */
	int (*end)(SINK *x);		/* behind the last one; both return 0 or what run() returns */
	void (*release)(SINK *x);	/* in any case */

	void (*before)(SINK *x, const struct kb_walk *walk);	/* each record that is shown */
	void (*after)(SINK *x);					/* each record */

	/*
	 * A slice: any, or one of its kind. @event ends it; its timestamp is the time at which the task
	 * has the name to write.
	 */
	void (*slice)(SINK *x, const struct kb_slice *slice, const struct kb_event *event);
	void (*ran)(SINK *x, const struct kb_slice *slice, const struct kb_event *event);
	void (*idled)(SINK *x, const struct kb_slice *slice);
	void (*lost)(SINK *x, const struct kb_slice *slice);

	/* With pairs: the woken task runs; a handler of an interrupt has ended. */
	void (*woken)(SINK *x, const struct kb_arrow *wakeup);
	void (*handled)(SINK *x, const struct kb_handler *handler);
	/* A wait that is over; its mark is a node. @context is the struct of the export. */
	void (*waited)(void *context, const struct kb_wait *wait);

	void (*switched)(SINK *x, const struct kb_walk *walk);
	void (*halt)(SINK *x, const struct kb_walk *walk);
	/* With what is read: a sample that is the first to show who runs on its CPU. */
	void (*found)(SINK *x, const struct kb_walk *walk);
	/* Each sample; one with an address, and the node of its chain. @known: its counters with names. */
	void (*sample)(SINK *x, const struct kb_walk *walk, uint32_t known);
	void (*call)(SINK *x, const struct kb_walk *walk, uint32_t known, uint32_t node);
	/* A counter of a sample, unless it could not be read. @id: its number among all names. */
	void (*counter)(SINK *x, const struct kb_walk *walk, uint32_t id, uint64_t value);
	/* A value that is about something, with pairs none that is shown as one. False: it is a value. */
	bool (*detail)(SINK *x, const struct kb_walk *walk, uint32_t from);
	/* A value of series @id. */
	void (*series)(SINK *x, const struct kb_walk *walk, uint32_t id, uint64_t value);
	void (*mark)(SINK *x, const struct kb_walk *walk);
};

static kb_always_inline void sink_slice(SINK *x, const struct sink *sink, const struct kb_slice *slice,
					const struct kb_event *event)
{
	if (sink->slice)
		sink->slice(x, slice, event);
	if (sink->ran && slice->kind == KB_SLICE_RUN)
		sink->ran(x, slice, event);
	if (sink->idled && slice->kind == KB_SLICE_IDLE)
		sink->idled(x, slice);
	if (sink->lost && slice->kind == KB_SLICE_LOST)
		sink->lost(x, slice);
}

static kb_always_inline void sink_pairs(SINK *x, const struct sink *sink)
{
	struct kb_handler handler;
	struct kb_arrow wakeup;
	int woken = kb_arrows_feed(&x->wakeups, &x->trace->walk, &wakeup);
	int handled = kb_handlers_feed(&x->handlers, &x->trace->walk, &handler);

	x->no_memory |= woken < 0 || handled < 0;
	if (woken > 0 && kb_is_shown_arrow(x->trace, &wakeup))
		sink->woken(x, &wakeup);
	if (handled > 0 && kb_is_shown_handler(x->trace, &handler))
		sink->handled(x, &handler);
}

static kb_always_inline void sink_call(SINK *x, const struct sink *sink, const struct kb_walk *walk,
				       uint32_t known)
{
	int64_t node = kb_stack_table_add(&x->stacks, &walk->event, x->trace->symbolizer);

	x->no_memory |= node < 0;
	if (!x->no_memory)
		sink->call(x, walk, known, (uint32_t)node);
}

static kb_always_inline void sink_sample(SINK *x, const struct sink *sink, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint32_t known = kb_names_of_core(x->trace->names, event->core), i;

	if (known > event->sample.nr_counters)
		known = event->sample.nr_counters;
	if (sink->found && kb_read_found(&x->read, x->trace, walk))
		sink->found(x, walk);
	if (sink->sample)
		sink->sample(x, walk, known);
	if (sink->call && event->sample.has_pc)
		sink_call(x, sink, walk, known);
	for (i = 0; sink->counter && i < known; i++)
		if (event->sample.counters[i] != KB_COUNTER_INVALID)
			sink->counter(x, walk, kb_names_counter_id(x->trace->names, event->core, i),
				      event->sample.counters[i]);
	for (i = 0; sink->series && i < event->sample.nr_custom; i++)
		sink->series(x, walk, event->sample.custom[i].id, event->sample.custom[i].value);
}

static kb_always_inline void sink_value(SINK *x, const struct sink *sink, const struct kb_walk *walk,
					int64_t from)
{
	const struct kb_event *event = &walk->event;
	uint8_t what = event->custom_counter.what;

	if (sink->uses & KB_USES_PAIRS && kb_is_of_pair(what))
		return;
	if (what != KB_WHAT_VALUE && sink->detail && sink->detail(x, walk, (uint32_t)from))
		return;
	if (sink->series)
		sink->series(x, walk, event->custom_counter.counter, event->custom_counter.value);
}

static kb_always_inline void sink_event(SINK *x, const struct sink *sink, const struct kb_walk *walk,
					int64_t from)
{
	switch (walk->event.type) {
	case KB_EVENT_TASK_SWITCH:
		if (sink->switched)
			sink->switched(x, walk);
		break;
	case KB_EVENT_HALT:
		if (sink->halt)
			sink->halt(x, walk);
		break;
	case KB_EVENT_SAMPLE:
		sink_sample(x, sink, walk);
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		sink_value(x, sink, walk, from);
		break;
	case KB_EVENT_ANNOTATION:
		if (sink->mark)
			sink->mark(x, walk);
		break;
	case KB_EVENT_UNKNOWN:
		break;
	}
}

/* The record as it is to be shown; NULL: nothing of it is. */
static kb_always_inline const struct kb_walk *sink_shown(SINK *x, const struct sink *sink)
{
	const struct kb_event *event = &x->trace->walk.event;

	if (sink->uses & KB_USES_NO_RECORDS)
		return NULL;
	if (sink->uses & KB_USES_CALLS_ALONE &&
	    (event->type != KB_EVENT_SAMPLE || !event->sample.has_pc))
		return NULL;
	return kb_shown(x->trace);
}

static kb_always_inline void sink_record(SINK *x, const struct sink *sink)
{
	const struct kb_walk *walk;
	int64_t from = 0;

	if (sink->uses & KB_USES_MOVES)
		from = kb_task_cpus_feed(&x->moves, &x->trace->walk.event);
	x->no_memory |= from < 0;
	walk = sink_shown(x, sink);
	if (walk && sink->before)
		sink->before(x, walk);
	if (sink->uses & KB_USES_TIMES || sink->waited)
		kb_run_feed(&x->run, sink->uses);
	for (unsigned int i = 0; walk && i < walk->nr_slices; i++)
		sink_slice(x, sink, &walk->slices[i], &walk->event);
	if (sink->uses & KB_USES_PAIRS)
		sink_pairs(x, sink);
	if (walk)
		sink_event(x, sink, walk, from);
	if (sink->after)
		sink->after(x);
}

static kb_always_inline int sink_next(SINK *x, const struct sink *sink)
{
	const struct kb_walk *walk;

	return sink->uses & KB_USES_RUNNING ? kb_trace_next(x->trace, &walk, x->err) :
					      trace_next(x->trace, x->err);
}

static kb_always_inline void sink_walk(SINK *x, const struct sink *sink)
{
	static const struct kb_event at_end = { .timestamp = UINT64_MAX };
	struct kb_slice slice;

	while (!x->out->error && !x->no_memory && sink_next(x, sink) > 0)
		sink_record(x, sink);
	if (sink->waited) {
		kb_stack_waits_end(&x->waits, x->trace);
		x->no_memory |= x->waits.no_memory;
	}
	while (kb_shown_end(x->trace, &slice))	/* to the end, so that the last time is known */
		sink_slice(x, sink, &slice, &at_end);
}

/* All of an export, after kb_run_init(). */
static kb_always_inline int sink_run(SINK *x, const struct sink *sink)
{
	int ret;

	x->waits.take = sink->waited;
	ret = kb_run_begin(&x->run, sink->uses) ?: sink->begin ? sink->begin(x) : 0;
	if (!ret) {
		sink_walk(x, sink);
		ret = sink->end ? sink->end(x) : 0;
		ret = ret ?: kb_export_end(x->trace, x->out, x->no_memory, x->err);
	}
	if (sink->release)
		sink->release(x);
	kb_run_release(&x->run);
	return ret;
}

/* The same with a new @x. */
static kb_always_inline int sink_start(const struct sink *sink, struct kb_trace *trace,
				       const struct kb_export_options *options, struct kb_out *out,
				       struct kb_error *err)
{
	SINK *x = calloc(1, sizeof(*x));
	int ret;

	if (!x)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_run_init(&x->run, trace, options, out, err);
	ret = sink_run(x, sink);
	free(x);
	return ret;
}

static const struct sink sink;

/* kb_export.run() of an export whose table is called `sink`. */
static inline int sink_export(struct kb_trace *trace, const struct kb_export_options *options,
			      struct kb_out *out, struct kb_error *err)
{
	return sink_start(&sink, trace, options, out, err);
}
