// SPDX-License-Identifier: MIT
/*
 * A TPTP trace that is cut or changed anywhere gives everything whole that is before
 * the damage, and never a crash, a hang or a message that was not there.
 */
#include <time.h>

#include "test_tptp.h"

#define MAX_MESSAGES	64

/* One of each message, and where each of them ends in the trace. */
struct golden {
	struct trace trace;
	const uint8_t *data;
	size_t size;
	int nr;
	size_t ends[MAX_MESSAGES];
	struct random_message *messages;
};

static void golden_create(struct golden *golden, const struct kb_tptp_layout *layout)
{
	uint64_t state = 42;

	memset(golden, 0, sizeof(*golden));
	golden->messages = calloc(MAX_MESSAGES, sizeof(*golden->messages));
	trace_begin(&golden->trace, layout);
	if (layout->binary) {	/* those that the writer puts in front */
		struct kb_tptp_message *m = &golden->messages[0].message;

		kb_tptp_message_init(m, KB_TPTP_ENCODING);
		m->values[0].string = kb_text("UTF-8");
		golden->ends[0] = 12 + 12;
		m = &golden->messages[1].message;
		kb_tptp_message_init(m, KB_TPTP_FREQUENCY);
		m->values[0].number = KB_TPTP_FREQUENCY_NS;
		golden->ends[1] = 12 + 12 + 14;
		golden->nr = 2;
	}
	for (int k = 2; kb_tptp_table_at(k); k++) {
		struct random_message *random = &golden->messages[golden->nr];

		random_fill(random, &state, kb_tptp_table_at(k)->id);
		kb_tptp_writer_message(golden->trace.writer, &random->message);
		trace_data(&golden->trace, &golden->size);
		golden->ends[golden->nr++] = golden->size;
	}
	kb_tptp_writer_finish(golden->trace.writer);
	golden->data = trace_data(&golden->trace, &golden->size);
}

static void golden_free(struct golden *golden)
{
	trace_free(&golden->trace);
	free(golden->messages);
}

/*
 * Read @data, which equals the golden trace up to @damage: are all messages before it
 * there? Counts what was found wrong.
 */
static bool delivers_before(const struct golden *golden, const uint8_t *data, size_t size,
			    size_t damage, int *findings)
{
	struct kb_tptp_message message;
	struct kb_tptp *tptp;
	int ret, n = 0, calls = 0;

	*findings = 0;
	ret = kb_tptp_open_memory(&tptp, data, size, NULL);
	if (ret) {
		(*findings)++;
		return damage < golden->ends[0];
	}
	while ((ret = kb_tptp_next(tptp, &message, NULL)) != 0 && calls++ < 100000) {
		*findings += ret < 0;
		if (ret < 0)
			continue;
		if (n < golden->nr && golden->ends[n] <= damage &&
		    difference(&golden->messages[n].message, &message) >= 0)
			break;
		n++;
	}
	kb_tptp_close(tptp);
	return !ret && (n >= golden->nr || golden->ends[n] > damage);
}

static void check_cuts(const struct golden *golden, const char *form)
{
	bool delivered = true, noticed = true;
	char name[80];
	int last = 0;

	for (size_t size = 0; size < golden->size; size++) {
		int findings;

		delivered = delivered && delivers_before(golden, golden->data, size, size, &findings);
		while (last < golden->nr && golden->ends[last] < size)
			last++;
		/* A binary trace has no end of its own: cut between messages it is whole. */
		if (!strcmp(form, "XML") ? size + 1 < golden->size :
		    (size < golden->ends[0] ? size != 12 : size != golden->ends[last]))
			noticed = noticed && findings;
	}
	snprintf(name, sizeof(name), "cut_traces_deliver_what_is_whole: %s", form);
	tap_ok(delivered, name);
	snprintf(name, sizeof(name), "cuts_are_noticed: %s", form);
	tap_ok(noticed, name);
}

static void check_flips(const struct golden *golden, const char *form)
{
	uint8_t *data = malloc(golden->size);
	bool delivered = true;
	clock_t slowest = 0;
	char name[80];

	memcpy(data, golden->data, golden->size);
	for (size_t at = 0; at < golden->size; at++)
		for (int bit = 0; bit <= 8; bit++) {
			clock_t start = clock();
			int findings;

			data[at] ^= bit == 8 ? 0xff : 1 << bit;
			delivered = delivered &&
				    delivers_before(golden, data, golden->size, at, &findings);
			data[at] = golden->data[at];
			start = clock() - start;
			if (start > slowest)
				slowest = start;
		}
	free(data);
	snprintf(name, sizeof(name), "changed_traces_deliver_what_is_before: %s", form);
	tap_ok(delivered, name);
	snprintf(name, sizeof(name), "changed_traces_end_within_a_second: %s", form);
	tap_ok(slowest < CLOCKS_PER_SEC, name);
}

