/* SPDX-License-Identifier: MIT */
/*
 * How much a sum over time may be off, from one run: by a bootstrap of blocks. The run is a row of
 * slices of equal length. A resampled run is made of blocks of consecutive slices, drawn at random,
 * so what belongs together in time stays together (Kuensch 1989; the row is taken as a ring, after
 * Politis and Romano 1992).
 */
#ifndef KB_LIB_STATS_BLOCKS_H
#define KB_LIB_STATS_BLOCKS_H

#include <stdint.h>

#define KB_BLOCKS_SLICES	64U	/* of a run */
#define KB_BLOCKS_LENGTH	4U	/* slices of a block */

/* Degrees of freedom of what comes from so many blocks. */
#define KB_BLOCKS_FREEDOM	(1.0 * KB_BLOCKS_SLICES / KB_BLOCKS_LENGTH - 1)

/*
 * The variance of the sum of @slices. Of a sum, the bootstrap's variance has a closed form: no
 * resampling, and no error of it. It allows for the mean's coming from the same slices.
 */
double kb_blocks_variance(const double slices[KB_BLOCKS_SLICES]);

/* The covariance of two sums, in the same way: slices of one number are of one time. */
double kb_blocks_covariance(const double a[KB_BLOCKS_SLICES], const double b[KB_BLOCKS_SLICES]);

/* How many blocks of equal sums would vary as those of @slices do: 1 if all is in one block. */
double kb_blocks_effective(const double slices[KB_BLOCKS_SLICES]);

/*
 * Slices whose sum is that of @above divided by that of @below, and varies as this ratio does: of
 * each slice, what the ratio leaves of it. The sum of @below is not 0.
 */
void kb_blocks_ratio(const double above[KB_BLOCKS_SLICES], const double below[KB_BLOCKS_SLICES],
		     double ratio[KB_BLOCKS_SLICES]);

/* For what has no closed form: how often each slice is in a resampled run, from *@random. */
void kb_blocks_draw(uint64_t *random, unsigned int times[KB_BLOCKS_SLICES]);

#endif
