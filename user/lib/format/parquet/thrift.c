// SPDX-License-Identifier: MIT
/* See thrift.h. */
#include "format/parquet/thrift.h"

static void put_varint(struct kb_thrift *thrift, uint64_t value)
{
	uint8_t *at = kb_out_reserve(thrift->out, KB_VARINT_MAX);

	if (at)
		kb_out_commit(thrift->out, kb_varint_put(at, value));
}

static void put_byte(struct kb_thrift *thrift, unsigned int value)
{
	uint8_t *at = kb_out_reserve(thrift->out, 1);

	if (!at)
		return;
	*at = (uint8_t)value;
	kb_out_commit(thrift->out, at + 1);
}

static void put_text(struct kb_thrift *thrift, struct kb_text text)
{
	put_varint(thrift, text.length);
	kb_out_bytes(thrift->out, text.data, text.length);
}

/* The head of a field says how far its number is from the last one. */
static void put_head(struct kb_thrift *thrift, int field, enum kb_thrift_type type)
{
	int *last = &thrift->last[thrift->depth - 1], step = field - *last;

	if (step >= 1 && step <= 15) {
		put_byte(thrift, (unsigned int)step << 4 | type);
	} else {
		put_byte(thrift, type);
		put_varint(thrift, kb_zigzag(field));
	}
	*last = field;
}

static void enter(struct kb_thrift *thrift)
{
	if (thrift->depth < KB_THRIFT_DEPTH)
		thrift->last[thrift->depth++] = 0;
}

struct kb_thrift kb_thrift_begin(struct kb_out *out)
{
	return (struct kb_thrift) { .out = out, .depth = 1 };
}

void kb_thrift_end(struct kb_thrift *thrift)
{
	put_byte(thrift, 0);
	thrift->depth--;
}

void kb_thrift_bool(struct kb_thrift *thrift, int field, bool value)
{
	put_head(thrift, field, value ? KB_THRIFT_TRUE : KB_THRIFT_FALSE);
}

void kb_thrift_i8(struct kb_thrift *thrift, int field, int8_t value)
{
	put_head(thrift, field, KB_THRIFT_I8);
	put_byte(thrift, (uint8_t)value);
}

void kb_thrift_i16(struct kb_thrift *thrift, int field, int16_t value)
{
	put_head(thrift, field, KB_THRIFT_I16);
	put_varint(thrift, kb_zigzag(value));
}

void kb_thrift_i32(struct kb_thrift *thrift, int field, int32_t value)
{
	put_head(thrift, field, KB_THRIFT_I32);
	put_varint(thrift, kb_zigzag(value));
}

void kb_thrift_i64(struct kb_thrift *thrift, int field, int64_t value)
{
	put_head(thrift, field, KB_THRIFT_I64);
	put_varint(thrift, kb_zigzag(value));
}

void kb_thrift_binary(struct kb_thrift *thrift, int field, struct kb_text value)
{
	put_head(thrift, field, KB_THRIFT_BINARY);
	put_text(thrift, value);
}

void kb_thrift_struct(struct kb_thrift *thrift, int field)
{
	put_head(thrift, field, KB_THRIFT_STRUCT);
	enter(thrift);
}

void kb_thrift_list(struct kb_thrift *thrift, int field, enum kb_thrift_type type, uint32_t nr)
{
	put_head(thrift, field, KB_THRIFT_LIST);
	put_byte(thrift, (nr < 15 ? nr : 15) << 4 | type);
	if (nr >= 15)
		put_varint(thrift, nr);
}

void kb_thrift_element_i32(struct kb_thrift *thrift, int32_t value)
{
	put_varint(thrift, kb_zigzag(value));
}

void kb_thrift_element_binary(struct kb_thrift *thrift, struct kb_text value)
{
	put_text(thrift, value);
}

void kb_thrift_element_struct(struct kb_thrift *thrift)
{
	enter(thrift);
}
