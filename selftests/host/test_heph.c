// SPDX-License-Identifier: MIT
/*
 * The Heph codec against the statements of "Trace Format" 0.1.0, round trips of random
 * content, and damage in every place.
 */
#include <errno.h>

#include <kbarman/heph.h>

#include "../lib/random.h"
#include "../lib/tap.h"

static struct kb_out *out;

/* Any value, short ones as likely as long ones, on either side of 0. */
static uint64_t random_any(void)
{
	return random_magnitude() ^ (random_u64() & 1 ? 0 : ~UINT64_C(0));
}

static const uint8_t *encoded(size_t *size)
{
	return kb_out_data(out, size);
}

static void start(void)
{
	kb_out_destroy(out);
	if (kb_out_memory(&out))
		exit(1);
}

/* ---- the text's own examples ---- */

static const uint8_t epoch_example[] = {
	0x75, 0xd1, 0x1d, 0x4d, 0, 0, 0, 23, 0, 5, 'e', 'p', 'o', 'c', 'h',
	0x16, 0x58, 0x45, 0xe9, 0x12, 0x14, 0xec, 0x90,	/* 1610113734118010000 */
};

static const uint8_t event_example[] = {
	0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, 91, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 200,
	0, 8, 'M', 'y', ' ', 'e', 'v', 'e', 'n', 't',
	0, 4, 'T', 'e', 's', 't', 0x01, 0, 0, 0, 0, 0, 0, 0, 123,
	0, 5, 'T', 'e', 's', 't', '2', 0x83, 0, 2,
	0x40, 0x5e, 0xdd, 0x2f, 0x1a, 0x9f, 0xbe, 0x77,	/* 123.456 */
	0x40, 0x88, 0xa8, 0, 0, 0, 0, 0,			/* 789.0 */
};

static const union kb_heph_value example_number = { .u64 = 123 };
static const union kb_heph_value example_floats[] = { { .f64 = 123.456 }, { .f64 = 789.0 } };

static int write_example(void)
{
	struct kb_heph_attribute attributes[] = {
		{ kb_text("Test"), KB_HEPH_U64, 1, &example_number },
		{ kb_text("Test2"), KB_HEPH_F64 | KB_HEPH_ARRAY, 2, example_floats },
	};
	struct kb_heph_event event = {
		.substream = 1, .start = 100, .end = 200, .description = kb_text("My event"),
		.nr_attributes = 2, .attributes = attributes,
	};

	return kb_heph_write_event(out, &event);
}

static void check_examples(void)
{
	const uint8_t *data;
	uint64_t epoch = 0;
	size_t size, i;

	for (i = 15; i < 23; i++)
		epoch = epoch << 8 | epoch_example[i];
	tap_ok(epoch == 1610113734118010000u, "the_test_has_the_epoch_of_the_text");
	start();
	kb_heph_write_epoch(out, 1610113734118010000u);
	data = encoded(&size);
	tap_ok(size == 23 && !memcmp(data, epoch_example, 23), "the_epoch_packet_has_its_23_bytes");
	start();
	tap_is(write_example(), 0, "the_event_of_the_text_is_written");
	data = encoded(&size);
	tap_ok(size == 91 && !memcmp(data, event_example, 91), "the_event_packet_has_its_91_bytes");
}

static void check_event_example_reads(void)
{
	struct kb_heph_reader *reader;
	struct kb_heph_attribute a;
	struct kb_heph_packet packet;
	const struct kb_error *first;

	if (kb_heph_open_memory(&reader, event_example, sizeof(event_example), NULL))
		exit(1);
	tap_is(kb_heph_next(reader, &packet, NULL), 1, "the_event_of_the_text_is_read");
	tap_ok(packet.magic == KB_HEPH_EVENT_MAGIC && packet.size == 91 &&
	       packet.event.stream == 0 && packet.event.counter == 0 &&
	       packet.event.substream == 1 && packet.event.start == 100 &&
	       packet.event.end == 200 && packet.event.description.length == 8 &&
	       !memcmp(packet.event.description.data, "My event", 8) &&
	       packet.event.nr_attributes == 2, "its_fields_are_those_of_the_text");
	tap_ok(kb_heph_next_attribute(reader, &a) == 1 && a.type == KB_HEPH_U64 &&
	       a.name.length == 4 && !memcmp(a.name.data, "Test", 4) && a.count == 1 &&
	       a.values[0].u64 == 123, "its_first_attribute_is_123");
	tap_ok(kb_heph_next_attribute(reader, &a) == 1 &&
	       a.type == (KB_HEPH_ARRAY | KB_HEPH_F64) && a.count == 2 &&
	       a.values[0].f64 == 123.456 && a.values[1].f64 == 789.0,
	       "its_second_attribute_is_two_floats");
	tap_is(kb_heph_next_attribute(reader, &a), 0, "it_has_no_third_attribute");
	tap_is(kb_heph_next(reader, &packet, NULL), 0, "the_trace_ends_behind_it");
	tap_is(kb_heph_damage(reader, &first), 0, "nothing_is_wrong_with_it");
	kb_heph_close(reader);
}

