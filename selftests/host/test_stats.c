// SPDX-License-Identifier: MIT
/* Statistics against published values, and intervals against how often they have the truth. */
#include <math.h>

#include "../lib/tap.h"
#include "base/array.h"
#include "stats/blocks.h"
#include "stats/contrast.h"
#include "stats/many.h"
#include "stats/random.h"
#include "stats/student.h"

#define TRIALS	4000

static uint64_t state = 1;

/* Of the normal distribution: the sum of twelve numbers from 0 to 1 is close enough. */
static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += (double)kb_random_below(&state, 1U << 30) / (1U << 30);
	return sum;
}

/* ---- Student's distribution ---- */

static void student(void)
{
	/* of the tables that any textbook has */
	static const struct { double within, freedom, reach; } known[] = {
		{ 0.95, 1, 12.7062 }, { 0.95, 2, 4.30265 }, { 0.95, 3, 3.18245 },
		{ 0.95, 5, 2.57058 }, { 0.95, 10, 2.22814 }, { 0.95, 30, 2.04227 },
		{ 0.95, 120, 1.97993 }, { 0.95, 1e7, 1.95996 }, { 0.99, 3, 5.84091 },
		{ 0.99, 20, 2.84534 }, { 0.98, 5, 3.36493 }, { 0.98, 4, 3.74695 },
		{ 0.5, 1, 1 }, { 0.999, 2, 31.5991 }, { 0.9999, 10, 6.21105 },
	};
	unsigned int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		double reach = kb_student_reach(known[i].within, known[i].freedom);
		double beyond = kb_student_beyond(known[i].reach, known[i].freedom);

		if (fabs(reach / known[i].reach - 1) < 2e-5 &&
		    fabs(beyond - (1 - known[i].within)) < 2e-5)
			continue;
		bad++;
		tap_note("%g within, %g degrees: %.6f", known[i].within, known[i].freedom, reach);
	}
	tap_is(bad, 0, "students_distribution_is_that_of_tables");
	tap_ok(fabs(kb_student_above(-2.22814, 10) - 0.975) < 1e-5 &&
	       fabs(kb_student_above(0, 3.5) - 0.5) < 1e-12, "and_so_is_one_tail_of_it");
	tap_ok(isinf(kb_student_reach(0.95, 0)) && kb_student_beyond(3, 0) >= 1,
	       "without_freedom_nothing_is_known");
	tap_ok(kb_student_beyond(1e6, 1.5) > 0 && kb_student_beyond(1e6, 1.5) < 1e-8 &&
	       kb_student_beyond(INFINITY, 4) <= 0, "far_tails_are_small");
}

/* ---- Welch ---- */

static struct kb_mean mean_of(unsigned int nr, double mean, double deviation)
{
	double values[32], sum = 0, squares = 0;

	for (unsigned int i = 0; i < nr; i++)
		sum += values[i] = mean + deviation * normal();
	for (unsigned int i = 0; i < nr; i++)
		squares += (values[i] - sum / nr) * (values[i] - sum / nr);
	return kb_mean_of(sum, squares, nr);
}

static double misses(unsigned int nr_of_a, unsigned int nr_of_b, double deviation)
{
	unsigned int missed = 0;

	for (unsigned int i = 0; i < TRIALS; i++) {
		struct kb_mean a = mean_of(nr_of_a, 100, 1);
		struct kb_mean b = mean_of(nr_of_b, 103, deviation);
		struct kb_contrast contrast = kb_contrast(&a, &b, 1.03);

		missed += kb_contrast_beyond(&contrast) < 0.05;
	}
	return 100.0 * missed / TRIALS;
}

static void welch(void)
{
	static const struct { unsigned int a, b; double deviation; } cases[] = {
		{ 3, 3, 1 }, { 5, 5, 1 }, { 5, 5, 4 }, { 10, 4, 2 }, { 4, 20, 0.3 },
	};
	/* Welch and Student: a textbook's example of two groups */
	struct kb_mean a = { 20.8, 13.8667 / 10, 9, false }, b = { 23.0, 2.9 / 10, 9, false };
	struct kb_contrast contrast = kb_contrast(&a, &b, 1);
	unsigned int bad = 0;

	tap_ok(fabs(contrast.value - 2.2) < 1e-9 && fabs(contrast.error - 1.29486) < 1e-4 &&
	       fabs(contrast.freedom - 12.6) < 0.1, "welch_has_the_error_and_freedom_of_its_formula");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double missed = misses(cases[i].a, cases[i].b, cases[i].deviation);

		tap_note("%u and %u values, deviations 1 and %g: %.2f %% outside", cases[i].a,
			 cases[i].b, cases[i].deviation, missed);
		bad += missed > 6;
	}
	tap_is(bad, 0, "intervals_of_95_%_have_the_truth_in_94_%_and_more");
	a.freedom = 0;
	contrast = kb_contrast(&a, &b, 1);
	tap_ok(isinf(contrast.error) && kb_contrast_beyond(&contrast) >= 1 &&
	       kb_contrast_above(&contrast) >= 1, "one_value_says_nothing_of_its_error");
}

static void borrowed(void)
{
	unsigned int missed = 0;

	for (unsigned int i = 0; i < TRIALS; i++) {
		struct kb_mean b = mean_of(5, 100, 2);
		struct kb_mean a = { 100 + 2 * normal(), 5 * b.variance, b.freedom, true };
		struct kb_contrast contrast = kb_contrast(&a, &b, 1);

		missed += kb_contrast_beyond(&contrast) < 0.05;
	}
	tap_note("%.2f %% outside", 100.0 * missed / TRIALS);
	tap_ok(missed < TRIALS * 6 / 100, "one_run_beside_five_is_compared_with_their_variance");
}

