// SPDX-License-Identifier: MIT
/* Text of TPTP traces: UTF-8 that is always valid when written, and ticks as seconds. */
#include <string.h>

#include "base/text/decimal.h"
#include "format/tptp/codec.h"

#define ONES	UINT64_C(0x0101010101010101)

/* Whether all eight bytes are ASCII and none is NUL. */
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
	/* The last word may overlap the one before. */
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
	/* From here on further digits are below a nanosecond and would overflow. */
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

uint8_t *tptp_put_number(uint8_t *p, int64_t v)
{
	if (v < 0) {
		*p++ = '-';
		return kb_decimal_put(p, -(uint64_t)v);
	}
	return kb_decimal_put(p, v);
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
	p = kb_decimal_put(p, seconds < 0 ? -(uint64_t)seconds : (uint64_t)seconds);
	p[0] = '.';
	p[1] = '0' + ns / KB_DECIMAL_8;
	kb_decimal_put_8(p + 2, ns % KB_DECIMAL_8);
	return p + 10;
}
