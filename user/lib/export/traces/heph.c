// SPDX-License-Identifier: MIT
/*
 * A capture as a Heph trace. CPU c is stream c + 1: substream 0 has its run and idle slices,
 * and the events of each task have a substream of their own. Stream 0 is the capture as a
 * whole.
 *
 * Unless arrays are requested, the trace satisfies the one existing reader: the epoch comes
 * first and does not come alone, packets have at most 128 bytes, attributes are scalar, texts
 * are UTF-8 and need no escapes in JSON, events of a substream are ordered by their ends, and
 * slices are not mixed with instants.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kbarman/chain.h>

#include "base/io/out_packet.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "format/barman/inside.h"
#include "format/heph_put.h"

#define PACKET_BYTES	128	/* longest packet that the reader buffers */
#define NAME_BYTES	16	/* a long image name leaves at least so much for the symbol */
#define UNKNOWN		"[unknown]"
#define FRAMES		1024	/* of a call chain; each of at most */
#define FRAME_BYTES	1023

#define SUBSTREAM_ROW		0
#define SUBSTREAM_COUNTERS	2147483646u
#define SUBSTREAM_IDLE_TASK	2147483647u

/* Size of an attribute in a packet. */
#define NUMBER_BYTES(name)		(2 + sizeof(name) - 1 + 1 + 8)
#define STRING_BYTES(name, length)	(2 + sizeof(name) - 1 + 1 + 2 + (length))

struct heph {
	KB_RUN;
	uint32_t *counters;		/* number of events in each stream */
	bool plain;			/* scalar attributes and all limits of the reader */
	uint64_t now;			/* of the record that is being written */
	uint8_t *packet;		/* the packet that is being written */
	char *image;			/* UINT16_MAX bytes */
	uint64_t before_epoch;		/* number of times that became 0 */
};

#define SINK struct heph
#include "export/sink.h"

static uint32_t stream_of(const struct heph *x, uint32_t core)
{
	return core < x->header->max_cores ? core + 1 : 0;
}

/* The substream of a task. The first numbers are for slices and counters. */
static uint64_t substream_of(uint32_t task_id)
{
	if (task_id == 0)
		return SUBSTREAM_IDLE_TASK;
	if (task_id == SUBSTREAM_COUNTERS || task_id == SUBSTREAM_IDLE_TASK)
		return (uint64_t)1 << 32 | task_id;
	return task_id;
}

static uint64_t since_epoch(struct heph *x, int64_t ns)
{
	if (ns >= 0)
		return (uint64_t)ns;
	x->before_epoch++;
	return 0;
}

/*
 * Begin an event: writes everything in front of its attributes, for which @attributes bytes are
 * reserved. The description is cut to the remaining room. NULL after an output error.
 */
static uint8_t *begin(struct heph *x, uint32_t stream, uint64_t substream, uint64_t start,
		      uint64_t end, struct kb_text description, size_t attributes)
{
	size_t room = x->plain ? PACKET_BYTES - KB_HEPH_EVENT_BYTES - attributes : UINT16_MAX;
	size_t length;
	uint8_t *at;

	x->packet = kb_out_reserve(x->out, KB_HEPH_EVENT_BYTES + room + attributes);
	if (!x->packet)
		return NULL;
	at = kb_heph_put_start(x->packet, stream, x->counters[stream]++, substream, start, end);
	length = kb_label((char *)at + 2, room, description.data, description.length, x->plain);
	return kb_heph_put16(at, (uint16_t)length) + length;
}

static void finish(struct heph *x, uint8_t *at)
{
	kb_heph_put_size(x->packet, at);
	kb_out_commit(x->out, at);
}

/*
 * Begin the event of a slice. A slice of length 0 is an instant, which must not be among
 * slices: it goes to the substream @instants.
 */
static uint8_t *begin_slice(struct heph *x, const struct kb_slice *s, uint64_t instants,
			    struct kb_text description, size_t attributes)
{
	uint64_t start = since_epoch(x, s->start), end = since_epoch(x, s->end);

	return begin(x, stream_of(x, s->core), start < end ? SUBSTREAM_ROW : instants, start, end,
		     description, attributes);
}

