// SPDX-License-Identifier: MIT
/* See names.h. The numbers are those of <linux/perf_event.h>. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "record/perf/names.h"

struct generic_event {
	const char *name;
	uint32_t type;
	uint32_t config;
	const char *description;
};

static const struct generic_event generic_events[] = {
	{ "cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
	  "CPU cycles" },
	{ "cpu-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
	  "the same as cycles" },
	{ "instructions",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS,
	  "instructions retired" },
	{ "cache-references",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	  "accesses of a cache: of the last level on x86, of level 1 data on Arm" },
	{ "cache-misses",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
	  "the accesses of cache-references that missed" },
	{ "branches",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  "branches retired" },
	{ "branch-instructions",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  "the same as branches" },
	{ "branch-misses",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES,
	  "branches that were predicted wrongly" },
	{ "bus-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES,
	  "cycles of the bus" },
	{ "stalled-cycles-frontend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "cycles without an instruction to issue" },
	{ "idle-cycles-frontend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "the same as stalled-cycles-frontend" },
	{ "stalled-cycles-backend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "cycles in which nothing could be issued" },
	{ "idle-cycles-backend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "the same as stalled-cycles-backend" },
	{ "ref-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES,
	  "cycles at the reference clock's rate" },
	{ "cpu-clock",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK,
	  "time, by a timer of each CPU; needs no PMU" },
	{ "task-clock",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK,
	  "time that tasks ran" },
	{ "page-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
	  "page faults" },
	{ "faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
	  "the same as page-faults" },
	{ "minor-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN,
	  "page faults without input or output" },
	{ "major-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  "page faults that waited for input or output" },
	{ "context-switches",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "switches to another task" },
	{ "cs",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "the same as context-switches" },
	{ "cpu-migrations",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "tasks that came from another CPU" },
	{ "migrations",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "the same as cpu-migrations" },
	{ "alignment-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
	  "accesses that the kernel had to align" },
	{ "emulation-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS,
	  "instructions that the kernel had to emulate" },
};

/* A generic cache event is CACHE-OPERATION, its config cache | op << 8 | result << 16. */
static const struct generic_event caches[] = {
	{ "L1-dcache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D, "level 1 data cache" },
	{ "L1-icache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1I, "level 1 instruction cache" },
	{ "LLC", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL, "last-level cache" },
	{ "dTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB, "data TLB" },
	{ "iTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_ITLB, "instruction TLB" },
	{ "branch", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_BPU, "branch predictor" },
	{ "node", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_NODE, "local memory" },
};

#define CACHE_OP(op, result) \
	(PERF_COUNT_HW_CACHE_OP_##op << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct generic_event cache_operations[] = {
	{ "loads", PERF_TYPE_HW_CACHE, CACHE_OP(READ, ACCESS), "loads" },
	{ "load-misses", PERF_TYPE_HW_CACHE, CACHE_OP(READ, MISS), "load misses" },
	{ "stores", PERF_TYPE_HW_CACHE, CACHE_OP(WRITE, ACCESS), "stores" },
	{ "store-misses", PERF_TYPE_HW_CACHE, CACHE_OP(WRITE, MISS), "store misses" },
	{ "prefetches", PERF_TYPE_HW_CACHE, CACHE_OP(PREFETCH, ACCESS), "prefetches" },
	{ "prefetch-misses", PERF_TYPE_HW_CACHE, CACHE_OP(PREFETCH, MISS), "prefetch misses" },
};

static bool find_generic(struct kb_perf_event *event, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic_events); i++) {
		if (strcmp(name, generic_events[i].name))
			continue;
		event->type = generic_events[i].type;
		event->config = generic_events[i].config;
		return true;
	}
	return false;
}

static bool find_cache(struct kb_perf_event *event, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		size_t length = strlen(caches[i].name);

		if (strncmp(name, caches[i].name, length) || name[length] != '-')
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(cache_operations); j++) {
			if (strcmp(name + length + 1, cache_operations[j].name))
				continue;
			event->type = PERF_TYPE_HW_CACHE;
			event->config = caches[i].config | cache_operations[j].config;
			return true;
		}
	}
	return false;
}

bool kb_perf_name_find(struct kb_perf_event *event, const char *name)
{
	return find_generic(event, name) || find_cache(event, name);
}

const char *kb_perf_name_in_sysfs(const char *name, unsigned int i)
{
	/*
	 * As Linux counts the generic events on Arm's PMUs (drivers/perf/arm_pmuv3.c), and the
	 * names that it gives the same events of x86.
	 */
	static const struct {
		const char *name, *in_sysfs[2];
	} rows[] = {
		{ "cycles", { "cpu_cycles", "cpu-cycles" } },
		{ "cpu-cycles", { "cpu_cycles", "cpu-cycles" } },
		{ "instructions", { "inst_retired", "instructions" } },
		{ "cache-references", { "l1d_cache", "cache-references" } },
		{ "cache-misses", { "l1d_cache_refill", "cache-misses" } },
		{ "branches", { "br_retired", "branch-instructions" } },
		{ "branch-instructions", { "br_retired", "branch-instructions" } },
		{ "branch-misses", { "br_mis_pred", "branch-misses" } },
		{ "bus-cycles", { "bus_cycles", "bus-cycles" } },
		{ "stalled-cycles-frontend", { "stall_frontend", NULL } },
		{ "stalled-cycles-backend", { "stall_backend", NULL } },
		{ "ref-cycles", { "ref-cycles", NULL } },
	};

	for (size_t row = 0; row < ARRAY_SIZE(rows) && i < 2; row++)
		if (!strcmp(name, rows[row].name))
			return rows[row].in_sysfs[i];
	return NULL;
}

static int list_caches(kb_perf_name_visit visit, void *context)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cache_operations) && !ret; j++) {
			char name[64], description[96];

			snprintf(name, sizeof(name), "%s-%s", caches[i].name,
				 cache_operations[j].name);
			snprintf(description, sizeof(description), "%s: %s", caches[i].description,
				 cache_operations[j].description);
			ret = visit(context, "cache", name, description);
		}
	}
	return ret;
}

int kb_perf_names_list(kb_perf_name_visit visit, void *context)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(generic_events) && !ret; i++)
		ret = visit(context,
			    generic_events[i].type == PERF_TYPE_HARDWARE ? "hardware" : "software",
			    generic_events[i].name, generic_events[i].description);
	return ret ?: list_caches(visit, context);
}
