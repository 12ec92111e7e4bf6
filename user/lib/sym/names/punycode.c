// SPDX-License-Identifier: MIT
/*
 * The characters of ASCII come first, then a '_' if there are any. Behind it are numbers: each says
 * where the next character is inserted, and how much greater it is than the one before. The
 * algorithm and its parameters are those of RFC 3492, sections 5 and 6.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text/utf8.h"
#include "sym/names/punycode.h"

#define BASE		36U
#define T_MIN		1U
#define T_MAX		26U
#define SKEW		38U
#define DAMP		700U
#define FIRST_BIAS	72U
#define FIRST_CHARACTER	0x80U

struct characters {
	uint32_t at[KB_PUNYCODE_MAX];
	uint32_t nr;
};

static bool is_character(uint64_t code)
{
	return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

static bool insert(struct characters *characters, uint32_t place, uint32_t code)
{
	if (characters->nr == KB_PUNYCODE_MAX)
		return false;
	memmove(characters->at + place + 1, characters->at + place,
		(characters->nr - place) * sizeof(*characters->at));
	characters->at[place] = code;
	characters->nr++;
	return true;
}

static uint32_t adapt(uint64_t delta, uint32_t nr, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / DAMP : delta / 2;
	for (delta += delta / nr; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
		delta /= BASE - T_MIN;
	return k + (uint32_t)((BASE - T_MIN + 1) * delta / (delta + SKEW));
}

/* Read a number and move *@code after it. */
static bool read_number(const char **code, const char *end, uint32_t bias, uint64_t *number)
{
	uint64_t weight = 1;
	uint32_t k, digit, t;

	for (*number = 0, k = BASE;; k += BASE) {
		char c = *code < end ? *(*code)++ : '\0';

		if (c >= 'a' && c <= 'z')
			digit = (uint32_t)(c - 'a');
		else if (c >= '0' && c <= '9')
			digit = 26 + (uint32_t)(c - '0');
		else
			return false;
		*number += digit * weight;
		t = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
		if (digit < t)
			return true;
		weight *= BASE - t;
		if (*number > UINT32_MAX || weight > UINT32_MAX)
			return false;
	}
}

static bool decode(struct characters *characters, const char *code, const char *end)
{
	uint64_t number, place = 0, character = FIRST_CHARACTER;
	uint32_t bias = FIRST_BIAS, nr;
	bool first = true;

	for (; code < end; first = false) {
		if (!read_number(&code, end, bias, &number))
			return false;
		nr = characters->nr + 1;
		place += number;
		bias = adapt(number, nr, first);
		character += place / nr;
		place %= nr;
		if (!is_character(character) ||
		    !insert(characters, (uint32_t)place, (uint32_t)character))
			return false;
		place++;
	}
	return true;
}

size_t kb_punycode_decode(char text[KB_PUNYCODE_BYTES], const char *code, size_t length)
{
	const char *numbers = code + length, *end = numbers;
	struct characters characters;
	char *at = text;

	while (numbers > code && numbers[-1] != '_')
		numbers--;
	characters.nr = 0;
	for (const char *ascii = code; ascii + 1 < numbers; ascii++)
		if (!insert(&characters, characters.nr, (unsigned char)*ascii))
			return 0;
	if (numbers == end || !decode(&characters, numbers, end))
		return 0;
	for (uint32_t i = 0; i < characters.nr; i++)
		at += kb_utf8_put(at, characters.at[i]);
	return (size_t)(at - text);
}