static void write_run(struct heph *x, const struct kb_slice *s, const struct kb_event *event)
{
	const struct kb_task_name *task = kb_names_task(x->trace->names, s->task_id, event->timestamp);
	uint8_t *at = begin_slice(x, s, substream_of(s->task_id), task->name,
				  NUMBER_BYTES("tid") + NUMBER_BYTES("tgid") +
				  STRING_BYTES("switched out", sizeof("preempted") - 1));

	if (!at)
		return;
	at = kb_heph_put_u64(at, "tid", s->task_id);
	at = kb_heph_put_u64(at, "tgid", task->tgid);
	if (s->how == KB_END_PREEMPTED)
		at = kb_heph_put_string(at, "switched out", "preempted", 9);
	else if (s->how == KB_END_BLOCKED)
		at = kb_heph_put_string(at, "switched out", "blocked", 7);
	finish(x, at);
}

static void write_idle(struct heph *x, const struct kb_slice *s)
{
	uint8_t *at = begin_slice(x, s, SUBSTREAM_IDLE_TASK, kb_text("idle"),
				  NUMBER_BYTES("state"));

	if (!at)
		return;
	if (s->idle_state != KB_STATE_UNKNOWN)
		at = kb_heph_put_u64(at, "state", (uint64_t)s->idle_state);
	finish(x, at);
}

static void write_lost(struct heph *x, const struct kb_slice *s)
{
	char text[48];
	uint8_t *at;

	snprintf(text, sizeof(text), "%" PRIu64 " records lost", s->lost);
	at = begin_slice(x, s, SUBSTREAM_COUNTERS, kb_text(text), NUMBER_BYTES("lost"));
	if (at)
		finish(x, kb_heph_put_u64(at, "lost", s->lost));
}

static void write_value(struct heph *x, const struct kb_walk *walk, struct kb_text name,
			uint64_t value, double multiplier)
{
	uint8_t *at = begin(x, stream_of(x, walk->event.core), SUBSTREAM_COUNTERS, x->now, x->now, name,
			    NUMBER_BYTES("value") + NUMBER_BYTES("scaled"));
	uint64_t bits;

	if (!at)
		return;
	at = kb_heph_put_u64(at, "value", value);
	multiplier *= (double)value;
	if (multiplier != (double)value && isfinite(multiplier)) {
		memcpy(&bits, &multiplier, sizeof(bits));
		at = kb_heph_put64(kb_heph_put_name(at, "scaled", KB_HEPH_F64), bits);
	}
	finish(x, at);
}

static void write_counter(struct heph *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	write_value(x, walk, kb_names_counter(x->trace->names, id), value, 1.0);
}

static void write_series(struct heph *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	bool named = id < x->header->nr_series && x->header->series[id].name;
	char text[32];

	write_value(x, walk, kb_run_series(&x->run, id, text), value,
		    named ? x->header->series[id].multiplier : 1.0);
}

/* Write the call chain: an array of addresses, and an array of names. */
static uint8_t *put_chain(struct heph *x, uint8_t *at, const struct kb_event *event,
			  uint32_t frames)
{
	uint32_t i;

	at = kb_heph_put_name(at, "chain", KB_HEPH_ARRAY | KB_HEPH_U64);
	at = kb_heph_put16(at, (uint16_t)frames);
	for (i = 0; i < frames; i++)
		at = kb_heph_put64(at, kb_chain_pc(event, i));
	at = kb_heph_put_name(at, "stack", KB_HEPH_ARRAY | KB_HEPH_STRING);
	at = kb_heph_put16(at, (uint16_t)frames);
	for (i = 0; i < frames; i++) {
		const struct kb_symbol *symbol = x->trace->symbolizer ?
			kb_symbolizer_resolve(x->trace->symbolizer, event->task_id, event->timestamp,
					      kb_chain_lookup(event, i)) : NULL;
		const char *name = symbol && *symbol->name ? symbol->name : UNKNOWN;
		size_t length = kb_label((char *)at + 2, FRAME_BYTES, name, strlen(name), false);

		at = kb_heph_put16(at, (uint16_t)length) + length;
	}
	return at;
}

