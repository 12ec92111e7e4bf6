/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_SOURCE_PMU_H
#define KBARMAN_SOURCE_PMU_H

#include <linux/types.h>

#include "uapi/kbarman.h"

struct kbarman_session;

/*
 * Number of counters that could not be read, at an overflow or for a sample without PC, since the
 * start. Their values in these samples are ~0. KBARMAN_MISSED_COUNTER in the stats. Context: any.
 */
u64 kbarman_pmu_unreadable(const struct kbarman_session *session);

/* Number of times that the first counter of @cpu stopped since the start. Context: any. */
u64 kbarman_pmu_stops(const struct kbarman_session *session, int cpu, enum kbarman_stop reason);

#endif /* KBARMAN_SOURCE_PMU_H */
