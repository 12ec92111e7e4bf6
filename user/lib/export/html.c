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
 *	RUN	gap, length, task << 2 | how it ended: 1 preempted, 2 blocked, 0 otherwise
 *	IDLE	gap, length, idle state + 1, 0 = unknown
 *	LOST	gap, length, records
 *	SAMPLE	time, task, node of its chain, the first counter's value + 1, 0 = none
 *	COUNTER	time, counter, value
 *	SERIES	time, series, value
 *	MARK	time, task, type, channel, colour, length, UTF-8
 *	SOURCE	time, 0, length, task, handler, handlers around it
 *		time, 1, length, waker, woken task, the CPU where it runs then, context
 *
 * A SOURCE is a handler of an interrupt or softirq, or the time from a wakeup to the moment in which
 * the woken task runs.
 *
 * A gap is the time since the previous slice of the CPU. Other times are since the previous
 * event of that kind on that CPU. The first time of each is since the start of the capture's
 * clock. Events without a CPU have the number behind the last CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/out_packet.h"
#include "base/table.h"
#include "analysis/losses_read.h"
#include "analysis/metric_choice.h"
#include "analysis/origin.h"
#include "export/label.h"
#include "export/list.h"
#include "export/pairs.h"
#include "export/run.h"
#include "export/stack_table.h"
#include "export/task_table.h"
#include "format/base64.h"
#include "format/protobuf.h"
#include "metrics/formula.h"

extern const char *const kb_html_page[];	/* the parts before, between and behind the data */

#define CHUNK		(3U << 12)	/* bytes: a multiple of 3 */
#define EVENT_BYTES	128U		/* longest event without the text of a mark */
#define METRICS_MAX	32	/* of the page */
#define TEXT		1024U		/* of a mark */

enum source { HANDLER, WAKEUP };

/* A handler with its number in the page. */
struct shown_handler {
	uint64_t key;		/* kb_origin_key() */
	struct kb_origin origin;
};

enum kind {
	RUN,
	IDLE,
	LOST,
	SAMPLE,
	COUNTER,
	SERIES,
	MARK,
	SOURCE,
	NR_KINDS,
};

struct html {
	struct kb_trace *trace;
	const struct kb_header *header;
	struct kb_out *out;
	struct kb_stack_table stacks;
	struct kb_task_table tasks;
	struct kb_table handlers;	/* struct shown_handler */
	struct kb_pairs pairs;
	int64_t (*last)[NR_KINDS];	/* previous time by CPU and kind; one more row is for
					 * events without a CPU; slices of all kinds use RUN */
	uint64_t lost;
	uint32_t filled;		/* bytes of `bytes` in use */
	uint8_t bytes[CHUNK + EVENT_BYTES + TEXT];
	bool no_memory;
};

/* ---- the stream ---- */

static void flush(struct html *x, uint32_t length)
{
	uint8_t *at = kb_out_reserve(x->out, KB_BASE64_BYTES(length) + 1);

	if (!at)
		return;
	kb_base64((char *)at, x->bytes, length);
	at[KB_BASE64_BYTES(length)] = '\n';
	kb_out_commit(x->out, at + KB_BASE64_BYTES(length) + 1);
	x->filled -= length;
	memmove(x->bytes, x->bytes + length, x->filled);
}

static uint8_t *put_time(struct html *x, uint8_t *at, uint32_t cpu, enum kind kind, int64_t time)
{
	int64_t *last = &x->last[cpu][kind];
	uint64_t delta = (uint64_t)time - (uint64_t)*last;

	*last = time;
	return kb_proto_put_varint(at, delta << 1 ^ (uint64_t)((int64_t)delta >> 63));
}

/* Begin an event on @core. */
static uint8_t *begin(struct html *x, enum kind kind, uint32_t core, uint32_t *cpu)
{
	*cpu = core < x->header->max_cores ? core : x->header->max_cores;
	return kb_proto_put_varint(x->bytes + x->filled, (uint64_t)*cpu << 3 | kind);
}

