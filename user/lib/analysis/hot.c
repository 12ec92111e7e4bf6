// SPDX-License-Identifier: MIT
/*
 * One hash table of rows. There may be many more rows than fit into a cache, and a sample may
 * need any of them. So with many rows samples wait in a queue while their rows are prefetched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hot.h"
#include "analysis/idle.h"
#include "analysis/name_ids.h"
#include "base/array.h"
#include "base/table.h"

#define QUEUE		32U	/* frames that wait; a power of two */
#define FEW_ROWS	512U	/* so few rows stay in the cache */

/* A frame that waits to be added to its row. */
struct waiting {
	uint64_t key[4], hash;
	uint64_t sample;		/* number of its sample, from 1 on */
	uint64_t weight;
	bool weighed;
	bool caller;			/* the frame is a caller, not where the sample fell */
	bool partial;			/* counters of the sample do not cover the same time */
	bool idle;
	uint32_t task_id, core;
	const char *task;
	struct kb_frame frame;
	uint32_t nr_counters;		/* in kb_hot.counters */
};

struct kb_hot {
	unsigned int sort;
	struct kb_table rows;
	struct kb_name_ids comms;
	uint64_t samples;		/* added so far, including those that wait */
	bool idle;			/* whether the last sample is idle, if rows depend on it */

	struct waiting queue[QUEUE];	/* frame number n is at n % QUEUE */
	uint64_t first, next;		/* numbers of the frames that wait: [first, next) */

	const struct kb_names *names;	/* NULL: only the first counter is summed up */
	uint32_t nr_counters;
	uint32_t max_of_core;		/* largest number of counters of a core */
	uint64_t *counters;		/* of the waiting frames, max_of_core each */
	uint64_t *sums;			/* row r has its sums from sums[r * nr_counters] on; r
					 * is its number before ordering */
	uint32_t max_sums;		/* number of rows with room in sums */
	uint64_t *partial;		/* as sums, of partial samples only; NULL: none yet */
	uint32_t max_partial;
};

int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, unsigned int sort,
		  struct kb_error *err)
{
	struct kb_hot *hot = calloc(1, sizeof(*hot));

	if (!hot)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	hot->sort = sort;
	kb_table_init(&hot->rows, sizeof(struct kb_sample_row), 4);
	kb_name_ids_init(&hot->comms, tasks);
	*out = hot;
	return 0;
}

void kb_hot_destroy(struct kb_hot *hot)
{
	if (!hot)
		return;
	kb_table_release(&hot->rows);
	kb_name_ids_release(&hot->comms);
	free(hot->counters);
	free(hot->sums);
	free(hot->partial);
	free(hot);
}

int kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names)
{
	hot->max_of_core = kb_names_most_of_core(names);
	hot->counters = calloc(hot->max_of_core + 1, QUEUE * sizeof(*hot->counters));
	if (!hot->counters)
		return -ENOMEM;
	hot->names = names;
	hot->nr_counters = kb_names_nr_counters(names);
	return 0;
}

uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id)
{
	return row->sums < hot->max_sums && id < hot->nr_counters ?
		hot->sums[(size_t)row->sums * hot->nr_counters + id] : 0;
}

uint64_t kb_hot_whole_counter(const struct kb_hot *hot, const struct kb_sample_row *row,
			      uint32_t id)
{
	uint64_t partial = row->sums < hot->max_partial && id < hot->nr_counters ?
		hot->partial[(size_t)row->sums * hot->nr_counters + id] : 0;

	return kb_hot_counter(hot, row, id) - partial;
}

/* Make room in @sums, which has room for @max rows, for the sums of row number @row. */
static int reserve_sums(const struct kb_hot *hot, uint64_t **sums, uint32_t *max, uint32_t row)
{
	size_t nr = hot->nr_counters, room = *max;
	uint64_t *grown;

	if (row < room)
		return 0;
	grown = kb_array_grow(*sums, &room, (size_t)row + 1, nr * sizeof(*grown), UINT32_MAX);
	if (!grown)
		return -ENOMEM;
	memset(grown + *max * nr, 0, (room - *max) * nr * sizeof(*grown));
	*sums = grown;
	*max = (uint32_t)room;
	return 0;
}

static uint64_t *counters_of(const struct kb_hot *hot, const struct waiting *frame)
{
	return hot->counters + (frame - hot->queue) * hot->max_of_core;
}

static void add_counters(const struct kb_hot *hot, const struct waiting *frame, uint64_t *sums)
{
	const uint64_t *counters = counters_of(hot, frame);
	uint32_t i;

	for (i = 0; i < frame->nr_counters; i++)
		if (counters[i] != KB_COUNTER_INVALID)
			sums[kb_names_counter_id(hot->names, frame->core, i)] += counters[i];
}

