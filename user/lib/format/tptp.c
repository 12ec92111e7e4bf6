// SPDX-License-Identifier: MIT
/*
 * The tables of TPTP's messages, and the form-independent part of the reader. All knowledge
 * about messages is in tptp_tables.h. Both forms use it, so each message is defined once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tptp_codec.h"

#define KB_TPTP_MESSAGE(message, id, element) \
	static const struct kb_tptp_field element##_fields[] = {
#define KB_TPTP_FIELD(message, field, type, name, attribute, place) \
	{ #name, #attribute, KB_TPTP_TYPE_##type, place },
#define KB_TPTP_END(message) };
#include <kbarman/tptp_tables.h>

static const struct kb_tptp_table tables[TPTP_NR_TABLES] = {
#define KB_TPTP_MESSAGE(message, id, element) \
	{ id, KB_TPTP_##message##_FIELDS, #element, element##_fields },
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)
#define KB_TPTP_END(message)
#include <kbarman/tptp_tables.h>
};

unsigned int tptp_index(uint32_t id)
{
	/* 1 + the index of a table, by id - 1000 for data and by id for system messages. */
	static const uint8_t places[] = {
#define KB_TPTP_MESSAGE(message, id, element) \
		[id < KB_TPTP_FIRST_DATA ? id : id - KB_TPTP_FIRST_DATA + 3] = \
			TPTP_INDEX_##message + 1,
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)
#define KB_TPTP_END(message)
#include <kbarman/tptp_tables.h>
	};
	uint32_t place = id;

	if (id >= KB_TPTP_FIRST_DATA)
		place = id - KB_TPTP_FIRST_DATA + 3;
	else if (id >= 3)
		return TPTP_NR_TABLES;
	if (place >= sizeof(places) || !places[place])
		return TPTP_NR_TABLES;
	return places[place] - 1;
}

const struct kb_tptp_table *kb_tptp_table_at(unsigned int index)
{
	return index < TPTP_NR_TABLES ? &tables[index] : NULL;
}

const struct kb_tptp_table *kb_tptp_table(uint32_t id)
{
	return kb_tptp_table_at(tptp_index(id));
}

const struct kb_tptp_table *kb_tptp_table_by_name(const char *name, size_t length)
{
	for (unsigned int i = 0; i < TPTP_NR_TABLES; i++) {
		const char *candidate = tables[i].name;

		if (strlen(candidate) == length && !memcmp(candidate, name, length))
			return &tables[i];
	}
	return NULL;
}

void kb_tptp_message_init(struct kb_tptp_message *message, enum kb_tptp_id id)
{
	memset(message, 0, sizeof(*message));
	message->table = kb_tptp_table(id);
}

uint32_t kb_tptp_message_depth(const struct kb_tptp_message *message)
{
	const struct kb_tptp_table *table = message->table;

	/* String[] and Long[] must be the last two rows, behind stackDepth. */
	if (table->nr_fields < 3 ||
	    table->fields[table->nr_fields - 1].type != KB_TPTP_TYPE_LONGS)
		return 0;
	return message->values[table->nr_fields - 3].number;
}

static void plan_wire(struct tptp_plan *plan, unsigned int i)
{
	static const uint8_t sizes[] = {
		[KB_TPTP_TYPE_BYTE] = 1, [KB_TPTP_TYPE_INTEGER] = 4, [KB_TPTP_TYPE_LONG] = 8,
		[KB_TPTP_TYPE_TIME] = 8, [KB_TPTP_TYPE_STRING] = 1, [KB_TPTP_TYPE_STRINGS] = 0,
		[KB_TPTP_TYPE_LONGS] = 0,
	};

	plan->fixed += sizes[plan->type[i]];
	if (plan->type[i] < KB_TPTP_TYPE_LONG)
		plan->narrow[plan->nr_narrow++] = i;
	else if (plan->type[i] == KB_TPTP_TYPE_STRING)
		plan->text[plan->nr_strings++] = i;
	else if (plan->type[i] == KB_TPTP_TYPE_STRINGS)
		plan->arrays = true;
}

/* The order of attributes: those with a place first, then the others in the order of rows. */
static void plan_order(struct tptp_plan *plan)
{
	const struct kb_tptp_field *fields = plan->table->fields;
	unsigned int next;

	for (unsigned int i = 0; i < plan->nr; i++)
		if (fields[i].place) {
			plan->order[fields[i].place - 1] = i;
			plan->nr_placed++;
		}
	next = plan->nr_placed;
	for (unsigned int i = 0; i < plan->nr; i++)
		if (!fields[i].place)
			plan->order[next++] = i;
}

static void plan_prefixes(struct tptp_plan *plan)
{
	plan->element.length = snprintf(plan->element.text, TPTP_PREFIX_BYTES, "<%s",
					plan->table->name);
	plan->attributes = plan->element.length + strlen("/>\n");
	for (unsigned int k = 0; k < plan->nr; k++) {
		const char *attribute = plan->table->fields[plan->order[k]].attribute;

		plan->name_length[plan->order[k]] = strlen(attribute);
		plan->prefix[k].length = snprintf(plan->prefix[k].text, TPTP_PREFIX_BYTES,
						  " %s=\"", attribute);
		plan->attributes += plan->prefix[k].length + strlen("\"");
	}
}

