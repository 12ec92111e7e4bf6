// SPDX-License-Identifier: MIT
/*
 * Heph traces. The encoder computes the size of a packet before it writes the packet, so a
 * refused packet leaves nothing in the output. The reader checks a whole packet before it
 * delivers the packet, so iterating over its attributes can't fail.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/io/in.h"
#include "base/io/out_packet.h"
#include "base/text/utf8.h"
#include "format/heph_put.h"

/* ---- writing ---- */

static bool type_is_known(uint8_t type)
{
	type &= (uint8_t)~KB_HEPH_ARRAY;
	return type >= KB_HEPH_U64 && type <= KB_HEPH_STRING;
}

int kb_heph_write_option(struct kb_out *out, struct kb_text name, const void *value, size_t size)
{
	size_t bytes = KB_HEPH_METADATA_BYTES + name.length + size;
	uint8_t *packet, *at;

	if (name.length > UINT16_MAX || size > UINT32_MAX / 2)
		return -EMSGSIZE;
	packet = kb_out_reserve(out, bytes);
	if (!packet)
		return out->error;
	at = kb_heph_put32(packet, KB_HEPH_METADATA_MAGIC);
	at = kb_heph_put32(at, (uint32_t)bytes);
	at = kb_heph_put_text(at, name.data, (uint16_t)name.length);
	if (size)
		memcpy(at, value, size);
	return kb_out_commit(out, at + size);
}

int kb_heph_write_epoch(struct kb_out *out, uint64_t epoch)
{
	epoch = htobe64(epoch);
	return kb_heph_write_option(out, kb_text("epoch"), &epoch, sizeof(epoch));
}

/* Size of @attribute in a packet, or a negative errno. */
static int64_t attribute_bytes(const struct kb_heph_attribute *attribute)
{
	bool array = attribute->type & KB_HEPH_ARRAY;
	uint32_t count = array ? attribute->count : 1, i;
	int64_t bytes = 2 + 1 + (array ? 2 : 0);

	if (!type_is_known(attribute->type))
		return -EINVAL;
	if (attribute->name.length > UINT16_MAX)
		return -EMSGSIZE;
	bytes += (int64_t)attribute->name.length;
	if ((attribute->type & ~KB_HEPH_ARRAY) != KB_HEPH_STRING)
		return bytes + 8 * (int64_t)count;
	for (i = 0; i < count; i++) {
		if (attribute->values[i].string.length > UINT16_MAX)
			return -EMSGSIZE;
		bytes += 2 + (int64_t)attribute->values[i].string.length;
	}
	return bytes;
}

static uint8_t *put_attribute(uint8_t *at, const struct kb_heph_attribute *attribute)
{
	bool array = attribute->type & KB_HEPH_ARRAY;
	uint32_t count = array ? attribute->count : 1, i;
	const union kb_heph_value *values = attribute->values;

	at = kb_heph_put_text(at, attribute->name.data, (uint16_t)attribute->name.length);
	*at++ = attribute->type;
	if (array)
		at = kb_heph_put16(at, (uint16_t)count);
	if ((attribute->type & ~KB_HEPH_ARRAY) == KB_HEPH_STRING) {
		for (i = 0; i < count; i++)
			at = kb_heph_put_text(at, values[i].string.data,
					      (uint16_t)values[i].string.length);
		return at;
	}
	for (i = 0; i < count; i++)	/* the three types share these 8 bytes */
		at = kb_heph_put64(at, values[i].u64);
	return at;
}

int kb_heph_write_event(struct kb_out *out, const struct kb_heph_event *event)
{
	uint64_t bytes = KB_HEPH_EVENT_BYTES + (uint64_t)event->description.length;
	uint8_t *packet, *at;
	uint32_t i;

	if (event->description.length > UINT16_MAX)
		return -EMSGSIZE;
	for (i = 0; i < event->nr_attributes; i++) {
		int64_t size = attribute_bytes(&event->attributes[i]);

		if (size < 0)
			return (int)size;
		bytes += (uint64_t)size;
		if (bytes > UINT32_MAX)
			return -EMSGSIZE;
	}
	packet = kb_out_reserve(out, (size_t)bytes);
	if (!packet)
		return out->error;
	at = kb_heph_put_start(packet, event->stream, event->counter, event->substream,
			       event->start, event->end);
	at = kb_heph_put_text(at, event->description.data, (uint16_t)event->description.length);
	for (i = 0; i < event->nr_attributes; i++)
		at = put_attribute(at, &event->attributes[i]);
	kb_heph_put_size(packet, at);
	return kb_out_commit(out, at);
}

/* ---- reading ---- */

struct kb_heph_reader {
	struct kb_in in;
	size_t taken;			/* bytes of the last delivered packet */
	const uint8_t *attributes;	/* its attributes that were not read yet */
	uint32_t nr_attributes;
	union kb_heph_value *values;	/* room for the longest array */
	unsigned int findings;
	struct kb_error first;		/* the first finding */
	bool over;
};

