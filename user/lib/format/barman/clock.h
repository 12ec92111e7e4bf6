/* SPDX-License-Identifier: MIT */
/*
 * Ticks to nanoseconds: floor((timestamp - base) * multiplier / divisor), exact for every
 * timestamp. A 128-bit division takes longer than decoding a record. So the quotient is
 * estimated with a reciprocal, at most one too small, and corrected with the remainder. Inline,
 * because every record needs it.
 */
#ifndef KB_LIB_FORMAT_BARMAN_CLOCK_H
#define KB_LIB_FORMAT_BARMAN_CLOCK_H

#include <stdint.h>

#include "base/wide.h"
#include "format/wire.h"

struct barman_clock {
	uint64_t base;
	uint64_t multiplier;		/* fraction in lowest terms */
	uint64_t divisor;
	uint64_t reciprocal;		/* floor(multiplier * 2^shift / divisor) */
	uint64_t limit;			/* ticks after base up to which the estimate works */
	unsigned int shift;
};

void barman_clock_init(struct barman_clock *clock, uint64_t base, uint64_t multiplier,
		       uint64_t divisor);

/* For any timestamp; saturates. */
int64_t barman_clock_slow_ns(const struct barman_clock *clock, uint64_t timestamp);

static kb_always_inline int64_t barman_clock_ns(const struct barman_clock *clock,
						uint64_t timestamp)
{
	/* For a timestamp below base this wraps and is above the limit. */
	uint64_t distance = timestamp - clock->base;
	uint64_t quotient;

	if (kb_unlikely(distance > clock->limit))
		return barman_clock_slow_ns(clock, timestamp);
	quotient = kb_wide_shift_right(kb_wide_mul(distance, clock->reciprocal), clock->shift);
	quotient += distance * clock->multiplier - quotient * clock->divisor >= clock->divisor;
	return (int64_t)quotient;
}

#endif
