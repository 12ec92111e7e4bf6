// SPDX-License-Identifier: MIT
/* What each CPU did when, and the waits between the runs of a task. */
#include <errno.h>

#include "analysis/time/sched.h"
#include "base/table.h"
#include "query/query_put.h"
#include "query/walks.h"

/* ---- slices ---- */

static const struct kb_slice *slice_of(const struct query_walk *walk)
{
	const struct kb_slice *last = walk->state;

	return walk->behind ? last : &walk->trace->walk.slices[walk->number];
}

static int slices_rows(struct query_walk *walk)
{
	return (int)walk->trace->walk.nr_slices;
}

static int slices_rest(struct query_walk *walk)
{
	return kb_trace_end(walk->trace, walk->state);
}

/* A task has the name of the end of its slice, as in the report. */
static void slices_place(struct query_walk *walk)
{
	const struct kb_slice *slice = slice_of(walk);

	walk->row = (struct query_row){
		.ticks = walk->behind ? walk->file->header->last_timestamp : walk->event->timestamp,
		.at = slice->start,
		.core = slice->core,
		.task_id = slice->task_id,
		.has_task = slice->has_task && slice->kind != KB_SLICE_LOST,
	};
}

static void slices_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	static const char *const kinds[] = {
		[KB_SLICE_RUN] = "run", [KB_SLICE_IDLE] = "idle", [KB_SLICE_LOST] = "lost",
	};
	const struct kb_slice *slice = slice_of(walk);

	switch (i) {
	case QUERY_slices_duration_ns:
		query_put_u64(context, (uint64_t)slice->end - (uint64_t)slice->start);
		break;
	case QUERY_slices_end_ns:
		query_put_i64(context, slice->end);
		break;
	case QUERY_slices_kind:
		query_put_text(context, kinds[slice->kind]);
		break;
	case QUERY_slices_ended:
		QUERY_PUT_WORD(context, runs, ended, slice->how);
		break;
	case QUERY_slices_idle_state:
	case QUERY_slices_state:
		if (slice->kind == KB_SLICE_IDLE)
			query_put_i64(context, slice->idle_state);
		break;
	case QUERY_slices_idle_state_name:
	case QUERY_slices_state_name:
		if (slice->kind == KB_SLICE_IDLE)
			query_put_kb_text(context, kb_idle_states_name(&walk->file->states, slice->core,
								       slice->idle_state));
		break;
	case QUERY_slices_next_tid:
		if (slice->how == KB_END_PREEMPTED || slice->how == KB_END_BLOCKED)
			query_put_u64(context, slice->next_task);
		break;
	case QUERY_slices_records:
		if (slice->kind == KB_SLICE_LOST)
			query_put_u64(context, slice->lost);
		break;
	case QUERY_slices_reason:
		if (slice->kind == KB_SLICE_LOST)
			QUERY_PUT_WORD(context, gaps, reason, slice->reason);
		break;
	default:
		break;
	}
}

const struct query_table query_slices = {
	.is = &query_columns_slices,
	.types = ~0U,
	.follows = true,
	.seeks = true,
	.begins = true,
	.state_bytes = sizeof(struct kb_slice),
	.rows = slices_rows,
	.rest = slices_rest,
	.place = slices_place,
	.column = slices_column,
};

/* ---- waits ---- */

#define WAITS_MOST	4	/* one record ends at most one for each of its slices */

struct waits {
	struct kb_sched *sched;
	struct kb_table left;		/* by task: the last switch away from it */
	struct kb_wait rows[WAITS_MOST];
	uint64_t began[WAITS_MOST];	/* the records */
	uint32_t nr;
};

struct left {
	uint64_t key;			/* the task id */
	uint64_t record;
};

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct waits *waits = context;
	const struct left *left;
	uint64_t key = wait->task_id;

	if (waits->nr == WAITS_MOST)
		return;
	left = kb_table_find(&waits->left, &key);
	waits->began[waits->nr] = left ? left->record : 0;
	waits->rows[waits->nr++] = *wait;
}

/* The task of @slice leaves its CPU by the current switch, and waits from now on. */
static int leave(struct waits *waits, const struct kb_event *event, const struct kb_slice *slice)
{
	uint64_t key = slice->task_id;
	struct left *left = kb_table_get(&waits->left, &key);

	if (!left)
		return -ENOMEM;
	left->record = event->offset;
	/* the name of the task when its wait began, as in the report */
	kb_sched_mark(waits->sched, slice->task_id, 0, event->timestamp);
	return 0;
}

static int waits_begin(struct query_walk *walk, struct kb_error *err)
{
	struct waits *waits = walk->state;

	kb_table_init(&waits->left, sizeof(struct left), 1);
	if (kb_sched_create(&waits->sched, walk->file->header->max_cores, err))
		return -ENOMEM;
	kb_sched_on_wait(waits->sched, take_wait, waits);
	return 0;
}

static void waits_end(struct query_walk *walk)
{
	struct waits *waits = walk->state;

	kb_sched_destroy(waits->sched);
	kb_table_release(&waits->left);
}

static int waits_rows(struct query_walk *walk)
{
	const struct kb_walk *at = &walk->trace->walk;
	struct waits *waits = walk->state;

	waits->nr = 0;
	for (unsigned int i = 0; i < at->nr_slices; i++) {
		if (kb_sched_add(waits->sched, &at->slices[i], at->event.timestamp))
			return -ENOMEM;
		if (at->event.type == KB_EVENT_TASK_SWITCH && at->slices[i].has_task &&
		    leave(waits, &at->event, &at->slices[i]))
			return -ENOMEM;
	}
	return (int)waits->nr;
}

/* The runs that are open at the end say that the waits before them are over. */
static int waits_rest(struct query_walk *walk)
{
	struct waits *waits = walk->state;
	struct kb_slice slice;

	waits->nr = 0;
	while (!waits->nr && kb_trace_end(walk->trace, &slice))
		if (kb_sched_add(waits->sched, &slice, walk->file->header->last_timestamp))
			return -ENOMEM;
	return (int)waits->nr;
}

static void waits_place(struct query_walk *walk)
{
	const struct waits *waits = walk->state;
	const struct kb_wait *wait = &waits->rows[walk->number];

	walk->row = (struct query_row){
		.ticks = wait->ticks,
		.at = wait->since,
		.core = wait->core,
		.task_id = wait->task_id,
		.has_task = true,
	};
}

static void waits_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct waits *waits = walk->state;
	const struct kb_wait *wait = &waits->rows[walk->number];

	switch (i) {
	case QUERY_waits_duration_ns:
		query_put_u64(context, wait->ns);
		break;
	case QUERY_waits_end_ns:
		query_put_i64(context, (int64_t)((uint64_t)wait->since + wait->ns));
		break;
	case QUERY_waits_blocked:
		query_put_i64(context, wait->blocked);
		break;
	case QUERY_waits_asleep:
		query_put_i64(context, wait->asleep);
		break;
	case QUERY_waits_began:
		if (waits->began[walk->number])
			query_put_u64(context, waits->began[walk->number]);
		break;
	default:
		break;
	}
}

const struct query_table query_waits = {
	.is = &query_columns_waits,
	.types = ~0U,
	.follows = true,
	.begins = true,
	.state_bytes = sizeof(struct waits),
	.begin = waits_begin,
	.end = waits_end,
	.rows = waits_rows,
	.rest = waits_rest,
	.place = waits_place,
	.column = waits_column,
};
