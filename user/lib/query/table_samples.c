// SPDX-License-Identifier: MIT
/* Samples, their counters, and the frames of the call chains of samples and switches. */
#include <errno.h>

#include <kbarman/chain.h>

#include "analysis/samples/carry.h"
#include "analysis/time/idle.h"
#include "query/query_put.h"
#include "query/walks.h"

/* ---- what an address means ---- */

const struct kb_frame *query_look_up(const struct query_walk *walk, uint32_t task_id, uint64_t pc)
{
	struct kb_symbolizer *symbolizer = query_file_symbolizer(walk->file, &(struct kb_error){ 0 });
	const struct kb_frame *frames;
	uint32_t nr;

	if (!symbolizer)
		return NULL;
	nr = kb_symbolizer_frames(symbolizer, task_id, walk->event->timestamp, pc, &frames);
	return &frames[nr - 1];
}

enum place_column { PLACE_SYMBOL, PLACE_IMAGE, PLACE_KERNEL, PLACE_SOURCE, PLACE_LINE };

static void put_place(const struct query_walk *walk, struct sqlite3_context *context, uint32_t task_id,
		      uint64_t pc, int which)
{
	const struct kb_frame *frame = query_look_up(walk, task_id, pc);

	if (!frame)
		return;
	switch (which) {
	case PLACE_SYMBOL:
		query_put_text(context, frame->symbol.name[0] ? frame->symbol.name : NULL);
		break;
	case PLACE_IMAGE:
		query_put_text(context, frame->symbol.image);
		break;
	case PLACE_KERNEL:
		query_put_i64(context, frame->symbol.kernel);
		break;
	case PLACE_SOURCE:
		query_put_text(context, frame->file[0] ? frame->file : NULL);
		break;
	default:
		if (frame->line)
			query_put_u64(context, frame->line);
	}
}

/* ---- weights ---- */

/* Samples without a PC carry their counts to the next one with a PC: analysis/samples/carry.h. */
struct weights {
	struct kb_carry *carry;		/* NULL: this capture has none */
	bool seen;			/* a sample was read */
	uint64_t weight;		/* of the current one; KB_COUNTER_INVALID: none */
};

static int create_carry(struct query_walk *walk, struct weights *weights)
{
	weights->carry = kb_carry_create(walk->file->header->max_cores,
					 kb_names_most_of_core(walk->file->names));
	return weights->carry ? 0 : -ENOMEM;
}

static int weights_begin(struct query_walk *walk, struct kb_error *err)
{
	(void)err;
	return kb_barman_fact(walk->trace->barman, "counts") ? create_carry(walk, walk->state) : 0;
}

static void weights_end(struct query_walk *walk)
{
	struct weights *weights = walk->state;

	kb_carry_destroy(weights->carry);
}

static uint64_t first_of(const struct kb_event *event)
{
	return event->sample.nr_counters ? event->sample.counters[0] : KB_COUNTER_INVALID;
}

/* The same rules as those of the report: analysis/report/read.c. */
static int weigh(struct query_walk *walk)
{
	struct weights *weights = walk->state;
	const struct kb_event *event = walk->event;
	struct kb_event carried;

	if (!weights->seen && !weights->carry && !event->sample.has_pc && create_carry(walk, weights))
		return -ENOMEM;
	weights->seen = true;
	weights->weight = first_of(event);
	if (!weights->carry)
		return 0;
	if (!event->sample.has_pc) {
		kb_carry_add(weights->carry, event);
		return 0;
	}
	carried = *event;
	kb_carry_take(weights->carry, &carried);
	weights->weight = first_of(&carried);
	return 0;
}

static void put_weight(const struct query_walk *walk, struct sqlite3_context *context)
{
	const struct weights *weights = walk->state;

	if (weights->weight != KB_COUNTER_INVALID)
		query_put_u64(context, weights->weight);
}

/* ---- samples ---- */

static int samples_rows(struct query_walk *walk)
{
	int ret = weigh(walk);

	return ret ? ret : 1;
}

