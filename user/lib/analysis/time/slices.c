// SPDX-License-Identifier: MIT
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/time/slices.h"

#define FIRST_SHIFT	12	/* 4 us */
#define RESAMPLED	200	/* the error of a standard error is then 5 % */

static uint64_t since(const struct kb_slicing *slicing, int64_t ns)
{
	return ns > slicing->first ? (uint64_t)ns - (uint64_t)slicing->first : 0;
}

uint32_t kb_slicing_at(struct kb_slicing *slicing, int64_t ns)
{
	if (!slicing->begun) {
		slicing->begun = true;
		slicing->first = ns;
		slicing->shift = FIRST_SHIFT;
	}
	while (since(slicing, ns) >> slicing->shift >= KB_SLICES_MOST)
		slicing->shift++;
	return (uint32_t)(since(slicing, ns) >> slicing->shift);
}

/* ---- amounts ---- */

/* Bring the parts to the slices that there are now. */
static void coarsen(struct kb_sliced *sliced, unsigned int shift)
{
	unsigned int by = shift - sliced->shift;
	uint32_t to = 0;

	sliced->shift = shift;
	for (uint32_t i = 0; i < sliced->nr && by; i++) {
		struct kb_slice_part part = sliced->parts[i];

		part.at = by < 32 ? part.at >> by : 0;
		if (to && sliced->parts[to - 1].at == part.at)
			sliced->parts[to - 1].amount += part.amount;
		else
			sliced->parts[to++] = part;
	}
	if (by)
		sliced->nr = to;
}

/* The place of slice @at, from behind, because time goes on. */
static uint32_t place_of(const struct kb_sliced *sliced, uint32_t at)
{
	uint32_t i = sliced->nr;

	while (i && sliced->parts[i - 1].at >= at)
		i--;
	return i;
}

static int insert(struct kb_sliced *sliced, uint32_t at, double amount)
{
	uint32_t i = place_of(sliced, at), room = sliced->room ? 2 * sliced->room : 2;
	struct kb_slice_part *parts;

	if (i < sliced->nr && sliced->parts[i].at == at) {
		sliced->parts[i].amount += (float)amount;
		return 0;
	}
	if (sliced->nr == sliced->room) {
		parts = reallocarray(sliced->parts, room, sizeof(*parts));
		if (!parts)
			return -ENOMEM;
		sliced->parts = parts;
		sliced->room = room;
	}
	memmove(&sliced->parts[i + 1], &sliced->parts[i], (sliced->nr - i) * sizeof(*sliced->parts));
	sliced->parts[i] = (struct kb_slice_part){ at, (float)amount };
	sliced->nr++;
	return 0;
}

/* Nearly all amounts are of the newest slice. */
static inline int put(struct kb_sliced *sliced, uint32_t at, double amount)
{
	struct kb_slice_part *last = sliced->nr ? &sliced->parts[sliced->nr - 1] : NULL;

	if (!last || last->at != at)
		return insert(sliced, at, amount);
	last->amount += (float)amount;
	return 0;
}

int kb_sliced_add(struct kb_sliced *sliced, struct kb_slicing *slicing, int64_t ns, double amount)
{
	uint32_t at;

	sliced->sum += amount;
	sliced->events++;
	if (!slicing->wanted)
		return 0;
	at = kb_slicing_at(slicing, ns);
	coarsen(sliced, slicing->shift);
	return put(sliced, at, amount);
}

int kb_sliced_spread(struct kb_sliced *sliced, struct kb_slicing *slicing, int64_t from,
		     int64_t until, double amount)
{
	uint64_t begin, end;
	uint32_t at, last;
	int ret = 0;

	if (!slicing->wanted || until <= from)
		return kb_sliced_add(sliced, slicing, until, amount);
	sliced->sum += amount;
	sliced->events++;
	kb_slicing_at(slicing, from);
	last = kb_slicing_at(slicing, until);
	coarsen(sliced, slicing->shift);
	begin = since(slicing, from);
	end = since(slicing, until);
	if (end <= begin || begin >> slicing->shift == last)
		return put(sliced, last, amount);
	for (at = (uint32_t)(begin >> slicing->shift); at <= last && !ret; at++) {
		double left = fmax((double)begin, ldexp(at, (int)slicing->shift));
		double right = fmin((double)end, ldexp(at + 1.0, (int)slicing->shift));

		if (right > left)
			ret = put(sliced, at, amount * (right - left) / (double)(end - begin));
	}
	return ret;
}

