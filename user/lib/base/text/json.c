// SPDX-License-Identifier: MIT
/*
 * Facts as lines of text; see json.h. Each member reserves room for its longest form and is
 * written in place. Only texts have no longest form.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/decimal.h"
#include "base/text/eight.h"
#include "base/text/json.h"
#include "base/text/utf8.h"

#define NUMBER_BYTES	32U	/* of any integer or double */
#define SHORT_TEXT	256U	/* written at once if no character needs an escape */

/* Write comma, key and colon, and reserve @room bytes after them; NULL after an error. */
static uint8_t *put_key(struct kb_json *json, const char *key, size_t length, size_t room)
{
	uint8_t *at = kb_out_reserve(json->out, length + 8 + room);

	if (!at)
		return NULL;
	if (json->people) {
		if (json->comma)
			*at++ = ' ';
		if (key) {
			memcpy(at, key, length);
			at += length;
			*at++ = ' ';
		}
	} else {
		if (json->comma)
			*at++ = ',';
		if (key) {
			*at++ = '"';
			memcpy(at, key, length);
			at += length;
			*at++ = '"';
			*at++ = ':';
		}
	}
	json->comma = true;
	return at;
}

static void put_literal(struct kb_json *json, const char *key, const char *literal)
{
	size_t length = strlen(literal);
	uint8_t *at = put_key(json, key, key ? strlen(key) : 0, length);

	if (!at)
		return;
	memcpy(at, literal, length);
	kb_out_commit(json->out, at + length);
}

void kb_json_begin(struct kb_json *json, const char *kind)
{
	size_t length = strlen(kind);
	uint8_t *at = kb_out_reserve(json->out, length + 16);

	json->comma = true;
	json->arrays = 0;
	if (!at)
		return;
	if (json->people) {
		memcpy(at, kind, length);
		for (at += length; length < 8; length++)
			*at++ = ' ';
	} else {
		memcpy(at, "{\"kind\":\"", 9);
		memcpy(at + 9, kind, length);
		at += 9 + length;
		*at++ = '"';
	}
	kb_out_commit(json->out, at);
}

void kb_json_end(struct kb_json *json)
{
	if (json->people)
		kb_out_bytes(json->out, "\n", 1);
	else
		kb_out_bytes(json->out, "}\n", 2);
}

void kb_json_object(struct kb_json *json, const char *key)
{
	put_literal(json, key, "{");
	json->comma = false;
}

void kb_json_object_end(struct kb_json *json)
{
	kb_out_bytes(json->out, "}", 1);
	json->comma = true;
}

void kb_json_array(struct kb_json *json, const char *key)
{
	put_literal(json, key, "[");
	json->comma = false;
	json->arrays++;
}

void kb_json_array_end(struct kb_json *json)
{
	kb_out_bytes(json->out, "]", 1);
	json->comma = true;
	json->arrays--;
}

void kb_json_put_u64(struct kb_json *json, const char *key, size_t length, uint64_t value)
{
	uint8_t *at = put_key(json, key, length, NUMBER_BYTES);

	if (at)
		kb_out_commit(json->out, kb_decimal_put(at, value));
}

void kb_json_put_i64(struct kb_json *json, const char *key, size_t length, int64_t value)
{
	uint8_t *at = put_key(json, key, length, NUMBER_BYTES);

	if (!at)
		return;
	if (value < 0)
		*at++ = '-';
	kb_out_commit(json->out, kb_decimal_put(at, value < 0 ? -(uint64_t)value : (uint64_t)value));
}

void kb_json_fixed(struct kb_json *json, const char *key, int64_t value, unsigned int digits)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value, power = 1;
	uint8_t *at = put_key(json, key, key ? strlen(key) : 0, NUMBER_BYTES), *part;

	if (!at)
		return;
	for (unsigned int i = 0; i < digits; i++)
		power *= 10;
	if (value < 0)
		*at++ = '-';
	/* cppcheck-suppress zerodivcond ; the remainder may be 0, the power is not */
	at = kb_decimal_put(at, magnitude / power);
	magnitude %= power;
	if (magnitude) {
		*at++ = '.';
		for (part = at + digits; part > at; magnitude /= 10)
			*--part = '0' + magnitude % 10;
		at += digits;
	}
	kb_out_commit(json->out, at);
}

