/* SPDX-License-Identifier: MIT */
/*
 * Fields of a message of protocol buffers, one by one. The bytes may come from anywhere, so nothing
 * of them is believed: what runs over the end, or has a type that there is not, is -EINVAL.
 */
#ifndef KB_LIB_FORMAT_PROTOBUF_READ_H
#define KB_LIB_FORMAT_PROTOBUF_READ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KB_WIRE_VARINT = 0, KB_WIRE_FIXED64 = 1, KB_WIRE_BYTES = 2, KB_WIRE_FIXED32 = 5 };

struct kb_proto_reader {
	const uint8_t *at, *end;
};

struct kb_proto_field {
	uint64_t number;
	unsigned int wire;
	uint64_t value;		/* of a number; of bytes: how many */
	const uint8_t *data;	/* of bytes */
};

static inline struct kb_proto_reader kb_proto_reader(const void *data, size_t size)
{
	return (struct kb_proto_reader){ .at = data, .end = (const uint8_t *)data + size };
}

/* What a message, or a packed list, in the field has; nothing if the field is a number. */
static inline struct kb_proto_reader kb_proto_inner(const struct kb_proto_field *field)
{
	return field->wire == KB_WIRE_BYTES ? kb_proto_reader(field->data, (size_t)field->value) :
					      (struct kb_proto_reader){ NULL, NULL };
}

static inline int kb_proto_read_varint(struct kb_proto_reader *reader, uint64_t *value)
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

static inline int kb_proto_skip(struct kb_proto_reader *reader, uint64_t size)
{
	if (size > (uint64_t)(reader->end - reader->at))
		return -EINVAL;
	reader->at += size;
	return 0;
}

/* Returns 1, 0 at the end, or -EINVAL. */
static inline int kb_proto_read(struct kb_proto_reader *reader, struct kb_proto_field *field)
{
	uint64_t tag;
	int error;

	if (reader->at == reader->end)
		return 0;
	if (kb_proto_read_varint(reader, &tag))
		return -EINVAL;
	*field = (struct kb_proto_field){ .number = tag >> 3, .wire = tag & 7 };
	switch (field->wire) {
	case KB_WIRE_VARINT:
		error = kb_proto_read_varint(reader, &field->value);
		break;
	case KB_WIRE_FIXED64:
		error = kb_proto_skip(reader, 8);
		break;
	case KB_WIRE_FIXED32:
		error = kb_proto_skip(reader, 4);
		break;
	case KB_WIRE_BYTES:
		error = kb_proto_read_varint(reader, &field->value);
		field->data = reader->at;
		error = error ? error : kb_proto_skip(reader, field->value);
		break;
	default:
		error = -EINVAL;
	}
	return error || !field->number ? -EINVAL : 1;
}

/* The number in the field @number of a message; 0 without it. */
static inline uint64_t kb_proto_number(struct kb_proto_reader reader, unsigned int number)
{
	struct kb_proto_field field;

	while (kb_proto_read(&reader, &field) > 0)
		if (field.number == number && field.wire == KB_WIRE_VARINT)
			return field.value;
	return 0;
}

/* Whether the bytes are those of @text. */
static inline bool kb_proto_is(struct kb_proto_reader bytes, const char *text)
{
	return (size_t)(bytes.end - bytes.at) == strlen(text) && !memcmp(bytes.at, text, strlen(text));
}

/*
 * The sum of @nr numbers in the fields @number of a message, from number @first on. Each stands in a
 * field of its own or in a packed list.
 */
static inline uint64_t kb_proto_sum(struct kb_proto_reader reader, unsigned int number, size_t first,
				    size_t nr)
{
	struct kb_proto_field field;
	uint64_t sum = 0, value;
	size_t i = 0;

	while (kb_proto_read(&reader, &field) > 0) {
		struct kb_proto_reader list = kb_proto_inner(&field);

		if (field.number != number)
			continue;
		if (field.wire == KB_WIRE_VARINT && i++ - first < nr)
			sum += field.value;
		while (list.at < list.end && !kb_proto_read_varint(&list, &value))
			if (i++ - first < nr)
				sum += value;
	}
	return sum;
}

#endif
