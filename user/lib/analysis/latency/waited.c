// SPDX-License-Identifier: MIT
/* What an object says that a task waits for. */
#include <kbarman/names.h>

#include "analysis/latency/waited.h"
#include "format/call_names.h"

static bool is_file(uint8_t object)
{
	return object == KB_OBJECT_FILE || object == KB_OBJECT_DEVICE;
}

bool kb_waited_has_identity(uint8_t object)
{
	return object >= KB_OBJECT_FILE && object <= KB_OBJECT_RWSEM_WRITE;
}

struct kb_waits_row kb_waited(struct kb_trace *trace, const struct kb_object *object, uint32_t task_id, uint64_t ticks)
{
	const struct kb_event event = {
		.type = KB_EVENT_TASK_SWITCH, .timestamp = ticks, .task_switch.object = *object };
	const struct kb_names *names = kb_trace_names(trace, NULL);
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
		kb_tasks_find(kb_trace_tasks(trace, NULL), task_id, ticks, &hit);
		row.pid = hit.tgid;
	}
	return row;
}
