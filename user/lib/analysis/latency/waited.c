// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/waited.h"
#include "format/call_names.h"

#define PASSING_PORTS	32768	/* Linux gives such ones to who asks for none */
#define NAMED	(1ULL << 10)	/* in the second word of a key: the third one is a name */
#define OTHERS	(1ULL << 11)	/* ... it is the row of all others */

static bool is_file(uint8_t object)
{
	return object == KB_OBJECT_FILE || object == KB_OBJECT_DEVICE;
}

bool kb_waited_has_identity(uint8_t object)
{
	return object >= KB_OBJECT_FILE && object <= KB_OBJECT_RWSEM_WRITE;
}

bool kb_waited_is_held_up(const struct kb_header *header, const struct kb_names *names, const struct kb_event *event,
			  const struct kb_slice *slice, uint32_t *holder)
{
	const struct kb_object *object = &event->task_switch.object;

	*holder = kb_waited_is_lock(object->kind) ? kb_names_object_id(names, event, slice->task_id) : 0;
	return *holder || (object->kind && object->flags & KB_OBJECT_IOWAIT) ||
	       kb_state_letter(header, slice->prev_state) == KB_LETTER_DISK_SLEEP;
}

struct kb_waits_row kb_waited(const struct kb_names *names, const struct kb_tasks *tasks,
			      const struct kb_object *object, uint32_t task_id, uint64_t ticks)
{
	const struct kb_event event = {
		.type = KB_EVENT_TASK_SWITCH, .timestamp = ticks, .task_switch.object = *object };
	struct kb_waits_row row = {
		.object = object->kind,
		.iowait = object->kind && object->flags & KB_OBJECT_IOWAIT,
		.outside = kb_object_is_outside(object),
		.call = kb_names_call(names, &event),
		.name = kb_names_object(names, &event, task_id),
	};
	struct kb_task_hit hit;

	if (kb_waited_has_identity(row.object) || row.object == KB_OBJECT_FAULT)
		row.value = object->value;
	if (is_file(row.object))
		row.device = object->id;
	if (row.object == KB_OBJECT_FUTEX) {
		kb_tasks_find(tasks, task_id, ticks, &hit);
		row.pid = hit.tgid;
	}
	return row;
}

void kb_waited_unite(struct kb_waits_row *row, const struct kb_object *object, uint64_t key[KB_WAITED_KEY])
{
	if (!kb_waited_has_identity(row->object))
		row->value = 0;
	key[0] = is_file(row->object) ? row->device : row->pid;
	key[1] = row->object | (uint64_t)row->iowait << 8 | (uint64_t)row->outside << 9 |
		 (uint64_t)(row->object ? object->call : 0) << 16;
	key[2] = row->value;
	/* They share an inode. */
	if (row->object == KB_OBJECT_ANON && row->name) {
		key[1] |= NAMED;
		key[2] = (uintptr_t)row->name;
	}
}

void kb_waited_others(struct kb_waits_row *row, uint64_t key[KB_WAITED_KEY])
{
	*row = (struct kb_waits_row){ .task = row->task, .object = row->object, .others = true };
	key[0] &= ~(uint64_t)UINT32_MAX;
	key[1] = row->object | OTHERS;
	key[2] = 0;
}

const char *kb_waited_call(const struct kb_waits_row *row)
{
	return row->call ?: row->outside ? "[in no call]" : row->object ? "[another call]" : "[unknown]";
}

/* ---- what is the same in another run ---- */

/* The bytes at @at that are the number of a process, or a port that nobody chose. */
static size_t passing(uint8_t object, const char *at)
{
	const size_t digits = strspn(at + 1, "0123456789");
	const char *end = at + 1 + digits;

	if (!digits || (*end && *end != ' ' && *end != ','))
		return 0;
	if (object == KB_OBJECT_PIPE)
		return *at == ' ' ? digits + 1 : 0;
	return *at == ':' && strtoul(at + 1, NULL, 10) >= PASSING_PORTS ? digits + 1 : 0;
}

static void copy_lasting(const struct kb_waits_row *row, char *text, size_t size)
{
	size_t used = 0, skip;

	for (const char *at = row->name; *at && used + 1 < size; at += skip ?: 1) {
		skip = passing(row->object, at);
		if (!skip)
			text[used++] = *at;
	}
	text[used] = '\0';
}

/* The name of a file that is removed while it is open is most likely of this run only. */
static bool put_deleted(const char *path, char *text, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t length = strlen(path), behind = sizeof(deleted) - 1;
	const char *slash = strrchr(path, '/');

	if (!slash || length < behind || strcmp(path + length - behind, deleted) != 0)
		return false;
	snprintf(text, size, "a deleted file of %.*s", slash > path ? (int)(slash - path) : 1, path);
	return true;
}

static void put_lasting(const struct kb_waits_row *row, char *text, size_t size)
{
	static const char pipe[] = "pipe ";
	const char *kind = kb_object_name(row->object);

	*text = '\0';
	if (row->name && row->object == KB_OBJECT_PIPE) {
		memcpy(text, pipe, sizeof(pipe));
		copy_lasting(row, text + sizeof(pipe) - 1, size - sizeof(pipe) + 1);
	} else if (row->name && row->object == KB_OBJECT_SOCKET) {
		copy_lasting(row, text, size);
	} else if (row->name) {
		if (!put_deleted(row->name, text, size))
			snprintf(text, size, "%s", row->name);
	} else if (row->object == KB_OBJECT_FAULT) {
		snprintf(text, size, "page fault");
	} else if (row->object >= KB_OBJECT_FILE && row->object != KB_OBJECT_FUTEX && kind) {
		snprintf(text, size, "%s%s", row->object >= KB_OBJECT_MUTEX ? "Linux's " : "", kind);
	}
}

void kb_waited_lasting(const struct kb_waits_row *row, char text[KB_WAITED_TEXT])
{
	char what[KB_WAITED_TEXT - 64];

	put_lasting(row, what, sizeof(what));
	snprintf(text, KB_WAITED_TEXT, "%s%s%s%s", kb_waited_call(row), *what ? " " : "", what,
		 row->iowait ? " (disk)" : "");
}
