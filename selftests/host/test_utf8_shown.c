// SPDX-License-Identifier: MIT
/*
 * What people are shown of text that others chose: random bytes and random characters, whole
 * and cut anywhere, never steer a terminal, and what is harmless stays as it is.
 */
#include <stdlib.h>

#include "base/text/eight.h"
#include "base/text/utf8.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define LONGEST	64

/* Written out from Unicode's charts, and not taken from the library. */
static bool is_dangerous(uint32_t code)
{
	static const uint32_t ranges[][2] = {
		{ 0x00, 0x1f }, { 0x7f, 0x9f },			/* C0, delete, C1 */
		{ 0x61c, 0x61c }, { 0x200e, 0x200f },		/* marks of direction */
		{ 0x202a, 0x202e }, { 0x2066, 0x2069 },		/* overrides, isolates */
		{ 0x2028, 0x2029 },				/* ends of line, of paragraph */
		{ 0xfffe, 0xffff },				/* no characters, which no XML has */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	return false;
}

/* Bytes, half of them parts of whole characters, many of those dangerous. */
static size_t random_text(char *text)
{
	static const uint32_t odd[] = { 0x07, 0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200f, 0x2028,
					0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xfffe, 0xffff, 0xe0041 };
	static const uint32_t good[] = { 'a', ' ', '~', 0xa0, 0xdb, 0x3b1, 0x2027, 0x202f, 0x65e5,
					 0x1f600 };
	size_t length = 0, wanted = random_below(LONGEST - 4);

	while (length < wanted) {
		switch (random_below(4)) {
		case 0:
			text[length++] = (char)random_below(256);
			break;
		case 1:
			length += kb_utf8_put(text + length, odd[random_below(17)]);
			break;
		default:
			length += kb_utf8_put(text + length, good[random_below(10)]);
		}
	}
	return length;
}

static bool is_harmless(const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		uint32_t code;
		size_t taken = kb_utf8_next(text + at, length - at, &code);

		if (is_dangerous(code))
			return false;
		at += taken;
	}
	return kb_utf8_valid(text, length) == length;
}

static bool nothing_dangerous_is_shown(void)
{
	for (int i = 0; i < 500000; i++) {
		char from[LONGEST], to[LONGEST], again[LONGEST];
		size_t length = random_text(from), shown, cut;

		memset(to, 0x1b, sizeof(to));
		shown = kb_utf8_shown(to, from, length);
		if (shown > length || !is_harmless(to, shown)) {
			tap_note("%zu bytes became %zu", length, shown);
			return false;
		}
		/* Shown again it is the same, in place too, and cut anywhere it is harmless. */
		if (kb_utf8_shown(again, to, shown) != shown || memcmp(again, to, shown))
			return false;
		if (kb_utf8_shown(from, from, length) != shown || memcmp(from, to, shown))
			return false;
		cut = random_below(shown + 1);
		if (!is_harmless(again, kb_utf8_shown(again, to, cut)))
			return false;
	}
	return true;
}

/* Each character on its own, and with it whether the others are left alone. */
static bool all_characters_are_told_apart(void)
{
	uint32_t hidden = 0;

	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char from[4], to[4];
		size_t length = kb_utf8_put(from, code), shown;
		bool same;

		if (code >= 0xd800 && code < 0xe000)
			continue;
		shown = kb_utf8_shown(to, from, length);
		same = shown == length && memcmp(from, to, length) == 0;
		if (!same && (shown != 1 || to[0] != '?'))
			return false;
		if (same && is_dangerous(code)) {
			tap_note("U+%04X is shown", code);
			return false;
		}
		hidden += !same;
	}
	/* what is hidden is a few characters, and not whole scripts */
	return hidden < 300;
}

/* The test of eight bytes at a time says what that of one byte says, wherever the other one is. */
static bool plain_text_is_found(void)
{
	for (int i = 0; i < 500000; i++) {
		char text[LONGEST];
		size_t length = random_below(40), at;
		bool plain = true;

		for (at = 0; at < length; at++)
			text[at] = (char)(' ' + random_below(0x5f));
		if (length && random_below(2))
			text[random_below(length)] = (char)random_below(256);
		for (at = 0; at < length; at++)
			plain &= kb_utf8_is_plain(text[at]);
		if (kb_eight_all_plain(text, length) != plain)
			return false;
	}
	return true;
}

static bool shows(const char *text, const char *want)
{
	char to[LONGEST];
	size_t length = kb_utf8_shown(to, text, strlen(text));

	to[length] = '\0';
	return strcmp(to, want) == 0;
}

int main(void)
{
	random_start();
	tap_ok(nothing_dangerous_is_shown(), "nothing_dangerous_is_shown");
	tap_ok(plain_text_is_found(), "plain_text_is_found");
	tap_ok(all_characters_are_told_apart(), "all_characters_are_told_apart");
	tap_ok(shows("kworker/0:1-events", "kworker/0:1-events") && shows("Grüße 日本 😀", "Grüße 日本 😀"),
	       "names_stay_as_they_are");
	tap_ok(shows("a\x1b[2Jb\xc2\x9b" "2Jc", "a?[2Jb?2Jc"), "each_control_character_is_a_question_mark");
	tap_ok(shows("\x9b" "2J", "?2J") && shows("x\xe2\x80", "x?") && shows("\xc0\x9b", "??"),
	       "bytes_that_are_no_utf8_are_question_marks");
	return tap_done();
}
