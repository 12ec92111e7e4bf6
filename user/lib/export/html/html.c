// SPDX-License-Identifier: MIT
/*
 * A capture as one HTML file that shows the timeline of every CPU, a table of tasks and a flame
 * graph. It needs no network and no other files.
 *
 * The page is in html/; scripts/embed turns it into C. Events are written into the page while
 * the capture is read, and behind them the tables to which events refer by number. So memory
 * grows only with tasks and different call chains. Events are base64 of numbers with 7 bits in
 * a byte, lowest bits first (varints). Times are differences with their sign in the lowest bit
 * (zigzag):
 *
 *	CPU << 3 | kind		then, depending on the kind:
 *	RUN	gap, length, task << 2 | how it ended: 1 preempted, 2 blocked, 0 otherwise,
 *		3 one of the former of which more is known; then the node of its call chain << 2 |
 *		2 if blocked for an object | 1 if blocked, and in that case the object
 *	IDLE	gap, length, idle state + 1, 0 = unknown
 *	LOST	gap, length, records
 *	SAMPLE	time, task, node of its chain, the first counter's value + 1, 0 = none
 *	COUNTER	time, counter, value
 *	SERIES	time, series, value
 *	MARK	time, task, type, channel, colour, length, UTF-8
 *	SOURCE	time, 0, length, task, handler, handlers around it
 *		time, 1, length, waker, woken task, the CPU where it runs then, context
 *
 * A SOURCE is a handler of an interrupt or softirq, or the time from a wakeup to the moment in
 * which the woken task runs.
 *
 * A gap is the time since the previous slice of the CPU. Other times are since the previous
 * event of that kind on that CPU. The first time of each is since the start of the capture's
 * clock. Events without a CPU have the number behind the last CPU.
 *
 * A page of more than THINNED_FROM records is thinned, because no browser holds all of them. It does
 * not say how long tasks waited, so its switches have no call chains. Its element `events` is empty.
 * Elements of these classes, in base64 of gzip, have in its place:
 *
 *	piece	all events of some time, in the order of the capture, but for marks; each begins anew
 *		with times since the start of the clock. The fields of one column (kinds.h)
 *		of all events are together, behind the number of their bytes
 *	overview, sums	of the piece before it
 *	group	the sums of 16 pieces, behind the last of them
 *	all	the sums of the capture
 *
 * sums.h says what sums are. An overview has the time of a CPU in cells of 2^n ns (`thinned` of the
 * tables) with exact sums. It begins anew, too:
 *
 *	CPU << 4 | kind
 *	RUN, IDLE, LOST	as above: slices that are as long as a cell, and all that is lost
 *	CELL	gap, length, running time, task of its longest run + 1 (0 = none), slices
 *	CROSSING	time, length, kind, and the last field of this kind: a slice that ends in the piece
 *		and began before it; it is elsewhere, too
 *	SAMPLE	time, task, node of the first one, samples, those of them in the kernel
 *	COUNTER, SERIES	as above: of what adds up the first value and the sum of the others where the
 *		last one is; of others the first, the largest, the smallest and the last value
 *	SOURCE	as above, the longest one, and the number of all
 *	MARK	as above: all of them
 *
 * Behind them are its first time, its last time and the number of its events, with 8 bytes each. So
 * the sums of any time are known exactly from those of the pieces inside of it, the slices that
 * cross their borders, and the events of the two pieces at its ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/losses_read.h"
#include "analysis/latency/waited.h"
#include "analysis/samples/metric_choice.h"
#include "analysis/time/idle.h"
#include "analysis/time/origin.h"
#include "base/array.h"
#include "base/io/out_packet.h"
#include "base/table.h"
#include "base/text/json.h"
#include "export/html/thin.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "metrics/formula.h"

extern const char *const kb_html_page[];	/* the parts before, between and behind the data */

