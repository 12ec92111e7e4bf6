/* SPDX-License-Identifier: MIT */
/*
 * What the TPTP codec's files share. The plan of a message is its table in the
 * shape that loops over fields want.
 */
#ifndef KB_FORMAT_TPTP_CODEC_H
#define KB_FORMAT_TPTP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/tptp.h>

#include "format/utf8.h"
#include "in.h"

/* ---- plans ---- */

#define TPTP_HEADER_BYTES	12	/* of the file */
#define TPTP_MESSAGE_BYTES	6	/* u16 id, u32 length: in front of each message */
#define TPTP_MAX_ID		32767

/* What XML has in front of a value, copied as a whole. */
#define TPTP_PREFIX_BYTES	32

struct tptp_prefix {
	char text[TPTP_PREFIX_BYTES];	/* ` attribute="` */
	uint8_t length;
};

struct tptp_plan {
	const struct kb_tptp_table *table;
	uint8_t nr;
	uint8_t nr_narrow;			/* numbers of less than 8 bytes: narrow[] */
	uint8_t nr_strings;			/* String rows: text[] */
	uint8_t nr_placed;			/* the first ones of order[] */
	bool arrays;				/* it ends in stackDepth, String[], Long[] */
	uint16_t fixed;				/* bytes of the binary form without text
						 * and arrays, header included */
	uint16_t attributes;			/* most bytes of the element without values */
	uint8_t narrow[KB_TPTP_MAX_FIELDS];
	uint8_t text[KB_TPTP_MAX_FIELDS];
	uint8_t type[KB_TPTP_MAX_FIELDS];
	uint8_t order[KB_TPTP_MAX_FIELDS];	/* of the attributes in XML */
	uint8_t name_length[KB_TPTP_MAX_FIELDS]; /* of the attributes */
	struct tptp_prefix element;		/* "<name" */
	struct tptp_prefix prefix[KB_TPTP_MAX_FIELDS];	/* in the order of XML */
};

enum {
#define KB_TPTP_MESSAGE(message, id, element)	TPTP_INDEX_##message,
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)
#define KB_TPTP_END(message)
#include <kbarman/tptp_tables.h>
	TPTP_NR_TABLES
};

/* The index of a table among all, TPTP_NR_TABLES or above if @id has none. */
unsigned int tptp_index(uint32_t id);
void tptp_plans_init(struct tptp_plan plans[TPTP_NR_TABLES]);

/* ---- text ---- */

#define TPTP_REPLACEMENT	"\xef\xbf\xbd"	/* U+FFFD */

/* kb_utf8_next() that tells: -length where U+FFFD stands for something broken. */
static inline int tptp_utf8(const uint8_t *s, size_t n, uint32_t *code)
{
	int length = (int)kb_utf8_next((const char *)s, n, code);

	return *code == KB_UTF8_REPLACEMENT && (length != 3 || *s != 0xef) ? -length : length;
}

/* May XML 1.0 contain this code point? */
static inline bool tptp_xml_char(uint32_t code)
{
	if (code < 0x20)
		return code == '\t' || code == '\n' || code == '\r';
	return code < 0xd800 || (code > 0xdfff && code != 0xfffe && code != 0xffff &&
				 code <= 0x10ffff);
}

/* Copy with anything but UTF-8 replaced, up to a NUL: at most 3 * @n bytes. */
uint8_t *tptp_put_utf8(uint8_t *p, const char *text, size_t n);

int64_t tptp_split_slowly(int64_t ticks, int64_t frequency, uint32_t *nanoseconds);

/* Ticks to whole seconds, rounded down, and the nanoseconds above them. */
static inline int64_t tptp_split_ticks(int64_t ticks, int64_t frequency, uint32_t *nanoseconds)
{
	if (frequency != KB_TPTP_FREQUENCY_NS || ticks < 0)
		return tptp_split_slowly(ticks, frequency, nanoseconds);
	*nanoseconds = ticks % KB_TPTP_FREQUENCY_NS;
	return ticks / KB_TPTP_FREQUENCY_NS;
}

#define TPTP_MAX_NUMBER		31	/* bytes of -9223372036854775808.123456789 */

