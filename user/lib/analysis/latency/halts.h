/* SPDX-License-Identifier: MIT */
/* The halts of each CPU: in which idle state, what ended them, and what the kernel said of them. */
#ifndef KB_LIB_ANALYSIS_LATENCY_HALTS_H
#define KB_LIB_ANALYSIS_LATENCY_HALTS_H

#include "analysis/facts/idle_states.h"
#include "analysis/latency/wakeups.h"
#include "analysis/trace/wanted.h"

struct kb_halting;

/* @wanted and @states must live as long. Returns 0 or -ENOMEM. */
int kb_halting_create(struct kb_halting **out, const struct kb_wanted *wanted,
		      const struct kb_idle_states *states);
void kb_halting_destroy(struct kb_halting *halting);

/*
 * Take a tile that ends, then the record of @walk that ended it. @woken: if this record is a
 * switch, who woke its task. Each returns 0 or -ENOMEM.
 */
int kb_halting_add(struct kb_halting *halting, const struct kb_tile *tile);
int kb_halting_feed(struct kb_halting *halting, const struct kb_walk *walk,
		    const struct kb_woken *woken);

/* Fill in what @shown has of halts; it lives as long as these. Returns 0 or -ENOMEM. */
int kb_halting_finish(struct kb_halting *halting, struct kb_latency *shown);

#endif
