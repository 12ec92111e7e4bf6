// SPDX-License-Identifier: MIT
/*
 * Writes the XML form: one empty element and one line for each message, with attributes in the
 * order that files of the profiler have. The output is well-formed for all strings.
 */
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "format/tptp/codec.h"

/* How a byte of text is written. */
enum {
	PLAIN,
	WORK,		/* needs a reference, or is part of a longer character */
	LIST,		/* plain, except in a list, whose elements are separated by blanks */
};

static const uint8_t text_class[256] = {
	[0 ... 0x1f] = WORK, ['"'] = WORK, ['&'] = WORK, ['<'] = WORK, ['>'] = WORK,
	['\''] = WORK, [0x7f ... 0xff] = WORK,
	[' '] = LIST, ['%'] = LIST,
};

#define PUT(p, literal) (memcpy(p, literal, sizeof(literal) - 1), (p) + sizeof(literal) - 1)

/*
 * A numeric reference, at most 9 bytes. Control characters must not reach a terminal to which
 * XML is printed.
 */
static uint8_t *put_reference(uint8_t *p, uint32_t code)
{
	char reference[16];
	int length = snprintf(reference, sizeof(reference), "&#%u;", code);

	memcpy(p, reference, (size_t)length);
	return p + length;
}

/* One character that is not PLAIN: at most 6 bytes for each byte of @s. */
static uint8_t *put_character(uint8_t *p, const uint8_t **s, const uint8_t *end)
{
	uint8_t c = **s;
	uint32_t code;
	int length;

	if (c >= 0x80) {
		length = tptp_utf8(*s, end - *s, &code);
		if (length <= 0 || !tptp_xml_char(code)) {
			p = PUT(p, TPTP_REPLACEMENT);
		} else if (kb_utf8_steers(code)) {
			p = put_reference(p, code);
		} else {
			memcpy(p, *s, length);
			p += length;
		}
		*s += length > 0 ? length : -length;
		return p;
	}
	(*s)++;
	switch (c) {
	case '"':
		return PUT(p, "&quot;");
	case '\'':
		return PUT(p, "&apos;");
	case '&':
		return PUT(p, "&amp;");
	case '<':
		return PUT(p, "&lt;");
	case '>':
		return PUT(p, "&gt;");
	case '\t':		/* a plain tab would be read as a blank */
		return PUT(p, "&#9;");
	case '\n':
		return PUT(p, "&#10;");
	case '\r':
		return PUT(p, "&#13;");
	case ' ':
		return PUT(p, "%20");
	case '%':
		return PUT(p, "%25");
	case 0x7f:
		return put_reference(p, c);
	default:
		return PUT(p, TPTP_REPLACEMENT);
	}
}

/* Up to a NUL, as in the binary form. */
static uint8_t *put_text(uint8_t *p, const struct kb_text *string, bool list)
{
	const uint8_t *s = (const uint8_t *)string->data, *end;

	if (!string->length)
		return p;
	end = s + string->length;
	while (s < end) {
		uint8_t class = text_class[*s];

		if (class == PLAIN || (class == LIST && !list))
			*p++ = *s++;
		else if (!*s)
			break;
		else
			p = put_character(p, &s, end);
	}
	return p;
}

static uint8_t *put_list(uint8_t *p, const union kb_tptp_value *value, uint8_t type,
			 uint32_t depth)
{
	for (uint32_t k = 0; k < depth; k++) {
		if (k)
			*p++ = ' ';
		if (type == KB_TPTP_TYPE_STRINGS)
			p = put_text(p, &value->strings[k], true);
		else
			p = tptp_put_number(p, value->longs[k]);
	}
	return p;
}

static bool is_default(const union kb_tptp_value *value, uint8_t type, uint32_t depth)
{
	if (type == KB_TPTP_TYPE_STRING)
		return !value->string.length || !value->string.data[0];
	if (type == KB_TPTP_TYPE_STRINGS || type == KB_TPTP_TYPE_LONGS)
		return !depth;
	return !value->number;
}

static inline uint8_t *put_prefix(uint8_t *p, const struct tptp_prefix *prefix)
{
	memcpy(p, prefix->text, sizeof(prefix->text));
	return p + prefix->length;
}

uint8_t *tptp_xml_put(uint8_t *p, const struct tptp_plan *plan, int64_t frequency,
		      uint32_t depth, const struct kb_tptp_message *message)
{
	p = put_prefix(p, &plan->element);
	for (unsigned int k = 0; k < plan->nr; k++) {
		unsigned int i = plan->order[k];
		const union kb_tptp_value *value = &message->values[i];
		uint8_t type = plan->type[i];

		if (k >= plan->nr_placed && is_default(value, type, depth))
			continue;
		p = put_prefix(p, &plan->prefix[k]);
		switch (type) {
		case KB_TPTP_TYPE_BYTE:
		case KB_TPTP_TYPE_INTEGER:
		case KB_TPTP_TYPE_LONG:
			p = tptp_put_number(p, value->number);
			break;
		case KB_TPTP_TYPE_TIME:
			p = tptp_put_seconds(p, value->number, frequency);
			break;
		case KB_TPTP_TYPE_STRING:
			p = put_text(p, &value->string, false);
			break;
		default:
			p = put_list(p, value, type, depth);
		}
		*p++ = '"';
	}
	return PUT(p, "/>\n");
}
