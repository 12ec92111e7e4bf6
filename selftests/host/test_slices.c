// SPDX-License-Identifier: MIT
/* Amounts over a time of unknown length keep their sums and their places. */
#include <math.h>

#include "../lib/tap.h"
#include "analysis/time/slices.h"

#define S	INT64_C(1000000000)

static double sum_of(const double blocks[KB_BLOCKS_SLICES], unsigned int from, unsigned int until)
{
	double sum = 0;

	for (unsigned int i = from; i < until; i++)
		sum += blocks[i];
	return sum;
}

static void places(void)
{
	struct kb_slicing slicing = { .wanted = true };
	struct kb_sliced sliced = { 0 };
	double blocks[KB_BLOCKS_SLICES];

	kb_slicing_at(&slicing, 5 * S);
	for (int64_t ns = 5 * S; ns < 15 * S; ns += S / 1000)
		kb_sliced_add(&sliced, &slicing, ns, ns < 10 * S ? 1 : 3);
	kb_sliced_blocks(&sliced, &slicing, 15 * S, blocks);
	tap_ok(fabs(sliced.sum - 20000) < 1e-6 && fabs(sum_of(blocks, 0, 64) - 20000) < 1e-3,
	       "slices_add_up_to_the_sum");
	tap_ok(fabs(sum_of(blocks, 0, 32) - 5000) < 100, "what_came_in_the_first_half_stays_there");
	tap_ok(sliced.nr <= KB_SLICES_MOST && slicing.shift > 20, "their_number_is_limited");
	kb_sliced_release(&sliced);
}

static void spans(void)
{
	struct kb_slicing slicing = { .wanted = true };
	struct kb_sliced sliced = { 0 };
	double blocks[KB_BLOCKS_SLICES];
	unsigned int bad = 0;

	kb_slicing_at(&slicing, 0);
	kb_sliced_spread(&sliced, &slicing, 0, 64 * S, 6400);
	kb_sliced_spread(&sliced, &slicing, 16 * S, 16 * S, 5);	/* a moment */
	kb_sliced_blocks(&sliced, &slicing, 64 * S, blocks);
	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++)
		bad += fabs(blocks[i] - 100) > 0.01 && i != 15 && i != 16;
	tap_ok(!bad && fabs(sum_of(blocks, 15, 17) - 205) < 0.01, "a_long_time_is_spread_over_its_slices");
	tap_is(sliced.events, 2, "and_is_one_event");
	kb_sliced_release(&sliced);
}

static void hostile(void)
{
	struct kb_slicing slicing = { .wanted = true };
	struct kb_sliced sliced = { 0 };
	double blocks[KB_BLOCKS_SLICES];

	kb_slicing_at(&slicing, INT64_MIN);
	kb_sliced_add(&sliced, &slicing, INT64_MIN, 1);
	kb_sliced_spread(&sliced, &slicing, INT64_MIN, INT64_MAX, 7);
	kb_sliced_spread(&sliced, &slicing, INT64_MAX, INT64_MIN, 2);
	kb_sliced_blocks(&sliced, &slicing, INT64_MAX, blocks);
	tap_ok(fabs(sum_of(blocks, 0, 64) - 10) < 1e-3, "times_may_be_anything");
	kb_sliced_release(&sliced);
}

static void distributions(void)
{
	struct kb_slicing slicing = { .wanted = true };
	struct kb_sliced_times times = { 0 };
	double variance;

	kb_slicing_at(&slicing, 0);
	for (int64_t i = 0; i < 20000; i++)
		kb_sliced_times_add(&times, &slicing, i * (S / 1000), (uint64_t)(i % 100 * 10));
	tap_is(times.all.count, 20000, "all_times_are_counted");
	tap_ok(kb_histogram_quantile(&times.all, 99) >= 980, "their_p99_is_that_of_all");
	variance = kb_sliced_times_variance(&times, &slicing, 20 * S, 99);
	tap_ok(variance < 400, "a_p99_that_is_always_the_same_has_little_error");
	for (int64_t i = 0; i < 400; i++)
		kb_sliced_times_add(&times, &slicing, 20 * S + i, 1000000);
	tap_ok(kb_sliced_times_variance(&times, &slicing, 21 * S, 99) > 1e9,
	       "and_one_that_comes_from_a_moment_has_a_large_one");
	kb_sliced_times_release(&times);
}

int main(void)
{
	places();
	spans();
	hostile();
	distributions();
	return tap_done();
}
