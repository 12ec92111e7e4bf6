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
#define TASKS		256U	/* tasks whose row is remembered; a power of two */

/* A frame that waits to be added to its row. */
struct waiting {
	uint64_t key[4], hash;
	uint64_t sample;		/* number of its sample, from 1 on */
	struct kb_share share;
	bool caller;			/* the frame is a caller, not where the sample fell */
	bool idle;
	uint32_t task_id;
	const char *task;
	struct kb_frame frame;
};

struct kb_hot {
	unsigned int sort;
	struct kb_table rows;
	struct kb_name_ids comms;
	uint64_t samples;		/* added so far, including those that wait */
	bool idle;			/* whether the last sample is idle, if rows depend on it */
	const char *judged;		/* the function that the idle task was in last, by name, */
	bool judged_idle;		/* and whether that is the idle loop */
	bool image_key, line_key;	/* these are words of the key */

	struct waiting queue[QUEUE];	/* frame number n is at n % QUEUE */
	uint64_t first, next;		/* numbers of the frames that wait: [first, next) */

	bool by_task;			/* a row is a task: it is found without a hash */
	struct remembered {
		uint32_t task_id;
		uint32_t row;		/* its number + 1; 0: none */
	} tasks[TASKS + 1];		/* the last one: the idle loop */

	const struct kb_names *names;	/* NULL: only the first counter is summed up */
	uint32_t nr_counters;
	uint32_t max_of_core;		/* largest number of counters of a core */
	uint64_t *counters;		/* of the waiting frames, max_of_core each */
	uint64_t *sums;			/* row r has its sums from sums[r * nr_counters] on; r
					 * is its number before ordering */
	uint32_t max_sums;		/* number of rows with room in sums */
	struct {
		uint64_t *sums;		/* as sums, of the samples of one set; NULL: none yet */
		uint32_t max;
	} sets[KB_COUNT_SETS];		/* set 0 has what is in none of the others */
};

int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, unsigned int sort,
		  struct kb_error *err)
{
	struct kb_hot *hot = calloc(1, sizeof(*hot));

