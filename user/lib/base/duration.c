// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/duration.h"

static const struct unit {
	char word[4];
	uint64_t ns;
} units[] = {
	{ "d", 86400 * KB_NS_PER_S }, { "h", 3600 * KB_NS_PER_S }, { "m", 60 * KB_NS_PER_S },
	{ "s", KB_NS_PER_S }, { "ms", KB_NS_PER_MS }, { "us", 1000 }, { "ns", 1 },
};

/* What @word stands for in ns; 0: nothing. */
static uint64_t unit_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(word, units[i].word))
			return units[i].ns;
	return 0;
}

bool kb_duration_parse(const char *text, uint64_t unit_ns, uint64_t *ns)
{
	size_t places = strspn(text, "0123456789"), fraction = 0;
	char number[KB_DURATION_TEXT] = "0";
	const char *unit = text + places;

	if (*unit == '.') {
		fraction = strspn(unit + 1, "0123456789") + 1;
		unit += fraction;
	}
	if (places + fraction < (size_t)(fraction ? 2 : 1) || fraction >= sizeof(number))
		return false;
	if (*unit)
		unit_ns = unit_of(unit);
	errno = 0;
	*ns = strtoull(places ? text : "0", NULL, 10);
	if (errno || !unit_ns || *ns >= KB_DURATION_MAX / unit_ns)
		return false;
	memcpy(number, text + places, fraction);
	*ns = *ns * unit_ns + (uint64_t)(strtod(number, NULL) * (double)unit_ns + 0.5);
	return true;
}

bool kb_duration_parse_part(const char *text, size_t length, uint64_t unit_ns, uint64_t *ns)
{
	char copy[KB_DURATION_TEXT];

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return kb_duration_parse(copy, unit_ns, ns);
}

const char *kb_duration_text(char text[KB_DURATION_TEXT], uint64_t ns)
{
	size_t i = 0;

	while (ns % units[i].ns)
		i++;
	snprintf(text, KB_DURATION_TEXT, "%" PRIu64 "%s", ns / units[i].ns, ns ? units[i].word : "s");
	return text;
}
