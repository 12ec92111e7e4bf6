/* SPDX-License-Identifier: MIT */
/*
 * The wall clock of a capture, for several machines on one clock: which time of the world each of its
 * times is, and how wrong that may be.
 *
 * A capture has a reading of CLOCK_REALTIME at its base (unix_base_ns) and one at its end (the fact
 * "realtime_end=TICKS,NS"). Between them the CPU's counter tells the time, whatever Linux did to its
 * clock meanwhile. What Linux knows of its clock is in "realtime_error_base=SYNCHRONIZED,MOST,LIKELY"
 * and "realtime_error_end=": 1 or 0, and the greatest and the likely error in ns as adjtimex(2) says,
 * which NTP and PTP daemons tell it.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_WALL_H
#define KB_LIB_ANALYSIS_FACTS_WALL_H

#include <kbarman/barman.h>

#define KB_WALL_UNKNOWN		UINT64_MAX

struct kb_wall {
	int64_t at;		/* ns since 1970 at 0 of the capture */
	bool has_end;		/* the rate is measured: */
	uint64_t ns, ticks;	/* so many ns of the world in so many ticks */
	int64_t end;		/* ns since 1970 at the second reading, or at the last record */
	double ppm;		/* by how many millionths the world's clock is faster than the capture's */
	bool was_set;		/* the clock was set between the readings, or the machine slept */
	bool synchronized;	/* Linux said so at each reading */
	/* Errors in ns, each the most that it can be; KB_WALL_UNKNOWN. */
	uint64_t clock;		/* of the readings, as Linux says */
	uint64_t likely;	/* the same as Linux expects it */
	uint64_t between;	/* what comes to it between the readings, or behind the only one */
	uint64_t error;		/* both together */
	const char *why;	/* a clause, if `error` is unknown */
};

/*
 * Fill @wall. Returns 0, or -ENODATA and a sentence: the capture does not say when it was recorded.
 */
int kb_wall_read(struct kb_wall *wall, const struct kb_barman *barman, struct kb_error *err);

/* A capture among those of several machines. */
struct kb_machine {
	uint32_t number;	/* from 0 on */
	const char *name;	/* the host, or the file; never NULL */
	struct kb_wall wall;
	int64_t since;		/* ns since 1970: the earliest start of all captures */
	bool first, last;
};

#endif
