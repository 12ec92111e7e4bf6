// SPDX-License-Identifier: MIT
/* What values of kbarman's own series are about: wakeups, migrations, frequencies and others. */
#include <errno.h>

#include <kbarman/tiles.h>

#include "analysis/time/origin.h"
#include "analysis/time/task_cpus.h"
#include "query/query_put.h"
#include "query/walks.h"

static uint8_t what_of(const struct query_walk *walk)
{
	return walk->event->custom_counter.what;
}

/* The task that the record is about, as three columns from @first on. */
static void put_task(struct query_walk *walk, struct sqlite3_context *context, int i, int first)
{
	uint32_t id = walk->event->custom_counter.id;
	uint64_t ticks = walk->event->timestamp;

	if (i == first)
		query_put_u64(context, id);
	else if (i == first + 1)
		query_put_u64(context, query_file_pid(walk->file, id, ticks));
	else
		query_put_text(context, query_file_task(walk->file, id, ticks));
}

/* ---- wakeups ---- */

static int wakeups_rows(struct query_walk *walk)
{
	return what_of(walk) == KB_WHAT_WAKING || what_of(walk) == KB_WHAT_WAKING_NEW;
}

static void wakeups_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;

	switch (i) {
	case QUERY_wakeups_woken_cpu:
		query_put_u64(context, event->custom_counter.cpu);
		break;
	case QUERY_wakeups_new:
		query_put_i64(context, what_of(walk) == KB_WHAT_WAKING_NEW);
		break;
	case QUERY_wakeups_context:
		query_put_text(context, kb_context_name(event->custom_counter.context));
		break;
	default:
		put_task(walk, context, i, QUERY_wakeups_woken_tid);
	}
}

const struct query_table query_wakeups = {
	.is = &query_columns_wakeups,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER,
	.seeks = true,
	.rows = wakeups_rows,
	.column = wakeups_column,
};

/* ---- migrations ---- */

struct migrations {
	struct kb_task_cpus cpus;
	int64_t from;
};

static int migrations_begin(struct query_walk *walk, struct kb_error *err)
{
	struct migrations *migrations = walk->state;

	(void)err;
	kb_task_cpus_init(&migrations->cpus);
	return 0;
}

static void migrations_end(struct query_walk *walk)
{
	struct migrations *migrations = walk->state;

	kb_task_cpus_release(&migrations->cpus);
}

static int migrations_rows(struct query_walk *walk)
{
	struct migrations *migrations = walk->state;
	const struct kb_event *event = walk->event;
	int64_t from = kb_task_cpus_feed(&migrations->cpus, event);

	if (event->type != KB_EVENT_CUSTOM_COUNTER || what_of(walk) != KB_WHAT_MIGRATE)
		return 0;
	migrations->from = from < 0 ? event->core : from;
	return 1;
}

static void migrations_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct migrations *migrations = walk->state;

	switch (i) {
	case QUERY_migrations_from_cpu:
		query_put_i64(context, migrations->from);
		break;
	case QUERY_migrations_to_cpu:
		query_put_u64(context, walk->event->custom_counter.cpu);
		break;
	default:
		put_task(walk, context, i, QUERY_migrations_moved_tid);
	}
}

const struct query_table query_migrations = {
	.is = &query_columns_migrations,
	.types = ~0U,
	.state_bytes = sizeof(struct migrations),
	.begin = migrations_begin,
	.end = migrations_end,
	.rows = migrations_rows,
	.column = migrations_column,
};

/* ---- all of them ---- */

static int details_rows(struct query_walk *walk)
{
	return what_of(walk) != KB_WHAT_VALUE;
}

static void details_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_event *event = walk->event;

	switch (i) {
	case QUERY_details_what:
		query_put_text(context, kb_what_name(what_of(walk)));
		break;
	case QUERY_details_about_id:
		query_put_u64(context, event->custom_counter.id);
		break;
	case QUERY_details_about_cpu:
		query_put_u64(context, event->custom_counter.cpu);
		break;
	case QUERY_details_context:
		query_put_text(context, kb_context_name(event->custom_counter.context));
		break;
	case QUERY_details_value:
		query_put_u64(context, event->custom_counter.value);
		break;
	default:
		break;
	}
}

const struct query_table query_details = {
	.is = &query_columns_details,
	.types = 1U << KB_EVENT_CUSTOM_COUNTER,
	.seeks = true,
	.rows = details_rows,
	.column = details_column,
};

/* ---- interrupts ---- */

/* The handler that the record ends. */
struct interrupts {
	struct kb_tiles *tiles;
	struct kb_tile ended[KB_TILES_MOST];
};

static int interrupts_begin(struct query_walk *walk, struct kb_error *err)
{
	struct interrupts *interrupts = walk->state;

	return kb_tiles_create(&interrupts->tiles, walk->trace, err);
}

static void interrupts_end(struct query_walk *walk)
{
	struct interrupts *interrupts = walk->state;

	kb_tiles_destroy(interrupts->tiles);
}

static int interrupts_rows(struct query_walk *walk)
{
	struct interrupts *interrupts = walk->state;
	int nr = kb_tiles_feed(interrupts->tiles, &walk->trace->walk, interrupts->ended), found = 0;

	for (int i = 0; i < nr; i++)
		if (interrupts->ended[i].ends && kb_origin_interrupts(interrupts->ended[i].kind))
			interrupts->ended[found++] = interrupts->ended[i];
	return nr < 0 ? nr : found;
}

static const struct kb_tile *interrupt_of(const struct query_walk *walk)
{
	const struct interrupts *interrupts = walk->state;

	return &interrupts->ended[walk->number];
}

static void interrupts_place(struct query_walk *walk)
{
	const struct kb_tile *tile = interrupt_of(walk);

	walk->row = (struct query_row){
		.ticks = walk->event->timestamp,
		.at = tile->began,
		.core = tile->core,
		.task_id = tile->task_id,
		.has_task = tile->has_task,
	};
}

static void interrupts_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_tile *tile = interrupt_of(walk);
	const struct kb_origin origin = kb_origin_in(tile);
	char name[KB_ORIGIN_NAME];

	switch (i) {
	case QUERY_interrupts_duration_ns:
		query_put_u64(context, (uint64_t)tile->end - (uint64_t)tile->began);
		break;
	case QUERY_interrupts_own_ns:
		query_put_u64(context, tile->own);
		break;
	case QUERY_interrupts_end_ns:
		query_put_i64(context, tile->end);
		break;
	case QUERY_interrupts_kind:
		query_put_text(context, kb_origin_kind(tile->kind));
		break;
	case QUERY_interrupts_id:
		if (origin.id != KB_ORIGIN_ANY)
			query_put_u64(context, origin.id);
		break;
	case QUERY_interrupts_handler:
	case QUERY_interrupts_name:
		kb_origin_name(walk->file->trace, &origin, walk->event->timestamp, name, sizeof(name));
		query_put_copy(context, name, strlen(name));
		break;
	default:
		break;
	}
}

const struct query_table query_interrupts = {
	.is = &query_columns_interrupts,
	.types = ~0U,
	.follows = true,
	.begins = true,
	.state_bytes = sizeof(struct interrupts),
	.begin = interrupts_begin,
	.end = interrupts_end,
	.rows = interrupts_rows,
	.place = interrupts_place,
	.column = interrupts_column,
};
