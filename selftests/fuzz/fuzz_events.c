// SPDX-License-Identifier: MIT
/*
 * Fuzz target of event lists: what is parsed has names, and its text is parsed to the same events.
 * The first byte chooses the machine.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/perf_events.h>

#include "record/perf/parse.h"

#include "../lib/sysfs.h"

static char plain[sizeof(sysfs)], hybrid[sizeof(sysfs)];

static void remove_all(void)
{
	memcpy(sysfs, plain, sizeof(sysfs));
	sysfs_end();
	memcpy(sysfs, hybrid, sizeof(sysfs));
	sysfs_end();
}

static void make_all(void)
{
	char none[sizeof(sysfs)];

	memcpy(none, sysfs, sizeof(none));
	sysfs_begin();
	sysfs_plain();
	memcpy(plain, sysfs, sizeof(plain));
	memcpy(sysfs, none, sizeof(none));
	sysfs_begin();
	sysfs_hybrid();
	memcpy(hybrid, sysfs, sizeof(hybrid));
	atexit(remove_all);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct kb_perf_event events[KB_EVENTS_MAX], again[KB_EVENTS_MAX];
	struct kb_events_how how;
	char *list, *text;
	int nr;

	if (!*plain)
		make_all();
	if (!size)
		return 0;
	how = (struct kb_events_how){ .sysfs = *data & 1 ? plain : hybrid, .each_pmu = *data & 2 };
	list = strndup((const char *)data + 1, size - 1);
	memset(events, 0, sizeof(events));
	nr = kb_events_parse_how(events, KB_EVENTS_MAX, list, &how, NULL);
	free(list);
	for (int i = 0; i < nr; i++)
		if (!events[i].name[0] || events[i].name[63])
			abort();
	if (nr <= 0)
		return 0;
	text = kb_events_text(events, (unsigned int)nr, how.sysfs);
	memset(again, 0, sizeof(again));
	if (!text || kb_events_parse(again, KB_EVENTS_MAX, text, how.sysfs, NULL) != nr ||
	    memcmp(events, again, sizeof(events)))
		abort();
	free(text);
	return 0;
}
