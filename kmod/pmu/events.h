/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events of a session, one set for each CPU.
 *
 * The counters are pinned. If the hardware can't count all of them at the same time, start fails
 * and names the counter. So nothing is multiplexed, and every number is a count and not an
 * estimate. Counters that take turns (turns.c) do so because the session wants it.
 *
 * Sets may differ: each CPU takes, for each counter, the first one of its alternatives that it
 * accepts.
 *
 * Context of all functions: task, session's lock held.
 */
#ifndef KBARMAN_PMU_EVENTS_H
#define KBARMAN_PMU_EVENTS_H

#include "session.h"

/*
 * Create all events of @cpu. If one of them fails, @report says which one, and none is left.
 */
int kbarman_pmu_create_events(struct kbarman_session *session, int cpu,
			      struct kbarman_start *report);

/*
 * Let the events of a CPU that is online count no more. What they counted can still be read on this
 * CPU.
 */
void kbarman_pmu_disable_events(struct kbarman_counters *counters);

/* Note what the events have counted, and release them. */
void kbarman_pmu_release_events(struct kbarman_counters *counters);

/*
 * Add up what the events that are released have counted, and what of it is in no record. An RCU
 * grace period has passed since the release.
 */
void kbarman_pmu_settle(struct kbarman_counters *counters);

/* True if one of the CPU's counters counts an event named @name. */
bool kbarman_pmu_counts_name(const struct kbarman_session *session,
			     const struct kbarman_counters *counters, const char *name);

/* The event after the alternatives of the counter that begins with event @i. */
unsigned int kbarman_pmu_next_counter(const struct kbarman_session *session, unsigned int i);

/*
 * -ERANGE for a frequency above kernel.perf_event_max_sample_rate. perf itself checks this limit
 * only for events of user space.
 */
int kbarman_pmu_check_frequency(const struct kbarman_session *session);

#endif /* KBARMAN_PMU_EVENTS_H */
