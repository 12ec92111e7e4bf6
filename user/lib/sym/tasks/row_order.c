// SPDX-License-Identifier: MIT
/* See row_order.h. The places have what is compared, so sorting does not touch the rows. */
#include <stdlib.h>

#include "sym/tasks/row_order.h"

static int compare(const void *left, const void *right)
{
	const struct kb_row_place *a = left, *b = right;

	if (a->task_id != b->task_id)
		return a->task_id < b->task_id ? -1 : 1;
	if (a->timestamp != b->timestamp)
		return a->timestamp < b->timestamp ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

void kb_row_order(struct kb_row_place *places, uint32_t nr)
{
	if (nr)
		qsort(places, nr, sizeof(*places), compare);
}
