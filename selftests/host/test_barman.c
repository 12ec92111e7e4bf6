// SPDX-License-Identifier: MIT
/*
 * The reader against the Barman V2 text, statement by statement, on captures that
 * are put together by hand in all four layouts; and against what the text leaves
 * open, as real agents do it.
 */
#include <errno.h>

#include <kbarman/barman.h>

#include "barman_image.h"
#include "../lib/tap.h"

static const char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l";

#define STRINGS	.strings = letters, .strings_used = sizeof(letters), .strings_max = 32
#define CLOCK	.multiplier = 1, .divisor = 1

/* What most tests need: two cores with two counters, tasks, maps, custom series. */
static const struct image_header usual = {
	.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .tasks_used = 3, .maps = 3,
	.maps_used = 2, .pmu_counters = 6, .counters_used = 2, .charts = 2, .series = 3,
	STRINGS, CLOCK,
};

static char layout_name[128];

static const char *named(const struct image *im, const char *name)
{
	snprintf(layout_name, sizeof(layout_name), "%s_%u_%s", name, im->word * 8,
		 im->big ? "big" : "little");
	return layout_name;
}

static struct kb_barman *open_image(const struct image *im)
{
	struct kb_barman *barman;
	struct kb_error err;

	if (kb_barman_open_memory(&barman, im->data, im->length, &err)) {
		tap_note("%s", err.text);
		return NULL;
	}
	kb_barman_set_counters(barman, KB_COUNTERS_DELTA);
	return barman;
}

static void note_findings(struct kb_barman *barman)
{
	const struct kb_error *finding;

	for (unsigned int i = 0; (finding = kb_barman_finding(barman, i)); i++)
		tap_note("%s", finding->text);
}

/* Begin anew in the same layout. */
static void renew(struct image *im)
{
	struct image empty = { .word = im->word, .big = im->big };

	image_free(im);
	*im = empty;
}

/* Count the records, and want no damage. */
static int64_t count_records(const struct image *im)
{
	struct kb_barman *barman = open_image(im);
	struct kb_event event;
	int64_t n = 0;

	if (!barman)
		return -1;
	while (kb_barman_next(barman, &event, NULL) == 1)
		n++;
	if (kb_barman_damage(barman, NULL)) {
		note_findings(barman);
		n = -2;
	}
	kb_barman_close(barman);
	return n;
}

static void magic_bytes_tell_word_and_order(void)
{
	static const struct {
		uint8_t bytes[8];
		unsigned int word;
		bool big;
		const char *name;
	} rows[] = {
		{ { 0x32, 0x33, 0x4e, 0x41, 0x4d, 0x52, 0x41, 0x42 }, 4, false, "magic_little_32" },
		{ { 0x34, 0x36, 0x4e, 0x41, 0x4d, 0x52, 0x41, 0x42 }, 8, false, "magic_little_64" },
		{ { 0x42, 0x41, 0x52, 0x4d, 0x41, 0x4e, 0x33, 0x32 }, 4, true, "magic_big_32" },
		{ { 0x42, 0x41, 0x52, 0x4d, 0x41, 0x4e, 0x36, 0x34 }, 8, true, "magic_big_64" },
	};

	for (int i = 0; i < 4; i++) {
		struct image im = { .word = rows[i].word, .big = rows[i].big };
		struct kb_barman *barman;

		image_header(&im, &usual);
		memcpy(im.data, rows[i].bytes, 8);
		barman = open_image(&im);
		tap_ok(barman && kb_barman_header(barman)->word_size == rows[i].word &&
		       kb_barman_header(barman)->big_endian == rows[i].big, rows[i].name);
		kb_barman_close(barman);
		image_free(&im);
	}
}

static void other_magic_is_no_capture(void)
{
	struct kb_barman *barman;
	struct kb_error err;

	tap_is(kb_barman_open_memory(&barman, "BARMAN65........", 16, &err), -ENODATA,
	       "other_magic_is_no_capture");
	tap_is(kb_barman_open_memory(&barman, "BARM", 4, &err), -ENODATA,
	       "four_bytes_are_no_capture");
	tap_is(kb_barman_open_memory(&barman, "", 0, &err), -ENODATA, "nothing_is_no_capture");
}

