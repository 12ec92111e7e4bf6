/* SPDX-License-Identifier: MIT */
/*
 * A distribution of times in few bytes: values below 64 exactly, all others in steps of 1/32 of
 * themselves. Only steps that occur take memory, because a capture may have many tasks of few waits
 * each. Number, sum and maximum are exact.
 */
#ifndef KB_LIB_ANALYSIS_TIME_HISTOGRAM_H
#define KB_LIB_ANALYSIS_TIME_HISTOGRAM_H

#include <stdint.h>

#include <kbarman/latency.h>

struct kb_histogram {
	uint64_t count, sum, max;
	struct kb_histogram_step {
		uint32_t step;
		uint32_t count;
	} *steps;			/* in order */
	uint32_t nr, room;
};

/* Count @value. Returns 0 or -ENOMEM. */
int kb_histogram_add(struct kb_histogram *histogram, uint64_t value);
void kb_histogram_release(struct kb_histogram *histogram);

/* Add all values of @from to @to, which may be the same histogram only if it is empty. 0, -ENOMEM. */
int kb_histogram_merge(struct kb_histogram *to, const struct kb_histogram *from);

/*
 * The value below which @percent percent of all values are, or which they are: at most 1/32 too
 * high, never too low, never above the maximum. 0 if there are no values.
 */
uint64_t kb_histogram_quantile(const struct kb_histogram *histogram, unsigned int percent);

/*
 * The same of @nr histograms together, each taken @weights times, for comparisons: within a step it
 * lies as far as the rank, so it does not jump. It may be above the maximum, by 1/32 at most.
 */
double kb_histograms_quantile(const struct kb_histogram *histograms, const unsigned int *weights,
			      uint32_t nr, unsigned int percent);

/* Number, sum, median, p99 and maximum. */
struct kb_latency_stats kb_histogram_stats(const struct kb_histogram *histogram);

/* Add up the values by the power of two that they have reached; 0 and 1 are both in powers[0]. */
void kb_histogram_powers(const struct kb_histogram *histogram, uint64_t powers[64]);

#endif
