/* SPDX-License-Identifier: MIT */
/*
 * Facts as lines of text: JSON with one object a line, or the same in a form for people. Each
 * object begins with its kind. Only the current line is in memory, so output can have any
 * length. Invalid UTF-8 becomes U+FFFD. Integers keep all 64 bits.
 *
 *	kb_json_begin(json, "task");
 *	kb_json_u64(json, "task_id", 7);
 *	kb_json_end(json);
 *
 * gives {"kind":"task","task_id":7}, and for people "task  task_id 7". Inside arrays the key is
 * NULL. Errors of the output are kept there: see kb_out_error().
 */
#ifndef KB_LIB_BASE_TEXT_JSON_H
#define KB_LIB_BASE_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/io/out_packet.h"

struct kb_json {
	struct kb_out *out;
	bool people;		/* the form for people instead of JSON */
	bool markup;		/* for use inside HTML: '<' is escaped */
	bool comma;		/* the next member needs a comma */
	unsigned int arrays;	/* number of open arrays */
};

void kb_json_begin(struct kb_json *json, const char *kind);
void kb_json_end(struct kb_json *json);

/* Begin an object in another object or in an array, or one that is a whole document. */
void kb_json_object(struct kb_json *json, const char *key);
void kb_json_object_end(struct kb_json *json);

void kb_json_array(struct kb_json *json, const char *key);
void kb_json_array_end(struct kb_json *json);

void kb_json_put_u64(struct kb_json *json, const char *key, size_t length, uint64_t value);
void kb_json_put_i64(struct kb_json *json, const char *key, size_t length, int64_t value);

/* Inline, so that the compiler knows the length of a literal key. */
static inline void kb_json_u64(struct kb_json *json, const char *key, uint64_t value)
{
	kb_json_put_u64(json, key, key ? strlen(key) : 0, value);
}

static inline void kb_json_i64(struct kb_json *json, const char *key, int64_t value)
{
	kb_json_put_i64(json, key, key ? strlen(key) : 0, value);
}

/* @value / 10^@digits, exactly; @digits 1 to 9. */
void kb_json_fixed(struct kb_json *json, const char *key, int64_t value, unsigned int digits);

void kb_json_bool(struct kb_json *json, const char *key, bool value);
/* The shortest decimal form that reads back as the same number; null if it is not finite. */
void kb_json_double(struct kb_json *json, const char *key, double value);
/* @text NULL: null. */
void kb_json_text(struct kb_json *json, const char *key, const char *text, size_t length);
/* NUL-terminated. */
void kb_json_string(struct kb_json *json, const char *key, const char *string);

#endif