static int sum_counters(struct kb_hot *hot, const struct waiting *frame, uint32_t row)
{
	size_t at = (size_t)row * hot->nr_counters;

	if (reserve_sums(hot, &hot->sums, &hot->max_sums, row))
		return -ENOMEM;
	add_counters(hot, frame, hot->sums + at);
	if (!frame->partial)
		return 0;
	if (reserve_sums(hot, &hot->partial, &hot->max_partial, row))
		return -ENOMEM;
	add_counters(hot, frame, hot->partial + at);
	return 0;
}

/* Add the weight of a sample to @sum, or count it in @unweighed if it has none. */
static void add_weight(const struct waiting *frame, uint64_t *sum, uint64_t *unweighed)
{
	if (frame->weighed && frame->weight <= UINT64_MAX - *sum)
		*sum += frame->weight;
	else
		++*unweighed;
}

static void describe(struct kb_sample_row *row, uint32_t number, const struct waiting *frame)
{
	const struct kb_symbol *symbol = &frame->frame.symbol;

	row->sums = number;
	row->task = frame->task;
	row->image = symbol->image;
	row->image_base = symbol->image_base;
	row->symbol = symbol->name;
	row->kernel = symbol->kernel;
	row->inlined = symbol->inlined;
	row->file = frame->frame.file;
	row->address = symbol->kernel ? symbol->address : 0;
	row->line = frame->frame.line;
	row->task_id = frame->task_id;
	row->core = frame->core;
	row->idle = frame->idle;
}

/* Add a frame to its row. */
static int add_frame(struct kb_hot *hot, const struct waiting *frame)
{
	uint32_t before = hot->rows.nr, number;
	struct kb_sample_row *row;

	number = kb_table_number(&hot->rows, frame->key, frame->hash);
	if (number == KB_TABLE_NONE)
		return -ENOMEM;
	row = kb_table_row(&hot->rows, number);
	if (number == before)
		describe(row, number, frame);
	if (!frame->caller) {
		row->samples++;
		row->partial += frame->partial;
		row->last_sample = frame->sample;
		add_weight(frame, &row->weight, &row->unweighed);
	} else if (row->last_sample != frame->sample) {
		row->last_sample = frame->sample;
		row->nr_callers++;
		add_weight(frame, &row->children, &row->callers_unweighed);
	}
	return frame->nr_counters ? sum_counters(hot, frame, number) : 0;
}

static int add_first(struct kb_hot *hot)
{
	return add_frame(hot, &hot->queue[hot->first++ % QUEUE]);
}

/*
 * Prefetch the row of the frame in the middle of a full queue; its slot is in the cache by now.
 */
static void fetch_row(const struct kb_hot *hot)
{
	uint64_t hash = hot->queue[(hot->next - QUEUE / 2) % QUEUE].hash;
	uint32_t number = kb_table_fetch_row(&hot->rows, hash);

	if (number < hot->max_sums)
		__builtin_prefetch(&hot->sums[(size_t)number * hot->nr_counters], 1);
}

static int enqueue(struct kb_hot *hot, const struct waiting *frame)
{
	if (hot->first == hot->next && hot->rows.nr < FEW_ROWS)
		return add_frame(hot, frame);
	kb_table_fetch_slot(&hot->rows, frame->hash);
	hot->next++;
	if (hot->next - hot->first < QUEUE)
		return 0;
	fetch_row(hot);
	return add_first(hot);
}

/* A new waiting frame with what the sample and the frame say; NULL without memory. */
static struct waiting *take_frame(struct kb_hot *hot, const struct kb_event *event,
				  const struct kb_frame *frame, bool caller)
{
	struct waiting *waiting = &hot->queue[hot->next % QUEUE];
	const struct kb_symbol *symbol = &frame->symbol;
	const struct kb_name_id *comm = kb_name_ids_find(&hot->comms, event->task_id,
							 event->timestamp);
	uint64_t *key = waiting->key;

	if (!comm)
		return NULL;
	key[0] = hot->sort & KB_SORT_TASK ? (uint64_t)comm->id << 32 : 0;
	if (hot->sort & KB_SORT_TID)
		key[0] |= event->task_id;
	key[1] = hot->sort & (KB_SORT_IMAGE | KB_SORT_LINE) ? (uintptr_t)symbol->image : 0;
	key[2] = hot->sort & KB_SORT_SYMBOL ? (uint64_t)symbol->id << 32 : 0;
	if (hot->sort & KB_SORT_CPU)
		key[2] |= event->core;
	key[3] = hot->sort & KB_SORT_LINE ? frame->line_id : 0;
	key[3] |= (uint64_t)hot->idle << 32;

	waiting->hash = kb_table_hash(&hot->rows, key);
	waiting->sample = hot->samples;
	waiting->weighed = event->sample.nr_counters &&
			   event->sample.counters[0] != KB_COUNTER_INVALID;
	waiting->weight = waiting->weighed ? event->sample.counters[0] : 0;
	waiting->caller = caller;
	waiting->partial = false;
	waiting->idle = hot->idle;
	waiting->task_id = event->task_id;
	waiting->core = event->core;
	waiting->task = comm->name;
	waiting->frame = *frame;
	waiting->nr_counters = 0;
	return waiting;
}

