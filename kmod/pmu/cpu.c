// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identification of a core. A core can read only its own identification, so this runs on that core.
 * The fields are Arm's; other architectures fill in their nearest equivalents.
 */
#include <linux/smp.h>
#include <linux/topology.h>

#include "pmu/cpu.h"

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