static void write_pc(struct heph *x, const struct kb_walk *walk, uint32_t known)
{
	const struct kb_event *event = &walk->event;
	size_t fixed = STRING_BYTES("image", 0) + NUMBER_BYTES("pc");
	size_t room = x->plain ? PACKET_BYTES - KB_HEPH_EVENT_BYTES - fixed : UINT16_MAX;
	const char *name = "", *image = UNKNOWN;
	uint32_t frames = 0;
	size_t length, keep;
	uint8_t *at;

	(void)known;
	if (!event->sample.has_pc)
		return;
	if (x->trace->symbolizer) {
		const struct kb_symbol *symbol =
			kb_symbolizer_resolve(x->trace->symbolizer, event->task_id, event->timestamp,
					      event->sample.pc);

		name = symbol->name;
		image = symbol->image_base;
	}
	if (!*name)
		name = UNKNOWN;
	/* too long: cut the name down to NAME_BYTES first, then the image */
	length = kb_label(x->image, room, image, strlen(image), x->plain);
	if (x->plain) {
		keep = strlen(name) < NAME_BYTES ? strlen(name) : NAME_BYTES;
		length = kb_label_cut(x->image, length, room - keep);
	} else if (event->sample.nr_chain) {
		frames = kb_chain_depth(event) < FRAMES ? kb_chain_depth(event) : FRAMES;
		fixed += STRING_BYTES("chain", 0) + STRING_BYTES("stack", 0) +
			 frames * (8 + 2 + FRAME_BYTES);
	}
	at = begin(x, stream_of(x, event->core), substream_of(event->task_id), x->now, x->now,
		   kb_text(name), fixed + length);
	if (!at)
		return;
	at = kb_heph_put_string(at, "image", x->image, (uint16_t)length);
	at = kb_heph_put_u64(at, "pc", event->sample.pc);
	if (frames)
		at = put_chain(x, at, event, frames);
	finish(x, at);
}

/* The kind of an annotation that is not plain text. */
static const char *annotation_kind(const struct kb_event *event)
{
	static const char *const kinds[] = {
		[KB_ANNOTATION_BOOKMARK] = "bookmark",
		[KB_ANNOTATION_CHANNEL] = "channel",
		[KB_ANNOTATION_GROUP] = "group",
	};

	if (event->annotation.type > KB_ANNOTATION_GROUP)
		return "unknown";
	if (event->annotation.type == KB_ANNOTATION_STRING && !event->annotation.text_length)
		return "end";
	return kinds[event->annotation.type];
}

static void write_annotation(struct heph *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_text text = { event->annotation.text, event->annotation.text_length };
	const char *kind = annotation_kind(event);
	uint8_t *at = begin(x, stream_of(x, event->core), substream_of(event->task_id), x->now, x->now,
			    text, NUMBER_BYTES("channel") + NUMBER_BYTES("group") +
			    STRING_BYTES("annotation", sizeof("bookmark") - 1));

	if (!at)
		return;
	at = kb_heph_put_u64(at, "channel", event->annotation.channel);
	if (event->annotation.group)
		at = kb_heph_put_u64(at, "group", event->annotation.group);
	if (kind)
		at = kb_heph_put_string(at, "annotation", kind, (uint16_t)strlen(kind));
	finish(x, at);
}

static void take_time(struct heph *x, const struct kb_walk *walk)
{
	enum kb_event_type type = walk->event.type;

	if (type == KB_EVENT_SAMPLE || type == KB_EVENT_CUSTOM_COUNTER || type == KB_EVENT_ANNOTATION)
		x->now = since_epoch(x, walk->ns);
}

static int begin_trace(struct heph *x)
{
	x->plain = !x->options->arrays;
	x->counters = calloc((size_t)x->header->max_cores + 1, sizeof(*x->counters));
	x->image = malloc(UINT16_MAX);
	if (!x->counters || !x->image)
		return kb_run_no_memory(&x->run);
	kb_heph_write_epoch(x->out, x->header->unix_base_ns);
	return 0;
}

/* Write an event for the whole capture: the epoch must not stand alone. */
static int end_trace(struct heph *x)
{
	const char *target = x->header->target_name;
	uint8_t *at = begin(x, 0, SUBSTREAM_ROW, since_epoch(x, kb_shown_first(x->trace)),
			    since_epoch(x, kb_shown_last(x->trace)),
			    kb_text(target && *target ? target : "capture"),
			    NUMBER_BYTES("cpus") + NUMBER_BYTES("records"));

	if (at) {
		at = kb_heph_put_u64(at, "cpus", x->header->max_cores);
		at = kb_heph_put_u64(at, "records", x->trace->nr_shown);
		finish(x, at);
	}
	if (x->before_epoch)
		kb_export_say(x->options, "%" PRIu64 " times before the capture's base were written "
			      "as its base: Heph has no times before the epoch", x->before_epoch);
	return 0;
}

static void release(struct heph *x)
{
	free(x->image);
	free(x->counters);
}

static const struct sink sink = {
	.begin = begin_trace,
	.end = end_trace,
	.release = release,
	.before = take_time,
	.ran = write_run,
	.idled = write_idle,
	.lost = write_lost,
	.sample = write_pc,
	.counter = write_counter,
	.series = write_series,
	.mark = write_annotation,
};

const struct kb_export kb_export_heph = {
	.name = "heph",
	.extension = ".heph",
	.description = "Heph trace 0.1.0: scheduling rows, samples, counters, annotations",
	.run = sink_export,
};