#define THINNED_FROM	(4U << 20)	/* records; more of them become a thinned page */
#define RECORD_BYTES	20U		/* fewer than a record has */
#define METRICS_MAX	32		/* of the page */
#define OBJECTS_MAX	16384U		/* then one for all others of a kind and a call */
#define OTHERS		(1ULL << 33)	/* in the second word of a key: it is such a one */

/* A handler with its number in the page. */
struct shown_handler {
	uint64_t key;		/* kb_origin_key() */
	struct kb_origin origin;
};

/* What tasks wait for; its holder is the number of a task in the page + 1. */
struct shown_object {
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row;
};

struct html {
	KB_RUN;
	const struct kb_tasks *names_of_tasks;
	struct kb_table objects;	/* struct shown_object */
	struct kb_table shown_handlers;	/* struct shown_handler */
	int64_t (*last)[KB_HTML_EVENTS];	/* previous time by CPU and kind; one more row is
					 * for events without a CPU; slices of all kinds use RUN */
	struct kb_html_thin *thin;	/* NULL: all events are in the page as they are */
	struct kb_html_thin pieces;	/* what `thin` is */
	uint64_t lost;
	uint32_t filled;		/* bytes of `bytes` in use */
	uint8_t bytes[KB_HTML_CHUNK + KB_HTML_EVENT_BYTES + KB_HTML_TEXT];
};

#define SINK struct html
#include "export/sink.h"

/* ---- the stream ---- */

static void flush(struct html *x, uint32_t length)
{
	kb_html_line(x->out, x->bytes, length);
	x->filled -= length;
	memmove(x->bytes, x->bytes + length, x->filled);
}

static void put_field(struct html *x, enum kb_html_column column, uint64_t value)
{
	if (x->thin)
		kb_html_thin_put(x->thin, column, value);
	else
		x->filled = (uint32_t)(kb_proto_put_varint(x->bytes + x->filled, value) - x->bytes);
}

/* The number in the page of a core. */
static uint32_t cpu_of(const struct html *x, uint32_t core)
{
	return core < x->header->max_cores ? core : x->header->max_cores;
}

/* Begin an event with its time; @clock: the kind whose previous time counts. */
static void begin(struct html *x, enum kb_html_kind kind, uint32_t cpu, enum kb_html_column column,
		  enum kb_html_kind clock, int64_t time)
{
	put_field(x, KB_HTML_TAG, (uint64_t)cpu << 3 | kind);
	put_field(x, column, kb_html_time(&x->last[cpu][clock], time));
}

static void end(struct html *x)
{
	if (x->filled >= KB_HTML_CHUNK)
		flush(x, KB_HTML_CHUNK);
}

static uint32_t task_number(struct html *x, uint32_t task_id, uint64_t timestamp)
{
	int64_t number = kb_task_table_find(&x->tasks, task_id, timestamp);

	x->no_memory |= number < 0;
	return number < 0 ? 0 : (uint32_t)number;
}

/* ---- events ---- */

static void put_thin_slice(struct html *x, const struct kb_html_slice *slice)
{
	bool busy = slice->kind == KB_HTML_RUN &&
		    kb_task_id(&x->tasks, (uint32_t)(slice->what >> 2))->key[0];

	kb_html_thin_slice(x->thin, slice, busy);
}

/* The node of the call chain with which the task of @slice left its CPU at @event; 0 = none. */
static uint32_t left_at(struct html *x, const struct kb_slice *slice, const struct kb_event *event)
{
	struct kb_event left;
	int64_t node;

	if (x->thin || event->type != KB_EVENT_TASK_SWITCH ||
	    !event->task_switch.nr_chain || !slice->has_task || !slice->task_id ||
	    (slice->how != KB_END_PREEMPTED && slice->how != KB_END_BLOCKED))
		return 0;
	left = *event;
	left.task_id = slice->task_id;		/* the chain is of the one that leaves */
	node = kb_stack_table_add(&x->stacks, &left, x->trace->symbolizer);
	x->no_memory |= node < 0;
	return node < 0 ? 0 : (uint32_t)node;
}

