/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_SOURCE_PMU_H
#define KBARMAN_SOURCE_PMU_H

#include <linux/types.h>

#include "uapi/kbarman.h"

/* There is a hardware PMU: its name goes to @name, of @size bytes. Context: task. */
bool kbarman_pmu_present(char *name, size_t size);

/*
 * Counters that could not be read at an overflow, since start: their values are ~0 in
 * those samples. KBARMAN_MISSED_COUNTER of the stats. Context: any.
 */
u64 kbarman_pmu_unreadable(void);

/* Times that the first counter of @cpu stood still, since start. Context: any. */
u64 kbarman_pmu_stops(int cpu, enum kbarman_stop reason);

#endif /* KBARMAN_SOURCE_PMU_H */
