// SPDX-License-Identifier: MIT
/*
 * The writer's front: what a message may be, and room for it. A message is put into
 * the output whole or not at all, so a refused one leaves no trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/tptp_codec.h"
#include "out.h"

static const char xml_start[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TRACE>\n";
static const char xml_end[] = "</TRACE>\n";

struct kb_tptp_writer {
	struct kb_tptp_layout layout;
	struct kb_out *out;
	struct tptp_plan plans[TPTP_NR_TABLES];
};

/* Bytes of all strings of @message together; KB_TPTP_MAX_TEXT + 1 if above it. */
static size_t text_bytes(const struct tptp_plan *plan, const struct kb_tptp_message *message,
			 uint32_t depth)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < plan->nr && sum <= KB_TPTP_MAX_TEXT; i++) {
		const union kb_tptp_value *value = &message->values[i];

		if (plan->type[i] == KB_TPTP_TYPE_STRING) {
			if (value->string.length > KB_TPTP_MAX_TEXT)
				return KB_TPTP_MAX_TEXT + 1;
			sum += value->string.length;
		} else if (plan->type[i] == KB_TPTP_TYPE_STRINGS) {
			for (uint32_t k = 0; k < depth && sum <= KB_TPTP_MAX_TEXT; k++) {
				if (value->strings[k].length > KB_TPTP_MAX_TEXT)
					return KB_TPTP_MAX_TEXT + 1;
				sum += value->strings[k].length;
			}
		}
	}
	return sum;
}

/* stackDepth as it was set: kb_tptp_message_depth() is for good messages. */
static int check_depth(const struct tptp_plan *plan, const struct kb_tptp_message *message,
		       uint32_t *depth)
{
	int64_t number;

	*depth = 0;
	if (plan->nr < 3 || plan->type[plan->nr - 1] != KB_TPTP_TYPE_LONGS)
		return 0;
	number = message->values[plan->nr - 3].number;
	if (number < 0 || number > INT32_MAX)
		return -EINVAL;
	if (number > KB_TPTP_MAX_DEPTH)
		return -EMSGSIZE;
	*depth = number;
	return 0;
}

int kb_tptp_writer_message(struct kb_tptp_writer *writer, const struct kb_tptp_message *message)
{
	const struct tptp_plan *plan;
	unsigned int index;
	uint32_t depth;
	uint8_t *p, *end;
	size_t text;
	int ret;

	index = message->table ? tptp_index(message->table->id) : TPTP_NR_TABLES;
	if (index >= TPTP_NR_TABLES)
		return -EINVAL;
	plan = &writer->plans[index];
	ret = check_depth(plan, message, &depth);
	if (ret)
		return ret;
	text = text_bytes(plan, message, depth);
	if (text > KB_TPTP_MAX_TEXT)
		return -EMSGSIZE;
	if (message->table->id == KB_TPTP_FREQUENCY) {
		int64_t frequency = message->values[KB_TPTP_FREQUENCY_FREQUENCY].number;

		if (frequency <= 0)
			return -EINVAL;
		writer->layout.frequency = frequency;
	}
	if (!writer->layout.binary && message->table->id < KB_TPTP_FIRST_DATA)
		return kb_out_error(writer->out);

	p = kb_out_reserve(writer->out, writer->layout.binary ?
					tptp_binary_bound(plan, text, depth) :
					tptp_xml_bound(plan, text, depth));
	if (!p)
		return kb_out_error(writer->out);
	if (writer->layout.binary)
		end = tptp_binary_put(p, plan, writer->layout.big_endian, message);
	else
		end = tptp_xml_put(p, plan, writer->layout.frequency, message);
	return end ? kb_out_commit(writer->out, end) : -EINVAL;
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
	struct kb_tptp_writer *w;
	int ret;

	*writer = NULL;
	if (layout->frequency < 0)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->layout = *layout;
	if (!w->layout.frequency)
		w->layout.frequency = KB_TPTP_FREQUENCY_NS;
	w->out = out;
	tptp_plans_init(w->plans);
	ret = layout->binary ? start_binary(w) : kb_out_bytes(out, xml_start, sizeof(xml_start) - 1);
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
