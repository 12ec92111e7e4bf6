// SPDX-License-Identifier: MIT
/*
 * A PMU of CPUs of one kind has a file `cpus` in sysfs, which a PMU of all CPUs lacks. The module
 * leaves an event out where the CPU's PMU does not have it, and counts one event of each name.
 */
#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/counted.h"
#include "base/json.h"
#include "cli.h"
#include "per_core.h"

#define DEVICES		"bus/event_source/devices"
#define MAX_KINDS	16

/* The numbers of the PMUs of CPUs of one kind. */
struct kinds {
	unsigned int nr;
	uint32_t types[MAX_KINDS];
};

static void add_kind(struct kinds *kinds, const char *sysfs, const char *pmu)
{
	char path[512];
	unsigned int type;
	FILE *file;

	snprintf(path, sizeof(path), "%s/" DEVICES "/%s/cpus", sysfs, pmu);
	if (access(path, F_OK) || kinds->nr == MAX_KINDS)
		return;
	snprintf(path, sizeof(path), "%s/" DEVICES "/%s/type", sysfs, pmu);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%u", &type) == 1)
		kinds->types[kinds->nr++] = type;
	fclose(file);
}

static void read_kinds(struct kinds *kinds, const char *sysfs)
{
	const struct dirent *entry;
	char path[512];
	DIR *directory;

	kinds->nr = 0;
	snprintf(path, sizeof(path), "%s/" DEVICES, sysfs);
	directory = opendir(path);
	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			add_kind(kinds, sysfs, entry->d_name);
	closedir(directory);
}

/* The event has a number that each kind of CPU may understand. */
static bool is_generic(const struct kbarman_event *event)
{
	return (event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE) &&
	       !(event->config >> 32);
}

/* Behind each generic event the same one of each kind. Returns how many there are, or 0. */
static unsigned int expand(struct kbarman_event *events, unsigned int nr, unsigned int max,
			   const struct kinds *kinds)
{
	unsigned int i, kind;

	for (i = 0; i < nr; i++) {
		if (!is_generic(&events[i]))
			continue;
		if (nr + kinds->nr > max)
			return 0;
		memmove(&events[i + 1 + kinds->nr], &events[i + 1], (nr - i - 1) * sizeof(*events));
		for (kind = 0; kind < kinds->nr; kind++) {
			events[i + 1 + kind] = events[i];
			events[i + 1 + kind].config |= (uint64_t)kinds->types[kind] << 32;
		}
		nr += kinds->nr;
		i += kinds->nr;
	}
	return nr;
}

int per_core_prepare(struct kbarman_configure *configure, struct kbarman_event *events,
		     unsigned int nr, unsigned int max, const char *sysfs)
{
	struct kinds kinds;

	read_kinds(&kinds, sysfs ? sysfs : "/sys");
	if (kinds.nr > 1) {
		nr = expand(events, nr, max, &kinds);
		if (!nr)
			return cli_fail("-e: too many events for a machine with CPUs of %u kinds: each "
					"generic event takes %u of %u places", kinds.nr,
					kinds.nr + 1, max);
	}
	configure->nr_events = nr;
	configure->events_ptr = (uintptr_t)events;
	/*
	 * A machine with one such PMU, as of arm64, has CPUs of one kind. There an event that does
	 * not count is a mistake.
	 */
	if (kinds.nr > 1)
		configure->flags |= KBARMAN_CONFIGURE_PER_CORE;
	return 0;
}

/* ---- after the start ---- */

static unsigned int cpus_that_count(const struct kb_mapped *mapped)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < mapped->header->config_constants.max_cores; i++)
		nr += kb_mapped_count(&mapped->pmus[i].num_counters) > 0;
	return nr;
}

static int say(const struct kb_mapped *mapped)
{
	/* What kb_uncounted_read() and kb_unsampled_read() look at. */
	const struct kb_header header = {
		.strings = mapped->strings,
		.string_table_length = kb_mapped_count(&mapped->header->string_table_length),
		.max_cores = mapped->header->config_constants.max_cores,
	};
	struct kb_uncounted *rows;
	uint32_t nr;

	if (kb_uncounted_read(&header, &rows, &nr))
		return cli_fail("out of memory");
	for (uint32_t i = 0; i < nr; i++)
		cli_warn("CPU %s can't count event '%s'", rows[i].cpus, rows[i].name);
	kb_uncounted_free(rows, nr);
	if (kb_unsampled_read(&header, &rows, &nr))
		return cli_fail("out of memory");
	for (uint32_t i = 0; i < nr; i++)
		cli_warn("CPU %s takes no samples: put an event of its PMU beside '%s'",
			 rows[i].cpus, rows[i].name);
	kb_uncounted_free(rows, nr);
	return cpus_that_count(mapped) ? 0 :
		cli_fail("no CPU can count any of the events: 'kbarman list' shows which there are");
}

int per_core_say(struct kb_device *device)
{
	struct kb_mapped mapped;
	struct kbarman_query query;
	struct kb_error err;
	unsigned int cpu;
	int ret;

	if (kb_device_query(device, &query, &err))
		return cli_fail_error(&err);
	/* All maps have the header. A CPU that is not recorded has no map. */
	for (cpu = 0; cpu < query.nr_cpus; cpu++) {
		if (kb_device_map(device, cpu, &mapped, &err))
			continue;
		ret = say(&mapped);
		kb_mapped_unmap(&mapped);
		return ret;
	}
	return 0;
}

/* ---- of captures ---- */

void per_core_json(struct kb_json *json, const char *kind, const struct kb_uncounted *rows,
		   uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		kb_json_begin(json, kind);
		kb_json_string(json, "event", rows[i].name);
		kb_json_string(json, "cpus", rows[i].cpus);
		kb_json_end(json);
	}
}
