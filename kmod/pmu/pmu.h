/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pmu/: the counters of each CPU: their events (events.h), the samples at their overflows
 * (overflow.h), the turns of those that do not fit together (turns.h), which PMU the CPUs have
 * and which CPU one is (cpu.h).
 */
#ifndef KBARMAN_PMU_H
#define KBARMAN_PMU_H

#include <linux/types.h>

#include "source.h"
#include "uapi/kbarman.h"

struct kbarman_session;

extern const struct kbarman_source kbarman_source_pmu;

#endif /* KBARMAN_PMU_H */
