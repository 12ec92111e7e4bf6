// SPDX-License-Identifier: MIT
/*
 * The Annotate codec against the tables of the v3 text (what version 4 added has no text:
 * Arm's client of gator 5.24 is the fact), round trips of random content, and damage in every
 * place.
 */
#include <errno.h>

#include <kbarman/annotate.h>

#include "../lib/random.h"
#include "../lib/tap.h"

static const uint8_t setup_bytes[] = "ANNOTATE 5\n\x01\x02\x03\x04\xff\xff\xff\xff\x01";
static const struct kb_annotate_setup setup = { .version = 5, .tid = 0x04030201, .pid = -1,
						.dont_mangle = 1 };

static struct kb_out *out;

/* Any value, short ones as likely as long ones, on either side of 0. */
static uint64_t random_any(void)
{
	return random_magnitude() ^ (random_u64() & 1 ? 0 : ~UINT64_C(0));
}

static void start(void)
{
	kb_out_destroy(out);
	if (kb_out_memory(&out))
		exit(1);
	kb_annotate_write_setup(out, &setup);
}

static bool same_text(struct kb_text a, struct kb_text b)
{
	return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

static bool same_counter(const struct kb_annotate_counter *a, const struct kb_annotate_counter *b)
{
	uint32_t i;

	if (a->key != b->key || a->per_cpu != b->per_cpu || a->series_class != b->series_class ||
	    a->display != b->display || a->modifier != b->modifier ||
	    a->series_composition != b->series_composition ||
	    a->rendering_type != b->rendering_type ||
	    a->average_selection != b->average_selection ||
	    a->average_cores != b->average_cores || a->percentage != b->percentage ||
	    a->cores != b->cores || a->color != b->color || a->nr_activities != b->nr_activities)
		return false;
	for (i = 0; i < a->nr_activities; i++)
		if (!same_text(a->activities[i].name, b->activities[i].name) ||
		    a->activities[i].color != b->activities[i].color)
			return false;
	return same_text(a->title, b->title) && same_text(a->name, b->name) &&
	       same_text(a->units, b->units) && same_text(a->description, b->description);
}

static bool same_job(const struct kb_annotate_job *a, const struct kb_annotate_job *b)
{
	return a->view == b->view && a->track == b->track && a->job == b->job &&
	       a->start == b->start && a->duration == b->duration && a->color == b->color &&
	       a->primary == b->primary && a->nr_deps == b->nr_deps &&
	       (!a->nr_deps || !memcmp(a->deps, b->deps, a->nr_deps * sizeof(*a->deps))) &&
	       same_text(a->name, b->name);
}

static bool same_image(struct kb_annotate_reader *reader, const struct kb_annotate_message *m)
{
	const uint8_t *image = m->visual.image;
	uint64_t done = 0;
	uint8_t part[1000];
	size_t n;

	while ((n = kb_annotate_read_image(reader, part, 1 + random_below(sizeof(part)))) > 0) {
		if (done + n > m->visual.image_bytes || memcmp(part, image + done, n) != 0)
			return false;
		done += n;
	}
	return done == m->visual.image_bytes;
}

static bool same(struct kb_annotate_reader *reader, const struct kb_annotate_message *a,
		 const struct kb_annotate_message *b)
{
	if (a->type != b->type || a->timestamp != b->timestamp)
		return false;
	switch (a->type) {
	case KB_ANNOTATE_VISUAL:
		return same_text(a->visual.text, b->visual.text) &&
		       a->visual.image_bytes == b->visual.image_bytes &&
		       (random_below(4) == 0 || same_image(reader, a));
	case KB_ANNOTATE_COUNTER:
		return same_counter(&a->counter, &b->counter);
	case KB_ANNOTATE_VALUE:
		return a->value.core == b->value.core && a->value.key == b->value.key &&
		       a->value.value == b->value.value;
	case KB_ANNOTATE_ACTIVITY:
		return a->activity.core == b->activity.core &&
		       a->activity.key == b->activity.key &&
		       a->activity.activity == b->activity.activity &&
		       a->activity.tid == b->activity.tid;
	case KB_ANNOTATE_CAM_TRACK:
		return a->track.view == b->track.view && a->track.track == b->track.track &&
		       a->track.parent == b->track.parent &&
		       same_text(a->track.name, b->track.name);
	case KB_ANNOTATE_CAM_JOB:
	case KB_ANNOTATE_CAM_START:
	case KB_ANNOTATE_CAM_DEPS:
	case KB_ANNOTATE_CAM_STOP:
		return same_job(&a->job, &b->job);
	case KB_ANNOTATE_CAM_VIEW:
		return a->view.view == b->view.view && same_text(a->view.name, b->view.name);
	default:
		return a->note.channel == b->note.channel && a->note.group == b->note.group &&
		       a->note.color == b->note.color && same_text(a->note.text, b->note.text);
	}
}

/* ---- the tables of the text ---- */

struct table {
	const char *name;
	struct kb_annotate_message message;
	size_t size;
	uint8_t bytes[80];
};

#define TEXT(string) { string, sizeof(string) - 1 }

static const struct kb_annotate_activity two_activities[] = {
	{ TEXT("on"), 0x01020304 }, { TEXT("off"), 0x05060708 },
};
static const int32_t two_deps[] = { 1, 64 };

static const struct table tables[] = {
	{ "string_message", { .type = 1, .timestamp = 64, .note = { .channel = -1,
	  .text = TEXT("hi") } },
	  10, { 1, 5, 0, 0, 0, 0xc0, 0, 0x7f, 'h', 'i' } },
	{ "color_string_message", { .type = 2, .timestamp = 1, .note = { .channel = 2,
	  .color = 0xaabbcc1b, .text = TEXT("x") } },
	  12, { 2, 7, 0, 0, 0, 1, 2, 0xaa, 0xbb, 0xcc, 0x1b, 'x' } },
	{ "create_channel_message", { .type = 3, .timestamp = 1, .note = { .channel = 2,
	  .group = 3, .text = TEXT("c") } }, 9, { 3, 4, 0, 0, 0, 1, 2, 3, 'c' } },
	{ "create_group_message", { .type = 4, .timestamp = 1, .note = { .group = 3,
	  .text = TEXT("g") } }, 8, { 4, 3, 0, 0, 0, 1, 3, 'g' } },
	{ "visual_message", { .type = 5, .timestamp = 1, .visual = { .text = TEXT("v"),
	  .image = "\x89PNG", .image_bytes = 4 } },
	  12, { 5, 7, 0, 0, 0, 1, 'v', 0, 0x89, 'P', 'N', 'G' } },
	{ "marker_message", { .type = 6, .timestamp = 1, .note = { .text = TEXT("m") } },
	  7, { 6, 2, 0, 0, 0, 1, 'm' } },
	{ "marker_color_message", { .type = 7, .timestamp = 1, .note = { .color = 0x01020304,
	  .text = TEXT("m") } }, 11, { 7, 6, 0, 0, 0, 1, 1, 2, 3, 4, 'm' } },
	{ "counter_message", { .type = 8, .counter = { .key = 1, .per_cpu = 1, .series_class = 3,
	  .display = 2, .modifier = 1000, .series_composition = 1, .rendering_type = 2,
	  .average_selection = 0, .average_cores = 1, .percentage = 0, .cores = 4,
	  .color = 0x11223344, .nr_activities = 2, .activities = two_activities,
	  .title = TEXT("t"), .name = TEXT("n"), .units = TEXT(""), .description = TEXT("d") } },
	  43, { 8, 38, 0, 0, 0, 1, 1, 3, 2, 0xe8, 0x07, 1, 2, 0, 1, 0, 2, 4, 0x11, 0x22, 0x33,
	  0x44, 'o', 'n', 0, 1, 2, 3, 4, 'o', 'f', 'f', 0, 5, 6, 7, 8, 't', 0, 'n', 0, 0, 'd' } },
	{ "counter_value_message", { .type = 9, .timestamp = 1, .value = { .core = 2, .key = 3,
	  .value = -4758616141418899142 } },
	  18, { 9, 13, 0, 0, 0, 1, 2, 3, 0xba, 0xb2, 0xa5, 0xa2, 0xce, 0xfa, 0xff, 0xfa, 0xbd,
	  0x7f } },
	{ "activity_switch_message", { .type = 10, .timestamp = 1, .activity = { .core = 2,
	  .key = 3, .activity = 0, .tid = -1 } }, 10, { 10, 5, 0, 0, 0, 1, 2, 3, 0, 0x7f } },
	{ "cam_track_message", { .type = 11, .track = { .view = 1, .track = 2, .parent = -1,
	  .name = TEXT("CPU") } }, 11, { 11, 6, 0, 0, 0, 1, 2, 0x7f, 'C', 'P', 'U' } },
	{ "cam_job_message", { .type = 12, .job = { .view = 1, .job = 2, .track = 3, .start = 4,
	  .duration = 5, .color = 0x01020304, .primary = -1, .nr_deps = 2, .deps = two_deps,
	  .name = TEXT("j") } },
	  20, { 12, 15, 0, 0, 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 0x7f, 2, 1, 0xc0, 0, 'j' } },
	{ "cam_view_name_message", { .type = 13, .view = { .view = 1, .name = TEXT("view") } },
	  10, { 13, 5, 0, 0, 0, 1, 'v', 'i', 'e', 'w' } },
	{ "cam_job_start_message", { .type = 14, .timestamp = 64, .job = { .view = 1, .job = 2,
	  .track = 3, .color = 0x01020304, .name = TEXT("j") } },
	  15, { 14, 10, 0, 0, 0, 1, 2, 3, 0xc0, 0, 1, 2, 3, 4, 'j' } },
	{ "cam_job_dependencies_message", { .type = 15, .timestamp = 64, .job = { .view = 1,
	  .job = 2, .primary = -1, .nr_deps = 2, .deps = two_deps } },
	  14, { 15, 9, 0, 0, 0, 1, 2, 0xc0, 0, 0x7f, 2, 1, 0xc0, 0 } },
	{ "cam_job_stop_message", { .type = 16, .timestamp = 64, .job = { .view = 1, .job = 2 } },
	  9, { 16, 4, 0, 0, 0, 1, 2, 0xc0, 0 } },
};

#define NR_TABLES	(sizeof(tables) / sizeof(tables[0]))

static void check_setup(void)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const uint8_t *data;
	size_t size;

	start();
	data = kb_out_data(out, &size);
	tap_ok(size == 20 && !memcmp(data, setup_bytes, 20), "setup_has_its_20_bytes");
	if (kb_annotate_open_memory(&reader, data, size, NULL))
		exit(1);
	tap_ok(!memcmp(kb_annotate_setup(reader), &setup, sizeof(setup)), "setup_reads_as_written");
	tap_is(kb_annotate_next(reader, &m, NULL), 0, "setup_alone_is_a_stream");
	kb_annotate_close(reader);
}

