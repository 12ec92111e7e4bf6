/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPU one is, and which PMU the CPUs have. */
#ifndef KBARMAN_CPU_H
#define KBARMAN_CPU_H

#include "uapi/barman_v2.h"

/*
 * Fill in midr, mpidr and cluster_id: the kind of core that @cpu is, and its place in the machine.
 * A field is 0 if the architecture does not have it or @cpu is offline. Context: task.
 */
void kbarman_cpu_identify(int cpu, struct bm_protocol_header_pmu_settings *settings);

/* Find out whether the CPUs have a hardware PMU, once. Context: task. */
void kbarman_cpu_pmu_find(void);

/*
 * True if there is a hardware PMU. Its name is copied to @name, which has @size bytes. Creates a
 * perf event only if the earlier tries to find out gave no answer. Context: task.
 */
bool kbarman_cpu_pmu_present(char *name, size_t size);

#endif /* KBARMAN_CPU_H */
