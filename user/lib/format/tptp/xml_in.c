// SPDX-License-Identifier: MIT
/*
 * Reads the XML form: <TRACE> and the elements directly below it, each of which is a message.
 * Unknown elements, content of elements, text, comments and processing instructions are
 * skipped, but must be well-formed. Only XML's five predefined entities exist, so entities
 * can't expand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "format/tptp/xml.h"

enum {
	CHAR_END	= -1,	/* of the input */
	CHAR_FAILED	= -2,	/* @err is filled, the reader is finished */
};

static int malformed_here(struct kb_tptp *tptp, struct kb_error *err, const char *what)
{
	return tptp_malformed(tptp, err, kb_in_offset(&tptp->in), what);
}

/* The next character. With @take it is consumed. */
static int32_t next_char(struct kb_tptp *tptp, bool take, struct kb_error *err)
{
	struct kb_in *in = &tptp->in;
	uint32_t code = 0;
	int length;

	if (!kb_in_want(in, 1)) {
		if (!in->error)
			return CHAR_END;
		tptp_cannot_read(tptp, err);
		return CHAR_FAILED;
	}
	length = tptp_utf8(in->at, in->end - in->at, &code);
	if (length < 0 && in->end - in->at < 4)
		length = tptp_utf8(in->at, kb_in_want(in, 4), &code);
	if (length < 0 || !tptp_xml_char(code)) {
		malformed_here(tptp, err, "a character that is not UTF-8 or not allowed");
		return CHAR_FAILED;
	}
	if (take)
		in->at += length;
	return code;
}

/* Whether the input goes on with @text. Nothing is consumed. */
static bool looking_at(struct kb_tptp *tptp, const char *text)
{
	for (size_t i = 0; text[i]; i++)
		if (kb_in_want(&tptp->in, i + 1) <= i || tptp->in.at[i] != (uint8_t)text[i])
			return false;
	return true;
}

/*
 * Skip everything up to and including @end, which has two or three characters. @offset: where
 * it began. A comment must not contain the first two characters without the third.
 */
static int skip_until(struct kb_tptp *tptp, const char *end, uint64_t offset,
		      struct kb_error *err)
{
	bool comment = end[0] == '-';
	size_t length = strlen(end);
	char last[3] = "";

	for (;;) {
		int32_t c = next_char(tptp, true, err);

		if (c == CHAR_FAILED)
			return -EBADMSG;
		if (c == CHAR_END)
			return tptp_malformed(tptp, err, offset,
					      "the file ends inside what starts here");
		if (comment && last[1] == '-' && last[2] == '-' && c != '>')
			return malformed_here(tptp, err, "-- inside a comment");
		last[0] = last[1];
		last[1] = last[2];
		last[2] = c < 0x80 ? c : 0;
		if (!memcmp(last + 3 - length, end, length))
			return 1;
	}
}

static int skip_instruction(struct kb_tptp *tptp, struct kb_error *err)
{
	uint64_t offset = kb_in_offset(&tptp->in);
	char name[4] = "";
	size_t length = 0;

	tptp->in.at += 2;
	for (;; length++) {
		int32_t c = next_char(tptp, false, err);

		if (c == CHAR_FAILED)
			return -EBADMSG;
		if (c == CHAR_END || !tptp_xml_name_char(c, !length)) {
			if (!length || (c != '?' && (c == CHAR_END || c > ' ')))
				return malformed_here(tptp, err,
						      "an instruction without a name");
			break;
		}
		if (length < sizeof(name) - 1)
			name[length] = c;
		next_char(tptp, true, err);
	}
	if (length == 3 && !strcasecmp(name, "xml"))
		return tptp_malformed(tptp, err, offset, "a declaration that is not at the start");
	return skip_until(tptp, "?>", offset, err);
}

static int skip_doctype(struct kb_tptp *tptp, struct kb_error *err)
{
	int32_t quote = 0;

	for (;;) {
		int32_t c = next_char(tptp, true, err);

		if (c == CHAR_FAILED)
			return -EBADMSG;
		if (c == CHAR_END)
			return malformed_here(tptp, err, "the file ends in a document type");
		if (quote) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '"' || c == '\'')
			quote = c;
		else if (c == '[' || c == '<')
			return malformed_here(tptp, err,
					      "a document type with declarations (not supported)");
		else if (c == '>')
			return 1;
	}
}

