/* SPDX-License-Identifier: MIT */
/*
 * Jitdumps have times of CLOCK_MONOTONIC, captures have ticks whose meaning is CLOCK_MONOTONIC_RAW.
 * The facts kbarman.monotonic_base and kbarman.monotonic_end are pairs of readings of both clocks.
 */
#ifndef KB_LIB_SYM_JIT_CLOCK_H
#define KB_LIB_SYM_JIT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

struct kb_jit_clock {
	bool known;
	int64_t raw_base;		/* CLOCK_MONOTONIC_RAW at timestamp_base */
	int64_t raw, monotonic;		/* a pair of readings */
	double rate;			/* ns of CLOCK_MONOTONIC in a ns of the other */
};

/* Without the facts the clock is not known. */
void kb_jit_clock_init(struct kb_jit_clock *clock, const struct kb_barman *barman);

/* CLOCK_MONOTONIC in ns at @timestamp (ticks) of @barman; if not known, the end of all times. */
uint64_t kb_jit_clock_ns(const struct kb_jit_clock *clock, const struct kb_barman *barman,
			 uint64_t timestamp);

#endif
