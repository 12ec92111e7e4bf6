// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "cli/top/waits.h"

void top_waits_init(struct top_waits *waits)
{
	kb_arrows_init(&waits->arrows);
	kb_table_init(&waits->tasks, sizeof(struct top_wait), 1);
}

void top_waits_release(struct top_waits *waits)
{
	kb_arrows_release(&waits->arrows);
	kb_table_release(&waits->tasks);
}

static int count(struct top_waits *waits, const struct kb_arrow *arrow)
{
	/* The clocks of CPUs may differ. */
	uint64_t ns = arrow->to > arrow->from ? (uint64_t)(arrow->to - arrow->from) : 0;
	uint64_t key = arrow->task_id;
	struct top_wait *wait = kb_table_get(&waits->tasks, &key);

	if (!wait)
		return -ENOMEM;
	if (!wait->count++ || ns > wait->longest_ns) {
		wait->longest_ns = ns;
		wait->longest = *arrow;
	}
	wait->sum_ns += ns;
	return 0;
}

int top_waits_add(struct top_waits *waits, const struct kb_walk *walk, bool counts)
{
	struct kb_arrow arrow;
	int woken = kb_arrows_feed(&waits->arrows, walk, &arrow);

	return woken > 0 ? counts ? count(waits, &arrow) : 0 : woken;
}

static int compare(const void *left, const void *right)
{
	const struct top_wait *a = left, *b = right;

	if (a->longest_ns != b->longest_ns)
		return a->longest_ns > b->longest_ns ? -1 : 1;
	return a->task_id < b->task_id ? -1 : a->task_id > b->task_id;
}

struct top_wait *top_waits_sort(struct top_waits *waits, uint32_t *nr)
{
	struct top_wait *rows = (struct top_wait *)waits->tasks.rows;

	*nr = waits->tasks.nr;
	if (*nr)
		qsort(rows, *nr, sizeof(*rows), compare);
	return rows;
}
