/* SPDX-License-Identifier: MIT */
/*
 * The wire format of protocol buffers, for encoders that know their messages' shape:
 * each function writes one field at @at, where there is room for it, and returns what is
 * behind. Nothing is built in memory: the length of a message is written, in a form of
 * fixed size, when its end is known. Source: "Encoding" of the protocol buffers' text.
 */
#ifndef KB_LIB_FORMAT_PROTOBUF_H
#define KB_LIB_FORMAT_PROTOBUF_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KB_PROTO_TAG		2	/* bytes, of field numbers below 2048 */
#define KB_PROTO_UINT		12	/* the most that kb_proto_put_uint() takes */

/* The size of a message's length, and with that the most bytes that it can have. */
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

/* uint32, uint64, bool, enum; of int32 and int64 what is not negative. */
static inline uint8_t *kb_proto_put_uint(uint8_t *at, uint32_t field, uint64_t value)
{
	return kb_proto_put_varint(kb_proto_put_varint(at, field << 3), value);
}

static inline uint8_t *kb_proto_put_double(uint8_t *at, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	at = kb_proto_put_varint(at, field << 3 | 1);
	memcpy(at, &bits, sizeof(bits));
	return at + sizeof(bits);
}

/* bytes, string. */
static inline uint8_t *kb_proto_put_bytes(uint8_t *at, uint32_t field, const void *data,
					  size_t length)
{
	at = kb_proto_put_varint(kb_proto_put_varint(at, field << 3 | 2), length);
	memcpy(at, data, length);
	return at + length;
}

/* A message, whose length takes @size bytes: begins where the returned pointer is, ... */
static inline uint8_t *kb_proto_begin(uint8_t *at, uint32_t field, unsigned int size)
{
	return kb_proto_put_varint(at, field << 3 | 2) + size;
}

/* ... and ends before @at, which is returned. */
static inline uint8_t *kb_proto_end(uint8_t *message, uint8_t *at, unsigned int size)
{
	size_t length = (size_t)(at - message);

	for (message -= size; --size; length >>= 7)
		*message++ = (uint8_t)length | 0x80;
	*message = (uint8_t)length;
	return at;
}

#endif
