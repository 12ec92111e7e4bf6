// SPDX-License-Identifier: MIT
/*
 * Whatever a TPTP message holds, it reads as it was written: every message, both byte
 * orders, both platforms, and XML. `test_tptp_roundtrip [SEED [CASES]]`.
 */
#include <inttypes.h>

#include "test_tptp.h"

#define BATCH	100

static const struct {
	const char *name;
	struct kb_tptp_layout layout;
} forms[] = {
	{ "little endian, 64 bits", LAYOUT(.binary = true) },
	{ "big endian, 64 bits", LAYOUT(.binary = true, .big_endian = true) },
	{ "little endian, 32 bits", LAYOUT(.binary = true, .platform_32 = true) },
	{ "big endian, 32 bits", LAYOUT(.binary = true, .big_endian = true, .platform_32 = true) },
	{ "XML", LAYOUT(.binary = false) },
};

#define NR_FORMS	(sizeof(forms) / sizeof(forms[0]))

/* One message, which must be equal to @want. */
static bool next_is(struct kb_tptp *tptp, const struct kb_tptp_message *want, const char *form)
{
	struct kb_tptp_message got;
	struct kb_error err = { .text = "" };
	int ret, field;

	ret = kb_tptp_next(tptp, &got, &err);
	if (ret != 1) {
		tap_note("%s: <%s>: %d %s", form, want->table->name, ret, err.text);
		return false;
	}
	field = difference(want, &got);
	if (field >= 0)
		tap_note("%s: <%s> differs in field %d", form, want->table->name, field);
	return field < 0;
}

static bool header_is(struct kb_tptp *tptp, const struct kb_tptp_layout *layout)
{
	const struct kb_tptp_info *info = kb_tptp_info(tptp);
	struct kb_tptp_message message;

	if (info->binary != layout->binary || info->big_endian != layout->big_endian ||
	    (layout->binary && info->platform != !layout->platform_32))
		return false;
	return !layout->binary ||
	       (kb_tptp_next(tptp, &message, NULL) == 1 && message.table->id == KB_TPTP_ENCODING &&
		kb_tptp_next(tptp, &message, NULL) == 1 && message.table->id == KB_TPTP_FREQUENCY);
}

static bool reads_back(const struct random_message *batch, unsigned int form)
{
	struct trace trace;
	struct kb_tptp *tptp;
	struct kb_error err;
	const uint8_t *data;
	size_t size;
	bool good;

	trace_begin(&trace, &forms[form].layout);
	for (int i = 0; i < BATCH; i++)
		if (kb_tptp_writer_message(trace.writer, &batch[i].message))
			return false;
	kb_tptp_writer_finish(trace.writer);
	data = trace_data(&trace, &size);
	if (kb_tptp_open_memory(&tptp, data, size, &err)) {
		tap_note("%s: %s", forms[form].name, err.text);
		return false;
	}
	good = header_is(tptp, &forms[form].layout);
	for (int i = 0; good && i < BATCH; i++)
		good = next_is(tptp, &batch[i].message, forms[form].name);
	good = good && kb_tptp_next(tptp, &(struct kb_tptp_message){ 0 }, &err) == 0;
	kb_tptp_close(tptp);
	trace_free(&trace);
	return good;
}

/* Through one form and back into the other: the same bytes. */
static bool converts_back(const struct random_message *batch)
{
	struct trace first, xml, second;
	const void *a, *b, *x;
	size_t a_size, b_size, x_size;
	struct kb_tptp_message message;
	struct kb_tptp *tptp;
	bool good;

	trace_begin(&first, &forms[0].layout);
	trace_begin(&xml, &forms[NR_FORMS - 1].layout);
	trace_begin(&second, &forms[0].layout);
	for (int i = 0; i < BATCH; i++)
		kb_tptp_writer_message(first.writer, &batch[i].message);
	kb_tptp_writer_finish(first.writer);
	a = trace_data(&first, &a_size);
	if (kb_tptp_open_memory(&tptp, a, a_size, NULL))
		return false;
	while (kb_tptp_next(tptp, &message, NULL) == 1)
		kb_tptp_writer_message(xml.writer, &message);
	kb_tptp_close(tptp);
	kb_tptp_writer_finish(xml.writer);
	x = trace_data(&xml, &x_size);
	if (kb_tptp_open_memory(&tptp, x, x_size, NULL))
		return false;
	while (kb_tptp_next(tptp, &message, NULL) == 1)
		kb_tptp_writer_message(second.writer, &message);
	kb_tptp_close(tptp);
	kb_tptp_writer_finish(second.writer);
	b = trace_data(&second, &b_size);
	good = a_size == b_size && !memcmp(a, b, a_size);
	trace_free(&first);
	trace_free(&xml);
	trace_free(&second);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t cases = argc > 2 ? strtoull(argv[2], NULL, 0) : 120000;
	struct random_message *batch = calloc(BATCH, sizeof(*batch));
	bool good[NR_FORMS], converted = true;
	uint64_t state = seed | 1, done = 0;
	unsigned int kind = 0;

	tap_note("seed %" PRIu64, seed);
	memset(good, true, sizeof(good));
	while (batch && done < cases) {
		for (int i = 0; i < BATCH; i++) {
			const struct kb_tptp_table *table = kb_tptp_table_at(kind++);

			if (!table) {
				kind = 3;
				table = kb_tptp_table_at(2);
			}
			if (table->id < KB_TPTP_FIRST_DATA)
				table = kb_tptp_table(KB_TPTP_NODE);
			random_fill(&batch[i], &state, table->id);
		}
		for (unsigned int form = 0; form < NR_FORMS; form++)
			good[form] = good[form] && reads_back(batch, form);
		converted = converted && converts_back(batch);
		done += BATCH;
	}
	free(batch);
	tap_ok(done >= cases, "as_many_cases_as_asked_for");
	for (unsigned int form = 0; form < NR_FORMS; form++) {
		char name[80];

		snprintf(name, sizeof(name), "messages_read_as_written: %s", forms[form].name);
		tap_ok(good[form], name);
	}
	tap_ok(converted, "binary_to_xml_and_back_is_the_same_bytes");
	return tap_done();
}
