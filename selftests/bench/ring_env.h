/* SPDX-License-Identifier: MIT */
/* The module's ring in user space, with a clock that is compiled in: CLOCK() */
#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
/* As Linux reads it. */
static inline uint64_t bench_counter(void)
{
	unsigned long low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low | (uint64_t)high << 32;
}
#define BENCH_COUNTER()		bench_counter()
#elif defined(__aarch64__)
static inline uint64_t bench_counter(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#define BENCH_COUNTER()		bench_counter()
#endif

#ifdef CLOCK
#define ring_clock()		CLOCK
#else
#define ring_clock()		BENCH_COUNTER()
#endif
#define ring_counter()		ring_clock()
#define ring_clock_is_called()	0
#define ring_pages_crossed(ring, pages)	((void)(ring), (void)(pages))
#define ring_write_barrier()	((void)0)
#define ring_read_barrier()	((void)0)

#include "../ring/ring_env.h"
