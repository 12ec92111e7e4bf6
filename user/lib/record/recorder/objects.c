// SPDX-License-Identifier: MIT
/*
 * Names of what tasks waited for, as facts:
 *
 *	kbarman.object.KIND.VALUE.ID.TASK=NAME
 *
 * The numbers are those of struct bm_kbarman_object, but for ID, which is 0 unless it is a device, and
 * TASK, which is 0 unless the descriptor is what says which object it is: one of those that have no place
 * in a file system, which share an inode.
 *
 * The recorder sees what tasks wait for when the records pass, and looks for names behind it, each time for
 * a few objects and a short time. A task that has ended is not asked any more. Anybody may choose
 * names, so they have a room of their own in the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/event.h>

#include "base/clock.h"
#include "base/table.h"
#include "record/recorder/inside.h"
#include "record/recorder/proc_objects.h"

#define KNOWN_MAX	16384U		/* objects that are remembered */
#define ASKED_MAX	256U		/* ... that are looked for at once, */
#define LOOK_NS		(20 * KB_NS_PER_MS)	/* in that CPU time, */
#define LOOK_MAX_NS	(8 * LOOK_NS)	/* or in more, as that was too short, */
#define REST		20		/* and then not for so many times as long */
#define TRIES		5U		/* other tasks may be able to tell */
#define PROCESSES_MAX	1024U		/* that may have the other end of a pipe */

struct known {
	uint64_t value, kind_and_id, task;	/* the key */
	uint64_t tries;			/* TRIES: it has a name, or none that can be found */
	bool is_asked;
};

struct recorder_objects {
	struct kb_table known;
	struct kb_proc_object asked[ASKED_MAX];
	uint32_t rows[ASKED_MAX];	/* of those */
	unsigned int nr_asked;
	int64_t look_ns, rests_until;
	uint64_t room;			/* bytes of strings that are left */
	bool is_full;			/* there are more objects, or longer names */
	uint32_t running[];		/* by CPU: the task */
};

int recorder_objects_begin(struct kb_recorder *recorder)
{
	recorder->objects = calloc(1, sizeof(*recorder->objects) +
				   recorder->nr_cpus * sizeof(*recorder->objects->running));
	if (!recorder->objects)
		return -ENOMEM;
	recorder->objects->look_ns = LOOK_NS;
	recorder->objects->room = OBJECT_STRING_BYTES;
	kb_table_init(&recorder->objects->known, sizeof(struct known), 3);
	return 0;
}

void recorder_objects_destroy(struct kb_recorder *recorder)
{
	if (!recorder->objects)
		return;
	kb_table_release(&recorder->objects->known);
	free(recorder->objects);
}

/* ---- what passes ---- */

/* @task waits for @object, or wakes by it: its name is to be looked for, if that is new and there is room. */
static void ask(struct recorder_objects *o, uint32_t task, const struct bm_kbarman_object *object)
{
	bool has_device = object->kind <= KB_OBJECT_DEVICE, is_anon = object->kind == KB_OBJECT_ANON;
	uint64_t key[3] = { object->value, (uint64_t)object->kind << 32 | (has_device || is_anon ? object->id : 0),
			    is_anon ? task : 0 };
	struct known *known = kb_table_find(&o->known, key);

	if (!known && o->known.nr < KNOWN_MAX)
		known = kb_table_get(&o->known, key);
	o->is_full |= !known;
	if (!known || known->is_asked || known->tries == TRIES)
		return;
	known->is_asked = true;
	o->rows[o->nr_asked] = (uint32_t)((size_t)((char *)known - o->known.rows) / o->known.row_size);
	o->asked[o->nr_asked++] = (struct kb_proc_object){
		.value = object->value, .id = object->id, .task = task, .kind = object->kind,
	};
}

/* The object of a task switch, and the task that waits; NULL: it has none. */
static const void *object_of_switch(struct recorder_objects *o, const struct bm_protocol_task_switch *record,
				    size_t length, uint32_t *task)
{
	if (length < sizeof(*record))
		return NULL;
	*task = o->running[record->header.core];
	o->running[record->header.core] = record->task_id;
	return record->flags & BM_TASK_SWITCH_OBJECT && *task &&
	       length >= sizeof(*record) + sizeof(struct bm_kbarman_object) ?
	       (const char *)record + length - sizeof(struct bm_kbarman_object) : NULL;
}

/* The same of a wakeup, and the task that wakes. */
static const void *object_of_wakeup(const struct bm_protocol_custom_counter *record, size_t length, uint32_t *task)
{
	const struct bm_kbarman_detail *detail = (const void *)(record + 1);

	if (length < sizeof(*record) + sizeof(*detail) + sizeof(struct bm_kbarman_object) ||
	    (detail->what != BM_KBARMAN_WAKING && detail->what != BM_KBARMAN_WAKING_NEW))
		return NULL;
	*task = record->task_id;
	return detail + 1;
}

