// SPDX-License-Identifier: MIT
/*
 * See split.h. The rules say which fields of a message are messages, and which refer to rows of
 * the dictionary; all else is copied as it is. A part is made in two walks: one marks the rows that
 * are referred to, the other copies with the numbers that these rows have then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io/out_packet.h"
#include "export/otlp/fields.h"
#include "export/otlp/split.h"
#include "export/otlp/tables.h"
#include "format/gzip_whole.h"
#include "format/protobuf.h"
#include "format/protobuf_read.h"

#define UNPACKED_MAX	(1U << 30)	/* bytes of a request */
#define DEPTH		6		/* a request, resources, scopes, a profile, a sample, a list */
#define UNUSED		UINT32_MAX

/* The kinds of messages. Those of the tables have the numbers of the tables. */
enum { REQUEST = KB_OTLP_TABLES, RESOURCES, SCOPES, PROFILE, TYPE, SAMPLE, LINE, NR_MESSAGES };

struct rule {
	uint8_t message, field, to;	/* a kind of message, or the table of the number in the field */
	bool refers;
};

static const struct rule rules[] = {
	{ REQUEST, KB_OTLP_REQUEST_RESOURCES, RESOURCES, false },
	{ RESOURCES, KB_OTLP_RESOURCE_SCOPES, SCOPES, false },
	{ SCOPES, KB_OTLP_SCOPE_PROFILES, PROFILE, false },
	{ PROFILE, KB_OTLP_PROFILE_TYPE, TYPE, false },
	{ PROFILE, KB_OTLP_PROFILE_SAMPLES, SAMPLE, false },
	{ TYPE, KB_OTLP_TYPE_NAME, KB_OTLP_STRINGS, true },
	{ TYPE, KB_OTLP_TYPE_UNIT, KB_OTLP_STRINGS, true },
	{ SAMPLE, KB_OTLP_SAMPLE_STACK, KB_OTLP_STACKS, true },
	{ SAMPLE, KB_OTLP_SAMPLE_ATTRIBUTES, KB_OTLP_ATTRIBUTES, true },
	{ KB_OTLP_STACKS, KB_OTLP_STACK_LOCATIONS, KB_OTLP_LOCATIONS, true },
	{ KB_OTLP_LOCATIONS, KB_OTLP_LOCATION_MAPPING, KB_OTLP_MAPPINGS, true },
	{ KB_OTLP_LOCATIONS, KB_OTLP_LOCATION_LINES, LINE, false },
	{ KB_OTLP_LOCATIONS, KB_OTLP_LOCATION_ATTRIBUTES, KB_OTLP_ATTRIBUTES, true },
	{ LINE, KB_OTLP_LINE_FUNCTION, KB_OTLP_FUNCTIONS, true },
	{ KB_OTLP_FUNCTIONS, KB_OTLP_FUNCTION_NAME, KB_OTLP_STRINGS, true },
	{ KB_OTLP_FUNCTIONS, KB_OTLP_FUNCTION_SYSTEM_NAME, KB_OTLP_STRINGS, true },
	{ KB_OTLP_FUNCTIONS, KB_OTLP_FUNCTION_FILE, KB_OTLP_STRINGS, true },
	{ KB_OTLP_MAPPINGS, KB_OTLP_MAPPING_FILE, KB_OTLP_STRINGS, true },
	{ KB_OTLP_MAPPINGS, KB_OTLP_MAPPING_ATTRIBUTES, KB_OTLP_ATTRIBUTES, true },
	{ KB_OTLP_ATTRIBUTES, KB_OTLP_KEY, KB_OTLP_STRINGS, true },
};

struct row {
	const uint8_t *data;
	size_t size;
	uint32_t number;		/* in the part; UNUSED */
};

struct table {
	struct row *rows;
	size_t nr, max;
};

struct profile {
	uint64_t samples, waits, wait_ns;
};

struct kb_otlp_split {
	uint8_t *data;			/* unpacked */
	size_t size;
	struct kb_otlp_request whole;	/* its numbers */
	struct table tables[KB_OTLP_TABLES];
	struct profile *profiles;
	size_t nr, max;
	/* of the part that is being made */
	const bool *wanted;		/* NULL: all are wanted */
	size_t next;			/* number of the profile that comes next */
	struct kb_out *out[DEPTH];	/* a message at each depth */
};