static void header_fields_are_read(struct image *im)
{
	struct image_header want = usual;
	const struct kb_header *h;
	struct kb_barman *barman;
	bool good;

	want.target_name = 4;
	want.last_timestamp = 0x1122334455667788;
	want.sample_rate = 0x99aabbcc;
	want.base = 0x0102030405060708;
	want.multiplier = 0x1112131415161718;
	want.divisor = 0x2122232425262728;
	want.unix_base = 0x3132333435363738;
	image_header(im, &want);
	image_store(im, 0x4142434445464748, 0x10, 0x10, 0x20);
	barman = open_image(im);
	h = barman ? kb_barman_header(barman) : NULL;
	good = h && h->protocol_version == 2 && h->data_store_type == 1 &&
	       h->target_name_ptr == 4 && !strcmp(h->target_name, "c") &&
	       h->last_timestamp == want.last_timestamp &&
	       h->timer_sample_rate == want.sample_rate && h->max_cores == 2 &&
	       h->max_task_infos == 4 && h->max_mmap_layout == 3 && h->max_pmu_counters == 6 &&
	       h->max_string_table_length == 32 && h->num_custom_counters == 3 &&
	       h->timestamp_base == want.base && h->timestamp_multiplier == want.multiplier &&
	       h->timestamp_divisor == want.divisor && h->unix_base_ns == want.unix_base &&
	       h->string_table_length == sizeof(letters);
	tap_ok(good, named(im, "header_fields"));
	tap_ok(h && h->buffer_length == 0x4142434445464748 && h->write_offset == 0x10 &&
	       h->read_offset == 0x10 && h->total_written == 0x20, named(im, "store_parameters"));
	tap_ok(h && h->buffer_start == im->buffer_at,
	       named(im, "buffer_starts_at_a_multiple_of_8"));
	kb_barman_close(barman);
}

static void tables_are_read(struct image *im)
{
	const struct kb_header *h;
	struct kb_barman *barman;
	bool good = true;

	image_header(im, &usual);
	image_linear(im);
	barman = open_image(im);
	if (!tap_ok(barman, named(im, "tables_open")))
		return;
	h = kb_barman_header(barman);
	for (uint32_t c = 0; c < 2; c++) {
		const struct kb_pmu *pmu = &h->pmus[c];

		good &= pmu->configuration_timestamp == 100 + c && pmu->midr == 200 + c &&
			pmu->mpidr == 300 + c && pmu->cluster_id == 400 + c &&
			pmu->num_counters == 2 && pmu->counter_types[0] == 500 + 10 * c &&
			pmu->counter_types[1] == 501 + 10 * c;
	}
	tap_ok(good, named(im, "per_core_pmu_settings"));

	good = h->nr_tasks == 3;
	for (uint32_t i = 0; good && i < 3; i++)
		good = h->tasks[i].timestamp == 600 + i && h->tasks[i].task_id == 700 + i &&
		       h->tasks[i].name[0] == (char)('a' + i) && !h->tasks[i].name[1];
	tap_ok(good, named(im, "task_info"));

	good = h->nr_maps == 2;
	for (uint32_t i = 0; good && i < 2; i++)
		good = h->maps[i].timestamp == 800 + i && h->maps[i].task_id == 900 + i &&
		       h->maps[i].base_address == 0x1000 * i && h->maps[i].length == 0x2000 * i &&
		       h->maps[i].image_offset == 0x3000 * i &&
		       h->maps[i].image[0] == (char)('a' + i);
	tap_ok(good, named(im, "mmap_layout"));

	good = h->nr_charts == 2;
	for (uint32_t i = 0; good && i < 2; i++)
		good = h->charts[i].name[0] == (char)('a' + i) &&
		       h->charts[i].series_composition == 1 && h->charts[i].rendering_type == 2 &&
		       h->charts[i].boolean_flags == 15;
	tap_ok(good, named(im, "custom_charts"));

	good = h->nr_series == 3;
	for (uint32_t i = 0; good && i < 3; i++)
		good = h->series[i].chart_index == i % 2 &&
		       h->series[i].name[0] == (char)('a' + i) &&
		       h->series[i].units[0] == (char)('b' + i) &&
		       h->series[i].description[0] == (char)('c' + i) &&
		       h->series[i].colour == 0x100 + i && h->series[i].multiplier == i / 4.0 &&
		       h->series[i].series_class == 2 && h->series[i].display == 3 &&
		       h->series[i].boolean_flags == 1;
	tap_ok(good, named(im, "custom_series"));
	tap_ok(!kb_barman_damage(barman, NULL), named(im, "tables_are_undamaged"));
	kb_barman_close(barman);
}

