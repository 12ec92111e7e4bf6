/* SPDX-License-Identifier: MIT */
/* The PMUs that sysfs describes, and which of them are those of CPU cores. */
#ifndef KB_LIB_RECORD_PERF_PMUS_H
#define KB_LIB_RECORD_PERF_PMUS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/perf_events.h>

#define KB_SYSFS_LINE	1024	/* bytes of a sysfs file that describes an event or a field */
#define KB_CPU_PMUS_MAX	16

/* Whether @name can be the last component of a path: names come from the command line. */
bool kb_pmu_is_file_name(const char *name);

/* Parse all of @text as a number; base 0 or 16. */
bool kb_pmu_number(const char *text, int base, uint64_t *value);

/* The first line of SYSFS/bus/event_source/devices/PMU/DIR/NAME; 0 or -errno. */
int kb_pmu_read(const char *sysfs, const char *pmu, const char *dir, const char *name,
		char line[KB_SYSFS_LINE]);

/* The number of the PMU; false: there is no such PMU. */
bool kb_pmu_type(const char *sysfs, const char *pmu, uint32_t *type);

/* A PMU of CPU cores. */
struct kb_cpu_pmu {
	char name[64];
	uint32_t type;
	int cpu;		/* one of its CPUs; -1: sysfs does not say which it has */
	uint64_t capacity;	/* of that CPU, beside others of the machine; 0: not known */
};

struct kb_cpu_pmus {
	unsigned int nr;
	unsigned int nr_kinds;	/* that have CPUs of their own: more than one, if the machine has
				 * several kinds of cores. They come first, by name */
	struct kb_cpu_pmu pmus[KB_CPU_PMUS_MAX];
};

void kb_cpu_pmus_read(const char *sysfs, struct kb_cpu_pmus *pmus);

/* How many slots a cycle has; 0: the PMU does not say. */
unsigned int kb_pmu_slots(const char *sysfs, const char *pmu);

/*
 * "big", "mid" and "little" stand for PMUs of a machine with several kinds of cores, by how fast
 * these are. NULL: @word is none of these, or the machine has no such cores.
 */
const struct kb_cpu_pmu *kb_cpu_pmus_kind(const struct kb_cpu_pmus *pmus, const char *word);

/* The index of the PMU if it counts @event only on its own kind of cores; -1: others do as well. */
int kb_cpu_pmus_kind_of(const struct kb_cpu_pmus *pmus, const struct kb_perf_event *event);

/* Is @cpu one of those that the file `cpus` of the PMU has? */
bool kb_cpu_pmu_has(const char *sysfs, const struct kb_cpu_pmu *pmu, int cpu);

/* The PMU of this number; NULL: it is none of CPU cores. */
const struct kb_cpu_pmu *kb_cpu_pmus_find(const struct kb_cpu_pmus *pmus, uint32_t type);

#endif