/* The number + 1 of what the task of @slice waits for from @event on; 0: nothing, or not known. */
static uint32_t object_at(struct html *x, const struct kb_slice *slice,
			  const struct kb_event *event)
{
	const struct kb_object *object = &event->task_switch.object;
	const struct kb_names *names = x->trace->names;
	struct shown_object *shown;
	struct kb_waits_row row;
	uint64_t key[KB_WAITED_KEY];
	uint32_t holder;

	if (!kb_waited_begins(event, slice) || object->kind == KB_OBJECT_NONE)
		return 0;
	row = kb_waited(names, x->names_of_tasks, object, slice->task_id, event->timestamp);
	kb_waited_unite(&row, object, key);
	holder = kb_waited_is_lock(row.object) ? kb_names_object_id(names, event, slice->task_id) : 0;
	row.holder = holder ? task_number(x, holder, event->timestamp) + 1 : 0;
	key[0] |= (uint64_t)row.holder << 32;
	if (x->objects.nr >= OBJECTS_MAX && !kb_table_find(&x->objects, key)) {
		row = (struct kb_waits_row){ .call = row.call, .object = row.object, .iowait = row.iowait,
					     .outside = row.outside, .others = true };
		key[0] = key[2] = 0;
		key[1] |= OTHERS;
	}
	shown = kb_table_get(&x->objects, key);
	if (!shown) {
		x->no_memory = true;
		return 0;
	}
	shown->row = row;
	return (uint32_t)(((char *)shown - x->objects.rows) / x->objects.row_size) + 1;
}

static void put_slice(struct html *x, const struct kb_slice *slice, const struct kb_event *event)
{
	static const enum kb_html_column columns[] = {
		[KB_SLICE_RUN] = KB_HTML_RUN_TASK,
		[KB_SLICE_IDLE] = KB_HTML_IDLE_STATE,
		[KB_SLICE_LOST] = KB_HTML_LOST_RECORDS,
	};
	static const enum kb_html_kind kinds[] = {
		[KB_SLICE_RUN] = KB_HTML_RUN,
		[KB_SLICE_IDLE] = KB_HTML_IDLE,
		[KB_SLICE_LOST] = KB_HTML_LOST,
	};
	struct kb_html_slice shown = {
		.kind = kinds[slice->kind], .cpu = cpu_of(x, slice->core),
		.start = slice->start, .end = slice->end,
	};
	bool blocked = slice->how == KB_END_BLOCKED;
	uint32_t node = 0, object = 0;

	switch (slice->kind) {
	case KB_SLICE_RUN:
		node = left_at(x, slice, event);
		object = object_at(x, slice, event);
		shown.what = (uint64_t)task_number(x, slice->task_id, event->timestamp) << 2 |
			     (blocked ? 2 : slice->how == KB_END_PREEMPTED);
		break;
	case KB_SLICE_IDLE:
		shown.what = (uint64_t)slice->idle_state + 1;	/* KB_STATE_UNKNOWN is -1 */
		break;
	case KB_SLICE_LOST:
		shown.what = slice->lost;
		x->lost += slice->lost;
		break;
	}
	begin(x, shown.kind, shown.cpu, KB_HTML_SLICE_GAP, KB_HTML_RUN, shown.start);
	put_field(x, KB_HTML_SLICE_LENGTH, (uint64_t)shown.end - (uint64_t)shown.start);
	x->last[shown.cpu][KB_HTML_RUN] = shown.end;
	put_field(x, columns[slice->kind], shown.what | (node || object ? 3 : 0));
	if (node || object)
		put_field(x, columns[slice->kind], (uint64_t)node << 2 | (object ? 2 : 0) | blocked);
	if (object)
		put_field(x, columns[slice->kind], object - 1);
	end(x);
	if (x->thin && !x->no_memory)
		put_thin_slice(x, &shown);
}

