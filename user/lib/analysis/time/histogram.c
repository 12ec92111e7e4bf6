// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/time/histogram.h"
#include "base/bisect.h"
#define EXACT_BITS	6U	/* values below 2^6 are exact */
#define PARTS_BITS	5U	/* each power of two above has 2^5 steps */
#define STEPS		((1U << EXACT_BITS) + ((64 - EXACT_BITS) << PARTS_BITS))

static unsigned int power_of(uint64_t value)
{
	return value ? 63 - (unsigned int)__builtin_clzll(value) : 0;
}

static uint32_t step_of(uint64_t value)
{
	unsigned int power = power_of(value), shift;

	if (power < EXACT_BITS)
		return (uint32_t)value;
	shift = power - PARTS_BITS;
	return (1U << EXACT_BITS) + ((power - EXACT_BITS) << PARTS_BITS) +
	       (uint32_t)(value >> shift & ((1U << PARTS_BITS) - 1));
}

/* The largest value of a step. */
static uint64_t last_of(uint32_t step)
{
	unsigned int power;
	uint64_t first, width;

	if (step < 1U << EXACT_BITS)
		return step;
	step -= 1U << EXACT_BITS;
	power = EXACT_BITS + (step >> PARTS_BITS);
	width = UINT64_C(1) << (power - PARTS_BITS);
	first = (UINT64_C(1) << power) + (step & ((1U << PARTS_BITS) - 1)) * width;
	return first + (width - 1);
}

/* Most histograms have few steps, so the room begins small. */
static int make_room(struct kb_histogram *histogram)
{
	uint32_t room = histogram->room ? histogram->room * 2 : 4;
	struct kb_histogram_step *steps;

	if (histogram->nr < histogram->room)
		return 0;
	steps = reallocarray(histogram->steps, room, sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	histogram->steps = steps;
	histogram->room = room;
	return 0;
}

/* The row of @step, which is made if there is none; NULL without memory. */
static struct kb_histogram_step *get_step(struct kb_histogram *histogram, uint32_t step)
{
	uint32_t i = KB_BISECT(k, 0, histogram->nr, histogram->steps[k].step < step);
	struct kb_histogram_step *at;

	if (i == histogram->nr || histogram->steps[i].step != step) {
		if (make_room(histogram))
			return NULL;
		at = &histogram->steps[i];
		memmove(at + 1, at, (histogram->nr - i) * sizeof(*at));
		*at = (struct kb_histogram_step){ .step = step };
		histogram->nr++;
	}
	return &histogram->steps[i];
}

int kb_histogram_add(struct kb_histogram *histogram, uint64_t value)
{
	struct kb_histogram_step *step = get_step(histogram, step_of(value));

	if (!step)
		return -ENOMEM;
	step->count++;
	histogram->count++;
	histogram->sum += value;
	if (value > histogram->max)
		histogram->max = value;
	return 0;
}

int kb_histogram_merge(struct kb_histogram *to, const struct kb_histogram *from)
{
	for (uint32_t i = 0; i < from->nr; i++) {
		struct kb_histogram_step *step = get_step(to, from->steps[i].step);

		if (!step)
			return -ENOMEM;
		step->count += from->steps[i].count;
	}
	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
	return 0;
}

void kb_histogram_release(struct kb_histogram *histogram)
{
	free(histogram->steps);
	*histogram = (struct kb_histogram){ 0 };
}

/* Of @count values in order, the number of the one that has @percent percent of them up to it. */
static uint64_t rank_of(uint64_t count, unsigned int percent)
{
	return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

uint64_t kb_histogram_quantile(const struct kb_histogram *histogram, unsigned int percent)
{
	uint64_t rank = rank_of(histogram->count, percent), seen = 0, last;
	uint32_t i;

	for (i = 0; i < histogram->nr; i++) {
		seen += histogram->steps[i].count;
		if (seen < rank)
			continue;
		last = last_of(histogram->steps[i].step);
		return last < histogram->max ? last : histogram->max;
	}
	return 0;
}

/* The smallest value of a step. */
static uint64_t first_of(uint32_t step)
{
	return step ? last_of(step - 1) + 1 : 0;
}

double kb_histograms_quantile(const struct kb_histogram *histograms, const unsigned int *weights,
			      uint32_t nr, unsigned int percent)
{
	uint64_t counts[STEPS] = { 0 }, count = 0, rank, seen = 0;

	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t j = 0; weights[i] && j < histograms[i].nr; j++)
			counts[histograms[i].steps[j].step] +=
				(uint64_t)histograms[i].steps[j].count * weights[i];
		count += histograms[i].count * weights[i];
	}
	rank = rank_of(count, percent);
	for (uint32_t step = 0; count && step < STEPS; step++) {
		if (counts[step] && seen + counts[step] >= rank) {
			double first = (double)first_of(step), last = (double)last_of(step);

			return first + (last - first) * (double)(rank - seen) / (double)counts[step];
		}
		seen += counts[step];
	}
	return 0;
}

void kb_histogram_powers(const struct kb_histogram *histogram, uint64_t powers[64])
{
	uint32_t i;

	memset(powers, 0, 64 * sizeof(*powers));
	for (i = 0; i < histogram->nr; i++)
		powers[power_of(last_of(histogram->steps[i].step))] += histogram->steps[i].count;
}

struct kb_latency_stats kb_histogram_stats(const struct kb_histogram *histogram)
{
	return (struct kb_latency_stats){
		.count = histogram->count,
		.sum_ns = histogram->sum,
		.median_ns = kb_histogram_quantile(histogram, 50),
		.p99_ns = kb_histogram_quantile(histogram, 99),
		.max_ns = histogram->max,
	};
}