static const struct rule *find_rule(unsigned int message, const struct kb_proto_field *field)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].message == message && rules[i].field == field->number &&
		    (field->wire == KB_WIRE_BYTES || (rules[i].refers && field->wire == KB_WIRE_VARINT)))
			return &rules[i];
	return NULL;
}

/* ---- reading ---- */

static int read_dictionary(struct kb_otlp_split *split, struct kb_proto_reader reader)
{
	struct kb_proto_field field;
	int more;

	while ((more = kb_proto_read(&reader, &field)) > 0) {
		struct table *table = &split->tables[field.number < KB_OTLP_TABLES ? field.number : 0];

		if (field.number >= KB_OTLP_TABLES || field.wire != KB_WIRE_BYTES)
			return -EINVAL;
		if (!KB_ARRAY_ROOM(table->rows, table->max, table->nr + 1))
			return -ENOMEM;
		table->rows[table->nr++] = (struct row){ field.data, (size_t)field.value, UNUSED };
	}
	return more;
}

static bool is_called(const struct kb_otlp_split *split, uint64_t string, const char *name)
{
	const struct table *table = &split->tables[KB_OTLP_STRINGS];

	return string < table->nr &&
	       kb_proto_is(kb_proto_reader(table->rows[string].data, table->rows[string].size), name);
}

/* What the profile counts, by the name of its values. */
static void count_profile(const struct kb_otlp_split *split, struct kb_proto_reader reader,
			  struct profile *profile)
{
	struct kb_proto_field field;
	uint64_t name = 0, sum = 0;

	while (kb_proto_read(&reader, &field) > 0) {
		struct kb_proto_reader inner = kb_proto_inner(&field);

		if (field.number == KB_OTLP_PROFILE_TYPE)
			name = kb_proto_number(inner, KB_OTLP_TYPE_NAME);
		if (field.number == KB_OTLP_PROFILE_SAMPLES)
			sum += kb_proto_sum(inner, KB_OTLP_SAMPLE_VALUES, 0, SIZE_MAX);
	}
	if (is_called(split, name, "samples"))
		profile->samples = sum;
	if (is_called(split, name, "off_cpu"))
		profile->wait_ns = sum;
}

/* The profiles below a message. */
static int read_profiles(struct kb_otlp_split *split, unsigned int message, struct kb_proto_reader reader)
{
	struct kb_proto_field field;
	int more;

	while ((more = kb_proto_read(&reader, &field)) > 0) {
		const struct rule *rule = find_rule(message, &field);
		struct kb_proto_reader inner = kb_proto_inner(&field);

		if (!rule)
			continue;
		if (rule->to == PROFILE) {
			if (!KB_ARRAY_ROOM(split->profiles, split->max, split->nr + 1))
				return -ENOMEM;
			split->profiles[split->nr] = (struct profile){ 0 };
			count_profile(split, inner, &split->profiles[split->nr++]);
			continue;
		}
		more = read_profiles(split, rule->to, inner);
		if (more)
			return more;
	}
	return more;
}

/* A profile has as many waits as its part of the time, so that those of all profiles are all. */
static void share_waits(struct kb_otlp_split *split)
{
	uint64_t all = 0, before = 0, until, ns = 0;

	for (size_t i = 0; i < split->nr; i++)
		all += split->profiles[i].wait_ns;
	for (size_t i = 0; i < split->nr && all; i++, before = until) {
		ns += split->profiles[i].wait_ns;
		until = ns == all ? split->whole.waits :
				    (uint64_t)((double)split->whole.waits * ((double)ns / (double)all));
		split->profiles[i].waits = until - before;
	}
}

