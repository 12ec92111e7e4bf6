/* SPDX-License-Identifier: MIT */
/*
 * Text of unknown quality. Task names, paths and annotations are bytes that
 * somebody chose; what leaves the library as text is UTF-8 in any case.
 */
#ifndef KBARMAN_UTF8_H
#define KBARMAN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KB_UTF8_REPLACEMENT	0xfffdU
#define KB_UTF8_GROWTH		3	/* bytes that kb_utf8_clean() makes of one, at most */

/*
 * The first character of the @length > 0 bytes at @text. Returns how many bytes it
 * takes; where they are no UTF-8 (overlong forms, surrogates and what is above
 * U+10FFFF included) *@code is U+FFFD for the longest part that could have been
 * the beginning of a character, as the Unicode standard recommends.
 */
size_t kb_utf8_next(const char *text, size_t length, uint32_t *code);

/* How many bytes at the beginning of @text are valid UTF-8. */
size_t kb_utf8_valid(const char *text, size_t length);

/* Encode one character; returns the number of bytes, 1 to 4. */
size_t kb_utf8_put(char *to, uint32_t code);

/*
 * Copy with U+FFFD in the place of what is no UTF-8. @to has room for
 * KB_UTF8_GROWTH * @length bytes; returns how many were written, adds no NUL.
 */
size_t kb_utf8_clean(char *to, const char *text, size_t length);

/*
 * A character that steers a terminal (C0, DEL, C1), or makes it show text in another order,
 * on another line or not at all: marks, overrides and isolates of direction, line and
 * paragraph separators, zero width, tags. Who chooses a name is not to choose what is around it.
 */
bool kb_utf8_steers(uint32_t code);

/*
 * For whatever people read: copy with '?' in the place of each character that steers, and of
 * what is no UTF-8. Never longer than @text, which may be @to; returns the length, adds no NUL.
 */
size_t kb_utf8_shown(char *to, const char *text, size_t length);

/* The same of the first character alone, to @to with room for 4 bytes; @taken: of @text. */
size_t kb_utf8_shown_next(char *to, const char *text, size_t length, size_t *taken);

/* One that is shown as it is, as nearly all are. */
static inline bool kb_utf8_is_plain(char byte)
{
	return byte >= ' ' && byte < 0x7f;
}

#endif
