// SPDX-License-Identifier: MIT
/*
 * CLOCK_MONOTONIC runs a little faster or slower, as NTP wants it: at most by 500 millionths,
 * beside slewing. Pairs that are close together say less of that than they are inexact.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "sym/jit/clock.h"

#define APART		KB_NS_PER_S
#define MOST		0.1	/* difference of the rates; adjtimex(2) allows this */
#define LATEST		(INT64_C(1) << 62)	/* ns: a sum of two times is a number */

static bool is_time(int64_t ns)
{
	return ns >= 0 && ns < LATEST;
}

static bool take_pair(const struct kb_barman *barman, const char *key, int64_t *raw,
		      int64_t *monotonic)
{
	const char *fact = kb_barman_fact(barman, key);

	return fact && sscanf(fact, "%" SCNd64 ",%" SCNd64, raw, monotonic) == 2 &&
	       is_time(*raw) && is_time(*monotonic);
}

void kb_jit_clock_init(struct kb_jit_clock *clock, const struct kb_barman *barman)
{
	const char *base = kb_barman_fact(barman, "raw_base");
	int64_t raw, monotonic;

	*clock = (struct kb_jit_clock) { .rate = 1 };
	if (!base || sscanf(base, "%" SCNd64, &clock->raw_base) != 1 || !is_time(clock->raw_base) ||
	    !take_pair(barman, "monotonic_base", &clock->raw, &clock->monotonic))
		return;
	clock->known = true;
	if (!take_pair(barman, "monotonic_end", &raw, &monotonic) || raw < clock->raw ||
	    raw - clock->raw < APART)
		return;
	clock->rate = (double)(monotonic - clock->monotonic) / (double)(raw - clock->raw);
	if (clock->rate < 1 - MOST || clock->rate > 1 + MOST)
		clock->rate = 1;
}

uint64_t kb_jit_clock_ns(const struct kb_jit_clock *clock, const struct kb_barman *barman,
			 uint64_t timestamp)
{
	double since;
	int64_t at;

	if (!clock->known)
		return UINT64_MAX;
	/* A double is exact to a ns for a hundred days of recording. */
	since = (double)(clock->raw_base - clock->raw) + (double)kb_barman_ns(barman, timestamp);
	since *= clock->rate;
	if (since <= -(double)LATEST || since >= (double)LATEST)
		return since < 0 ? 0 : UINT64_MAX;
	at = clock->monotonic + (int64_t)since;
	return at < 0 ? 0 : (uint64_t)at;
}