static void put_value(struct html *x, enum kb_html_kind kind, uint32_t core, int64_t ns,
		      uint32_t id, uint64_t value)
{
	struct kb_html_value shown = {
		.kind = kind, .cpu = cpu_of(x, core), .id = id, .ns = ns, .value = value,
	};
	bool is_series = kind == KB_HTML_SERIES;

	begin(x, kind, shown.cpu, is_series ? KB_HTML_SERIES_TIME : KB_HTML_COUNTER_TIME, kind, ns);
	put_field(x, is_series ? KB_HTML_SERIES_ID : KB_HTML_COUNTER_ID, id);
	put_field(x, is_series ? KB_HTML_SERIES_VALUE : KB_HTML_COUNTER_VALUE, value);
	end(x);
	if (!x->thin)
		return;
	shown.adds_up = kind == KB_HTML_COUNTER ||
			(id < x->header->nr_series && kb_series_adds_up(&x->header->series[id]));
	kb_html_thin_value(x->thin, &shown);
}

static void put_call(struct html *x, const struct kb_walk *walk, uint32_t known, uint32_t node)
{
	const struct kb_event *event = &walk->event;
	struct kb_html_sample shown = {
		.cpu = cpu_of(x, event->core), .ns = walk->ns, .node = node,
		.task = task_number(x, event->task_id, event->timestamp),
		/* invalid is ~0 */
		.weight = known && kb_names_one_weight(x->trace->names) ?
			  event->sample.counters[0] + 1 : 0,
	};

	begin(x, KB_HTML_SAMPLE, shown.cpu, KB_HTML_SAMPLE_TIME, KB_HTML_SAMPLE, shown.ns);
	put_field(x, KB_HTML_SAMPLE_TASK, shown.task);
	put_field(x, KB_HTML_SAMPLE_NODE, shown.node);
	put_field(x, KB_HTML_SAMPLE_WEIGHT, shown.weight);
	end(x);
	if (!x->thin)
		return;
	shown.kernel = kb_stack_node(&x->stacks, shown.node)->kernel;
	kb_html_thin_sample(x->thin, &shown);
}

static void put_counter(struct html *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	put_value(x, KB_HTML_COUNTER, walk->event.core, walk->ns, id, value);
}

/* A frequency is of the CPU that it is about, which need not be the one that wrote it. */
static void put_series(struct html *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	bool frequency = walk->event.type == KB_EVENT_CUSTOM_COUNTER &&
			 walk->event.custom_counter.what == KB_WHAT_FREQUENCY;

	put_value(x, KB_HTML_SERIES, frequency ? walk->event.custom_counter.cpu : walk->event.core,
		  walk->ns, id, value);
}

/* Requests for softirqs are not shown; all other details are values. */
static bool put_detail(struct html *x, const struct kb_walk *walk, uint32_t from)
{
	(void)x;
	(void)from;
	return walk->event.custom_counter.what == KB_WHAT_SOFTIRQ_RAISE;
}

static void put_mark(struct html *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	char text[KB_HTML_TEXT];
	struct kb_html_mark shown = {
		.cpu = cpu_of(x, event->core), .ns = walk->ns, .text = text,
		.task = task_number(x, event->task_id, event->timestamp),
		.type = event->annotation.type,
		.channel = event->annotation.channel,
		.colour = event->annotation.colour,
		.length = kb_label(text, sizeof(text), event->annotation.text,
				   event->annotation.text_length, false),
	};

	if (x->thin) {
		kb_html_thin_mark(x->thin, &shown);
		return;
	}
	begin(x, KB_HTML_MARK, shown.cpu, KB_HTML_MARK_FIELD, KB_HTML_MARK, shown.ns);
	put_field(x, KB_HTML_MARK_FIELD, shown.task);
	put_field(x, KB_HTML_MARK_FIELD, shown.type);
	put_field(x, KB_HTML_MARK_FIELD, shown.channel);
	put_field(x, KB_HTML_MARK_FIELD, shown.colour);
	put_field(x, KB_HTML_MARK_FIELD, shown.length);
	memcpy(x->bytes + x->filled, text, shown.length);
	x->filled += (uint32_t)shown.length;
	end(x);
}

