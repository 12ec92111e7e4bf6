// SPDX-License-Identifier: MIT
/*
 * Times come from tiles, so they are without what interrupted an interrupt, and add up with all
 * other times of the CPU. Numbers come from the records of beginnings.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/facts/name_ids.h"
#include "analysis/latency/interrupts.h"
#include "analysis/time/origin.h"
#include "base/table.h"

#define SOFTIRQS	16U
#define FROM_MAX	16384U		/* rows of what was taken from whom, then one for others */
#define NONE		UINT64_MAX
#define NOBODY		(UINT64_MAX - 1)	/* it is not known which task was interrupted */

struct interrupt_row {
	uint64_t key;			/* kb_origin_key() */
	struct kb_interrupt row;
};

struct from_row {
	uint64_t key[2];		/* kb_origin_key(), number of the task's name */
	const struct kb_name_id *task;
	uint64_t ns, pieces;
};

/* Softirqs that were asked for. */
struct raised {
	uint64_t set;			/* a bit for each */
	int64_t at[SOFTIRQS];		/* ns: the first request */
};

struct kb_interrupts {
	const struct kb_wanted *wanted;
	uint32_t max_cores;
	struct kb_name_ids names;
	struct kb_table rows, from;
	struct raised *raised;		/* max_cores */

	struct kb_interrupt *shown;	/* results */
	struct kb_interrupt_from *shown_from;
};

int kb_interrupts_create(struct kb_interrupts **out, const struct kb_wanted *wanted)
{
	uint32_t max_cores = kb_trace_header(wanted->trace)->max_cores;
	struct kb_interrupts *interrupts = calloc(1, sizeof(*interrupts));

	if (interrupts)
		interrupts->raised = calloc((size_t)max_cores + 1, sizeof(*interrupts->raised));
	if (!interrupts || !interrupts->raised) {
		free(interrupts);
		return -ENOMEM;
	}
	interrupts->wanted = wanted;
	interrupts->max_cores = max_cores;
	kb_name_ids_init(&interrupts->names, wanted->tasks);
	kb_table_init(&interrupts->rows, sizeof(struct interrupt_row), 1);
	kb_table_init(&interrupts->from, sizeof(struct from_row), 2);
	*out = interrupts;
	return 0;
}

void kb_interrupts_destroy(struct kb_interrupts *interrupts)
{
	if (!interrupts)
		return;
	kb_table_release(&interrupts->rows);
	kb_table_release(&interrupts->from);
	kb_name_ids_release(&interrupts->names);
	free(interrupts->raised);
	free(interrupts->shown);
	free(interrupts->shown_from);
	free(interrupts);
}

static struct kb_interrupt *get_row(struct kb_interrupts *interrupts,
				    const struct kb_origin *origin)
{
	uint64_t key = kb_origin_key(origin);
	struct interrupt_row *row = kb_table_get(&interrupts->rows, &key);

	return row ? &row->row : NULL;
}

/* ---- tiles ---- */

static struct from_row *get_from(struct kb_interrupts *interrupts, uint64_t key[2])
{
	struct from_row *row = kb_table_find(&interrupts->from, key);

	if (!row && interrupts->from.nr >= FROM_MAX)
		key[1] = NONE;
	return row ? row : kb_table_get(&interrupts->from, key);
}

static int add_from(struct kb_interrupts *interrupts, const struct kb_tile *tile, uint64_t ticks)
{
	const struct kb_origin origin = kb_origin_in(tile);
	uint64_t key[2] = { kb_origin_key(&origin), NOBODY };
	const struct kb_name_id *task = NULL;
	struct from_row *row;

	if (tile->has_task) {
		task = kb_name_ids_find(&interrupts->names, tile->task_id, ticks);
		if (!task)
			return -ENOMEM;
		key[1] = task->id;
	}
	row = get_from(interrupts, key);
	if (!row)
		return -ENOMEM;
	row->task = key[1] == NONE ? NULL : task;
	row->ns += (uint64_t)tile->end - (uint64_t)tile->start;
	row->pieces++;
	return 0;
}

int kb_interrupts_add(struct kb_interrupts *interrupts, const struct kb_tile *tile, uint64_t ticks)
{
	const struct kb_origin origin = kb_origin_in(tile);
	struct kb_interrupt *row;

	if (tile->kind == KB_TILE_LOST)
		interrupts->raised[tile->core].set = 0;
	if (!kb_origin_interrupts(tile->kind) || !kb_wanted_cpu(interrupts->wanted, tile->core) ||
	    !kb_wanted_time(interrupts->wanted, tile->began) ||
	    !kb_wanted_task(interrupts->wanted, tile->task_id, ticks))
		return 0;
	row = get_row(interrupts, &origin);
	if (!row)
		return -ENOMEM;
	row->ns += (uint64_t)tile->end - (uint64_t)tile->start;
	if (tile->ends && tile->own >= row->longest_ns) {
		row->longest_ns = tile->own;
		row->longest_at = tile->began;
		row->longest_core = tile->core;
	}
	return add_from(interrupts, tile, ticks);
}

/* ---- records ---- */

static int count(struct kb_interrupts *interrupts, const struct kb_walk *walk,
		 enum kb_tile_kind kind)
{
	const struct kb_event *event = &walk->event;
	const struct kb_origin origin = {
		.kind = kind, .id = event->custom_counter.id,
		.behind = kind == KB_TILE_IRQ ? event->custom_counter.cpu : 0,
	};
	struct kb_interrupt *row = get_row(interrupts, &origin);

