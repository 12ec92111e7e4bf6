// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which PMU the CPUs have, and the identification of a core. A core can read only its own
 * identification, so this runs on that core. The fields are Arm's; other architectures fill in
 * their nearest equivalents.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "pmu/cpu.h"

/* ---- the PMU ---- */

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

/* ---- a core ---- */

#if defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#include <asm/cputype.h>

#define MPIDR_MULTITHREADING	(1UL << 24)	/* affinity level 0 is a thread, not a core */

static void cpu_identify(void *to)
{
	struct bm_protocol_header_pmu_settings *settings = to;
	unsigned long mpidr = read_cpuid_mpidr();

	settings->midr = read_cpuid_id();
	settings->mpidr = mpidr;
	settings->cluster_id = mpidr & MPIDR_MULTITHREADING ? MPIDR_AFFINITY_LEVEL(mpidr, 2) :
							      MPIDR_AFFINITY_LEVEL(mpidr, 1);
}
#elif defined(CONFIG_X86)
#include "compat/cpuid.h"

#define CPUID_TOPOLOGY		0xb

static void cpu_identify(void *to)
{
	struct bm_protocol_header_pmu_settings *settings = to;
	unsigned int eax, ebx, ecx, edx;

	cpuid(1, &eax, &ebx, &ecx, &edx);
	settings->midr = eax;
	settings->mpidr = ebx >> 24;	/* 8 bits of the APIC id, which every CPU has */
	settings->cluster_id = topology_physical_package_id(smp_processor_id());
	if (cpuid_eax(0) < CPUID_TOPOLOGY)
		return;
	cpuid_count(CPUID_TOPOLOGY, 0, &eax, &ebx, &ecx, &edx);
	if (ebx)
		settings->mpidr = edx;	/* all 32 bits */
}
#elif defined(CONFIG_S390)
#include <asm/processor.h>

static void cpu_identify(void *to)
{
	struct bm_protocol_header_pmu_settings *settings = to;
	struct cpuid id;

	get_cpu_id(&id);
	settings->midr = id.machine;	/* machine type: 0x8561 is a z15 */
	settings->mpidr = stap();
	settings->cluster_id = topology_physical_package_id(smp_processor_id());
}
#elif defined(CONFIG_RISCV_SBI)
#include <asm/sbi.h>

static void cpu_identify(void *to)
{
	struct bm_protocol_header_pmu_settings *settings = to;

	settings->midr = sbi_ecall(SBI_EXT_BASE, SBI_EXT_BASE_GET_MARCHID, 0, 0, 0, 0, 0, 0).value;
	settings->cluster_id = topology_physical_package_id(smp_processor_id());
}
#else
static void cpu_identify(void *to)
{
}
#endif

void kbarman_cpu_identify(int cpu, struct bm_protocol_header_pmu_settings *settings)
{
	settings->midr = 0;
	settings->mpidr = 0;
	settings->cluster_id = 0;
	smp_call_function_single(cpu, cpu_identify, settings, true);
}
