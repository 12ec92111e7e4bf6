// SPDX-License-Identifier: MIT
/* What events there are: the generic ones, and those that sysfs lists for each PMU. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/perf_events.h>

#include "record/perf/names.h"
#include "record/perf/pmus.h"

struct lister {
	const char *sysfs;
	kb_events_visit visit;
	void *context;
};

static int visit_event(void *context, const char *group, const char *name, const char *description)
{
	const struct lister *l = context;
	struct kb_event_listing listing = { .group = group, .description = description };

	if (kb_events_parse(&listing.event, 1, name, l->sysfs, NULL) != 1)
		return 0;		/* sysfs lists more than can be counted */
	return l->visit(l->context, &listing);
}

/* List the events that sysfs has for @pmu. Their terms serve as description. */
static int list_pmu(struct lister *l, const char *pmu)
{
	char path[PATH_MAX], name[2 * NAME_MAX + 4], terms[KB_SYSFS_LINE];
	struct dirent **events;
	int nr, ret = 0;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/events", l->sysfs, pmu);
	nr = scandir(path, &events, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		const char *event = events[i]->d_name;

		/* NAME.unit and NAME.scale are about NAME */
		if (!ret && !strchr(event, '.') &&
		    !kb_pmu_read(l->sysfs, pmu, "events", event, terms)) {
			snprintf(name, sizeof(name), "%s/%s/", pmu, event);
			ret = visit_event(l, pmu, name, terms);
		}
		free(events[i]);
	}
	if (nr >= 0)
		free(events);
	return ret;
}

int kb_events_list(const char *sysfs, kb_events_visit visit, void *context)
{
	struct lister l = { sysfs ?: "/sys", visit, context };
	char path[PATH_MAX];
	struct dirent **pmus;
	int nr, ret;

	ret = kb_perf_names_list(visit_event, &l);
	snprintf(path, sizeof(path), "%s/bus/event_source/devices", l.sysfs);
	nr = scandir(path, &pmus, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (!ret && *pmus[i]->d_name != '.')
			ret = list_pmu(&l, pmus[i]->d_name);
		free(pmus[i]);
	}
	if (nr >= 0)
		free(pmus);
	return ret;
}
