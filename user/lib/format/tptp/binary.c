// SPDX-License-Identifier: MIT
/*
 * The binary form: a header of 12 bytes, then messages. A message is a u16 id, a u32 length of
 * the whole message, and all attributes in the order of the table. The header defines the byte
 * order.
 *
 * The length of a message frames it. A message with bad content is reported, and the next one
 * is read. Only a bad frame ends the trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "format/tptp/codec.h"
#include "format/wire.h"

#define VERSION_MAJOR	1
#define VERSION_MINOR	0

static inline bool must_swap(bool big_endian)
{
	return big_endian ? KB_SWAP_BE : KB_SWAP_LE;
}

/* ---- write ---- */

uint8_t *tptp_binary_put_header(uint8_t *p, const struct kb_tptp_layout *layout)
{
	memcpy(p, "0TBF", 4);
	p += 4;
	*p++ = VERSION_MAJOR;
	*p++ = VERSION_MINOR;
	*p++ = layout->platform_32 ? 0 : 1;
	*p++ = layout->big_endian ? 0 : 1;
	kb_store32(p, TPTP_HEADER_BYTES, must_swap(layout->big_endian));
	return p + 4;
}

static inline uint8_t *put_string(uint8_t *p, const struct kb_text *string)
{
	if (string->length)
		p = tptp_put_utf8(p, string->data, string->length);
	*p++ = 0;
	return p;
}

static inline uint8_t *put_header(uint8_t *p, const struct tptp_plan *plan, size_t size, bool swap)
{
	kb_store16(p, plan->table->id, swap);
	kb_store32(p + 2, size, swap);
	return p + size;
}

/*
 * Most messages have numbers only. The list of tables generates a function for each table that
 * writes such a message: all positions are constants, and there are no branches. For a message
 * that it can't write, it sets bits of `trouble`.
 */
#define PUT_BYTE(v, i)		(*p++ = (uint8_t)v[i].number,				\
				 trouble |= (uint64_t)v[i].number & ~UINT64_C(0xff))
#define PUT_INTEGER(v, i)	(kb_store32(p, (uint32_t)v[i].number, swap), p += 4,	\
				 trouble |= ((uint64_t)v[i].number + 0x80000000u) >> 32)
#define PUT_LONG(v, i)		(kb_store64(p, (uint64_t)v[i].number, swap), p += 8)
#define PUT_TIME(v, i)		PUT_LONG(v, i)
#define PUT_STRING(v, i)	(*p++ = 0, trouble |= v[i].string.length)
/* both arrays must be empty: stackDepth before them is 0 */
#define PUT_STRINGS(v, i)	(trouble |= (uint64_t)v[(i) - 1].number)
#define PUT_LONGS(v, i)		((void)0)

#define KB_TPTP_MESSAGE(message, id, element)						\
	static kb_always_inline uint8_t *plain_##element(uint8_t *start,		\
							 const union kb_tptp_value *v,	\
							 const bool swap)		\
	{										\
		uint8_t *p = start + TPTP_MESSAGE_BYTES;				\
		uint64_t trouble = 0;							\
		const uint16_t number = id;
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)			\
		PUT_##type(v, KB_TPTP_##message##_##field);
#define KB_TPTP_END(message)								\
		kb_store16(start, number, swap);					\
		kb_store32(start + 2, (uint32_t)(p - start), swap);			\
		return trouble ? NULL : p;						\
	}
#include <kbarman/tptp_tables.h>

#define KB_TPTP_MESSAGE(message, id, element)						\
	static uint8_t *le_##element(uint8_t *p, const union kb_tptp_value *v)		\
	{										\
		return plain_##element(p, v, KB_SWAP_LE);				\
	}										\
	static uint8_t *be_##element(uint8_t *p, const union kb_tptp_value *v)		\
	{										\
		return plain_##element(p, v, KB_SWAP_BE);				\
	}
#include <kbarman/tptp_tables.h>