/* Skip <!...> or <?...> at the start of the window. */
static int skip_markup(struct kb_tptp *tptp, bool prolog, struct kb_error *err)
{
	uint64_t offset = kb_in_offset(&tptp->in);

	if (tptp->in.at[1] == '?')
		return skip_instruction(tptp, err);
	if (looking_at(tptp, "<!--")) {
		tptp->in.at += strlen("<!--");
		return skip_until(tptp, "-->", offset, err);
	}
	if (tptp->xml->depth && looking_at(tptp, "<![CDATA[")) {
		tptp->in.at += strlen("<![CDATA[");
		return skip_until(tptp, "]]>", offset, err);
	}
	if (prolog && looking_at(tptp, "<!DOCTYPE")) {
		tptp->in.at += strlen("<!DOCTYPE");
		return skip_doctype(tptp, err);
	}
	return malformed_here(tptp, err, "<! without a meaning");
}

static int skip_reference(struct kb_tptp *tptp, struct kb_error *err)
{
	uint64_t offset = kb_in_offset(&tptp->in) - 1;
	char text[12];		/* longer than any valid reference */
	size_t length = 0;

	for (;;) {
		int32_t c = next_char(tptp, true, err);

		if (c == CHAR_FAILED)
			return -EBADMSG;
		/* cppcheck-suppress uninitvar ; the loop has filled @length bytes of it */
		if (c == ';' && tptp_xml_reference(text, length))
			return 1;
		if (c == CHAR_END || c == ';' || c >= 0x80 || length == sizeof(text))
			return tptp_malformed(tptp, err, offset, "a reference to nothing known");
		text[length++] = c;
	}
}

/*
 * Skip text. Returns 1 with a < at the start of the window and the byte after it available, 0
 * at the end of the input, or a negative errno.
 */
static int skip_text(struct kb_tptp *tptp, struct kb_error *err)
{
	struct kb_in *in = &tptp->in;
	unsigned int brackets = 0;

	for (;;) {
		int32_t c;
		int ret;

		while (in->at < in->end && tptp_xml_blank(*in->at)) {
			in->at++;
			brackets = 0;
		}
		c = next_char(tptp, false, err);
		if (c == CHAR_FAILED)
			return -EBADMSG;
		if (c == CHAR_END)
			return 0;
		if (c == '<') {
			if (kb_in_want(in, 2) >= 2)
				return 1;
			return in->error ? tptp_cannot_read(tptp, err) :
					   malformed_here(tptp, err, "the file ends with <");
		}
		if (tptp_xml_blank(c))
			continue;
		if (!tptp->xml->depth)
			return malformed_here(tptp, err, "text outside of <TRACE>");
		if (c == '>' && brackets >= 2)
			return malformed_here(tptp, err, "]]> in text");
		brackets = c == ']' ? brackets + 1 : 0;
		next_char(tptp, true, err);
		if (c == '&') {
			ret = skip_reference(tptp, err);
			if (ret < 0)
				return ret;
		}
	}
}

/* ---- messages ---- */

static bool get_integer(const struct kb_text *value, int64_t low, int64_t high, int64_t *number)
{
	const char *s = value->data, *end = s + value->length;
	bool negative = s < end && *s == '-';
	uint64_t v = 0;

	s += negative;
	if (s == end)
		return false;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9' || v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (*s - '0');
	}
	if (v > (uint64_t)INT64_MAX + negative)
		return false;
	*number = negative ? (int64_t)-v : (int64_t)v;
	return *number >= low && *number <= high;
}

/* Parse SECONDS[.FRACTION]. Digits below a nanosecond are dropped. */
static bool get_seconds(const struct kb_text *value, int64_t *number)
{
	const char *s = value->data, *end = s + value->length;
	bool negative = s < end && *s == '-';
	uint64_t seconds = 0, ns = 0, scale = 1000000000;

	s += negative;
	if (s == end || *s < '0' || *s > '9')
		return false;
	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		seconds = seconds * 10 + (*s - '0');
		if (seconds > INT64_MAX / 1000000000)
			return false;
	}
	if (s < end) {
		if (*s++ != '.' || s == end)
			return false;
		for (; s < end; s++) {
			if (*s < '0' || *s > '9')
				return false;
			scale /= 10;
			ns += scale * (*s - '0');
		}
	}
	ns += seconds * 1000000000;
	if (ns > (uint64_t)INT64_MAX + negative)
		return false;
	*number = negative ? (int64_t)-ns : (int64_t)ns;
	return true;
}

