// SPDX-License-Identifier: MIT
/*
 * A fast check of a capture. Every field of every record is read and goes into the checksum;
 * values that the format does not allow are findings. Most records of a capture are task
 * switches and halting events without extras. Both have a common fast path without a branch
 * that depends on the type. All other and all suspicious records are decoded as by
 * kb_barman_next().
 */
#include <stdlib.h>

#include "format/barman_decode.h"

#define FAST_BYTES	24	/* length of both, including the bytes of kbarman.ext=1 */

/* Odd numbers without a pattern (digits of the golden ratio, e and pi). */
#define MIX_HEAD	UINT64_C(0x9e3779b97f4a7c15)
#define MIX_TIME	UINT64_C(0xb7e151628aed2a6b)
#define MIX_BODY	UINT64_C(0x243f6a8885a308d3)
#define MIX_MORE	UINT64_C(0x13198a2e03707345)

static uint64_t hash_bytes(const char *text, uint32_t length)
{
	uint64_t hash = length;

	for (uint32_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_chain(const uint64_t *chain, uint32_t nr, uint32_t nr_kernel)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < nr; i++)
		hash += (chain[i] + nr_kernel) * (MIX_HEAD + 2 * (i + 1));
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
	return hash + hash_chain(event->sample.chain, event->sample.nr_chain,
				 event->sample.nr_chain_kernel);
}

/* 0 for a value and nothing else. */
static uint64_t hash_detail(const struct kb_event *event)
{
	uint64_t body = event->custom_counter.id | (uint64_t)event->custom_counter.cpu << 32 |
			(uint64_t)event->custom_counter.what << 48 |
			(uint64_t)event->custom_counter.context << 56;

	return event->custom_counter.what == KB_WHAT_VALUE ? 0 : body * (MIX_BODY + 2);
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
			body |= (uint64_t)(uint16_t)event->task_switch.prev_state << 40;
		return hash + body * MIX_BODY +
		       hash_chain(event->task_switch.chain, event->task_switch.nr_chain,
				  event->task_switch.nr_chain_kernel);
	case KB_EVENT_HALT:
		body = event->halt.entered | (uint64_t)(event->halt.idle_state + 1) << 8;
		return hash + body * MIX_BODY;
	case KB_EVENT_CUSTOM_COUNTER:
		body = event->task_id | (uint64_t)event->custom_counter.counter << 32;
		return hash + body * MIX_BODY + event->custom_counter.value * MIX_MORE +
		       hash_detail(event);
	case KB_EVENT_ANNOTATION:
		body = event->task_id | (uint64_t)event->annotation.channel << 32;
		hash += body * MIX_BODY;
		body = event->annotation.group | (uint64_t)event->annotation.colour << 32;
		hash += body * MIX_MORE + event->annotation.type * (MIX_BODY + 2);
		return hash + hash_bytes(event->annotation.text, event->annotation.text_length) *
			      (MIX_MORE + 2);
	default:
		/* The content is unknown; only its length counts. */
		return hash + event->unknown.length * MIX_BODY;
	}
}

/* What a value is about. Kinds and contexts of later releases are not wrong. */
static void check_detail(struct kb_barman *b, const struct kb_event *event)
{
	uint32_t cpu = event->custom_counter.cpu;

	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
	case KB_WHAT_MIGRATE:
	case KB_WHAT_FREQUENCY:
	case KB_WHAT_IDLE_MISS:
		if (cpu >= b->header.max_cores)
			barman_finding(b, event->offset, "a value about CPU %" PRIu32 ", in a "
				       "capture of %" PRIu32, cpu, b->header.max_cores);
		break;
	default:
		break;
	}
}

