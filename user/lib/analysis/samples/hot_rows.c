// SPDX-License-Identifier: MIT
/* The rows of a table of samples: their final weights, their order, and what they say. */
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/hot_inside.h"

static const struct hot_more *more_of(const struct kb_hot *hot, uint32_t row)
{
	static const struct hot_more none;

	return row < hot->max_more ? &hot->more[row] : &none;
}

/* ---- counters ---- */

uint64_t kb_hot_counter(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id)
{
	if (hot->single && row->number < hot->rows.nr && !id)
		return hot_tally(hot, row->number)->weight;
	return row->number < hot->max_sums && id < hot->nr_counters ?
		hot->sums[(size_t)row->number * hot->nr_counters + id] : 0;
}

uint64_t kb_hot_counter_of(const struct kb_hot *hot, const struct kb_sample_row *row, uint32_t id,
			   uint32_t sets)
{
	uint64_t sum = sets & 1 ? kb_hot_counter(hot, row, id) : 0;

	for (unsigned int set = 1; set < KB_COUNT_SETS; set++) {
		if (row->number >= hot->sets[set].max || id >= hot->nr_counters ||
		    (sets >> set & 1) == (sets & 1))
			continue;
		if (sets & 1)
			sum -= hot->sets[set].sums[(size_t)row->number * hot->nr_counters + id];
		else
			sum += hot->sets[set].sums[(size_t)row->number * hot->nr_counters + id];
	}
	return sum;
}

/* ---- weights ---- */

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t weight_of(const struct kb_hot *hot, uint32_t row)
{
	const struct hot_tally *tally = hot_tally(hot, row);

	return hot->count ? tally->samples :
	       add_up(tally->weight, hot->mean * more_of(hot, row)->unweighed);
}

/* The weight of the samples here and in functions that were called from here. */
static uint64_t children_of(const struct kb_hot *hot, uint32_t row)
{
	const struct hot_more *more = more_of(hot, row);
	uint64_t called = hot->count ? more->nr_callers :
			  add_up(more->children, hot->mean * more->callers_unweighed);

	return add_up(called, weight_of(hot, row));
}

/* Sum up all rows. Samples without a weight get the mean of the others. */
static void sum_up(struct kb_hot *hot, bool count, struct kb_sample_row *totals)
{
	uint64_t weighed = 0;

	*totals = (struct kb_sample_row) { 0 };
	for (uint32_t i = 0; i < hot->rows.nr; i++) {
		totals->samples += hot_tally(hot, i)->samples;
		totals->partial += more_of(hot, i)->partial;
		totals->weight = add_up(totals->weight, hot_tally(hot, i)->weight);
		weighed += hot_tally(hot, i)->samples - more_of(hot, i)->unweighed;
	}
	hot->count = count || !totals->weight;
	hot->mean = weighed ? totals->weight / weighed : 0;
	totals->weight = 0;
	for (uint32_t i = 0; i < hot->rows.nr; i++)
		totals->weight = add_up(totals->weight, weight_of(hot, i));
}

/* ---- order ---- */

static int compare_spots(const struct kb_hot *hot, const struct hot_tally *a,
			 const struct hot_tally *b)
{
	const struct kb_spot_symbol *x = kb_spots_symbol(hot->spots, a->symbol);
	const struct kb_spot_symbol *y = kb_spots_symbol(hot->spots, b->symbol);
	const struct kb_spot_line *m = kb_spots_line(hot->spots, a->line);
	const struct kb_spot_line *n = kb_spots_line(hot->spots, b->line);
	int order = x->image == y->image ? 0 : strcmp(x->image, y->image);

	if (!order)
		order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(m->file, n->file);
	return order ?: (m->line > n->line) - (m->line < n->line);
}

static int compare_names(const struct kb_hot *hot, const struct hot_tally *a,
			 const struct hot_tally *b)
{
	int order = a->comm == b->comm ? 0 : strcmp(kb_name_ids_name(&hot->comms, a->comm),
						    kb_name_ids_name(&hot->comms, b->comm));

	if (!order)
		order = compare_spots(hot, a, b);
	if (!order)
		order = (a->task_id > b->task_id) - (a->task_id < b->task_id);
	return order ?: (a->core > b->core) - (a->core < b->core);
}