static bool get_byte(const struct kb_text *value, int64_t *number)
{
	if (value->length == 4 && !memcmp(value->data, "true", 4))
		*number = 1;
	else if (value->length == 5 && !memcmp(value->data, "false", 5))
		*number = 0;
	else
		return get_integer(value, 0, UINT8_MAX, number);
	return true;
}

/* Decode %20 and %25 in a list and copy everything else. Returns the number of bytes at @to. */
static size_t decode_percent(char *to, const char *s, size_t length)
{
	const char *end = s + length;
	char *p = to;

	for (; s < end; s++) {
		if (*s == '%' && end - s > 2) {
			int code = tptp_hex_digit(s[1]) * 16 + tptp_hex_digit(s[2]);

			if (code == ' ' || code == '%') {
				*p++ = code;
				s += 2;
				continue;
			}
		}
		*p++ = *s;
	}
	return p - to;
}

/*
 * Parse a list whose elements are separated by one blank. False if there are not @depth
 * elements.
 */
static bool get_list(struct kb_tptp *tptp, const struct kb_text *list, uint8_t type,
		     uint32_t depth)
{
	char *to = (char *)tptp->xml->scratch + tptp->xml->scratch_size / 2;
	const char *s = list->data, *end = s + list->length;

	for (uint32_t k = 0; k < depth; k++) {
		const char *blank = memchr(s, ' ', end - s);
		struct kb_text element = { s, (blank ? blank : end) - s };

		if (!blank && k + 1 < depth)
			return false;
		if (type == KB_TPTP_TYPE_LONGS) {
			if (!get_integer(&element, INT64_MIN, INT64_MAX, &tptp->longs[k]))
				return false;
		} else {
			tptp->strings[k].data = to;
			tptp->strings[k].length = decode_percent(to, s, element.length);
			to += tptp->strings[k].length;
		}
		s = blank ? blank + 1 : end;
	}
	return s == end;
}

static int bad_value(struct kb_error *err, uint64_t offset, const struct tptp_plan *plan,
		     unsigned int field, const struct kb_text *value)
{
	return tptp_damage(err, offset, "%s of <%s> has an invalid value: \"%.*s\"",
			   plan->table->fields[field].attribute, plan->table->name,
			   (int)(value->length < 40 ? value->length : 40), value->data);
}

/* The arrays of a stack, after stackDepth is known. A missing array is all "" or 0. */
static int get_arrays(struct kb_tptp *tptp, const struct tptp_plan *plan,
		      const struct kb_text lists[2], uint64_t offset,
		      struct kb_tptp_message *message, struct kb_error *err)
{
	int64_t depth = message->values[plan->nr - 3].number;

	if (depth < 0 || depth > KB_TPTP_MAX_DEPTH)
		return tptp_damage(err, offset,
				   "stackDepth of <%s> is %lld, not 0 to %u", plan->table->name,
				   (long long)depth, KB_TPTP_MAX_DEPTH);
	if (depth && tptp_arrays(tptp))
		return kb_error_set(err, -ENOMEM, offset, "no memory for a stack");
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int field = plan->nr - 2 + i;

		if (lists[i].data) {
			if (!get_list(tptp, &lists[i], plan->type[field], depth))
				return bad_value(err, offset, plan, field, &lists[i]);
		} else if (depth && i) {
			memset(tptp->longs, 0, depth * sizeof(*tptp->longs));
		} else if (depth) {
			for (int64_t k = 0; k < depth; k++)
				tptp->strings[k] = kb_text(NULL);
		}
	}
	message->values[plan->nr - 2].strings = tptp->strings;
	message->values[plan->nr - 1].longs = tptp->longs;
	return 0;
}

/*
 * The field of an attribute. Mostly it is the field after the last one, in the writer's order.
 */
