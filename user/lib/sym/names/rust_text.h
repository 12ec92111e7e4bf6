/* SPDX-License-Identifier: MIT */
/* The text of a Rust name that is being demangled. Its length is limited. */
#ifndef KB_LIB_SYM_NAMES_RUST_TEXT_H
#define KB_LIB_SYM_NAMES_RUST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define KB_RUST_TEXT	4096

struct kb_rust_text {
	char *data;		/* KB_RUST_TEXT */
	size_t length;
	bool failed;
};

static inline void kb_rust_put_bytes(struct kb_rust_text *text, const char *bytes, size_t length)
{
	if (text->failed || length >= KB_RUST_TEXT - text->length) {
		text->failed = true;
		return;
	}
	memcpy(text->data + text->length, bytes, length);
	text->length += length;
}

static inline void kb_rust_put(struct kb_rust_text *text, const char *string)
{
	kb_rust_put_bytes(text, string, strlen(string));
}

static inline bool kb_rust_begin(struct kb_rust_text *text)
{
	*text = (struct kb_rust_text) { .data = malloc(KB_RUST_TEXT) };
	return text->data;
}

static inline char *kb_rust_end(struct kb_rust_text *text, bool good)
{
	if (!good || text->failed) {
		free(text->data);
		return NULL;
	}
	text->data[text->length] = '\0';
	return text->data;
}

#endif
