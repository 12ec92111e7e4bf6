/* SPDX-License-Identifier: MIT */
/*
 * Random content for round trips. A seed is a test: it is printed, and given as the
 * first argument it makes the same one again.
 */
#ifndef KBARMAN_TEST_RANDOM_H
#define KBARMAN_TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t random_state;

static inline void random_start(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) :
				   (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();

	printf("# seed %llu\n", (unsigned long long)seed);
	random_state = seed | 1;
}

/* xorshift64* */
static inline uint64_t random64(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717u;
}

/* [0, limit) */
static inline uint32_t random_below(uint32_t limit)
{
	return (uint32_t)((random64() >> 32) * limit >> 32);
}

/* Any value, short ones as likely as long ones. */
static inline uint64_t random_wide(void)
{
	return random64() >> random_below(64) ^ (random64() & 1 ? 0 : ~(uint64_t)0);
}

#endif
