// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "analysis/facts/end.h"
#include "analysis/latency/waited.h"
#include "analysis/report/last.h"
#include "analysis/time/death.h"
#include "base/table.h"

#define SECOND	1000000000

struct ran {
	uint64_t key;			/* CPU and task */
	struct kb_last_task row;
};

struct off {
	uint64_t task;			/* the key */
	struct kb_last_task row;	/* it ran last: it runs */
	struct kb_object object;
	uint64_t gaps;			/* before that; if there were others since, nobody knows */
};

struct kb_last {
	const struct kb_header *header;
	const struct kb_names *names;
	const struct kb_tasks *tasks;
	int64_t from, until;
	struct kb_table ran;		/* struct ran: in that second */
	struct kb_table off;		/* struct off: of all tasks */
	struct kb_last_task *rows;
	uint64_t gaps;			/* so far, of all CPUs */
};

int kb_last_create(struct kb_last **out, struct kb_trace *trace)
{
	const struct kb_barman *barman = kb_trace_barman(trace);
	const struct kb_header *header = kb_trace_header(trace);
	struct kb_last *last;
	struct kb_end end;

	*out = NULL;
	if (!kb_end_get(barman, &end))
		return 0;
	last = calloc(1, sizeof(*last));
	if (!last)
		return -ENOMEM;
	last->header = header;
	last->names = kb_trace_names(trace, NULL);
	last->tasks = kb_trace_tasks(trace, NULL);
	last->until = kb_barman_ns(barman, end.ticks ?: header->last_timestamp);
	last->from = last->until > INT64_MIN + SECOND ? last->until - SECOND : INT64_MIN;
	kb_table_init(&last->ran, sizeof(struct ran), 1);
	kb_table_init(&last->off, sizeof(struct off), 1);
	*out = last;
	return last->names && last->tasks ? 0 : -ENOMEM;
}

void kb_last_destroy(struct kb_last *last)
{
	if (!last)
		return;
	kb_table_release(&last->ran);
	kb_table_release(&last->off);
	free(last->rows);
	free(last);
}

/* The task of @slice ran. */
static int add_run(struct kb_last *last, const struct kb_slice *slice)
{
	const bool runs = slice->how == KB_END_CAPTURE;
	const int64_t end = runs && slice->end < last->until ? last->until : slice->end;
	const uint64_t task = slice->task_id, key = (uint64_t)slice->core << 32 | task;
	struct off *off = kb_table_find(&last->off, &task);
	struct ran *ran;

	/* CPUs are read one after the other: what is known of later is not undone. */
	if (off && off->row.since <= slice->start)
		off->row.state = KB_LAST_RAN;
	if (end <= last->from || slice->start >= last->until)
		return 0;
	ran = kb_table_get(&last->ran, &key);
	if (!ran)
		return -ENOMEM;
	ran->row.core = slice->core;
	ran->row.task_id = slice->task_id;
	ran->row.ran_ns += (uint64_t)((end < last->until ? end : last->until) -
				      (slice->start > last->from ? slice->start : last->from));
	if (runs) {
		ran->row.state = KB_LAST_RUNS;
		ran->row.since = slice->start;
	}
	return 0;
}

int kb_last_slice(struct kb_last *last, const struct kb_slice *slice)
{
	last->gaps += slice->kind == KB_SLICE_LOST;
	return slice->has_task && slice->kind != KB_SLICE_LOST ? add_run(last, slice) : 0;
}

/* The task of @slice, which ends with the switch @event, is on no CPU from then on. */
static int leave(struct kb_last *last, const struct kb_event *event, const struct kb_slice *slice)
{
	const uint64_t task = slice->task_id;
	struct off *off = kb_table_get(&last->off, &task);
	struct kb_last_task *row = off ? &off->row : NULL;

	if (!row)
		return -ENOMEM;
	if (row->ticks > event->timestamp)
		return 0;
	*row = (struct kb_last_task){ .core = slice->core, .task_id = slice->task_id, .since = slice->end,
				      .ticks = event->timestamp };
	off->gaps = last->gaps;
	if (slice->how == KB_END_PREEMPTED) {
		row->state = KB_LAST_RUNNABLE;
	} else if (!kb_is_death(last->header, slice->prev_state)) {
		off->object = event->task_switch.object;
		row->state = KB_LAST_WAITS;
		row->held_up = kb_waited_is_held_up(last->header, last->names, event, slice, &row->holder);
	}
	return 0;
}