int kb_otlp_split_open(struct kb_otlp_split **out, const struct kb_otlp_request *request)
{
	struct kb_otlp_split *split = calloc(1, sizeof(*split));
	struct kb_proto_reader reader;
	struct kb_proto_field field;
	int more;

	*out = split;
	if (!split)
		return -ENOMEM;
	split->whole = *request;
	for (size_t i = 0; i < DEPTH; i++)
		if (kb_out_memory(&split->out[i]))
			return -ENOMEM;
	more = kb_gzip_unpack(request->data, request->size, UNPACKED_MAX, &split->data, &split->size);
	if (more)
		return more;
	reader = kb_proto_reader(split->data, split->size);
	while ((more = kb_proto_read(&reader, &field)) > 0) {
		if (field.number != KB_OTLP_REQUEST_DICTIONARY || field.wire != KB_WIRE_BYTES)
			continue;
		more = read_dictionary(split, kb_proto_inner(&field));
		if (more)
			return more;
	}
	more = more ?: read_profiles(split, REQUEST, kb_proto_reader(split->data, split->size));
	share_waits(split);
	return more;
}

void kb_otlp_split_close(struct kb_otlp_split *split)
{
	if (!split)
		return;
	for (size_t i = 0; i < DEPTH; i++)
		kb_out_destroy(split->out[i]);
	for (size_t i = 0; i < KB_OTLP_TABLES; i++)
		free(split->tables[i].rows);
	free(split->profiles);
	free(split->data);
	free(split);
}

size_t kb_otlp_split_profiles(const struct kb_otlp_split *split)
{
	return split->nr;
}

/* ---- marking ---- */

static int mark(struct kb_otlp_split *split, unsigned int message, struct kb_proto_reader reader);

static int mark_row(struct kb_otlp_split *split, unsigned int number, uint64_t i)
{
	struct table *table = &split->tables[number];

	if (i >= table->nr)
		return -EINVAL;
	if (table->rows[i].number != UNUSED)
		return 0;
	table->rows[i].number = 0;	/* until all are known */
	if (number == KB_OTLP_STRINGS)
		return 0;
	return mark(split, number, kb_proto_reader(table->rows[i].data, table->rows[i].size));
}

/* The rows of a field: it is one number, or a list of them. */
static int mark_rows(struct kb_otlp_split *split, unsigned int table, const struct kb_proto_field *field)
{
	struct kb_proto_reader list = kb_proto_inner(field);
	uint64_t i;
	int ret = 0;

	if (field->wire == KB_WIRE_VARINT)
		return mark_row(split, table, field->value);
	while (!ret && list.at < list.end)
		ret = kb_proto_read_varint(&list, &i) ?: mark_row(split, table, i);
	return ret;
}

static bool is_wanted(struct kb_otlp_split *split, const struct rule *rule)
{
	return rule->refers || rule->to != PROFILE || split->wanted[split->next++];
}

/* Marks all rows that the message refers to, and those that they refer to. */
static int mark(struct kb_otlp_split *split, unsigned int message, struct kb_proto_reader reader)
{
	struct kb_proto_field field;
	int more;

	while ((more = kb_proto_read(&reader, &field)) > 0) {
		const struct rule *rule = find_rule(message, &field);

		if (!rule || !is_wanted(split, rule))
			continue;
		more = rule->refers ? mark_rows(split, rule->to, &field) :
				      mark(split, rule->to, kb_proto_inner(&field));
		if (more)
			return more;
	}
	return more;
}

/* Gives the rows that are used their numbers. */
static void number_rows(struct kb_otlp_split *split)
{
	for (size_t t = 0; t < KB_OTLP_TABLES; t++) {
		struct table *table = &split->tables[t];
		uint32_t next = 0;

		for (size_t i = 0; i < table->nr; i++)
			if (table->rows[i].number != UNUSED)
				table->rows[i].number = next++;
	}
}

static void forget_marks(struct kb_otlp_split *split)
{
	for (size_t t = 0; t < KB_OTLP_TABLES; t++)
		for (size_t i = 0; i < split->tables[t].nr; i++)
			split->tables[t].rows[i].number = UNUSED;
	split->next = 0;
}

/* ---- writing ---- */

/* The mark has looked at each number. */
static void put_rows(struct kb_otlp_split *split, const struct row *rows, const struct kb_proto_field *field,
		     unsigned int depth)
{
	struct kb_out *out = split->out[depth], *list = split->out[depth + 1];
	struct kb_proto_reader reader = kb_proto_inner(field);
	uint8_t *at = kb_out_reserve(field->wire == KB_WIRE_VARINT ? out : list,
				     (size_t)field->value + KB_PROTO_UINT);
	uint64_t i;

	if (!at)
		return;
	if (field->wire == KB_WIRE_VARINT) {
		kb_out_commit(out, kb_proto_put_uint(at, (uint32_t)field->number,
						     rows[field->value].number));
		return;
	}
	/* a new number is never larger, so it takes no more bytes */
	while (reader.at < reader.end && !kb_proto_read_varint(&reader, &i))
		at = kb_proto_put_varint(at, rows[i].number);
	kb_out_commit(list, at);
	kb_otlp_nest(out, (uint32_t)field->number, list);
}

