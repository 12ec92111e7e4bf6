/* SPDX-License-Identifier: MIT */
/* Names and texts of a capture made fit for the formats of others. */
#ifndef KB_LIB_EXPORT_LABEL_H
#define KB_LIB_EXPORT_LABEL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copy as valid UTF-8 without NULs: what is not becomes U+FFFD. With @plain, what a
 * careless writer of JSON would stumble over is replaced too: '"' by "'", '\' by '/',
 * control characters and NULs by blanks. Stops before the character that does not fit into @room.
 * Returns the bytes written; adds no NUL.
 */
size_t kb_label(char *to, size_t room, const char *from, size_t length, bool plain);

/* The most bytes of UTF-8 @text, at most @max, that do not split a character. */
size_t kb_label_cut(const char *text, size_t length, size_t max);

#endif
