// SPDX-License-Identifier: MIT
#include <string.h>

#include "stats/blocks.h"
#include "stats/random.h"

#define SLICES	KB_BLOCKS_SLICES
#define LENGTH	KB_BLOCKS_LENGTH

static double sum_of(const double slices[SLICES])
{
	double sum = 0;

	for (unsigned int i = 0; i < SLICES; i++)
		sum += slices[i];
	return sum;
}

/*
 * A resampled run has SLICES / LENGTH blocks, each of which is any of the SLICES blocks of the ring.
 * The last factor is that of n / (n - 1) in the variance of n values.
 */
double kb_blocks_variance(const double slices[SLICES])
{
	double mean = sum_of(slices) / SLICES, squares = 0, block = 0;

	for (unsigned int i = 0; i < LENGTH; i++)
		block += slices[i] - mean;
	for (unsigned int i = 0; i < SLICES; i++) {
		squares += block * block;
		block += slices[(i + LENGTH) % SLICES] - slices[i];
	}
	return squares / LENGTH * SLICES / (SLICES - LENGTH);
}

double kb_blocks_ratio_variance(const double above[SLICES], const double below[SLICES])
{
	double sum = sum_of(below), ratio = sum > 0 ? sum_of(above) / sum : 0, left[SLICES];

	if (!(sum > 0))
		return 0;
	for (unsigned int i = 0; i < SLICES; i++)
		left[i] = (above[i] - ratio * below[i]) / sum;
	return kb_blocks_variance(left);
}

void kb_blocks_draw(uint64_t *random, unsigned int times[SLICES])
{
	memset(times, 0, SLICES * sizeof(*times));
	for (unsigned int i = 0; i < SLICES / LENGTH; i++) {
		uint32_t first = kb_random_below(random, SLICES);

		for (unsigned int j = 0; j < LENGTH; j++)
			times[(first + j) % SLICES]++;
	}
}
