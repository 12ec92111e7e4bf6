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
#define KB_BLOCKS_FREEDOM	(KB_BLOCKS_SLICES / KB_BLOCKS_LENGTH - 1)

/*
 * The variance of the sum of @slices. Of a sum, the bootstrap's variance has a closed form: no
 * resampling, and no error of it. It allows for the mean's coming from the same slices.
 */
double kb_blocks_variance(const double slices[KB_BLOCKS_SLICES]);

/*
 * The variance of the sum of @above divided by that of @below, in the same way: that of the sum of
 * what the ratio leaves, divided by the sum of @below. 0 if that sum is 0.
 */
double kb_blocks_ratio_variance(const double above[KB_BLOCKS_SLICES],
				const double below[KB_BLOCKS_SLICES]);

/* For what has no closed form: how often each slice is in a resampled run, from *@random. */
void kb_blocks_draw(uint64_t *random, unsigned int times[KB_BLOCKS_SLICES]);

#endif
