/* SPDX-License-Identifier: MIT */
/* A sysfs of the test's own making, with the PMUs of a machine. */
#ifndef KB_TEST_SYSFS_H
#define KB_TEST_SYSFS_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char sysfs[] = "/tmp/kbarman-sysfs.XXXXXX";

static void sysfs_begin(void)
{
	if (!mkdtemp(sysfs))
		exit(1);
}

static int sysfs_end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	return system(command);
}

/* Make a file below sysfs. */
static void sysfs_put(const char *name, const char *content)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", sysfs, name);
	for (char *slash = path + strlen(sysfs) + 1; (slash = strchr(slash, '/'));) {
		*slash = '\0';
		mkdir(path, 0777);
		*slash++ = '/';
	}
	file = fopen(path, "w");
	if (!file || fputs(content, file) < 0 || fclose(file)) {
		perror(path);
		exit(1);
	}
}

/* A file of a PMU. */
__attribute__((unused))
static void sysfs_pmu(const char *name, const char *content)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "bus/event_source/devices/%s", name);
	sysfs_put(path, content);
}

#define SYSFS_CPU	"devices/system/cpu/cpu"

/* An x86 with one kind of cores, whose events are described as Linux does on Ice Lake. */
__attribute__((unused))
static void sysfs_plain(void)
{
	sysfs_pmu("cpu/type", "4\n");
	sysfs_pmu("cpu/caps/max_precise", "2\n");
	sysfs_pmu("cpu/format/event", "config:0-7\n");
	sysfs_pmu("cpu/format/umask", "config:8-15\n");
	sysfs_pmu("cpu/format/offcore_rsp", "config1:0-63\n");
	sysfs_pmu("cpu/events/cpu-cycles", "event=0x3c\n");
	sysfs_pmu("cpu/events/slots", "event=0x00,umask=0x4\n");
	sysfs_pmu("cpu/events/topdown-retiring", "event=0x00,umask=0x80\n");
	sysfs_pmu("cpu/events/topdown-bad-spec", "event=0x00,umask=0x81\n");
	sysfs_pmu("cpu/events/topdown-fe-bound", "event=0x00,umask=0x82\n");
	sysfs_pmu("cpu/events/topdown-be-bound", "event=0x00,umask=0x83\n");
	sysfs_pmu("software/type", "1\n");
	sysfs_pmu("uncore/type", "20\n");
	sysfs_pmu("uncore/cpumask", "0\n");
	sysfs_pmu("uncore/format/event", "config:0-7\n");
	sysfs_put("kernel/tracing/events/sched/sched_wakeup/id", "314\n");
}

/* An Intel with two kinds of cores: Linux calls their PMUs cpu_core and cpu_atom. */
__attribute__((unused))
static void sysfs_hybrid(void)
{
	sysfs_pmu("cpu_core/type", "4\n");
	sysfs_pmu("cpu_core/cpus", "0-3\n");
	sysfs_pmu("cpu_core/caps/max_precise", "3\n");
	sysfs_pmu("cpu_core/format/event", "config:0-7\n");
	sysfs_pmu("cpu_core/format/umask", "config:8-15\n");
	sysfs_pmu("cpu_core/events/slots", "event=0x00,umask=0x4\n");
	sysfs_pmu("cpu_core/events/topdown-retiring", "event=0x00,umask=0x80\n");
	sysfs_pmu("cpu_core/events/mem-stores", "event=0xcd,umask=0x2\n");
	sysfs_pmu("cpu_atom/type", "10\n");
	sysfs_pmu("cpu_atom/cpus", "4-7\n");
	sysfs_pmu("cpu_atom/caps/max_precise", "1\n");
	sysfs_pmu("cpu_atom/format/event", "config:0-7\n");
	sysfs_pmu("cpu_atom/format/umask", "config:8-15\n");
	sysfs_pmu("cpu_atom/events/mem-stores", "event=0xd0,umask=0x6\n");
	sysfs_put(SYSFS_CPU "0/cpufreq/cpuinfo_max_freq", "5000000\n");
	sysfs_put(SYSFS_CPU "4/cpufreq/cpuinfo_max_freq", "3800000\n");
}

/* An Arm with two kinds of cores. */
__attribute__((unused))
static void sysfs_big_little(void)
{
	sysfs_pmu("armv8_cortex_a53/type", "8\n");
	sysfs_pmu("armv8_cortex_a53/cpus", "0-3\n");
	sysfs_pmu("armv8_cortex_a53/format/event", "config:0-15\n");
	sysfs_pmu("armv8_cortex_a53/events/cpu_cycles", "event=0x0011\n");
	sysfs_pmu("armv8_cortex_a53/events/inst_retired", "event=0x08\n");
	sysfs_pmu("armv8_cortex_a53/events/bus_cycles", "event=0x1d\n");
	sysfs_pmu("armv8_cortex_a72/type", "9\n");
	sysfs_pmu("armv8_cortex_a72/cpus", "4,5\n");
	sysfs_pmu("armv8_cortex_a72/format/event", "config:0-15\n");
	sysfs_pmu("armv8_cortex_a72/events/cpu_cycles", "event=0x0011\n");
	sysfs_pmu("armv8_cortex_a72/events/inst_retired", "event=0x08\n");
	sysfs_pmu("armv8_cortex_a72/events/stall_frontend", "event=0x23\n");
	sysfs_put(SYSFS_CPU "0/cpu_capacity", "446\n");
	sysfs_put(SYSFS_CPU "4/cpu_capacity", "1024\n");
}

#endif
