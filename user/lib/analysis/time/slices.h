/* SPDX-License-Identifier: MIT */
/*
 * Amounts over time in little memory, while it is not known how long the time will be. It is cut in
 * at most KB_SLICES_MOST slices. When it outgrows them, slices become twice as long, and two become
 * one. Only slices with an amount take memory.
 */
#ifndef KB_LIB_ANALYSIS_TIME_SLICES_H
#define KB_LIB_ANALYSIS_TIME_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/time/histogram.h"
#include "stats/blocks.h"

#define KB_SLICES_MOST	256U

/* The time of a capture. Begins as zeros. */
struct kb_slicing {
	bool wanted;		/* else there are sums only */
	bool begun;
	int64_t first;		/* ns */
	unsigned int shift;	/* a slice has 2^shift ns */
};

/* Make @ns part of the time. Returns the number of its slice. */
uint32_t kb_slicing_at(struct kb_slicing *slicing, int64_t ns);

/* An amount over that time. Begins as zeros. */
struct kb_sliced {
	double sum;
	uint64_t events;	/* number of additions */
	unsigned int shift;	/* of the slices below */
	uint32_t nr, room;
	struct kb_slice_part {
		uint32_t at;	/* number of the slice */
		float amount;
	} *parts;		/* in order */
};

/*
 * Add @amount at @ns, or spread it over the time from @from to @until, which may be the same. Both
 * return 0 or -ENOMEM.
 */
int kb_sliced_add(struct kb_sliced *sliced, struct kb_slicing *slicing, int64_t ns, double amount);
int kb_sliced_spread(struct kb_sliced *sliced, struct kb_slicing *slicing, int64_t from,
		     int64_t until, double amount);
void kb_sliced_release(struct kb_sliced *sliced);

/* @sliced as the slices of a run that ends at @last. An amount in two of them is divided by time. */
void kb_sliced_blocks(const struct kb_sliced *sliced, const struct kb_slicing *slicing,
		      int64_t last, double blocks[KB_BLOCKS_SLICES]);

/* The same of times: how they are distributed in slices that are four times as long. Begins as zeros. */
#define KB_SLICES_OF_TIMES	(KB_SLICES_MOST / 4)

struct kb_sliced_times {
	struct kb_histogram all;
	unsigned int shift;
	struct kb_histogram *slices;	/* KB_SLICES_OF_TIMES; NULL: none */
};

/* Returns 0 or -ENOMEM. */
int kb_sliced_times_add(struct kb_sliced_times *times, struct kb_slicing *slicing, int64_t ns,
			uint64_t value);
void kb_sliced_times_release(struct kb_sliced_times *times);

/*
 * The variance of the value below which @percent percent are, by resampling the slices; a slice
 * belongs to the block of the run that has its middle.
 */
double kb_sliced_times_variance(const struct kb_sliced_times *times,
				const struct kb_slicing *slicing, int64_t last,
				unsigned int percent);

#endif
