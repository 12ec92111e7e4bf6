/* SPDX-License-Identifier: MIT */
/* Patterns in which people name tasks, calls and marks. */
#ifndef KB_LIB_BASE_TEXT_PATTERN_H
#define KB_LIB_BASE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether @text is what @pattern says, in which '*' is any text and '?' any character. NULL: any.
 */
bool kb_pattern_matches(const char *pattern, const char *text, size_t length);

#endif
