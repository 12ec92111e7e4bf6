// SPDX-License-Identifier: MIT
/*
 * A task that waits for long has no record any more when its buffer was overwritten. So who waits is kept
 * from one refresh to the next, and the records of the buffers are read on top of that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/time/death.h"
#include "base/pid_namespace.h"
#include "cli/base/decoder.h"
#include "cli/top/objects.h"
#include "record/recorder/proc_objects.h"

#define PATIENCE_MAX	3U		/* powers of 2 */
#define HELD_UP		100	/* a part of the refresh so large is not small */
#define PROCESSES_MAX	1024U		/* in which the ends of pipes are looked for */

struct waiting {
	uint64_t task;			/* the key */
	int64_t since;
	uint64_t ticks;			/* the same */
	struct kb_object object;	/* of no kind: it does not wait, or for nothing that is known */
	uint32_t holder;
	bool held_up;
	bool is_old;			/* known from an earlier refresh only */
};

void top_objects_init(struct top_objects *objects)
{
	kb_table_init(&objects->waiting, sizeof(struct waiting), 1);
	kb_table_init(&objects->rows, sizeof(struct top_object), KB_WAITED_KEY);
}

void top_objects_release(struct top_objects *objects)
{
	kb_table_release(&objects->waiting);
	kb_table_release(&objects->rows);
	kb_name_ids_release(&objects->comms);
	free(objects->found);
	free(objects->seen);
}

int top_objects_begin(struct top_objects *objects, struct kb_trace *trace, uint64_t since, int64_t from_ns)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, NULL);

	objects->names = kb_trace_names(trace, NULL);
	objects->header = kb_trace_header(trace);
	objects->seen = calloc((size_t)objects->header->max_cores + 1, sizeof(*objects->seen));
	objects->since = since;
	objects->from_ns = from_ns;
	objects->has_gap = false;
	if (!tasks || !objects->names || !objects->seen)
		return -ENOMEM;
	kb_name_ids_init(&objects->comms, tasks);
	/* Each copy of the buffers has the clock as it is known then. */
	for (uint32_t i = 0; i < objects->waiting.nr; i++) {
		struct waiting *waiting = kb_table_row(&objects->waiting, i);

		waiting->since = kb_barman_ns(kb_trace_barman(trace), waiting->ticks);
	}
	return 0;
}

/* ---- waits ---- */

/* Whether @task is one of this program, which waits for the next refresh. */
static bool is_own(const struct top_objects *objects, const struct waiting *waiting)
{
	struct kb_task_hit hit;

	kb_tasks_find(objects->comms.tasks, (uint32_t)waiting->task, waiting->ticks, &hit);
	return hit.tgid == (uint32_t)getpid() || hit.tgid == (uint32_t)cli_decoder_process();
}

static int count(struct top_objects *objects, const struct waiting *waiting, int64_t until, bool goes_on)
{
	const uint32_t task = (uint32_t)waiting->task;
	const struct kb_name_id *comm = kb_name_ids_find(&objects->comms, task, waiting->ticks);
	const int64_t from = waiting->since > objects->from_ns ? waiting->since : objects->from_ns;
	const uint64_t ns = (uint64_t)until - (uint64_t)waiting->since;
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row;
	struct top_object *to;

	if (!comm)
		return -ENOMEM;
	if (is_own(objects, waiting))
		return 0;
	row = kb_waited(objects->names, objects->comms.tasks, &waiting->object, task, waiting->ticks);
	kb_waited_unite(&row, &waiting->object, key);
	row.task = comm->name;
	key[0] |= (uint64_t)comm->id << 32;
	to = kb_table_get(&objects->rows, key);
	if (!to)
		return -ENOMEM;
	if (!to->waits++ || ns > to->longest_ns) {
		comm = waiting->holder ? kb_name_ids_find(&objects->comms, waiting->holder, waiting->ticks) : NULL;
		row.holder = comm ? waiting->holder : 0;
		row.holder_task = comm ? comm->name : NULL;
		to->row = row;
		to->id = waiting->object.id;
		to->tid = task;
		to->longest_ns = ns;
		to->held_up = waiting->held_up;
	}
	to->sum_ns += (uint64_t)until - (uint64_t)from;
	to->moves |= !goes_on || waiting->since >= objects->from_ns;
	to->nr_now += goes_on;
	if (goes_on && ns > to->now_ns)
		to->now_ns = ns;
	return 0;
}

/* The task of @slice runs. What is known of later waits is not undone by older records. */
static int end_wait(struct top_objects *objects, const struct kb_slice *slice)
{
	const uint64_t task = slice->task_id;
	struct waiting *waiting = kb_table_find(&objects->waiting, &task);
	int ret;

	if (!waiting || !waiting->object.kind || slice->start < waiting->since)
		return 0;
	ret = slice->start > objects->from_ns ? count(objects, waiting, slice->start, false) : 0;
	waiting->object.kind = KB_OBJECT_NONE;
	return ret;
}

