/* SPDX-License-Identifier: MIT */
/*
 * Shared by the two halves of the XML reader: one handles tags, the other one what is between
 * them.
 */
#ifndef KB_LIB_FORMAT_TPTP_XML_H
#define KB_LIB_FORMAT_TPTP_XML_H

#include <string.h>

#include "format/tptp/codec.h"

static inline bool tptp_xml_blank(uint32_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline bool tptp_text_is(const struct kb_text *text, const char *data, size_t length)
{
	return text->length == length && !memcmp(text->data, data, length);
}

static inline int tptp_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a name may contain this character, or with @first begin with it. */
bool tptp_xml_name_char(uint32_t code, bool first);

/* The character of "&...;", given the text between; 0 if there is none. */
uint32_t tptp_xml_reference(const char *s, size_t length);

/*
 * Read the tag at the window's start into xml->tag and decode its values. The values use the
 * first half of the scratch. The second half, as long as the tag, is free. Returns 1, or a
 * negative errno after which the reader is finished.
 */
int tptp_xml_read_tag(struct kb_tptp *tptp, struct kb_error *err);

/* The trace is not well-formed: report it and finish the reader. */
int tptp_malformed(struct kb_tptp *tptp, struct kb_error *err, uint64_t offset, const char *what);

#endif
