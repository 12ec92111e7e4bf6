/* SPDX-License-Identifier: MIT */
/*
 * base/text/: text from and for people and programs: names of unknown quality (utf8.h), JSON
 * (json.h), decimal numbers (decimal.h), sizes with a unit (size.h), lists of CPUs.
 *
 * Text of unknown quality. Task names, paths and annotations are bytes that anybody may choose.
 * Text that leaves the library is always UTF-8.
 */
#ifndef KB_LIB_BASE_TEXT_UTF8_H
#define KB_LIB_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KB_UTF8_REPLACEMENT	0xfffdU
#define KB_UTF8_GROWTH		3	/* largest ratio of output to input of kb_utf8_clean() */

/*
 * Decode the first character of the @length > 0 bytes at @text. Returns the number of its
 * bytes. For invalid UTF-8 (including overlong forms, surrogates and values above U+10FFFF)
 * *@code is U+FFFD, which replaces the longest part that could have been the beginning of a
 * character, as the Unicode standard recommends.
 */
size_t kb_utf8_next(const char *text, size_t length, uint32_t *code);

/* The number of bytes at the beginning of @text that are valid UTF-8. */
size_t kb_utf8_valid(const char *text, size_t length);

/* Encode one character; returns the number of bytes, 1 to 4. */
size_t kb_utf8_put(char *to, uint32_t code);

/*
 * Copy and replace invalid UTF-8 by U+FFFD. @to has room for KB_UTF8_GROWTH * @length bytes.
 * Returns the number of bytes written and adds no NUL.
 */
size_t kb_utf8_clean(char *to, const char *text, size_t length);

/*
 * Whether @code controls a terminal (C0, DEL, C1), or makes it show text in another order, on
 * another line or not at all: direction marks, overrides and isolates, line and paragraph
 * separators, zero width characters, tags. A name must not affect what is shown around it. Nor can XML
 * have U+FFFE and U+FFFF, which are no characters.
 */
bool kb_utf8_steers(uint32_t code);

/*
 * For text that people read: copy and replace by '?' each character that steers (see above) and
 * all invalid UTF-8. The result is never longer than @text, and @to may be @text. Returns the
 * length and adds no NUL.
 */
size_t kb_utf8_shown(char *to, const char *text, size_t length);

/*
 * The same for the first character only. @to has room for 4 bytes; @taken: bytes used of @text.
 */
size_t kb_utf8_shown_next(char *to, const char *text, size_t length, size_t *taken);

/* Whether the byte is a character that is shown unchanged, as nearly all are. */
static inline bool kb_utf8_is_plain(char byte)
{
	return byte >= ' ' && byte < 0x7f;
}

#endif
