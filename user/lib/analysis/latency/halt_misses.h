/* SPDX-License-Identifier: MIT */
/* Halts in states that did not pay: which state would have, and the worst of them. */
#ifndef KB_LIB_ANALYSIS_LATENCY_HALT_MISSES_H
#define KB_LIB_ANALYSIS_LATENCY_HALT_MISSES_H

#include <kbarman/latency.h>

#include "analysis/facts/idle_states.h"

#define KB_HALT_MISSES_WORST	10U

struct kb_halt_misses_worst {
	struct kb_halt_miss misses[KB_HALT_MISSES_WORST];	/* the worst first */
	uint32_t nr;
};

struct kb_halt_misses {
	const struct kb_idle_states *states;
	struct kb_table paid;
	struct kb_halt_misses_worst deep, shallow;
	struct kb_halts_paid *shown;		/* the result */
};

/* @states must live as long. */
void kb_halt_misses_init(struct kb_halt_misses *misses, const struct kb_idle_states *states);
void kb_halt_misses_release(struct kb_halt_misses *misses);

/* Count @miss, and fill in its `paid` and `off_ns`. Returns 0 or -ENOMEM. */
int kb_halt_misses_count(struct kb_halt_misses *misses, struct kb_halt_miss *miss);

/* @miss is complete. Keeps it if it is one of the worst. */
void kb_halt_misses_keep(struct kb_halt_misses *misses, const struct kb_halt_miss *miss);

/* Fill in what @shown has of them; it lives as long as these. Returns 0 or -ENOMEM. */
int kb_halt_misses_finish(struct kb_halt_misses *misses, struct kb_latency *shown);

#endif
