// SPDX-License-Identifier: MIT
/* How late tasks ran, one by one: the waits that `kbarman report --latency` adds up. */
#include <errno.h>

#include "analysis/latency/late_waits.h"
#include "analysis/time/origin.h"
#include "query/query_put.h"
#include "query/walks.h"

struct delays {
	struct kb_late_waits *waits;
	struct kb_late late;	/* a record ends one wait at most */
	bool has_late;
};

static int take(void *context, const struct kb_late *late)
{
	struct delays *delays = context;

	delays->late = *late;
	delays->has_late = true;
	return 0;
}

static int delays_begin(struct query_walk *walk, struct kb_error *err)
{
	struct delays *delays = walk->state;

	return kb_late_waits_create(&delays->waits, walk->trace, take, delays, err);
}

static void delays_end(struct query_walk *walk)
{
	struct delays *delays = walk->state;

	kb_late_waits_destroy(delays->waits);
}

static int delays_rows(struct query_walk *walk)
{
	struct delays *delays = walk->state;

	delays->has_late = false;
	if (kb_late_waits_feed(delays->waits, &walk->trace->walk))
		return -ENOMEM;
	return delays->has_late;
}

static const struct kb_latency_wait *wait_of(const struct query_walk *walk)
{
	const struct delays *delays = walk->state;

	return &delays->late.wait;
}

static void delays_place(struct query_walk *walk)
{
	const struct kb_latency_wait *wait = wait_of(walk);

	walk->row = (struct query_row){
		.ticks = wait->ticks,
		.at = wait->since,
		.core = wait->core,
		.task_id = wait->task_id,
		.has_task = true,
	};
}

/* Who woke the task; a preempted one was not woken. */
static void put_waker(const struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_latency_wait *wait = wait_of(walk);
	char name[KB_ORIGIN_NAME];

	if (wait->preempted)
		return;
	switch (i) {
	case QUERY_delays_new:
		query_put_i64(context, wait->is_new);
		break;
	case QUERY_delays_by:
		query_put_text(context, kb_origin_kind(wait->waker.kind));
		break;
	case QUERY_delays_by_id:
		if (wait->waker.kind != KB_TILE_UNKNOWN && wait->waker.id != KB_ORIGIN_ANY)
			query_put_u64(context, wait->waker.id);
		break;
	case QUERY_delays_by_name:
		kb_origin_name(walk->file->trace, &wait->waker, wait->ticks, name, sizeof(name));
		query_put_copy(context, name, strlen(name));
		break;
	case QUERY_delays_by_call:
		query_put_text(context, kb_origin_call(walk->file->trace, &wait->waker));
		break;
	default:
		query_put_u64(context, wait->waker_core);
	}
}

static void delays_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_latency_wait *wait = wait_of(walk);

	switch (i) {
	case QUERY_delays_duration_ns:
		query_put_u64(context, wait->ns);
		break;
	case QUERY_delays_end_ns:
		query_put_i64(context, (int64_t)((uint64_t)wait->since + wait->ns));
		break;
	case QUERY_delays_preempted:
		query_put_i64(context, wait->preempted);
		break;
	case QUERY_delays_moves:
		query_put_u64(context, wait->moves);
		break;
	case QUERY_delays_idle_state:
	case QUERY_delays_state:
		if (wait->has_left)
			query_put_i64(context, wait->idle_state);
		break;
	default:
		if (i >= QUERY_delays_waking_ns)
			query_put_u64(context, wait->parts[i - QUERY_delays_waking_ns]);
		else
			put_waker(walk, context, i);
	}
}

const struct query_table query_delays = {
	.is = &query_columns_delays,
	.types = ~0U,
	.follows = true,
	.begins = true,
	.state_bytes = sizeof(struct delays),
	.begin = delays_begin,
	.end = delays_end,
	.rows = delays_rows,
	.place = delays_place,
	.column = delays_column,
};
