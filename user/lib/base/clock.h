/* SPDX-License-Identifier: MIT */
/* Clocks of this machine as one number. */
#ifndef KB_LIB_CLOCK_H
#define KB_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

#define KB_NS_PER_S	INT64_C(1000000000)
#define KB_NS_PER_MS	INT64_C(1000000)

/* The time of @clock in ns; 0 if this kernel does not have the clock. */
static inline int64_t kb_clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * KB_NS_PER_S + now.tv_nsec;
}

/* CLOCK_MONOTONIC in ms, for deadlines. */
static inline int64_t kb_clock_ms(void)
{
	return kb_clock_ns(CLOCK_MONOTONIC) / KB_NS_PER_MS;
}

#endif
