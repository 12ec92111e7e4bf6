// SPDX-License-Identifier: MIT
/* Rust names of the legacy mangling, which looks like that of C++. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/names/demangle_rust.h"
#include "sym/names/rust_text.h"

static const struct escape {
	const char *code, *text;
} escapes[] = {
	{ "$SP$", "@" }, { "$BP$", "*" }, { "$RF$", "&" }, { "$LT$", "<" }, { "$GT$", ">" },
	{ "$LP$", "(" }, { "$RP$", ")" }, { "$C$", "," }, { "$u20$", " " }, { "$u22$", "\"" },
	{ "$u27$", "'" }, { "$u2b$", "+" }, { "$u3b$", ";" }, { "$u5b$", "[" }, { "$u5d$", "]" },
	{ "$u7b$", "{" }, { "$u7d$", "}" }, { "$u7e$", "~" },
};

/* The escape that begins at @at; NULL if there is none. */
static const struct escape *find_escape(const char *at, const char *end)
{
	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
		size_t size = strlen(escapes[i].code);

		if ((size_t)(end - at) >= size && memcmp(at, escapes[i].code, size) == 0)
			return &escapes[i];
	}
	return NULL;
}

/* Write one component of a path. */
static void put_legacy(struct kb_rust_text *text, const char *at, size_t length)
{
	const char *end = at + length;

	if (length > 1 && at[0] == '_' && at[1] == '$')
		at++;
	while (at < end) {
		const struct escape *escape = find_escape(at, end);

		if (escape) {
			kb_rust_put(text, escape->text);
			at += strlen(escape->code);
		} else if (end - at >= 2 && at[0] == '.' && at[1] == '.') {
			kb_rust_put(text, "::");
			at += 2;
		} else {
			kb_rust_put_bytes(text, at++, 1);
		}
	}
}

/*
 * A hash is 64 random bits, so it has many different digits: a name of C++ that looks
 * like one, h0000000000000000, has not. libiberty asks for five too.
 */
static bool is_hash(const char *at, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	unsigned int different = 0;

	if (length != 17 || *at != 'h' || strspn(at + 1, digits) < 16)
		return false;
	for (const char *digit = digits; *digit; digit++)
		different += memchr(at + 1, *digit, 16) != NULL;
	return different >= 5;
}

char *kb_demangle_rust_legacy(const char *name)
{
	const char *at = name + 3;
	bool hash = false, first = true;
	struct kb_rust_text text;

	if (strncmp(name, "_ZN", 3) != 0 || !strstr(name, "17h") || !kb_rust_begin(&text))
		return NULL;
	while (*at >= '0' && *at <= '9' && !hash) {
		char *component;
		unsigned long length = strtoul(at, &component, 10);

		if (length > strlen(component))
			break;
		at = component + length;
		hash = is_hash(component, length) && *at == 'E';
		if (hash)
			break;
		if (!first)
			kb_rust_put(&text, "::");
		first = false;
		put_legacy(&text, component, length);
	}
	return kb_rust_end(&text, hash && !first);
}