static int find_field(const struct tptp_plan *plan, const struct kb_text *name,
		      unsigned int *expected)
{
	for (unsigned int k = 0; k < plan->nr; k++) {
		unsigned int at = (*expected + k) % plan->nr;
		unsigned int i = plan->order[at];

		if (plan->name_length[i] == name->length &&
		    !memcmp(plan->table->fields[i].attribute, name->data, name->length)) {
			*expected = at + 1;
			return i;
		}
	}
	return -1;
}

static int get_message(struct kb_tptp *tptp, const struct tptp_plan *plan, uint64_t offset,
		       struct kb_tptp_message *message, struct kb_error *err)
{
	const struct tptp_tag *tag = &tptp->xml->tag;
	struct kb_text lists[2] = { { NULL, 0 }, { NULL, 0 } };
	unsigned int expected = 0;

	message->table = plan->table;
	memset(message->values, 0, plan->nr * sizeof(message->values[0]));
	for (unsigned int k = 0; k < tag->nr; k++) {
		const struct kb_text *text = &tag->attributes[k].value;
		int i = find_field(plan, &tag->attributes[k].name, &expected);
		union kb_tptp_value *value;
		bool good = true;

		if (i < 0)
			continue;
		value = &message->values[i];
		switch (plan->type[i]) {
		case KB_TPTP_TYPE_BYTE:
			good = get_byte(text, &value->number);
			break;
		case KB_TPTP_TYPE_INTEGER:
			good = get_integer(text, INT32_MIN, INT32_MAX, &value->number);
			break;
		case KB_TPTP_TYPE_LONG:
			good = get_integer(text, INT64_MIN, INT64_MAX, &value->number);
			break;
		case KB_TPTP_TYPE_TIME:
			good = get_seconds(text, &value->number);
			break;
		case KB_TPTP_TYPE_STRING:
			value->string = *text;
			break;
		case KB_TPTP_TYPE_STRINGS:
			lists[0] = *text;
			break;
		case KB_TPTP_TYPE_LONGS:
			lists[1] = *text;
			break;
		}
		if (!good)
			return bad_value(err, offset, plan, i, text);
	}
	if (plan->nr >= 3 && plan->type[plan->nr - 1] == KB_TPTP_TYPE_LONGS)
		return get_arrays(tptp, plan, lists, offset, message, err);
	return 0;
}

/* ---- elements ---- */

/* The plan of an element; NULL if the element is not a message. */
static const struct tptp_plan *find_plan(const struct kb_tptp *tptp, const struct kb_text *name)
{
	for (unsigned int i = tptp_index(KB_TPTP_FIRST_DATA); i < TPTP_NR_TABLES; i++)
		if (tptp->xml->element_length[i] == name->length &&
		    !memcmp(tptp->plans[i].table->name, name->data, name->length))
			return &tptp->plans[i];
	return NULL;
}

static int open_element(struct kb_tptp *tptp, uint64_t offset, struct kb_error *err)
{
	struct tptp_xml *xml = tptp->xml;

	if (xml->tag.empty) {
		xml->root_closed |= !xml->depth;
		return 0;
	}
	if (xml->depth == TPTP_MAX_NESTING)
		return tptp_malformed(tptp, err, offset, "elements nested more than 64 deep");
	memcpy(xml->names[xml->depth], xml->tag.name.data, xml->tag.name.length);
	xml->name_length[xml->depth] = xml->tag.name.length;
	xml->depth++;
	return 0;
}

static int close_element(struct kb_tptp *tptp, uint64_t offset, struct kb_error *err)
{
	struct tptp_xml *xml = tptp->xml;
	const struct kb_text *name = &xml->tag.name;

	if (!xml->depth || xml->name_length[xml->depth - 1] != name->length ||
	    memcmp(xml->names[xml->depth - 1], name->data, name->length))
		return tptp_malformed(tptp, err, offset,
				      "an end tag that does not fit the open element");
	xml->depth--;
	xml->root_closed = !xml->depth;
	return 0;
}