static void samples_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;
	const struct kb_frame *frame;

	if (i == QUERY_samples_weight) {
		put_weight(walk, context);
		return;
	}
	if (!event->sample.has_pc)
		return;
	switch (i) {
	case QUERY_samples_pc:
		query_put_address(context, event->sample.pc);
		break;
	case QUERY_samples_depth:
		query_put_u64(context, kb_chain_depth(event));
		break;
	case QUERY_samples_idle:
		frame = event->task_id ? NULL : query_look_up(walk, 0, event->sample.pc);
		query_put_i64(context, frame && kb_idle_symbol(&frame->symbol));
		break;
	default:
		put_place(walk, context, event->task_id, event->sample.pc, i - QUERY_samples_symbol);
	}
}

const struct query_table query_samples = {
	.is = &query_columns_samples,
	.types = 1U << KB_EVENT_SAMPLE,
	.seeks = true,
	.readings = true,
	.measures = true,
	.state_bytes = sizeof(struct weights),
	.begin = weights_begin,
	.end = weights_end,
	.rows = samples_rows,
	.column = samples_column,
};

/* ---- counters ---- */

static int counters_rows(struct query_walk *walk)
{
	uint32_t nr = kb_names_of_core(walk->file->names, walk->event->core);

	return (int)(nr < walk->event->sample.nr_counters ? nr : walk->event->sample.nr_counters);
}

static void counters_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;
	uint32_t id;

	switch (i) {
	case QUERY_counters_event:
	case QUERY_counters_counter:
		id = kb_names_counter_id(walk->file->names, event->core, walk->number);
		query_put_kb_text(context, kb_names_counter(walk->file->names, id));
		break;
	case QUERY_counters_value:
		if (event->sample.counters[walk->number] != KB_COUNTER_INVALID)
			query_put_u64(context, event->sample.counters[walk->number]);
		break;
	case QUERY_counters_sampled:
		query_put_i64(context, event->sample.has_pc);
		break;
	default:
		break;
	}
}

const struct query_table query_counters = {
	.is = &query_columns_counters,
	.types = 1U << KB_EVENT_SAMPLE,
	.seeks = true,
	.rows = counters_rows,
	.column = counters_column,
};

/* ---- frames ---- */

static int frames_rows(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;
	int ret;

	if (event->type == KB_EVENT_TASK_SWITCH)
		return (int)kb_chain_depth(event);
	ret = weigh(walk);
	if (ret)
		return ret;
	return event->sample.has_pc ? (int)kb_chain_depth(event) : 0;
}

/* The chain of a switch is that of the task that leaves the CPU. */
static void frames_place(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;
	bool leaves = event->type == KB_EVENT_TASK_SWITCH;

	walk->row = (struct query_row){
		.ticks = event->timestamp,
		.at = walk->trace->walk.ns,
		.core = event->core,
		.task_id = leaves ? walk->trace->walk.running : event->task_id,
		.has_task = !leaves || walk->trace->walk.known,
	};
}

static void frames_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;

	switch (i) {
	case QUERY_frames_of:
		query_put_text(context, event->type == KB_EVENT_SAMPLE ? "sample" : "switch");
		break;
	case QUERY_frames_frame:
		query_put_u64(context, walk->number);
		break;
	case QUERY_frames_weight:
		if (event->type == KB_EVENT_SAMPLE)
			put_weight(walk, context);
		break;
	case QUERY_frames_pc:
		query_put_address(context, kb_chain_pc(event, walk->number));
		break;
	default:
		put_place(walk, context, walk->row.task_id, kb_chain_lookup(event, walk->number),
			  i - QUERY_frames_symbol);
	}
}

const struct query_table query_frames = {
	.is = &query_columns_frames,
	.types = 1U << KB_EVENT_SAMPLE | 1U << KB_EVENT_TASK_SWITCH,
	.follows = true,
	.seeks = true,
	.readings = true,
	.state_bytes = sizeof(struct weights),
	.begin = weights_begin,
	.end = weights_end,
	.rows = frames_rows,
	.place = frames_place,
	.column = frames_column,
};
