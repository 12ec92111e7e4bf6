/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events of a session, one set for each CPU.
 *
 * The counters are pinned. If the hardware can't count all of them at the same time, start fails
 * and names the counter. So nothing is multiplexed, and every number is a count and not an
 * estimate. Counters that take turns (turns.c) do so because the session wants it.
 *
 * Sets may differ where the CPUs have PMUs of several kinds. The first counter of each set samples,
 * if it counts the first event of the list, or stands for it on its kind of CPUs.
 *
 * Context of all functions: task, session's lock held.
 */
#ifndef KBARMAN_PMU_EVENTS_H
#define KBARMAN_PMU_EVENTS_H

#include "session.h"

/*
 * Create all events of @cpu. If one of them fails, @report says which one, and none is left. With
 * KBARMAN_CONFIGURE_PER_CORE events that the CPU can't count are left out, maybe all of them.
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

/* True if one of the CPU's first @nr counters counts an event named @name. */
bool kbarman_pmu_counts_name(const struct kbarman_session *session,
			     const struct kbarman_counters *counters, unsigned int nr,
			     const char *name);

/*
 * -ERANGE for a frequency above kernel.perf_event_max_sample_rate. perf itself checks this limit
 * only for events of user space.
 */
int kbarman_pmu_check_frequency(const struct kbarman_session *session);

#endif /* KBARMAN_PMU_EVENTS_H */