static void end(struct html *x, const uint8_t *at)
{
	x->filled = (uint32_t)(at - x->bytes);
	if (x->filled >= CHUNK)
		flush(x, CHUNK);
}

static uint32_t task_number(struct html *x, uint32_t task_id, uint64_t timestamp)
{
	int64_t number = kb_task_table_find(&x->tasks, task_id, timestamp);

	x->no_memory |= number < 0;
	return number < 0 ? 0 : (uint32_t)number;
}

/* ---- events ---- */

/* @timestamp: ticks at which the task has the name to write. */
static void put_slice(struct html *x, const struct kb_slice *slice, uint64_t timestamp)
{
	static const enum kind kinds[] = {
		[KB_SLICE_RUN] = RUN,
		[KB_SLICE_IDLE] = IDLE,
		[KB_SLICE_LOST] = LOST,
	};
	uint64_t what = 0;
	uint32_t cpu;
	uint8_t *at;

	switch (slice->kind) {
	case KB_SLICE_RUN:
		what = (uint64_t)task_number(x, slice->task_id, timestamp) << 2 |
		       (slice->how == KB_END_PREEMPTED ? 1 : slice->how == KB_END_BLOCKED ? 2 : 0);
		break;
	case KB_SLICE_IDLE:
		what = (uint64_t)slice->idle_state + 1;	/* KB_STATE_UNKNOWN is -1 */
		break;
	case KB_SLICE_LOST:
		what = slice->lost;
		x->lost += slice->lost;
		break;
	}
	at = begin(x, kinds[slice->kind], slice->core, &cpu);
	at = put_time(x, at, cpu, RUN, slice->start);
	at = kb_proto_put_varint(at, (uint64_t)slice->end - (uint64_t)slice->start);
	x->last[cpu][RUN] = slice->end;
	end(x, kb_proto_put_varint(at, what));
}

static void put_value(struct html *x, enum kind kind, uint32_t core, int64_t ns, uint32_t id,
		      uint64_t value)
{
	uint32_t cpu;
	uint8_t *at = begin(x, kind, core, &cpu);

	at = put_time(x, at, cpu, kind, ns);
	end(x, kb_proto_put_varint(kb_proto_put_varint(at, id), value));
}

static void put_sample(struct html *x, const struct kb_event *event, int64_t ns)
{
	uint32_t known = kb_names_of_core(x->trace->names, event->core), cpu, task, i;
	const uint64_t *counters = event->sample.counters;
	int64_t node;
	uint8_t *at;

	if (known > event->sample.nr_counters)
		known = event->sample.nr_counters;
	if (event->sample.has_pc) {
		node = kb_stack_table_add(&x->stacks, event, x->trace->symbolizer);
		task = task_number(x, event->task_id, event->timestamp);
		x->no_memory |= node < 0;
		at = put_time(x, begin(x, SAMPLE, event->core, &cpu), event->core, SAMPLE, ns);
		at = kb_proto_put_varint(kb_proto_put_varint(at, task), (uint64_t)node);
		/* invalid is ~0 */
		end(x, kb_proto_put_varint(at, known && kb_names_one_weight(x->trace->names) ?
					       counters[0] + 1 : 0));
	}
	for (i = 0; i < known; i++)
		if (counters[i] != KB_COUNTER_INVALID)
			put_value(x, COUNTER, event->core, ns,
				  kb_names_counter_id(x->trace->names, event->core, i), counters[i]);
	for (i = 0; i < event->sample.nr_custom; i++)
		put_value(x, SERIES, event->core, ns, event->sample.custom[i].id,
			  event->sample.custom[i].value);
}

