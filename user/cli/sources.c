// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "sources.h"

static const struct source sources[] = {
	{ KBARMAN_SOURCE_SCHED, "sched", "sched_switch", "task switches" },
	{ KBARMAN_SOURCE_IDLE, "idle", "cpu_idle", "idling" },
	{ KBARMAN_SOURCE_PMU, "samples", NULL, "samples" },
	{ KBARMAN_SOURCE_MAPS, "maps", NULL, "mappings" },
	{ KBARMAN_SOURCE_MARKS, "marks", NULL, "marks" },
	{ KBARMAN_SOURCE_WAKE, "wake", "sched_waking", "wakeups" },
	{ KBARMAN_SOURCE_MIGRATE, "migrate", "sched_migrate_task", "migrations" },
	{ KBARMAN_SOURCE_IRQ, "irq", "irq_handler_entry", "interrupts" },
	{ KBARMAN_SOURCE_SOFTIRQ, "softirq", "softirq_entry", "softirqs" },
	{ KBARMAN_SOURCE_FREQ, "freq", "cpu_frequency", "frequencies" },
};

const struct source *sources_get(size_t i)
{
	return i < ARRAY_SIZE(sources) ? &sources[i] : NULL;
}

static const struct source *find(const char *word, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (strlen(sources[i].word) == length && !memcmp(sources[i].word, word, length))
			return &sources[i];
	return NULL;
}

static int parse(uint32_t *wanted, const char *list)
{
	const char *word = list;
	size_t length;

	for (; ; word += length + 1) {
		const struct source *source;

		length = strcspn(word, ",");
		source = find(word, length);
		if (!source || !source->tracepoint)
			return cli_fail("--trace %s: give some of wake, migrate, irq, softirq, freq, with "
					"commas between", list);
		*wanted |= source->bit;
		if (!word[length])
			return 0;
	}
}

int sources_take(uint32_t *wanted, int option, const char *value)
{
	if (option == OPTION_TRACE)
		return parse(wanted, value);
	if (option != OPTION_LATENCY)
		return -1;
	*wanted |= SOURCES_LATENCY;
	return 0;
}

int sources_check(uint32_t wanted, const struct kbarman_query *query)
{
	char text[SOURCES_TEXT];

	wanted &= SOURCES_LATENCY;
	if (!wanted || query->features & KBARMAN_FEATURE_DETAILS)
		return 0;
	return cli_fail("the module that is loaded is too old to record %s: build and load the one of "
			"this version, or leave out --latency and --trace",
			sources_text(wanted, ", ", text));
}

const char *sources_text(uint32_t wanted, const char *between, char text[SOURCES_TEXT])
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (wanted & sources[i].bit)
			used += (size_t)snprintf(text + used, SOURCES_TEXT - used, "%s%s",
						 used ? between : "", sources[i].word);
	return text;
}
