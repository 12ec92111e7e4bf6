/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_CPU_H
#define KBARMAN_CPU_H

#include "uapi/barman_v2.h"

/*
 * Fill in midr, mpidr and cluster_id: the kind of core that @cpu is, and its place in the machine.
 * A field is 0 if the architecture does not have it or @cpu is offline. Context: task.
 */
void kbarman_cpu_identify(int cpu, struct bm_protocol_header_pmu_settings *settings);

#endif /* KBARMAN_CPU_H */