/* ---- statements ---- */

/* Read all of @data: the number of packets, or the error. */
static int read_all(const void *data, size_t size, unsigned int *findings, struct kb_error *err)
{
	struct kb_heph_reader *reader;
	struct kb_heph_attribute attribute;
	struct kb_heph_packet packet;
	const struct kb_error *first;
	int n = 0, result = kb_heph_open_memory(&reader, data, size, err);

	if (result)
		return result;
	while ((result = kb_heph_next(reader, &packet, err)) > 0) {
		n++;
		while (packet.magic == KB_HEPH_EVENT_MAGIC &&
		       kb_heph_next_attribute(reader, &attribute))
			;
	}
	*findings = kb_heph_damage(reader, &first);
	kb_heph_close(reader);
	return result < 0 ? result : n;
}

struct statement {
	const char *name;
	int result;		/* of read_all() */
	unsigned int findings;
	size_t size;
	uint8_t bytes[96];
};

#define EVENT_START(size) 0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, size, 0, 0, 0, 1, 0, 0, 0, 2, \
	0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5
#define METADATA(size) 0x75, 0xd1, 0x1d, 0x4d, 0, 0, 0, size

static const struct statement statements[] = {
	{ "an_event_without_attributes_is_valid", 1, 0, 42, { EVENT_START(42), 0, 0 } },
	{ "a_trace_without_metadata_is_valid", 1, 0, 43, { EVENT_START(43), 0, 1, 'x' } },
	{ "a_type_of_0_is_refused", -EBADMSG, 0, 53,
	  { EVENT_START(53), 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 } },
	{ "a_type_of_5_is_refused", -EBADMSG, 0, 53,
	  { EVENT_START(53), 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8 } },
	{ "an_untyped_array_is_refused", -EBADMSG, 0, 47,
	  { EVENT_START(47), 0, 0, 0, 0, 0x80, 0, 0 } },
	{ "an_empty_array_is_valid", 1, 0, 47, { EVENT_START(47), 0, 0, 0, 0, 0x84, 0, 0 } },
	{ "an_unnamed_attribute_is_valid", 1, 0, 53,
	  { EVENT_START(53), 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8 } },
	{ "an_array_of_strings_is_valid", 1, 0, 52,
	  { EVENT_START(52), 0, 0, 0, 0, 0x84, 0, 2, 0, 1, 'a', 0, 0 } },
	{ "a_value_beyond_the_packet_is_refused", -EBADMSG, 0, 52,
	  { EVENT_START(52), 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7 } },
	{ "a_string_beyond_the_packet_is_refused", -EBADMSG, 0, 43, { EVENT_START(43), 0, 2, 'x' } },
	{ "an_array_beyond_the_packet_is_refused", -EBADMSG, 0, 55,
	  { EVENT_START(55), 0, 0, 0, 0, 0x81, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8 } },
	{ "an_attribute_without_value_is_refused", -EBADMSG, 0, 44, { EVENT_START(44), 0, 0, 0, 0 } },
	{ "a_size_below_the_least_is_refused", -EBADMSG, 0, 42, { EVENT_START(41), 0, 0 } },
	{ "broken_utf8_is_found", 1, 1, 43, { EVENT_START(43), 0, 1, 0xff } },
	{ "bytes_between_packets_are_refused", -EBADMSG, 0, 50,
	  { EVENT_START(42), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "an_end_before_the_start_is_found", 1, 1, 42,
	  { 0xc1, 0xfc, 0x1f, 0xb7, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	    0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0 } },
	{ "metadata_of_10_bytes_is_the_least", 1, 1, 10, { METADATA(10), 0, 0 } },
	{ "an_unknown_option_is_found_and_passed_over", 2, 1, 54,
	  { METADATA(12), 0, 1, 'x', 7, EVENT_START(42), 0, 0 } },
	{ "metadata_may_come_behind_events", 2, 0, 65,
	  { EVENT_START(42), 0, 0, METADATA(23), 0, 5, 'e', 'p', 'o', 'c', 'h', 1 } },
	{ "an_epoch_of_4_bytes_is_refused", -EBADMSG, 0, 19,
	  { METADATA(19), 0, 5, 'e', 'p', 'o', 'c', 'h', 1, 2, 3, 4 } },
	{ "another_magic_is_no_trace", -ENODATA, 0, 10, { 0x75, 0xd1, 0x1d, 0x57, 0, 0, 0, 10 } },
	{ "nothing_is_no_trace", -ENODATA, 0, 0, { 0 } },
};

static void check_statements(void)
{
	size_t i;

	for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		const struct statement *s = &statements[i];
		struct kb_error err = { .text = "" };
		unsigned int findings = 0;
		int result = read_all(s->bytes, s->size, &findings, &err);

		if (!tap_ok(result == s->result && (result < 0 || findings == s->findings),
			    s->name))
			tap_note("result %d, findings %u: %s", result, findings, err.text);
	}
}

