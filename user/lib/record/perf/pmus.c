// SPDX-License-Identifier: MIT
/*
 * See pmus.h. Arm's core PMUs and those of Intel's hybrid machines have a file `cpus` (uncore
 * PMUs have `cpumask`). The only core PMU of x86 and s390 has none, and is called cpu or cpum_cf.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/cpulist.h>

#include "record/perf/pmus.h"
#include "record/perf/probe.h"

bool kb_pmu_is_file_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_MAX;
}

bool kb_pmu_number(const char *text, int base, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return !errno && !*end;
}

static int read_line(const char *path, char line[KB_SYSFS_LINE])
{
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	length = read(fd, line, KB_SYSFS_LINE - 1);
	if (length < 0)
		length = -errno;
	close(fd);
	if (length < 0)
		return (int)length;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

int kb_pmu_read(const char *sysfs, const char *pmu, const char *dir, const char *name,
		char line[KB_SYSFS_LINE])
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s%s%s", sysfs, pmu, dir,
		     *dir ? "/" : "", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return read_line(path, line);
}

bool kb_pmu_type(const char *sysfs, const char *pmu, uint32_t *type)
{
	char line[KB_SYSFS_LINE] = "";
	uint64_t number;

	if (!kb_pmu_is_file_name(pmu) || kb_pmu_read(sysfs, pmu, "", "type", line) ||
	    !kb_pmu_number(line, 0, &number) || number > UINT32_MAX)
		return false;
	*type = (uint32_t)number;
	return true;
}

unsigned int kb_pmu_slots(const char *sysfs, const char *pmu)
{
	char line[KB_SYSFS_LINE] = "";
	uint64_t slots;

	/* Linux writes 0 for a PMU without such events. */
	return kb_pmu_read(sysfs, pmu, "caps", "slots", line) || !kb_pmu_number(line, 0, &slots) ||
	       slots > 255 ? 0 : (unsigned int)slots;
}

/* Arm's kernels tell the capacity of a CPU, other ones at least its highest frequency. */
static uint64_t read_capacity(const char *sysfs, int cpu)
{
	static const char *const files[] = { "cpu_capacity", "cpufreq/cpuinfo_max_freq" };
	char path[PATH_MAX], line[KB_SYSFS_LINE] = "";
	uint64_t value;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/%s", sysfs, cpu,
			     files[i]) < (int)sizeof(path) &&
		    !read_line(path, line) && kb_pmu_number(line, 10, &value))
			return value;
	return 0;
}

static void add_pmu(const char *sysfs, const char *name, bool kinds, struct kb_cpu_pmus *pmus)
{
	struct kb_cpu_pmu *pmu = &pmus->pmus[pmus->nr];
	char line[KB_SYSFS_LINE] = "";
	bool has_cpus;

	if (*name == '.' || strlen(name) >= sizeof(pmu->name) || pmus->nr == KB_CPU_PMUS_MAX)
		return;
	has_cpus = !kb_pmu_read(sysfs, name, "", "cpus", line);
	if (has_cpus != kinds || (!has_cpus && strncmp(name, "cpu", 3)) ||
	    !kb_pmu_type(sysfs, name, &pmu->type))
		return;
	memcpy(pmu->name, name, strlen(name) + 1);
	pmu->cpu = has_cpus && isdigit((unsigned char)*line) ? atoi(line) : -1;
	pmu->capacity = pmu->cpu < 0 ? 0 : read_capacity(sysfs, pmu->cpu);
	pmus->nr++;
	pmus->nr_kinds += has_cpus;
}

void kb_cpu_pmus_read(const char *sysfs, struct kb_cpu_pmus *pmus)
{
	struct dirent **names;
	char path[PATH_MAX];
	int nr;

	memset(pmus, 0, sizeof(*pmus));
	snprintf(path, sizeof(path), "%s/bus/event_source/devices", sysfs);
	nr = scandir(path, &names, NULL, alphasort);
	if (nr < 0)
		return;
	for (int kinds = 1; kinds >= 0; kinds--)
		for (int i = 0; i < nr; i++)
			add_pmu(sysfs, names[i]->d_name, kinds, pmus);
	for (int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
}

const struct kb_cpu_pmu *kb_cpu_pmus_kind(const struct kb_cpu_pmus *pmus, const char *word)
{
	const struct kb_cpu_pmu *big = NULL, *little = NULL;

	if (pmus->nr_kinds < 2)
		return NULL;
	for (unsigned int i = 0; i < pmus->nr_kinds; i++) {
		const struct kb_cpu_pmu *pmu = &pmus->pmus[i];

		if (!pmu->capacity)
			return NULL;
		if (!big || pmu->capacity > big->capacity)
			big = pmu;
		if (!little || pmu->capacity < little->capacity)
			little = pmu;
	}
	if (big == little || big->capacity == little->capacity)
		return NULL;
	if (!strcmp(word, "big"))
		return big;
	if (!strcmp(word, "little"))
		return little;
	if (strcmp(word, "mid") || pmus->nr_kinds != 3)
		return NULL;
	for (unsigned int i = 0; i < 3; i++)
		if (&pmus->pmus[i] != big && &pmus->pmus[i] != little)
			return &pmus->pmus[i];
	return NULL;
}

bool kb_cpu_pmu_has(const char *sysfs, const struct kb_cpu_pmu *pmu, int cpu)
{
	uint64_t words[KB_CPU_WORDS] = { 0 };
	char line[KB_SYSFS_LINE] = "";

	return cpu >= 0 && cpu < (int)KB_CPUS_MAX &&
	       !kb_pmu_read(sysfs, pmu->name, "", "cpus", line) &&
	       kb_cpulist_parse(words, line, KB_CPUS_MAX, NULL) > 0 &&
	       words[cpu / 64] >> cpu % 64 & 1;
}

const struct kb_cpu_pmu *kb_cpu_pmus_find(const struct kb_cpu_pmus *pmus, uint32_t type)
{
	for (unsigned int i = 0; i < pmus->nr; i++)
		if (pmus->pmus[i].type == type)
			return &pmus->pmus[i];
	return NULL;
}

int kb_cpu_pmus_kind_of(const struct kb_cpu_pmus *pmus, const struct kb_perf_event *event)
{
	uint32_t type = event->type;
	const struct kb_cpu_pmu *pmu;

	if (pmus->nr_kinds < 2)
		return -1;
	if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE)
		type = (uint32_t)(event->config >> PERF_PMU_TYPE_SHIFT);
	pmu = kb_cpu_pmus_find(pmus, type);
	return pmu && pmu < pmus->pmus + pmus->nr_kinds ? (int)(pmu - pmus->pmus) : -1;
}
