/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the CPUs have a hardware PMU. */
#ifndef KBARMAN_CPU_PMU_H
#define KBARMAN_CPU_PMU_H

#include <linux/types.h>

/* Find out, once. Context: task. */
void kbarman_cpu_pmu_find(void);

/*
 * True if there is a hardware PMU. Its name is copied to @name, which has @size bytes. Creates a
 * perf event only if the earlier tries to find out gave no answer. Context: task.
 */
bool kbarman_cpu_pmu_present(char *name, size_t size);

#endif /* KBARMAN_CPU_PMU_H */
