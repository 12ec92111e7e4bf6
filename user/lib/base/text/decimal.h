/* SPDX-License-Identifier: MIT */
/*
 * Numbers as decimal digits, eight at a time: the most frequent work of text encoders. Each
 * function may write 8 bytes beyond what it returns.
 */
#ifndef KB_LIB_BASE_TEXT_DECIMAL_H
#define KB_LIB_BASE_TEXT_DECIMAL_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define KB_DECIMAL_8	100000000u	/* the smallest number with more than 8 digits */

/*
 * The eight digits of @v < 10^8, the first digit in the lowest byte. All parts are split at
 * once: first into two parts of four digits, then into four of two, then into eight. The
 * products are x / 100 and x / 10 for every possible part x.
 */
static inline uint64_t kb_decimal_digits_8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
	uint64_t q = x * 10486 >> 20 & UINT64_C(0x0000007f0000007f);

	x = q + ((x - q * 100) << 16);
	q = x * 103 >> 10 & UINT64_C(0x000f000f000f000f);
	return q + ((x - q * 10) << 8);
}

#define KB_DECIMAL_ASCII	UINT64_C(0x3030303030303030)

static inline void kb_decimal_store(uint8_t *p, uint64_t ascii)
{
	ascii = htole64(ascii);
	memcpy(p, &ascii, sizeof(ascii));
}

/* With leading zeros. */
static inline void kb_decimal_put_8(uint8_t *p, uint32_t v)
{
	kb_decimal_store(p, kb_decimal_digits_8(v) | KB_DECIMAL_ASCII);
}

/* Without leading zeros, and without a branch that depends on the number of digits. */
static inline uint8_t *kb_decimal_put_small(uint8_t *p, uint32_t v)
{
	uint64_t digits = kb_decimal_digits_8(v);
	unsigned int zeros = v ? __builtin_ctzll(digits) / 8 : 7;

	kb_decimal_store(p, (digits | KB_DECIMAL_ASCII) >> 8 * zeros);
	return p + 8 - zeros;
}

static inline uint8_t *kb_decimal_put(uint8_t *p, uint64_t v)
{
	if (v < 10) {		/* most numbers in most messages */
		*p = '0' + v;
		return p + 1;
	}
	if (v < KB_DECIMAL_8)
		return kb_decimal_put_small(p, v);
	if (v < (uint64_t)KB_DECIMAL_8 * KB_DECIMAL_8) {
		p = kb_decimal_put_small(p, v / KB_DECIMAL_8);
	} else {
		p = kb_decimal_put_small(p, v / KB_DECIMAL_8 / KB_DECIMAL_8);
		kb_decimal_put_8(p, v / KB_DECIMAL_8 % KB_DECIMAL_8);
		p += 8;
	}
	kb_decimal_put_8(p, v % KB_DECIMAL_8);
	return p + 8;
}

#endif