static void absent_tables_take_no_room(struct image *im)
{
	struct image_header none = { .version = 2, .store_type = 1, .cores = 1, STRINGS, CLOCK };
	const struct kb_header *h;
	struct kb_barman *barman;

	image_header(im, &none);
	image_linear(im);
	barman = open_image(im);
	h = barman ? kb_barman_header(barman) : NULL;
	tap_ok(h && !h->nr_tasks && !h->nr_maps && !h->nr_charts && !h->nr_series &&
	       h->buffer_start == im->buffer_at && !kb_barman_damage(barman, NULL),
	       named(im, "absent_tables_take_no_room"));
	kb_barman_close(barman);

	/* Without tasks a map has neither timestamp nor task. */
	none.maps = 2;
	none.maps_used = 2;
	renew(im);
	image_header(im, &none);
	image_linear(im);
	barman = open_image(im);
	h = barman ? kb_barman_header(barman) : NULL;
	tap_ok(h && h->nr_maps == 2 && h->maps[1].base_address == 0x1000 &&
	       h->maps[1].image_offset == 0x3000 && !h->maps[1].timestamp &&
	       !h->maps[1].task_id, named(im, "maps_without_tasks_are_shorter"));
	kb_barman_close(barman);
}

static void sample_forms(struct image *im)
{
	struct kb_barman *barman;
	struct kb_event e;
	bool good = true;

	/* with and without tasks, custom counters, PC */
	for (int form = 0; form < 8; form++) {
		bool tasks = form & 1, custom = form & 2, pc = form & 4;
		struct image_header h = usual;
		size_t start;

		renew(im);
		h.tasks = tasks ? 4 : 0;
		h.series = custom ? 3 : 0;
		image_header(im, &h);
		start = image_begin(im);
		image_record(im, pc ? 2 : 1, 1, 0x123456789abcdef0);
		if (tasks)
			image_u32(im, 77);
		if (custom)
			image_u32(im, 2);
		if (pc)
			image_word(im, 0x80001234);
		image_u64(im, 0x1111111111111111);
		image_u64(im, UINT64_MAX);
		if (custom) {
			image_u32(im, 2);
			image_u64(im, 0x2222222222222222);
			image_u32(im, 0);
			image_u64(im, 5);
		}
		image_end(im, start);
		image_linear(im);
		barman = open_image(im);
		good &= barman && kb_barman_next(barman, &e, NULL) == 1 &&
			e.type == KB_EVENT_SAMPLE && e.core == 1 &&
			e.timestamp == 0x123456789abcdef0 && e.task_id == (tasks ? 77 : 0) &&
			e.sample.has_pc == pc && e.sample.pc == (pc ? 0x80001234 : 0) &&
			e.sample.nr_counters == 2 && e.sample.counters[0] == 0x1111111111111111 &&
			e.sample.counters[1] == KB_COUNTER_INVALID &&
			e.sample.nr_custom == (custom ? 2 : 0) && !e.sample.nr_chain &&
			e.offset == im->buffer_at + im->word;
		if (good && custom)
			good = e.sample.custom[0].id == 2 &&
			       e.sample.custom[0].value == 0x2222222222222222 &&
			       e.sample.custom[1].id == 0 && e.sample.custom[1].value == 5;
		if (barman)
			good &= kb_barman_next(barman, &e, NULL) == 0;
		kb_barman_close(barman);
		if (!good) {
			tap_note("form %d", form);
			break;
		}
	}
	tap_ok(good, named(im, "samples_in_all_eight_forms"));
}

