/* SPDX-License-Identifier: MIT */
/*
 * For captures in which samples without a PC read the same counters as samples with a PC (kbarman
 * record --read-counters). A value in the capture covers the time since the last reading. So the own
 * values of a sample with a PC depend on how long ago that was, and are no good as its weight. The
 * carry adds the values of the readings in between, for each core.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_CARRY_H
#define KB_LIB_ANALYSIS_SAMPLES_CARRY_H

#include <kbarman/event.h>

struct kb_carry;

/* For @max_cores cores with at most @max_counters each; NULL without memory. */
struct kb_carry *kb_carry_create(uint32_t max_cores, uint32_t max_counters);
void kb_carry_destroy(struct kb_carry *carry);

/* A sample without a PC. */
void kb_carry_add(struct kb_carry *carry, const struct kb_event *event);

/*
 * Make the values of @event, a sample with a PC, cover the time since the last sample with a PC on
 * its core. The new values hold until the next call. A value that could not be read stays
 * KB_COUNTER_INVALID, and the next sample gets what was carried.
 */
void kb_carry_take(struct kb_carry *carry, struct kb_event *event);

#endif
