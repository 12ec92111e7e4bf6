// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/histogram.h"
#define EXACT_BITS	6U	/* values below 2^6 are exact */
#define PARTS_BITS	5U	/* each power of two above has 2^5 steps */

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

int kb_histogram_add(struct kb_histogram *histogram, uint64_t value)
{
	uint32_t step = step_of(value), low = 0, high = histogram->nr;
	struct kb_histogram_step *at;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (histogram->steps[middle].step < step)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == histogram->nr || histogram->steps[low].step != step) {
		if (make_room(histogram))
			return -ENOMEM;
		at = &histogram->steps[low];
		memmove(at + 1, at, (histogram->nr - low) * sizeof(*at));
		*at = (struct kb_histogram_step){ .step = step };
		histogram->nr++;
	}
	histogram->steps[low].count++;
	histogram->count++;
	histogram->sum += value;
	if (value > histogram->max)
		histogram->max = value;
	return 0;
}

void kb_histogram_release(struct kb_histogram *histogram)
{
	free(histogram->steps);
	*histogram = (struct kb_histogram){ 0 };
}

uint64_t kb_histogram_quantile(const struct kb_histogram *histogram, unsigned int percent)
{
	uint64_t rank = histogram->count / 100 * percent +
			(histogram->count % 100 * percent + 99) / 100, seen = 0, last;
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

void kb_histogram_powers(const struct kb_histogram *histogram, uint64_t powers[64])
{
	uint32_t i;

	memset(powers, 0, 64 * sizeof(*powers));
	for (i = 0; i < histogram->nr; i++)
		powers[power_of(last_of(histogram->steps[i].step))] += histogram->steps[i].count;
}
