// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/facts/object_names.h"
#include "format/call_names.h"

#define NAMES_MAX	65536U		/* recorders write fewer; a file may claim more */
#define KEY_WORDS	3

struct row {
	uint64_t key[KEY_WORDS];
	const char *name;
};

const char kb_eventpoll[] = "eventpoll";

void kb_object_names_init(struct kb_object_names *names)
{
	kb_table_init(&names->rows, sizeof(struct row), KEY_WORDS);
	names->anon[0] = kb_eventpoll;
}

void kb_object_names_release(struct kb_object_names *names)
{
	kb_table_release(&names->rows);
}

/* The first one of equal names; NULL: there are too many. */
static const char *unite(struct kb_object_names *names, const char *name)
{
	for (unsigned int i = 0; i < KB_ANON_NAMES; i++) {
		if (!names->anon[i])
			names->anon[i] = name;
		if (strcmp(names->anon[i], name) == 0)
			return names->anon[i];
	}
	return NULL;
}

int kb_object_names_take(struct kb_object_names *names, const char *fact)
{
	uint32_t kind, id, task;
	struct row *row;
	uint64_t value;
	int behind = 0;

	if (sscanf(fact, "%" SCNu32 ".%" SCNu64 ".%" SCNu32 ".%" SCNu32 "=%n", &kind, &value, &id, &task, &behind) != 4 ||
	    !behind || !fact[behind] || names->rows.nr >= NAMES_MAX)
		return 0;
	row = kb_table_get(&names->rows, (uint64_t[]){ value, (uint64_t)kind << 32 | id, task });
	if (!row)
		return -ENOMEM;
	if (!row->name)
		row->name = kind == KB_OBJECT_ANON ? unite(names, fact + behind) : fact + behind;
	return 0;
}

const char *kb_object_names_find(const struct kb_object_names *names, const struct kb_event *event, uint32_t task_id)
{
	const struct kb_object *object = kb_event_object(event);
	const struct row *row;
	bool has_id;

	if (!object || object->kind < KB_OBJECT_FILE || object->kind > KB_OBJECT_ANON)
		return NULL;
	has_id = object->kind <= KB_OBJECT_DEVICE || object->kind == KB_OBJECT_ANON;
	row = kb_table_find(&names->rows, (uint64_t[]){
		object->value,
		(uint64_t)object->kind << 32 | (has_id ? object->id : 0),
		object->kind == KB_OBJECT_ANON ? task_id : 0,
	});
	return row ? row->name : NULL;
}

/* "tcp 127.0.0.1:80", or what is behind "-> ": the length of its address without the port. */
static const char *address_of(const char *end, const char *stop, size_t *length)
{
	const char *port = memrchr(end, ':', (size_t)(stop - end));

	*length = port ? (size_t)(port - end) : 0;
	return end;
}

bool kb_object_names_is_local(const char *name)
{
	static const char arrow[] = " -> ", loopback[] = "127.";
	const char *own = name ? strchr(name, ' ') : NULL, *other = own ? strstr(own, arrow) : NULL;
	size_t own_length, other_length;

	if (!other)
		return false;
	own = address_of(own + 1, other, &own_length);
	other += sizeof(arrow) - 1;
	other = address_of(other, other + strlen(other), &other_length);
	if (own_length && own_length == other_length && memcmp(own, other, own_length) == 0)
		return true;
	return strncmp(own, loopback, sizeof(loopback) - 1) == 0 && strncmp(other, loopback, sizeof(loopback) - 1) == 0;
}
