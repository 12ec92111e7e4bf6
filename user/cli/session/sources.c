// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "cli/session/sources.h"

static int parse(uint32_t *sources, const char *list)
{
	const char *word = list;
	size_t length;

	for (; ; word += length + 1) {
		const struct kb_source_word *source;

		length = strcspn(word, ",");
		source = kb_source_find(word, length);
		if (!source || !source->tracepoint)
			return cli_fail("--sources %s: give some of wake, migrate, irq, softirq, freq, "
					"syscalls, faults, block, with commas between", list);
		*sources |= source->bit;
		if (!word[length])
			return 0;
	}
}

int sources_take(uint32_t *sources, int option, const char *value)
{
	if (option == OPTION_SOURCES)
		return parse(sources, value);
	if (option != OPTION_LATENCY)
		return -1;
	*sources |= KBARMAN_SOURCE_LATENCY;
	return 0;
}

int sources_check(uint32_t sources, const struct kbarman_query *query)
{
	char text[SOURCES_TEXT];

	sources &= KBARMAN_SOURCE_DETAILS;
	if (!sources || query->features & KBARMAN_FEATURE_DETAILS)
		return 0;
	return cli_fail("the module that is loaded is too old to record %s: build and load the one of "
			"this version, or leave out --latency and --sources",
			sources_text(sources, ", ", text));
}

const char *sources_text(uint32_t sources, const char *between, char text[SOURCES_TEXT])
{
	const struct kb_source_word *source;
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; (source = kb_source_word(i)); i++)
		if (sources & source->bit)
			used += (size_t)snprintf(text + used, SOURCES_TEXT - used, "%s%s",
						 used ? between : "", source->word);
	return text;
}
