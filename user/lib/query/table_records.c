// SPDX-License-Identifier: MIT
/* Tables with a row for each record of a type: all of them, switches, marks, values of series. */
#include "query/query_put.h"
#include "query/walks.h"

#define ALL_TYPES	(~0U)

/* ---- records ---- */

static void records_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	static const char *const names[] = {
		[KB_EVENT_UNKNOWN] = "unknown",		[KB_EVENT_SAMPLE] = "sample",
		[KB_EVENT_TASK_SWITCH] = "switch",	[KB_EVENT_CUSTOM_COUNTER] = "value",
		[KB_EVENT_ANNOTATION] = "mark",		[KB_EVENT_HALT] = "halt",
	};

	if (i == QUERY_COMMONS)
		query_put_text(context, names[walk->event->type]);
}

const struct query_table query_records = {
	.name = "records",
	.columns = ", type TEXT",
	.what = "every record; type is sample, switch, value, mark, halt or unknown",
	.types = ALL_TYPES,
	.seeks = true,
	.column = records_column,
};

/* ---- switches ---- */

enum {
	SWITCH_STATE = QUERY_COMMONS, SWITCH_BLOCKED, SWITCH_NEXT_TID, SWITCH_NEXT_PID,
	SWITCH_NEXT_TASK, SWITCH_DEPTH,
};

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
	if (!walk->row.has_task && (i == SWITCH_STATE || i == SWITCH_BLOCKED))
		return;
	switch (i) {
	case SWITCH_STATE:
		letter = kb_state_letter(walk->file->header, event->task_switch.prev_state);
		query_put_copy(context, &letter, 1);
		break;
	case SWITCH_BLOCKED:
		query_put_i64(context, event->task_switch.reason == KB_SWITCH_BLOCKED);
		break;
	case SWITCH_NEXT_TID:
		query_put_u64(context, event->task_id);
		break;
	case SWITCH_NEXT_PID:
		query_put_u64(context, query_file_pid(walk->file, event->task_id, event->timestamp));
		break;
	case SWITCH_NEXT_TASK:
		query_put_text(context, query_file_task(walk->file, event->task_id,
							event->timestamp));
		break;
	case SWITCH_DEPTH:
		query_put_u64(context, event->task_switch.nr_chain);
		break;
	default:
		break;
	}
}

const struct query_table query_switches = {
	.name = "switches",
	.columns = ", state TEXT, blocked INTEGER, next_tid INTEGER, next_pid INTEGER, next_task TEXT, "
		   "depth INTEGER",
	.what = "every switch: tid left the CPU, next_tid runs; state is a letter of ps(1), blocked 0 "
		"if the task could have run on, depth the number of frames; who left is not known where a "
		"CPU's records begin",
	.types = 1U << KB_EVENT_TASK_SWITCH,
	.follows = true,
	.seeks = true,
	.place = switches_place,
	.column = switches_column,
};

/* ---- marks ---- */

enum { MARK_TYPE = QUERY_COMMONS, MARK_CHANNEL, MARK_GROUP, MARK_TEXT, MARK_COLOUR };

static void marks_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	static const char *const types[] = {
		[KB_ANNOTATION_STRING] = "string",	[KB_ANNOTATION_BOOKMARK] = "bookmark",
		[KB_ANNOTATION_CHANNEL] = "channel",	[KB_ANNOTATION_GROUP] = "group",
	};
	const struct kb_event *event = walk->event;

	switch (i) {
	case MARK_TYPE:
		if (event->annotation.type <= KB_ANNOTATION_GROUP)
			query_put_text(context, types[event->annotation.type]);
		break;
	case MARK_CHANNEL:
		query_put_u64(context, event->annotation.channel);
		break;
	case MARK_GROUP:
		query_put_u64(context, event->annotation.group);
		break;
	case MARK_TEXT:
		query_put_copy(context, event->annotation.text, event->annotation.text_length);
		break;
	case MARK_COLOUR:
		if (event->annotation.colour)
			query_put_u64(context, event->annotation.colour);
		break;
	default:
		break;
	}
}

const struct query_table query_marks = {
	.name = "marks",
	.columns = ", type TEXT, channel INTEGER, group_id INTEGER, text TEXT, colour INTEGER",
	.what = "annotations of programs and of kbarman: type is string (on its channel until the "
		"next one; empty: the end), bookmark, channel or group (these name one)",
	.types = 1U << KB_EVENT_ANNOTATION,
	.seeks = true,
	.column = marks_column,
};

/* ---- values of series ---- */

enum { SERIES_CHART = QUERY_COMMONS, SERIES_NAME, SERIES_VALUE, SERIES_UNITS };

/* Samples have several values, other records one; what is about something is in other tables. */
static int series_rows(struct query_walk *walk)
{
	const struct kb_event *event = walk->event;

	if (event->type == KB_EVENT_SAMPLE)
		return (int)event->sample.nr_custom;
	return event->custom_counter.what == KB_WHAT_VALUE;
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
	case SERIES_CHART:
		if (series->chart_index < header->nr_charts)
			query_put_text(context, header->charts[series->chart_index].name);
		break;
	case SERIES_NAME:
		query_put_text(context, series->name);
		break;
	case SERIES_VALUE:
		put_value(context, sampled ? event->sample.custom[walk->number].value
					   : event->custom_counter.value, series->multiplier);
		break;
	case SERIES_UNITS:
		query_put_text(context, series->units);
		break;
	default:
		break;
	}
}

const struct query_table query_series = {
	.name = "series",
	.columns = ", chart TEXT, series TEXT, value NUMERIC, units TEXT",
	.what = "values of series over time: of programs, of files that were polled, and lost records",
	.types = 1U << KB_EVENT_CUSTOM_COUNTER | 1U << KB_EVENT_SAMPLE,
	.seeks = true,
	.rows = series_rows,
	.column = series_column,
};
