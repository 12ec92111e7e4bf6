// SPDX-License-Identifier: MIT
/*
 * A capture checked at memory speed: every field of every record is visited and
 * goes into the checksum, and what the format does not allow is a finding. The two
 * records that make up most of a capture, task switches and halting events, have a
 * path of their own without a branch that depends on which of the two it is; all
 * others, and whatever looks odd, are decoded as kb_barman_next() does it.
 */
#include <stdlib.h>

#include "barman_decode.h"

#define FAST_BYTES	24	/* both, with the bytes that kbarman.ext=1 announces */

/* Odd numbers without a pattern (digits of the golden ratio, e and pi). */
#define MIX_HEAD	UINT64_C(0x9e3779b97f4a7c15)
#define MIX_TIME	UINT64_C(0xb7e151628aed2a6b)
#define MIX_BODY	UINT64_C(0x243f6a8885a308d3)
#define MIX_MORE	UINT64_C(0x13198a2e03707345)

/* What a window adds to the sums; locals, so that they can be registers. */
struct tally {
	uint64_t checksum, backwards, newest, oldest, fast;
	uint64_t switches;
};

static uint64_t hash_bytes(const char *text, uint32_t length)
{
	uint64_t hash = length;

	for (uint32_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_sample(const struct kb_event *event)
{
	uint64_t body = event->task_id | (uint64_t)event->sample.nr_counters << 32;
	uint64_t hash = body * MIX_BODY + event->sample.pc * MIX_MORE;

	for (uint32_t i = 0; i < event->sample.nr_counters; i++)
		hash += event->sample.counters[i] * (MIX_BODY + 2 * (i + 1));
	for (uint32_t i = 0; i < event->sample.nr_custom; i++)
		hash += (event->sample.custom[i].id * MIX_TIME + event->sample.custom[i].value) *
			(MIX_MORE + 2 * (i + 1));
	for (uint32_t i = 0; i < event->sample.nr_chain; i++)
		hash += (event->sample.chain[i] + event->sample.nr_chain_kernel) *
			(MIX_HEAD + 2 * (i + 1));
	return hash;
}

static uint32_t record_type(const struct kb_event *event)
{
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return event->sample.has_pc ? BM_RECORD_SAMPLE_WITH_PC : BM_RECORD_SAMPLE;
	case KB_EVENT_TASK_SWITCH:
		return BM_RECORD_TASK_SWITCH;
	case KB_EVENT_CUSTOM_COUNTER:
		return BM_RECORD_CUSTOM_COUNTER;
	case KB_EVENT_ANNOTATION:
		return BM_RECORD_ANNOTATION;
	case KB_EVENT_HALT:
		return BM_RECORD_HALTING_EVENT;
	default:
		return event->unknown.record_type;
	}
}

uint64_t kb_event_checksum(const struct kb_event *event)
{
	uint64_t head = record_type(event) | (uint64_t)event->core << 32;
	uint64_t hash = head * MIX_HEAD + event->timestamp * MIX_TIME, body;

	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return hash + hash_sample(event);
	case KB_EVENT_TASK_SWITCH:
		body = event->task_id | (uint64_t)event->task_switch.reason << 32;
		if (event->task_switch.prev_state != KB_STATE_UNKNOWN)
			body |= (uint64_t)(uint8_t)event->task_switch.prev_state << 40;
		return hash + body * MIX_BODY;
	case KB_EVENT_HALT:
		body = event->halt.entered | (uint64_t)(event->halt.idle_state + 1) << 8;
		return hash + body * MIX_BODY;
	case KB_EVENT_CUSTOM_COUNTER:
		body = event->task_id | (uint64_t)event->custom_counter.counter << 32;
		return hash + body * MIX_BODY + event->custom_counter.value * MIX_MORE;
	case KB_EVENT_ANNOTATION:
		body = event->task_id | (uint64_t)event->annotation.channel << 32;
		hash += body * MIX_BODY;
		body = event->annotation.group | (uint64_t)event->annotation.colour << 32;
		hash += body * MIX_MORE + event->annotation.type * (MIX_BODY + 2);
		return hash + hash_bytes(event->annotation.text, event->annotation.text_length) *
			      (MIX_MORE + 2);
	default:
		/* What it says is not known, but not that it says it. */
		return hash + event->unknown.length * MIX_BODY;
	}
}

