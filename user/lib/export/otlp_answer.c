// SPDX-License-Identifier: MIT
/*
 * What a collector answers is a message of two fields at most. It comes from a network, so nothing
 * of it is believed: a length that runs over the end, or a field of a type that it can't have, is
 * an error.
 */
#include <errno.h>
#include <stdbool.h>

#include "export/otlp_answer.h"

enum { ANSWER_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };
enum { STATUS_MESSAGE = 2 };

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct reader {
	const uint8_t *at, *end;
};

struct field {
	uint64_t number;
	unsigned int wire;
	uint64_t value;		/* of a number; of bytes: how many */
	const uint8_t *data;	/* of bytes */
};

static int read_varint(struct reader *reader, uint64_t *value)
{
	unsigned int shift = 0;

	*value = 0;
	while (reader->at < reader->end && shift < 64) {
		uint8_t byte = *reader->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return 0;
		shift += 7;
	}
	return -EINVAL;
}

/* Skip @size bytes. */
static int skip(struct reader *reader, uint64_t size)
{
	if (size > (uint64_t)(reader->end - reader->at))
		return -EINVAL;
	reader->at += size;
	return 0;
}

/* Returns 1, 0 at the end, or -EINVAL. */
static int read_field(struct reader *reader, struct field *field)
{
	uint64_t tag;
	int error;

	if (reader->at == reader->end)
		return 0;
	if (read_varint(reader, &tag))
		return -EINVAL;
	*field = (struct field){ .number = tag >> 3, .wire = tag & 7 };
	switch (field->wire) {
	case WIRE_VARINT:
		error = read_varint(reader, &field->value);
		break;
	case WIRE_FIXED64:
		error = skip(reader, 8);
		break;
	case WIRE_FIXED32:
		error = skip(reader, 4);
		break;
	case WIRE_BYTES:
		error = read_varint(reader, &field->value);
		field->data = reader->at;
		error = error ? error : skip(reader, field->value);
		break;
	default:
		error = -EINVAL;
	}
	return error || !field->number ? -EINVAL : 1;
}

static struct reader reader_of(const void *data, size_t size)
{
	return (struct reader){ .at = data, .end = (const uint8_t *)data + size };
}

static int read_partial(struct reader reader, struct kb_otlp_answer *answer)
{
	struct field field;
	int more;

	while ((more = read_field(&reader, &field)) > 0) {
		if (field.number == PARTIAL_REJECTED && field.wire == WIRE_VARINT) {
			answer->rejected = field.value;
		} else if (field.number == PARTIAL_MESSAGE && field.wire == WIRE_BYTES) {
			answer->text = (const char *)field.data;
			answer->length = (size_t)field.value;
		}
	}
	return more;
}

int kb_otlp_read_answer(const void *data, size_t size, struct kb_otlp_answer *answer)
{
	struct reader reader = reader_of(data, size);
	struct field field;
	int more;

	*answer = (struct kb_otlp_answer){ .text = "" };
	while ((more = read_field(&reader, &field)) > 0) {
		if (field.number != ANSWER_PARTIAL)
			continue;
		if (field.wire != WIRE_BYTES ||
		    read_partial(reader_of(field.data, (size_t)field.value), answer))
			return -EINVAL;
	}
	return more;
}

int kb_otlp_read_failure(const void *data, size_t size, struct kb_otlp_answer *answer)
{
	struct reader reader = reader_of(data, size);
	struct field field;
	int more;

	*answer = (struct kb_otlp_answer){ .text = "" };
	while ((more = read_field(&reader, &field)) > 0) {
		if (field.number == STATUS_MESSAGE && field.wire == WIRE_BYTES) {
			answer->text = (const char *)field.data;
			answer->length = (size_t)field.value;
		}
	}
	return more;
}
