// SPDX-License-Identifier: MIT
/*
 * Tags of XML 1.0 without document type declarations: finds a tag in the window, splits it,
 * checks every byte of it, and decodes the values of attributes. Strict: anything that is not
 * well-formed is refused, with its place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/tptp/xml.h"

int tptp_malformed(struct kb_tptp *tptp, struct kb_error *err, uint64_t offset, const char *what)
{
	tptp->finished = true;
	return tptp_damage(err, offset, "XML that is not well-formed: %s", what);
}

enum {
	NAME_START	= 1,
	NAME_PART	= 2,
};

static const uint8_t name_class[128] = {
	['A' ... 'Z'] = NAME_START | NAME_PART, ['a' ... 'z'] = NAME_START | NAME_PART,
	['_'] = NAME_START | NAME_PART, [':'] = NAME_START | NAME_PART,
	['0' ... '9'] = NAME_PART, ['-'] = NAME_PART, ['.'] = NAME_PART,
};

/* Production [4] of XML 1.0, fifth edition, above ASCII; [4a] adds those with part. */
static const struct {
	uint32_t first, last;
	bool part;
} name_ranges[] = {
	{ 0xb7, 0xb7, true },		{ 0xc0, 0xd6, false },		{ 0xd8, 0xf6, false },
	{ 0xf8, 0x2ff, false },		{ 0x300, 0x36f, true },		{ 0x370, 0x37d, false },
	{ 0x37f, 0x1fff, false },	{ 0x200c, 0x200d, false },	{ 0x203f, 0x2040, true },
	{ 0x2070, 0x218f, false },	{ 0x2c00, 0x2fef, false },	{ 0x3001, 0xd7ff, false },
	{ 0xf900, 0xfdcf, false },	{ 0xfdf0, 0xfffd, false },	{ 0x10000, 0xeffff, false },
};

bool tptp_xml_name_char(uint32_t code, bool first)
{
	if (code < 0x80)
		return name_class[code] & (first ? NAME_START : NAME_PART);
	for (unsigned int i = 0; i < ARRAY_SIZE(name_ranges); i++)
		if (code >= name_ranges[i].first && code <= name_ranges[i].last)
			return !first || !name_ranges[i].part;
	return false;
}

/* How the bytes of a value must be processed. */
enum {
	VALUE_DECODE	= 1,	/* references, blanks */
	VALUE_WIDE	= 2,	/* above ASCII: is it UTF-8? */
	VALUE_BAD	= 4,
};

static const uint8_t value_class[256] = {
	[0 ... 0x08] = VALUE_BAD, ['\t'] = VALUE_DECODE, ['\n'] = VALUE_DECODE,
	[0x0b ... 0x0c] = VALUE_BAD, ['\r'] = VALUE_DECODE, [0x0e ... 0x1f] = VALUE_BAD,
	['<'] = VALUE_BAD, ['&'] = VALUE_DECODE, [0x80 ... 0xff] = VALUE_WIDE,
};

/* The position in a tag. */
struct scan {
	const uint8_t *p, *end;
	const char *wrong;
};

static int wrong(struct scan *s, const char *what)
{
	s->wrong = what;
	return -EBADMSG;
}

/* The scanners return 1; 0 if the window ends too early; -EBADMSG and s->wrong. */
static int scan_name(struct scan *s, struct kb_text *name)
{
	const uint8_t *start = s->p;

	if (s->p < s->end && *s->p < 0x80 && name_class[*s->p] & NAME_START)
		while (s->p < s->end && *s->p < 0x80 && name_class[*s->p])
			s->p++;			/* most names in one step */
	while (s->p < s->end) {
		uint32_t code = *s->p;
		int length = 1;

		if (code >= 0x80) {
			length = tptp_utf8(s->p, s->end - s->p, &code);
			if (length < 0 && s->end - s->p < 4)
				return 0;	/* the input may be cut off here */
			if (length < 0)
				return wrong(s, "a name that is not UTF-8");
		}
		if (!tptp_xml_name_char(code, s->p == start)) {
			if (s->p == start)
				return wrong(s, "no name where one must be");
			if (s->p - start > TPTP_MAX_NAME)
				return wrong(s, "a name of more than 255 bytes");
			name->data = (const char *)start;
			name->length = s->p - start;
			return 1;
		}
		s->p += length;
	}
	return 0;
}

