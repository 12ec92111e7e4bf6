// SPDX-License-Identifier: MIT
/* Tables with a row for each record of a type: all of them, switches, marks, values of series. */
#include "format/call_names.h"
#include "query/query_put.h"
#include "query/walks.h"

#define ALL_TYPES	(~0U)

/* ---- records ---- */

static void records_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	if (i == QUERY_records_type)
		QUERY_PUT_WORD(context, records, type, walk->event->type == KB_EVENT_CUSTOM_COUNTER &&
			       walk->event->custom_counter.what != KB_WHAT_VALUE ?
			       KB_WORD_DETAIL : walk->event->type);
}

const struct query_table query_records = {
	.is = &query_columns_records,
	.types = ALL_TYPES,
	.seeks = true,
	.column = records_column,
};

/* ---- objects ---- */

void query_put_object(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_object *object = kb_event_object(walk->event);
	const struct kb_names *names = walk->file->names;

	_Static_assert(QUERY_switches_object_name - QUERY_switches_object ==
		       QUERY_wakeups_object_name - QUERY_wakeups_object, "both have the same columns");

	i += QUERY_switches_object;
	if (i == QUERY_switches_object)
		QUERY_PUT_WORD(context, switches, object,
			       object && walk->row.has_task ? object->kind : (uint32_t)KB_OBJECT_NONE);
	if (!object || !walk->row.has_task || object->kind == KB_OBJECT_NONE)
		return;
	if (i == QUERY_switches_call)
		query_put_text(context, kb_names_call(names, walk->event));
	else if (i == QUERY_switches_object_id)
		query_put_u64(context, kb_names_object_id(names, walk->event, walk->row.task_id));
	else if (i == QUERY_switches_object_value)
		query_put_u64(context, object->value);
	else if (i == QUERY_switches_object_name)
		query_put_text(context, kb_names_object(names, walk->event, walk->row.task_id));
}

/* ---- switches ---- */

static void switches_place(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;

	walk->row = (struct query_row){
		.ticks = event->timestamp,
		.at = walk->trace->walk.ns,
		.core = event->core,
		.task_id = walk->trace->walk.running,
		.has_task = walk->trace->walk.known,
	};
}

static void switches_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;
	char letter;

	/* Of no task there is no state: a recording begins with who runs. */
	if (!walk->row.has_task && (i == QUERY_switches_state || i == QUERY_switches_blocked))
		return;
	switch (i) {
	case QUERY_switches_state:
		letter = kb_state_letter(walk->file->header, event->task_switch.prev_state);
		query_put_copy(context, &letter, 1);
		break;
	case QUERY_switches_blocked:
		query_put_i64(context, event->task_switch.reason == KB_SWITCH_BLOCKED);
		break;
	case QUERY_switches_next_tid:
		query_put_u64(context, event->task_id);
		break;
	case QUERY_switches_next_pid:
		query_put_u64(context, query_file_pid(walk->file, event->task_id, event->timestamp));
		break;
	case QUERY_switches_next_task:
		query_put_text(context, query_file_task(walk->file, event->task_id,
							event->timestamp));
		break;
	case QUERY_switches_depth:
		query_put_u64(context, event->task_switch.nr_chain);
		break;
	default:
		query_put_object(walk, context, i - QUERY_switches_object);
	}
}

const struct query_table query_switches = {
	.is = &query_columns_switches,
	.types = 1U << KB_EVENT_TASK_SWITCH,
	.follows = true,
	.seeks = true,
	.place = switches_place,
	.column = switches_column,
};

/* ---- marks ---- */

static void marks_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;

	switch (i) {
	case QUERY_marks_type:
		QUERY_PUT_WORD(context, marks, type, event->annotation.type);
		break;
	case QUERY_marks_channel:
		query_put_u64(context, event->annotation.channel);
		break;
	case QUERY_marks_group_id:
		query_put_u64(context, event->annotation.group);
		break;
	case QUERY_marks_text:
		query_put_copy(context, event->annotation.text, event->annotation.text_length);
		break;
	case QUERY_marks_colour:
		if (event->annotation.colour)
			query_put_u64(context, event->annotation.colour);
		break;
	default:
		break;
	}
}

const struct query_table query_marks = {
	.is = &query_columns_marks,
	.types = 1U << KB_EVENT_ANNOTATION,
	.seeks = true,
	.column = marks_column,
};

/* ---- values of series ---- */

/*
 * Samples have several values, other records one; what is about something is in other tables, unless a
 * later release says it.
 */
static int series_rows(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;

	if (event->type == KB_EVENT_SAMPLE)
		return (int)event->sample.nr_custom;
	return event->custom_counter.what == KB_WHAT_VALUE || !kb_what_name(event->custom_counter.what);
}

static void put_value(struct sqlite3_context *context, uint64_t value, double multiplier)
{
	if (multiplier == 1.0)
		query_put_u64(context, value);
	else
		kb_sql.result_double(context, (double)(int64_t)value * multiplier);
}

static void series_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;
	const struct kb_header *header = walk->file->header;
	bool sampled = event->type == KB_EVENT_SAMPLE;
	uint32_t id = sampled ? event->sample.custom[walk->number].id : event->custom_counter.counter;
	const struct kb_series *series = &header->series[id];

	switch (i) {
	case QUERY_series_chart:
		if (series->chart_index < header->nr_charts)
			query_put_text(context, header->charts[series->chart_index].name);
		break;
	case QUERY_series_series:
		query_put_text(context, series->name);
		break;
	case QUERY_series_value:
		put_value(context, sampled ? event->sample.custom[walk->number].value
					   : event->custom_counter.value, series->multiplier);
		break;
	case QUERY_series_units:
		query_put_text(context, series->units);
		break;
	default:
		break;
	}
}

const struct query_table query_series = {
	.is = &query_columns_series,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER | 1U << KB_EVENT_SAMPLE,
	.seeks = true,
	.rows = series_rows,
	.column = series_column,
};
