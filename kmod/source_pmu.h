/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_SOURCE_PMU_H
#define KBARMAN_SOURCE_PMU_H

#include <linux/types.h>

#include "uapi/kbarman.h"

/* Find out, once, whether there is a hardware PMU. Context: task; init, or session's lock held. */
void kbarman_pmu_find(void);

/*
 * True if there is a hardware PMU. Its name is copied to @name, which has @size bytes. Creates a
 * perf event only if the earlier tries to find out gave no answer. Context: task, session's lock
 * held.
 */
bool kbarman_pmu_present(char *name, size_t size);

/*
 * Read this CPU's counters and write a sample without PC: what they counted since they were last
 * read belongs to the current task. Does nothing if the CPU has no counters.
 * Context: the CPU, preemption off, any level up to NMI.
 */
void kbarman_pmu_count(void);

/*
 * Number of counters that could not be read, at an overflow or for a sample without PC, since the
 * start. Their values in these samples are ~0. KBARMAN_MISSED_COUNTER in the stats. Context: any.
 */
u64 kbarman_pmu_unreadable(void);

/* Number of times that the first counter of @cpu stopped since the start. Context: any. */
u64 kbarman_pmu_stops(int cpu, enum kbarman_stop reason);

#endif /* KBARMAN_SOURCE_PMU_H */
