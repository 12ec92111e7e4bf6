// SPDX-License-Identifier: MIT
/*
 * A capture as an Annotate stream, version 3, or version 4 if clients sent starts and stops of
 * jobs in activity maps, for which version 3 has no messages. Definitions come first, then one
 * pass over the records. Task switches and halts become switches of one activity counter. Their
 * slices become jobs of the activity map "Scheduling", with one track for each CPU. Counters
 * become counters, annotations become annotations.
 *
 * The daemon stores some fields unchecked. So every enumeration in the stream has a value that
 * the daemon knows, and every text is UTF-8 and short enough.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/arm/annotate_side.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "format/annotate/put.h"
#include "format/barman/inside.h"
#include "sym/files/side.h"

#define VIEW		0x6b62		/* uid of the activity map: "kb" */
#define KEY_ACTIVITY	1
#define KEY_SAMPLES	2
#define KEY_COUNTERS	3		/* then one key for each PMU counter and each series */
#define ACTIVITY_RUNS	1

#define TEXT_BYTES	(32768 - 64)	/* Arm's client sends no longer messages */
#define NAME_BYTES	1024
#define COLOR_IDLE	KB_ANNOTATE_RGB(0xc0c0c0)
#define COLOR_LOST	KB_ANNOTATE_RGB(0xff0000)

struct annotate {
	KB_RUN;
	int64_t base;		/* CLOCK_MONOTONIC_RAW at the capture's base */
	uint32_t job;		/* uid of the last job */
	bool no_pictures;	/* the capture names pictures, but the side file is missing */
	double *scales;		/* of each series: factor for its values */
	struct kb_leb now;	/* timestamp of the record that is being written */
	struct kb_leb *since; /* of each CPU: start of its present slice */
	uint64_t wide;		/* number of values that need more than 32 bits */
	char text[TEXT_BYTES];
};

#define SINK struct annotate
#include "export/sink.h"

static int64_t at_raw(const struct annotate *x, int64_t ns)
{
	return (int64_t)((uint64_t)x->base + (uint64_t)ns);
}

static struct kb_text clean(char *to, size_t room, const char *text)
{
	return (struct kb_text){ to, kb_label(to, room, text ? text : "",
					      text ? strlen(text) : 0, false) };
}

/* ---- definitions ---- */

/* A counter whose fields have valid values: the protocol does not allow 0 in some of them. */
static struct kb_annotate_message new_counter(const struct annotate *x, uint32_t key,
					      int32_t class)
{
	return (struct kb_annotate_message){
		.type = KB_ANNOTATE_COUNTER,
		.counter = {
			.key = (int32_t)key,
			.per_cpu = 1,
			.series_class = class,
			.display = KB_ANNOTATE_ACCUMULATE,
			.modifier = 1,
			.series_composition = KB_ANNOTATE_STACKED,
			.rendering_type = KB_ANNOTATE_FILLED,
			.cores = x->header->max_cores > INT32_MAX ? INT32_MAX :
				 (int32_t)x->header->max_cores,
			.title = kb_text(""),
			.name = kb_text(""),
			.units = kb_text(""),
			.description = kb_text(""),
		},
	};
}

static void define_own(struct annotate *x)
{
	static const struct kb_annotate_activity runs = { { "running", 7 },
							  KB_ANNOTATE_RGB(0x2e8b57) };
	struct kb_annotate_message m = new_counter(x, KEY_ACTIVITY, KB_ANNOTATE_ACTIVITIES);

	m.counter.nr_activities = 1;
	m.counter.activities = &runs;
	m.counter.title = kb_text("CPU activity");
	m.counter.name = kb_text("activity");
	m.counter.description = kb_text("Which task runs on which CPU, and when it idles");
	kb_annotate_write(x->out, &m);

	m = new_counter(x, KEY_SAMPLES, KB_ANNOTATE_DELTA);
	m.counter.title = kb_text("Samples");
	m.counter.name = kb_text("samples");
	m.counter.description = kb_text("Program counter samples");
	kb_annotate_write(x->out, &m);
}

static void define_pmu(struct annotate *x)
{
	uint32_t i;

	for (i = 0; i < kb_names_nr_counters(x->trace->names); i++) {
		struct kb_annotate_message m = new_counter(x, KEY_COUNTERS + i, KB_ANNOTATE_DELTA);
		struct kb_text name = kb_names_counter(x->trace->names, i);

		name.length = kb_label(x->text, NAME_BYTES, name.data, name.length, false);
		name.data = x->text;
		m.counter.title = name;
		m.counter.name = name;
		m.counter.description = kb_text("PMU counter");
		kb_annotate_write(x->out, &m);
	}
}

