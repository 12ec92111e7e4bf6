// SPDX-License-Identifier: MIT
/* Preparation of the clock, and the times for which the fast way does not work. */
#include <stdbool.h>

#include "format/barman/clock.h"

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

void barman_clock_init(struct barman_clock *clock, uint64_t base, uint64_t multiplier,
		       uint64_t divisor)
{
	uint64_t common, rest;
	struct kb_wide scaled;

	if (!divisor)
		divisor = 1;
	common = greatest_common_divisor(multiplier, divisor);
	clock->base = base;
	clock->multiplier = multiplier / common;
	clock->divisor = divisor / common;

	/* The largest shift for which the reciprocal has 64 bits. */
	clock->shift = 63;
	do {
		scaled = kb_wide_div(kb_wide_shift_left(clock->multiplier, clock->shift),
				     clock->divisor, &rest);
	} while (scaled.high && clock->shift--);
	clock->reciprocal = scaled.low;
	/* The remainder fits into 64 bits only if twice the divisor does. */
	if (clock->divisor >> 63)
		clock->shift = 0;

	clock->limit = (UINT64_C(1) << clock->shift) - 1;
	if (clock->limit > UINT64_MAX - base)		/* else times below base would pass, too */
		clock->limit = UINT64_MAX - base;
	if (!clock->multiplier)
		return;
	scaled = kb_wide_div(kb_wide_mul(INT64_MAX, clock->divisor), clock->multiplier, &rest);
	if (!scaled.high && clock->limit > scaled.low)	/* the quotient must fit */
		clock->limit = scaled.low;
}

int64_t barman_clock_slow_ns(const struct barman_clock *clock, uint64_t timestamp)
{
	bool negative = timestamp < clock->base;
	uint64_t distance = negative ? clock->base - timestamp : timestamp - clock->base;
	uint64_t rest;
	struct kb_wide quotient;

	quotient = kb_wide_div(kb_wide_mul(distance, clock->multiplier), clock->divisor, &rest);
	if (quotient.high || quotient.low > INT64_MAX)
		return negative ? INT64_MIN : INT64_MAX;
	/* Round down, not towards zero. -INT64_MAX - 1 is representable. */
	return negative ? -(int64_t)quotient.low - (rest != 0) : (int64_t)quotient.low;
}