static void check_tables(void)
{
	size_t size, before, i;
	char name[64];

	start();
	for (i = 0; i < NR_TABLES; i++) {
		struct kb_annotate_reader *reader;
		struct kb_annotate_message m;
		const struct kb_error *first;
		const uint8_t *data;

		kb_out_data(out, &before);
		kb_annotate_write(out, &tables[i].message);
		data = kb_out_data(out, &size);
		snprintf(name, sizeof(name), "%s_is_written_as_its_table_says", tables[i].name);
		tap_ok(size - before == tables[i].size &&
		       !memcmp(data + before, tables[i].bytes, size - before), name);

		start();
		kb_annotate_write(out, &tables[i].message);
		data = kb_out_data(out, &size);
		if (kb_annotate_open_memory(&reader, data, size, NULL))
			exit(1);
		snprintf(name, sizeof(name), "%s_reads_as_written", tables[i].name);
		tap_ok(kb_annotate_next(reader, &m, NULL) == 1 &&
		       same(reader, &tables[i].message, &m) &&
		       kb_annotate_next(reader, &m, NULL) == 0 &&
		       kb_annotate_damage(reader, &first) == 0, name);
		kb_annotate_close(reader);
	}
}

/* ---- statements ---- */

/* Read @size bytes behind a setup: the number of messages, or the error. */
static int read_body(const void *data, size_t size, unsigned int *findings, struct kb_error *err)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	int n = 0, result;
	/* a copy of its own size, so that a read beyond it is noticed */
	uint8_t *copy = malloc(KB_ANNOTATE_SETUP_BYTES + size);

	memcpy(copy, setup_bytes, KB_ANNOTATE_SETUP_BYTES);
	if (size)
		memcpy(copy + KB_ANNOTATE_SETUP_BYTES, data, size);
	result = kb_annotate_open_memory(&reader, copy, KB_ANNOTATE_SETUP_BYTES + size, err);
	if (result)
		exit(1);
	while ((result = kb_annotate_next(reader, &m, err)) > 0)
		n++;
	*findings = kb_annotate_damage(reader, &first);
	kb_annotate_close(reader);
	free(copy);
	return result < 0 ? result : n;
}

