// SPDX-License-Identifier: MIT
/* Labels: one pass over the bytes, nothing allocated, nothing split. */
#include <stdint.h>
#include <string.h>

#include "export/label.h"
#include "format/utf8.h"

static char plain_byte(uint8_t byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return ' ';
	return byte == '"' ? '\'' : byte == '\\' ? '/' : (char)byte;
}

size_t kb_label(char *to, size_t room, const char *from, size_t length, bool plain)
{
	const char *at = from, *end = from + length;
	char *out = to, *limit = to + room, character[4];

	while (at < end && out < limit) {
		uint32_t code;
		size_t taken, size;

		if (!((uint8_t)*at & 0x80)) {
			*out++ = plain ? plain_byte((uint8_t)*at) : *at;
			at++;
			continue;
		}
		taken = kb_utf8_next(at, (size_t)(end - at), &code);
		size = kb_utf8_put(character, code);
		if ((size_t)(limit - out) < size)
			break;
		memcpy(out, character, size);
		out += size;
		at += taken;
	}
	return (size_t)(out - to);
}

size_t kb_label_cut(const char *text, size_t length, size_t max)
{
	if (length <= max)
		return length;
	while (max && ((uint8_t)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}