/* ---- blocks ---- */

/* A load that goes on for a while as it was. */
static double make_run(double slices[KB_BLOCKS_SLICES], double keeps)
{
	double level = normal(), sum = 0;

	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++) {
		level = keeps * level + sqrt(1 - keeps * keeps) * normal();
		sum += slices[i] = 10 + level;
	}
	return sum;
}

static void blocks(void)
{
	static const double keeps[] = { 0, 0.15, 0.3 };
	double slices[KB_BLOCKS_SLICES];
	unsigned int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keeps); i++) {
		unsigned int missed = 0;

		for (unsigned int j = 0; j < TRIALS; j++) {
			double sum = make_run(slices, keeps[i]);
			double error = sqrt(kb_blocks_variance(slices)) *
				       kb_student_reach(0.95, KB_BLOCKS_FREEDOM);

			missed += fabs(sum - 10 * KB_BLOCKS_SLICES) > error;
		}
		tap_note("neighbours correlated by %g: %.2f %% outside", keeps[i],
			 100.0 * missed / TRIALS);
		bad += missed > TRIALS * 9 / 100;
	}
	tap_is(bad, 0, "slices_of_one_run_tell_how_far_off_its_sum_is");
}

/* What resampling says in the end is what the closed form says. */
static void closed_form(void)
{
	double slices[KB_BLOCKS_SLICES], mean = 0, squares = 0, sum = make_run(slices, 0.5);
	unsigned int times[KB_BLOCKS_SLICES], runs = 20000;

	for (unsigned int i = 0; i < runs; i++) {
		double resampled = 0;

		kb_blocks_draw(&state, times);
		for (unsigned int j = 0; j < KB_BLOCKS_SLICES; j++)
			resampled += times[j] * slices[j];
		mean += resampled / runs;
		squares += (resampled - sum) * (resampled - sum) / runs;
	}
	squares *= (double)KB_BLOCKS_SLICES / (KB_BLOCKS_SLICES - KB_BLOCKS_LENGTH);
	tap_ok(fabs(mean / sum - 1) < 0.005 && fabs(squares / kb_blocks_variance(slices) - 1) < 0.05,
	       "the_closed_form_is_the_limit_of_resampling");
}

static void ratios(void)
{
	double above[KB_BLOCKS_SLICES], below[KB_BLOCKS_SLICES], ratio[KB_BLOCKS_SLICES], sum = 0;

	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++) {
		below[i] = 1 + i % 7;
		above[i] = 1.5 * below[i];
	}
	kb_blocks_ratio(above, below, ratio);
	for (unsigned int i = 0; i < KB_BLOCKS_SLICES; i++)
		sum += ratio[i];
	tap_ok(fabs(sum - 1.5) < 1e-9 && kb_blocks_variance(ratio) < 1e-12,
	       "a_ratio_that_is_always_the_same_has_no_error");
	tap_ok(fabs(kb_blocks_effective(ratio) - KB_BLOCKS_SLICES / KB_BLOCKS_LENGTH) < 1e-9,
	       "equal_blocks_count_as_so_many");
	memset(ratio, 0, sizeof(ratio));
	ratio[5] = 3;
	tap_ok(fabs(kb_blocks_effective(ratio) - 1) < 1e-9, "and_one_block_as_one");
}

/* The same phases in both runs are no error. */
static void pairs(void)
{
	double slices[2][KB_BLOCKS_SLICES], sums[2];
	unsigned int missed = 0;
	double error = 0;

	for (unsigned int i = 0; i < TRIALS; i++) {
		struct kb_mean means[2];
		struct kb_contrast contrast;
		struct kb_pair pair;

		for (int side = 0; side < 2; side++) {
			sums[side] = 0;
			for (unsigned int j = 0; j < KB_BLOCKS_SLICES; j++)
				sums[side] += slices[side][j] = (j < 20 ? 10 : 50) + normal();
			means[side] = (struct kb_mean){ sums[side], kb_blocks_variance(slices[side]),
							KB_BLOCKS_FREEDOM, false };
		}
		pair.covariance = kb_blocks_covariance(slices[0], slices[1]);
		pair.blocks = kb_blocks_effective(slices[0]);
		contrast = kb_contrast_paired(&means[0], &means[1], &pair, 1);
		missed += kb_contrast_beyond(&contrast) < 0.05;
		error += contrast.error / sums[0] / TRIALS;
	}
	tap_note("%.2f %% outside, the error is %.3f %%", 100.0 * missed / TRIALS, 100 * error);
	tap_ok(missed < TRIALS * 8 / 100 && error < 0.01, "phases_that_both_runs_have_are_no_error");
}

/* ---- many comparisons ---- */

static void many(void)
{
	/* the example of Benjamini and Hochberg (1995): the first four at 5 % */
	static const double p[] = { 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
				    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000 };
	struct kb_many rows[ARRAY_SIZE(p)];
	unsigned int certain = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(p); i++)
		rows[i] = (struct kb_many){ .p = p[ARRAY_SIZE(p) - 1 - i], .weight = 1, .number = i };
	kb_many_adjust(rows, ARRAY_SIZE(p));
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		certain += rows[i].q <= 0.05;
	tap_is(certain, 4, "of_the_published_example_four_are_certain");
	tap_ok(fabs(rows[0].q - 0.0015) < 1e-9 && rows[0].number == ARRAY_SIZE(p) - 1,
	       "the_smallest_is_weighed_by_their_number");
	kb_many_adjust(rows, 0);
	tap_ok(true, "none_is_no_error");
}

int main(void)
{
	student();
	welch();
	borrowed();
	blocks();
	closed_form();
	ratios();
	pairs();
	many();
	return tap_done();
}
