// SPDX-License-Identifier: MIT
/* Packed integers: the writer for long numbers, and the strict reader. */
#include "format/leb.h"

uint8_t *kb_leb_put_long(uint8_t *at, int64_t value)
{
	for (;;) {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		if (value == (byte & 0x40 ? -1 : 0)) {
			*at++ = byte;
			return at;
		}
		*at++ = byte | 0x80;
	}
}

/*
 * Whether @byte can be the last byte of a number of @bits: bits above must be copies of the
 * sign.
 */
static int fits(uint8_t byte, unsigned int shift, unsigned int bits)
{
	uint8_t beyond = (uint8_t)(0x7f << (bits - shift - 1)) & 0x7f;

	return (byte & beyond) == 0 || (byte & beyond) == beyond;
}

enum kb_leb_result kb_leb_get(const uint8_t **at, const uint8_t *end, unsigned int bits,
			      int64_t *value)
{
	const uint8_t *p = *at;
	unsigned int shift = 0;
	uint64_t x = 0;
	uint8_t byte, before = 0;

	for (;; shift += 7) {
		if (p == end)
			return KB_LEB_TRUNCATED;
		byte = *p++;
		x |= (uint64_t)(byte & 0x7f) << shift;
		if (shift + 7 >= bits)
			break;
		if (!(byte & 0x80))
			break;
		before = byte;
	}
	if (byte & 0x80 || (shift + 7 >= bits && !fits(byte, shift, bits)))
		return KB_LEB_TOO_BIG;
	shift += 7;
	if (shift < 64 && byte & 0x40)
		x |= ~(uint64_t)0 << shift;
	*value = (int64_t)x;
	*at = p;
	/* the last byte has only sign bits, and the byte before it has the same sign */
	if (shift > 7 && byte == (before & 0x40 ? 0x7f : 0))
		return KB_LEB_LONGER;
	return KB_LEB_OK;
}
