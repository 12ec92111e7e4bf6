/* SPDX-License-Identifier: MIT */
/* What the two halves of the XML reader share: tags, and what is between them. */
#ifndef KB_FORMAT_TPTP_XML_H
#define KB_FORMAT_TPTP_XML_H

#include <string.h>

#include "format/tptp_codec.h"

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

/* May a name contain this, or begin with it? */
bool tptp_xml_name_char(uint32_t code, bool first);

/* What "&...;" stands for, given what is between; 0 for nothing. */
uint32_t tptp_xml_reference(const char *s, size_t length);

/*
 * Take the tag that starts with the window's first byte into xml->tag, values
 * decoded; the first half of the scratch is theirs, the second one, as long as the
 * tag, is free. Returns 1, or a negative errno and is finished.
 */
int tptp_xml_read_tag(struct kb_tptp *tptp, struct kb_error *err);

/* The trace is not well-formed: nothing follows. */
int tptp_malformed(struct kb_tptp *tptp, struct kb_error *err, uint64_t offset, const char *what);

#endif