static int begin_wait(struct top_objects *objects, const struct kb_event *event, const struct kb_slice *slice)
{
	const struct kb_object *object = &event->task_switch.object;
	const uint64_t task = slice->task_id;
	struct waiting *waiting = kb_table_find(&objects->waiting, &task);

	if (!waiting && !object->kind)
		return 0;
	if (!waiting)
		waiting = kb_table_get(&objects->waiting, &task);
	if (!waiting)
		return -ENOMEM;
	if (waiting->ticks > event->timestamp)
		return 0;
	*waiting = (struct waiting){ .task = task, .since = slice->end, .ticks = event->timestamp };
	if (kb_is_death(objects->header, slice->prev_state))
		return 0;
	waiting->object = *object;
	waiting->held_up = kb_waited_is_held_up(objects->header, objects->names, event, slice, &waiting->holder);
	return 0;
}

int top_objects_run(struct top_objects *objects, const struct kb_slice *slice)
{
	return slice->kind == KB_SLICE_RUN && slice->task_id ? end_wait(objects, slice) : 0;
}

int top_objects_add(struct top_objects *objects, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	if (event->core < objects->header->max_cores && !objects->seen[event->core]) {
		objects->seen[event->core] = true;
		objects->has_gap |= event->timestamp > objects->since;
	}
	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++) {
		const struct kb_slice *slice = &walk->slices[i];

		ret = top_objects_run(objects, slice);
		if (!ret && kb_waited_begins(event, slice))
			ret = begin_wait(objects, event, slice);
	}
	return ret;
}

/* ---- rows ---- */

static int compare(const void *left, const void *right)
{
	const struct top_object *a = left, *b = right;

	if (a->held_up != b->held_up)
		return a->held_up ? -1 : 1;
	if (a->moves != b->moves)
		return a->moves ? -1 : 1;
	if (a->sum_ns != b->sum_ns)
		return a->sum_ns > b->sum_ns ? -1 : 1;
	if (a->longest_ns != b->longest_ns)
		return a->longest_ns > b->longest_ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

int top_objects_finish(struct top_objects *objects, int64_t from, int64_t until)
{
	struct kb_table *rows = &objects->rows;

	objects->from_ns = from;
	for (uint32_t i = 0; i < objects->waiting.nr; i++) {
		struct waiting *waiting = kb_table_row(&objects->waiting, i);

		if (waiting->is_old && objects->has_gap)
			waiting->object.kind = KB_OBJECT_NONE;
		if (waiting->object.kind && waiting->since < until && count(objects, waiting, until, true))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < rows->nr; i++) {
		struct top_object *row = kb_table_row(rows, i);

		row->held_up &= row->sum_ns >= (uint64_t)(until - from) / HELD_UP;
	}
	if (rows->nr)
		qsort(rows->rows, rows->nr, rows->row_size, compare);
	return 0;
}

/* The processes of tasks that wait or waited, each once. */
static unsigned int list_processes(const struct top_objects *objects, uint32_t *processes)
{
	struct kb_task_hit hit;
	unsigned int nr = 0, k;

	for (uint32_t i = 0; i < objects->waiting.nr && nr < PROCESSES_MAX; i++) {
		const struct waiting *waiting = kb_table_row(&objects->waiting, i);

		kb_tasks_find(objects->comms.tasks, (uint32_t)waiting->task, waiting->ticks, &hit);
		for (k = 0; k < nr && processes[k] != hit.tgid; k++)
			;
		processes[k] = hit.tgid;
		nr += k == nr;
	}
	return nr;
}

static void find_names(struct top_objects *objects, struct top_object *rows, uint32_t nr, int64_t ns)
{
	uint32_t processes[PROCESSES_MAX];

	objects->found = calloc((size_t)nr + 1, sizeof(*objects->found));
	if (!objects->found)
		return;
	for (uint32_t i = 0; i < nr; i++)
		objects->found[i] = (struct kb_proc_object){
			.value = rows[i].row.value, .id = rows[i].id, .task = rows[i].tid, .kind = rows[i].row.object,
		};
	if (kb_proc_objects_name(objects->found, nr, processes, list_processes(objects, processes),
				 ns << objects->patience))
		objects->patience = 0;
	else if (objects->patience < PATIENCE_MAX)
		objects->patience++;
	for (uint32_t i = 0; i < nr; i++)
		if (*objects->found[i].name)
			rows[i].row.name = objects->found[i].name;
}

const struct top_object *top_objects_name(struct top_objects *objects, uint32_t most, int64_t ns, uint32_t *nr)
{
	struct top_object *rows = (struct top_object *)objects->rows.rows;

	*nr = objects->rows.nr < most ? objects->rows.nr : most;
	if (!kb_is_in_pid_namespace())
		find_names(objects, rows, *nr, ns);
	return rows;
}

/* Memory does not grow with the tasks that there ever were. */
int top_objects_end(struct top_objects *objects)
{
	const unsigned int patience = objects->patience;
	struct kb_table waiting;
	int ret = 0;

	kb_table_init(&waiting, sizeof(struct waiting), 1);
	for (uint32_t i = 0; i < objects->waiting.nr && !ret; i++) {
		const struct waiting *from = kb_table_row(&objects->waiting, i);
		struct waiting *to = from->object.kind ? kb_table_get(&waiting, &from->task) : NULL;

		ret = from->object.kind && !to ? -ENOMEM : 0;
		if (!to)
			continue;
		*to = *from;
		to->is_old = true;
	}
	top_objects_release(objects);
	*objects = (struct top_objects){ .waiting = waiting, .patience = patience };
	kb_table_init(&objects->rows, sizeof(struct top_object), KB_WAITED_KEY);
	return ret;
}