struct statement {
	const char *name;
	int result;		/* of read_body() */
	unsigned int findings;
	size_t size;
	uint8_t bytes[40];
};

static const struct statement statements[] = {
	{ "an_empty_text_is_valid", 1, 0, 7, { 1, 2, 0, 0, 0, 1, 2 } },
	{ "marker_0_is_refused", -EBADMSG, 0, 7, { 0, 2, 0, 0, 0, 1, 2 } },
	{ "marker_0x11_is_refused", -EBADMSG, 0, 7, { 17, 2, 0, 0, 0, 1, 2 } },
	{ "a_negative_length_is_refused", -EBADMSG, 0, 7, { 1, 2, 0, 0, 0x80, 1, 2 } },
	{ "a_length_over_the_limit_is_refused", -EBADMSG, 0, 7, { 1, 1, 0, 0x10, 0, 1, 2 } },
	{ "a_packed_number_beyond_its_message_is_refused", -EBADMSG, 0, 9,
	  { 1, 2, 0, 0, 0, 1, 0x80, 0x80, 0 } },
	{ "a_channel_of_33_bits_is_refused", -EBADMSG, 0, 11,
	  { 1, 6, 0, 0, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x08 } },
	{ "bytes_behind_the_last_field_are_refused", -EBADMSG, 0, 11,
	  { 10, 6, 0, 0, 0, 1, 2, 3, 0, 0x7f, 0 } },
	{ "a_string_without_nul_is_refused", -EBADMSG, 0, 7, { 5, 2, 0, 0, 0, 1, 'v' } },
	{ "a_count_below_0_is_refused", -EBADMSG, 0, 17,
	  { 12, 12, 0, 0, 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 0x7f, 0x7f, 'j' } },
	{ "a_count_beyond_the_message_is_refused", -EBADMSG, 0, 17,
	  { 12, 12, 0, 0, 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 0x7f, 2, 'j' } },
	{ "a_colour_beyond_the_message_is_refused", -EBADMSG, 0, 9, { 7, 4, 0, 0, 0, 1, 1, 2, 3 } },
	{ "a_longer_number_than_needed_is_found", 1, 1, 8, { 1, 3, 0, 0, 0, 0x81, 0, 2 } },
	{ "broken_utf8_is_found", 1, 1, 8, { 1, 3, 0, 0, 0, 1, 2, 0xff } },
	{ "a_nul_in_a_text_is_found", 1, 1, 9, { 1, 4, 0, 0, 0, 1, 2, 'a', 0 } },
	{ "track_0_is_found", 1, 1, 9, { 11, 4, 0, 0, 0, 1, 0, 0x7f, 'x' } },
	{ "class_0_is_found", 1, 1, 24,
	  { 8, 19, 0, 0, 0, 1, 1, 0, 2, 1, 1, 1, 0, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0 } },
	{ "class_5_display_6_composition_4_rendering_4_and_three_2_are_found", 1, 7, 24,
	  { 8, 19, 0, 0, 0, 1, 1, 5, 6, 1, 4, 4, 2, 2, 2, 0, 4, 1, 2, 3, 4, 0, 0, 0 } },
	{ "a_visual_without_image_is_valid", 1, 0, 7, { 5, 2, 0, 0, 0, 1, 0 } },
	{ "an_image_beyond_the_end_is_damage", -EBADMSG, 0, 8, { 5, 4, 0, 0, 0, 1, 0, 9 } },
};

