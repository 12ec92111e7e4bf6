// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/core_fact.h"

const char *kb_core_fact(const char *string, const char *prefix, uint32_t *core, uint32_t *number)
{
	char *end;
	unsigned long value;
	const char *at;

	if (strncmp(string, prefix, strlen(prefix)) != 0)
		return NULL;
	at = string + strlen(prefix);
	if (*at < '0' || *at > '9')
		return NULL;
	value = strtoul(at, &end, 10);
	if (*end != '.' || end[1] < '0' || end[1] > '9' || value > UINT32_MAX)
		return NULL;
	*core = (uint32_t)value;
	value = strtoul(end + 1, &end, 10);
	*number = (uint32_t)value;
	return *end == '=' && value <= UINT32_MAX ? end + 1 : NULL;
}