/* Copy the counters that the header has for the core of @event. */
static void take_counters(struct kb_hot *hot, const struct kb_event *event,
			  struct waiting *frame)
{
	uint32_t nr = kb_names_of_core(hot->names, event->core);

	if (nr > event->sample.nr_counters)
		nr = event->sample.nr_counters;
	frame->nr_counters = nr;
	memcpy(counters_of(hot, frame), event->sample.counters, nr * sizeof(uint64_t));
}

static int add_sample(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame, bool partial)
{
	struct waiting *waiting;

	hot->samples++;
	hot->idle = hot->sort & KB_SORT_IDLE && kb_idle_sample(event, &frame->symbol);
	waiting = take_frame(hot, event, frame, false);
	if (!waiting)
		return -ENOMEM;
	waiting->partial = partial;
	if (hot->names && event->sample.nr_counters)
		take_counters(hot, event, waiting);
	return enqueue(hot, waiting);
}

int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame)
{
	return add_sample(hot, event, frame, false);
}

int kb_hot_add_partial(struct kb_hot *hot, const struct kb_event *event,
		       const struct kb_frame *frame)
{
	return add_sample(hot, event, frame, true);
}

int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame)
{
	struct waiting *waiting = take_frame(hot, event, frame, true);

	return waiting ? enqueue(hot, waiting) : -ENOMEM;
}

static int compare_names(const struct kb_sample_row *a, const struct kb_sample_row *b)
{
	int order = strcmp(a->task, b->task);

	if (!order)
		order = strcmp(a->image, b->image);
	if (!order)
		order = strcmp(a->symbol, b->symbol);
	if (!order)
		order = strcmp(a->file, b->file);
	if (!order)
		order = (a->line > b->line) - (a->line < b->line);
	if (!order && a->task_id != b->task_id)
		order = a->task_id < b->task_id ? -1 : 1;
	if (!order)
		order = (a->core > b->core) - (a->core < b->core);
	return order;
}

static int compare_rows(const void *left, const void *right)
{
	const struct kb_sample_row *a = left, *b = right;

	if (a->idle != b->idle)
		return a->idle - b->idle;
	if (a->children != b->children)
		return a->children > b->children ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return compare_names(a, b);
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Turn the sums into final weights: numbers of samples with @count. */
static void settle(struct kb_sample_row *row, bool count, uint64_t mean)
{
	if (count) {
		row->weight = row->samples;
		row->children = row->nr_callers;
	} else {
		row->weight = add_up(row->weight, mean * row->unweighed);
		row->children = add_up(row->children, mean * row->callers_unweighed);
	}
	row->children = add_up(row->children, row->weight);
}

const struct kb_sample_row *kb_hot_rows(struct kb_hot *hot, bool count, uint32_t *nr,
				     struct kb_sample_row *totals)
{
	static const struct kb_sample_row none;
	struct kb_sample_row *rows;
	uint64_t weighed = 0, mean;
	uint32_t i;

	*totals = (struct kb_sample_row) { 0 };
	*nr = 0;
	while (hot->first != hot->next)
		if (add_first(hot))
			return NULL;
	rows = (struct kb_sample_row *)hot->rows.rows;
	*nr = hot->rows.nr;
	for (i = 0; i < *nr; i++) {
		totals->samples += rows[i].samples;
		totals->partial += rows[i].partial;
		totals->weight = add_up(totals->weight, rows[i].weight);
		weighed += rows[i].samples - rows[i].unweighed;
	}
	count = count || !totals->weight;
	mean = weighed ? totals->weight / weighed : 0;
	totals->weight = 0;
	for (i = 0; i < *nr; i++) {
		settle(&rows[i], count, mean);
		totals->weight = add_up(totals->weight, rows[i].weight);
	}
	if (!*nr)
		return &none;
	qsort(rows, *nr, sizeof(*rows), compare_rows);
	return rows;
}

uint32_t kb_hot_work(const struct kb_sample_row *rows, uint32_t nr)
{
	while (nr && rows[nr - 1].idle)
		nr--;
	return nr;
}
