// SPDX-License-Identifier: MIT
/*
 * The tables of TPTP's messages, and what the readers of both forms need. All knowledge about
 * messages is in tptp_tables.h. Both forms use it, so each message is defined once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tptp/codec.h"

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

	/* String[] and Long[] must be the last two rows, after stackDepth. */
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