void recorder_objects_see(struct kb_recorder *recorder, const void *data, size_t length)
{
	const struct bm_protocol_record_header *header = data;
	struct recorder_objects *o = recorder->objects;
	struct bm_kbarman_object object;
	const void *at = NULL;
	uint32_t task = 0;

	if (header->core >= recorder->nr_cpus)
		return;
	if (header->record_type == BM_RECORD_TASK_SWITCH)
		at = object_of_switch(o, data, length, &task);
	else if (header->record_type == BM_RECORD_CUSTOM_COUNTER)
		at = object_of_wakeup(data, length, &task);
	if (!at || o->nr_asked == ASKED_MAX)
		return;
	memcpy(&object, at, sizeof(object));
	if (object.kind >= KB_OBJECT_FILE && object.kind <= KB_OBJECT_ANON)
		ask(o, task, &object);
}

void recorder_objects_see_run(struct kb_recorder *recorder, const struct kb_raw_run *run)
{
	const char *at = run->blocks, *end = at + run->bytes;

	while (at < end) {
		bm_uintptr length = *(const bm_uintptr *)(const void *)at;

		recorder_objects_see(recorder, at + sizeof(length), length);
		at += sizeof(length) + length;
	}
}

/* ---- names ---- */

/* Whether a task waits for a pipe that is looked for. */
static bool waits_for_pipe(const struct recorder_objects *o, uint32_t task)
{
	for (unsigned int i = 0; i < o->nr_asked; i++)
		if (o->asked[i].kind == KB_OBJECT_PIPE && o->asked[i].task == task)
			return true;
	return false;
}

/*
 * Adds those processes of the session's table that have a task which waits for a pipe, or the others: the newest
 * first, each once. Returns how many there are then.
 */
static unsigned int add_processes(const struct kb_recorder *recorder, uint32_t *processes, unsigned int nr, bool wait)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t row = kb_mapped_count(m->nr_tasks);
	unsigned int i;

	if (row > m->header->config_constants.max_task_infos)
		row = m->header->config_constants.max_task_infos;
	while (row-- && nr < PROCESSES_MAX) {
		struct bm_kbarman_task fact = recorder_task_fact(recorder, row);

		if (fact.task_id == KBARMAN_NO_TASK || !fact.tgid || fact.exit_timestamp ||
		    !(wait ? waits_for_pipe(recorder->objects, fact.task_id) : fact.tgid == fact.task_id))
			continue;
		for (i = 0; i < nr && processes[i] != fact.tgid; i++)
			;
		processes[i] = fact.tgid;
		nr += i == nr;
	}
	return nr;
}

/* Writes the fact of an object. */
static int put(struct kb_recorder *recorder, const struct known *known, const char *name)
{
	struct recorder_objects *o = recorder->objects;
	char key[96];
	uint64_t bytes;
	int ret;

	bytes = (uint64_t)snprintf(key, sizeof(key), "object.%" PRIu64 ".%" PRIu64 ".%" PRIu32 ".%" PRIu64,
				   known->kind_and_id >> 32, known->value, (uint32_t)known->kind_and_id,
				   known->task) + strlen(name) + sizeof("kbarman.=");
	ret = bytes > o->room ? -ENOSPC : kb_barman_writer_fact(recorder->writer, key, name);
	if (!ret)
		o->room -= bytes;
	o->is_full |= ret == -ENOSPC;
	return ret == -ENOSPC ? 0 : ret;
}

static int look(struct kb_recorder *recorder)
{
	struct recorder_objects *o = recorder->objects;
	int64_t began = kb_clock_ns(CLOCK_THREAD_CPUTIME_ID), took;
	unsigned int nr_asked = o->nr_asked, nr;
	uint32_t processes[PROCESSES_MAX];
	bool is_done;
	int ret = 0;

	nr = add_processes(recorder, processes, 0, true);
	if (nr)
		nr = add_processes(recorder, processes, nr, false);
	is_done = kb_proc_objects_name(o->asked, nr_asked, processes, nr, o->look_ns);
	o->look_ns = is_done ? LOOK_NS : o->look_ns < LOOK_MAX_NS ? 2 * o->look_ns : LOOK_MAX_NS;
	o->nr_asked = 0;
	for (unsigned int i = 0; i < nr_asked && !ret; i++) {
		struct known *known = kb_table_row(&o->known, o->rows[i]);
		const char *name = o->asked[i].name;

		known->tries = *name ? TRIES : known->tries + 1;
		ret = *name ? put(recorder, known, name) : 0;
		known->is_asked = !is_done && known->tries < TRIES;
		if (!known->is_asked)
			continue;
		o->asked[o->nr_asked] = o->asked[i];
		o->rows[o->nr_asked++] = o->rows[i];
	}
	took = kb_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	o->rests_until = kb_clock_ns(CLOCK_MONOTONIC) + REST * took;
	return ret;
}

int recorder_objects_look(struct kb_recorder *recorder, bool last, struct kb_error *err)
{
	struct recorder_objects *o = recorder->objects;
	int ret = 0;

	if (o && o->nr_asked && (last || kb_clock_ns(CLOCK_MONOTONIC) >= o->rests_until))
		ret = look(recorder);
	if (!ret && last && o && o->is_full)
		ret = recorder_text_fact(recorder, "objects_unnamed", "1");
	return ret ? recorder_write_failed(err, ret) : 0;
}
