/* SPDX-License-Identifier: MIT */
/*
 * The wire format of protocol buffers, for encoders that know the shape of their messages. Each
 * function writes one field to @at, where there must be room for it, and returns the position
 * after it. No message is built in memory: its length is written, in a form of fixed size, when
 * its end is known. Source: "Encoding" in the documentation of protocol buffers.
 */
#ifndef KB_LIB_FORMAT_PROTOBUF_H
#define KB_LIB_FORMAT_PROTOBUF_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KB_PROTO_BYTES		2	/* the wire type of all that has a length */
#define KB_PROTO_TAG		2	/* bytes, of field numbers below 2048 */
#define KB_PROTO_UINT		12	/* most bytes that kb_proto_put_uint() writes */

/* Number of bytes for a message's length. It limits the length. */
#define KB_PROTO_EVENT		2	/* 16 KiB - 1 */
#define KB_PROTO_PACKET		4	/* 256 MiB - 1 */

static inline uint8_t *kb_proto_put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* For uint32, uint64, bool and enum, and for int32 and int64 values that are not negative. */
static inline uint8_t *kb_proto_put_uint(uint8_t *at, uint32_t field, uint64_t value)
{
	return kb_proto_put_varint(kb_proto_put_varint(at, field << 3), value);
}

static inline uint8_t *kb_proto_put_fixed64(uint8_t *at, uint32_t field, uint64_t value)
{
	value = htole64(value);
	at = kb_proto_put_varint(at, field << 3 | 1);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *kb_proto_put_double(uint8_t *at, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return kb_proto_put_fixed64(at, field, bits);
}

/* bytes, string. */
static inline uint8_t *kb_proto_put_bytes(uint8_t *at, uint32_t field, const void *data,
					  size_t length)
{
	at = kb_proto_put_varint(kb_proto_put_varint(at, field << 3 | KB_PROTO_BYTES), length);
	memcpy(at, data, length);
	return at + length;
}

/* The only element of a packed list of uint32, uint64 or enum. */
static inline uint8_t *kb_proto_put_one(uint8_t *at, uint32_t field, uint64_t value)
{
	uint8_t *length = kb_proto_put_varint(at, field << 3 | KB_PROTO_BYTES);

	at = kb_proto_put_varint(length + 1, value);
	*length = (uint8_t)(at - length - 1);
	return at;
}

/* Begin a message whose length takes @size bytes. Returns where its fields begin. */
static inline uint8_t *kb_proto_begin(uint8_t *at, uint32_t field, unsigned int size)
{
	return kb_proto_put_varint(at, field << 3 | KB_PROTO_BYTES) + size;
}

/* End the message; its fields end before @at. Returns @at. */
static inline uint8_t *kb_proto_end(uint8_t *message, uint8_t *at, unsigned int size)
{
	size_t length = (size_t)(at - message);

	for (message -= size; --size; length >>= 7)
		*message++ = (uint8_t)length | 0x80;
	*message = (uint8_t)length;
	return at;
}

#endif
