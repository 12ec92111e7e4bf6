/* SPDX-License-Identifier: MIT */
/*
 * Writes structs in Thrift's compact protocol. A struct is fields in the order of their numbers,
 * then an end. Source: "Thrift Compact protocol encoding" in Thrift's documentation.
 */
#ifndef KB_LIB_FORMAT_PARQUET_THRIFT_H
#define KB_LIB_FORMAT_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/text.h>

#include "base/io/out_packet.h"

#define KB_VARINT_MAX	10	/* bytes of a number */

static inline uint8_t *kb_varint_put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)value | 0x80;
	*at++ = (uint8_t)value;
	return at;
}

/* Signed numbers: small ones are short, whatever their sign is. */
static inline uint64_t kb_zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

enum kb_thrift_type {
	KB_THRIFT_TRUE	= 1,	/* a field of the type bool is its value */
	KB_THRIFT_FALSE	= 2,
	KB_THRIFT_I8	= 3,
	KB_THRIFT_I16	= 4,
	KB_THRIFT_I32	= 5,
	KB_THRIFT_I64	= 6,
	KB_THRIFT_BINARY = 8,
	KB_THRIFT_LIST	= 9,
	KB_THRIFT_STRUCT = 12,
};

#define KB_THRIFT_DEPTH	8	/* structs in structs */

struct kb_thrift {
	struct kb_out *out;	/* keeps errors */
	unsigned int depth;
	int last[KB_THRIFT_DEPTH];	/* the number of the field before, in each open struct */
};

/* Begin a message, which is a struct. */
struct kb_thrift kb_thrift_begin(struct kb_out *out);

/* End the newest open struct. */
void kb_thrift_end(struct kb_thrift *thrift);

void kb_thrift_bool(struct kb_thrift *thrift, int field, bool value);
void kb_thrift_i8(struct kb_thrift *thrift, int field, int8_t value);
void kb_thrift_i16(struct kb_thrift *thrift, int field, int16_t value);
void kb_thrift_i32(struct kb_thrift *thrift, int field, int32_t value);
void kb_thrift_i64(struct kb_thrift *thrift, int field, int64_t value);
void kb_thrift_binary(struct kb_thrift *thrift, int field, struct kb_text value);

/* Begin a struct, whose fields and end follow. */
void kb_thrift_struct(struct kb_thrift *thrift, int field);

/* Begin a list of @nr elements, which follow by the functions below. */
void kb_thrift_list(struct kb_thrift *thrift, int field, enum kb_thrift_type type, uint32_t nr);
void kb_thrift_element_i32(struct kb_thrift *thrift, int32_t value);
void kb_thrift_element_binary(struct kb_thrift *thrift, struct kb_text value);
void kb_thrift_element_struct(struct kb_thrift *thrift);	/* its fields and end follow */

#endif
