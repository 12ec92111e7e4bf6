// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/facts/triggered.h"

/* Takes a decimal number and the comma behind it. False: it has another form. */
static bool take(const char **text, uint64_t *value)
{
	char *rest;

	*value = 0;
	if (**text == ',') {
		++*text;
		return true;
	}
	if (**text < '0' || **text > '9')
		return false;
	*value = strtoull(*text, &rest, 10);
	*text = rest + 1;
	return *rest == ',';
}

bool kb_triggered_get(const struct kb_barman *barman, uint32_t i, struct kb_triggered *triggered)
{
	const char *fact, *reason;
	uint64_t core, task;
	bool no_core = false;
	char key[48];

	snprintf(key, sizeof(key), KB_TRIGGERED_FACT ".%" PRIu32, i);
	fact = kb_barman_fact(barman, key);
	if (!fact || !take(&fact, &triggered->ticks))
		return false;
	no_core = *fact == ',';
	if (!take(&fact, &core) || !take(&fact, &task) || !take(&fact, &triggered->measured))
		return false;
	snprintf(key, sizeof(key), KB_TRIGGERED_FACT ".%" PRIu32 ".reason", i);
	reason = kb_barman_fact(barman, key);
	triggered->ns = kb_barman_ns(barman, triggered->ticks);
	triggered->core = no_core || core > UINT32_MAX ? KB_CORE_NONE : (uint32_t)core;
	triggered->task_id = (uint32_t)task;
	triggered->expression = fact;
	triggered->reason = reason ? reason : "";
	return true;
}

uint64_t kb_triggered_number(const struct kb_barman *barman, const char *key)
{
	const char *fact = kb_barman_fact(barman, key);

	return fact ? strtoull(fact, NULL, 10) : 0;
}