static void check_refusals(void)
{
	static char long_text[UINT16_MAX + 1];
	union kb_heph_value value = { .string = { long_text, sizeof(long_text) } };
	struct kb_heph_attribute attribute = { kb_text("a"), KB_HEPH_STRING, 1, &value };
	struct kb_heph_event event = { .nr_attributes = 1, .attributes = &attribute,
				       .description = kb_text("") };
	size_t size;

	start();
	tap_is(kb_heph_write_event(out, &event), -EMSGSIZE, "a_string_over_65535_bytes_is_refused");
	value.string.length--;
	tap_is(kb_heph_write_event(out, &event), 0, "a_string_of_65535_bytes_is_written");
	attribute.type = KB_HEPH_ARRAY;
	tap_is(kb_heph_write_event(out, &event), -EINVAL, "an_untyped_array_is_not_written");
	attribute.type = 5;
	tap_is(kb_heph_write_event(out, &event), -EINVAL, "an_unknown_type_is_not_written");
	event.description = (struct kb_text){ long_text, sizeof(long_text) };
	tap_is(kb_heph_write_event(out, &event), -EMSGSIZE, "a_long_description_is_refused");
	encoded(&size);
	tap_is(size, 42 + 2 + 1 + 1 + 2 + 65535, "what_is_refused_leaves_no_trace");
}

/* ---- round trips ---- */

#define MAX_ATTRIBUTES	6
#define MAX_VALUES	9

struct content {
	struct kb_heph_event event;
	struct kb_heph_attribute attributes[MAX_ATTRIBUTES];
	union kb_heph_value values[MAX_ATTRIBUTES][MAX_VALUES];
};

static struct kb_text random_text(void)
{
	static const char *const texts[] = { "", "a", "task", "äöü", "\xf0\x9f\x90\xa7 penguin",
					     "\"quoted\\\"", "line\nbreak", "a\tb", "0123456789" };
	static char long_text[70000];
	struct kb_text text = kb_text(texts[random_below(9)]);

	if (random_below(5000) == 0) {
		memset(long_text, 'x', sizeof(long_text));
		text = (struct kb_text){ long_text, UINT16_MAX - random_below(3) };
	}
	return text;
}

static void random_content(struct content *c)
{
	uint32_t i, j;

	memset(c, 0, sizeof(*c));
	c->event.stream = (uint32_t)random_any();
	c->event.counter = (uint32_t)random_any();
	c->event.substream = random_any();
	c->event.start = random_any();
	c->event.end = c->event.start + random_below(1000);
	if (c->event.end < c->event.start)
		c->event.end = c->event.start;
	c->event.description = random_text();
	c->event.nr_attributes = random_below(MAX_ATTRIBUTES + 1);
	c->event.attributes = c->attributes;
	for (i = 0; i < c->event.nr_attributes; i++) {
		struct kb_heph_attribute *a = &c->attributes[i];

		a->name = random_text();
		a->type = (uint8_t)(1 + random_below(4));
		a->count = 1;
		if (random_below(2)) {
			a->type |= KB_HEPH_ARRAY;
			a->count = (uint16_t)random_below(MAX_VALUES + 1);
		}
		a->values = c->values[i];
		for (j = 0; j < a->count; j++) {
			if ((a->type & 0x7f) == KB_HEPH_STRING)
				c->values[i][j].string = random_text();
			else
				c->values[i][j].u64 = random_any();
		}
	}
}

