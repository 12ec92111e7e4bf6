/* SPDX-License-Identifier: MIT */
/* Bytes of text with their length: not NUL-terminated, maybe not UTF-8. */
#ifndef KBARMAN_TEXT_H
#define KBARMAN_TEXT_H

#include <stddef.h>
#include <string.h>

struct kb_text {
	const char *data;
	size_t length;
};

/* NULL is the empty text. */
static inline struct kb_text kb_text(const char *string)
{
	struct kb_text text = { string ? string : "", string ? strlen(string) : 0 };

	return text;
}

#endif
