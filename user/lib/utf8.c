// SPDX-License-Identifier: MIT
/*
 * UTF-8 by the table of well-formed sequences in the Unicode standard (table 3-7):
 * no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#include <stdint.h>
#include <string.h>

#include "utf8.h"

/*
 * Bytes of the character at @at if it is well formed, else minus the bytes of the
 * maximal broken part (at least 1).
 */
static int sequence(const uint8_t *at, const uint8_t *end)
{
	uint8_t low = 0x80, high = 0xbf;
	int length, i;

	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return -1;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (at[0] == 0xe0)
		low = 0xa0;
	else if (at[0] == 0xed)
		high = 0x9f;
	else if (at[0] == 0xf0)
		low = 0x90;
	else if (at[0] == 0xf4)
		high = 0x8f;
	for (i = 1; i < length; i++) {
		if (at + i == end || at[i] < low || at[i] > high)
			return -i;
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

size_t kb_utf8_valid(const char *text, size_t length)
{
	const uint8_t *start = (const uint8_t *)text, *at = start, *end = start + length;

	while (at < end) {
		uint64_t word;
		int n;

		if (end - at >= 8) {
			memcpy(&word, at, 8);
			if (!(word & 0x8080808080808080u)) {
				at += 8;
				continue;
			}
		}
		n = sequence(at, end);
		if (n < 0)
			break;
		at += n;
	}
	return (size_t)(at - start);
}

size_t kb_utf8_cut(const char *text, size_t length, size_t max)
{
	if (length <= max)
		return length;
	while (max && ((uint8_t)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

/* The byte of a well-formed ASCII character that stands for @byte in plain text. */
static char plain_byte(uint8_t byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return ' ';
	return byte == '"' ? '\'' : byte == '\\' ? '/' : (char)byte;
}

size_t kb_utf8_clean(char *to, size_t room, const char *from, size_t length, bool plain)
{
	const uint8_t *at = (const uint8_t *)from, *end = at + length;
	char *out = to, *limit = to + room;

	while (at < end && out < limit) {
		int n;

		if (*at < 0x80) {
			*out++ = plain ? plain_byte(*at) : (char)*at;
			at++;
			continue;
		}
		n = sequence(at, end);
		if (limit - out < (n < 0 ? 3 : n))
			break;
		if (n < 0) {
			memcpy(out, "\xef\xbf\xbd", 3);
			out += 3;
			at -= n;
		} else {
			memcpy(out, at, (size_t)n);
			out += n;
			at += n;
		}
	}
	return (size_t)(out - to);
}
