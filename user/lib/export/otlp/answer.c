// SPDX-License-Identifier: MIT
/*
 * What a collector answers is a message of two fields at most. It comes from a network, so nothing
 * of it is believed: a length that runs over the end, or a field of a type that it can't have, is
 * an error.
 */
#include "export/otlp/answer.h"
#include "format/protobuf_read.h"

enum { ANSWER_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };
enum { STATUS_MESSAGE = 2 };

static int read_partial(struct kb_proto_reader reader, struct kb_otlp_answer *answer)
{
	struct kb_proto_field field;
	int more;

	while ((more = kb_proto_read(&reader, &field)) > 0) {
		if (field.number == PARTIAL_REJECTED && field.wire == KB_WIRE_VARINT) {
			answer->rejected = field.value;
		} else if (field.number == PARTIAL_MESSAGE && field.wire == KB_WIRE_BYTES) {
			answer->text = (const char *)field.data;
			answer->length = (size_t)field.value;
		}
	}
	return more;
}

int kb_otlp_read_answer(const void *data, size_t size, struct kb_otlp_answer *answer)
{
	struct kb_proto_reader reader = kb_proto_reader(data, size);
	struct kb_proto_field field;
	int more;

	*answer = (struct kb_otlp_answer){ .text = "" };
	while ((more = kb_proto_read(&reader, &field)) > 0) {
		if (field.number != ANSWER_PARTIAL)
			continue;
		if (field.wire != KB_WIRE_BYTES ||
		    read_partial(kb_proto_reader(field.data, (size_t)field.value), answer))
			return -EINVAL;
	}
	return more;
}

int kb_otlp_read_failure(const void *data, size_t size, struct kb_otlp_answer *answer)
{
	struct kb_proto_reader reader = kb_proto_reader(data, size);
	struct kb_proto_field field;
	int more;

	*answer = (struct kb_otlp_answer){ .text = "" };
	while ((more = kb_proto_read(&reader, &field)) > 0) {
		if (field.number == STATUS_MESSAGE && field.wire == KB_WIRE_BYTES) {
			answer->text = (const char *)field.data;
			answer->length = (size_t)field.value;
		}
	}
	return more;
}