/* Both may write up to TPTP_MAX_NUMBER bytes, whatever they return. */
uint8_t *tptp_put_number(uint8_t *p, int64_t v);
/* Ticks as SECONDS.nnnnnnnnn */
uint8_t *tptp_put_seconds(uint8_t *p, int64_t ticks, int64_t frequency);

/* ---- reader ---- */

#define TPTP_MAX_ATTRIBUTES	64
#define TPTP_MAX_NESTING	64
#define TPTP_MAX_NAME		255

struct tptp_attribute {
	struct kb_text name, value;
	uint8_t classes;		/* of the value's bytes: what decoding it takes */
};

struct tptp_tag {
	struct kb_text name;
	bool end, empty;		/* </name>, <name/> */
	unsigned int nr;
	struct tptp_attribute attributes[TPTP_MAX_ATTRIBUTES];
};

struct tptp_xml {
	unsigned int depth;		/* open elements */
	bool root_closed;
	uint8_t name_length[TPTP_MAX_NESTING];
	char names[TPTP_MAX_NESTING][TPTP_MAX_NAME + 1];
	struct tptp_tag tag;
	uint8_t element_length[TPTP_NR_TABLES];	/* of the tables' names */
	uint8_t *scratch;		/* values that are not as they stand in the window:
					 * see tptp_xml_read_tag() */
	size_t scratch_size;
};

struct kb_tptp {
	struct kb_tptp_info info;
	struct kb_in in;
	struct tptp_plan plans[TPTP_NR_TABLES];
	bool finished;			/* nothing can be read behind this */
	struct kb_error pending;	/* found with a message that was delivered */
	struct kb_text *strings;		/* KB_TPTP_MAX_DEPTH, for String[] */
	int64_t *longs;			/* KB_TPTP_MAX_DEPTH, for Long[] */
	struct tptp_xml *xml;		/* NULL: binary */
};

/* Room for the elements of arrays; allocated when first needed. */
int tptp_arrays(struct kb_tptp *tptp);

/* Say what is wrong, and where; returns -EBADMSG. */
int tptp_damage(struct kb_error *err, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What kb_in said when it gave less than was wanted: the reader is finished. */
int tptp_cannot_read(struct kb_tptp *tptp, struct kb_error *err);

/* Read the header of a form; -ENODATA if the input is not of that form. */
int tptp_binary_open(struct kb_tptp *tptp, struct kb_error *err);
int tptp_xml_open(struct kb_tptp *tptp, struct kb_error *err);

/* kb_tptp_next() of a form. */
int tptp_binary_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);
int tptp_xml_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);

/* ---- writer ---- */

/*
 * Put a message with @depth array elements at @p, where tptp_*_bound() bytes are free;
 * numbers must fit. Returns its end.
 */
uint8_t *tptp_binary_put(uint8_t *p, const struct tptp_plan *plan, bool big_endian,
			 uint32_t depth, const struct kb_tptp_message *message);
/*
 * The same for a message of one table without text and arrays, fast; NULL: it is not so
 * simple. By index; a table of these for each byte order.
 */
typedef uint8_t *(*tptp_put_plain)(uint8_t *p, const union kb_tptp_value *values);
const tptp_put_plain *tptp_binary_plain(bool big_endian);
uint8_t *tptp_binary_put_header(uint8_t *p, const struct kb_tptp_layout *layout);

uint8_t *tptp_xml_put(uint8_t *p, const struct tptp_plan *plan, int64_t frequency,
		      uint32_t depth, const struct kb_tptp_message *message);

/*
 * The most that a message with @text bytes of strings and @depth array elements takes,
 * and what the encoders may write beyond its end.
 */
static inline size_t tptp_binary_bound(const struct tptp_plan *plan, size_t text, uint32_t depth)
{
	return plan->fixed + 8 + 3 * text + (size_t)depth * (1 + 8);
}

static inline size_t tptp_xml_bound(const struct tptp_plan *plan, size_t text, uint32_t depth)
{
	return plan->attributes + TPTP_PREFIX_BYTES + plan->nr * TPTP_MAX_NUMBER + 6 * text +
	       (size_t)depth * (1 + 1 + TPTP_MAX_NUMBER);
}

#endif
