/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events of a session, one set for each CPU.
 *
 * The counters are pinned. If the hardware can't count all of them at the same time, start fails
 * and names the counter. So nothing is multiplexed, and every number is a count and not an
 * estimate.
 *
 * Context of all functions: task, session's lock held.
 */
#ifndef KBARMAN_PMU_EVENTS_H
#define KBARMAN_PMU_EVENTS_H

#include "session.h"

/* Create all events of @cpu. If one of them fails, @report says which one, and none is left. */
int kbarman_pmu_create_events(struct kbarman_session *session, int cpu,
			      struct kbarman_start *report);
void kbarman_pmu_release_events(struct kbarman_counters *counters);

/*
 * -ERANGE for a frequency above kernel.perf_event_max_sample_rate. perf itself checks this limit
 * only for events of user space.
 */
int kbarman_pmu_check_frequency(const struct kbarman_session *session);

#endif /* KBARMAN_PMU_EVENTS_H */
