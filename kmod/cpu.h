/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_CPU_H
#define KBARMAN_CPU_H

#include "uapi/barman_v2.h"

/*
 * Fill in what kind of core @cpu is and where in the machine: midr, mpidr and
 * cluster_id; 0 where the architecture or an offline CPU has no answer.
 * Context: task.
 */
void kbarman_cpu_identify(int cpu, struct bm_protocol_header_pmu_settings *settings);

#endif /* KBARMAN_CPU_H */