/* Records that are not samples, one behind the other. */
static void other_records(struct image *im)
{
	struct kb_barman *barman;
	struct kb_event e;
	size_t start;

	image_header(im, &usual);
	image_switch(im, 0, 10, 0xfffffffe, 1);
	start = image_begin(im);
	image_record(im, 4, 1, 20);
	image_u32(im, 78);
	image_u32(im, 2);
	image_u64(im, 0xfedcba9876543210);
	image_end(im, start);
	start = image_begin(im);
	image_record(im, 5, 1, 30);
	image_u32(im, 79);
	image_word(im, 6);
	image_u32(im, 3);
	image_u32(im, 4);
	image_u32(im, 0x1b112233);
	image_u8(im, 2);
	image_bytes(im, "hello", 6);
	image_end(im, start);
	start = image_begin(im);
	image_record(im, 6, 0, 40);
	image_u8(im, 1);
	image_end(im, start);
	start = image_begin(im);
	image_record(im, 6, 0, 41);
	image_u8(im, 0);
	image_end(im, start);
	image_linear(im);

	barman = open_image(im);
	if (!tap_ok(barman, named(im, "records_open")))
		return;
	tap_ok(kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_TASK_SWITCH &&
	       e.core == 0 && e.timestamp == 10 && e.task_id == 0xfffffffe &&
	       e.task_switch.reason == 1 && e.task_switch.prev_state == KB_STATE_UNKNOWN,
	       named(im, "task_switch"));
	tap_ok(kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_CUSTOM_COUNTER &&
	       e.core == 1 && e.timestamp == 20 && e.task_id == 78 &&
	       e.custom_counter.counter == 2 && e.custom_counter.value == 0xfedcba9876543210,
	       named(im, "custom_counter"));
	tap_ok(kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_ANNOTATION &&
	       e.core == 1 && e.timestamp == 30 && e.task_id == 79 &&
	       e.annotation.data_length == 6 && e.annotation.channel == 3 &&
	       e.annotation.group == 4 && e.annotation.colour == 0x1b112233 &&
	       e.annotation.type == 2 && e.annotation.text_length == 5 &&
	       !memcmp(e.annotation.text, "hello", 5), named(im, "annotation_without_its_nul"));
	tap_ok(kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_HALT &&
	       e.timestamp == 40 && e.halt.entered && e.halt.idle_state == KB_STATE_UNKNOWN,
	       named(im, "halt_entered"));
	tap_ok(kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_HALT &&
	       e.timestamp == 41 && !e.halt.entered, named(im, "halt_left"));
	tap_is(kb_barman_next(barman, &e, NULL), 0, named(im, "end_of_records"));
	kb_barman_close(barman);
}

static void blocks_may_be_longer_than_records(struct image *im)
{
	size_t start;

	image_header(im, &usual);
	start = image_begin(im);
	image_record(im, 3, 0, 1);
	image_u32(im, 5);
	image_u8(im, 0);
	for (int i = 0; i < 100; i++)
		image_u8(im, 0xff);
	image_end(im, start);
	image_switch(im, 1, 2, 6, 0);
	image_linear(im);
	tap_is(count_records(im), 2, named(im, "blocks_may_be_longer_than_records"));
}

static void padding_and_uncommitted_blocks_are_passed_over(struct image *im)
{
	image_header(im, &usual);
	image_padding(im, 0);
	image_switch(im, 0, 1, 5, 0);
	image_padding(im, 3 * im->word);
	image_switch(im, 0, 2, 5, 0);
	image_padding(im, im->word);
	image_linear(im);
	tap_is(count_records(im), 2, named(im, "padding_and_uncommitted_blocks_are_passed_over"));
}

static void unknown_types_are_passed_on(struct image *im)
{
	struct kb_barman *barman;
	struct kb_event e;
	size_t start;

	image_header(im, &usual);
	start = image_begin(im);
	image_record(im, 9, UINT32_MAX, UINT64_MAX);
	image_u64(im, 1);
	image_end(im, start);
	image_switch(im, 0, 1, 5, 0);
	image_linear(im);
	barman = open_image(im);
	tap_ok(barman && kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_UNKNOWN &&
	       e.unknown.record_type == 9 && e.unknown.length == 24 &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_TASK_SWITCH &&
	       !kb_barman_damage(barman, NULL), named(im, "unknown_types_are_passed_on"));
	kb_barman_close(barman);
}

/* What kbarman.ext=1 announces, and what is there without it. */
static void extension_is_read_when_announced(struct image *im)
{
	static const char announced[] = "a\0kbarman.ext=1\0kbarman.host=here";

	for (int with = 0; with < 2; with++) {
		struct image_header h = usual;
		struct kb_barman *barman;
		struct kb_event e;
		size_t start;
		bool good;

		renew(im);
		h.strings = with ? announced : letters;
		h.strings_used = with ? sizeof(announced) : sizeof(letters);
		h.strings_max = 64;
		h.tasks_used = h.maps_used = 0;
		h.series = 0;
		image_header(im, &h);
		start = image_begin(im);
		image_record(im, 3, 0, 1);
		image_u32(im, 5);
		image_u8(im, 1);
		image_u8(im, 2);
		image_end(im, start);
		start = image_begin(im);
		image_record(im, 6, 0, 2);
		image_u8(im, 1);
		image_u8(im, 4);
		image_end(im, start);
		start = image_begin(im);
		image_record(im, 2, 0, 3);
		image_u32(im, 5);
		image_word(im, 0x1000);
		image_u64(im, 7);
		image_u64(im, 8);
		image_u32(im, 3);
		image_u32(im, 1);
		image_word(im, 0x2000);
		image_word(im, 0x3000);
		image_word(im, 0x4000);
		image_end(im, start);
		image_linear(im);
		barman = open_image(im);
		good = barman && kb_barman_next(barman, &e, NULL) == 1 &&
		       e.task_switch.prev_state == (with ? 2 : KB_STATE_UNKNOWN) &&
		       kb_barman_next(barman, &e, NULL) == 1 &&
		       e.halt.idle_state == (with ? 3 : KB_STATE_UNKNOWN) &&
		       kb_barman_next(barman, &e, NULL) == 1 &&
		       e.sample.nr_chain == (with ? 3 : 0);
		if (good && with)
			good = e.sample.nr_chain_kernel == 1 && e.sample.chain[0] == 0x2000 &&
			       e.sample.chain[2] == 0x4000;
		tap_ok(good, named(im, with ? "extension_is_read_when_announced"
					    : "extension_is_not_read_otherwise"));
		if (with)
			tap_is_string(barman ? kb_barman_fact(barman, "host") : NULL, "here",
				      named(im, "facts_are_found"));
		kb_barman_close(barman);
	}
}

