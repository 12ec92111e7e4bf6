/* SPDX-License-Identifier: MIT */
/*
 * Lines of text that are written where the output buffers them, without printf and without a copy:
 * most of the time of a verb that prints records goes there. A line is cut at LINE_BYTES. Text that
 * is no number is clean, or comes from a file and must not control the terminal nor end the line.
 */
#ifndef KB_CLI_SCRIPT_LINE_H
#define KB_CLI_SCRIPT_LINE_H

#include <stdbool.h>

#include "base/io/out_packet.h"
#include "base/text/decimal.h"
#include "base/text/eight.h"

#define LINE_BYTES	16384U
#define LINE_SLACK	64U	/* bytes behind a line and behind a text that may be copied along */
#define LINE_NUMBER	24U	/* of any number, with what kb_decimal_put() writes behind it */

struct line {
	struct kb_out *out;
	uint8_t *at;		/* next free byte */
	uint8_t *end;		/* of a line, without its newline */
	uint8_t *nowhere;	/* LINE_BYTES + LINE_SLACK: lines after an error of the output */
};

/* Returns false without memory. line_destroy() takes a zeroed line. */
bool line_create(struct line *line, struct kb_out *out);
void line_destroy(struct line *line);

/* Text that does not fit, or has other characters than printable ASCII. */
void line_text_slow(struct line *line, const char *text, size_t length);

static inline void line_begin(struct line *line)
{
	line->at = kb_out_reserve(line->out, LINE_BYTES + LINE_SLACK);
	if (__builtin_expect(!line->at, 0))
		line->at = line->nowhere;
	line->end = line->at + LINE_BYTES;
}

/* Ends the line. */
static inline void line_end(struct line *line)
{
	line->at -= line->at == line->end;
	*line->at++ = '\n';
	if (__builtin_expect(!line->out->error, 1))
		line->out->at = line->at;
}

static inline size_t line_room(const struct line *line)
{
	return (size_t)(line->end - line->at);
}

static inline void line_char(struct line *line, char c)
{
	*line->at = (uint8_t)c;
	line->at += line->at < line->end;
}

/* Clean text. Inlined for literals, whose length is known. */
static inline __attribute__((always_inline)) void line_clean(struct line *line, const char *text,
							     size_t length)
{
	if (__builtin_expect(line_room(line) < length, 0)) {
		line_text_slow(line, text, length);
		return;
	}
	memcpy(line->at, text, length);
	line->at += length;
}

#define LINE_LITERAL(line, literal)	line_clean(line, literal, sizeof(literal) - 1)

/* Clean text with LINE_SLACK bytes behind it that may be read. */
static inline void line_padded(struct line *line, const char *text, size_t length)
{
	if (__builtin_expect(line_room(line) < length, 0)) {
		line_text_slow(line, text, length);
		return;
	}
	memcpy(line->at, text, 32);
	if (length > 32)
		memcpy(line->at + 32, text + 32, length - 32);
	line->at += length;
}

static inline void line_text(struct line *line, const char *text, size_t length)
{
	if (length <= line_room(line) && kb_eight_all_plain(text, length)) {
		memcpy(line->at, text, length);
		line->at += length;
	} else {
		line_text_slow(line, text, length);
	}
}

static inline void line_string(struct line *line, const char *text)
{
	line_text(line, text, strlen(text));
}

/* With @fill in front, up to @width characters, at most 16. */
void line_decimal_wide(struct line *line, uint64_t number, size_t width, char fill);

static inline void line_decimal(struct line *line, uint64_t number)
{
	if (__builtin_expect(line_room(line) >= LINE_NUMBER, 1))
		line->at = kb_decimal_put(line->at, number);
	else
		line_decimal_wide(line, number, 0, ' ');
}

/* Hexadecimal digits with blanks in front, up to @width characters, at most 16. */
void line_hex(struct line *line, uint64_t number, size_t width);

#endif
