// SPDX-License-Identifier: MIT
/*
 * A fast check of a capture. Every field of every record is read and goes into the checksum;
 * values that the format does not allow are findings. Most records of a capture are task
 * switches, halting events and samples without extras. They have a common fast path without a
 * branch that depends on the type, which can't be predicted, and without a multiplication: the
 * checksum of many records is that of the sums of their fields. What samples have beyond the
 * others is added later, many samples at a time. All other and all suspicious records are decoded
 * as by kb_barman_next().
 *
 * Where the program may make threads, a helper checks the second half of a window meanwhile. Nothing
 * says where a record begins there. So the helper begins where a row of fast records seems to, and
 * its sums count only if the first half ends in that very place.
 */
#include <stdlib.h>

#include "base/helper.h"
#include "base/thread.h"
#include "format/barman/checksum.h"
#include "format/barman/decode.h"

#define FAST_BYTES	24	/* least length of these, including the bytes of kbarman.ext=1 */
#define FAST_TYPES	8	/* a power of two above all their types */
#define FAST_CORES	4096U	/* whose records can be fast; a power of two */
#define AHEAD		2048	/* bytes: the processor's own prefetch ends with a page */
#define RECORDS		1024	/* that are added up at a time */
#define HALVED_BYTES	(512U << 10)	/* at least, of a window of which a helper checks a half */
#define HALVED_CORES	512U	/* at most */
#define ROW		64	/* fast records in a row: there one begins, in all likelihood */
#define LOOK_BYTES	4096	/* where such a row is looked for */

/* Three counts of them in one number: a record, a switch, a timestamp before the one before it. */
#define ONE_RECORD	(UINT64_C(1) << 16)
#define ONE_SWITCH	(UINT64_C(1) << 32)
#define ONE_BACKWARDS	UINT64_C(1)
#define COUNT_OF(counts, one) ((counts) / (one) % ONE_RECORD)

/* What a value is about. Kinds and contexts of later releases are not wrong. */
static void check_detail(struct kb_barman *barman, const struct kb_event *event)
{
	uint32_t cpu = event->custom_counter.cpu;

	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
	case KB_WHAT_MIGRATE:
	case KB_WHAT_FREQUENCY:
	case KB_WHAT_IDLE_MISS:
		if (cpu >= barman->header.max_cores)
			barman_finding(barman, event->offset, "a value about CPU %" PRIu32 ", in a "
				       "capture of %" PRIu32, cpu, barman->header.max_cores);
		break;
	case KB_WHAT_SYSCALL:
	case KB_WHAT_FAULT:
	case KB_WHAT_BLOCK:
		if (event->custom_counter.begin > event->timestamp)
			barman_finding(barman, event->offset, "a %s that ends before it begins, at %" PRIu64,
				       kb_what_name(event->custom_counter.what), event->custom_counter.begin);
		break;
	default:
		break;
	}
}