void kb_sliced_release(struct kb_sliced *sliced)
{
	free(sliced->parts);
	*sliced = (struct kb_sliced){ 0 };
}

/* The part of a run of @length ns that is in front of @ns, in slices of the run. */
static double place_in_run(double ns, double length)
{
	return fmin(ns / length, 1) * KB_BLOCKS_SLICES;
}

void kb_sliced_blocks(const struct kb_sliced *sliced, const struct kb_slicing *slicing,
		      int64_t last, double blocks[KB_BLOCKS_SLICES])
{
	double length = fmax((double)since(slicing, last), 1);

	memset(blocks, 0, KB_BLOCKS_SLICES * sizeof(*blocks));
	for (uint32_t i = 0; i < sliced->nr; i++) {
		const struct kb_slice_part *part = &sliced->parts[i];
		double from = place_in_run(ldexp(part->at, (int)sliced->shift), length);
		double until = place_in_run(ldexp(part->at + 1.0, (int)sliced->shift), length);
		unsigned int at = (unsigned int)fmin(from, KB_BLOCKS_SLICES - 1);

		if (until <= from) {
			blocks[at] += part->amount;
			continue;
		}
		for (; at < KB_BLOCKS_SLICES && at < until; at++)
			blocks[at] += part->amount * (fmin(until, at + 1.0) - fmax(from, at)) /
				      (until - from);
	}
}

/* ---- times ---- */

static int coarsen_times(struct kb_sliced_times *times, unsigned int shift)
{
	int ret = 0;

	for (; times->shift < shift; times->shift++)
		for (uint32_t i = 1; i < KB_SLICES_OF_TIMES && !ret; i++) {
			ret = kb_histogram_merge(&times->slices[i / 2], &times->slices[i]);
			kb_histogram_release(&times->slices[i]);
		}
	return ret;
}

int kb_sliced_times_add(struct kb_sliced_times *times, struct kb_slicing *slicing, int64_t ns,
			uint64_t value)
{
	uint32_t at;

	if (!slicing->wanted)
		return kb_histogram_add(&times->all, value);
	at = kb_slicing_at(slicing, ns) / 4;
	if (!times->slices) {
		times->slices = calloc(KB_SLICES_OF_TIMES, sizeof(*times->slices));
		times->shift = slicing->shift + 2;
	}
	if (!times->slices || coarsen_times(times, slicing->shift + 2) ||
	    kb_histogram_add(&times->all, value))
		return -ENOMEM;
	return kb_histogram_add(&times->slices[at], value);
}

void kb_sliced_times_release(struct kb_sliced_times *times)
{
	for (uint32_t i = 0; times->slices && i < KB_SLICES_OF_TIMES; i++)
		kb_histogram_release(&times->slices[i]);
	free(times->slices);
	kb_histogram_release(&times->all);
	*times = (struct kb_sliced_times){ 0 };
}

double kb_sliced_times_variance(const struct kb_sliced_times *times,
				const struct kb_slicing *slicing, int64_t last,
				unsigned int percent)
{
	double length = fmax((double)since(slicing, last), 1), sum = 0, squares = 0;
	unsigned int in_run[KB_SLICES_OF_TIMES], drawn[KB_BLOCKS_SLICES], weights[KB_SLICES_OF_TIMES];
	uint64_t random = 1;

	if (!times->slices)
		return 0;
	for (uint32_t i = 0; i < KB_SLICES_OF_TIMES; i++)
		in_run[i] = (unsigned int)fmin(
			place_in_run(ldexp(i + 0.5, (int)times->shift), length),
			KB_BLOCKS_SLICES - 1);
	for (unsigned int run = 0; run < RESAMPLED; run++) {
		double value;

		kb_blocks_draw(&random, drawn);
		for (uint32_t i = 0; i < KB_SLICES_OF_TIMES; i++)
			weights[i] = drawn[in_run[i]];
		value = kb_histograms_quantile(times->slices, weights, KB_SLICES_OF_TIMES, percent);
		sum += value;
		squares += value * value;
	}
	return fmax(squares / RESAMPLED - sum / RESAMPLED * sum / RESAMPLED, 0);
}