static bool skip_blanks(struct scan *s)
{
	const uint8_t *from = s->p;

	while (s->p < s->end && tptp_xml_blank(*s->p))
		s->p++;
	return s->p > from;
}

static int scan_value(struct scan *s, struct tptp_attribute *attribute)
{
	uint8_t quote, classes = 0;
	const uint8_t *start;

	if (s->p == s->end)
		return 0;
	quote = *s->p;
	if (quote != '"' && quote != '\'')
		return wrong(s, "an attribute's value without quotes");
	start = ++s->p;
	for (; s->p < s->end && *s->p != quote; s->p++) {
		classes |= value_class[*s->p];
		if (classes & VALUE_BAD)
			return wrong(s, *s->p == '<' ? "a < in an attribute's value" :
						       "a control character");
	}
	if (s->p == s->end)
		return 0;
	attribute->value.data = (const char *)start;
	attribute->value.length = s->p - start;
	attribute->classes = classes;
	s->p++;
	return 1;
}

static int scan_attribute(struct scan *s, struct tptp_tag *tag)
{
	struct tptp_attribute *attribute = &tag->attributes[tag->nr];
	const uint8_t *start = s->p;
	int ret;

	if (tag->nr == TPTP_MAX_ATTRIBUTES)
		return wrong(s, "more than 64 attributes");
	ret = scan_name(s, &attribute->name);
	if (ret <= 0)
		return ret;
	skip_blanks(s);
	if (s->p == s->end)
		return 0;
	if (*s->p != '=')
		return wrong(s, "an attribute without a value");
	s->p++;
	skip_blanks(s);
	ret = scan_value(s, attribute);
	if (ret <= 0)
		return ret;
	for (unsigned int i = 0; i < tag->nr; i++)
		if (tptp_text_is(&tag->attributes[i].name, attribute->name.data,
				 attribute->name.length)) {
			s->p = start;
			return wrong(s, "an attribute twice");
		}
	tag->nr++;
	return 1;
}

static int scan_tag(struct scan *s, struct tptp_tag *tag)
{
	int ret;

	s->p++;
	tag->empty = false;
	tag->nr = 0;
	if (s->p == s->end)
		return 0;
	tag->end = *s->p == '/';
	s->p += tag->end;
	ret = scan_name(s, &tag->name);
	if (ret <= 0)
		return ret;
	for (;;) {
		bool blank = skip_blanks(s);

		if (s->p == s->end)
			return 0;
		if (*s->p == '>') {
			s->p++;
			return 1;
		}
		if (tag->end)
			return wrong(s, "an attribute in an end tag");
		if (*s->p == '/') {
			if (s->end - s->p < 2)
				return 0;
			if (s->p[1] != '>')
				return wrong(s, "a / that does not end the tag");
			s->p += 2;
			tag->empty = true;
			return 1;
		}
		if (!blank)
			return wrong(s, "no blank in front of an attribute");
		ret = scan_attribute(s, tag);
		if (ret <= 0)
			return ret;
	}
}

/*
 * Read until the window has the end of the tag at its start: 1; 0 if the input ends before;
 * -EMSGSIZE. Each byte is examined once, even if the input comes in small pieces.
 */
static int find_end(struct kb_in *in)
{
	uint8_t quote = 0;
	size_t at = 1;

	for (;;) {
		size_t there = in->end - in->at;

		for (; at < there; at++) {
			uint8_t c = in->at[at];

			if (c == '<' || (c == '>' && !quote))
				return 1;
			if (quote)
				quote = c == quote ? 0 : quote;
			else if (c == '"' || c == '\'')
				quote = c;
		}
		if (there > KB_TPTP_MAX_MESSAGE)
			return -EMSGSIZE;
		/* Of a live trace read one more byte. For huge tags the steps grow. */
		if (kb_in_want(in, there < (64u << 10) ? there + 1 : 2 * there) == there)
			return 0;
	}
}

