/* SPDX-License-Identifier: MIT */
/*
 * format/tptp/: TPTP traces, binary and XML. Messages are described by tables, from which both
 * forms are written and read.
 *
 * Shared by the files of the TPTP codec. The plan of a message is its table in a form for loops
 * over fields.
 */
#ifndef KB_LIB_FORMAT_TPTP_CODEC_H
#define KB_LIB_FORMAT_TPTP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/tptp.h>

#include "base/io/in.h"
#include "base/text/utf8.h"

/* ---- plans ---- */

#define TPTP_HEADER_BYTES	12	/* of the file */
#define TPTP_MESSAGE_BYTES	6	/* u16 id, u32 length: before each message */
#define TPTP_MAX_ID		32767

/* What XML has before a value; it is copied with a fixed size. */
#define TPTP_PREFIX_BYTES	32

struct tptp_prefix {
	char text[TPTP_PREFIX_BYTES];	/* ` attribute="` */
	uint8_t length;
};

struct tptp_plan {
	const struct kb_tptp_table *table;
	uint8_t nr;
	uint8_t nr_narrow;			/* size of narrow[]: numbers below 8 bytes */
	uint8_t nr_strings;			/* number of text[]: String rows */
	uint8_t nr_placed;			/* of order[], from its start */
	bool arrays;				/* ends with stackDepth, String[], Long[] */
	uint16_t fixed;				/* size of the binary form with its header,
						 * without text and arrays */
	uint16_t attributes;			/* largest size of the element without values */
	uint8_t narrow[KB_TPTP_MAX_FIELDS];
	uint8_t text[KB_TPTP_MAX_FIELDS];
	uint8_t type[KB_TPTP_MAX_FIELDS];
	uint8_t order[KB_TPTP_MAX_FIELDS];	/* order of the attributes in XML */
	uint8_t name_length[KB_TPTP_MAX_FIELDS]; /* lengths of the attributes' names */
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

/* The index of a table; TPTP_NR_TABLES or more if there is none for @id. */
unsigned int tptp_index(uint32_t id);
void tptp_plans_init(struct tptp_plan plans[TPTP_NR_TABLES]);

/* ---- text ---- */

#define TPTP_REPLACEMENT	"\xef\xbf\xbd"	/* U+FFFD */

/* As kb_utf8_next(), but returns -length if U+FFFD replaces invalid bytes. */
static inline int tptp_utf8(const uint8_t *s, size_t n, uint32_t *code)
{
	int length = (int)kb_utf8_next((const char *)s, n, code);

	return *code == KB_UTF8_REPLACEMENT && (length != 3 || *s != 0xef) ? -length : length;
}

/* Whether XML 1.0 allows this code point. */
static inline bool tptp_xml_char(uint32_t code)
{
	if (code < 0x20)
		return code == '\t' || code == '\n' || code == '\r';
	return code < 0xd800 || (code > 0xdfff && code != 0xfffe && code != 0xffff &&
				 code <= 0x10ffff);
}

/* Copy up to a NUL and replace invalid UTF-8: at most 3 * @n bytes. Returns the end. */
uint8_t *tptp_put_utf8(uint8_t *p, const char *text, size_t n);

int64_t tptp_split_slowly(int64_t ticks, int64_t frequency, uint32_t *nanoseconds);

/* Split ticks into whole seconds, rounded down, and nanoseconds. */
static inline int64_t tptp_split_ticks(int64_t ticks, int64_t frequency, uint32_t *nanoseconds)
{
	if (frequency != KB_TPTP_FREQUENCY_NS || ticks < 0)
		return tptp_split_slowly(ticks, frequency, nanoseconds);
	*nanoseconds = ticks % KB_TPTP_FREQUENCY_NS;
	return ticks / KB_TPTP_FREQUENCY_NS;
}

#define TPTP_MAX_NUMBER		31	/* bytes of -9223372036854775808.123456789 */

/* Both may write TPTP_MAX_NUMBER bytes, more than they return. */
uint8_t *tptp_put_number(uint8_t *p, int64_t v);
/* Ticks as SECONDS.nnnnnnnnn */
uint8_t *tptp_put_seconds(uint8_t *p, int64_t ticks, int64_t frequency);

/* ---- reader ---- */

#define TPTP_MAX_ATTRIBUTES	64
#define TPTP_MAX_NESTING	64
#define TPTP_MAX_NAME		255

struct tptp_attribute {
	struct kb_text name, value;
	uint8_t classes;		/* of the value's bytes: how to decode them */
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
	uint8_t element_length[TPTP_NR_TABLES];	/* lengths of the tables' names */
	uint8_t *scratch;		/* decoded values; see tptp_xml_read_tag() */
	size_t scratch_size;
};

struct kb_tptp {
	struct kb_tptp_info info;
	struct kb_in in;
	struct tptp_plan plans[TPTP_NR_TABLES];
	bool finished;			/* nothing more can be read */
	struct kb_error pending;	/* damage found in a message that was delivered */
	struct kb_text *strings;		/* KB_TPTP_MAX_DEPTH, for String[] */
	int64_t *longs;			/* KB_TPTP_MAX_DEPTH, for Long[] */
	struct tptp_xml *xml;		/* NULL: binary */
};

/* Make room for elements of arrays; allocates at the first call. */
int tptp_arrays(struct kb_tptp *tptp);

/* Fill @err; returns -EBADMSG. */
int tptp_damage(struct kb_error *err, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* kb_in gave less than requested: take its error and finish the reader. */
int tptp_cannot_read(struct kb_tptp *tptp, struct kb_error *err);

/* Read the header of one form; -ENODATA if the input does not have that form. */
int tptp_binary_open(struct kb_tptp *tptp, struct kb_error *err);
int tptp_xml_open(struct kb_tptp *tptp, struct kb_error *err);

/* kb_tptp_next() for one form. */
int tptp_binary_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);
int tptp_xml_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);

/* ---- writer ---- */

/*
 * Write a message with @depth array elements to @p, where tptp_*_bound() bytes are free. Its
 * numbers must fit. Returns the end.
 */
uint8_t *tptp_binary_put(uint8_t *p, const struct tptp_plan *plan, bool big_endian,
			 uint32_t depth, const struct kb_tptp_message *message);
/*
 * The same for a message of one table without text and arrays, but fast; NULL: the message has
 * text or arrays. There is a table of these functions, by index, for each byte order.
 */
typedef uint8_t *(*tptp_put_plain)(uint8_t *p, const union kb_tptp_value *values);
const tptp_put_plain *tptp_binary_plain(bool big_endian);
uint8_t *tptp_binary_put_header(uint8_t *p, const struct kb_tptp_layout *layout);

uint8_t *tptp_xml_put(uint8_t *p, const struct tptp_plan *plan, int64_t frequency,
		      uint32_t depth, const struct kb_tptp_message *message);

/*
 * The largest size of a message with @text bytes of strings and @depth array elements,
 * including what the encoders may write beyond its end.
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
