// SPDX-License-Identifier: MIT
/*
 * Ticks to nanoseconds: floor((timestamp - base) * multiplier / divisor), exact
 * for every timestamp. A division of 128 bits a record would cost more than the
 * record, so the quotient is guessed with a reciprocal that is at most one too
 * small, and put right with the remainder.
 *
 * The fraction in the header has to do with 64 bits and may be a bit off for that, by
 * some 100 us after an hour. A capture that kbarman stopped says what two looks at the
 * clocks gave, in the facts raw_base and raw_end: that is a better one.
 */
#include <inttypes.h>
#include <stdio.h>

#include "barman_reader.h"
#include "wide.h"

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

	/* The largest shift with which the reciprocal still has 64 bits. */
	clock->shift = 63;
	do {
		scaled = kb_wide_div(kb_wide_shift_left(clock->multiplier, clock->shift),
				     clock->divisor, &rest);
	} while (scaled.high && clock->shift--);
	clock->reciprocal = scaled.low;
	/* Two divisors must fit into 64 bits for the remainder to. */
	if (clock->divisor >> 63)
		clock->shift = 0;
}

static int64_t slow_ns(const struct barman_clock *clock, uint64_t timestamp)
{
	bool negative = timestamp < clock->base;
	uint64_t distance = negative ? clock->base - timestamp : timestamp - clock->base;
	uint64_t rest;
	struct kb_wide quotient;

	quotient = kb_wide_div(kb_wide_mul(distance, clock->multiplier), clock->divisor, &rest);
	if (quotient.high || quotient.low > INT64_MAX)
		return negative ? INT64_MIN : INT64_MAX;
	/* Down, and not towards zero; -INT64_MAX - 1 is still a number. */
	return negative ? -(int64_t)quotient.low - (rest != 0) : (int64_t)quotient.low;
}

int64_t kb_barman_ns(const struct kb_barman *barman, uint64_t timestamp)
{
	const struct barman_clock *clock = &barman->clock;
	uint64_t distance = timestamp - clock->base;
	uint64_t quotient;

	/* Below the base the distance is huge as well. */
	if (kb_unlikely(timestamp < clock->base || distance >> clock->shift))
		return slow_ns(clock, timestamp);
	quotient = kb_wide_shift_right(kb_wide_mul(distance, clock->reciprocal), clock->shift);
	quotient += distance * clock->multiplier - quotient * clock->divisor >= clock->divisor;
	return quotient > INT64_MAX ? INT64_MAX : (int64_t)quotient;
}

void barman_clock_measure(struct kb_barman *barman)
{
	const char *start = kb_barman_fact(barman, "raw_base");
	const char *end = kb_barman_fact(barman, "raw_end");
	uint64_t ticks, ns, from;
	int64_t by_header;

	if (!start || sscanf(start, "%" SCNu64, &from) != 1 ||
	    !end || sscanf(end, "%" SCNu64 ",%" SCNu64, &ticks, &ns) != 2 ||
	    ticks <= barman->clock.base || ns <= from)
		return;
	by_header = kb_barman_ns(barman, ticks);
	ticks -= barman->clock.base;
	ns -= from;
	/* Further off than a part in a thousand, it is of another capture. */
	if (by_header <= 0 || ns > INT64_MAX ||
	    (ns > (uint64_t)by_header ? ns - by_header : by_header - ns) > ns / 1000 + 1)
		return;
	barman_clock_init(&barman->clock, barman->clock.base, ns, ticks);
}