void tptp_plans_init(struct tptp_plan plans[TPTP_NR_TABLES])
{
	memset(plans, 0, sizeof(*plans) * TPTP_NR_TABLES);
	for (unsigned int k = 0; k < TPTP_NR_TABLES; k++) {
		struct tptp_plan *plan = &plans[k];

		plan->table = &tables[k];
		plan->nr = tables[k].nr_fields;
		plan->fixed = TPTP_MESSAGE_BYTES;
		for (unsigned int i = 0; i < plan->nr; i++) {
			plan->type[i] = tables[k].fields[i].type;
			plan_wire(plan, i);
		}
		plan_order(plan);
		plan_prefixes(plan);
	}
}

int tptp_arrays(struct kb_tptp *tptp)
{
	if (!tptp->strings)
		tptp->strings = calloc(KB_TPTP_MAX_DEPTH, sizeof(*tptp->strings));
	if (!tptp->longs)
		tptp->longs = calloc(KB_TPTP_MAX_DEPTH, sizeof(*tptp->longs));
	return tptp->strings && tptp->longs ? 0 : -ENOMEM;
}

/* A reader without an input. */
static struct kb_tptp *create(struct kb_error *err)
{
	struct kb_tptp *tptp = calloc(1, sizeof(*tptp));

	if (!tptp) {
		kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for a TPTP reader");
		return NULL;
	}
	tptp_plans_init(tptp->plans);
	tptp->info.frequency = KB_TPTP_FREQUENCY_NS;
	kb_in_memory(&tptp->in, "", 0);
	return tptp;
}

static int open_form(struct kb_tptp **out, struct kb_tptp *tptp, struct kb_error *err)
{
	int ret = tptp_binary_open(tptp, err);

	if (ret == -ENODATA)
		ret = tptp_xml_open(tptp, err);
	if (ret) {
		kb_tptp_close(tptp);
		return ret;
	}
	*out = tptp;
	return 0;
}

int kb_tptp_open(struct kb_tptp **out, const char *path, struct kb_error *err)
{
	struct kb_tptp *tptp = create(err);
	int ret;

	*out = NULL;
	if (!tptp)
		return -ENOMEM;
	ret = kb_in_open(&tptp->in, path, err);
	if (ret) {
		kb_tptp_close(tptp);
		return ret;
	}
	return open_form(out, tptp, err);
}

int kb_tptp_open_memory(struct kb_tptp **out, const void *data, size_t size, struct kb_error *err)
{
	struct kb_tptp *tptp = create(err);

	*out = NULL;
	if (!tptp)
		return -ENOMEM;
	kb_in_memory(&tptp->in, data, size);
	return open_form(out, tptp, err);
}

void kb_tptp_close(struct kb_tptp *tptp)
{
	if (!tptp)
		return;
	kb_in_close(&tptp->in);
	free(tptp->strings);
	free(tptp->longs);
	if (tptp->xml)
		free(tptp->xml->scratch);
	free(tptp->xml);
	free(tptp);
}

int tptp_damage(struct kb_error *err, uint64_t offset, const char *format, ...)
{
	char what[192];
	va_list args;

	if (!err)
		return -EBADMSG;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return kb_error_set(err, -EBADMSG, offset, "%s, at offset %" PRIu64, what, offset);
}

int tptp_cannot_read(struct kb_tptp *tptp, struct kb_error *err)
{
	tptp->finished = true;
	return kb_error_set(err, tptp->in.error, kb_in_offset(&tptp->in), "can't read: %s",
			    strerror(-tptp->in.error));
}

const struct kb_tptp_info *kb_tptp_info(const struct kb_tptp *tptp)
{
	return &tptp->info;
}

int kb_tptp_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err)
{
	int ret;

	if (tptp->pending.code) {
		ret = tptp->pending.code;
		if (err)
			*err = tptp->pending;
		tptp->pending.code = 0;
		return ret;
	}
	if (tptp->finished)
		return 0;
	ret = tptp->xml ? tptp_xml_next(tptp, message, err) : tptp_binary_next(tptp, message, err);
	if (ret > 0)
		tptp->info.messages++;
	return ret;
}

int64_t kb_tptp_ns(const struct kb_tptp *tptp, int64_t ticks)
{
	int64_t seconds, ns;
	uint32_t rest;

	seconds = tptp_split_ticks(ticks, tptp->info.frequency, &rest);
	/* -1 s + 0.5 s must not overflow if -0.5 s does not. */
	if (seconds < 0) {
		seconds++;
		if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) ||
		    __builtin_sub_overflow(ns, INT64_C(1000000000) - rest, &ns))
			return INT64_MIN;
		return ns;
	}
	if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) ||
	    __builtin_add_overflow(ns, rest, &ns))
		return INT64_MAX;
	return ns;
}