static void check_statements(void)
{
	size_t i;

	for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		const struct statement *s = &statements[i];
		struct kb_error err = { .text = "" };
		unsigned int findings;
		int result = read_body(s->bytes, s->size, &findings, &err);

		if (!tap_ok(result == s->result && (result < 0 || findings == s->findings),
			    s->name))
			tap_note("result %d, findings %u: %s", result, findings, err.text);
	}
}

static int open_bytes(const char *bytes, size_t size)
{
	struct kb_annotate_reader *reader;
	int result = kb_annotate_open_memory(&reader, bytes, size, NULL);

	if (!result)
		kb_annotate_close(reader);
	return result;
}

static void check_versions(void)
{
	tap_is(open_bytes("ANNOTATE 6\n123456789", 20), -EPROTONOSUPPORT, "version_6_is_named");
	tap_is(open_bytes("ANNOTATE 12\n12345678", 20), -EPROTONOSUPPORT, "version_12_is_named");
	tap_is(open_bytes("ANNOTATE 03\n12345678", 20), -ENODATA, "version_03_is_no_stream");
	tap_is(open_bytes("ANNOTATE x\n123456789", 20), -ENODATA, "no_version_is_no_stream");
	tap_is(open_bytes("ANNOTATE 3\n12345678", 19), -EBADMSG, "a_short_setup_is_damage");
	tap_is(open_bytes("ANNOTATE 2\n12345678", 19), 0, "that_of_version_2_is_shorter");
	tap_is(open_bytes("ANNOTATE 1\n1234567", 18), -EBADMSG, "but_not_by_more");
	tap_is(open_bytes("ANNOTATE 0\n123456789", 20), -ENODATA, "version_0_is_no_stream");
	tap_is(open_bytes("BARMAN64", 8), -ENODATA, "something_else_is_no_stream");
	tap_is(open_bytes("", 0), -ENODATA, "nothing_is_no_stream");
}