const tptp_put_plain *tptp_binary_plain(bool big_endian)
{
	static const tptp_put_plain functions[2][TPTP_NR_TABLES] = { {
#define KB_TPTP_MESSAGE(message, id, element)	le_##element,
#include <kbarman/tptp_tables.h>
	}, {
#define KB_TPTP_MESSAGE(message, id, element)	be_##element,
#include <kbarman/tptp_tables.h>
	} };

	return functions[big_endian];
}

static kb_always_inline uint8_t *put_message(uint8_t *start, const struct tptp_plan *plan,
					     uint32_t depth, const struct kb_tptp_message *message,
					     const bool swap)
{
	uint8_t *p = start + TPTP_MESSAGE_BYTES;

	for (unsigned int i = 0; i < plan->nr; i++) {
		const union kb_tptp_value *value = &message->values[i];

		switch (plan->type[i]) {
		case KB_TPTP_TYPE_LONG:
		case KB_TPTP_TYPE_TIME:
			kb_store64(p, value->number, swap);
			p += 8;
			break;
		case KB_TPTP_TYPE_INTEGER:
			kb_store32(p, value->number, swap);
			p += 4;
			break;
		case KB_TPTP_TYPE_BYTE:
			*p++ = value->number;
			break;
		case KB_TPTP_TYPE_STRING:
			p = put_string(p, &value->string);
			break;
		case KB_TPTP_TYPE_STRINGS:
			for (uint32_t k = 0; k < depth; k++)
				p = put_string(p, &value->strings[k]);
			break;
		case KB_TPTP_TYPE_LONGS:
			for (uint32_t k = 0; k < depth; k++, p += 8)
				kb_store64(p, value->longs[k], swap);
			break;
		}
	}
	return put_header(start, plan, p - start, swap);
}

uint8_t *tptp_binary_put(uint8_t *p, const struct tptp_plan *plan, bool big_endian,
			 uint32_t depth, const struct kb_tptp_message *message)
{
	if (big_endian)
		return put_message(p, plan, depth, message, KB_SWAP_BE);
	return put_message(p, plan, depth, message, KB_SWAP_LE);
}

/* ---- read ---- */

int tptp_binary_open(struct kb_tptp *tptp, struct kb_error *err)
{
	struct kb_in *in = &tptp->in;
	size_t there = kb_in_want(in, TPTP_HEADER_BYTES);
	const uint8_t *header = in->at;
	uint32_t data;

	if (in->error)
		return tptp_cannot_read(tptp, err);
	/* The text writes NUL as \0 in other places, so "0TBF" may mean that here, too. */
	if (there < 4 || (header[0] != '0' && header[0] != 0) || memcmp(header + 1, "TBF", 3))
		return -ENODATA;
	if (there < TPTP_HEADER_BYTES)
		return tptp_damage(err, there,
				   "the header of a binary TPTP trace has %d bytes, this file %zu",
				   TPTP_HEADER_BYTES, there);
	if (header[4] != VERSION_MAJOR)
		return tptp_damage(err, 4,
				   "binary TPTP trace of version %u.%u; only version 1 is known",
				   header[4], header[5]);
	if (header[7] > 1)
		return tptp_damage(err, 7,
				   "the byte order is %u, not 0 (big endian) or 1 (little endian)",
				   header[7]);
	tptp->info.binary = true;
	tptp->info.version_major = header[4];
	tptp->info.version_minor = header[5];
	tptp->info.platform = header[6];
	tptp->info.big_endian = !header[7];
	if (header[6] > 1)
		tptp_damage(&tptp->pending, 6,
			    "the platform is %u, not 0 (32 bits) or 1 (64 bits)", header[6]);
	data = kb_load32(header + 8, must_swap(tptp->info.big_endian));
	if (data < TPTP_HEADER_BYTES)
		return tptp_damage(err, 8,
				   "the offset to the data is %u, inside the header of %d bytes",
				   data, TPTP_HEADER_BYTES);
	if (kb_in_skip(in, data) == data)
		return 0;
	if (in->error)
		return tptp_cannot_read(tptp, err);
	return tptp_damage(err, 8,
			   "the data is said to start at %u, behind the end of the file", data);
}

/* The unread bytes of a message. */
struct cursor {
	const uint8_t *p, *end;
	const uint8_t *bad_text;	/* the first invalid UTF-8; NULL = none */
};