static void put_mark(struct html *x, const struct kb_event *event, int64_t ns)
{
	uint32_t task = task_number(x, event->task_id, event->timestamp), cpu;
	uint8_t *at = begin(x, MARK, event->core, &cpu);
	char text[TEXT];
	size_t length = kb_label(text, sizeof(text), event->annotation.text,
				 event->annotation.text_length, false);

	at = put_time(x, at, cpu, MARK, ns);
	at = kb_proto_put_varint(at, task);
	at = kb_proto_put_varint(at, event->annotation.type);
	at = kb_proto_put_varint(at, event->annotation.channel);
	at = kb_proto_put_varint(at, event->annotation.colour);
	at = kb_proto_put_varint(at, length);
	memcpy(at, text, length);
	end(x, at + length);
}

static uint32_t handler_number(struct html *x, const struct kb_handler *handler)
{
	uint64_t key = kb_origin_key(&handler->origin);
	struct shown_handler *shown = kb_table_get(&x->handlers, &key);

	if (!shown) {
		x->no_memory = true;
		return 0;
	}
	shown->origin = handler->origin;
	return (uint32_t)(((char *)shown - x->handlers.rows) / x->handlers.row_size);
}

static uint8_t *begin_source(struct html *x, uint32_t core, enum source source, int64_t start,
			     int64_t end_of_it)
{
	uint32_t cpu;
	uint8_t *at = begin(x, SOURCE, core, &cpu);

	at = kb_proto_put_varint(put_time(x, at, cpu, SOURCE, start), source);
	return kb_proto_put_varint(at, (uint64_t)end_of_it - (uint64_t)start);
}

static void put_handler(struct html *x, const struct kb_handler *handler)
{
	uint32_t task = task_number(x, handler->task_id, handler->timestamp);
	uint32_t number = handler_number(x, handler);
	uint8_t *at = begin_source(x, handler->core, HANDLER, handler->start, handler->end);

	at = kb_proto_put_varint(kb_proto_put_varint(at, task), number);
	end(x, kb_proto_put_varint(at, handler->depth));
}

static void put_wakeup(struct html *x, const struct kb_arrow *wakeup)
{
	uint32_t waker = task_number(x, wakeup->waker, wakeup->timestamp);
	uint32_t woken = task_number(x, wakeup->task_id, wakeup->timestamp);
	/* The clocks of CPUs may differ. */
	int64_t to = wakeup->to > wakeup->from ? wakeup->to : wakeup->from;
	uint8_t *at = begin_source(x, wakeup->from_core, WAKEUP, wakeup->from, to);

	at = kb_proto_put_varint(kb_proto_put_varint(at, waker), woken);
	at = kb_proto_put_varint(at, wakeup->to_core);
	end(x, kb_proto_put_varint(at, wakeup->context));
}

static void put_pairs(struct html *x)
{
	struct kb_paired paired;

	if (kb_pairs_feed(&x->pairs, x->trace, &paired)) {
		x->no_memory = true;
		return;
	}
	if (paired.woken)
		put_wakeup(x, &paired.wakeup);
	if (paired.handled)
		put_handler(x, &paired.handler);
}

/* A value, unless it is shown as a source. */
static void put_custom(struct html *x, const struct kb_event *event, int64_t ns)
{
	uint8_t what = event->custom_counter.what;
	uint32_t core = what == KB_WHAT_FREQUENCY ? event->custom_counter.cpu : event->core;

	switch (what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
	case KB_WHAT_IRQ_ENTRY:
	case KB_WHAT_IRQ_EXIT:
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_IPI_EXIT:
	case KB_WHAT_SOFTIRQ_RAISE:
	case KB_WHAT_SOFTIRQ_ENTRY:
	case KB_WHAT_SOFTIRQ_EXIT:
		return;
	default:
		put_value(x, SERIES, core, ns, event->custom_counter.counter,
			  event->custom_counter.value);
	}
}