static bool same_text(struct kb_text a, struct kb_text b)
{
	return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

static bool same_attribute(const struct kb_heph_attribute *a, const struct kb_heph_attribute *b)
{
	uint32_t i;

	if (!same_text(a->name, b->name) || a->type != b->type || a->count != b->count)
		return false;
	for (i = 0; i < a->count; i++) {
		if ((a->type & 0x7f) == KB_HEPH_STRING ?
		    !same_text(a->values[i].string, b->values[i].string) :
		    a->values[i].u64 != b->values[i].u64)
			return false;
	}
	return true;
}

static bool same_event(struct kb_heph_reader *reader, const struct kb_heph_event *a,
		       const struct kb_heph_event *b)
{
	struct kb_heph_attribute attribute;
	uint32_t i;

	if (a->stream != b->stream || a->counter != b->counter || a->substream != b->substream ||
	    a->start != b->start || a->end != b->end ||
	    !same_text(a->description, b->description) || a->nr_attributes != b->nr_attributes)
		return false;
	for (i = 0; i < a->nr_attributes; i++)
		if (kb_heph_next_attribute(reader, &attribute) != 1 ||
		    !same_attribute(&a->attributes[i], &attribute))
			return false;
	return kb_heph_next_attribute(reader, &attribute) == 0;
}

static void check_round_trips(void)
{
	enum { BATCHES = 400, BATCH = 300 };
	static struct content contents[BATCH];
	int batch, i, bad = 0;

	for (batch = 0; batch < BATCHES && !bad; batch++) {
		struct kb_heph_reader *reader = NULL;
		struct kb_heph_packet packet;
		uint64_t epoch = random_any();
		const uint8_t *data;
		size_t size;

		start();
		kb_heph_write_epoch(out, epoch);
		for (i = 0; i < BATCH; i++) {
			random_content(&contents[i]);
			bad += kb_heph_write_event(out, &contents[i].event) != 0;
		}
		data = encoded(&size);
		if (kb_heph_open_memory(&reader, data, size, NULL))
			exit(1);
		bad += kb_heph_next(reader, &packet, NULL) != 1 || !packet.metadata.is_epoch ||
		       packet.metadata.epoch != epoch;
		for (i = 0; i < BATCH; i++)
			bad += kb_heph_next(reader, &packet, NULL) != 1 ||
			       !same_event(reader, &contents[i].event, &packet.event);
		bad += kb_heph_next(reader, &packet, NULL) != 0;
		kb_heph_close(reader);
	}
	if (!tap_is(bad, 0, "random_events_read_as_they_were_written"))
		tap_note("in batch %d", batch);
	tap_note("%d events", batch * BATCH);
}

/* ---- damage ---- */

static void check_damage(void)
{
	unsigned int findings;
	uint8_t *copy;
	size_t size, i;
	int whole, bad = 0, bit;
	const uint8_t *data;

	start();
	kb_heph_write_epoch(out, 1);
	write_example();
	write_example();
	data = encoded(&size);
	copy = malloc(size);
	whole = read_all(data, size, &findings, NULL);
	tap_is(whole, 3, "the_golden_trace_has_3_packets");
	for (i = 4; i < size; i++) {
		struct kb_heph_reader *reader;
		struct kb_heph_packet packet;
		int n = 0, want = (i >= 23) + (i >= 23 + 91), result;
		/* a copy of its own size, so that a read beyond it is noticed */
		uint8_t *part = malloc(i);

		memcpy(part, data, i);
		if (kb_heph_open_memory(&reader, part, i, NULL))
			exit(1);
		while ((result = kb_heph_next(reader, &packet, NULL)) > 0)
			n++;
		bad += n != want || result != (i == 23 || i == 23 + 91 ? 0 : -EBADMSG);
		kb_heph_close(reader);
		free(part);
	}
	tap_is(bad, 0, "truncated_at_every_byte_all_whole_packets_are_read");
	for (i = 0; i < size; i++) {
		for (bit = 0; bit < 9; bit++) {
			memcpy(copy, data, size);
			copy[i] ^= bit == 8 ? 0xff : 1 << bit;
			read_all(copy, size, &findings, NULL);
		}
	}
	free(copy);
	tap_ok(true, "every_byte_flipped_ends");
}

int main(void)
{
	random_start();
	check_examples();
	check_event_example_reads();
	check_statements();
	check_refusals();
	check_round_trips();
	check_damage();
	kb_out_destroy(out);
	return tap_done();
}