/* Values that can be decoded, but that the format does not list. */
static void check_values(struct kb_barman *b, const struct kb_event *event)
{
	if (event->type == KB_EVENT_TASK_SWITCH && !b->has_tasks)
		barman_finding(b, event->offset, "a task switch, in a capture without tasks");
	if (event->type == KB_EVENT_TASK_SWITCH && event->task_switch.reason > KB_SWITCH_BLOCKED)
		barman_finding(b, event->offset, "%u is not a reason for a task switch",
			       event->task_switch.reason);
	if (event->type == KB_EVENT_ANNOTATION && event->annotation.type > KB_ANNOTATION_GROUP)
		barman_finding(b, event->offset, "%u is not a type of annotation",
			       event->annotation.type);
	if (event->type == KB_EVENT_CUSTOM_COUNTER)
		check_detail(b, event);
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

/* Check any record completely. */
static kb_always_inline void validate_record(struct kb_barman *b, struct kb_validation *sum,
					     uint64_t *latest, const uint8_t *record,
					     uint64_t length, unsigned int word, bool swap)
{
	struct kb_event event;

	event.offset = b->window_offset + (record - b->window);
	if (!decode_record(b, &event, record, length, word, swap)) {
		barman_bad_record(b, record, length, event.offset, swap);
		return;
	}
	check_values(b, &event);
	count(sum, &event);
	sum->checksum += kb_event_checksum(&event);
	if (event.core < b->header.max_cores) {
		sum->backwards += event.timestamp < latest[event.core];
		latest[event.core] = event.timestamp;
	}
}

/* Not inlined into the loop below, which needs its registers. */
typedef void (*validate_slowly)(struct kb_barman *b, struct kb_validation *sum, uint64_t *latest,
				const uint8_t *record, uint64_t length);

/*
 * The body of a task switch or halting event as one number. Fields have the positions at which
 * kb_event_checksum() puts them.
 */
static kb_always_inline uint64_t fast_body(const uint8_t *record, bool is_switch, bool swap)
{
	uint64_t halt, task_switch;

	if (!KB_HOST_BIG_ENDIAN && !swap)
		return kb_load64(record + 16, false);
	halt = record[16] | (uint64_t)record[17] << 8;
	task_switch = kb_load32(record + 16, swap) | (uint64_t)record[20] << 32 |
		      (uint64_t)record[21] << 40 | (uint64_t)record[22] << 48;
	return is_switch ? task_switch : halt;
}

/* Properties of a capture for the loops below. */
struct rules {
	uint32_t fast;		/* bits of the types that have the fast path */
	uint64_t keep[8];	/* bits of a fast body that count, by record type */
	uint64_t wrong[8];	/* bits of it that must be 0 */
	uint64_t slow;		/* length from which on it may have a call chain */
	uint32_t max_cores;
	bool has_tasks;
	uint32_t custom_bytes;	/* size of a sample's number of custom values */
	const struct kb_pmu *pmus;
};

static void make_rules(const struct kb_barman *b, struct rules *rules)
{
	bool extended = b->header.extended;

	*rules = (struct rules){
		.fast = (b->has_tasks ? 1U << BM_RECORD_TASK_SWITCH : 0) |
			1U << BM_RECORD_HALTING_EVENT,
		.keep[BM_RECORD_TASK_SWITCH] = !extended ? 0xffffffffff :
			b->header.wide_states ? 0xffffffffffffff : 0xffffffffffff,
		.keep[BM_RECORD_HALTING_EVENT] = extended ? 0xffff : 0xff,
		.slow = extended ? BM_TASK_SWITCH_CHAIN_OFFSET + sizeof(struct bm_kbarman_callchain) :
				   UINT64_MAX,
		.wrong[BM_RECORD_TASK_SWITCH] = 0xfe00000000,
		.wrong[BM_RECORD_HALTING_EVENT] = 0xfe,
		.max_cores = b->header.max_cores,
		.has_tasks = b->has_tasks,
		.custom_bytes = b->has_custom ? 4 : 0,
		.pmus = b->header.pmus,
	};
}

/*
 * The checksum of the most frequent form of a sample: with a task and a PC, without custom
 * values and call chain. False: another form.
 */
static kb_always_inline bool hash_plain_sample(const struct rules *rules, const uint8_t *record,
					       uint64_t length, uint32_t core, unsigned int word,
					       bool swap, uint64_t *hash)
{
	uint32_t nr_counters = rules->pmus[core].num_counters;
	uint64_t fixed = 20 + rules->custom_bytes + word, body;
	const uint8_t *at = record + fixed;

	/* A chain has at least 8 bytes behind the counters. */
	if (length - (fixed + 8 * (uint64_t)nr_counters) >= 8)
		return false;
	if (rules->custom_bytes && kb_load32(record + 20, swap))
		return false;
	body = kb_load32(record + 16, swap) | (uint64_t)nr_counters << 32;
	*hash = body * MIX_BODY + kb_load_word(at - word, word, swap) * MIX_MORE;
	for (uint32_t i = 0; i < nr_counters; i++, at += 8)
		*hash += kb_load64(at, swap) * (MIX_BODY + 2 * (i + 1));
	return true;
}

static kb_always_inline void validate_window(struct kb_barman *b, struct kb_validation *sum,
					     uint64_t *latest, unsigned int word, bool swap,
					     validate_slowly slowly)
{
	const uint8_t *at = b->at, *end = b->end;
	uint64_t checksum = 0, backwards = 0, fast = 0, switches = 0, samples = 0;
	struct rules rules;

	make_rules(b, &rules);
	while ((size_t)(end - at) >= word) {
		const uint8_t *record = at + word;
		uint64_t length = kb_load_word(at, word, swap);
		uint64_t timestamp, head, body;
		uint32_t type, core;

		if (kb_unlikely(length > (size_t)(end - record)))
			break;
		at = record + length;
		if (kb_unlikely(length < FAST_BYTES)) {
			slowly(b, sum, latest, record, length);
			continue;
		}
		type = kb_load32(record, swap);
		core = kb_load32(record + 4, swap);
		timestamp = kb_load64(record + 8, swap);
		if (kb_unlikely(core >= rules.max_cores)) {
			slowly(b, sum, latest, record, length);
			continue;
		}
		/* One test for both types, because a branch on the type can't be predicted. */
		if (kb_likely(type < 32 && rules.fast >> type & 1)) {
			bool is_switch = type == BM_RECORD_TASK_SWITCH;

			body = fast_body(record, is_switch, swap);
			/* cppcheck-suppress arrayIndexOutOfBoundsCond ; fast has types < 8 */
			if (kb_unlikely(body & rules.wrong[type] || length >= rules.slow)) {
				slowly(b, sum, latest, record, length);
				continue;
			}
			body = (body & rules.keep[type]) * MIX_BODY;
			fast++;
			switches += is_switch;
		} else if (type == BM_RECORD_SAMPLE_WITH_PC && rules.has_tasks &&
			   hash_plain_sample(&rules, record, length, core, word, swap, &body)) {
			samples++;
		} else {
			slowly(b, sum, latest, record, length);
			continue;
		}
		head = type | (uint64_t)core << 32;
		checksum += head * MIX_HEAD + timestamp * MIX_TIME + body;
		backwards += timestamp < latest[core];
		latest[core] = timestamp;
	}
	b->at = at;
	sum->checksum += checksum;
	sum->backwards += backwards;
	sum->records += fast + samples;
	sum->samples += samples;
	sum->task_switches += switches;
	sum->halts += fast - switches;
}

#define INSTANCE(name, word, swap)							\
	static __attribute__((noinline)) void slowly_##name(				\
		struct kb_barman *b, struct kb_validation *sum, uint64_t *latest,	\
		const uint8_t *record, uint64_t length)					\
	{										\
		validate_record(b, sum, latest, record, length, word, swap);		\
	}										\
											\
	static void window_##name(struct kb_barman *b, struct kb_validation *sum,	\
				  uint64_t *latest)					\
	{										\
		validate_window(b, sum, latest, word, swap, slowly_##name);		\
	}

INSTANCE(32, 4, false)
INSTANCE(32_swapped, 4, true)
INSTANCE(64, 8, false)
INSTANCE(64_swapped, 8, true)

/* Averages and extremes need absolute values. Sums and rates need deltas. */
static bool is_display_of_absolute(uint8_t display)
{
	return display != KB_DISPLAY_ACCUMULATE && display != KB_DISPLAY_HERTZ;
}

/* Compare the tables with the lists of values in the format's text. */
static void check_tables(struct kb_barman *b)
{
	const struct kb_header *h = &b->header;

	for (uint32_t i = 0; i < h->nr_charts; i++) {
		const struct kb_chart *chart = &h->charts[i];

		if (chart->series_composition < KB_COMPOSITION_STACKED ||
		    chart->series_composition > KB_COMPOSITION_LOG10)
			barman_finding(b, KB_NO_OFFSET, "chart %" PRIu32 ": %u is not a series "
				       "composition", i, chart->series_composition);
		if (chart->rendering_type < KB_RENDERING_FILLED ||
		    chart->rendering_type > KB_RENDERING_BAR)
			barman_finding(b, KB_NO_OFFSET, "chart %" PRIu32 ": %u is not a "
				       "rendering type", i, chart->rendering_type);
	}
	for (uint32_t i = 0; i < h->nr_series; i++) {
		const struct kb_series *series = &h->series[i];

		if (series->series_class < KB_SERIES_DELTA ||
		    series->series_class > KB_SERIES_ABSOLUTE)
			barman_finding(b, KB_NO_OFFSET, "series %" PRIu32 ": %u is not a class", i,
				       series->series_class);
		if (series->display < KB_DISPLAY_ACCUMULATE ||
		    series->display > KB_DISPLAY_MINIMUM)
			barman_finding(b, KB_NO_OFFSET, "series %" PRIu32 ": %u is not a display",
				       i, series->display);
		else if (is_display_of_absolute(series->display) !=
			 (series->series_class == KB_SERIES_ABSOLUTE))
			barman_finding(b, KB_NO_OFFSET, "series %" PRIu32 ": display %u does not go "
				       "with class %u", i, series->display, series->series_class);
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
	/* Check the values as they are in the file. */
	b->cumulative = false;
	check_tables(b);
	while ((ret = barman_cursor_advance(b, &why)) == 1)
		instances[h->word_size == 8][swap](b, sum, latest);
	b->cumulative = cumulative;
	free(latest);
	return ret ? barman_end_early(b, &why, err) : barman_tell_end(b, err);
}