/* @map[value], or @map[0] for a value that Barman does not define. */
static int32_t remap(const int32_t *map, size_t size, uint8_t value)
{
	return map[value < size ? value : 0];
}

/*
 * Annotate shows value / modifier, Barman shows value * multiplier. If no integer modifier does
 * the same, values are multiplied by @scale before they are written.
 */
static int32_t modifier_of(double multiplier, double *scale)
{
	double inverse;

	*scale = 1.0;
	if (!isfinite(multiplier) || multiplier == 1.0)
		return 1;
	inverse = 1.0 / multiplier;
	if (inverse >= 1.0 && inverse < INT32_MAX) {
		int32_t modifier = (int32_t)(inverse + 0.5);

		if (1.0 / modifier == multiplier)
			return modifier;
	}
	*scale = multiplier;
	return 1;
}

/* In captures of kbarman a series that has not been recorded has no name. */
static bool is_used(const struct annotate *x, uint32_t index)
{
	const char *name = x->header->series[index].name;

	return !x->header->extended || (name && *name);
}

static void define_series(struct annotate *x, uint32_t index)
{
	static const int32_t classes[] = {
		[0] = KB_ANNOTATE_ABSOLUTE,
		[KB_SERIES_DELTA] = KB_ANNOTATE_DELTA,
		[KB_SERIES_INCIDENT] = KB_ANNOTATE_INCIDENT,
		[KB_SERIES_ABSOLUTE] = KB_ANNOTATE_ABSOLUTE,
	};
	static const int32_t displays[] = {
		[0] = KB_ANNOTATE_ACCUMULATE,
		[KB_DISPLAY_ACCUMULATE] = KB_ANNOTATE_ACCUMULATE,
		[KB_DISPLAY_AVERAGE] = KB_ANNOTATE_AVERAGE,
		[KB_DISPLAY_HERTZ] = KB_ANNOTATE_HERTZ,
		[KB_DISPLAY_MAXIMUM] = KB_ANNOTATE_MAXIMUM,
		[KB_DISPLAY_MINIMUM] = KB_ANNOTATE_MINIMUM,
	};
	static const int32_t compositions[] = {
		[0] = KB_ANNOTATE_STACKED,
		[KB_COMPOSITION_STACKED] = KB_ANNOTATE_STACKED,
		[KB_COMPOSITION_OVERLAY] = KB_ANNOTATE_OVERLAY,
		[KB_COMPOSITION_LOG10] = KB_ANNOTATE_LOG10,
	};
	static const int32_t renderings[] = {
		[0] = KB_ANNOTATE_FILLED,
		[KB_RENDERING_FILLED] = KB_ANNOTATE_FILLED,
		[KB_RENDERING_LINE] = KB_ANNOTATE_LINE,
		[KB_RENDERING_BAR] = KB_ANNOTATE_BAR,
	};
	static const struct kb_chart no_chart = { .boolean_flags = KB_CHART_PER_CPU };
	const struct kb_series *series = &x->header->series[index];
	const struct kb_chart *chart = series->chart_index < x->header->nr_charts ?
				       &x->header->charts[series->chart_index] : &no_chart;
	uint32_t key = KEY_COUNTERS + kb_names_nr_counters(x->trace->names) + index;
	struct kb_annotate_message m = new_counter(x, key, 0);
	struct kb_annotate_counter *c = &m.counter;
	char *text = x->text;

	c->per_cpu = !!(chart->boolean_flags & KB_CHART_PER_CPU);
	c->series_class = remap(classes, ARRAY_SIZE(classes), series->series_class);
	c->display = remap(displays, ARRAY_SIZE(displays), series->display);
	c->modifier = modifier_of(series->multiplier, &x->scales[index]);
	c->series_composition = remap(compositions, ARRAY_SIZE(compositions),
				      chart->series_composition);
	c->rendering_type = remap(renderings, ARRAY_SIZE(renderings), chart->rendering_type);
	c->average_selection = !!(chart->boolean_flags & KB_CHART_AVERAGE_SELECTION);
	c->average_cores = !!(chart->boolean_flags & KB_CHART_AVERAGE_CORES);
	c->percentage = !!(chart->boolean_flags & KB_CHART_PERCENTAGE);
	c->color = series->colour == KB_COLOUR_AUTOMATIC ? 0 : KB_ANNOTATE_RGB(series->colour);
	c->title = clean(text, NAME_BYTES, chart->name);
	c->name = clean(text + NAME_BYTES, NAME_BYTES, series->name);
	c->units = clean(text + 2 * NAME_BYTES, NAME_BYTES, series->units);
	c->description = clean(text + 3 * NAME_BYTES, NAME_BYTES, series->description);
	kb_annotate_write(x->out, &m);
	if (x->scales[index] != 1.0)
		kb_export_say(x->options, "values of series %u are multiplied by %g: Annotate has "
			      "no such modifier", index, x->scales[index]);
}