static uint32_t handler_number(struct html *x, const struct kb_handler *handler)
{
	uint64_t key = kb_origin_key(&handler->origin);
	struct shown_handler *shown = kb_table_get(&x->shown_handlers, &key);

	if (!shown) {
		x->no_memory = true;
		return 0;
	}
	shown->origin = handler->origin;
	return (uint32_t)(((char *)shown - x->shown_handlers.rows) / x->shown_handlers.row_size);
}

static void begin_source(struct html *x, uint32_t cpu, enum kb_html_source source, int64_t start,
			 int64_t end_of_it)
{
	begin(x, KB_HTML_SOURCE, cpu, KB_HTML_SOURCE_TIME, KB_HTML_SOURCE, start);
	put_field(x, KB_HTML_SOURCE_WHICH, source);
	put_field(x, KB_HTML_SOURCE_LENGTH, (uint64_t)end_of_it - (uint64_t)start);
}

static void put_handler(struct html *x, const struct kb_handler *handler)
{
	struct kb_html_handler shown = {
		.cpu = cpu_of(x, handler->core), .start = handler->start, .end = handler->end,
		.task = task_number(x, handler->task_id, handler->timestamp),
		.number = handler_number(x, handler), .depth = handler->depth,
	};

	begin_source(x, shown.cpu, KB_HTML_HANDLER, shown.start, shown.end);
	put_field(x, KB_HTML_HANDLER_TASK, shown.task);
	put_field(x, KB_HTML_HANDLER_NUMBER, shown.number);
	put_field(x, KB_HTML_HANDLER_DEPTH, shown.depth);
	end(x);
	if (x->thin)
		kb_html_thin_handler(x->thin, &shown);
}

static void put_wakeup(struct html *x, const struct kb_arrow *wakeup)
{
	uint32_t waker = task_number(x, wakeup->waker, wakeup->timestamp);
	uint32_t woken = task_number(x, wakeup->task_id, wakeup->timestamp);
	struct kb_html_wakeup shown = {
		.cpu = cpu_of(x, wakeup->from_core), .from = wakeup->from,
		/* The clocks of CPUs may differ. */
		.to = wakeup->to > wakeup->from ? wakeup->to : wakeup->from,
		.waker = waker, .woken = woken,
		.to_cpu = wakeup->to_core, .context = wakeup->context,
	};

	begin_source(x, shown.cpu, KB_HTML_WAKEUP, shown.from, shown.to);
	put_field(x, KB_HTML_WAKEUP_WAKER, shown.waker);
	put_field(x, KB_HTML_WAKEUP_WOKEN, shown.woken);
	put_field(x, KB_HTML_WAKEUP_CPU, shown.to_cpu);
	put_field(x, KB_HTML_WAKEUP_CONTEXT, shown.context);
	end(x);
	if (x->thin)
		kb_html_thin_wakeup(x->thin, &shown);
}

/* ---- the tables ---- */

static void put_facts(struct html *x, struct kb_json *json)
{
	static const char *const keys[] = { "host", "release", "command" };
	const char *target = x->header->target_name;
	size_t i;

	kb_json_object(json, "facts");
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		kb_json_string(json, keys[i], kb_barman_fact(x->trace->barman, keys[i]));
	kb_json_string(json, "target", target ? target : "");
	kb_json_u64(json, "cpus", x->header->max_cores);
	kb_json_u64(json, "records", x->trace->nr_shown);
	kb_json_u64(json, "lost", x->lost);
	kb_json_bool(json, "part", x->trace->wanted);
	kb_json_double(json, "epoch", (double)x->header->unix_base_ns / 1e6);
	kb_json_double(json, "first", (double)kb_shown_first(x->trace));
	kb_json_double(json, "last", (double)kb_shown_last(x->trace));
	kb_json_object_end(json);
}

