// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/series.h"

/* The row with that number, which is made; NULL without memory. It holds until the next call. */
static struct kb_sliced *get_row(struct kb_diff_set *set, uint32_t i)
{
	uint32_t nr = set->nr ? set->nr : 16;
	struct kb_sliced *rows;

	if (i < set->nr)
		return &set->rows[i];
	while (nr <= i)
		nr *= 2;
	rows = reallocarray(set->rows, nr, sizeof(*rows));
	if (!rows)
		return NULL;
	memset(rows + set->nr, 0, (nr - set->nr) * sizeof(*rows));
	set->rows = rows;
	set->nr = nr;
	return &rows[i];
}

/* What small rows are made of is lost to slices that nobody needs. */
static struct kb_slicing *slicing_of(const struct kb_diff_set *set, const struct kb_sliced *row,
				     double amount, struct kb_slicing *slicing)
{
	static struct kb_slicing none;	/* never written */

	return row->sum + amount < KB_DIFF_SMALL * set->sum ? &none : slicing;
}

int kb_diff_set_add(struct kb_diff_set *set, uint32_t i, struct kb_slicing *slicing, int64_t ns,
		    double amount)
{
	struct kb_sliced *row = get_row(set, i);

	if (!row)
		return -ENOMEM;
	set->sum += amount;
	return kb_sliced_add(row, slicing_of(set, row, amount, slicing), ns, amount);
}

int kb_diff_set_spread(struct kb_diff_set *set, uint32_t i, struct kb_slicing *slicing, int64_t from,
		       int64_t until)
{
	double amount = (double)((uint64_t)until - (uint64_t)from);
	struct kb_sliced *row = get_row(set, i);

	if (!row)
		return -ENOMEM;
	set->sum += amount;
	return kb_sliced_spread(row, slicing_of(set, row, amount, slicing), from, until, amount);
}

void kb_diff_set_release(struct kb_diff_set *set)
{
	for (uint32_t i = 0; i < set->nr; i++)
		kb_sliced_release(&set->rows[i]);
	free(set->rows);
	*set = (struct kb_diff_set){ 0 };
}

/* ---- sums ---- */

struct sum {
	double value, events;
	double blocks[KB_BLOCKS_SLICES];
};

static void take(const struct kb_diff_cells *cells, const struct kb_sliced *row, struct sum *sum)
{
	sum->value = row->sum;
	sum->events = (double)row->events;
	if (cells->slicing->wanted)
		kb_sliced_blocks(row, cells->slicing, cells->last, sum->blocks);
}

static void add(struct sum *to, const struct sum *from)
{
	to->value += from->value;
	to->events += from->events;
	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++)
		to->blocks[i] += from->blocks[i];
}

/* Rows below this part of their set are not compared by default, so their slices are not kept. */
#define KEPT	0.002

static int put_cell(const struct kb_diff_cells *cells, const struct kb_diff_what *what,
		    struct kb_diff_cell cell, const double blocks[KB_BLOCKS_SLICES])
{
	double seconds = cells->capture->seconds, factor = 1;

	if (cells->capture->per_second && !kb_diff_is_mean(what->measure) && seconds > 0)
		factor = 1 / seconds;
	cell.capture = cells->capture->number;
	cell.value *= factor;
	cell.variance *= factor * factor;
	if (!kb_diff_is_mean(what->measure))
		cell.weight = cell.value;
	if (blocks) {
		cell.blocks = calloc(KB_BLOCKS_SLICES, sizeof(*cell.blocks));
		if (!cell.blocks)
			return -ENOMEM;
		for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++)
			cell.blocks[i] = (float)(blocks[i] * factor);
	}
	return kb_diff_table_put(cells->table, what, &cell);
}

/*
 * A run of a task is no chance as a sample is: it counts as many events if it is long, one for each
 * tick of 1 ms.
 */
static double events_of(const struct kb_diff_what *what, const struct sum *sum)
{
	bool runs = what->measure == KB_DIFF_CPU && (what->by == KB_DIFF_TASK ||
						     what->by == KB_DIFF_TOTAL);

	return runs && sum->value > 1e6 * sum->events ? sum->value / 1e6 : sum->events;
}

