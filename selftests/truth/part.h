/* SPDX-License-Identifier: MIT */
/*
 * A part of a workload whose truth is known: PART_burn() <- PART_middle(), where PART is a
 * macro. Every call of the latter spends a few milliseconds in the former.
 */
#ifndef KBARMAN_TRUTH_PART_H
#define KBARMAN_TRUTH_PART_H

#include <stdint.h>

#define JOIN_(a, b)	a##_##b
#define JOIN(a, b)	JOIN_(a, b)
#define NOINLINE	__attribute__((noinline, noclone))

static volatile uint64_t part_sink;

static inline __attribute__((always_inline)) void part_cycles(void)
{
	uint64_t x = part_sink | 1;

	for (int i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	part_sink = x;
}

#ifndef PART_BURNS
#define PART_BURNS	50
#endif

#ifdef PART
static void NOINLINE JOIN(PART, burn)(void)
{
	part_cycles();
}

void JOIN(PART, middle)(void);

void NOINLINE JOIN(PART, middle)(void)
{
	for (int i = 0; i < PART_BURNS; i++)
		JOIN(PART, burn)();
	part_sink++;
}
#endif

#endif
