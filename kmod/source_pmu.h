/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_SOURCE_PMU_H
#define KBARMAN_SOURCE_PMU_H

#include <linux/types.h>

#include "uapi/kbarman.h"

/* Find out whether there is a hardware PMU, once. Context: init, or the session's lock held. */
void kbarman_pmu_find(void);

/*
 * There is one: its name goes to @name, of @size bytes. Makes no event, unless the one that was
 * to tell could not be made. Context: the session's lock held.
 */
bool kbarman_pmu_present(char *name, size_t size);

/*
 * Read this CPU's counters: what they counted since they were last read is the current task's,
 * and becomes a sample without PC. Nothing, unless they count.
 * Context: the CPU, preemption off, any level up to NMI.
 */
void kbarman_pmu_count(void);

/*
 * Counters that could not be read at an overflow, since start: their values are ~0 in
 * those samples. KBARMAN_MISSED_COUNTER of the stats. Context: any.
 */
u64 kbarman_pmu_unreadable(void);

/* Times that the first counter of @cpu stood still, since start. Context: any. */
u64 kbarman_pmu_stops(int cpu, enum kbarman_stop reason);

#endif /* KBARMAN_SOURCE_PMU_H */
