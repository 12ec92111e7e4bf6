// SPDX-License-Identifier: MIT
#include "analysis/latency/waited.h"
#include "format/call_names.h"

#define NAMED	(1ULL << 10)	/* in the second word of a key: the third one is a name */

static bool is_file(uint8_t object)
{
	return object == KB_OBJECT_FILE || object == KB_OBJECT_DEVICE;
}

bool kb_waited_has_identity(uint8_t object)
{
	return object >= KB_OBJECT_FILE && object <= KB_OBJECT_RWSEM_WRITE;
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