static void check_refusals(void)
{
	struct kb_annotate_message m = { .type = 17 };
	struct kb_annotate_message note = { .type = 1, .note.text = { "", (size_t)INT32_MAX } };
	struct kb_annotate_message nul = { .type = 5, .visual.text = { "a\0b", 3 } };
	size_t size;

	start();
	tap_is(kb_annotate_write(out, &m), -EINVAL, "type_0x11_is_not_written");
	tap_is(kb_annotate_write(out, &note), -EMSGSIZE, "a_body_over_2_gib_is_not_written");
	kb_out_data(out, &size);
	tap_is(size, 20, "what_is_refused_leaves_no_trace");
	kb_annotate_write(out, &nul);
	kb_out_data(out, &size);
	tap_is(size, 20 + 5 + 1 + 2, "a_string_with_its_own_nul_ends_there");
}

/* ---- round trips ---- */

#define MAX_LIST	5

struct content {
	struct kb_annotate_message m;
	struct kb_annotate_activity activities[MAX_LIST];
	int32_t deps[MAX_LIST];
};

static uint8_t image[100000];

static struct kb_text random_text(void)
{
	static const char *const texts[] = { "", "a", "task", "äöü", "\xf0\x9f\x90\xa7 penguin",
					     "\"quoted\\\"", "line\nbreak", "a\tb", "0123456789" };

	return kb_text(texts[random_below(9)]);
}

static int32_t random32(void)
{
	return (int32_t)random_any();
}

