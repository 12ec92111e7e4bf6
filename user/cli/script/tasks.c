// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "cli/script/tasks.h"

#define COMM_WIDTH	16

struct script_tasks *script_tasks_create(const struct kb_tasks *tasks, bool json)
{
	struct script_tasks *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->tasks = tasks;
	made->json = json;
	if (kb_out_memory(&made->out)) {
		free(made);
		return NULL;
	}
	return made;
}

void script_tasks_destroy(struct script_tasks *tasks)
{
	if (!tasks)
		return;
	for (size_t i = 0; i < SCRIPT_TASKS; i++)
		free(tasks->rows[i].bytes);
	kb_out_destroy(tasks->out);
	free(tasks);
}

/* A text begins and ends here, in the memory where texts are made. */
static void begin_text(const struct script_tasks *tasks, struct task_text *text)
{
	text->start = kb_out_count(tasks->out);
}

static void end_text(const struct script_tasks *tasks, struct task_text *text)
{
	text->length = kb_out_count(tasks->out) - text->start;
}

/* At most a line, which ends with a whole character. */
static void put_name(struct kb_out *out, const char *name)
{
	size_t length = strlen(name), used = 0, taken, size;
	char shown[4];

	if (length <= LINE_BYTES && kb_eight_all_plain(name, length)) {
		kb_out_bytes(out, name, length);
		return;
	}
	for (size_t i = 0; i < length; i += taken, used += size) {
		size = kb_utf8_shown_next(shown, name + i, length - i, &taken);
		if (used + size > LINE_BYTES)
			break;
		kb_out_bytes(out, shown, size);
	}
}

static void make_text(struct script_tasks *tasks, struct script_task *task, const char *name)
{
	struct kb_out *out = tasks->out;
	size_t length = strlen(name);

	begin_text(tasks, &task->head);
	begin_text(tasks, &task->comm);
	task->blanks = length < COMM_WIDTH ? COMM_WIDTH - length : 0;
	kb_out_printf(out, "%*s", (int)task->blanks, "");
	put_name(out, name);
	end_text(tasks, &task->comm);
	kb_out_printf(out, " %5u/%-5u ", task->tgid, task->task_id);
	end_text(tasks, &task->head);

	begin_text(tasks, &task->previous);
	kb_out_printf(out, "prev_comm=");
	put_name(out, name);
	kb_out_printf(out, " prev_pid=%u prev_state=", task->task_id);
	end_text(tasks, &task->previous);

	begin_text(tasks, &task->next);
	kb_out_printf(out, "next_comm=");
	put_name(out, name);
	kb_out_printf(out, " next_pid=%u", task->task_id);
	end_text(tasks, &task->next);

	begin_text(tasks, &task->about);
	kb_out_printf(out, "comm=");
	put_name(out, name);
	kb_out_printf(out, " pid=%u", task->task_id);
	end_text(tasks, &task->about);
}

static void make_members(struct script_tasks *tasks, const struct script_task *task,
			 const char *const keys[3], const char *name, struct task_text members[3])
{
	struct kb_json json = { .out = tasks->out, .comma = true };

	begin_text(tasks, &members[0]);
	kb_json_string(&json, keys[0], name);
	end_text(tasks, &members[0]);
	begin_text(tasks, &members[1]);
	kb_json_u64(&json, keys[1], task->tgid);
	end_text(tasks, &members[1]);
	begin_text(tasks, &members[2]);
	kb_json_u64(&json, keys[2], task->task_id);
	end_text(tasks, &members[2]);
}

static void make_json(struct script_tasks *tasks, struct script_task *task, const char *name)
{
	static const char *const keys[][3] = {
		{ "task", "pid", "tid" }, { "next_task", "next_pid", "next_tid" },
		{ "woken_task", "woken_pid", "woken_tid" }, { "moved_task", "moved_pid", "moved_tid" },
	};
	struct task_text *const all[] = {
		&task->all, &task->next_all, &task->woken_all, &task->moved_all,
	};
	struct task_text parts[3] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		begin_text(tasks, all[i]);
		make_members(tasks, task, keys[i], name, i ? parts : task->members);
		end_text(tasks, all[i]);
	}
}

/* The texts are made: copy them, and say where each is. */
static void keep(struct script_tasks *tasks, struct script_task *task)
{
	static const char nothing[LINE_SLACK];
	struct task_text *const texts[] = {
		&task->comm, &task->head, &task->previous, &task->next, &task->about,
		&task->members[0], &task->members[1], &task->members[2], &task->all,
		&task->next_all, &task->woken_all, &task->moved_all,
	};
	size_t size, i;
	const void *made = kb_out_data(tasks->out, &size);
	char *bytes = kb_out_error(tasks->out) ? NULL : calloc(1, size + LINE_SLACK);

	if (bytes)
		memcpy(bytes, made, size);
	free(task->bytes);
	task->bytes = bytes;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		texts[i]->text = bytes ? bytes + texts[i]->start : nothing;
		texts[i]->length = bytes ? texts[i]->length : 0;
	}
}

void script_tasks_fill(struct script_tasks *tasks, uint32_t task_id, uint64_t timestamp)
{
	struct script_task *task = &tasks->rows[script_tasks_place(task_id)];
	char *bytes = task->bytes, buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;
	const char *name;

	kb_tasks_find(tasks->tasks, task_id, timestamp, &hit);
	name = kb_tasks_name(tasks->tasks, task_id, timestamp, buffer);
	*task = (struct script_task){
		.used = true, .task_id = task_id, .tgid = hit.tgid,
		.since = hit.since, .until = hit.until, .bytes = bytes,
	};
	tasks->out->at = tasks->out->buffer;
	if (tasks->json)
		make_json(tasks, task, name);
	else
		make_text(tasks, task, name);
	keep(tasks, task);
}