static void define_view(struct annotate *x)
{
	struct kb_annotate_message m = {
		.type = KB_ANNOTATE_CAM_VIEW,
		.view = { .view = VIEW, .name = kb_text("Scheduling") },
	};
	uint32_t core;
	char name[24];

	kb_annotate_write(x->out, &m);
	m = (struct kb_annotate_message){
		.type = KB_ANNOTATE_CAM_TRACK,
		.track = { .view = VIEW, .parent = -1 },
	};
	for (core = 0; core < x->header->max_cores && core < INT32_MAX; core++) {
		snprintf(name, sizeof(name), "CPU %u", core);
		m.track.track = (int32_t)core + 1;
		m.track.name = kb_text(name);
		kb_annotate_write(x->out, &m);
	}
}

static void define_picture(struct annotate *x)
{
	struct kb_annotate_message m = {
		.type = KB_ANNOTATE_VISUAL,
		.timestamp = at_raw(x, 0),
		.visual = {
			.text = kb_text(x->options->picture_text),
			.image = x->options->picture,
			.image_bytes = x->options->picture_bytes,
		},
	};

	if (x->options->picture && kb_annotate_write(x->out, &m) == -EMSGSIZE)
		kb_export_say(x->options, "the picture is left out: it is longer than 2 GiB");
}

static void define(struct annotate *x)
{
	const char *beside = x->options->beside;
	struct kb_annotate_setup setup = { .version = beside ? annotate_side_version(beside) : 3,
					   .tid = x->options->tid, .pid = x->options->pid };
	uint32_t i;

	kb_annotate_write_setup(x->out, &setup);
	define_own(x);
	define_pmu(x);
	for (i = 0; i < x->header->nr_series; i++)
		if (is_used(x, i))
			define_series(x, i);
	define_view(x);
	define_picture(x);
}

/* ---- the capture ---- */

static kb_always_inline void write_activity(struct annotate *x, uint32_t core, int32_t activity,
					    int32_t tid)
{
	uint8_t *start = kb_out_reserve(x->out, KB_ANNOTATE_FIXED), *at;

	if (!start)
		return;
	at = kb_annotate_begin(start, KB_ANNOTATE_ACTIVITY);
	at = kb_annotate_put_activity(at, &x->now, (int32_t)core, KEY_ACTIVITY, activity, tid);
	kb_annotate_end(start, at, 0);
	kb_out_commit(x->out, at);
}

static void write_value(struct annotate *x, uint32_t core, uint32_t key, int64_t value)
{
	uint8_t *start = kb_out_reserve(x->out, KB_ANNOTATE_FIXED), *at;

	if (!start)
		return;
	x->wide += value != (int32_t)value;
	at = kb_annotate_begin(start, KB_ANNOTATE_VALUE);
	at = kb_annotate_put_value(at, &x->now, (int32_t)core, (int32_t)key, value);
	kb_annotate_end(start, at, 0);
	kb_out_commit(x->out, at);
}

/* A constant colour for a task, light enough for black text. */
static uint32_t task_color(uint32_t task_id)
{
	uint32_t rgb = task_id * 2654435761u >> 8;

	return KB_ANNOTATE_RGB(rgb | 0x404040);
}

/* Jobs have the numbers 1, 2, …; behind INT32_MAX follow negative numbers without -1 and 0. */
static int32_t next_job(struct annotate *x)
{
	do
		x->job++;
	while (x->job == 0 || x->job == UINT32_MAX);
	return (int32_t)x->job;
}

