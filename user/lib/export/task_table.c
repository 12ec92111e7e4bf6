// SPDX-License-Identifier: MIT
/* A name is identified by its place in the capture's strings, so no texts are compared. */
#include <errno.h>
#include <stdio.h>

#include "export/label.h"
#include "export/task_table.h"

void kb_task_table_init(struct kb_task_table *ids, const struct kb_trace *trace)
{
	*ids = (struct kb_task_table) {
		.names = trace->names,
		.strings = kb_trace_header(trace)->strings,
		.length = kb_trace_header(trace)->string_table_length,
	};
	kb_table_init(&ids->rows, sizeof(struct kb_task_id), 2);
}

void kb_task_table_release(struct kb_task_table *ids)
{
	kb_table_release(&ids->rows);
}

int64_t kb_task_table_find(struct kb_task_table *ids, uint32_t task_id, uint64_t timestamp)
{
	const struct kb_task_name *name = kb_names_task(ids->names, task_id, timestamp);
	uint64_t at = (uintptr_t)name->name.data - (uintptr_t)ids->strings;
	uint64_t key[2] = { task_id, at < ids->length ? at : UINT64_MAX };
	struct kb_task_id *row = kb_table_get(&ids->rows, key);

	if (!row)
		return -ENOMEM;
	if (!row->name.data) {
		row->tgid = name->tgid;
		row->name = at < ids->length ? name->name : kb_text(NULL);
	}
	return ((char *)row - ids->rows.rows) / ids->rows.row_size;
}

size_t kb_task_label(const struct kb_task_table *ids, uint32_t i, char label[KB_TASK_LABEL])
{
	const struct kb_task_id *task = kb_task_id(ids, i);

	if (task->name.length)
		return kb_label(label, KB_TASK_LABEL, task->name.data, task->name.length, false);
	if (!task->key[0])
		return (size_t)snprintf(label, KB_TASK_LABEL, "idle");
	return (size_t)snprintf(label, KB_TASK_LABEL, "task %llu", (unsigned long long)task->key[0]);
}