/* [tid, process, name] */
static void put_tasks(struct html *x, struct kb_json *json)
{
	char label[KB_TASK_LABEL];
	uint32_t i;

	kb_json_array(json, "tasks");
	for (i = 0; i < x->tasks.rows.nr; i++) {
		kb_json_array(json, NULL);
		kb_json_u64(json, NULL, kb_task_id(&x->tasks, i)->key[0]);
		kb_json_u64(json, NULL, kb_task_id(&x->tasks, i)->tgid);
		kb_json_text(json, NULL, label, kb_task_label(&x->tasks, i, label));
		kb_json_array_end(json);
	}
	kb_json_array_end(json);
}

/*
 * Frames: [name, image, whether it is in the kernel]; idle: the numbers of those that are the idle
 * loop; nodes: number of the parent and the frame.
 */
static void put_stacks(struct html *x, struct kb_json *json)
{
	char label[KB_STACK_LABEL];
	uint32_t i;

	kb_json_array(json, "frames");
	for (i = 0; i < x->stacks.frames.nr; i++) {
		const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);

		kb_json_array(json, NULL);
		kb_json_text(json, NULL, label, kb_stack_label(&x->stacks, i, label));
		kb_json_string(json, NULL, kb_stack_image(&x->stacks, frame->image)->path);
		kb_json_u64(json, NULL, frame->kernel);
		kb_json_array_end(json);
	}
	kb_json_array_end(json);
	kb_json_array(json, "idle");
	for (i = 0; i < x->stacks.frames.nr; i++) {
		const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);

		if (frame->kernel && kb_idle_name(frame->name))
			kb_json_u64(json, NULL, i);
	}
	kb_json_array_end(json);
	kb_json_array(json, "parents");
	for (i = 0; i < x->stacks.nodes.nr; i++)
		kb_json_u64(json, NULL, kb_stack_node(&x->stacks, i)->parent);
	kb_json_array_end(json);
	kb_json_array(json, "nodes");
	for (i = 0; i < x->stacks.nodes.nr; i++)
		kb_json_u64(json, NULL, i ? kb_stack_node(&x->stacks, i)->frame : 0);
	kb_json_array_end(json);
}

/* [name, what it is a handler of] */
static void put_handlers(struct html *x, struct kb_json *json)
{
	char name[KB_ORIGIN_NAME], clean[KB_ORIGIN_NAME];
	uint32_t i;

	kb_json_array(json, "handlers");
	for (i = 0; i < x->shown_handlers.nr; i++) {
		const struct shown_handler *shown = kb_table_row(&x->shown_handlers, i);

		kb_origin_name(x->trace, &shown->origin, 0, name, sizeof(name));
		kb_json_array(json, NULL);
		kb_json_text(json, NULL, clean,
			     kb_label(clean, sizeof(clean), name, strlen(name), false));
		kb_json_string(json, NULL, kb_origin_kind(shown->origin.kind));
		kb_json_array_end(json);
	}
	kb_json_array_end(json);
}

/* [kind, call, what it is, task that holds it + 1, 1 for a disk | 2 all others | 4 in no call] */
static void put_objects(struct html *x, struct kb_json *json)
{
	char number[KB_LABEL_OBJECT], text[KB_HTML_TEXT], clean[KB_HTML_TEXT];

	if (!x->objects.nr)
		return;
	kb_json_array(json, "objects");
	for (uint32_t i = 0; i < x->objects.nr; i++) {
		const struct kb_waits_row *row = &((struct shown_object *)kb_table_row(&x->objects, i))->row;

		kb_label_object(row, number);
		snprintf(text, sizeof(text), "%s%s%s", number, *number && row->name ? ": " : "", row->name ?: "");
		kb_json_array(json, NULL);
		kb_json_string(json, NULL, kb_object_name(row->object) ?: "other");
		kb_json_string(json, NULL, row->call ?: "");
		kb_json_text(json, NULL, clean, kb_label(clean, sizeof(clean), text, strlen(text), false));
		kb_json_u64(json, NULL, row->holder);
		kb_json_u64(json, NULL, row->iowait | row->others << 1 | row->outside << 2);
		kb_json_array_end(json);
	}
	kb_json_array_end(json);
}

