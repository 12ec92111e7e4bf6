// SPDX-License-Identifier: MIT
/* Files of a state are those of Documentation/admin-guide/pm/cpuidle.rst; each has one line. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "record/recorder/idle_table.h"

#define STATES	10U	/* CPUIDLE_STATE_MAX */

struct place {
	const char *sys;
	uint32_t cpu, state;
};

static bool read_line(const struct place *place, const char *name, char *line, int size)
{
	char path[PATH_MAX];
	bool good;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu%u/cpuidle/state%u/%s", place->sys, place->cpu,
		 place->state, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	good = fgets(line, size, file);
	fclose(file);
	if (good)
		line[strcspn(line, "\n")] = '\0';
	return good;
}

static bool read_number(const struct place *place, const char *name, uint32_t *number)
{
	char line[24];

	return read_line(place, name, line, sizeof(line)) && sscanf(line, "%u", number) == 1;
}

static bool read_state(const struct place *place, struct kb_idle_row *row)
{
	uint32_t disabled = 0;

	*row = (struct kb_idle_row){ .disabled = false };
	if (!read_number(place, "residency", &row->residency) ||
	    !read_number(place, "latency", &row->latency) ||
	    !read_line(place, "name", row->name, sizeof(row->name)))
		return false;
	read_number(place, "disable", &disabled);
	row->disabled = disabled;
	return true;
}

static bool is_same(const struct kb_idle_row *a, const struct kb_idle_row *b)
{
	return a->residency == b->residency && a->latency == b->latency &&
	       a->disabled == b->disabled && strcmp(a->name, b->name) == 0;
}

int kb_idle_table_read(const char *sys, uint32_t nr_cpus,
		       int (*take)(void *context, uint32_t cpu, uint32_t state,
				   const struct kb_idle_row *row),
		       void *context)
{
	struct place place = { .sys = sys ?: "/sys/devices/system/cpu" };
	struct kb_idle_row first[STATES], row;
	uint32_t nr_first = 0;
	int ret = 0;

	for (; place.cpu < nr_cpus && !ret; place.cpu++)
		for (place.state = 0; place.state < STATES && !ret; place.state++) {
			bool known = read_state(&place, &row);

			row.disabled |= !known;
			if (!known && (!place.state || place.state >= nr_first))
				break;
			if (!place.cpu)
				first[nr_first++] = row;
			else if (place.state < nr_first && is_same(&row, &first[place.state]))
				continue;
			ret = take(context, place.cpu, place.state, &row);
		}
	return ret;
}
