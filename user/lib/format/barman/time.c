// SPDX-License-Identifier: MIT
/*
 * The clock of a capture. The fraction in the header is limited to 64 bits, so it may be inexact
 * by about 100 us after an hour. A capture that kbarman stopped has two pairs of clock readings
 * in the facts raw_base and raw_end. They give a more exact fraction.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/barman/inside.h"

int64_t kb_barman_ns(const struct kb_barman *barman, uint64_t timestamp)
{
	return barman_clock_ns(&barman->clock, timestamp);
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
	/*
	 * Readings that differ from the header by more than a thousandth belong to another
	 * capture.
	 */
	if (by_header <= 0 || ns > INT64_MAX ||
	    (ns > (uint64_t)by_header ? ns - by_header : by_header - ns) > ns / 1000 + 1)
		return;
	barman_clock_init(&barman->clock, barman->clock.base, ns, ticks);
}

void barman_clock_set(struct kb_barman *barman, uint64_t ns, uint64_t ticks)
{
	barman_clock_init(&barman->clock, barman->clock.base, ns, ticks);
}