static bool get_string(struct cursor *c, struct kb_text *string)
{
	const uint8_t *nul;

	/* A shortcut: most strings of most messages are empty. */
	if (c->p < c->end && !*c->p)
		nul = c->p;
	else
		nul = memchr(c->p, 0, c->end - c->p);
	if (!nul)
		return false;
	string->data = (const char *)c->p;
	string->length = nul - c->p;
	if (string->length && kb_utf8_valid(string->data, string->length) < string->length &&
	    !c->bad_text)
		c->bad_text = c->p;
	c->p = nul + 1;
	return true;
}

static int get_arrays(struct kb_tptp *tptp, struct cursor *c, uint32_t depth)
{
	if (depth > KB_TPTP_MAX_DEPTH || depth > (size_t)(c->end - c->p) / (1 + 8))
		return -EBADMSG;
	if (depth && tptp_arrays(tptp))
		return -ENOMEM;
	for (uint32_t k = 0; k < depth; k++)
		if (!get_string(c, &tptp->strings[k]))
			return -EBADMSG;
	if (depth > (size_t)(c->end - c->p) / 8)
		return -EBADMSG;
	for (uint32_t k = 0; k < depth; k++, c->p += 8)
		tptp->longs[k] = kb_load64(c->p, must_swap(tptp->info.big_endian));
	return 0;
}

/*
 * Returns 0, or -EBADMSG and in @row the row that does not fit. Inlined once for each byte
 * order.
 */
static kb_always_inline int
get_message(struct kb_tptp *tptp, const struct tptp_plan *plan, struct cursor *c,
	    union kb_tptp_value *values, unsigned int *row, const bool swap)
{
	for (unsigned int i = 0; i < plan->nr; i++) {
		union kb_tptp_value *value = &values[i];
		size_t left = c->end - c->p;
		int ret;

		*row = i;
		switch (plan->type[i]) {
		case KB_TPTP_TYPE_LONG:
		case KB_TPTP_TYPE_TIME:
			if (left < 8)
				return -EBADMSG;
			value->number = kb_load64(c->p, swap);
			c->p += 8;
			break;
		case KB_TPTP_TYPE_STRING:
			if (!get_string(c, &value->string))
				return -EBADMSG;
			break;
		case KB_TPTP_TYPE_INTEGER:
			if (left < 4)
				return -EBADMSG;
			value->number = (int32_t)kb_load32(c->p, swap);
			c->p += 4;
			break;
		case KB_TPTP_TYPE_BYTE:
			if (left < 1)
				return -EBADMSG;
			value->number = *c->p++;
			break;
		case KB_TPTP_TYPE_STRINGS:	/* together with the Long[] after it */
			ret = get_arrays(tptp, c, values[i - 1].number);
			if (ret)
				return ret;
			value->strings = tptp->strings;
			values[++i].longs = tptp->longs;
			break;
		}
	}
	return 0;
}

static bool encoding_known(const struct kb_text *name)
{
	static const char *const known[] = { "UTF-8", "UTF8", "US-ASCII", "ASCII" };

	for (unsigned int i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcasecmp(name->data, known[i]))
			return true;
	return false;
}

/* Apply a system message to the messages that follow. @offset: its place. */
static void note_system(struct kb_tptp *tptp, const struct kb_tptp_message *message,
			uint64_t offset)
{
	const union kb_tptp_value *values = message->values;

	if (message->table->id == KB_TPTP_ENCODING &&
	    !encoding_known(&values[KB_TPTP_ENCODING_ENCODING_NAME].string))
		tptp_damage(&tptp->pending, offset,
			    "text is in encoding \"%.40s\"; it is taken for UTF-8",
			    values[KB_TPTP_ENCODING_ENCODING_NAME].string.data);
	if (message->table->id == KB_TPTP_FREQUENCY) {
		int64_t frequency = values[KB_TPTP_FREQUENCY_FREQUENCY].number;

		if (frequency > 0)
			tptp->info.frequency = frequency;
		else
			tptp_damage(&tptp->pending, offset,
				    "the frequency is %lld, not above 0; it is ignored",
				    (long long)frequency);
	}
}