/* Write a job without its name. */
static uint8_t *put_job(struct annotate *x, uint8_t *at, const struct kb_slice *slice)
{
	struct kb_leb *since = &x->since[slice->core];
	const struct kb_annotate_job job = {
		.view = VIEW,
		.job = next_job(x),
		.track = (int32_t)slice->core + 1,
		.duration = (int64_t)((uint64_t)slice->end - (uint64_t)slice->start),
		.color = slice->kind == KB_SLICE_RUN  ? task_color(slice->task_id) :
			 slice->kind == KB_SLICE_IDLE ? COLOR_IDLE : COLOR_LOST,
		.primary = -1,
	};

	if (since->value != at_raw(x, slice->start))
		*since = kb_leb_pack(at_raw(x, slice->start));
	return kb_annotate_put_job(at, &job, since);
}

/* At most NAME_BYTES. */
static uint8_t *put_task(struct annotate *x, uint8_t *at, uint32_t task_id, uint64_t timestamp)
{
	const struct kb_task_name *task = kb_names_task(x->trace->names, task_id, timestamp);

	if (task->label_length) {
		memcpy(at, task->label, KB_SHORT_NAME);
		return at + task->label_length;
	}
	return at + kb_label((char *)at, NAME_BYTES, task->name.data, task->name.length, false);
}

static void write_slice(struct annotate *x, const struct kb_slice *slice, const struct kb_event *event)
{
	uint8_t *start = kb_out_reserve(x->out, KB_ANNOTATE_FIXED + NAME_BYTES), *at;

	if (!start)
		return;
	at = put_job(x, kb_annotate_begin(start, KB_ANNOTATE_CAM_JOB), slice);
	if (slice->kind == KB_SLICE_RUN) {
		at = put_task(x, at, slice->task_id, event->timestamp);
	} else if (slice->kind == KB_SLICE_IDLE) {
		memcpy(at, "idle", 4);
		at += 4;
	} else {
		at += snprintf((char *)at, NAME_BYTES, "%" PRIu64 " records lost", slice->lost);
	}
	kb_annotate_end(start, at, 0);
	kb_out_commit(x->out, at);
}

static int64_t scaled(double scale, uint64_t value)
{
	double shown;

	if (scale == 1.0)
		return (int64_t)value;
	shown = (double)value * scale;
	if (shown >= 0x1p63)
		return INT64_MAX;
	if (shown <= -0x1p63)
		return INT64_MIN;
	return (int64_t)(shown < 0.0 ? shown - 0.5 : shown + 0.5);
}

static void write_counter(struct annotate *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	write_value(x, walk->event.core, KEY_COUNTERS + id, (int64_t)value);
}

static void write_series(struct annotate *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	if (id < x->header->nr_series && is_used(x, id))
		write_value(x, walk->event.core, KEY_COUNTERS + kb_names_nr_counters(x->trace->names) + id,
			    scaled(x->scales[id], value));
}

static void write_note(struct annotate *x, enum kb_annotate_type type,
		       const struct kb_event *event, struct kb_text text)
{
	uint32_t colour = event->annotation.colour;
	struct kb_annotate_message m;

	m.type = type;
	m.timestamp = x->now.value;
	m.note.channel = (int32_t)event->annotation.channel;
	m.note.group = (int32_t)event->annotation.group;
	m.note.color = colour << 8 | colour >> 24;	/* 0xTTRRGGBB -> 0xRRGGBBTT */
	m.note.text.data = x->text;
	m.note.text.length = kb_label(x->text, sizeof(x->text), text.data, text.length, false);
	kb_annotate_write(x->out, &m);
}

static void write_annotation(struct annotate *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_text text = { event->annotation.text, event->annotation.text_length };
	bool colour = event->annotation.colour;

	/* The side file has this text with its picture. */
	if (event->annotation.group == ANNOTATE_SIDE_GROUP &&
	    event->annotation.type == KB_ANNOTATION_STRING) {
		if (x->options->beside)
			return;
		x->no_pictures = true;
	}
	switch (event->annotation.type) {
	case KB_ANNOTATION_BOOKMARK:
		write_note(x, colour ? KB_ANNOTATE_COLOR_MARKER : KB_ANNOTATE_MARKER, event,
			   text);
		break;
	case KB_ANNOTATION_CHANNEL:
		write_note(x, KB_ANNOTATE_CHANNEL, event, text);
		break;
	case KB_ANNOTATION_GROUP:
		write_note(x, KB_ANNOTATE_GROUP, event, text);
		break;
	default:
		write_note(x, colour ? KB_ANNOTATE_COLOR_STRING : KB_ANNOTATE_STRING, event,
			   text);
	}
}

