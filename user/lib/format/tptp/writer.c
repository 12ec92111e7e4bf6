// SPDX-License-Identifier: MIT
/*
 * The form-independent part of the writer: checks a message and reserves room for it. A message
 * is written completely or not at all, so a refused one leaves nothing in the output.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/out_packet.h"
#include "base/options.h"
#include "format/tptp/codec.h"

static const char xml_start[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TRACE>\n";
static const char xml_end[] = "</TRACE>\n";

struct kb_tptp_writer {
	struct kb_tptp_layout layout;
	struct kb_out *out;
	const tptp_put_plain *plain;	/* NULL: XML */
	struct tptp_plan plans[TPTP_NR_TABLES];
};

/* Size of all strings of @message together. Above KB_TPTP_MAX_TEXT: too many. */
static size_t text_bytes(const struct tptp_plan *plan, const struct kb_tptp_message *message,
			 uint32_t depth)
{
	const struct kb_text *strings;
	bool too_many = false;
	size_t sum = 0;

	for (unsigned int i = 0; i < plan->nr_strings; i++) {
		size_t length = message->values[plan->text[i]].string.length;

		too_many |= length > KB_TPTP_MAX_TEXT;
		sum += length;
	}
	strings = depth ? message->values[plan->nr - 2].strings : NULL;
	for (uint32_t k = 0; k < depth; k++) {
		too_many |= strings[k].length > KB_TPTP_MAX_TEXT;
		sum += strings[k].length;
	}
	return too_many ? SIZE_MAX : sum;
}

/* Check and get the message's stackDepth; kb_tptp_message_depth() expects valid messages. */
static int check_depth(const struct tptp_plan *plan, const struct kb_tptp_message *message,
		       uint32_t *depth)
{
	int64_t number = message->values[plan->nr - 3].number;

	if (number < 0 || number > INT32_MAX)
		return -EINVAL;
	if (number > KB_TPTP_MAX_DEPTH)
		return -EMSGSIZE;
	*depth = number;
	return 0;
}

static bool numbers_fit(const struct tptp_plan *plan, const struct kb_tptp_message *message)
{
	for (unsigned int k = 0; k < plan->nr_narrow; k++) {
		unsigned int i = plan->narrow[k];
		int64_t number = message->values[i].number;

		/* cppcheck-suppress duplicateValueTernary ; the two have different widths */
		if (plan->type[i] == KB_TPTP_TYPE_BYTE ? number != (uint8_t)number :
							 number != (int32_t)number)
			return false;
	}
	return true;
}

/* The index of a table among the plans; TPTP_NR_TABLES or more if it is not one of them. */
static size_t index_of(const struct kb_tptp_writer *writer, const struct kb_tptp_table *table)
{
	size_t index = ((uintptr_t)table - (uintptr_t)writer->plans[0].table) / sizeof(*table);

	return index < TPTP_NR_TABLES && writer->plans[index].table == table ? index :
									       TPTP_NR_TABLES;
}

static int note_frequency(struct kb_tptp_writer *writer, const struct kb_tptp_message *message)
{
	int64_t frequency = message->values[KB_TPTP_FREQUENCY_FREQUENCY].number;

	if (frequency <= 0)
		return -EINVAL;
	writer->layout.frequency = frequency;
	return 0;
}

/* Write any message. */
static int put_message(struct kb_tptp_writer *writer, const struct tptp_plan *plan,
		       const struct kb_tptp_message *message)
{
	struct kb_out *out = writer->out;
	uint32_t depth = 0;
	size_t text;
	uint8_t *p;
	int ret;

	if (!numbers_fit(plan, message))
		return -EINVAL;
	ret = plan->arrays ? check_depth(plan, message, &depth) : 0;
	if (ret)
		return ret;
	text = text_bytes(plan, message, depth);
	if (text > KB_TPTP_MAX_TEXT)
		return -EMSGSIZE;
	if (writer->layout.binary) {
		p = kb_out_reserve(out, tptp_binary_bound(plan, text, depth));
		if (!p)
			return out->error;
		p = tptp_binary_put(p, plan, writer->layout.big_endian, depth, message);
	} else {
		p = kb_out_reserve(out, tptp_xml_bound(plan, text, depth));
		if (!p)
			return out->error;
		p = tptp_xml_put(p, plan, writer->layout.frequency, depth, message);
	}
	return kb_out_commit(out, p);
}

static int put_system(struct kb_tptp_writer *writer, const struct tptp_plan *plan,
		      const struct kb_tptp_message *message)
{
	int ret = plan->table->id == KB_TPTP_FREQUENCY ? note_frequency(writer, message) : 0;

	if (ret || !writer->layout.binary)
		return ret ? ret : writer->out->error;
	return put_message(writer, plan, message);
}

int kb_tptp_writer_message(struct kb_tptp_writer *writer, const struct kb_tptp_message *message)
{
	size_t index = index_of(writer, message->table);
	const struct tptp_plan *plan = &writer->plans[index];
	uint8_t *p;

	if (index >= TPTP_NR_TABLES)
		return -EINVAL;
	if (message->table->id < KB_TPTP_FIRST_DATA)
		return put_system(writer, plan, message);
	if (writer->plain) {
		p = kb_out_reserve(writer->out, tptp_binary_bound(plan, 0, 0));
		if (!p)
			return writer->out->error;
		p = writer->plain[index](p, message->values);
		if (p)
			return kb_out_commit(writer->out, p);
	}
	return put_message(writer, plan, message);
}

static int start_binary(struct kb_tptp_writer *writer)
{
	uint8_t header[TPTP_HEADER_BYTES];
	struct kb_tptp_message message;
	int ret;

	tptp_binary_put_header(header, &writer->layout);
	ret = kb_out_bytes(writer->out, header, sizeof(header));
	if (ret)
		return ret;
	kb_tptp_message_init(&message, KB_TPTP_ENCODING);
	message.values[KB_TPTP_ENCODING_ENCODING_NAME].string = kb_text("UTF-8");
	ret = kb_tptp_writer_message(writer, &message);
	if (ret)
		return ret;
	kb_tptp_message_init(&message, KB_TPTP_FREQUENCY);
	message.values[KB_TPTP_FREQUENCY_FREQUENCY].number = writer->layout.frequency;
	return kb_tptp_writer_message(writer, &message);
}

int kb_tptp_writer_create(struct kb_tptp_writer **writer, struct kb_out *out,
			  const struct kb_tptp_layout *layout)
{
	struct kb_tptp_layout known;
	struct kb_tptp_writer *w;
	int ret = KB_OPTIONS(&known, layout, NULL);

	*writer = NULL;
	if (ret)
		return ret;
	if (known.frequency < 0)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->layout = known;
	if (!w->layout.frequency)
		w->layout.frequency = KB_TPTP_FREQUENCY_NS;
	w->out = out;
	tptp_plans_init(w->plans);
	w->plain = known.binary ? tptp_binary_plain(known.big_endian) : NULL;
	ret = known.binary ? start_binary(w) : kb_out_bytes(out, xml_start, sizeof(xml_start) - 1);
	if (ret) {
		free(w);
		return ret;
	}
	*writer = w;
	return 0;
}

void kb_tptp_writer_destroy(struct kb_tptp_writer *writer)
{
	free(writer);
}

int kb_tptp_writer_finish(struct kb_tptp_writer *writer)
{
	if (!writer->layout.binary)
		kb_out_bytes(writer->out, xml_end, sizeof(xml_end) - 1);
	return kb_out_flush(writer->out);
}
