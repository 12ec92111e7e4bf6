/* SPDX-License-Identifier: MIT */
/* Numbers that look random and are the same in every run: results must not depend on the run. */
#ifndef KB_LIB_STATS_RANDOM_H
#define KB_LIB_STATS_RANDOM_H

#include <stdint.h>

/* The next number of the sequence in *@state, which begins as any number (SplitMix64). */
static inline uint64_t kb_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A number below @limit, which is not 0. */
static inline uint32_t kb_random_below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((kb_random(state) >> 32) * limit >> 32);
}

#endif