static void random_counter(struct content *c)
{
	struct kb_annotate_counter *counter = &c->m.counter;
	uint32_t i;

	counter->key = random32();
	counter->per_cpu = (int32_t)random_below(2);
	counter->series_class = (int32_t)random_below(4) + 1;
	counter->display = (int32_t)random_below(5) + 1;
	counter->modifier = random32();
	counter->series_composition = (int32_t)random_below(3) + 1;
	counter->rendering_type = (int32_t)random_below(3) + 1;
	counter->average_selection = (int32_t)random_below(2);
	counter->average_cores = (int32_t)random_below(2);
	counter->percentage = (int32_t)random_below(2);
	counter->cores = random32();
	counter->color = (uint32_t)random_u64();
	counter->nr_activities = random_below(MAX_LIST + 1);
	counter->activities = c->activities;
	for (i = 0; i < counter->nr_activities; i++)
		c->activities[i] = (struct kb_annotate_activity){ random_text(),
								  (uint32_t)random_u64() };
	counter->title = random_text();
	counter->name = random_text();
	counter->units = random_text();
	counter->description = random_text();
}

static void random_job(struct content *c)
{
	struct kb_annotate_job *job = &c->m.job;
	uint32_t i;

	job->view = random32();
	job->track = random32() & INT32_MAX;
	job->job = random32();
	job->start = (int64_t)random_any();
	job->duration = (int64_t)random_any();
	job->color = (uint32_t)random_u64();
	job->primary = random32();
	job->nr_deps = random_below(MAX_LIST + 1);
	job->deps = c->deps;
	for (i = 0; i < job->nr_deps; i++)
		c->deps[i] = random32();
	job->name = random_text();
}

static void random_step(struct content *c)
{
	struct kb_annotate_job *job = &c->m.job;
	uint32_t i;

	c->m.timestamp = (int64_t)random_any();
	job->view = random32();
	job->job = random32();
	if (c->m.type == KB_ANNOTATE_CAM_START) {
		job->track = random32() & INT32_MAX;
		job->color = (uint32_t)random_u64();
		job->name = random_text();
	} else if (c->m.type == KB_ANNOTATE_CAM_DEPS) {
		job->primary = random32();
		job->nr_deps = random_below(MAX_LIST + 1);
		job->deps = c->deps;
		for (i = 0; i < job->nr_deps; i++)
			c->deps[i] = random32();
	}
}

static void random_content(struct content *c)
{
	struct kb_annotate_message *m = &c->m;

	memset(c, 0, sizeof(*c));
	m->type = (enum kb_annotate_type)(1 + random_below(16));
	if (m->type <= KB_ANNOTATE_COLOR_MARKER || m->type == KB_ANNOTATE_VALUE ||
	    m->type == KB_ANNOTATE_ACTIVITY)
		m->timestamp = (int64_t)random_any();
	switch (m->type) {
	case KB_ANNOTATE_VISUAL:
		m->visual.text = random_text();
		m->visual.image = image;
		m->visual.image_bytes = random_below(100) ? random_below(300) :
							    random_below(sizeof(image));
		break;
	case KB_ANNOTATE_COUNTER:
		random_counter(c);
		break;
	case KB_ANNOTATE_VALUE:
		m->value.core = random32();
		m->value.key = random32();
		m->value.value = (int64_t)random_any();
		break;
	case KB_ANNOTATE_ACTIVITY:
		m->activity.core = random32();
		m->activity.key = random32();
		m->activity.activity = random32() & INT32_MAX;
		m->activity.tid = random32();
		break;
	case KB_ANNOTATE_CAM_TRACK:
		m->track.view = random32();
		m->track.track = (int32_t)(1 + random_below(INT32_MAX));
		m->track.parent = (int32_t)random_below(INT32_MAX) - 1;
		m->track.name = random_text();
		break;
	case KB_ANNOTATE_CAM_JOB:
		random_job(c);
		break;
	case KB_ANNOTATE_CAM_VIEW:
		m->view.view = random32();
		m->view.name = random_text();
		break;
	case KB_ANNOTATE_CAM_START:
	case KB_ANNOTATE_CAM_DEPS:
	case KB_ANNOTATE_CAM_STOP:
		random_step(c);
		break;
	default:
		m->note.text = random_text();
		if (m->type <= KB_ANNOTATE_CHANNEL)
			m->note.channel = random32();
		if (m->type == KB_ANNOTATE_CHANNEL || m->type == KB_ANNOTATE_GROUP)
			m->note.group = random32();
		if (m->type == KB_ANNOTATE_COLOR_STRING || m->type == KB_ANNOTATE_COLOR_MARKER)
			m->note.color = (uint32_t)random_u64();
	}
}

