// SPDX-License-Identifier: MIT
/* Events as a list that kb_events_parse() makes the same events of. */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/out.h>
#include <kbarman/perf_events.h>

#include "record/perf/modifiers.h"
#include "record/perf/pmus.h"
#include "record/perf/probe.h"

static bool is_same(const struct kb_perf_event *a, const struct kb_perf_event *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 &&
	       !((a->flags ^ b->flags) & ~(__u32)KB_PERF_GROUP);
}

/* Does the event's name alone say all of it? */
static bool name_is_enough(const struct kb_perf_event *event, const char *sysfs)
{
	struct kb_perf_event parsed;

	return kb_events_parse(&parsed, 1, event->name, sysfs, NULL) == 1 && is_same(event, &parsed);
}

/* The PMU whose number is @type; false: sysfs has none. */
static bool find_pmu(const char *sysfs, uint32_t type, char name[NAME_MAX + 1])
{
	char path[PATH_MAX];
	struct dirent **pmus;
	bool found = false;
	uint32_t number;
	int nr;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices", sysfs);
	nr = scandir(path, &pmus, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (!found && kb_pmu_type(sysfs, pmus[i]->d_name, &number) && number == type) {
			snprintf(name, NAME_MAX + 1, "%s", pmus[i]->d_name);
			found = true;
		}
		free(pmus[i]);
	}
	if (nr >= 0)
		free(pmus);
	return found;
}

/* A generic event of one kind of cores, by its name: sought among all of them. */
struct wanted {
	const struct kb_perf_event *event;
	const char *pmu, *sysfs;
	char text[NAME_MAX + 128];
};

static int try_generic(void *context, const struct kb_event_listing *listing)
{
	struct wanted *wanted = context;
	struct kb_perf_event parsed;
	char modifiers[KB_MODIFIERS_MAX];

	if (listing->event.type != wanted->event->type)
		return 0;
	snprintf(wanted->text, sizeof(wanted->text), "%s/%s,name=%s/%s", wanted->pmu,
		 listing->event.name, wanted->event->name,
		 kb_modifiers_text(wanted->event->flags, modifiers));
	return kb_events_parse(&parsed, 1, wanted->text, wanted->sysfs, NULL) == 1 &&
	       is_same(wanted->event, &parsed);
}

static void put_event(struct kb_out *out, const struct kb_perf_event *event, const char *sysfs)
{
	bool generic = event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE;
	char pmu[NAME_MAX + 1], modifiers[KB_MODIFIERS_MAX];
	struct wanted wanted = { .event = event, .pmu = pmu, .sysfs = sysfs };

	if (name_is_enough(event, sysfs) ||
	    !find_pmu(sysfs ?: "/sys", !generic ? event->type :
		      (uint32_t)(event->config >> PERF_PMU_TYPE_SHIFT) ?: PERF_TYPE_RAW, pmu) ||
	    (generic && !kb_events_list(sysfs, try_generic, &wanted))) {
		kb_out_printf(out, "%s", event->name);
		return;
	}
	if (generic) {
		kb_out_printf(out, "%s", wanted.text);
		return;
	}
	kb_out_printf(out, "%s/config=0x%" PRIx64, pmu, (uint64_t)event->config);
	if (event->config1)
		kb_out_printf(out, ",config1=0x%" PRIx64, (uint64_t)event->config1);
	if (event->config2)
		kb_out_printf(out, ",config2=0x%" PRIx64, (uint64_t)event->config2);
	kb_out_printf(out, ",name=%s/%s", event->name, kb_modifiers_text(event->flags, modifiers));
}

char *kb_events_text(const struct kb_perf_event *events, unsigned int nr, const char *sysfs)
{
	struct kb_out *out;
	char *text = NULL;
	size_t size;
	const void *data;

	if (kb_out_memory(&out))
		return NULL;
	for (unsigned int i = 0; i < nr; i++) {
		bool beside = i && events[i].flags & KB_PERF_GROUP;
		bool leads = i + 1 < nr && !beside && events[i + 1].flags & KB_PERF_GROUP;

		kb_out_printf(out, "%s%s", i ? "," : "", leads ? "{" : "");
		put_event(out, &events[i], sysfs);
		if (beside && (i + 1 == nr || !(events[i + 1].flags & KB_PERF_GROUP)))
			kb_out_printf(out, "}");
	}
	if (!kb_out_bytes(out, "", 1)) {
		data = kb_out_data(out, &size);
		text = malloc(size);
		if (text)
			memcpy(text, data, size);
	}
	kb_out_destroy(out);
	return text;
}