/* A value and what it is about; if not @whole the block ends in the middle of that. */
static bool read_detail(struct image *im, bool announced, bool tasks, bool whole,
			struct kb_event *e)
{
	static const char fact[] = "a\0kbarman.ext=1";
	struct image_header h = usual;
	struct kb_barman *barman;
	size_t start;
	bool good;

	renew(im);
	if (announced) {
		h.strings = fact;
		h.strings_used = sizeof(fact);
		h.strings_max = 64;
	}
	h.tasks_used = h.maps_used = 0;
	h.tasks = tasks ? h.tasks : 0;
	image_header(im, &h);
	start = image_begin(im);
	image_record(im, 4, 1, 20);
	if (tasks)
		image_u32(im, 78);
	image_u32(im, 2);
	image_u64(im, 1);
	image_u32(im, 0x12345678);
	if (whole) {
		image_put(im, 3, 2);
		image_u8(im, 1);
		image_u8(im, 2);
	}
	image_end(im, start);
	image_linear(im);
	barman = open_image(im);
	good = barman && kb_barman_next(barman, e, NULL) == 1 &&
	       e->type == KB_EVENT_CUSTOM_COUNTER && e->task_id == (tasks ? 78 : 0) &&
	       e->custom_counter.counter == 2 && e->custom_counter.value == 1;
	kb_barman_close(barman);
	return good;
}

static bool is_plain_value(const struct kb_event *e)
{
	return e->custom_counter.what == KB_WHAT_VALUE && !e->custom_counter.context &&
	       !e->custom_counter.cpu && !e->custom_counter.id;
}

static void values_say_what_they_are_about(struct image *im)
{
	struct kb_event e;

	for (int tasks = 0; tasks < 2; tasks++)
		tap_ok(read_detail(im, true, tasks, true, &e) && e.custom_counter.id == 0x12345678 &&
		       e.custom_counter.cpu == 3 && e.custom_counter.what == KB_WHAT_WAKING &&
		       e.custom_counter.context == KB_CONTEXT_IRQ,
		       named(im, tasks ? "values_say_what_they_are_about"
				       : "values_without_tasks_say_what_they_are_about"));
	tap_ok(read_detail(im, false, true, true, &e) && is_plain_value(&e),
	       named(im, "values_are_plain_without_the_extension"));
	tap_ok(read_detail(im, true, true, false, &e) && is_plain_value(&e),
	       named(im, "values_with_too_few_bytes_are_plain"));
}

/* What a later module may add to a record, at its end. */
static void image_end_grown(struct image *im, size_t start, int more)
{
	for (int i = 0; i < more; i++)
		image_u8(im, 0xa5);
	image_end(im, start);
}

static void image_chain(struct image *im)
{
	image_u32(im, 2);
	image_u32(im, 1);
	image_word(im, 0x2000);
	image_word(im, 0x3000);
}

/* Each record with all of its extensions, and @more bytes behind them. */
static void image_extended(struct image *im, int more)
{
	size_t start = image_begin(im);

	image_record(im, 3, 0, 1);
	image_u32(im, 5);
	image_u8(im, 1);
	image_put(im, 2, 1);
	image_put(im, 0, 2);
	image_chain(im);
	image_end_grown(im, start, more);
	start = image_begin(im);
	image_record(im, 2, 0, 2);
	image_u32(im, 5);
	image_u32(im, 0);
	image_word(im, 0x1000);
	image_u64(im, 7);
	image_u64(im, 8);
	image_chain(im);
	image_end_grown(im, start, more);
	for (int lost = 0; lost < 2; lost++) {
		start = image_begin(im);
		image_record(im, 4, 0, 3);
		image_u32(im, 5);
		image_u32(im, 0);
		image_u64(im, 1);
		image_u32(im, 2);
		image_put(im, 1, 2);
		image_u8(im, lost ? 13 : 1);
		image_u8(im, 2);
		if (lost)
			image_u64(im, 1);
		image_end_grown(im, start, more);
	}
	start = image_begin(im);
	image_record(im, 5, 0, 4);
	image_u32(im, 5);
	image_word(im, 2);
	image_u32(im, 1);
	image_u32(im, 2);
	image_u32(im, 3);
	image_u8(im, 1);
	image_bytes(im, "x", 2);
	image_end_grown(im, start, more);
	start = image_begin(im);
	image_record(im, 6, 0, 5);
	image_u8(im, 1);
	image_u8(im, 4);
	image_end_grown(im, start, more);
}