void kb_json_bool(struct kb_json *json, const char *key, bool value)
{
	put_literal(json, key, value ? "true" : "false");
}

void kb_json_double(struct kb_json *json, const char *key, double value)
{
	char text[NUMBER_BYTES];

	if (!isfinite(value)) {
		put_literal(json, key, "null");
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text) - 2, "%.*g", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (!strpbrk(text, ".e"))
		memcpy(text + strlen(text), ".0", 3);
	put_literal(json, key, text);
}

/* \uXXXX of 16 bits. */
static uint8_t *put_escape(uint8_t *at, uint32_t code)
{
	static const char hex[] = "0123456789abcdef";

	*at++ = '\\';
	*at++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*at++ = hex[code >> shift & 15];
	return at;
}

/*
 * Write one character as it appears between quotes in JSON: at most 12 bytes. Control
 * characters of terminals are escaped, because the output may go to a terminal.
 */
static uint8_t *put_character(uint8_t *at, uint32_t code)
{
	static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
	const char *found = code && code < 0x80 ? strchr(plain, (int)code) : NULL;

	if (found) {
		*at++ = '\\';
		*at++ = escaped[found - plain];
		return at;
	}
	if (code == '<' || kb_utf8_steers(code)) {
		if (code >= 0x10000) {
			at = put_escape(at, 0xd7c0 + (code >> 10));
			code = 0xdc00 | (code & 0x3ff);
		}
		return put_escape(at, code);
	}
	return at + kb_utf8_put((char *)at, code);
}

/* Number of bytes at the start of @text that need no escape, usually all. */
static size_t plain_length(const struct kb_json *json, const char *text, size_t length)
{
	size_t i = 0;

	if (!json->markup && kb_eight_all_simple(text, length))
		return length;
	while (i < length && (uint8_t)text[i] >= 0x20 && (uint8_t)text[i] < 0x7f &&
	       text[i] != '"' && text[i] != '\\' && (text[i] != '<' || !json->markup))
		i++;
	return i;
}

static bool is_word(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((uint8_t)text[i] <= 0x20 || (uint8_t)text[i] >= 0x7f ||
		    strchr("\"\\,[]", text[i]))
			return false;
	}
	return length > 0;
}

void kb_json_text(struct kb_json *json, const char *key, const char *text, size_t length)
{
	size_t key_length = key ? strlen(key) : 0;
	uint8_t *at;

	if (!text) {
		put_literal(json, key, "null");
		return;
	}
	if (length <= SHORT_TEXT && plain_length(json, text, length) == length) {
		/* The form for people has quotes only around texts that are not one word. */
		bool quotes = !json->people || !is_word(text, length);

		at = put_key(json, key, key_length, SHORT_TEXT + 2);
		if (!at)
			return;
		if (quotes)
			*at++ = '"';
		memcpy(at, text, length);
		at += length;
		if (quotes)
			*at++ = '"';
		kb_out_commit(json->out, at);
		return;
	}
	at = put_key(json, key, key_length, 1);
	if (!at)
		return;
	*at++ = '"';
	kb_out_commit(json->out, at);
	while (length) {
		size_t plain = plain_length(json, text, length);
		uint32_t code;

		kb_out_bytes(json->out, text, plain);
		text += plain;
		length -= plain;
		if (!length)
			break;
		plain = kb_utf8_next(text, length, &code);
		at = kb_out_reserve(json->out, 16);
		if (!at)
			return;
		kb_out_commit(json->out, put_character(at, code));
		text += plain;
		length -= plain;
	}
	kb_out_bytes(json->out, "\"", 1);
}

void kb_json_string(struct kb_json *json, const char *key, const char *string)
{
	kb_json_text(json, key, string, string ? strlen(string) : 0);
}