static void put_values(struct html *x, struct kb_json *json)
{
	uint32_t lost = kb_losses_series(x->header), i;

	kb_json_array(json, "counters");
	for (i = 0; i < kb_names_nr_counters(x->trace->names); i++)
		kb_json_text(json, NULL, kb_names_counter(x->trace->names, i).data,
			     kb_names_counter(x->trace->names, i).length);
	kb_json_array_end(json);
	kb_json_array(json, "series");
	for (i = 0; i < x->header->nr_series; i++) {
		const struct kb_series *series = &x->header->series[i];
		uint8_t flags = kb_series_chart_flags(x->header, series);

		kb_json_object(json, NULL);
		kb_json_string(json, "name", series->name ? series->name : "");
		kb_json_string(json, "units", series->units ? series->units : "");
		kb_json_double(json, "multiplier", series->multiplier);
		kb_json_bool(json, "deltas", kb_series_adds_up(series));
		kb_json_bool(json, "percpu", flags & KB_CHART_PER_CPU);
		kb_json_bool(json, "hidden", i == lost);	/* slices show these losses */
		kb_json_object_end(json);
	}
	kb_json_array_end(json);
}

struct step {
	struct kb_json *json;
	const struct kb_report_metric *metric;
	unsigned int nr;
};

static void put_step(void *context, const struct kb_formula_step *step)
{
	struct step *put = context;

	if (step->operator)
		kb_json_text(put->json, NULL, &step->operator, 1);
	else if (!step->name)
		kb_json_double(put->json, NULL, step->number);
	else if (*step->name == '$')
		kb_json_double(put->json, NULL, put->metric->slots);
	else {
		kb_json_array(put->json, NULL);
		kb_json_u64(put->json, NULL, put->metric->ids[put->nr++]);
		kb_json_array_end(put->json);
	}
}

/* The steps of each formula, of numbers, [counter] and operators. The page takes them at any zoom. */
static void put_metrics(struct html *x, struct kb_json *json)
{
	struct kb_report_metric metrics[METRICS_MAX];
	unsigned int nr = kb_metric_choose(x->trace->names, x->trace->barman, "all", false,
					   metrics, METRICS_MAX);

	kb_json_array(json, "metrics");
	for (unsigned int i = 0; i < nr; i++) {
		struct step step = { json, &metrics[i], 0 };

		kb_json_object(json, NULL);
		kb_json_string(json, "name", metrics[i].name);
		kb_json_string(json, "unit", metrics[i].metric->unit);
		kb_json_string(json, "what", metrics[i].metric->what);
		kb_json_array(json, "steps");
		kb_formula_steps(metrics[i].metric->formula, put_step, &step);
		kb_json_array_end(json);
		kb_json_object_end(json);
	}
	kb_json_array_end(json);
}

/* In a page of pieces. */
static void put_thin(const struct html *x, struct kb_json *json)
{
	kb_json_object(json, "thinned");
	kb_json_double(json, "cell", (double)(1ULL << x->thin->cells.shift));
	kb_json_u64(json, "group", KB_HTML_GROUP);
	kb_json_object_end(json);
}

static void put_tail(struct html *x)
{
	struct kb_json json = { .out = x->out, .markup = true };

	kb_out_bytes(x->out, kb_html_page[1], strlen(kb_html_page[1]));
	kb_json_object(&json, NULL);
	put_facts(x, &json);
	put_tasks(x, &json);
	put_stacks(x, &json);
	put_handlers(x, &json);
	put_objects(x, &json);
	put_values(x, &json);
	put_metrics(x, &json);
	if (x->thin)
		put_thin(x, &json);
	kb_json_object_end(&json);
	kb_out_bytes(x->out, kb_html_page[2], strlen(kb_html_page[2]));
}

/* ---- all of it ---- */