/* Values that can be decoded, but that the format does not have. */
static void check_values(struct kb_barman *b, const struct kb_event *event)
{
	if (event->type == KB_EVENT_TASK_SWITCH && !b->has_tasks)
		barman_finding(b, event->offset, "a task switch, in a capture without tasks");
	if (event->type == KB_EVENT_TASK_SWITCH && event->task_switch.reason > 1)
		barman_finding(b, event->offset, "%u is no reason for a task switch",
			       event->task_switch.reason);
	if (event->type == KB_EVENT_ANNOTATION && event->annotation.type > 3)
		barman_finding(b, event->offset, "%u is no type of an annotation",
			       event->annotation.type);
}

static void count(struct kb_validation *sum, const struct kb_event *event)
{
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		sum->samples++;
		break;
	case KB_EVENT_TASK_SWITCH:
		sum->task_switches++;
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		sum->custom_counters++;
		break;
	case KB_EVENT_ANNOTATION:
		sum->annotations++;
		break;
	case KB_EVENT_HALT:
		sum->halts++;
		break;
	default:
		sum->unknown++;
		break;
	}
	sum->records++;
}

static kb_always_inline void note_time(struct tally *t, uint64_t *latest, uint64_t timestamp)
{
	t->backwards += timestamp < *latest;
	*latest = timestamp;
	t->newest = timestamp > t->newest ? timestamp : t->newest;
	t->oldest = timestamp < t->oldest ? timestamp : t->oldest;
}

/* Any record, through an event. */
static __attribute__((noinline)) void validate_event(struct kb_barman *b, struct kb_event *event,
						     struct kb_validation *sum, struct tally *t,
						     uint64_t *latest)
{
	uint64_t none = 0;

	check_values(b, event);
	count(sum, event);
	t->checksum += kb_event_checksum(event);
	note_time(t, event->core < b->header.max_cores ? &latest[event->core] : &none,
		  event->timestamp);
}

/*
 * The body of a task switch or halting event as one number, fields of the format
 * at the places where kb_event_checksum() puts them.
 */
static kb_always_inline uint64_t fast_body(const uint8_t *record, bool is_switch, bool swap)
{
	uint64_t halt, task_switch;

	if (!KB_HOST_BIG_ENDIAN && !swap)
		return kb_load64(record + 16, false);
	halt = record[16] | (uint64_t)record[17] << 8;
	task_switch = kb_load32(record + 16, swap) | (uint64_t)record[20] << 32 |
		      (uint64_t)record[21] << 40;
	return is_switch ? task_switch : halt;
}

static kb_always_inline void validate_window(struct kb_barman *b, struct kb_validation *sum,
					     uint64_t *latest, unsigned int word, bool swap)
{
	/* What counts of the body, and what must be 0 of it, by type. */
	const uint64_t keep[8] = {
		[BM_RECORD_TASK_SWITCH] = b->header.extended ? 0xffffffffffff : 0xffffffffff,
		[BM_RECORD_HALTING_EVENT] = b->header.extended ? 0xffff : 0xff,
	};
	static const uint64_t wrong[8] = {
		[BM_RECORD_TASK_SWITCH] = 0xfe00000000,
		[BM_RECORD_HALTING_EVENT] = 0xfe,
	};
	const uint32_t fast = (b->has_tasks ? 1U << BM_RECORD_TASK_SWITCH : 0) |
			      1U << BM_RECORD_HALTING_EVENT;
	const uint32_t max_cores = b->header.max_cores;
	const uint8_t *at = b->at, *end = b->end;
	struct tally t = { .newest = sum->newest, .oldest = sum->oldest };
	struct kb_event event;

	for (;;) {
		size_t left = end - at;
		const uint8_t *record = at + word;
		uint32_t type, core;
		uint64_t length;

		if (kb_unlikely(left < word))
			break;
		length = kb_load_word(at, word, swap);
		if (kb_unlikely(length > left - word))
			break;
		at = record + length;
		if (kb_likely(length >= FAST_BYTES)) {
			type = kb_load32(record, swap);
			core = kb_load32(record + 4, swap);
			if (type < 8 && fast >> type & 1 && core < max_cores) {
				uint64_t timestamp = kb_load64(record + 8, swap);
				bool is_switch = type == BM_RECORD_TASK_SWITCH;
				uint64_t body = fast_body(record, is_switch, swap);

				if (kb_likely(!(body & wrong[type]))) {
					uint64_t head = type | (uint64_t)core << 32;

					t.checksum += head * MIX_HEAD + timestamp * MIX_TIME +
						      (body & keep[type]) * MIX_BODY;
					t.fast++;
					t.switches += is_switch;
					note_time(&t, &latest[core], timestamp);
					continue;
				}
			}
		}
		event.offset = b->window_offset + (record - b->window);
		if (decode_record(b, &event, record, length, word, swap))
			validate_event(b, &event, sum, &t, latest);
		else
			barman_bad_record(b, record, length, event.offset, swap);
	}
	b->at = at;
	sum->checksum += t.checksum;
	sum->backwards += t.backwards;
	sum->newest = t.newest;
	sum->oldest = t.oldest;
	sum->records += t.fast;
	sum->task_switches += t.switches;
	sum->halts += t.fast - t.switches;
}