static bool is_extended(struct kb_barman *barman)
{
	struct kb_event e;

	return kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_TASK_SWITCH &&
	       e.task_switch.prev_state == 2 && e.task_switch.nr_chain == 2 &&
	       e.task_switch.chain[1] == 0x3000 &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_SAMPLE &&
	       e.sample.pc == 0x1000 && e.sample.nr_chain == 2 && e.sample.nr_chain_kernel == 1 &&
	       e.sample.chain[1] == 0x3000 && !e.sample.nr_custom &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.custom_counter.what == KB_WHAT_WAKING &&
	       e.custom_counter.id == 2 && e.custom_counter.cpu == 1 && !e.custom_counter.lost &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.custom_counter.lost == 3 &&
	       e.custom_counter.begin == 1 && e.custom_counter.what == KB_WHAT_VALUE &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_ANNOTATION &&
	       e.annotation.text_length == 1 && *e.annotation.text == 'x' &&
	       kb_barman_next(barman, &e, NULL) == 1 && e.type == KB_EVENT_HALT &&
	       e.halt.idle_state == 3 &&
	       !kb_barman_next(barman, &e, NULL) && !kb_barman_damage(barman, NULL);
}

static void records_that_have_grown_are_read_as_before(struct image *im)
{
	static const char announced[] = "a\0kbarman.ext=1";

	for (int more = 0; more <= 24; more += 24) {
		struct kb_validation sum = { 0 };
		struct image_header h = usual;
		struct kb_barman *barman;

		renew(im);
		h.strings = announced;
		h.strings_used = sizeof(announced);
		h.strings_max = 64;
		h.tasks_used = h.maps_used = 0;
		image_header(im, &h);
		image_extended(im, more);
		image_linear(im);
		barman = open_image(im);
		tap_ok(barman && is_extended(barman),
		       named(im, more ? "records_that_have_grown_are_read_as_before"
				      : "records_with_all_extensions_are_read"));
		kb_barman_close(barman);
		barman = open_image(im);
		if (!tap_ok(barman && !kb_barman_validate(barman, &sum, NULL) && sum.records == 6 &&
			    !kb_barman_damage(barman, NULL),
			    named(im, more ? "records_that_have_grown_have_no_findings"
					   : "records_with_all_extensions_have_no_findings")))
			note_findings(barman);
		kb_barman_close(barman);
	}
}

/* The example of the text: a buffer of 64 bytes on a 32-bit target. */
static void ring_of_the_text(struct image *im)
{
	static const uint32_t want[] = { 0x10, 0x1c, 0x2a, 0x00 };
	struct image_header h = usual;
	struct kb_barman *barman;
	struct kb_event event;

	h.store_type = 2;
	image_header(im, &h);
	for (int i = 0; i < 8; i++)
		image_u64(im, 0);
	image_set(im, im->buffer_at + 0x10, 8, 4);
	image_set(im, im->buffer_at + 0x1c, 10, 4);
	image_set(im, im->buffer_at + 0x2a, 6, 4);
	image_set(im, im->buffer_at + 0x34, 8 | 0x80000000, 4);
	image_set(im, im->buffer_at + 0x00, 10, 4);
	for (int reduced = 0; reduced < 2; reduced++) {
		bool good = true;

		/* 62 bytes from 0x10 on */
		image_store(im, 64, reduced ? 0x0e : 64 + 0x0e, 0x10, 64 + 0x0e);
		barman = open_image(im);
		good = barman != NULL;
		/* The blocks are too short for records, which tells where they are. */
		if (good) {
			good = kb_barman_next(barman, &event, NULL) == -EBADMSG &&
			       kb_barman_damage(barman, NULL) == 4;
			for (unsigned int i = 0; good && i < 4; i++)
				good = kb_barman_finding(barman, i)->offset ==
				       im->buffer_at + want[i] + 4;
		}
		tap_ok(good, named(im, reduced ? "ring_of_the_text_with_reduced_offsets"
					       : "ring_of_the_text"));
		if (!good && barman)
			note_findings(barman);
		kb_barman_close(barman);
	}
}