static int wake(struct kb_last *last, const struct kb_walk *walk, bool is_new)
{
	const struct kb_event *event = &walk->event;
	const uint64_t task = event->custom_counter.id;
	struct off *off = is_new ? kb_table_get(&last->off, &task) : kb_table_find(&last->off, &task);

	if (!off)
		return is_new ? -ENOMEM : 0;
	if ((!is_new && (off->row.state != KB_LAST_WAITS || off->gaps != last->gaps)) ||
	    off->row.ticks > event->timestamp)
		return 0;
	off->row = (struct kb_last_task){ .state = KB_LAST_RUNNABLE, .core = event->custom_counter.cpu,
					  .task_id = event->custom_counter.id, .since = walk->ns,
					  .ticks = event->timestamp };
	off->gaps = last->gaps;
	return 0;
}

int kb_last_add(struct kb_last *last, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++) {
		const struct kb_slice *slice = &walk->slices[i];

		ret = kb_last_slice(last, slice);
		if (!ret && event->type == KB_EVENT_TASK_SWITCH && slice->kind == KB_SLICE_RUN && slice->has_task &&
		    slice->task_id)
			ret = leave(last, event, slice);
	}
	if (!ret && event->type == KB_EVENT_CUSTOM_COUNTER &&
	    (event->custom_counter.what == KB_WHAT_WAKING || event->custom_counter.what == KB_WHAT_WAKING_NEW))
		ret = wake(last, walk, event->custom_counter.what == KB_WHAT_WAKING_NEW);
	return ret;
}

/* ---- rows ---- */

/* Of waits, those come first that somebody or something holds up, then those that began in that second. */
static int rank(const struct kb_last_task *row)
{
	return row->state != KB_LAST_WAITS ? 0 : row->held_up ? 1 : row->is_older ? 3 : 2;
}

static int compare(const void *left, const void *right)
{
	const struct kb_last_task *a = left, *b = right;

	if (a->core != b->core)
		return a->core > b->core ? 1 : -1;
	if (a->state != b->state)
		return a->state > b->state ? 1 : -1;
	if (rank(a) != rank(b))
		return rank(a) - rank(b);
	if (a->ran_ns != b->ran_ns)
		return a->ran_ns > b->ran_ns ? -1 : 1;
	if (a->since != b->since)
		return a->since > b->since ? 1 : -1;
	return (a->task_id > b->task_id) - (a->task_id < b->task_id);
}

/* How many tasks wait for what each one holds. Returns 0 or -ENOMEM. */
static int count_held(struct kb_last_task *rows, uint32_t nr)
{
	struct held { uint64_t task; uint64_t waits; } *held = NULL;
	struct kb_table holders;
	uint64_t task;
	bool all = true;

	kb_table_init(&holders, sizeof(*held), 1);
	for (uint32_t i = 0; i < nr && all; i++) {
		if (rows[i].state != KB_LAST_WAITS || !rows[i].holder)
			continue;
		task = rows[i].holder;
		held = kb_table_get(&holders, &task);
		all = held;
		if (held)
			held->waits++;
	}
	for (uint32_t i = 0; i < nr && all; i++) {
		task = rows[i].task_id;
		held = kb_table_find(&holders, &task);
		rows[i].holds_up = held ? (uint32_t)held->waits : 0;
	}
	kb_table_release(&holders);
	return all ? 0 : -ENOMEM;
}

int kb_last_finish(struct kb_last *last, struct kb_last_second *second)
{
	uint32_t nr = 0;

	last->rows = calloc((size_t)last->ran.nr + last->off.nr + 1, sizeof(*last->rows));
	if (!last->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < last->ran.nr; i++)
		last->rows[nr++] = ((const struct ran *)kb_table_row(&last->ran, i))->row;
	for (uint32_t i = 0; i < last->off.nr; i++) {
		const struct off *off = kb_table_row(&last->off, i);
		struct kb_last_task *row = &last->rows[nr];

		if (off->row.state == KB_LAST_RAN || off->gaps != last->gaps || off->row.since > last->until)
			continue;
		nr++;
		*row = off->row;
		row->is_older = row->since < last->from;
		if (row->state == KB_LAST_WAITS)
			row->object = kb_waited(last->names, last->tasks, &off->object, row->task_id, row->ticks);
	}
	if (count_held(last->rows, nr))
		return -ENOMEM;
	qsort(last->rows, nr, sizeof(*last->rows), compare);
	*second = (struct kb_last_second){ last->from, last->until, last->rows, nr };
	return 0;
}
