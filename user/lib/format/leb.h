/* SPDX-License-Identifier: MIT */
/*
 * The packed integers of Annotate, signed LEB128: groups of 7 bits, lowest group first. All
 * bytes but the last have the top bit set. Bit 6 of the last byte is the sign. Source: "Packed
 * Values" in the Annotate v3 text.
 */
#ifndef KB_LIB_FORMAT_LEB_H
#define KB_LIB_FORMAT_LEB_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define KB_LEB32_MAX	5	/* bytes of a packed32 */
#define KB_LEB64_MAX	10	/* bytes of a packed64, and the room kb_leb_put() needs */

/* A number of any length, with a loop. */
uint8_t *kb_leb_put_long(uint8_t *at, int64_t value);

/*
 * Number of bytes for @magnitude (value ^ sign): its significant bits and a sign bit, in groups
 * of 7. The factor is 1/7 for all possible numbers of bits.
 */
static inline unsigned int kb_leb_bytes(uint64_t magnitude)
{
	return (((unsigned int)__builtin_clzll(magnitude << 1 | 1) ^ 63) * 9 + 73) >> 6;
}

/* Spread the low 28 bits over the bytes of a word, 7 bits each, lowest first. */
static inline uint32_t kb_leb_spread28(uint32_t value)
{
	uint32_t x = (value & 0x3fff) | (value & 0xfffc000) << 2;

	return (x & 0x007f007f) | (x & 0x3f803f80) << 1;
}

/* The same for the low 56 bits. */
static inline uint64_t kb_leb_spread56(uint64_t value)
{
	uint64_t x = (value & 0x000000000fffffffu) | (value & 0x00fffffff0000000u) << 4;

	x = (x & 0x00003fff00003fffu) | (x & 0x0fffc0000fffc000u) << 2;
	return (x & 0x007f007f007f007fu) | (x & 0x3f803f803f803f80u) << 1;
}

/*
 * Write @value in as few bytes as possible. There must be room for KB_LEB64_MAX. Returns the
 * position after it. Most numbers have few groups and are spread without a loop.
 */
static inline uint8_t *kb_leb_put(uint8_t *at, int64_t value)
{
	uint64_t magnitude = (uint64_t)(value ^ (value >> 63));
	unsigned int bytes;
	uint32_t groups;

	if (magnitude < 64) {
		*at = (uint8_t)(value & 0x7f);
		return at + 1;
	}
	if (__builtin_expect(magnitude >= 1u << 27, 0))
		return kb_leb_put_long(at, value);
	/* all bytes but the last have the continuation bit */
	bytes = kb_leb_bytes(magnitude);
	groups = htole32(kb_leb_spread28((uint32_t)value) | 0x808080u >> 8 * (4 - bytes));
	memcpy(at, &groups, 4);
	return at + bytes;
}

/* A packed number that is written more than once: it is packed once and then copied. */
struct kb_leb {
	int64_t value;
	uint64_t first;			/* the first 8 bytes */
	uint16_t rest;			/* and the other 2 */
	uint8_t bytes;
};

static inline struct kb_leb kb_leb_pack(int64_t value)
{
	uint64_t magnitude = (uint64_t)(value ^ (value >> 63));
	struct kb_leb leb = { .value = value };
	uint8_t text[KB_LEB64_MAX] = { 0 };

	if (__builtin_expect(magnitude >> 55, 0)) {
		leb.bytes = (uint8_t)(kb_leb_put_long(text, value) - text);
		memcpy(&leb.first, text, 8);
		memcpy(&leb.rest, text + 8, 2);
		return leb;
	}
	leb.bytes = (uint8_t)kb_leb_bytes(magnitude);
	leb.first = htole64(kb_leb_spread56((uint64_t)value) |
			    0x80808080808080u >> 8 * (8 - leb.bytes));
	return leb;
}

/* Pack the next of similar numbers, such as times: their high bits seldom change. */
static inline void kb_leb_repack(struct kb_leb *leb, int64_t value)
{
	/* the length depends on the bits from the 27th on if there are more than 4 bytes */
	uint64_t low = kb_leb_spread28((uint32_t)value) | 0x80808080u;
	const uint64_t four = htole64(0xffffffffu);

	if (__builtin_expect((uint64_t)(value ^ leb->value) >> 27 || leb->bytes < 5, 0)) {
		*leb = kb_leb_pack(value);
		return;
	}
	leb->value = value;
	leb->first = (leb->first & ~four) | htole64(low);
}

/* Write the packed number, as kb_leb_put() does. */
static inline uint8_t *kb_leb_put_packed(uint8_t *at, const struct kb_leb *leb)
{
	memcpy(at, &leb->first, 8);
	if (__builtin_expect(leb->bytes > 8, 0))
		memcpy(at + 8, &leb->rest, 2);
	return at + leb->bytes;
}

enum kb_leb_result {
	KB_LEB_OK = 0,
	KB_LEB_LONGER,		/* valid, but with redundant bytes */
	KB_LEB_TRUNCATED,	/* the input ends inside the number */
	KB_LEB_TOO_BIG,		/* does not fit */
};

/*
 * Read a packed32 (@bits 32) or packed64 (@bits 64) at *@at, before @end. *@at moves after it
 * unless the result is KB_LEB_TRUNCATED or KB_LEB_TOO_BIG.
 */
enum kb_leb_result kb_leb_get(const uint8_t **at, const uint8_t *end, unsigned int bits,
			      int64_t *value);

#endif
