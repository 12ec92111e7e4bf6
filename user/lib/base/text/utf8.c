// SPDX-License-Identifier: MIT
/*
 * Text of unknown quality; see utf8.h. This implements table 3-7 of the Unicode standard
 * ("well-formed UTF-8 byte sequences"): only the byte after the lead byte has ranges that
 * depend on the lead byte.
 */
#include <string.h>

#include "base/array.h"
#include "base/text/eight.h"
#include "base/text/utf8.h"

size_t kb_utf8_next(const char *text, size_t length, uint32_t *code)
{
	const uint8_t *s = (const uint8_t *)text;
	uint8_t low = 0x80, high = 0xbf;
	uint32_t value;
	size_t need;

	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	*code = KB_UTF8_REPLACEMENT;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 1;
	if (s[0] < 0xe0) {
		need = 2;
		value = s[0] & 0x1f;
	} else if (s[0] < 0xf0) {
		need = 3;
		value = s[0] & 0x0f;
		if (s[0] == 0xe0)
			low = 0xa0;
		else if (s[0] == 0xed)
			high = 0x9f;
	} else {
		need = 4;
		value = s[0] & 0x07;
		if (s[0] == 0xf0)
			low = 0x90;
		else if (s[0] == 0xf4)
			high = 0x8f;
	}
	for (size_t i = 1; i < need; i++) {
		if (i == length || s[i] < low || s[i] > high)
			return i;
		value = value << 6 | (s[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	*code = value;
	return need;
}

/* Whether U+FFFD replaces invalid bytes. A real U+FFFD takes three bytes and starts with 0xef. */
static bool is_replaced(const char *text, uint32_t code, size_t taken)
{
	return code == KB_UTF8_REPLACEMENT && (taken != 3 || (uint8_t)text[0] != 0xef);
}

size_t kb_utf8_valid(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length) {
		uint64_t eight;
		uint32_t code;
		size_t used;

		if (length - at >= sizeof(eight)) {
			memcpy(&eight, text + at, sizeof(eight));
			if (!(eight & KB_EIGHT(0x80))) {
				at += sizeof(eight);
				continue;
			}
		} else if (!(kb_eight_of_few(text + at, length - at) & KB_EIGHT(0x80))) {
			return length;
		}
		used = kb_utf8_next(text + at, length - at, &code);
		if (is_replaced(text + at, code, used))
			break;
		at += used;
	}
	return at;
}

size_t kb_utf8_put(char *to, uint32_t code)
{
	if (code < 0x80) {
		to[0] = code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = 0xc0 | code >> 6;
		to[1] = 0x80 | (code & 0x3f);
		return 2;
	}
	if (code < 0x10000) {
		to[0] = 0xe0 | code >> 12;
		to[1] = 0x80 | (code >> 6 & 0x3f);
		to[2] = 0x80 | (code & 0x3f);
		return 3;
	}
	to[0] = 0xf0 | code >> 18;
	to[1] = 0x80 | (code >> 12 & 0x3f);
	to[2] = 0x80 | (code >> 6 & 0x3f);
	to[3] = 0x80 | (code & 0x3f);
	return 4;
}

size_t kb_utf8_clean(char *to, const char *text, size_t length)
{
	size_t out = 0, at = 0;

	while (at < length) {
		size_t good = kb_utf8_valid(text + at, length - at);
		uint32_t code;

		memcpy(to + out, text + at, good);
		out += good;
		at += good;
		if (at == length)
			break;
		at += kb_utf8_next(text + at, length - at, &code);
		out += kb_utf8_put(to + out, KB_UTF8_REPLACEMENT);
	}
	return out;
}

bool kb_utf8_steers(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x061c, 0x061c }, { 0x200b, 0x200b },
		{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
		{ 0xfff9, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0xe007f },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

size_t kb_utf8_shown_next(char *to, const char *text, size_t length, size_t *taken)
{
	uint32_t code;

	*taken = kb_utf8_next(text, length, &code);
	if (kb_utf8_steers(code) || is_replaced(text, code, *taken)) {
		*to = '?';
		return 1;
	}
	memmove(to, text, *taken);
	return *taken;
}

size_t kb_utf8_shown(char *to, const char *text, size_t length)
{
	size_t out = 0, at = 0, taken;

	while (at < length) {
		if (kb_utf8_is_plain(text[at])) {
			to[out++] = text[at++];
			continue;
		}
		out += kb_utf8_shown_next(to + out, text + at, length - at, &taken);
		at += taken;
	}
	return out;
}
