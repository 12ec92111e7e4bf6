/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for tests: another seed each run, printed, and taken again from
 * the environment's SEED. `make test` has always the same one, `make test-all` another each time.
 */
#ifndef KBARMAN_TEST_RANDOM_H
#define KBARMAN_TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t random_state;

static inline void random_start(void)
{
	const char *seed = getenv("SEED");

	random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) << 20 ^ getpid();
	printf("# SEED=%llu\n", (unsigned long long)random_state);
}

/* splitmix64: any state will do, 0 too */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t random_u64(void)
{
	return random_next(&random_state);
}

/* 0 <= result < n */
static inline uint64_t random_below(uint64_t n)
{
	return random_u64() % n;
}

/* As often small as large. */
static inline uint64_t random_magnitude(void)
{
	return random_u64() >> random_below(64);
}

#endif
