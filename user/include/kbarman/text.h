/* SPDX-License-Identifier: MIT */
/* Text with its length in bytes: not NUL-terminated, may be invalid UTF-8. */
#ifndef KBARMAN_TEXT_H
#define KBARMAN_TEXT_H

#include <stddef.h>
#include <string.h>

struct kb_text {
	const char *data;
	size_t length;
};

/* @string as a text. NULL becomes the empty text. */
static inline struct kb_text kb_text(const char *string)
{
	struct kb_text text = { string ? string : "", string ? strlen(string) : 0 };

	return text;
}

#endif