static int compare(const void *left, const void *right, void *table)
{
	const struct hot_place *a = left, *b = right;
	const struct hot_tally *x, *y;
	const struct kb_hot *hot = table;
	uint64_t own_a, own_b;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	x = hot_tally(hot, a->row);
	y = hot_tally(hot, b->row);
	own_a = weight_of(hot, a->row);
	own_b = weight_of(hot, b->row);
	if (own_a != own_b)
		return own_a > own_b ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return compare_names(hot, x, y);
}

/* Move the rows of the idle loop behind the others, and return the number of the others. */
static uint32_t set_idle_apart(struct hot_place *order, uint32_t nr)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct hot_place place = order[i];

		if (place.idle)
			continue;
		order[i] = order[work];
		order[work++] = place;
	}
	return work;
}

/*
 * Put more rows into their order: those that are at least half as heavy as the heaviest one left. So
 * the light rows, which are many and rarely asked for, need not be sorted.
 */
static void put_in_order(struct kb_hot *hot)
{
	struct hot_place *first = hot->order + hot->in_order;
	uint32_t left = hot->nr_work - hot->in_order, heavy = 0;
	uint64_t most = 0;

	for (uint32_t i = 0; i < left; i++)
		if (first[i].weight > most)
			most = first[i].weight;
	for (uint32_t i = 0; i < left; i++) {
		struct hot_place place = first[i];

		if (place.weight < most - most / 2)
			continue;
		first[i] = first[heavy];
		first[heavy++] = place;
	}
	qsort_r(first, heavy, sizeof(*first), compare, hot);
	hot->in_order += heavy;
}

bool kb_hot_finish(struct kb_hot *hot, bool count, struct kb_sample_table *table,
		   struct kb_sample_row *totals)
{
	uint32_t nr, i;

	while (hot->first != hot->next)
		if (hot_add_first(hot))
			return false;
	nr = hot->rows.nr;
	kb_table_close(&hot->rows);
	sum_up(hot, count, totals);
	hot->order = reallocarray(NULL, (size_t)nr + 1, sizeof(*hot->order));
	if (!hot->order)
		return false;
	for (i = 0; i < nr; i++)
		hot->order[i] = (struct hot_place) {
			children_of(hot, i), i, hot_tally(hot, i)->idle };
	hot->nr_work = set_idle_apart(hot->order, nr);
	qsort_r(hot->order + hot->nr_work, nr - hot->nr_work, sizeof(*hot->order), compare, hot);
	*table = (struct kb_sample_table) { .nr = nr, .nr_work = hot->nr_work, .hot = hot };
	return true;
}

/* It is the last word of the key. */
static uint32_t pid_of(const struct kb_hot *hot, uint32_t row)
{
	const uint64_t *key = kb_table_row(&hot->rows, row);

	return hot->pid_key ? (uint32_t)key[hot->rows.key_words - 1] : 0;
}

/* It is the last word but that of the process. */
const char *kb_hot_cgroup(const struct kb_hot *hot, const struct kb_sample_row *row)
{
	if (!hot->cgroup_key || row->number >= hot->rows.nr)
		return NULL;
	return (const char *)(uintptr_t)((const uint64_t *)kb_table_row(&hot->rows, row->number))
		[hot->rows.key_words - 1 - hot->pid_key];
}

struct kb_sample_row kb_hot_row(struct kb_hot *hot, uint32_t i)
{
	const struct kb_spot_symbol *symbol;
	const struct kb_spot_line *line;
	const struct hot_tally *tally;
	const struct hot_more *more;
	uint32_t number;

	while (i < hot->nr_work && i >= hot->in_order)
		put_in_order(hot);
	number = hot->order[i].row;
	tally = hot_tally(hot, number);
	more = more_of(hot, number);
	symbol = kb_spots_symbol(hot->spots, tally->symbol);
	line = kb_spots_line(hot->spots, tally->line);
	return (struct kb_sample_row) {
		.samples = tally->samples,
		.weight = weight_of(hot, number),
		.partial = more->partial,
		.children = hot->order[i].weight,
		.nr_callers = more->nr_callers,
		.task = kb_name_ids_name(&hot->comms, tally->comm),
		.image = symbol->image,
		.image_base = symbol->image_base,
		.symbol = symbol->name,
		.address = symbol->address,
		.kernel = symbol->kernel,
		.file = line->file,
		.line = line->line,
		.inlined = tally->inlined,
		.idle = tally->idle,
		.task_id = tally->task_id,
		.core = tally->core,
		.number = number,
		.pid = pid_of(hot, number),
	};
}
