/* SPDX-License-Identifier: MIT */
/*
 * Facts as lines of text: JSON, one object a line, or the same for people. Each
 * object begins with its kind. Nothing is kept but the line, so output can be of
 * any length; what is no UTF-8 becomes U+FFFD, integers keep all their 64 bits.
 *
 *	kb_json_begin(json, "task");
 *	kb_json_u64(json, "task_id", 7);
 *	kb_json_end(json);
 *
 * gives {"kind":"task","task_id":7}, for people "task  task_id 7". Inside arrays
 * the key is NULL. Errors of the output stay there: kb_out_error().
 */
#ifndef KB_LIB_JSON_H
#define KB_LIB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "out.h"

struct kb_json {
	struct kb_out *out;
	bool people;		/* not JSON */
	bool markup;		/* stands in HTML: no text has a '<' */
	bool comma;		/* something is in front of what comes next */
	unsigned int arrays;	/* open at the moment */
};

void kb_json_begin(struct kb_json *json, const char *kind);
void kb_json_end(struct kb_json *json);

/* An object in another one or in an array, or that is a whole document. */
void kb_json_object(struct kb_json *json, const char *key);
void kb_json_object_end(struct kb_json *json);

void kb_json_array(struct kb_json *json, const char *key);
void kb_json_array_end(struct kb_json *json);

void kb_json_put_u64(struct kb_json *json, const char *key, size_t length, uint64_t value);
void kb_json_put_i64(struct kb_json *json, const char *key, size_t length, int64_t value);

/* Inline so that the length of a key, which is a literal, is a constant. */
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
/* The shortest form that reads back as the same number; null if it is not finite. */
void kb_json_double(struct kb_json *json, const char *key, double value);
/* @text NULL: null. */
void kb_json_text(struct kb_json *json, const char *key, const char *text, size_t length);
/* NUL-terminated. */
void kb_json_string(struct kb_json *json, const char *key, const char *string);

#endif