	if (!hot)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	hot->sort = sort;
	/* A symbol is of one image. */
	hot->image_key = sort & (KB_SORT_IMAGE | KB_SORT_LINE) && !(sort & KB_SORT_SYMBOL);
	hot->line_key = sort & KB_SORT_LINE;
	hot->by_task = (sort & ~KB_SORT_IDLE) == KB_SORT_TID;
	kb_table_init(&hot->rows, sizeof(struct kb_sample_row), 2 + hot->image_key + hot->line_key);
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
	for (unsigned int set = 0; set < KB_COUNT_SETS; set++)
		free(hot->sets[set].sums);
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

uint64_t kb_hot_counter_of(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id,
			   uint32_t sets)
{
	uint64_t sum = sets & 1 ? kb_hot_counter(hot, row, id) : 0;

	for (unsigned int set = 1; set < KB_COUNT_SETS; set++) {
		if (row->sums >= hot->sets[set].max || id >= hot->nr_counters ||
		    (sets >> set & 1) == (sets & 1))
			continue;
		if (sets & 1)
			sum -= hot->sets[set].sums[(size_t)row->sums * hot->nr_counters + id];
		else
			sum += hot->sets[set].sums[(size_t)row->sums * hot->nr_counters + id];
	}
	return sum;
}

/* Make room in @sums, which has room for @max rows, for the sums of row number @row. */
static int __attribute__((noinline)) grow_sums(const struct kb_hot *hot, uint64_t **sums,
					       uint32_t *max, uint32_t row)
{
	size_t nr = hot->nr_counters, room = *max;
	uint64_t *grown;

	grown = kb_array_grow(*sums, &room, (size_t)row + 1, nr * sizeof(*grown), UINT32_MAX);
	if (!grown)
		return -ENOMEM;
	memset(grown + *max * nr, 0, (room - *max) * nr * sizeof(*grown));
	*sums = grown;
	*max = (uint32_t)room;
	return 0;
}

static int add_counters(const struct kb_hot *hot, const struct kb_share *share, uint32_t row,
			uint64_t **sums, uint32_t *max)
{
	uint64_t *sum;
	uint32_t i;

	if (row >= *max && grow_sums(hot, sums, max, row))
		return -ENOMEM;
	sum = *sums + (size_t)row * hot->nr_counters;
	for (i = 0; i < share->nr_counters; i++)
		if (share->counters[i] != KB_COUNTER_INVALID)
			sum[share->ids[i]] += share->counters[i];
	return 0;
}

static int sum_counters(struct kb_hot *hot, const struct kb_share *share, uint32_t row)
{
	int ret = add_counters(hot, share, row, &hot->sums, &hot->max_sums);

	return ret || !share->set ? ret :
		add_counters(hot, share, row, &hot->sets[share->set].sums,
			     &hot->sets[share->set].max);
}

/* Add the weight of a sample to @sum, or count it in @unweighed if it has none. */
static void add_weight(const struct kb_share *share, uint64_t *sum, uint64_t *unweighed)
{
	if (share->weighed && share->weight <= UINT64_MAX - *sum)
		*sum += share->weight;
	else
		++*unweighed;
}

/* Add a sample that fell into row number @number. */
static int add_to_row(struct kb_hot *hot, const struct kb_share *share, uint64_t sample,
		      uint32_t number)
{
	struct kb_sample_row *row = kb_table_row(&hot->rows, number);

	row->samples++;
	row->partial += share->partial;
	row->last_sample = sample;
	add_weight(share, &row->weight, &row->unweighed);
	return hot->names && share->nr_counters ? sum_counters(hot, share, number) : 0;
}

/* Add a sample of which the row is a caller, once. */
static void add_to_caller(struct kb_sample_row *row, const struct kb_share *share, uint64_t sample)
{
	if (row->last_sample == sample)
		return;
	row->last_sample = sample;
	row->nr_callers++;
	add_weight(share, &row->children, &row->callers_unweighed);
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
	row->core = frame->share.core;
	row->idle = frame->idle;
}

/* Where the row of a task is remembered. */
static uint32_t place_of(uint32_t task_id, bool idle)
{
	return idle ? TASKS : task_id % TASKS;
}

/* Add a frame to its row. */
static int add_frame(struct kb_hot *hot, const struct waiting *frame)
{
	uint32_t before = hot->rows.nr, number;

	number = kb_table_number(&hot->rows, frame->key, frame->hash);
	if (number == KB_TABLE_NONE)
		return -ENOMEM;
	if (number == before)
		describe(kb_table_row(&hot->rows, number), number, frame);
	if (hot->by_task)
		hot->tasks[place_of(frame->task_id, frame->idle)] = (struct remembered) {
			.task_id = frame->task_id, .row = number + 1 };
	if (!frame->caller)
		return add_to_row(hot, &frame->share, frame->sample, number);
	add_to_caller(kb_table_row(&hot->rows, number), &frame->share, frame->sample);
	return 0;
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

/* Let a frame wait: its counters are copied, because they hold until the next event. */
static int enqueue(struct kb_hot *hot, struct waiting *frame)
{
	uint64_t *counters = hot->counters + (hot->next % QUEUE) * hot->max_of_core;
	uint32_t i;

	if (hot->first == hot->next && (hot->rows.nr < FEW_ROWS || hot->by_task))
		return add_frame(hot, frame);
	for (i = 0; hot->names && i < frame->share.nr_counters; i++)
		counters[i] = frame->share.counters[i];
	frame->share.counters = counters;
	kb_table_fetch_slot(&hot->rows, frame->hash);
	hot->next++;
	if (hot->next - hot->first < QUEUE)
		return 0;
	fetch_row(hot);
	return add_first(hot);
}

void kb_share_take(struct kb_share *share, const struct kb_names *names,
		   const struct kb_event *event, bool partial)
{
	uint32_t nr = event->sample.nr_counters, known;

	*share = (struct kb_share) {
		.weighed = nr && event->sample.counters[0] != KB_COUNTER_INVALID,
		.partial = partial,
		.core = event->core,
		.counters = event->sample.counters,
	};
	if (share->weighed)
		share->weight = event->sample.counters[0];
	if (!names || !nr)
		return;
	known = kb_names_of_core(names, event->core);
	share->nr_counters = nr < known ? nr : known;
	if (known)
		share->ids = kb_names_ids(names, event->core);
}

static void make_key(const struct kb_hot *hot, const struct kb_event *event,
		     const struct kb_frame *frame, uint32_t comm, uint64_t key[4])
{
	uint64_t *word = key;

	*word++ = (hot->sort & KB_SORT_TASK ? (uint64_t)comm << 32 : 0) |
		  (hot->sort & KB_SORT_TID ? event->task_id : 0) | (uint64_t)hot->idle << 63;
	*word++ = (hot->sort & KB_SORT_SYMBOL ? (uint64_t)frame->symbol.id << 32 : 0) |
		  (hot->sort & KB_SORT_CPU ? event->core : 0);
	if (hot->image_key)
		*word++ = (uintptr_t)frame->symbol.image;
	if (hot->line_key)
		*word = frame->line_id;
}

/* Add @frame of the sample that @share is of. */
static int take_frame(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame, const struct kb_share *share, bool caller)
{
	struct waiting *waiting = &hot->queue[hot->next % QUEUE];
	const struct kb_name_id *comm = kb_name_ids_find(&hot->comms, event->task_id,
							 event->timestamp);

	if (!comm)
		return -ENOMEM;
	make_key(hot, event, frame, comm->id, waiting->key);
	waiting->hash = kb_table_hash(&hot->rows, waiting->key);
	waiting->sample = hot->samples;
	waiting->share = *share;
	waiting->caller = caller;
	waiting->idle = hot->idle;
	waiting->task_id = event->task_id;
	waiting->task = comm->name;
	waiting->frame = *frame;
	return enqueue(hot, waiting);
}

/* Whether the idle loop waits in @symbol. Most idle samples are in the same function. */
static bool is_idle(struct kb_hot *hot, const struct kb_symbol *symbol)
{
	if (symbol->name != hot->judged) {
		hot->judged = symbol->name;
		hot->judged_idle = kb_idle_symbol(symbol);
	}
	return hot->judged_idle;
}

int kb_hot_add_share(struct kb_hot *hot, const struct kb_event *event,
		     const struct kb_frame *frame, const struct kb_share *share)
{
	const struct remembered *task;

	hot->samples++;
	hot->idle = hot->sort & KB_SORT_IDLE && !event->task_id && is_idle(hot, &frame->symbol);
	task = &hot->tasks[place_of(event->task_id, hot->idle)];
	if (task->row && task->task_id == event->task_id)
		return add_to_row(hot, share, hot->samples, task->row - 1);
	return take_frame(hot, event, frame, share, false);
}

int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame)
{
	struct kb_share share;

	kb_share_take(&share, hot->names, event, false);
	return kb_hot_add_share(hot, event, frame, &share);
}

int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame)
{
	struct kb_share share;

	kb_share_take(&share, NULL, event, false);
	return take_frame(hot, event, frame, &share, true);
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