/* The timestamps of a ring's records, as one number of a digit each. */
static int64_t ring_digits(const struct image *im)
{
	struct kb_barman *barman = open_image(im);
	struct kb_event event;
	int64_t digits = 0;

	if (!barman)
		return -1;
	while (kb_barman_next(barman, &event, NULL) == 1)
		digits = digits * 10 + event.timestamp;
	if (kb_barman_damage(barman, NULL)) {
		note_findings(barman);
		digits = -2;
	}
	kb_barman_close(barman);
	return digits;
}

/* Four switches of equal length, 4 1 2 3 in the buffer, in all conventions. */
static void ring_offsets(struct image *im)
{
	struct image_header h = usual;
	uint64_t block = im->word + 24, n = 4 * block;

	h.store_type = 2;
	image_header(im, &h);
	image_switch(im, 0, 4, 5, 0);
	for (int i = 1; i < 4; i++)
		image_switch(im, 0, i, 5, 0);

	image_store(im, n, 5 * n + block, 4 * n + block, 5 * n + block);
	tap_is(ring_digits(im), 1234, named(im, "full_ring_monotonic"));
	image_store(im, n, block, block, 5 * n + block);
	tap_is(ring_digits(im), 1234, named(im, "full_ring_reduced"));
	image_store(im, n, 5 * n, 4 * n + block, 5 * n);
	tap_is(ring_digits(im), 123, named(im, "ring_that_ends_at_the_end_monotonic"));
	image_store(im, n, 0, block, 5 * n);
	tap_is(ring_digits(im), 123, named(im, "ring_that_ends_at_the_end_reduced"));
	image_store(im, n, block, 0, block);
	tap_is(ring_digits(im), 4, named(im, "ring_that_has_not_wrapped"));
	image_store(im, n, n, 0, n);
	tap_is(ring_digits(im), 4123, named(im, "ring_exactly_full"));
	image_store(im, n, 0, 0, n);
	tap_is(ring_digits(im), 4123, named(im, "ring_exactly_full_reduced"));
	image_store(im, n, 0, 0, 0);
	tap_is(ring_digits(im), 0, named(im, "ring_never_written"));
	image_store(im, n, 7 * n + block, 7 * n + block, 7 * n + block);
	tap_is(ring_digits(im), 0, named(im, "ring_all_consumed"));
	image_store(im, n, block, block, block);
	tap_is(ring_digits(im), 0, named(im, "ring_consumed_before_it_wrapped"));
	image_store(im, n, 2 * block, 3 * block, 9 * n + 2 * block);
	tap_is(ring_digits(im), 341, named(im, "wrapped_ring_reduced"));
}

static void odd_ring_skips_its_last_bytes(struct image *im)
{
	struct image_header h = usual;
	uint64_t block = im->word + 24, n = 3 * block + im->word - 1;

	h.store_type = 2;
	image_header(im, &h);
	image_switch(im, 0, 3, 5, 0);
	image_switch(im, 0, 1, 5, 0);
	image_switch(im, 0, 2, 5, 0);
	for (uint64_t i = 3 * block; i < n; i++)
		image_u8(im, 0xff);
	image_store(im, n, n + block, block, n + block);
	tap_is(ring_digits(im), 123, named(im, "odd_ring_skips_its_last_bytes"));
}

static void linear_range(struct image *im)
{
	uint64_t block = im->word + 24;

	image_header(im, &usual);
	for (int i = 1; i < 5; i++)
		image_switch(im, 0, i, 5, 0);
	image_store(im, 4 * block, 3 * block, 0, 3 * block);
	tap_is(ring_digits(im), 123, named(im, "linear_stops_at_the_write_offset"));
	image_store(im, 4 * block, 4 * block, block, 4 * block);
	tap_is(ring_digits(im), 234, named(im, "linear_starts_at_the_read_offset"));
	image_store(im, 1000 * block, 4 * block, 0, 4 * block);
	tap_is(ring_digits(im), 1234, named(im, "file_may_end_at_the_write_offset"));
	image_store(im, 0x7ffffffffffffff0, 0x7ffffffffffffff0, 0, 0);
	tap_is(ring_digits(im), 1234, named(im, "open_end_is_the_end_of_the_file"));
	im->length -= 3;
	tap_is(ring_digits(im), -2, named(im, "open_end_inside_a_block_is_damage"));
}

