// SPDX-License-Identifier: MIT
/*
 * The table of metrics, and of the units of what they are made of. All facts are here; a new metric
 * is a row. selftests/host/test_metrics.c checks the units of each formula.
 *
 * Sources:
 *	Arm ARM		Arm Architecture Reference Manual for A-profile architecture (DDI 0487),
 *			The Performance Monitors Extension: what the common events count, and that
 *			PMMIR_EL1.SLOTS, in sysfs as caps/slots, is the slots of a cycle
 *	Arm SBSA	the level 1 formulas that Arm published for PMUs with these events, as in
 *			Linux 6.12, tools/perf/pmu-events/arch/arm64/sbsa.json. For some CPUs Arm
 *			publishes corrections, which are not here
 *	Intel TMA	the metrics of Ice Lake and later, as in Linux 6.12,
 *			tools/perf/Documentation/topdown.txt: each of the four counts slots
 *	perf		what perf stat of Linux 6.1 relates in its default output
 */
#include <string.h>

#include <kbarman/metrics.h>

#include "base/array.h"
#include "metrics/facts.h"

static const struct kb_metric metrics[] = {
	{ "ipc", "", "instructions / cycles", "instruction/cycle",
	  "instructions a cycle", "perf" },
	{ "cpi", "", "cycles / instructions", "cycle/instruction",
	  "cycles an instruction", "perf" },
	{ "ghz", "", "cycles / task-clock", "cycle/ns",
	  "cycles a nanosecond that a CPU ran", "perf" },
	{ "cpus", "", "task-clock / $elapsed", "cpu",
	  "CPUs that were used", "perf" },
	{ "branch_miss_rate", "branch", "branch-misses / branches", "1",
	  "branches that were predicted wrongly", "perf" },
	{ "branch_mpki", "branch", "1000 * branch-misses / instructions", "branch/instruction",
	  "wrongly predicted branches in 1000 instructions", "Arm SBSA" },
	{ "cache_miss_rate", "cache", "cache-misses / cache-references", "1",
	  "accesses of a cache that missed it: of the last level on x86, of level 1 data on Arm", "perf" },
	{ "l1d_miss_rate", "cache", "L1-dcache-load-misses / L1-dcache-loads", "1",
	  "loads that missed the level 1 data cache", "perf" },
	{ "llc_miss_rate", "cache", "LLC-load-misses / LLC-loads", "1",
	  "loads of the last-level cache that missed it", "perf" },
	{ "dtlb_miss_rate", "tlb", "dTLB-load-misses / dTLB-loads", "1",
	  "loads that missed the data TLB", "perf" },
	{ "itlb_miss_rate", "tlb", "iTLB-load-misses / iTLB-loads", "1",
	  "fetches that missed the instruction TLB", "perf" },
	{ "l2d_miss_rate", "cache", "l2d_cache_refill / l2d_cache", "1",
	  "accesses of the level 2 cache that missed it", "Arm ARM" },
	{ "frontend_stall_rate", "stall", "stalled-cycles-frontend / cycles", "1",
	  "cycles without an instruction to issue", "perf" },
	{ "backend_stall_rate", "stall", "stalled-cycles-backend / cycles", "1",
	  "cycles in which nothing could be issued", "perf" },

	{ "retiring", "topdown", "op_retired / op_spec * (1 - stall_slot / ($slots * cycles))", "1",
	  "slots of work that was of use", "Arm SBSA" },
	{ "bad_speculation", "topdown",
	  "(1 - op_retired / op_spec) * (1 - stall_slot / ($slots * cycles))", "1",
	  "slots of work that was thrown away", "Arm SBSA" },
	{ "frontend_bound", "topdown", "stall_slot_frontend / ($slots * cycles)", "1",
	  "slots that waited for instructions", "Arm SBSA" },
	{ "backend_bound", "topdown", "stall_slot_backend / ($slots * cycles)", "1",
	  "slots that waited for data or units", "Arm SBSA" },

	{ "retiring", "topdown", "topdown-retiring / slots", "1",
	  "slots of work that was of use", "Intel TMA" },
	{ "bad_speculation", "topdown", "topdown-bad-spec / slots", "1",
	  "slots of work that was thrown away", "Intel TMA" },
	{ "frontend_bound", "topdown", "topdown-fe-bound / slots", "1",
	  "slots that waited for instructions", "Intel TMA" },
	{ "backend_bound", "topdown", "topdown-be-bound / slots", "1",
	  "slots that waited for data or units", "Intel TMA" },
	{ 0 },
};

/* $elapsed is the time of the whole machine, of which each CPU has as much. */
static const struct {
	const char *name, *unit;
} units[] = {
	{ "$slots", "slot/cycle" },
	{ "$elapsed", "ns/cpu" },
	{ "task-clock", "ns" },
	{ "cycles", "cycle" },
	{ "instructions", "instruction" },
	{ "branches", "branch" },
	{ "branch-misses", "branch" },
	{ "cache-references", "access" },
	{ "cache-misses", "access" },
	{ "L1-dcache-loads", "load" },
	{ "L1-dcache-load-misses", "load" },
	{ "LLC-loads", "load" },
	{ "LLC-load-misses", "load" },
	{ "dTLB-loads", "load" },
	{ "dTLB-load-misses", "load" },
	{ "iTLB-loads", "load" },
	{ "iTLB-load-misses", "load" },
	{ "l2d_cache", "access" },
	{ "l2d_cache_refill", "access" },
	{ "stalled-cycles-frontend", "cycle" },
	{ "stalled-cycles-backend", "cycle" },
	{ "op_retired", "operation" },
	{ "op_spec", "operation" },
	{ "stall_slot", "slot" },
	{ "stall_slot_frontend", "slot" },
	{ "stall_slot_backend", "slot" },
	{ "slots", "slot" },
	{ "topdown-retiring", "slot" },
	{ "topdown-bad-spec", "slot" },
	{ "topdown-fe-bound", "slot" },
	{ "topdown-be-bound", "slot" },
};

/* As Linux counts generic events on Arm's PMUs, and perf's second names. */
static const struct {
	const char *name, *usual;
} names[] = {
	{ "cpu-cycles", "cycles" },
	{ "cpu_cycles", "cycles" },
	{ "inst_retired", "instructions" },
	{ "branch-instructions", "branches" },
	{ "br_retired", "branches" },
	{ "br_mis_pred", "branch-misses" },
	{ "idle-cycles-frontend", "stalled-cycles-frontend" },
	{ "stall_frontend", "stalled-cycles-frontend" },
	{ "idle-cycles-backend", "stalled-cycles-backend" },
	{ "stall_backend", "stalled-cycles-backend" },
	{ "cpu-clock", "task-clock" },
};

const struct kb_metric *kb_metrics_all(void)
{
	return metrics;
}

/*
 * Source: Linux 6.12, arch/x86/events/intel/core.c, intel_pmu_hw_config(). Counters of a module, as
 * those of a recording are, have no groups either (perf_event_create_kernel_counter()).
 */
bool kb_metric_can_be_recorded(const struct kb_metric *metric)
{
	return !strstr(metric->formula, "topdown-");
}

const char *kb_metric_unit_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(name, units[i].name))
			return units[i].unit;
	return NULL;
}

const char *kb_metric_usual_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].usual;
	return name;
}