static void window_32(struct kb_barman *b, struct kb_validation *sum, uint64_t *latest)
{
	validate_window(b, sum, latest, 4, false);
}

static void window_32_swapped(struct kb_barman *b, struct kb_validation *sum, uint64_t *latest)
{
	validate_window(b, sum, latest, 4, true);
}

static void window_64(struct kb_barman *b, struct kb_validation *sum, uint64_t *latest)
{
	validate_window(b, sum, latest, 8, false);
}

static void window_64_swapped(struct kb_barman *b, struct kb_validation *sum, uint64_t *latest)
{
	validate_window(b, sum, latest, 8, true);
}

/* What the tables say, against the lists of values in the format's text. */
static void check_tables(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;

	for (uint32_t i = 0; i < h->nr_charts; i++) {
		const struct kb_chart *chart = &h->charts[i];

		if (chart->series_composition < BM_SERIES_STACKED ||
		    chart->series_composition > BM_SERIES_LOG10)
			barman_finding(b, KB_NO_OFFSET, "chart %" PRIu32 ": %u is no series "
				       "composition", i, chart->series_composition);
		if (chart->rendering_type < BM_RENDERING_FILLED ||
		    chart->rendering_type > BM_RENDERING_BAR)
			barman_finding(b, KB_NO_OFFSET, "chart %" PRIu32 ": %u is no rendering "
				       "type", i, chart->rendering_type);
	}
	for (uint32_t i = 0; i < h->nr_series; i++) {
		const struct kb_series *series = &h->series[i];

		if (series->series_class < BM_SERIES_CLASS_DELTA ||
		    series->series_class > BM_SERIES_CLASS_ABSOLUTE)
			barman_finding(b, KB_NO_OFFSET, "series %" PRIu32 ": %u is no class", i,
				       series->series_class);
		if (series->display < BM_SERIES_DISPLAY_ACCUMULATE ||
		    series->display > BM_SERIES_DISPLAY_MINIMUM)
			barman_finding(b, KB_NO_OFFSET, "series %" PRIu32 ": %u is no display", i,
				       series->display);
	}
}

int kb_barman_validate(struct kb_barman *b, struct kb_validation *sum, struct kb_error *err)
{
	static void (*const instances[2][2])(struct kb_barman *, struct kb_validation *,
					     uint64_t *) = {
		{ window_32, window_32_swapped },
		{ window_64, window_64_swapped },
	};
	const struct kb_header *h = &b->header;
	bool swap = h->big_endian != KB_HOST_BIG_ENDIAN, cumulative = b->cumulative;
	struct kb_error why;
	uint64_t *latest;
	int ret;

	memset(sum, 0, sizeof(*sum));
	ret = kb_barman_rewind(b);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s: can't be read twice",
				    b->source.name);
	latest = calloc(h->max_cores ? h->max_cores : 1, sizeof(*latest));
	if (!latest)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory",
				    b->source.name);
	sum->oldest = UINT64_MAX;
	/* The values as they stand in the file. */
	b->cumulative = false;
	check_tables(b);
	while ((ret = barman_cursor_advance(b, &why)) == 1)
		instances[h->word_size == 8][swap](b, sum, latest);
	if (!sum->records)
		sum->oldest = 0;
	b->cumulative = cumulative;
	free(latest);
	if (ret == 0)
		return barman_tell_end(b, err);
	b->ended = true;
	barman_finding(b, KB_NO_OFFSET, "%s", why.text);
	if (err)
		*err = why;
	return ret;
}
