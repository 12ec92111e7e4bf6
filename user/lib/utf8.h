/* SPDX-License-Identifier: MIT */
/* UTF-8 of unknown origin made fit for formats that want it whole. */
#ifndef KB_LIB_UTF8_H
#define KB_LIB_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the longest prefix of @text that is valid UTF-8. */
size_t kb_utf8_valid(const char *text, size_t length);

/* The most bytes of valid @text, at most @max, that do not split a character. */
size_t kb_utf8_cut(const char *text, size_t length, size_t max);

/*
 * Copy @from to @to as valid UTF-8: each maximal broken sequence becomes U+FFFD.
 * With @plain, what a careless JSON writer would stumble over is replaced too:
 * '"' by "'", '\' by '/', control characters by blanks. Stops before the character
 * that does not fit into @room. Returns the bytes written; no NUL is added.
 */
size_t kb_utf8_clean(char *to, size_t room, const char *from, size_t length, bool plain);

#endif
