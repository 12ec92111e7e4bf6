// SPDX-License-Identifier: MIT
/*
 * One walk: the switch at which a task blocks gets the number of its row, which comes back with the wait
 * when that is over. Memory use grows with tasks and objects, not with records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/names.h>
#include <kbarman/waits.h>

#include "analysis/facts/name_ids.h"
#include "analysis/facts/sources.h"
#include "analysis/latency/inferred.h"
#include "analysis/latency/waited.h"
#include "analysis/time/histogram.h"
#include "analysis/time/sched.h"
#include "analysis/time/waker.h"
#include "analysis/trace/parts.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"
#include "base/table.h"

#define OBJECTS_MAX	65536U		/* then one row for all others of a task and kind */
#define INFERRED	33		/* in the second word of a key: what is inferred, from this bit on */

struct waits {
	struct kb_waits shown;		/* the results; the first member */
	struct kb_waits_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	struct kb_names *names;
	struct kb_name_ids comms;
	struct kb_sched *sched;
	struct kb_tiles *tiles;		/* NULL: there was no wakeup yet */
	struct kb_table table;		/* key, then struct tally */
	struct kb_table holders;	/* by task that waits: struct holder */
	struct kb_waits_row *rows;
	bool infers;			/* the capture has no objects */
	int ended;			/* what the last step of the walk said */
	int error;			/* of a wait that ended */
};

/* Who has the lock for which a task waits. */
struct holder {
	uint64_t waiter;		/* the key */
	const char *task;
	uint32_t tid;
};

struct tally {
	struct kb_waits_row row;	/* its holder and waker: of the longest wait so far */
	struct kb_histogram times;
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static struct tally *tally_of(const struct waits *waits, uint32_t i)
{
	return (struct tally *)((uint64_t *)kb_table_row(&waits->table, i) + KB_WAITED_KEY);
}

static int note_holder(struct waits *waits, const struct kb_event *event, uint32_t task_id)
{
	uint32_t tid = kb_names_object_id(waits->names, event, task_id);
	const struct kb_name_id *comm = kb_name_ids_find(&waits->comms, tid, event->timestamp);
	struct holder *holder = kb_table_get(&waits->holders, &(uint64_t){ task_id });

	if (!comm || !holder)
		return -ENOMEM;
	holder->tid = tid;
	holder->task = comm->name;
	return 0;
}

/* The task of @slice begins to wait. */
static int begin_wait(struct waits *waits, const struct kb_event *event, const struct kb_slice *slice)
{
	const struct kb_name_id *comm = kb_name_ids_find(&waits->comms, slice->task_id, event->timestamp);
	const struct kb_object *object = &event->task_switch.object;
	struct kb_waits_row row;
	uint64_t key[KB_WAITED_KEY];
	uint32_t number;

	if (!comm)
		return -ENOMEM;
	row = kb_waited(waits->names, waits->comms.tasks, object, slice->task_id, event->timestamp);
	kb_waited_unite(&row, object, key);
	row.task = comm->name;
	key[0] |= (uint64_t)comm->id << 32;
	waits->shown.has_objects |= row.object != KB_OBJECT_NONE;
	if (waits->infers && !row.object) {
		row.inferred = kb_inferred_by_chain(waits->trace, event, slice->task_id);
		key[1] |= (uint64_t)row.inferred << INFERRED;
	}
	if (waits->table.nr >= OBJECTS_MAX && !kb_table_find(&waits->table, key))
		kb_waited_others(&row, key);
	number = kb_table_number(&waits->table, key, kb_table_hash(&waits->table, key));
	if (number == KB_TABLE_NONE)
		return -ENOMEM;
	if (!tally_of(waits, number)->row.task)
		tally_of(waits, number)->row = row;
	kb_sched_mark(waits->sched, slice->task_id, number + 1, event->timestamp);
	return kb_waited_is_lock(row.object) ? note_holder(waits, event, slice->task_id) : 0;
}

/* The row of @tally's task with what @wait's waker says; @tally, if that is nothing. NULL: no memory. */
static struct tally *infer(struct waits *waits, struct tally *tally, const struct kb_wait *wait)
{
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row = tally->row;
	uint32_t number;

	row.inferred = kb_inferred_by_waker(waits->trace, &wait->waker, wait->woken);
	if (!row.inferred)
		return tally;
	memcpy(key, (const uint64_t *)tally - KB_WAITED_KEY, sizeof(key));
	key[1] |= (uint64_t)row.inferred << INFERRED;
	number = kb_table_number(&waits->table, key, kb_table_hash(&waits->table, key));
	if (number == KB_TABLE_NONE)
		return NULL;
	tally = tally_of(waits, number);
	if (!tally->row.task)
		tally->row = row;
	return tally;
}

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct waits *waits = context;
	uint64_t task = wait->task_id;
	const struct holder *holder;
	struct tally *tally;