/* Values that can be decoded, but that the format does not list. */
static void check_values(struct kb_barman *barman, const struct kb_event *event)
{
	if (event->type == KB_EVENT_TASK_SWITCH && !barman->has_tasks)
		barman_finding(barman, event->offset, "a task switch, in a capture without tasks");
	if (event->type == KB_EVENT_TASK_SWITCH && event->task_switch.reason > KB_SWITCH_BLOCKED)
		barman_finding(barman, event->offset, "%u is not a reason for a task switch",
			       event->task_switch.reason);
	if (event->type == KB_EVENT_ANNOTATION && event->annotation.type > KB_ANNOTATION_GROUP)
		barman_finding(barman, event->offset, "%u is not a type of annotation",
			       event->annotation.type);
	if (event->type == KB_EVENT_CUSTOM_COUNTER)
		check_detail(barman, event);
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

/* The records of a core. */
struct of_core {
	uint64_t least[FAST_TYPES];	/* by type: the least length that is fast */
	uint64_t latest;		/* timestamp of its last record */
	uint64_t first;			/* in a second half: of its first one, if it is seen */
	uint64_t seen;
};

/*
 * What is known of a capture, for its records. All tables by type have 8-byte elements, which a
 * processor addresses by the type itself.
 */
struct rules {
	uint64_t wrong_head;		/* bits of a head that fast records do not have */
	uint64_t keep[FAST_TYPES];	/* bits of a fast body that count */
	uint64_t wrong[FAST_TYPES];	/* bits of it that must be 0 */
	uint64_t lengths[FAST_TYPES];	/* how many lengths are fast, from the least one on */
	uint64_t count[FAST_TYPES];	/* ONE_RECORD, and ONE_SWITCH for a switch */
	uint64_t sample[FAST_TYPES];	/* 1 for a sample */
	struct of_core *cores;
	uint64_t longest;		/* no fast record is longer */
};

/* Check any record completely. */
static kb_always_inline void validate_record(struct kb_barman *barman, struct kb_validation *sum,
					     struct rules *rules, const uint8_t *record,
					     uint64_t length, unsigned int word, bool swap)
{
	struct kb_event event;

	event.offset = barman->window_offset + (record - barman->window);
	if (!decode_record(barman, &event, record, length, word, swap)) {
		barman_bad_record(barman, record, length, event.offset, swap);
		return;
	}
	check_values(barman, &event);
	count(sum, &event);
	sum->checksum += kb_event_checksum(&event);
	if (event.core < barman->header.max_cores) {
		sum->backwards += event.timestamp < rules->cores[event.core].latest;
		rules->cores[event.core].latest = event.timestamp;
	}
}

/* Not inlined into the loop below, which needs its registers. */
typedef void (*validate_slowly)(struct kb_barman *b, struct kb_validation *sum, struct rules *rules,
				const uint8_t *record, uint64_t length);

/* Type and core, as kb_event_checksum() puts them together. */
static kb_always_inline uint64_t load_head(const uint8_t *record, bool swap)
{
	if (!KB_HOST_BIG_ENDIAN && !swap)
		return kb_load64(record, false);
	return kb_load32(record, swap) | (uint64_t)kb_load32(record + 4, swap) << 32;
}

/*
 * The body of a task switch or halting event as one number. Fields have the positions at which
 * kb_event_checksum() puts them. Of a sample: its task, and how many custom values it has.
 */
static kb_always_inline uint64_t fast_body(const uint8_t *record, uint32_t type, bool swap)
{
	uint64_t halt, task_switch, sample;

	if (!KB_HOST_BIG_ENDIAN && !swap)
		return kb_load64(record + 16, false);
	halt = record[16] | (uint64_t)record[17] << 8;
	task_switch = kb_load32(record + 16, swap) | (uint64_t)record[20] << 32 |
		      (uint64_t)record[21] << 40 | (uint64_t)record[22] << 48;
	sample = kb_load32(record + 16, swap) | (uint64_t)kb_load32(record + 20, swap) << 32;
	return type == BM_RECORD_TASK_SWITCH ? task_switch :
	       type == BM_RECORD_SAMPLE_WITH_PC ? sample : halt;
}

#define NEVER_FAST	(UINT64_C(1) << 63)	/* as a least length */

/* The length of a sample of @core with a task, a PC and no extras. */
static uint64_t plain_length(const struct kb_barman *barman, uint32_t core)
{
	return sizeof(struct bm_protocol_record_header) + 4 + (barman->has_custom ? 4 : 0) +
	       barman->header.word_size + 8 * (uint64_t)barman->header.pmus[core].num_counters;
}

static void make_type_rules(struct rules *rules, const struct kb_barman *barman)
{
	enum { SWITCH = BM_RECORD_TASK_SWITCH, HALT = BM_RECORD_HALTING_EVENT,
	       SAMPLE = BM_RECORD_SAMPLE_WITH_PC };
	bool extended = barman->header.extended;
	/* From some length on a task switch may have a call chain. Others are not longer, either. */
	const uint64_t lengths = BM_TASK_SWITCH_CHAIN_OFFSET + sizeof(struct bm_kbarman_callchain) -
				 FAST_BYTES;

	rules->keep[HALT] = extended ? 0xffff : 0xff;
	rules->wrong[HALT] = 0xfe;
	rules->lengths[HALT] = lengths;
	rules->count[HALT] = ONE_RECORD;
	if (!barman->has_tasks)
		return;
	rules->keep[SWITCH] = !extended ? 0xffffffffff :
			      barman->header.wide_states ? 0xffffffffffffff : 0xffffffffffff;
	rules->wrong[SWITCH] = 0xfe00000000;
	rules->lengths[SWITCH] = lengths;
	rules->count[SWITCH] = ONE_RECORD | ONE_SWITCH;
	rules->keep[SAMPLE] = 0xffffffff;
	rules->wrong[SAMPLE] = barman->has_custom ? 0xffffffff00000000 : 0;
	rules->lengths[SAMPLE] = 8;	/* a chain has at least 8 bytes after the counters */
	rules->count[SAMPLE] = ONE_RECORD;
	rules->sample[SAMPLE] = 1;
}

static int make_rules(struct rules *rules, const struct kb_barman *barman)
{
	uint32_t max_cores = barman->header.max_cores, cores = 1, core, type;

	while (cores < max_cores && cores < FAST_CORES)
		cores *= 2;
	*rules = (struct rules){
		.wrong_head = ~((uint64_t)(cores - 1) << 32 | (FAST_TYPES - 1)),
		.cores = calloc(cores > max_cores ? cores : max_cores, sizeof(*rules->cores)),
		.longest = FAST_BYTES,	/* load_fast() reads so much before it knows more */
	};
	if (!rules->cores)
		return -ENOMEM;
	make_type_rules(rules, barman);
	for (core = 0; core < cores; core++)
		for (type = 0; type < FAST_TYPES; type++) {
			uint64_t least = core >= max_cores ? NEVER_FAST
					 : type == BM_RECORD_SAMPLE_WITH_PC
						 ? plain_length(barman, core)
						 : FAST_BYTES;

			rules->cores[core].least[type] = least;
			if (least != NEVER_FAST && least + rules->lengths[type] > rules->longest)
				rules->longest = least + rules->lengths[type];
		}
	return 0;
}

/* What plain samples with a task and a PC have beyond other fast records. Returns its hash. */
static kb_always_inline uint64_t hash_samples(const struct kb_barman *barman,
					      const uint8_t *const *records, size_t nr,
					      unsigned int word, bool swap)
{
	const unsigned int fixed = barman->has_custom ? 24 : 20;
	uint64_t counts = 0, pcs = 0, hash = 0;

	for (size_t i = 0; i < nr; i++) {
		const uint8_t *record = records[i], *at = record + fixed; /* NOLINT: all @nr are set */
		uint32_t nr_counters =
			barman->header.pmus[kb_load32(record + 4, swap)].num_counters;

		counts += nr_counters;
		pcs += kb_load_word(at, word, swap);
		at += word;
		for (uint64_t k = 1; k <= nr_counters; k++, at += 8)
			hash += kb_load64(at, swap) * (MIX_BODY + 2 * k);
	}
	return hash + (counts << 32) * MIX_BODY + pcs * MIX_MORE;
}

/* A record that is fast. */
struct fast {
	const uint8_t *record;
	uint64_t length, head, body;
	uint32_t type;
	struct of_core *core;
};

/* Whether the block at @at has a fast record; it ends before @at + word + rules->longest. */
static kb_always_inline bool load_fast(const struct rules *rules, const uint8_t *at,
				       unsigned int word, bool swap, struct fast *fast)
{
	fast->record = at + word;
	fast->length = kb_load_word(at, word, swap);
	fast->head = load_head(fast->record, swap);
	fast->type = (uint32_t)fast->head;
	if (kb_unlikely(fast->head & rules->wrong_head))
		return false;
	fast->core = &rules->cores[fast->head >> 32];
	if (kb_unlikely(fast->length - fast->core->least[fast->type] >= rules->lengths[fast->type]))
		return false;
	fast->body = fast_body(fast->record, fast->type, swap);
	return !kb_unlikely(fast->body & rules->wrong[fast->type]);
}

/*
 * Check fast records from @at on: at most RECORDS of them, and none that ends after @end. Returns
 * where it has stopped, which may be before a record that is not fast. In a @second half the
 * first timestamp of each core is noted.
 *
 * All sums are of this function alone, so that they are in registers, and the fields of records are
 * added up before they are multiplied.
 */
static kb_always_inline const uint8_t *
validate_fast(const struct kb_barman *barman, struct kb_validation *sum, const struct rules *all,
	      const uint8_t *at, const uint8_t *end, unsigned int word, bool swap, bool second)
{
	const struct rules rules = *all;
	uint64_t heads = 0, times = 0, bodies = 0, counts = 0;
	/* So many bytes have at most RECORDS records, and after them is room for one. */
	const size_t most = (RECORDS - 1) * (size_t)(word + FAST_BYTES), room = (size_t)(end - at);
	const uint8_t *last, *samples[RECORDS];
	size_t nr = 0;

	if (room < word + rules.longest)
		return at;
	last = at + (room - word - rules.longest < most ? room - word - rules.longest : most);
	do {
		uint64_t timestamp;
		struct fast fast;

		if (!load_fast(&rules, at, word, swap, &fast))
			break;
		at = fast.record + fast.length;
		__builtin_prefetch(fast.record + AHEAD);
		timestamp = kb_load64(fast.record + 8, swap);
		heads += fast.head;
		times += timestamp;
		bodies += fast.body & rules.keep[fast.type];
		counts += rules.count[fast.type] +
			  (timestamp < fast.core->latest ? ONE_BACKWARDS : 0);
		if (second && kb_unlikely(!fast.core->seen)) {
			fast.core->seen = 1;
			fast.core->first = timestamp;
		}
		fast.core->latest = timestamp;
		samples[nr] = fast.record;
		nr += rules.sample[fast.type];
	} while (at <= last);
	sum->checksum += heads * MIX_HEAD + times * MIX_TIME + bodies * MIX_BODY +
			 hash_samples(barman, samples, nr, word, swap);
	sum->backwards += COUNT_OF(counts, ONE_BACKWARDS);
	sum->records += COUNT_OF(counts, ONE_RECORD);
	sum->samples += nr;
	sum->task_switches += COUNT_OF(counts, ONE_SWITCH);
	sum->halts += COUNT_OF(counts, ONE_RECORD) - COUNT_OF(counts, ONE_SWITCH) - nr;
	return at;
}

/* ---- the second half of a window ---- */

struct half {
	const struct kb_barman *b;
	struct kb_helper *helper;	/* NULL: there is none, so windows are not halved */
	void (*check)(void *half);	/* check_half() of the layout */
	struct rules rules;		/* with cores of its own, which begin anew in each window */
	const uint8_t *at, *end;	/* at: afterwards, where it has stopped */
	struct kb_validation sum;
};

static kb_always_inline void check_half(struct half *half, unsigned int word, bool swap)
{
	const uint8_t *from;

	do {
		from = half->at;
		half->at = validate_fast(half->b, &half->sum, &half->rules, from, half->end, word,
					 swap, true);
	} while (half->at != from);
}

static kb_always_inline bool is_row(const struct rules *rules, const uint8_t *at,
				    unsigned int word, bool swap)
{
	struct fast fast;

	for (int i = 0; i < ROW; i++, at = fast.record + fast.length)
		if (!load_fast(rules, at, word, swap, &fast))
			return false;
	return true;
}

/* Where a record seems to begin in the middle of [at, end), or NULL. */
static kb_always_inline const uint8_t *find_middle(const struct rules *rules, const uint8_t *at,
						   const uint8_t *end, unsigned int word, bool swap)
{
	const uint8_t *middle = at + (end - at) / 2;

	if ((size_t)(end - middle) < LOOK_BYTES + ROW * (word + rules->longest))
		return NULL;
	for (at = middle; at < middle + LOOK_BYTES; at++)
		if (is_row(rules, at, word, swap))
			return at;
	return NULL;
}

static void begin_half(struct half *half, const uint8_t *at, const uint8_t *end)
{
	for (uint32_t core = 0; core < half->b->header.max_cores; core++)
		half->rules.cores[core].latest = half->rules.cores[core].seen = 0;
	half->sum = (struct kb_validation) { 0 };
	half->at = at;
	half->end = end;
	kb_helper_give(half->helper, half->check, half);
}

/* Add what the helper has counted: it has gone on where @rules have got to. */
static void join_half(const struct half *half, struct kb_validation *sum, struct rules *rules)
{
	sum->records += half->sum.records;
	sum->samples += half->sum.samples;
	sum->task_switches += half->sum.task_switches;
	sum->halts += half->sum.halts;
	sum->backwards += half->sum.backwards;
	sum->checksum += half->sum.checksum;
	for (uint32_t i = 0; i < half->b->header.max_cores; i++) {
		const struct of_core *core = &half->rules.cores[i];

		if (!core->seen)
			continue;
		sum->backwards += core->first < rules->cores[i].latest;
		rules->cores[i].latest = core->latest;
	}
}

/* ---- a window ---- */

/* Check the records that end before @end. Returns where it has stopped. */
static kb_always_inline const uint8_t *
validate_part(struct kb_barman *barman, struct kb_validation *sum, struct rules *rules,
	      const uint8_t *at, const uint8_t *end, unsigned int word, bool swap,
	      validate_slowly slowly)
{
	while ((size_t)(end - at) >= word) {
		const uint8_t *record, *from = at;
		uint64_t length;

		at = validate_fast(barman, sum, rules, at, end, word, swap, false);
		if (at != from)
			continue;
		record = at + word;
		length = kb_load_word(at, word, swap);
		if (length > (size_t)(end - record))
			break;
		slowly(barman, sum, rules, record, length);
		at = record + length;
	}
	return at;
}

static kb_always_inline void validate_window(struct kb_barman *barman, struct kb_validation *sum,
					     struct rules *rules, struct half *half,
					     unsigned int word, bool swap, validate_slowly slowly)
{
	const uint8_t *at = barman->at, *middle = NULL;

	if (half->helper && (size_t)(barman->end - at) >= HALVED_BYTES)
		middle = find_middle(rules, at, barman->end, word, swap);
	if (middle) {
		begin_half(half, middle, barman->end);
		at = validate_part(barman, sum, rules, at, middle, word, swap, slowly);
		kb_helper_wait(half->helper);
	}
	if (middle && at == middle) {
		join_half(half, sum, rules);
		at = half->at;
	}
	barman->at = validate_part(barman, sum, rules, at, barman->end, word, swap, slowly);
}

struct instance {
	void (*window)(struct kb_barman *b, struct kb_validation *sum, struct rules *rules,
		       struct half *half);
	void (*half)(void *half);
};

#define INSTANCE(name, word, swap)							\
	static __attribute__((noinline)) void slowly_##name(				\
		struct kb_barman *b, struct kb_validation *sum, struct rules *rules,	\
		const uint8_t *record, uint64_t length)					\
	{										\
		validate_record(b, sum, rules, record, length, word, swap);		\
	}										\
											\
	static void window_##name(struct kb_barman *b, struct kb_validation *sum,	\
				  struct rules *rules, struct half *half)		\
	{										\
		validate_window(b, sum, rules, half, word, swap, slowly_##name);	\
	}										\
											\
	static void half_##name(void *half)						\
	{										\
		check_half(half, word, swap);						\
	}										\
											\
	static const struct instance name = { window_##name, half_##name }

INSTANCE(of_32, 4, false);
INSTANCE(of_32_swapped, 4, true);
INSTANCE(of_64, 8, false);
INSTANCE(of_64_swapped, 8, true);

/* Get a helper if this capture has work for one, and if there may be one. */
static void get_help(struct half *half, const struct kb_barman *barman, void (*check)(void *half))
{
	if (barman->source.size < HALVED_BYTES || barman->header.max_cores > HALVED_CORES ||
	    kb_cpus() < 2 || make_rules(&half->rules, barman))
		return;
	half->b = barman;
	half->check = check;
	kb_helper_start(&half->helper);
}

static void release_half(struct half *half)
{
	kb_helper_end(half->helper);
	free(half->rules.cores);
}

/* Averages and extremes need absolute values. Sums and rates need deltas. */
static bool is_display_of_absolute(uint8_t display)
{
	return display != KB_DISPLAY_ACCUMULATE && display != KB_DISPLAY_HERTZ;
}

/* Compare the tables with the lists of values in the format's text. */
static void check_tables(struct kb_barman *barman)
{
	const struct kb_header *h = &barman->header;

	for (uint32_t i = 0; i < h->nr_charts; i++) {
		const struct kb_chart *chart = &h->charts[i];

		if (chart->series_composition < KB_COMPOSITION_STACKED ||
		    chart->series_composition > KB_COMPOSITION_LOG10)
			barman_finding(barman, KB_NO_OFFSET,
				       "chart %" PRIu32 ": %u is not a series "
				       "composition",
				       i, chart->series_composition);
		if (chart->rendering_type < KB_RENDERING_FILLED ||
		    chart->rendering_type > KB_RENDERING_BAR)
			barman_finding(barman, KB_NO_OFFSET, "chart %" PRIu32 ": %u is not a "
				       "rendering type", i, chart->rendering_type);
	}
	for (uint32_t i = 0; i < h->nr_series; i++) {
		const struct kb_series *series = &h->series[i];

		if (series->series_class < KB_SERIES_DELTA ||
		    series->series_class > KB_SERIES_ABSOLUTE)
			barman_finding(barman, KB_NO_OFFSET,
				       "series %" PRIu32 ": %u is not a class", i,
				       series->series_class);
		if (series->display < KB_DISPLAY_ACCUMULATE ||
		    series->display > KB_DISPLAY_MINIMUM)
			barman_finding(barman, KB_NO_OFFSET,
				       "series %" PRIu32 ": %u is not a display", i,
				       series->display);
		else if (is_display_of_absolute(series->display) !=
			 (series->series_class == KB_SERIES_ABSOLUTE))
			barman_finding(barman, KB_NO_OFFSET,
				       "series %" PRIu32 ": display %u does not go "
				       "with class %u",
				       i, series->display, series->series_class);
	}
}

int kb_barman_validate(struct kb_barman *barman, struct kb_validation *sum, struct kb_error *err)
{
	static const struct instance *const instances[2][2] = {
		{ &of_32, &of_32_swapped },
		{ &of_64, &of_64_swapped },
	};
	const struct kb_header *h = &barman->header;
	bool swap = h->big_endian != KB_HOST_BIG_ENDIAN, cumulative = barman->cumulative;
	const struct instance *instance = instances[h->word_size == 8][swap];
	struct half half = { 0 };
	struct kb_error why;
	struct rules rules;
	int ret;

	memset(sum, 0, sizeof(*sum));
	ret = kb_barman_rewind(barman);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s: can't be read twice",
				    barman->source.name);
	if (make_rules(&rules, barman))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory",
				    barman->source.name);
	/* Check the values as they are in the file. */
	barman->cumulative = false;
	check_tables(barman);
	get_help(&half, barman, instance->half);
	while ((ret = barman_cursor_advance(barman, &why)) == 1)
		instance->window(barman, sum, &rules, &half);
	barman->cumulative = cumulative;
	release_half(&half);
	free(rules.cores);
	return ret ? barman_end_early(barman, &why, err) : barman_tell_end(barman, err);
}