	if (!row)
		return -ENOMEM;
	row->count++;
	return 0;
}

/* A softirq begins: was it asked for, and when? */
static bool take_raise(struct raised *raised, uint32_t id, int64_t now, uint64_t *ns)
{
	if (id >= SOFTIRQS || !(raised->set >> id & 1))
		return false;
	raised->set &= ~(UINT64_C(1) << id);
	*ns = (uint64_t)now - (uint64_t)raised->at[id];
	return now >= raised->at[id];
}

static int begin_softirq(struct kb_interrupts *interrupts, const struct kb_walk *walk, bool counts)
{
	uint32_t id = walk->event.custom_counter.id;
	const struct kb_origin origin = { .kind = KB_TILE_SOFTIRQ, .id = id };
	uint64_t ns;
	bool raised = take_raise(&interrupts->raised[walk->event.core], id, walk->ns, &ns);
	struct kb_interrupt *row = counts ? get_row(interrupts, &origin) : NULL;

	if (!row)
		return counts ? -ENOMEM : 0;
	row->count++;
	if (!raised)
		return 0;
	row->delays++;
	row->delay_ns += ns;
	if (ns > row->longest_delay_ns)
		row->longest_delay_ns = ns;
	return 0;
}

static int raise(struct kb_interrupts *interrupts, const struct kb_walk *walk, bool counts)
{
	struct raised *raised = &interrupts->raised[walk->event.core];
	uint32_t id = walk->event.custom_counter.id;
	const struct kb_origin origin = { .kind = KB_TILE_SOFTIRQ, .id = id };
	struct kb_interrupt *row;

	if (id < SOFTIRQS && !(raised->set >> id & 1)) {
		raised->set |= UINT64_C(1) << id;
		raised->at[id] = walk->ns;
	}
	if (!counts)
		return 0;
	row = get_row(interrupts, &origin);
	if (!row)
		return -ENOMEM;
	row->raised++;
	return 0;
}

int kb_interrupts_feed(struct kb_interrupts *interrupts, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	const struct kb_wanted *wanted = interrupts->wanted;
	bool counts;

	if (event->type != KB_EVENT_CUSTOM_COUNTER || event->core >= interrupts->max_cores ||
	    event->custom_counter.what < KB_WHAT_IRQ_ENTRY ||
	    event->custom_counter.what > KB_WHAT_SOFTIRQ_EXIT)
		return 0;
	counts = kb_wanted_cpu(wanted, event->core) && kb_wanted_time(wanted, walk->ns) &&
		 kb_wanted_task(wanted, event->task_id, event->timestamp);
	switch (event->custom_counter.what) {
	case KB_WHAT_IRQ_ENTRY:
		return counts ? count(interrupts, walk, KB_TILE_IRQ) : 0;
	case KB_WHAT_IPI_ENTRY:
		return counts ? count(interrupts, walk, KB_TILE_IPI) : 0;
	case KB_WHAT_SOFTIRQ_ENTRY:
		return begin_softirq(interrupts, walk, counts);
	case KB_WHAT_SOFTIRQ_RAISE:	/* who asks need not be who is interrupted */
		return raise(interrupts, walk, counts);
	default:
		return 0;
	}
}

/* ---- results ---- */

static int compare_rows(const void *left, const void *right)
{
	const struct kb_interrupt *a = left, *b = right;
	uint64_t a_key = kb_origin_key(&a->origin), b_key = kb_origin_key(&b->origin);

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a_key > b_key) - (a_key < b_key);
}

static int compare_from(const void *left, const void *right)
{
	const struct kb_interrupt_from *a = left, *b = right;
	uint64_t a_key = kb_origin_key(&a->origin), b_key = kb_origin_key(&b->origin);

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a_key != b_key)
		return a_key > b_key ? 1 : -1;
	return strcmp(a->task ? a->task : "", b->task ? b->task : "");
}

int kb_interrupts_finish(struct kb_interrupts *interrupts, struct kb_latency *shown)
{
	uint32_t i, nr = interrupts->rows.nr, nr_from = interrupts->from.nr;

	interrupts->shown = calloc((size_t)nr + 1, sizeof(*interrupts->shown));
	interrupts->shown_from = calloc((size_t)nr_from + 1, sizeof(*interrupts->shown_from));
	if (!interrupts->shown || !interrupts->shown_from)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		const struct interrupt_row *row = kb_table_row(&interrupts->rows, i);

		interrupts->shown[i] = row->row;
		interrupts->shown[i].origin = kb_origin_of(row->key);
	}
	for (i = 0; i < nr_from; i++) {
		const struct from_row *row = kb_table_row(&interrupts->from, i);

		interrupts->shown_from[i] = (struct kb_interrupt_from){
			.origin = kb_origin_of(row->key[0]),
			.task = row->task	       ? row->task->name
				: row->key[1] == NONE ? NULL
						      : "[unknown]",
			.ns = row->ns,
			.pieces = row->pieces,
		};
	}
	qsort(interrupts->shown, nr, sizeof(*interrupts->shown), compare_rows);
	qsort(interrupts->shown_from, nr_from, sizeof(*interrupts->shown_from), compare_from);
	shown->interrupts = interrupts->shown;
	shown->nr_interrupts = nr;
	shown->from = interrupts->shown_from;
	shown->nr_from = nr_from;
	return 0;
}