/* Each of these is refused, with the offset of what is wrong. */
static void check_malformed(void)
{
	static const struct {
		const char *name, *xml;
		uint64_t offset;
	} cases[] = {
		{ "no_end_of_the_root", "<TRACE><node/>", 14 },
		{ "tag_is_cut", "<TRACE><node nodeId=\"", 7 },
		{ "end_tag_of_another", "<TRACE><node></nod></TRACE>", 13 },
		{ "attribute_twice", "<TRACE><node time=\"1\" time=\"1\"/></TRACE>", 22 },
		{ "no_quotes", "<TRACE><node time=1/></TRACE>", 18 },
		{ "no_value", "<TRACE><node time/></TRACE>", 17 },
		{ "no_blank_between", "<TRACE><node a=\"1\"b=\"1\"/></TRACE>", 18 },
		{ "less_than_in_value", "<TRACE><node a=\"<\"/></TRACE>", 16 },
		{ "bare_ampersand", "<TRACE><node a=\"&\"/></TRACE>", 16 },
		{ "entity_unknown", "<TRACE><node a=\"&x;\"/></TRACE>", 16 },
		{ "reference_to_nul", "<TRACE><node a=\"&#0;\"/></TRACE>", 16 },
		{ "reference_to_surrogate", "<TRACE><node a=\"&#xd800;\"/></TRACE>", 16 },
		{ "reference_too_large", "<TRACE><node a=\"&#99999999999;\"/></TRACE>", 16 },
		{ "control_character", "<TRACE><node a=\"\x01\"/></TRACE>", 16 },
		{ "value_not_utf8", "<TRACE><node a=\"\xff\"/></TRACE>", 16 },
		{ "text_not_utf8", "<TRACE>\xff</TRACE>", 7 },
		{ "text_outside", "<TRACE></TRACE>x", 15 },
		{ "second_root", "<TRACE/><TRACE/>", 8 },
		{ "two_dashes_in_comment", "<TRACE><!-- -- --></TRACE>", 15 },
		{ "comment_is_cut", "<TRACE><!-- ", 7 },
		{ "cdata_end_in_text", "<TRACE>]]></TRACE>", 9 },
		{ "late_declaration", "<TRACE><?xml version=\"1.0\"?></TRACE>", 7 },
		{ "times_sign_in_a_name", "<TRACE><a\xc3\x97/></TRACE>", 9 },
		{ "bad_number", "<TRACE><node time=\"1e5\"/></TRACE>", 7 },
		{ "number_too_large", "<TRACE><node timezone=\"2147483648\"/></TRACE>", 7 },
		{ "time_too_large", "<TRACE><node time=\"9223372036.854775808\"/></TRACE>", 7 },
		{ "list_too_short", "<TRACE><monWait stackDepth=\"2\" stackMethods=\"a\"/></TRACE>", 7 },
		{ "list_too_long", "<TRACE><monWait stackDepth=\"1\" stackLines=\"1 2\"/></TRACE>", 7 },
		{ "depth_too_large", "<TRACE><monWait stackDepth=\"999999999\"/></TRACE>", 7 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kb_tptp_message message;
		struct kb_error err = { .text = "", .offset = 0 };
		struct kb_tptp *tptp;
		char name[80];
		int ret;

		snprintf(name, sizeof(name), "xml_is_refused_at_its_place: %s", cases[i].name);
		ret = kb_tptp_open_memory(&tptp, cases[i].xml, strlen(cases[i].xml), &err);
		if (!ret) {
			while ((ret = kb_tptp_next(tptp, &message, &err)) > 0)
				;
			kb_tptp_close(tptp);
		}
		if (!tap_ok(ret == -EBADMSG && err.offset == cases[i].offset, name))
			tap_note("%d at %d: %s", ret, (int)err.offset, err.text);
	}
}

static void check_accepted(void)
{
	static const struct {
		const char *name, *xml;
		int messages;
	} cases[] = {
		{ "byte_order_mark", "\xef\xbb\xbf<TRACE><node/></TRACE>", 1 },
		{ "declaration", "<?xml version='1.0' encoding='utf-8' standalone='yes'?><TRACE/>", 0 },
		{ "doctype", "<!DOCTYPE TRACE SYSTEM \"a>b\"><TRACE><node/></TRACE>", 1 },
		{ "comments_and_instructions", "<!-- a --><?b c?><TRACE><!----><?d?><node/></TRACE><!-- -->", 1 },
		{ "start_and_end_tag", "<TRACE><node></node></TRACE >", 1 },
		{ "nested_and_unknown", "<TRACE><node><node/><x y='1'>t&lt;<![CDATA[<&]]></x></node><z/></TRACE>", 1 },
		{ "text_of_all_widths", "<TRACE>\xc4\xa0\xe2\x80\x89\xf0\x90\x80\xa0<node/></TRACE>", 1 },
		{ "blanks_everywhere", "<TRACE\n><node\tnodeId = '1'\r\n/>\n\n</TRACE\n>\n", 1 },
		{ "attributes_in_any_order", "<TRACE><node time='1' x='' nodeId='n'/></TRACE>", 1 },
		{ "booleans_in_words", "<TRACE><methodDef isNative='true' isStatic='false'/></TRACE>", 1 },
		{ "system_messages_are_not_of_xml", "<TRACE><frequency frequency='1'/></TRACE>", 0 },
		{ "names_beyond_ascii", "<TRACE><\xc3\xa4 \xe2\x82\xac='1'/><node/></TRACE>", 1 },
		{ "depth_without_lists", "<TRACE><monWait stackDepth='3'/></TRACE>", 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kb_tptp_message message;
		struct kb_error err = { .text = "" };
		struct kb_tptp *tptp;
		char name[80];
		int ret, n = 0;

		snprintf(name, sizeof(name), "xml_is_read: %s", cases[i].name);
		ret = kb_tptp_open_memory(&tptp, cases[i].xml, strlen(cases[i].xml), &err);
		if (!ret) {
			while ((ret = kb_tptp_next(tptp, &message, &err)) > 0)
				n++;
			kb_tptp_close(tptp);
		}
		if (!tap_ok(!ret && n == cases[i].messages, name))
			tap_note("%d, %d messages: %s", ret, n, err.text);
	}
}

static void check_numbers(void)
{
	static const char xml[] = "<TRACE><node time='-9223372036.854775808' timezone='-2147483648'/>"
				  "<node time='1.5' nodeId='&#x20ac;&#65;&quot;\t.\r\n.'/>"
				  "<node time='3.1234567899'/></TRACE>";
	struct kb_tptp_message message;
	struct kb_tptp *tptp;

	if (kb_tptp_open_memory(&tptp, xml, strlen(xml), NULL)) {
		tap_ok(false, "numbers_open");
		return;
	}
	kb_tptp_next(tptp, &message, NULL);
	tap_is(message.values[KB_TPTP_NODE_TIMESTAMP].number, INT64_MIN, "the_least_time");
	tap_is(message.values[KB_TPTP_NODE_TIME_ZONE].number, INT32_MIN, "the_least_integer");
	kb_tptp_next(tptp, &message, NULL);
	tap_is(message.values[KB_TPTP_NODE_TIMESTAMP].number, 1500000000, "a_short_fraction");
	tap_ok(same_text(&message.values[KB_TPTP_NODE_NODE_ID].string,
			 &(struct kb_text){ "\xe2\x82\xac" "A\" . .", 9 }),
	       "references_and_blanks_are_decoded");
	kb_tptp_next(tptp, &message, NULL);
	tap_is(message.values[KB_TPTP_NODE_TIMESTAMP].number, 3123456789, "a_long_fraction_is_cut");
	kb_tptp_close(tptp);
}

int main(void)
{
	static const struct {
		const char *name;
		struct kb_tptp_layout layout;
	} forms[] = {
		{ "little endian", LAYOUT(.binary = true) },
		{ "big endian", LAYOUT(.binary = true, .big_endian = true) },
		{ "XML", LAYOUT(.binary = false) },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct golden golden;
		int findings;

		golden_create(&golden, &forms[i].layout);
		tap_ok(delivers_before(&golden, golden.data, golden.size, golden.size, &findings) &&
		       !findings, "the_golden_trace_is_whole");
		check_cuts(&golden, forms[i].name);
		check_flips(&golden, forms[i].name);
		golden_free(&golden);
	}
	check_malformed();
	check_accepted();
	check_numbers();
	return tap_done();
}
