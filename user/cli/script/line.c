// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "base/text/utf8.h"
#include "cli/script/line.h"

bool line_create(struct line *line, struct kb_out *out)
{
	*line = (struct line){ .out = out, .nowhere = malloc(LINE_BYTES + LINE_SLACK) };
	return line->nowhere;
}

void line_destroy(struct line *line)
{
	free(line->nowhere);
}

void line_text_slow(struct line *line, const char *text, size_t length)
{
	for (size_t i = 0, taken; i < length; i += taken) {
		char shown[4];
		size_t size;

		taken = 1;
		if (kb_utf8_is_plain(text[i])) {
			line_char(line, text[i]);
			continue;
		}
		size = kb_utf8_shown_next(shown, text + i, length - i, &taken);
		/* print a whole character or nothing */
		if (size > line_room(line))
			break;
		memcpy(line->at, shown, size);
		line->at += size;
	}
}

void line_decimal_wide(struct line *line, uint64_t number, size_t width, char fill)
{
	uint8_t digits[16 + LINE_NUMBER + 8];
	size_t length;

	memset(digits, fill, 16);
	length = (size_t)(kb_decimal_put(digits + 16, number) - (digits + 16));
	if (length < width)
		line_clean(line, (const char *)digits + 16 - (width - length), width);
	else
		line_clean(line, (const char *)digits + 16, length);
}

void line_hex(struct line *line, uint64_t number, size_t width)
{
	uint8_t digits[16], *at = digits + sizeof(digits);
	size_t length;

	memset(digits, ' ', sizeof(digits));
	do
		*--at = (uint8_t)"0123456789abcdef"[number & 15];
	while (number >>= 4);
	length = (size_t)(digits + sizeof(digits) - at);
	if (length < width)
		length = width;
	line_clean(line, (const char *)digits + sizeof(digits) - length, length);
}
