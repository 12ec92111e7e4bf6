/* SPDX-License-Identifier: MIT */
/*
 * Parts of a Heph packet, for encoders that know the shape of their packets and do not need a
 * struct kb_heph_event. Each function writes to @at and returns the position after it.
 */
#ifndef KB_LIB_FORMAT_HEPH_PUT_H
#define KB_LIB_FORMAT_HEPH_PUT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include <kbarman/heph.h>

static inline uint8_t *kb_heph_put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, 2);
	return at + 2;
}

static inline uint8_t *kb_heph_put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, 4);
	return at + 4;
}

static inline uint8_t *kb_heph_put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, 8);
	return at + 8;
}

static inline uint8_t *kb_heph_put_text(uint8_t *at, const char *text, uint16_t length)
{
	at = kb_heph_put16(at, length);
	memcpy(at, text, length);
	return at + length;
}

/* Write everything before the description. kb_heph_put_size() sets the size at the end. */
static inline uint8_t *kb_heph_put_start(uint8_t *at, uint32_t stream, uint32_t counter,
					 uint64_t substream, uint64_t start, uint64_t end)
{
	at = kb_heph_put32(at, KB_HEPH_EVENT_MAGIC) + 4;
	at = kb_heph_put32(at, stream);
	at = kb_heph_put32(at, counter);
	at = kb_heph_put64(at, substream);
	at = kb_heph_put64(at, start);
	return kb_heph_put64(at, end);
}

static inline void kb_heph_put_size(uint8_t *packet, const uint8_t *end)
{
	kb_heph_put32(packet + 4, (uint32_t)(end - packet));
}

/* @name: a string literal. */
#define kb_heph_put_name(at, name, type) ({ \
	uint8_t *__at = kb_heph_put_text(at, name, sizeof(name) - 1); \
	*__at = (type); \
	__at + 1; })

#define kb_heph_put_u64(at, name, value) \
	kb_heph_put64(kb_heph_put_name(at, name, KB_HEPH_U64), value)

#define kb_heph_put_string(at, name, text, length) \
	kb_heph_put_text(kb_heph_put_name(at, name, KB_HEPH_STRING), text, length)

#endif
