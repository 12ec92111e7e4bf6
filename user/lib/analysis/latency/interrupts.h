/* SPDX-License-Identifier: MIT */
/* What interrupt handlers, IPIs and softirqs took, and from whom. */
#ifndef KB_LIB_ANALYSIS_LATENCY_INTERRUPTS_H
#define KB_LIB_ANALYSIS_LATENCY_INTERRUPTS_H

#include <kbarman/latency.h>

#include "analysis/trace/wanted.h"

struct kb_interrupts;

/* @wanted must live as long. Returns 0 or -ENOMEM. */
int kb_interrupts_create(struct kb_interrupts **out, const struct kb_wanted *wanted);
void kb_interrupts_destroy(struct kb_interrupts *interrupts);

/* Take a tile that ends, and the record of @walk. Each returns 0 or -ENOMEM. */
int kb_interrupts_add(struct kb_interrupts *interrupts, const struct kb_tile *tile, uint64_t ticks);
int kb_interrupts_feed(struct kb_interrupts *interrupts, const struct kb_walk *walk);

/* Fill in what @shown has of interrupts; it lives as long as these. Returns 0 or -ENOMEM. */
int kb_interrupts_finish(struct kb_interrupts *interrupts, struct kb_latency *shown);

#endif