/* A packet in the window. `at` moves; `end` is the end of the packet. */
struct cursor {
	const uint8_t *at, *end;
	const uint8_t *start;
	uint64_t offset;		/* offset of start in the input */
};

static uint16_t get16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, 2);
	return be16toh(value);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return be32toh(value);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return be64toh(value);
}

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static uint64_t here(const struct cursor *c)
{
	return c->offset + (uint64_t)(c->at - c->start);
}

static void find(struct kb_heph_reader *reader, uint64_t offset, const char *what)
{
	if (!reader->findings++)
		kb_error_set(&reader->first, -EBADMSG, offset, "%s: wrong at byte %llu: %s",
			     kb_in_name(&reader->in), (unsigned long long)offset, what);
}

static int damaged(const struct kb_heph_reader *reader, const struct cursor *c,
		   struct kb_error *err, const char *what)
{
	return kb_error_set(err, -EBADMSG, here(c),
			    "%s: damaged at byte %llu: %s (the packet is at %llu)",
			    kb_in_name(&reader->in), (unsigned long long)here(c), what,
			    (unsigned long long)c->offset);
}

static int get_text(struct kb_heph_reader *reader, struct cursor *c, struct kb_text *text,
		    struct kb_error *err)
{
	if (left(c) < 2 || left(c) - 2 < get16(c->at))
		return damaged(reader, c, err, "a string goes beyond its packet");
	text->length = get16(c->at);
	text->data = (const char *)c->at + 2;
	if (kb_utf8_valid(text->data, text->length) != text->length)
		find(reader, here(c), "a string is not UTF-8");
	c->at += 2 + text->length;
	return 0;
}

static int check_attribute(struct kb_heph_reader *reader, struct cursor *c, struct kb_error *err)
{
	struct kb_text text;
	uint32_t count = 1;
	uint8_t type;
	int error;

	error = get_text(reader, c, &text, err);
	if (error)
		return error;
	if (!left(c))
		return damaged(reader, c, err, "an attribute has no value");
	type = *c->at;
	if (!type_is_known(type))
		return damaged(reader, c, err, type == KB_HEPH_ARRAY ? "an array has no type" :
			       "an attribute has a type that does not exist");
	c->at++;
	if (type & KB_HEPH_ARRAY) {
		if (left(c) < 2)
			return damaged(reader, c, err, "an array has no length");
		count = get16(c->at);
		c->at += 2;
	}
	if ((type & ~KB_HEPH_ARRAY) != KB_HEPH_STRING) {
		if (left(c) < 8 * (size_t)count)
			return damaged(reader, c, err, "a value goes beyond its packet");
		c->at += 8 * (size_t)count;
		return 0;
	}
	while (count--) {
		error = get_text(reader, c, &text, err);
		if (error)
			return error;
	}
	return 0;
}

static int get_event(struct kb_heph_reader *reader, struct cursor *c, struct kb_heph_event *event,
		     struct kb_error *err)
{
	const uint8_t *p = c->start;
	int error;

	event->stream = get32(p + 8);
	event->counter = get32(p + 12);
	event->substream = get64(p + 16);
	event->start = get64(p + 24);
	event->end = get64(p + 32);
	c->at = p + 40;
	if (event->end < event->start)
		find(reader, c->offset, "an event ends before it starts");
	error = get_text(reader, c, &event->description, err);
	if (error)
		return error;
	reader->attributes = c->at;
	while (left(c)) {
		error = check_attribute(reader, c, err);
		if (error)
			return error;
		event->nr_attributes++;
	}
	reader->nr_attributes = event->nr_attributes;
	return 0;
}

static int get_metadata(struct kb_heph_reader *reader, struct cursor *c,
			struct kb_heph_packet *packet, struct kb_error *err)
{
	struct kb_text *option = &packet->metadata.option;
	int error;

	c->at = c->start + 8;
	error = get_text(reader, c, option, err);
	if (error)
		return error;
	packet->metadata.value = c->at;
	packet->metadata.value_bytes = left(c);
	if (option->length != 5 || memcmp(option->data, "epoch", 5) != 0) {
		find(reader, c->offset, "a metadata packet sets an option that does not exist");
		return 0;
	}
	if (left(c) != 8)
		return damaged(reader, c, err, "the epoch is not a 64-bit integer");
	packet->metadata.is_epoch = true;
	packet->metadata.epoch = get64(c->at);
	return 0;
}

/* Read the packet at the window's start and check all of it. */
static int get_packet(struct kb_heph_reader *reader, struct kb_heph_packet *packet,
		      struct kb_error *err)
{
	struct kb_in *in = &reader->in;
	struct cursor c = { .offset = kb_in_offset(in), .start = in->at, .at = in->at };
	size_t there = kb_in_want(in, 8);
	uint32_t least;

