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
double kb_blocks_covariance(const double a[SLICES], const double b[SLICES])
{
	double mean_a = sum_of(a) / SLICES, mean_b = sum_of(b) / SLICES;
	double products = 0, block_a = 0, block_b = 0;

	for (unsigned int i = 0; i < LENGTH; i++) {
		block_a += a[i] - mean_a;
		block_b += b[i] - mean_b;
	}
	for (unsigned int i = 0; i < SLICES; i++) {
		products += block_a * block_b;
		block_a += a[(i + LENGTH) % SLICES] - a[i];
		block_b += b[(i + LENGTH) % SLICES] - b[i];
	}
	return products / LENGTH * SLICES / (SLICES - LENGTH);
}

double kb_blocks_variance(const double slices[SLICES])
{
	return kb_blocks_covariance(slices, slices);
}

double kb_blocks_effective(const double slices[SLICES])
{
	double sum = 0, squares = 0;

	for (unsigned int i = 0; i < SLICES; i += LENGTH) {
		double block = 0;

		for (unsigned int j = 0; j < LENGTH; j++)
			block += slices[i + j];
		sum += block;
		squares += block * block;
	}
	return squares > 0 ? sum * sum / squares : 0;
}

void kb_blocks_ratio(const double above[SLICES], const double below[SLICES], double ratio[SLICES])
{
	double sum = sum_of(below), whole = sum_of(above) / sum;

	for (unsigned int i = 0; i < SLICES; i++)
		ratio[i] = (above[i] - whole * below[i]) / sum + whole / SLICES;
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
