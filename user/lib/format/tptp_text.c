// SPDX-License-Identifier: MIT
/*
 * Text of TPTP traces: UTF-8 that is always valid when written, and ticks as
 * seconds.
 */
#include <string.h>

#include "format/tptp_codec.h"

#define ONES	UINT64_C(0x0101010101010101)

/* All eight bytes ASCII, and none of them NUL? */
static inline bool plain_word(uint64_t word)
{
	return !((word | (word - ONES)) & (ONES << 7));
}

uint8_t *tptp_put_utf8(uint8_t *p, const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;

	while (n) {
		uint64_t word;
		uint32_t code;
		int length;

		if (n >= sizeof(word)) {
			memcpy(&word, s, sizeof(word));
			if (plain_word(word)) {
				memcpy(p, &word, sizeof(word));
				p += sizeof(word);
				s += sizeof(word);
				n -= sizeof(word);
				continue;
			}
		}
		if (*s < 0x80) {
			if (!*s)
				break;
			*p++ = *s++;
			n--;
			continue;
		}
		length = tptp_utf8(s, n, &code);
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

int64_t tptp_split_ticks(int64_t ticks, int64_t frequency, uint32_t *nanoseconds)
{
	int64_t seconds = ticks / frequency;
	int64_t rest = ticks % frequency;
	uint64_t part, whole;
	uint32_t ns = 0;

	if (rest < 0) {
		rest += frequency;
		seconds--;
	}
	if (frequency == KB_TPTP_FREQUENCY_NS) {
		*nanoseconds = rest;
		return seconds;
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