/* @all: the sum of all rows of the set. */
static int put_sum(const struct kb_diff_cells *cells, const struct kb_diff_what *what,
		   const struct sum *sum, double all)
{
	struct kb_diff_cell cell = { .value = sum->value, .events = events_of(what, sum) };
	bool kept = cells->slicing->wanted && sum->value >= KEPT * all;

	if (cells->slicing->wanted)
		cell.variance = kb_blocks_variance(sum->blocks);
	if (cells->capture->see)
		cells->capture->see(cells->capture->context, what, sum->blocks, sum->events);
	return put_cell(cells, what, cell, kept ? sum->blocks : NULL);
}

static struct kb_diff_what total_of(struct kb_diff_what what)
{
	what.by = KB_DIFF_TOTAL;
	what.name = what.image = NULL;
	what.kernel = false;
	what.node = 0;
	return what;
}

int kb_diff_put_set(const struct kb_diff_cells *cells, const struct kb_diff_set *set,
		    struct kb_diff_what what, bool total, kb_diff_name name, void *context)
{
	struct sum all = { 0 }, sum = { 0 };
	const double whole = set->sum;
	int ret = 0;

	for (uint32_t i = 0; i < set->nr && !ret; i++) {
		if (!set->rows[i].events)
			continue;
		take(cells, &set->rows[i], &sum);
		add(&all, &sum);
		ret = name(context, i, &what) ?: put_sum(cells, &what, &sum, whole);
	}
	what = total_of(what);
	return ret || !total || !(all.events > 0) ? ret : put_sum(cells, &what, &all, whole);
}

/* ---- ratios ---- */

static int put_ratio(const struct kb_diff_cells *cells, const struct kb_diff_what *what,
		     const struct sum *above, const struct sum *below, double all)
{
	struct kb_diff_cell cell = { .weight = below->value, .events = below->events };
	double blocks[KB_BLOCKS_SLICES];
	bool kept = cells->slicing->wanted && below->value >= KEPT * all;

	if (!(below->value > 0))
		return 0;
	cell.value = above->value / below->value;
	if (cells->slicing->wanted) {
		kb_blocks_ratio(above->blocks, below->blocks, blocks);
		cell.variance = kb_blocks_variance(blocks);
	}
	return put_cell(cells, what, cell, kept ? blocks : NULL);
}

int kb_diff_put_ratios(const struct kb_diff_cells *cells, const struct kb_diff_set *above,
		       const struct kb_diff_set *below, struct kb_diff_what what, bool total,
		       kb_diff_name name, void *context)
{
	struct sum all_above = { 0 }, all_below = { 0 }, of_above = { 0 }, of_below = { 0 };
	const double whole = below->sum;
	int ret = 0;

	for (uint32_t i = 0; i < above->nr && i < below->nr && !ret; i++) {
		if (!below->rows[i].events)
			continue;
		take(cells, &above->rows[i], &of_above);
		take(cells, &below->rows[i], &of_below);
		add(&all_above, &of_above);
		add(&all_below, &of_below);
		ret = name(context, i, &what) ?: put_ratio(cells, &what, &of_above, &of_below, whole);
	}
	what = total_of(what);
	return ret || !total ? ret : put_ratio(cells, &what, &all_above, &all_below, whole);
}

int kb_diff_put_p99(const struct kb_diff_cells *cells, const struct kb_sliced_times *times,
		    const struct kb_diff_what *what)
{
	const struct kb_histogram *all = &times->all;

	if (!all->count)
		return 0;
	return put_cell(cells, what, (struct kb_diff_cell){
		.value = kb_histograms_quantile(all, &(unsigned int){ 1 }, 1, 99),
		.variance = cells->slicing->wanted ?
			kb_sliced_times_variance(times, cells->slicing, cells->last, 99) : 0,
		.weight = (double)all->count,
		.events = (double)all->count,
	}, NULL);
}