int tptp_xml_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err)
{
	struct tptp_xml *xml = tptp->xml;

	for (;;) {
		const struct tptp_plan *plan = NULL;
		uint64_t offset;
		uint8_t second;
		int ret;

		ret = skip_text(tptp, err);
		if (ret < 0)
			return ret;
		offset = kb_in_offset(&tptp->in);
		if (!ret) {
			tptp->finished = true;
			return xml->root_closed ? 0 :
			       tptp_malformed(tptp, err, offset, "the file ends before </TRACE>");
		}
		second = tptp->in.at[1];
		if (second == '!' || second == '?') {
			ret = skip_markup(tptp, false, err);
			if (ret < 0)
				return ret;
			continue;
		}
		ret = tptp_xml_read_tag(tptp, err);
		if (ret < 0)
			return ret;
		if (xml->tag.end) {
			ret = close_element(tptp, offset, err);
			if (ret)
				return ret;
			continue;
		}
		if (xml->root_closed)
			return tptp_malformed(tptp, err, offset, "a second root element");
		if (xml->depth == 1)
			plan = find_plan(tptp, &xml->tag.name);
		ret = open_element(tptp, offset, err);
		if (ret)
			return ret;
		if (plan) {
			ret = get_message(tptp, plan, offset, message, err);
			return ret ? ret : 1;
		}
		tptp->info.skipped++;
	}
}

/* ---- prolog ---- */

/* <?xml ...?>, read as a tag with the attributes version, encoding and standalone. */
static int read_declaration(struct kb_tptp *tptp, struct kb_error *err)
{
	static const char *const encodings[] = { "UTF-8", "UTF8", "US-ASCII", "ASCII" };
	char text[256] = "";
	const char *encoding;
	size_t length = 0;

	while (length < 2 || text[length - 2] != '?' || text[length - 1] != '>') {
		int32_t c = length < sizeof(text) - 1 ? next_char(tptp, true, err) : CHAR_END;

		if (c == CHAR_FAILED)
			return -EBADMSG;
		if (c == CHAR_END)
			return malformed_here(tptp, err, "an XML declaration without an end");
		text[length++] = c < 0x80 ? c : '?';
	}
	text[length] = 0;
	encoding = strstr(text, "encoding");
	if (!encoding)
		return 0;
	encoding += strlen("encoding");
	encoding += strspn(encoding, " \t\r\n=\"'");
	for (unsigned int i = 0; i < ARRAY_SIZE(encodings); i++) {
		size_t n = strlen(encodings[i]);

		if (!strncasecmp(encoding, encodings[i], n) &&
		    (encoding[n] == '"' || encoding[n] == '\''))
			return 0;
	}
	tptp->finished = true;
	return tptp_damage(err, 0,
			   "XML in encoding %.40s; only UTF-8 is read: convert it with iconv(1)",
			   encoding);
}

static int not_ours(const struct kb_tptp *tptp, const char *why, struct kb_error *err)
{
	return kb_error_set(err, -ENODATA, kb_in_offset(&tptp->in), "not a TPTP trace: %s", why);
}

int tptp_xml_open(struct kb_tptp *tptp, struct kb_error *err)
{
	uint64_t offset;
	int ret = 0;

	tptp->xml = calloc(1, sizeof(*tptp->xml));
	if (!tptp->xml)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for an XML reader");
	tptp->info.platform = 1;
	for (unsigned int i = 0; i < TPTP_NR_TABLES; i++)
		tptp->xml->element_length[i] = strlen(tptp->plans[i].table->name);
	if (looking_at(tptp, "\xef\xbb\xbf"))
		tptp->in.at += 3;
	if (!kb_in_want(&tptp->in, 1) || (*tptp->in.at != '<' && !tptp_xml_blank(*tptp->in.at)))
		return not_ours(tptp, "it starts with neither \"0TBF\" nor XML", err);
	if (looking_at(tptp, "<?xml") && !looking_at(tptp, "<?xml-"))
		ret = read_declaration(tptp, err);
	while (!ret) {
		ret = skip_text(tptp, err);
		if (!ret)
			return not_ours(tptp, "there is no element in it", err);
		if (ret < 0 || (tptp->in.at[1] != '!' && tptp->in.at[1] != '?'))
			break;
		ret = skip_markup(tptp, true, err);
		ret = ret < 0 ? ret : 0;
	}
	if (ret < 0)
		return ret;
	offset = kb_in_offset(&tptp->in);
	ret = tptp_xml_read_tag(tptp, err);
	if (ret < 0)
		return ret;
	if (tptp->xml->tag.end || !tptp_text_is(&tptp->xml->tag.name, "TRACE", 5))
		return not_ours(tptp, "it is XML, but its root is not <TRACE>", err);
	return open_element(tptp, offset, err);
}
