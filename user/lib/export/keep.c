// SPDX-License-Identifier: MIT
/* An array that grows. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/keep.h"

int kb_keep_add(struct kb_keep *keep, const struct kb_kept *sample)
{
	if (!KB_ARRAY_ROOM(keep->rows, keep->max, keep->nr + 1))
		return -ENOMEM;
	keep->rows[keep->nr] = *sample;
	keep->rows[keep->nr].order = (uint32_t)keep->nr;
	keep->nr++;
	return 0;
}

void kb_keep_release(struct kb_keep *keep)
{
	free(keep->rows);
	*keep = (struct kb_keep) { 0 };
}

static int compare(const void *left, const void *right)
{
	const struct kb_kept *a = left, *b = right;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

void kb_keep_sort(struct kb_keep *keep)
{
	if (keep->nr)
		qsort(keep->rows, keep->nr, sizeof(*keep->rows), compare);
}

size_t kb_keep_run(const struct kb_keep *keep, size_t at)
{
	size_t end = at;

	while (end < keep->nr && keep->rows[end].task == keep->rows[at].task)
		end++;
	return end - at;
}
