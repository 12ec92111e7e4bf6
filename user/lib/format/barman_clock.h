/* SPDX-License-Identifier: MIT */
/*
 * Ticks to nanoseconds: floor((timestamp - base) * multiplier / divisor), exact for every
 * timestamp. A division of 128 bits a record would cost more than the record, so the
 * quotient is guessed with a reciprocal that is at most one too small, and put right with
 * the remainder. Inline, since every record needs it.
 */
#ifndef KBARMAN_BARMAN_CLOCK_H
#define KBARMAN_BARMAN_CLOCK_H

#include <stdint.h>

#include "wide.h"
#include "wire.h"

struct barman_clock {
	uint64_t base;
	uint64_t multiplier;		/* reduced by their greatest common divisor */
	uint64_t divisor;
	uint64_t reciprocal;		/* floor(multiplier * 2^shift / divisor) */
	uint64_t limit;			/* ticks behind base for which the guess does */
	unsigned int shift;
};

void barman_clock_init(struct barman_clock *clock, uint64_t base, uint64_t multiplier,
		       uint64_t divisor);

/* For any timestamp; saturates. */
int64_t barman_clock_slow_ns(const struct barman_clock *clock, uint64_t timestamp);

static kb_always_inline int64_t barman_clock_ns(const struct barman_clock *clock,
						uint64_t timestamp)
{
	/* Below the base this is huge, and above the limit. */
	uint64_t distance = timestamp - clock->base;
	uint64_t quotient;

	if (kb_unlikely(distance > clock->limit))
		return barman_clock_slow_ns(clock, timestamp);
	quotient = kb_wide_shift_right(kb_wide_mul(distance, clock->reciprocal), clock->shift);
	quotient += distance * clock->multiplier - quotient * clock->divisor >= clock->divisor;
	return (int64_t)quotient;
}

#endif