static void end_piece(struct html *x, bool is_last)
{
	int error;

	error = is_last ? kb_html_thin_end(x->thin, x->out) :
			  kb_html_thin_end_piece(x->thin, x->out);
	x->no_memory |= error == -ENOMEM;
	memset(x->last, 0, ((size_t)x->header->max_cores + 1) * sizeof(*x->last));
}

/* A piece ends behind the record that fills it. */
static void end_full_piece(struct html *x)
{
	if (x->thin && kb_html_thin_is_full(x->thin))
		end_piece(x, false);
}

/* The number of records that are shown, and their time. It reads the capture. */
static uint64_t count_records(struct kb_trace *trace, int64_t *first, int64_t *last)
{
	uint64_t records = 0;
	struct kb_slice slice;

	while (kb_export_next(trace, NULL))
		records += kb_is_shown(trace);
	while (kb_trace_end(trace, &slice))
		;
	*first = kb_shown_first(trace);
	*last = kb_shown_last(trace);
	return records;
}

/* Whether the capture may have more records than a page can show. A pipe is not asked. */
static bool may_be_long(const struct kb_trace *trace)
{
	const struct kb_source *source = &trace->barman->source;

	return source->kind != KB_SOURCE_STREAM && source->size / RECORD_BYTES >= THINNED_FROM;
}

/* Sets x->thin if the page is to be thinned. */
static int choose(struct html *x)
{
	const char *format = x->options->format;
	bool always = format && !strcmp(format, "thinned");
	int64_t first, last;
	uint64_t records;
	int error;

	if ((format && !strcmp(format, "full")) || (!always && !may_be_long(x->trace)))
		return 0;
	error = kb_barman_keep(x->trace->barman, x->err);
	if (error)
		return error;
	records = count_records(x->trace, &first, &last);
	error = kb_trace_rewind(x->trace, x->err);
	if (error || (records < THINNED_FROM && !always))
		return error;
	x->thin = &x->pieces;
	if (kb_html_thin_init(x->thin, x->header->max_cores, first, last, records))
		return kb_run_no_memory(&x->run);
	return 0;
}

static int begin_page(struct html *x)
{
	int error = choose(x);

	if (error)
		return error;
	x->names_of_tasks = kb_trace_tasks(x->trace, x->err);
	if (!x->names_of_tasks)
		return kb_run_no_memory(&x->run);
	kb_table_init(&x->shown_handlers, sizeof(struct shown_handler), 1);
	kb_table_init(&x->objects, sizeof(struct shown_object), KB_WAITED_KEY);
	x->last = calloc((size_t)x->header->max_cores + 1, sizeof(*x->last));
	if (!x->last)
		return kb_run_no_memory(&x->run);
	kb_out_bytes(x->out, kb_html_page[0], strlen(kb_html_page[0]));
	if (x->thin)
		kb_out_printf(x->out, "</script>\n");
	return 0;
}

static int end_page(struct html *x)
{
	if (x->thin && !x->no_memory)
		end_piece(x, true);
	else
		flush(x, x->filled);
	if (x->thin)
		kb_out_printf(x->out, "<script type=\"text/plain\">\n");
	put_tail(x);
	return 0;
}

static void release(struct html *x)
{
	kb_html_thin_release(&x->pieces);
	free(x->last);
	kb_table_release(&x->shown_handlers);
	kb_table_release(&x->objects);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_PAIRS | KB_USES_RUNNING,
	.begin = begin_page,
	.end = end_page,
	.release = release,
	.after = end_full_piece,
	.slice = put_slice,
	.woken = put_wakeup,
	.handled = put_handler,
	.call = put_call,
	.counter = put_counter,
	.series = put_series,
	.detail = put_detail,
	.mark = put_mark,
};

static const char *const formats[] = { "auto", ".html", "full", ".html", "thinned", ".html", NULL };

const struct kb_export kb_export_html = {
	.name = "html",
	.extension = ".html",
	.description = "one page with timeline, tasks and flame graph, for any browser",
	.formats = formats,
	.run = sink_export,
};
