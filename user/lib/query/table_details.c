// SPDX-License-Identifier: MIT
/* What values of kbarman's own series are about: wakeups, migrations, frequencies and others. */
#include <errno.h>

#include "analysis/time/handlers.h"
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
		QUERY_PUT_WORD(context, wakeups, context, event->custom_counter.context);
		break;
	case QUERY_wakeups_woken_tid:
	case QUERY_wakeups_woken_pid:
	case QUERY_wakeups_woken_task:
		put_task(walk, context, i, QUERY_wakeups_woken_tid);
		break;
	default:
		query_put_object(walk, context, i - QUERY_wakeups_object);
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
		QUERY_PUT_WORD(context, details, what, what_of(walk));
		break;
	case QUERY_details_about_id:
		query_put_u64(context, event->custom_counter.id);
		break;
	case QUERY_details_about_cpu:
		query_put_u64(context, event->custom_counter.cpu);
		break;
	case QUERY_details_context:
		QUERY_PUT_WORD(context, details, context, event->custom_counter.context);
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

struct interrupts {
	struct kb_handlers handlers;
	struct kb_handler ended;	/* that the record ends */
};

static int interrupts_begin(struct query_walk *walk, struct kb_error *err)
{
	struct interrupts *interrupts = walk->state;

	(void)err;
	return kb_handlers_init(&interrupts->handlers, walk->trace);
}

static void interrupts_end(struct query_walk *walk)
{
	struct interrupts *interrupts = walk->state;

	kb_handlers_release(&interrupts->handlers);
}

static int interrupts_rows(struct query_walk *walk)
{
	struct interrupts *interrupts = walk->state;

	return kb_handlers_feed(&interrupts->handlers, &walk->trace->walk, &interrupts->ended);
}

static const struct kb_handler *handler_of(const struct query_walk *walk)
{
	const struct interrupts *interrupts = walk->state;

	return &interrupts->ended;
}

static void interrupts_place(struct query_walk *walk)
{
	const struct kb_handler *handler = handler_of(walk);

	walk->row = (struct query_row){
		.ticks = handler->timestamp,
		.at = handler->start,
		.core = handler->core,
		.task_id = handler->task_id,
		.has_task = handler->has_task,
	};
}

static void interrupts_column(struct query_walk *walk, struct sqlite3_context *context, int i)
{
	const struct kb_handler *handler = handler_of(walk);
	char name[KB_ORIGIN_NAME];

	switch (i) {
	case QUERY_interrupts_duration_ns:
		query_put_u64(context, (uint64_t)handler->end - (uint64_t)handler->start);
		break;
	case QUERY_interrupts_own_ns:
		query_put_u64(context, handler->own);
		break;
	case QUERY_interrupts_end_ns:
		query_put_i64(context, handler->end);
		break;
	case QUERY_interrupts_kind:
		query_put_text(context, kb_origin_kind(handler->origin.kind));
		break;
	case QUERY_interrupts_id:
		if (handler->origin.id != KB_ORIGIN_ANY)
			query_put_u64(context, handler->origin.id);
		break;
	case QUERY_interrupts_handler:
	case QUERY_interrupts_name:
		kb_origin_name(walk->file->trace, &handler->origin, handler->timestamp, name,
			       sizeof(name));
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
