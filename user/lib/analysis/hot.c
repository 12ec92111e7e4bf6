// SPDX-License-Identifier: MIT
/* One hash table, whose rows are few compared to samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/comm.h"
#include "analysis/hot.h"
#include "table.h"

struct kb_hot {
	unsigned int sort;
	struct kb_table rows;
	struct kb_comms comms;
	uint64_t samples;		/* added so far */
	bool has_callers;

	const struct kb_names *names;	/* NULL: only the first counter matters */
	uint32_t nr_counters;
	uint64_t *sums;			/* of row r: from sums[r * nr_counters] on, where r
					 * is its number before they were ordered */
	uint32_t max_sums;		/* rows there is room for */
};

int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, unsigned int sort,
		  struct kb_error *err)
{
	struct kb_hot *hot = calloc(1, sizeof(*hot));

	if (!hot)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	hot->sort = sort;
	kb_table_init(&hot->rows, sizeof(struct kb_hot_row), 4);
	kb_comms_init(&hot->comms, tasks);
	*out = hot;
	return 0;
}

void kb_hot_destroy(struct kb_hot *hot)
{
	if (!hot)
		return;
	kb_table_release(&hot->rows);
	kb_comms_release(&hot->comms);
	free(hot->sums);
	free(hot);
}

void kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names)
{
	hot->names = names;
	hot->nr_counters = kb_names_nr_counters(names);
}

uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_hot_row *row, uint32_t id)
{
	return row->sums < hot->max_sums && id < hot->nr_counters ?
		hot->sums[(size_t)row->sums * hot->nr_counters + id] : 0;
}

/* Room for the sums of row number @row. */
static int reserve_sums(struct kb_hot *hot, uint32_t row)
{
	size_t nr = hot->nr_counters, max = hot->max_sums ? hot->max_sums * 2 : 64;
	uint64_t *grown;

	if (row < hot->max_sums)
		return 0;
	grown = reallocarray(hot->sums, max * nr, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + hot->max_sums * nr, 0, (max - hot->max_sums) * nr * sizeof(*grown));
	hot->sums = grown;
	hot->max_sums = max;
	return 0;
}

static int sum_counters(struct kb_hot *hot, const struct kb_event *event,
			const struct kb_hot_row *row)
{
	uint32_t nr = kb_names_of_core(hot->names, event->core), i;
	uint64_t *sums;

	if (!hot->nr_counters)
		return 0;
	if (reserve_sums(hot, row->sums))
		return -ENOMEM;
	sums = hot->sums + (size_t)row->sums * hot->nr_counters;
	for (i = 0; i < nr && i < event->sample.nr_counters; i++)
		if (event->sample.counters[i] != KB_COUNTER_INVALID)
			sums[kb_names_counter_id(hot->names, event->core, i)] +=
				event->sample.counters[i];
	return 0;
}

/* The row of a sample or a frame; NULL without memory. */
static struct kb_hot_row *find_row(struct kb_hot *hot, const struct kb_event *event,
				   const struct kb_frame *frame)
{
	const struct kb_symbol *symbol = &frame->symbol;
	const struct kb_comm *comm = kb_comms_find(&hot->comms, event->task_id,
						   event->timestamp);
	uint64_t key[4] = { 0 };
	struct kb_hot_row *row;

	if (!comm)
		return NULL;
	if (hot->sort & KB_SORT_TASK)
		key[0] = (uint64_t)comm->id << 32;
	if (hot->sort & KB_SORT_TID)
		key[0] |= event->task_id;
	if (hot->sort & (KB_SORT_IMAGE | KB_SORT_LINE))
		key[1] = (uintptr_t)symbol->image;
	if (hot->sort & KB_SORT_SYMBOL)
		key[2] = (uint64_t)symbol->id << 32;
	if (hot->sort & KB_SORT_CPU)
		key[2] |= event->core;
	if (hot->sort & KB_SORT_LINE)
		key[3] = frame->line_id;

	row = kb_table_get(&hot->rows, key);
	if (row && !row->task) {
		row->sums = hot->rows.nr - 1;
		row->task = comm->name;
		row->image = symbol->image;
		row->image_base = symbol->image_base;
		row->symbol = symbol->name;
		row->kernel = symbol->kernel;
		row->inlined = symbol->inlined;
		row->file = frame->file;
		row->line = frame->line;
		row->task_id = event->task_id;
		row->core = event->core;
	}
	return row;
}

/* Add the sample to a sum, or to the number of those without a weight. */
static void add_weight(const struct kb_event *event, uint64_t *sum, uint64_t *unweighed)
{
	if (event->sample.nr_counters && event->sample.counters[0] != KB_COUNTER_INVALID &&
	    event->sample.counters[0] <= UINT64_MAX - *sum)
		*sum += event->sample.counters[0];
	else
		++*unweighed;
}

static void add_to_children(const struct kb_hot *hot, const struct kb_event *event,
			    struct kb_hot_row *row)
{
	if (row->last_sample == hot->samples)
		return;
	row->last_sample = hot->samples;
	row->nr_children++;
	add_weight(event, &row->children, &row->children_unweighed);
}

int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame)
{
	struct kb_hot_row *row = find_row(hot, event, frame);

	if (!row)
		return -ENOMEM;
	hot->samples++;
	row->samples++;
	add_weight(event, &row->weight, &row->unweighed);
	add_to_children(hot, event, row);
	return hot->names ? sum_counters(hot, event, row) : 0;
}

int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame)
{
	struct kb_hot_row *row = find_row(hot, event, frame);

	if (!row)
		return -ENOMEM;
	hot->has_callers = true;
	add_to_children(hot, event, row);
	return 0;
}

static int compare_names(const struct kb_hot_row *a, const struct kb_hot_row *b)
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
	const struct kb_hot_row *a = left, *b = right;

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

/* Turn what was summed up into final weights: in samples with @count. */
static void settle(const struct kb_hot *hot, struct kb_hot_row *row, bool count, uint64_t mean)
{
	if (count)
		row->weight = row->samples;
	else
		row->weight = add_up(row->weight, mean * row->unweighed);
	if (!hot->has_callers)
		row->children = row->weight;
	else if (count)
		row->children = row->nr_children;
	else
		row->children = add_up(row->children, mean * row->children_unweighed);
}

const struct kb_hot_row *kb_hot_rows(struct kb_hot *hot, bool count, uint32_t *nr,
				     struct kb_hot_row *totals)
{
	struct kb_hot_row *rows = (struct kb_hot_row *)hot->rows.rows;
	uint64_t weighed = 0, mean;
	uint32_t i;

	*totals = (struct kb_hot_row) { 0 };
	*nr = hot->rows.nr;
	for (i = 0; i < *nr; i++) {
		totals->samples += rows[i].samples;
		totals->weight = add_up(totals->weight, rows[i].weight);
		weighed += rows[i].samples - rows[i].unweighed;
	}
	count = count || !totals->weight;
	mean = weighed ? totals->weight / weighed : 0;
	totals->weight = 0;
	for (i = 0; i < *nr; i++) {
		settle(hot, &rows[i], count, mean);
		totals->weight = add_up(totals->weight, rows[i].weight);
	}
	if (*nr)
		qsort(rows, *nr, sizeof(*rows), compare_rows);
	return rows;
}
