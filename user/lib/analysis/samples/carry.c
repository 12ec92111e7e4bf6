// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include <kbarman/barman.h>

#include "analysis/samples/carry.h"

struct kb_carry {
	uint32_t max_cores, max_counters;
	uint64_t *taken;	/* [max_counters] */
	uint64_t *sums;		/* [max_cores * max_counters] */
};

struct kb_carry *kb_carry_create(uint32_t max_cores, uint32_t max_counters)
{
	struct kb_carry *carry = calloc(1, sizeof(*carry));

	if (!carry)
		return NULL;
	carry->max_cores = max_cores;
	carry->max_counters = max_counters;
	carry->taken = calloc((size_t)max_counters + 1, sizeof(*carry->taken));
	carry->sums = calloc((size_t)max_cores + 1, (max_counters + 1) * sizeof(*carry->sums));
	if (carry->taken && carry->sums)
		return carry;
	kb_carry_destroy(carry);
	return NULL;
}

void kb_carry_destroy(struct kb_carry *carry)
{
	if (!carry)
		return;
	free(carry->sums);
	free(carry->taken);
	free(carry);
}

/* The sums of the event's core, and how many of its values they are of. */
static uint64_t *sums_of(struct kb_carry *carry, const struct kb_event *event, uint32_t *nr)
{
	*nr = event->sample.nr_counters < carry->max_counters ? event->sample.nr_counters :
								carry->max_counters;
	if (event->core >= carry->max_cores)
		*nr = 0;
	return carry->sums + (*nr ? (size_t)event->core * carry->max_counters : 0);
}

void kb_carry_add(struct kb_carry *carry, const struct kb_event *event)
{
	uint32_t i, nr;
	uint64_t *sums = sums_of(carry, event, &nr);

	for (i = 0; i < nr; i++)
		if (event->sample.counters[i] != KB_COUNTER_INVALID)
			sums[i] += event->sample.counters[i];
}

void kb_carry_take(struct kb_carry *carry, struct kb_event *event)
{
	uint32_t i, nr;
	uint64_t *sums = sums_of(carry, event, &nr);

	for (i = 0; i < nr; i++) {
		carry->taken[i] = event->sample.counters[i];
		if (carry->taken[i] == KB_COUNTER_INVALID)
			continue;
		carry->taken[i] += sums[i];
		sums[i] = 0;
	}
	if (nr == event->sample.nr_counters)
		event->sample.counters = carry->taken;
}
