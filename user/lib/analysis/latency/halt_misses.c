// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/halt_misses.h"

struct paid_row {
	uint64_t key[2];	/* kb_idle_state_key(); what would have paid + 1, and the side */
	struct kb_halts_paid row;
};

void kb_halt_misses_init(struct kb_halt_misses *misses, const struct kb_idle_states *states)
{
	misses->states = states;
	kb_table_init(&misses->paid, sizeof(struct paid_row), 2);
}

void kb_halt_misses_release(struct kb_halt_misses *misses)
{
	kb_table_release(&misses->paid);
	free(misses->shown);
}

static uint64_t off_of(const struct kb_halt_misses *misses, const struct kb_halt_miss *miss)
{
	uint64_t residency;

	if (miss->too_shallow)
		return miss->ns;
	residency = kb_idle_states_residency(misses->states, miss->core, miss->state);
	return residency > miss->ns ? residency - miss->ns : 0;
}

int kb_halt_misses_count(struct kb_halt_misses *misses, struct kb_halt_miss *miss)
{
	struct paid_row *row;
	uint64_t key[2];

	miss->paid = kb_idle_states_paid(misses->states, miss->core, miss->state, miss->too_shallow,
					 miss->ns);
	miss->off_ns = off_of(misses, miss);
	key[0] = kb_idle_state_key(miss->core, miss->state);
	key[1] = (uint64_t)(miss->paid + 1) << 1 | miss->too_shallow;
	row = kb_table_get(&misses->paid, key);
	if (!row)
		return -ENOMEM;
	row->row.core = miss->core;
	row->row.state = miss->state;
	row->row.too_shallow = miss->too_shallow;
	row->row.paid = miss->paid;
	row->row.count++;
	row->row.ns += miss->ns;
	return 0;
}

static bool is_worse(const struct kb_halt_miss *a, const struct kb_halt_miss *b)
{
	if (a->off_ns != b->off_ns)
		return a->off_ns > b->off_ns;
	if (a->since != b->since)
		return a->since < b->since;
	return a->core < b->core;
}

void kb_halt_misses_keep(struct kb_halt_misses *misses, const struct kb_halt_miss *miss)
{
	struct kb_halt_misses_worst *worst = miss->too_shallow ? &misses->shallow : &misses->deep;
	uint32_t at = worst->nr;

	while (at && is_worse(miss, &worst->misses[at - 1]))
		at--;
	if (at == KB_HALT_MISSES_WORST)
		return;
	if (worst->nr < KB_HALT_MISSES_WORST)
		worst->nr++;
	memmove(&worst->misses[at + 1], &worst->misses[at],
		(worst->nr - at - 1) * sizeof(worst->misses[0]));
	worst->misses[at] = *miss;
}

static int compare(const void *left, const void *right)
{
	const struct kb_halts_paid *a = left, *b = right;

	if (a->core != b->core)
		return a->core > b->core ? 1 : -1;
	if (a->state != b->state)
		return a->state > b->state ? 1 : -1;
	if (a->too_shallow != b->too_shallow)
		return a->too_shallow ? 1 : -1;
	return (a->paid > b->paid) - (a->paid < b->paid);
}

int kb_halt_misses_finish(struct kb_halt_misses *misses, struct kb_latency *shown)
{
	uint32_t i, nr = misses->paid.nr;

	misses->shown = calloc((size_t)nr + 1, sizeof(*misses->shown));
	if (!misses->shown)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		misses->shown[i] = ((struct paid_row *)kb_table_row(&misses->paid, i))->row;
	qsort(misses->shown, nr, sizeof(*misses->shown), compare);
	shown->halts_paid = misses->shown;
	shown->nr_halts_paid = nr;
	shown->worst_deep = misses->deep.misses;
	shown->nr_worst_deep = misses->deep.nr;
	shown->worst_shallow = misses->shallow.misses;
	shown->nr_worst_shallow = misses->shallow.nr;
	return 0;
}
