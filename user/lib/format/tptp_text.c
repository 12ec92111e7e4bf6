// SPDX-License-Identifier: MIT
/*
 * Text of TPTP traces: UTF-8 that is always valid when written, and ticks as
 * seconds.
 */
#include <string.h>

#include "format/tptp_codec.h"
#include "format/wire.h"

#define ONES	UINT64_C(0x0101010101010101)

/* All eight bytes ASCII, and none of them NUL? */
static inline bool plain_word(uint64_t word)
{
	return !((word | (word - ONES)) & (ONES << 7));
}

static uint8_t *put_carefully(uint8_t *p, const uint8_t *s, size_t n)
{
	while (n && *s) {
		uint32_t code;
		int length = tptp_utf8(s, n, &code);

		if (length > 0) {
			memcpy(p, s, length);
			p += length;
		} else {
			memcpy(p, TPTP_REPLACEMENT, 3);
			p += 3;
			length = -length;
		}
		s += length;
		n -= length;
	}
	return p;
}

uint8_t *tptp_put_utf8(uint8_t *p, const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;
	uint64_t word;

	if (n < sizeof(word))
		return put_carefully(p, s, n);
	for (; n > sizeof(word); n -= sizeof(word), p += sizeof(word), s += sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		if (!plain_word(word))
			return put_carefully(p, s, n);
		memcpy(p, &word, sizeof(word));
	}
	/* The last word, which may begin in the one before. */
	memcpy(&word, s + n - sizeof(word), sizeof(word));
	if (!plain_word(word))
		return put_carefully(p, s, n);
	memcpy(p + n - sizeof(word), &word, sizeof(word));
	return p + n;
}

int64_t tptp_split_slowly(int64_t ticks, int64_t frequency, uint32_t *nanoseconds)
{
	int64_t seconds = ticks / frequency;
	int64_t rest = ticks % frequency;
	uint64_t part, whole;
	uint32_t ns = 0;

	if (rest < 0) {
		rest += frequency;
		seconds--;
	}
	part = rest;
	whole = frequency;
	/* Above this the last bits say less than a nanosecond and would overflow. */
	if (whole > UINT64_MAX / 10) {
		part >>= 4;
		whole >>= 4;
	}
	for (int digit = 0; digit < 9; digit++) {
		part *= 10;
		ns = ns * 10 + part / whole;
		part %= whole;
	}
	*nanoseconds = ns;
	return seconds;
}

#define DIGITS_8	100000000u

/*
 * The eight digits of @v < 10^8, the first one in the lowest byte, by splitting all
 * parts at once: first two of four digits, then four of two, then eight. The products
 * are x / 100 and x / 10 for every x that a part can be.
 */
static inline uint64_t digits_8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
	uint64_t q = x * 10486 >> 20 & UINT64_C(0x0000007f0000007f);

	x = q + ((x - q * 100) << 16);
	q = x * 103 >> 10 & UINT64_C(0x000f000f000f000f);
	return q + ((x - q * 10) << 8);
}

#define ASCII_DIGITS	UINT64_C(0x3030303030303030)

/* With zeros in front. */
static inline void put_8(uint8_t *p, uint32_t v)
{
	kb_store64(p, digits_8(v) | ASCII_DIGITS, KB_SWAP_LE);
}

/* Without zeros in front, and without a branch on how many digits there are. */
static inline uint8_t *put_small(uint8_t *p, uint32_t v)
{
	uint64_t digits = digits_8(v);
	unsigned int zeros = v ? __builtin_ctzll(digits) / 8 : 7;

	kb_store64(p, (digits | ASCII_DIGITS) >> 8 * zeros, KB_SWAP_LE);
	return p + 8 - zeros;
}

static inline uint8_t *put_unsigned(uint8_t *p, uint64_t v)
{
	if (v < 10) {		/* most numbers of most messages */
		*p = '0' + v;
		return p + 1;
	}
	if (v < DIGITS_8)
		return put_small(p, v);
	if (v < (uint64_t)DIGITS_8 * DIGITS_8) {
		p = put_small(p, v / DIGITS_8);
	} else {
		p = put_small(p, v / DIGITS_8 / DIGITS_8);
		put_8(p, v / DIGITS_8 % DIGITS_8);
		p += 8;
	}
	put_8(p, v % DIGITS_8);
	return p + 8;
}

uint8_t *tptp_put_number(uint8_t *p, int64_t v)
{
	if (v < 0) {
		*p++ = '-';
		return put_unsigned(p, -(uint64_t)v);
	}
	return put_unsigned(p, v);
}

uint8_t *tptp_put_seconds(uint8_t *p, int64_t ticks, int64_t frequency)
{
	uint32_t ns;
	int64_t seconds = tptp_split_ticks(ticks, frequency, &ns);

	if (seconds < 0) {
		*p++ = '-';
		if (ns) {
			ns = KB_TPTP_FREQUENCY_NS - ns;
			seconds++;
		}
	}
	p = put_unsigned(p, seconds < 0 ? -(uint64_t)seconds : (uint64_t)seconds);
	p[0] = '.';
	p[1] = '0' + ns / DIGITS_8;
	put_8(p + 2, ns % DIGITS_8);
	return p + 10;
}
