// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/string.h>

#include "pmu/cpu_pmu.h"

static DEFINE_MUTEX(cpu_pmu_lock);

/* Protected by cpu_pmu_lock. */
static struct {
	bool known, present;
	char name[32];
} cpu_pmu;

static void cpu_pmu_look(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpumask_any(cpu_online_mask), NULL, NULL,
						 NULL);
	if (!IS_ERR(event)) {
		strscpy(cpu_pmu.name, event->pmu->name, sizeof(cpu_pmu.name));
		perf_event_release_kernel(event);
		cpu_pmu.present = true;
	}
	/*
	 * Other errors, as for no memory or a CPU that goes offline, say nothing about the machine.
	 */
	cpu_pmu.known = !IS_ERR(event) || PTR_ERR(event) == -ENOENT ||
			PTR_ERR(event) == -EOPNOTSUPP;
}

void kbarman_cpu_pmu_find(void)
{
	mutex_lock(&cpu_pmu_lock);
	if (!cpu_pmu.known)
		cpu_pmu_look();
	mutex_unlock(&cpu_pmu_lock);
}

bool kbarman_cpu_pmu_present(char *name, size_t size)
{
	kbarman_cpu_pmu_find();
	strscpy(name, cpu_pmu.name, size);
	return cpu_pmu.present;
}