/* Read a message of a known kind that is completely in the window. */
static int next_known(struct kb_tptp *tptp, const struct tptp_plan *plan, uint32_t length,
		      struct kb_tptp_message *message, struct kb_error *err)
{
	const uint8_t *start = tptp->in.at;
	struct cursor c = { start + TPTP_MESSAGE_BYTES, start + length, NULL };
	uint64_t offset = kb_in_offset(&tptp->in);
	unsigned int row = 0;
	int ret;

	message->table = plan->table;
	if (tptp->info.big_endian)
		ret = get_message(tptp, plan, &c, message->values, &row, KB_SWAP_BE);
	else
		ret = get_message(tptp, plan, &c, message->values, &row, KB_SWAP_LE);
	tptp->in.at += length;
	if (ret == -ENOMEM)
		return kb_error_set(err, ret, offset, "out of memory for a stack");
	if (ret)
		return kb_error_set(err, ret, offset + (c.p - start),
				    "%s does not fit into its message of type %s and %u bytes",
				    plan->table->fields[row].name, plan->table->name, length);
	if (c.p != c.end)
		tptp_damage(&tptp->pending, offset + (c.p - start),
			    "%zu bytes behind the last attribute of a message of type %s",
			    (size_t)(c.end - c.p), plan->table->name);
	else if (c.bad_text)
		tptp_damage(&tptp->pending, offset + (c.bad_text - start),
			    "text that is not UTF-8 in a message of type %s", plan->table->name);
	if (plan->table->id < KB_TPTP_FIRST_DATA)
		note_system(tptp, message, offset);
	return 1;
}

/* The input ends inside the message at @offset. */
static int cut_off(struct kb_tptp *tptp, uint64_t offset, struct kb_error *err)
{
	if (tptp->in.error)
		return tptp_cannot_read(tptp, err);
	tptp->finished = true;
	return tptp_damage(err, offset,
			   "the file ends inside the message that starts here");
}

/* Skip a message that is not read. Returns 0 if that is not an error. */
static int skip_message(struct kb_tptp *tptp, uint32_t id, uint32_t length, struct kb_error *err)
{
	uint64_t offset = kb_in_offset(&tptp->in);
	const struct kb_tptp_table *table = kb_tptp_table(id);

	if (kb_in_skip(&tptp->in, length) < length)
		return cut_off(tptp, offset, err);
	tptp->info.skipped++;
	if (table)
		return tptp_damage(err, offset + 2,
				   "message of type %s has %u bytes; more than %u are not read",
				   table->name, length, KB_TPTP_MAX_MESSAGE);
	if (id > TPTP_MAX_ID)
		return tptp_damage(err, offset,
				   "message id %u is above %u, the last one of the format", id,
				   TPTP_MAX_ID);
	return 0;
}

int tptp_binary_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err)
{
	struct kb_in *in = &tptp->in;
	bool swap = must_swap(tptp->info.big_endian);
	int ret;

	do {
		uint64_t offset = kb_in_offset(in);
		unsigned int index;
		uint32_t length;
		uint16_t id;

		if (kb_in_want(in, TPTP_MESSAGE_BYTES) < TPTP_MESSAGE_BYTES) {
			if (in->at != in->end || in->error)
				return cut_off(tptp, offset, err);
			tptp->finished = true;
			return 0;
		}
		id = kb_load16(in->at, swap);
		length = kb_load32(in->at + 2, swap);
		if (length < TPTP_MESSAGE_BYTES) {
			tptp->finished = true;
			return tptp_damage(err, offset + 2,
					   "message of id %u says it has %u bytes, fewer than its own header",
					   id, length);
		}
		index = tptp_index(id);
		if (index < TPTP_NR_TABLES && length <= KB_TPTP_MAX_MESSAGE) {
			if (kb_in_want(in, length) < length)
				return cut_off(tptp, offset, err);
			return next_known(tptp, &tptp->plans[index], length, message, err);
		}
		ret = skip_message(tptp, id, length, err);
	} while (!ret);
	return ret;
}