	if (!wait->mark || !wait->blocked || !kb_wanted_wait(&waits->wanted, wait))
		return;
	tally = tally_of(waits, wait->mark - 1);
	if (waits->infers && !tally->row.object && !tally->row.inferred && !tally->row.others)
		tally = infer(waits, tally, wait);
	if (!tally) {
		waits->error = -ENOMEM;
		return;
	}
	if (wait->ns > tally->times.max) {
		tally->row.waker = wait->waker;
		tally->row.woken = wait->woken;
	}
	holder = kb_waited_is_lock(tally->row.object) && !tally->row.others && wait->ns > tally->times.max ?
		 kb_table_find(&waits->holders, &task) : NULL;
	if (holder) {
		tally->row.holder = holder->tid;
		tally->row.holder_task = holder->tid ? holder->task : NULL;
	}
	if (kb_histogram_add(&tally->times, wait->ns))
		waits->error = -ENOMEM;
}

static int add_record(struct waits *waits, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	for (unsigned int i = 0; i < walk->nr_slices && !ret; i++) {
		const struct kb_slice *slice = &walk->slices[i];

		ret = kb_sched_add(waits->sched, slice, event->timestamp);
		if (!ret && kb_waited_begins(event, slice))
			ret = begin_wait(waits, event, slice);
	}
	return ret ?: kb_waker_feed(&waits->tiles, waits->trace, walk, waits->sched) ?: waits->error;
}

static int read_all(struct waits *waits, struct kb_error *err)
{
	const struct kb_walk *walk;
	struct kb_slice slice;
	uint64_t last = 0;
	int ret = 0;

	while (!ret && (waits->ended = kb_trace_next(waits->trace, &walk, err)) > 0) {
		last = walk->event.timestamp;
		ret = add_record(waits, walk);
	}
	while (!ret && kb_trace_end(waits->trace, &slice))
		ret = kb_sched_add(waits->sched, &slice, last) ?: waits->error;
	return ret || waits->ended == -ENOMEM ? no_memory(err) : 0;
}

static int prepare(struct waits *waits, struct kb_error *err)
{
	const struct kb_tasks *tasks = kb_trace_tasks(waits->trace, err);

	waits->names = tasks ? kb_trace_names(waits->trace, err) : NULL;
	if (!waits->names)
		return -ENOMEM;
	waits->infers = !kb_has_objects(kb_trace_barman(waits->trace));
	kb_name_ids_init(&waits->comms, tasks);
	kb_sched_on_wait(waits->sched, take_wait, waits);
	return kb_trace_rewind(waits->trace, err) ?:
	       kb_wanted_init(&waits->wanted, waits->trace, waits->how.filter, err);
}

/* ---- the results ---- */

static int compare(const void *left, const void *right)
{
	const struct kb_waits_row *a = left, *b = right;
	int order;

	if (a->stats.sum_ns != b->stats.sum_ns)
		return a->stats.sum_ns > b->stats.sum_ns ? -1 : 1;
	order = strcmp(a->task, b->task);
	if (!order)
		order = (a->object > b->object) - (a->object < b->object);
	if (!order)
		order = strcmp(a->call ?: "", b->call ?: "");
	if (!order)
		order = a->inferred - b->inferred;
	return order ?: (a->value > b->value) - (a->value < b->value);
}

static int finish(struct waits *waits, struct kb_error *err)
{
	struct kb_waits *shown = &waits->shown;

	waits->rows = calloc((size_t)waits->table.nr + 1, sizeof(*waits->rows));
	if (!waits->rows)
		return no_memory(err);
	for (uint32_t i = 0; i < waits->table.nr; i++) {
		const struct tally *tally = tally_of(waits, i);
		struct kb_waits_row *row = &waits->rows[shown->nr];

		if (!tally->times.count)
			continue;
		*row = tally->row;
		row->stats = kb_histogram_stats(&tally->times);
		shown->sum_ns += row->stats.sum_ns;
		shown->nr++;
	}
	qsort(waits->rows, shown->nr, sizeof(*waits->rows), compare);
	shown->rows = waits->rows;
	shown->duration_ns = kb_trace_duration(waits->trace);
	shown->damaged = kb_trace_is_damaged(waits->trace, waits->ended, err);
	return 0;
}

static void destroy(struct waits *waits)
{
	for (uint32_t i = 0; i < waits->table.nr; i++)
		kb_histogram_release(&tally_of(waits, i)->times);
	kb_table_release(&waits->table);
	kb_table_release(&waits->holders);
	kb_name_ids_release(&waits->comms);
	kb_sched_destroy(waits->sched);
	kb_tiles_destroy(waits->tiles);
	free(waits->rows);
	free(waits);
}

int kb_waits_create(const struct kb_waits **out, struct kb_trace *trace,
		    const struct kb_waits_options *options, struct kb_error *err)
{
	struct waits *waits = calloc(1, sizeof(*waits));
	int ret;

	if (!waits)
		return no_memory(err);
	waits->trace = trace;
	kb_table_init(&waits->table, KB_WAITED_KEY * sizeof(uint64_t) + sizeof(struct tally), KB_WAITED_KEY);
	kb_table_init(&waits->holders, sizeof(struct holder), 1);
	ret = KB_OPTIONS(&waits->how, options, err) ?:
	      kb_sched_create(&waits->sched, kb_trace_header(trace)->max_cores, err) ?:
	      prepare(waits, err) ?: read_all(waits, err) ?: finish(waits, err);
	if (ret) {
		destroy(waits);
		return ret;
	}
	*out = &waits->shown;
	return waits->shown.damaged;
}

void kb_waits_destroy(const struct kb_waits *waits)
{
	if (waits)
		destroy((struct waits *)waits);	/* NOLINT: it is its first member */
}