uint32_t tptp_xml_reference(const char *s, size_t length)
{
	static const struct {
		const char *name;
		char character;
	} named[] = {
		{ "lt", '<' }, { "gt", '>' }, { "amp", '&' }, { "quot", '"' }, { "apos", '\'' },
	};
	const struct kb_text text = { s, length };
	uint32_t code = 0, base = 10;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(named); i++)
		if (tptp_text_is(&text, named[i].name, strlen(named[i].name)))
			return named[i].character;
	if (!length || s[0] != '#')
		return 0;
	i = 1;
	if (length > 1 && s[1] == 'x') {
		base = 16;
		i = 2;
	}
	if (i == length)
		return 0;
	for (; i < length; i++) {
		int digit = tptp_hex_digit(s[i]);

		if (digit < 0 || (uint32_t)digit >= base || code > 0x10ffff)
			return 0;
		code = code * base + digit;
	}
	return tptp_xml_char(code) ? code : 0;
}

/*
 * Decode @value to @to, which has as much room as @value has bytes, and make @value point
 * there. Returns the end of what was written, or NULL and in @bad the place that is not
 * well-formed.
 */
static uint8_t *decode(uint8_t *to, struct kb_text *value, const uint8_t **bad)
{
	const uint8_t *s = (const uint8_t *)value->data, *end = s + value->length;
	uint8_t *p = to;

	while (s < end) {
		uint32_t code;
		int length;

		*bad = s;
		if (*s == '&') {
			const uint8_t *semicolon = memchr(s, ';', end - s);

			code = semicolon ? tptp_xml_reference((const char *)s + 1,
							      semicolon - s - 1) : 0;
			if (!code)
				return NULL;
			p += kb_utf8_put((char *)p, code);	/* shorter than the reference */
			s = semicolon + 1;
		} else if (*s < 0x80) {
			/* A line end of one or two characters becomes one blank. */
			if (*s == '\r' && end - s > 1 && s[1] == '\n')
				s++;
			*p++ = tptp_xml_blank(*s) ? ' ' : *s;
			s++;
		} else {
			length = tptp_utf8(s, end - s, &code);
			if (length < 0 || !tptp_xml_char(code))
				return NULL;
			memcpy(p, s, length);
			p += length;
			s += length;
		}
	}
	value->data = (const char *)to;
	value->length = p - to;
	return p;
}

/* Decode the values of the tag that starts at in->at and has @size bytes. */
static int decode_values(struct kb_tptp *tptp, size_t size, struct kb_error *err)
{
	struct tptp_xml *xml = tptp->xml;
	uint8_t *to;

	if (xml->scratch_size < 2 * size) {
		uint8_t *larger = realloc(xml->scratch, 2 * size);

		if (!larger) {
			tptp->finished = true;
			return kb_error_set(err, -ENOMEM, kb_in_offset(&tptp->in),
					    "out of memory for a tag");
		}
		xml->scratch = larger;
		xml->scratch_size = 2 * size;
	}
	to = xml->scratch;
	for (unsigned int i = 0; i < xml->tag.nr; i++) {
		struct tptp_attribute *attribute = &xml->tag.attributes[i];
		const uint8_t *bad = tptp->in.at;

		if (!attribute->classes)
			continue;
		to = decode(to, &attribute->value, &bad);
		if (!to)
			return tptp_malformed(tptp, err,
					      kb_in_offset(&tptp->in) + (bad - tptp->in.at),
					      *bad == '&' ? "a reference to nothing known" :
					      "a character that is not UTF-8 or not allowed");
	}
	return 1;
}

int tptp_xml_read_tag(struct kb_tptp *tptp, struct kb_error *err)
{
	struct kb_in *in = &tptp->in;
	uint64_t offset = kb_in_offset(in);
	bool whole = false;

	for (;;) {
		struct scan s = { in->at, in->end, NULL };
		int ret = scan_tag(&s, &tptp->xml->tag);

		if (ret < 0)
			return tptp_malformed(tptp, err, offset + (s.p - in->at), s.wrong);
		if (ret > 0) {
			ret = decode_values(tptp, s.p - in->at, err);
			in->at = s.p;
			return ret;
		}
		if (whole)
			return tptp_malformed(tptp, err, offset, "a tag without an end");
		ret = find_end(in);
		if (ret == -EMSGSIZE)
			return tptp_malformed(tptp, err, offset, "a tag of more than 4 MiB");
		if (!ret && in->error)
			return tptp_cannot_read(tptp, err);
		if (!ret)
			return tptp_malformed(tptp, err, offset,
					      "the file ends inside the tag that starts here");
		whole = true;
	}
}