static void short_header_of_the_text(struct image *im)
{
	struct image_header h = usual;

	h.short_store = true;
	image_header(im, &h);
	image_switch(im, 0, 1, 5, 0);
	image_linear(im);
	tap_is(count_records(im), 1, named(im, "store_of_36_bytes_on_32_bit"));
}

static void version_3_has_records_of_no_core(void)
{
	struct image im = { .word = 8 };
	struct image_header h = usual;
	struct kb_barman *barman;
	struct kb_event e;
	size_t start;

	h.version = 3;
	image_header(&im, &h);
	start = image_begin(&im);
	image_record(&im, 5, UINT32_MAX, UINT64_MAX);
	image_u32(&im, 0);
	image_word(&im, 0);
	for (int i = 0; i < 13; i++)
		image_u8(&im, 0);
	image_end(&im, start);
	image_linear(&im);
	barman = open_image(&im);
	tap_ok(barman && kb_barman_next(barman, &e, NULL) == 1 && e.core == KB_CORE_NONE &&
	       e.annotation.text_length == 0, "version_3_has_records_of_no_core");
	kb_barman_close(barman);
	image_set(&im, 8, 2, 4);
	barman = open_image(&im);
	tap_ok(barman && kb_barman_next(barman, &e, NULL) < 0, "version_2_has_not");
	kb_barman_close(barman);
	image_free(&im);
}

static void versions_and_stores(void)
{
	static const struct {
		uint32_t version;
		unsigned int findings;
		const char *name;
	} versions[] = {
		{ 0, 1, "version_0_is_warned_of" }, { 1, 0, "version_1_is_read" },
		{ 2, 0, "version_2_is_read" }, { 3, 0, "version_3_is_read" },
		{ 4, 1, "version_4_is_warned_of" },
	};
	static const char *const stores[] = {
		"user", "", "", "STM", "streaming", "ITM", "not known",
	};
	struct kb_barman *barman;
	struct kb_error err;

	for (int i = 0; i < 5; i++) {
		struct image im = { .word = 8 };
		struct image_header h = usual;

		h.version = versions[i].version;
		image_header(&im, &h);
		image_linear(&im);
		barman = open_image(&im);
		tap_ok(barman && kb_barman_damage(barman, NULL) == versions[i].findings,
		       versions[i].name);
		kb_barman_close(barman);
		image_free(&im);
	}
	for (uint32_t type = 0; type < 7; type++) {
		struct image im = { .word = 8 };
		struct image_header h = usual;
		char name[64];

		if (type == 1 || type == 2)
			continue;
		h.store_type = type;
		image_header(&im, &h);
		snprintf(name, sizeof(name), "store_type_%u_is_named_in_the_error", type);
		tap_ok(kb_barman_open_memory(&barman, im.data, im.length, &err) == -EBADMSG &&
		       strstr(err.text, stores[type]), name);
		image_free(&im);
	}
}

static void counts_may_equal_the_maximum(struct image *im)
{
	struct image_header h = usual;

	h.tasks_used = h.tasks;
	h.maps_used = h.maps;
	image_header(im, &h);
	image_linear(im);
	tap_is(count_records(im), 0, named(im, "counts_may_equal_the_maximum"));
}

int main(void)
{
	static void (*const each_layout[])(struct image *) = {
		header_fields_are_read, tables_are_read, absent_tables_take_no_room, sample_forms,
		other_records, blocks_may_be_longer_than_records,
		padding_and_uncommitted_blocks_are_passed_over, unknown_types_are_passed_on,
		extension_is_read_when_announced, values_say_what_they_are_about,
		records_that_have_grown_are_read_as_before, ring_offsets,
		odd_ring_skips_its_last_bytes, linear_range, counts_may_equal_the_maximum,
	};

	magic_bytes_tell_word_and_order();
	other_magic_is_no_capture();
	for (unsigned int word = 4; word <= 8; word += 4) {
		for (int big = 0; big < 2; big++) {
			struct image im;

			for (size_t i = 0; i < sizeof(each_layout) / sizeof(each_layout[0]); i++) {
				im = (struct image){ .word = word, .big = big };
				each_layout[i](&im);
				image_free(&im);
			}
			if (word == 8)
				continue;
			im = (struct image){ .word = word, .big = big };
			ring_of_the_text(&im);
			image_free(&im);
			im = (struct image){ .word = word, .big = big };
			short_header_of_the_text(&im);
			image_free(&im);
		}
	}
	version_3_has_records_of_no_core();
	versions_and_stores();
	return tap_done();
}
