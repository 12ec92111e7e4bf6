/* SPDX-License-Identifier: MIT */
/*
 * The packed integers of Annotate, signed LEB128: groups of 7 bits, the lowest
 * first, a set top bit on all bytes but the last, whose bit 6 is the sign. Source:
 * "Packed Values" in the Annotate v3 text.
 */
#ifndef KB_LIB_FORMAT_LEB_H
#define KB_LIB_FORMAT_LEB_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define KB_LEB32_MAX	5	/* bytes of a packed32 */
#define KB_LEB64_MAX	10	/* bytes of a packed64, and the room kb_leb_put() needs */

uint8_t *kb_leb_put_long(uint8_t *at, int64_t value);

/*
 * Write @value in as few bytes as it takes; there must be room for KB_LEB64_MAX.
 * Returns where the next byte goes. Up to 8 groups are spread over the bytes of one
 * word, without a loop.
 */
static inline uint8_t *kb_leb_put(uint8_t *at, int64_t value)
{
	uint64_t magnitude = (uint64_t)(value ^ (value >> 63));
	uint64_t x = (uint64_t)value;
	unsigned int bytes;

	if (magnitude < 64) {
		*at = (uint8_t)(value & 0x7f);
		return at + 1;
	}
	if (__builtin_expect(magnitude >> 55, 0))
		return kb_leb_put_long(at, value);
	/* the bits that say something, one for the sign, in groups of 7 */
	bytes = (64 - (unsigned int)__builtin_clzll(magnitude << 1 | 1) + 6) / 7;
	x = (x & 0x000000000fffffffu) | (x & 0x00fffffff0000000u) << 4;
	x = (x & 0x00003fff00003fffu) | (x & 0x0fffc0000fffc000u) << 2;
	x = (x & 0x007f007f007f007fu) | (x & 0x3f803f803f803f80u) << 1;
	x |= 0x8080808080808080u & (((uint64_t)1 << (8 * (bytes - 1))) - 1);
	x = htole64(x);
	memcpy(at, &x, 8);
	return at + bytes;
}

enum kb_leb_result {
	KB_LEB_OK = 0,
	KB_LEB_LONGER,		/* read, but it has bytes that say nothing */
	KB_LEB_TRUNCATED,	/* the input ends inside the number */
	KB_LEB_TOO_BIG,		/* does not fit */
};

/*
 * Read a packed32 (@bits 32) or packed64 (@bits 64) at *@at, before @end. *@at is
 * moved behind it unless the result is KB_LEB_TRUNCATED or KB_LEB_TOO_BIG.
 */
enum kb_leb_result kb_leb_get(const uint8_t **at, const uint8_t *end, unsigned int bits,
			      int64_t *value);

#endif