static void write_sample_text(struct annotate *x, const struct kb_event *event)
{
	const struct kb_symbol *symbol = x->trace->symbolizer ?
		kb_symbolizer_resolve(x->trace->symbolizer, event->task_id, event->timestamp,
				      event->sample.pc) : NULL;
	static const struct kb_event plain;
	char text[NAME_BYTES];
	int length;

	length = snprintf(text, sizeof(text), "0x%" PRIx64 " %s (%s)", event->sample.pc,
			  symbol && *symbol->name ? symbol->name : "[unknown]",
			  symbol ? symbol->image_base : "[unknown]");
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	write_note(x, KB_ANNOTATE_STRING, &plain, (struct kb_text){ text, (size_t)length });
}

static void write_sample(struct annotate *x, const struct kb_walk *walk, uint32_t known)
{
	(void)known;
	if (!walk->event.sample.has_pc)
		return;
	write_value(x, walk->event.core, KEY_SAMPLES, 1);
	if (x->options->sample_text)
		write_sample_text(x, &walk->event);
}

/* The end of a halt whose start is unknown ends no slice, and changes nothing. */
static void write_halt(struct annotate *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint32_t task_id;

	if (event->halt.entered)
		write_activity(x, event->core, 0, -1);
	else if (walk->nr_slices && kb_timeline_running(x->trace->timeline, event->core, &task_id))
		write_activity(x, event->core, ACTIVITY_RUNS, (int32_t)task_id);
	x->since[event->core] = x->now;
}

static void write_switch(struct annotate *x, const struct kb_walk *walk)
{
	write_activity(x, walk->event.core, ACTIVITY_RUNS, (int32_t)walk->event.task_id);
	x->since[walk->event.core] = x->now;
}

static void take_time(struct annotate *x, const struct kb_walk *walk)
{
	kb_leb_repack(&x->now, at_raw(x, walk->ns));
}

static int begin(struct annotate *x)
{
	const char *raw_base = kb_barman_fact(x->trace->barman, "raw_base");
	uint32_t i;

	if (raw_base)
		x->base = (int64_t)strtoull(raw_base, NULL, 10);
	else
		kb_export_say(x->options, "the capture does not know CLOCK_MONOTONIC_RAW: times "
			      "count from its base");
	x->scales = calloc((size_t)x->header->nr_series + 1, sizeof(*x->scales));
	x->since = calloc((size_t)x->header->max_cores + 1, sizeof(*x->since));
	if (!x->scales || !x->since)
		return kb_run_no_memory(&x->run);
	x->now = kb_leb_pack(0);
	for (i = 0; i < x->header->max_cores; i++)
		x->since[i] = kb_leb_pack(0);
	define(x);
	if (x->options->beside)
		annotate_side_write(x->options->beside, x->options, x->out,
				    KEY_COUNTERS + kb_names_nr_counters(x->trace->names) +
				    x->header->nr_series, VIEW);
	return 0;
}

static int end(struct annotate *x)
{
	if (x->no_pictures)
		kb_export_say(x->options, "pictures that programs sent are missing: there is no %.200s"
			      ANNOTATE_SIDE_SUFFIX " beside the capture: copy it there",
			      kb_side_name(x->trace->barman) ?: "CAPTURE");
	if (x->wide)
		kb_export_say(x->options, "values that need more than 32 bits (%" PRIu64 ") are written "
			      "whole, as the text of Annotate v3 says; Arm's own client sends such "
			      "values from version 5 on only", x->wide);
	return 0;
}

static void release(struct annotate *x)
{
	free(x->scales);
	free(x->since);
}

static const struct sink sink = {
	.begin = begin,
	.end = end,
	.release = release,
	.before = take_time,
	.slice = write_slice,
	.switched = write_switch,
	.halt = write_halt,
	.sample = write_sample,
	.counter = write_counter,
	.series = write_series,
	.mark = write_annotation,
};

const struct kb_export kb_export_annotate = {
	.name = "annotate",
	.extension = ".annotate",
	.description = "Annotate v3, for gatord and Streamline",
	.run = sink_export,
};