static void put_event(struct html *x)
{
	const struct kb_walk *walk = kb_shown(x->trace);
	const struct kb_event *event;
	unsigned int i;

	for (i = 0; walk && i < walk->nr_slices; i++)
		put_slice(x, &walk->slices[i], walk->event.timestamp);
	put_pairs(x);
	if (!walk)
		return;
	event = &walk->event;
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		put_sample(x, event, walk->ns);
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		put_custom(x, event, walk->ns);
		break;
	case KB_EVENT_ANNOTATION:
		put_mark(x, event, walk->ns);
		break;
	default:
		break;
	}
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
 * Frames: [name, image, whether it is in the kernel]; nodes: number of the parent and the
 * frame.
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
	kb_json_array(json, "parents");
	for (i = 0; i < x->stacks.nodes.nr; i++)
		kb_json_u64(json, NULL, kb_stack_node(&x->stacks, i)->parent);
	kb_json_array_end(json);
	kb_json_array(json, "nodes");
	for (i = 0; i < x->stacks.nodes.nr; i++)
		kb_json_u64(json, NULL, kb_stack_node(&x->stacks, i)->frame);
	kb_json_array_end(json);
}

/* [name, what it is a handler of] */
static void put_handlers(struct html *x, struct kb_json *json)
{
	char name[KB_ORIGIN_NAME], clean[KB_ORIGIN_NAME];
	uint32_t i;

	kb_json_array(json, "handlers");
	for (i = 0; i < x->handlers.nr; i++) {
		const struct shown_handler *shown = kb_table_row(&x->handlers, i);

		kb_origin_name(x->trace, &shown->origin, 0, name, sizeof(name));
		kb_json_array(json, NULL);
		kb_json_text(json, NULL, clean,
			     kb_label(clean, sizeof(clean), name, strlen(name), false));
		kb_json_string(json, NULL, kb_origin_kind(shown->origin.kind));
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

static void put_end(struct html *x)
{
	struct kb_json json = { .out = x->out, .markup = true };
	struct kb_slice slice;

	while (kb_shown_end(x->trace, &slice))
		put_slice(x, &slice, UINT64_MAX);
	flush(x, x->filled);
	kb_out_bytes(x->out, kb_html_page[1], strlen(kb_html_page[1]));
	kb_json_object(&json, NULL);
	put_facts(x, &json);
	put_tasks(x, &json);
	put_stacks(x, &json);
	put_handlers(x, &json);
	put_values(x, &json);
	put_metrics(x, &json);
	kb_json_object_end(&json);
	kb_out_bytes(x->out, kb_html_page[2], strlen(kb_html_page[2]));
}

/* ---- all of it ---- */

static int prepare(struct html *x, struct kb_error *err)
{
	int error = kb_export_begin(x->trace, err);

	if (error)
		return error;
	kb_task_table_init(&x->tasks, x->trace);
	kb_table_init(&x->handlers, sizeof(struct shown_handler), 1);
	x->last = calloc((size_t)x->header->max_cores + 1, sizeof(*x->last));
	if (kb_stack_table_init(&x->stacks, false) || !x->last ||
	    kb_pairs_init(&x->pairs, x->trace))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	struct html x = {
		.trace = trace,
		.header = kb_trace_header(trace),
		.out = out,
	};
	int result = prepare(&x, err);

	(void)options;
	if (result)
		goto out;
	kb_out_bytes(out, kb_html_page[0], strlen(kb_html_page[0]));
	while (!kb_out_error(out) && !x.no_memory && kb_export_next(trace, err))
		put_event(&x);
	put_end(&x);
	result = kb_export_end(trace, out, x.no_memory, err);
out:
	free(x.last);
	kb_pairs_release(&x.pairs);
	kb_table_release(&x.handlers);
	kb_stack_table_release(&x.stacks);
	kb_task_table_release(&x.tasks);
	return result;
}

const struct kb_export kb_export_html = {
	.name = "html",
	.extension = ".html",
	.description = "one page with timeline, tasks and flame graph, for any browser",
	.run = run,
};