	c.start = c.at = in->at;
	if (there < 8)
		return damaged(reader, &c, err, "the trace ends inside a packet");
	packet->offset = c.offset;
	packet->magic = get32(c.at);
	packet->size = get32(c.at + 4);
	if (packet->magic != KB_HEPH_EVENT_MAGIC && packet->magic != KB_HEPH_METADATA_MAGIC)
		return damaged(reader, &c, err, "no packet starts here");
	least = packet->magic == KB_HEPH_EVENT_MAGIC ? KB_HEPH_EVENT_BYTES : KB_HEPH_METADATA_BYTES;
	if (packet->size < least)
		return damaged(reader, &c, err, "the size is less than any packet has");
	if (packet->size > KB_HEPH_MAX_PACKET)
		return damaged(reader, &c, err, "the size is more than 16 MiB");
	there = kb_in_want(in, packet->size);
	c.start = c.at = in->at;
	c.end = c.at + packet->size;
	if (there < packet->size) {
		if (in->error)
			return kb_in_error(in, err);
		return damaged(reader, &c, err, "the trace ends inside a packet");
	}
	return packet->magic == KB_HEPH_EVENT_MAGIC ?
	       get_event(reader, &c, &packet->event, err) : get_metadata(reader, &c, packet, err);
}

int kb_heph_next(struct kb_heph_reader *reader, struct kb_heph_packet *packet,
		 struct kb_error *err)
{
	struct kb_in *in = &reader->in;
	int error;

	memset(packet, 0, sizeof(*packet));
	reader->nr_attributes = 0;
	in->at += reader->taken;
	reader->taken = 0;
	if (reader->over)
		return 0;
	if (!kb_in_want(in, 1)) {
		reader->over = true;
		return in->error ? kb_in_error(in, err) : 0;
	}
	error = get_packet(reader, packet, err);
	if (error) {
		reader->over = true;
		reader->nr_attributes = 0;
		return error;
	}
	reader->taken = packet->size;
	return 1;
}

int kb_heph_next_attribute(struct kb_heph_reader *reader, struct kb_heph_attribute *attribute)
{
	const uint8_t *at = reader->attributes;
	uint32_t count = 1, i;

	if (!reader->nr_attributes)
		return 0;
	attribute->name.length = get16(at);
	attribute->name.data = (const char *)at + 2;
	at += 2 + attribute->name.length;
	attribute->type = *at++;
	if (attribute->type & KB_HEPH_ARRAY) {
		count = get16(at);
		at += 2;
	}
	attribute->count = (uint16_t)count;
	attribute->values = reader->values;
	for (i = 0; i < count; i++) {
		union kb_heph_value *value = &reader->values[i];

		if ((attribute->type & ~KB_HEPH_ARRAY) == KB_HEPH_STRING) {
			/* cppcheck-suppress redundantInitialization ; members of a union */
			value->string.length = get16(at);
			value->string.data = (const char *)at + 2;
			at += 2 + value->string.length;
		} else {
			value->u64 = get64(at);
			at += 8;
		}
	}
	reader->attributes = at;
	reader->nr_attributes--;
	return 1;
}

unsigned int kb_heph_damage(const struct kb_heph_reader *reader, const struct kb_error **first)
{
	*first = reader->findings ? &reader->first : NULL;
	return reader->findings;
}

/* Takes ownership of @in. */
static int create(struct kb_heph_reader **out, struct kb_in *in, struct kb_error *err)
{
	struct kb_heph_reader *reader;
	uint32_t magic = 0;
	int error;

	if (kb_in_want(in, 4) >= 4)
		magic = get32(in->at);
	if (magic != KB_HEPH_EVENT_MAGIC && magic != KB_HEPH_METADATA_MAGIC) {
		error = in->error ? kb_in_error(in, err) :
			kb_error_set(err, -ENODATA, 0, "%s is not a Heph trace", kb_in_name(in));
		kb_in_close(in);
		return error;
	}
	reader = calloc(1, sizeof(*reader));
	if (reader)	/* takes no memory until there is an array */
		reader->values = malloc((UINT16_MAX + 1) * sizeof(*reader->values));
	if (!reader || !reader->values) {
		free(reader);
		kb_in_close(in);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	reader->in = *in;
	*out = reader;
	return 0;
}

int kb_heph_open(struct kb_heph_reader **reader, const char *path, struct kb_error *err)
{
	struct kb_in in;
	int error = kb_in_open(&in, path, err);

	return error ? error : create(reader, &in, err);
}

int kb_heph_open_memory(struct kb_heph_reader **reader, const void *data, size_t size,
			struct kb_error *err)
{
	struct kb_in in;

	kb_in_memory(&in, data, size);
	return create(reader, &in, err);
}

void kb_heph_close(struct kb_heph_reader *reader)
{
	if (!reader)
		return;
	kb_in_close(&reader->in);
	free(reader->values);
	free(reader);
}