/* Through a pipe's window as well as from memory: @file is the content of @data. */
static int differences(struct kb_annotate_reader *reader, const struct content *contents, int n)
{
	const struct kb_error *first;
	struct kb_annotate_message m;
	int i, bad = 0;

	for (i = 0; i < n; i++)
		bad += kb_annotate_next(reader, &m, NULL) != 1 ||
		       !same(reader, &contents[i].m, &m);
	bad += kb_annotate_next(reader, &m, NULL) != 0;
	bad += kb_annotate_damage(reader, &first) != 0;
	return bad;
}

static void check_round_trips(void)
{
	enum { BATCHES = 400, BATCH = 300 };
	static struct content contents[BATCH];
	char path[] = "/tmp/kbarman-annotate.XXXXXX";
	int batch, i, bad = 0, bad_file = 0, fd = mkstemp(path);

	for (i = 0; i < (int)sizeof(image); i++)
		image[i] = (uint8_t)random_u64();
	for (batch = 0; batch < BATCHES && !bad && !bad_file; batch++) {
		struct kb_annotate_reader *reader;
		const void *data;
		size_t size;

		start();
		for (i = 0; i < BATCH; i++) {
			random_content(&contents[i]);
			bad += kb_annotate_write(out, &contents[i].m) != 0;
		}
		data = kb_out_data(out, &size);
		if (kb_annotate_open_memory(&reader, data, size, NULL))
			exit(1);
		bad += differences(reader, contents, BATCH);
		kb_annotate_close(reader);
		if (batch % 10)
			continue;
		if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size ||
		    kb_annotate_open(&reader, path, NULL))
			exit(1);
		bad_file += differences(reader, contents, BATCH);
		kb_annotate_close(reader);
	}
	close(fd);
	unlink(path);
	if (!tap_is(bad, 0, "random_messages_read_as_they_were_written"))
		tap_note("in batch %d", batch);
	tap_is(bad_file, 0, "the_same_from_a_file_in_windows");
	tap_note("%d messages", batch * BATCH);
}

/* ---- damage ---- */

static void check_damage(void)
{
	size_t ends[NR_TABLES + 1], size, i, n;
	const uint8_t *data;
	uint8_t *copy;
	unsigned int findings;
	int bad = 0, bit;

	start();
	ends[0] = 0;
	for (i = 0; i < NR_TABLES; i++) {
		kb_annotate_write(out, &tables[i].message);
		kb_out_data(out, &size);
		ends[i + 1] = size - 20;
	}
	data = kb_out_data(out, &size);
	data += 20;
	size -= 20;
	copy = malloc(size);
	for (i = 0, n = 0; i < size; i++) {
		struct kb_error err;
		int result = read_body(data, i, &findings, &err);

		while (ends[n + 1] <= i)
			n++;
		bad += result != (i == ends[n] ? (int)n : -EBADMSG);
	}
	tap_is(bad, 0, "truncated_at_every_byte_is_damage_unless_between_messages");
	for (i = 0; i < size; i++) {
		for (bit = 0; bit < 9; bit++) {
			memcpy(copy, data, size);
			copy[i] ^= bit == 8 ? 0xff : 1 << bit;
			read_body(copy, size, &findings, NULL);
		}
	}
	free(copy);
	tap_ok(true, "every_byte_flipped_ends");
}

int main(void)
{
	random_start();
	check_setup();
	check_tables();
	check_statements();
	check_versions();
	check_refusals();
	check_round_trips();
	check_damage();
	kb_out_destroy(out);
	return tap_done();
}
