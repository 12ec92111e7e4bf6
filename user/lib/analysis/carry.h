/* SPDX-License-Identifier: MIT */
/*
 * What counters advanced between two samples with a PC, where samples without a PC come in
 * between and read the same counters (kbarman record --counters). A value in the capture covers
 * the time since the counters were last read, so a sample that weighs as much as its own values
 * would weigh the less the shorter ago that was. The carry adds up what came before, core by core.
 */
#ifndef KB_LIB_ANALYSIS_CARRY_H
#define KB_LIB_ANALYSIS_CARRY_H

#include <kbarman/event.h>

struct kb_carry;

/* For @max_cores cores with at most @max_counters each; NULL without memory. */
struct kb_carry *kb_carry_create(uint32_t max_cores, uint32_t max_counters);
void kb_carry_destroy(struct kb_carry *carry);

/* A sample without a PC. */
void kb_carry_add(struct kb_carry *carry, const struct kb_event *event);

/*
 * The values of the sample with a PC @event cover the time since the last such sample on its
 * core from now on. They hold until the next call. A value that could not be read stays so, and
 * what was carried of it goes to the next one.
 */
void kb_carry_take(struct kb_carry *carry, struct kb_event *event);

#endif