/* Copies a message to split->out[@depth]. False: there was no profile in it that is wanted. */
static bool copy(struct kb_otlp_split *split, unsigned int message, struct kb_proto_reader reader,
		 unsigned int depth)
{
	struct kb_out *out = split->out[depth];
	const uint8_t *from = reader.at;
	struct kb_proto_field field;
	bool any = message != REQUEST && message != RESOURCES && message != SCOPES;

	for (; kb_proto_read(&reader, &field) > 0; from = reader.at) {
		const struct rule *rule = find_rule(message, &field);

		if (message == REQUEST && field.number == KB_OTLP_REQUEST_DICTIONARY)
			continue;
		if (!rule) {
			kb_out_bytes(out, from, (size_t)(reader.at - from));
		} else if (rule->refers) {
			put_rows(split, split->tables[rule->to].rows, &field, depth);
		} else if (is_wanted(split, rule)) {
			bool wanted = copy(split, rule->to, kb_proto_inner(&field), depth + 1);

			if (wanted)
				kb_otlp_nest(out, rule->field, split->out[depth + 1]);
			split->out[depth + 1]->at = split->out[depth + 1]->buffer;
			any |= wanted;
		}
	}
	return any;
}

static void copy_dictionary(struct kb_otlp_split *split)
{
	for (unsigned int t = 1; t < KB_OTLP_TABLES; t++) {
		const struct table *table = &split->tables[t];

		for (size_t i = 0; i < table->nr; i++) {
			const struct row *row = &table->rows[i];

			if (row->number == UNUSED)
				continue;
			if (t == KB_OTLP_STRINGS)
				kb_out_bytes(split->out[2], row->data, row->size);
			else
				copy(split, t, kb_proto_reader(row->data, row->size), 2);
			kb_otlp_nest(split->out[1], t, split->out[2]);
		}
	}
	kb_otlp_nest(split->out[0], KB_OTLP_REQUEST_DICTIONARY, split->out[1]);
}

/* Packs split->out[0]. */
static int pack(struct kb_otlp_split *split, struct kb_otlp_request *part)
{
	size_t size;
	const void *data = kb_out_data(split->out[0], &size);
	void *packed;
	int error = kb_gzip_pack(data, size, &packed, &part->size);

	part->data = packed;
	return error;
}

static void count_part(const struct kb_otlp_split *split, struct kb_otlp_request *part)
{
	for (size_t i = 0; i < split->nr; i++) {
		if (!split->wanted[i])
			continue;
		part->profiles++;
		part->samples += split->profiles[i].samples;
		part->waits += split->profiles[i].waits;
		part->wait_ns += split->profiles[i].wait_ns;
	}
}

int kb_otlp_split_part(struct kb_otlp_split *split, const bool *wanted, struct kb_otlp_request *part)
{
	struct kb_proto_reader reader = kb_proto_reader(split->data, split->size);
	int ret = 0;

	*part = (struct kb_otlp_request){ .from = split->whole.from, .until = split->whole.until };
	split->wanted = wanted;
	forget_marks(split);
	/* row 0 of each table stays */
	for (unsigned int t = 1; t < KB_OTLP_TABLES && !ret; t++)
		ret = split->tables[t].nr ? mark_row(split, t, 0) : 0;
	ret = ret ?: mark(split, REQUEST, reader);
	if (ret)
		return ret;
	number_rows(split);
	split->next = 0;
	for (size_t i = 0; i < DEPTH; i++)
		split->out[i]->at = split->out[i]->buffer;
	copy(split, REQUEST, reader, 0);
	copy_dictionary(split);
	count_part(split, part);
	for (size_t i = 0; i < DEPTH; i++)
		ret = ret ?: kb_out_error(split->out[i]);
	return ret ?: pack(split, part);
}
