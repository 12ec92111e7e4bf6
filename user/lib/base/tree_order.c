// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "base/tree_order.h"

struct sorting {
	const uint32_t *parents;
	int (*compare)(const void *left, const void *right, void *context);
	void *context;
};

static int by_parent(const void *left, const void *right, void *context)
{
	const struct sorting *sorting = context;
	uint32_t a = sorting->parents[*(const uint32_t *)left];
	uint32_t b = sorting->parents[*(const uint32_t *)right];

	if (a != b)
		return a < b ? -1 : 1;
	return sorting->compare(left, right, sorting->context);
}

/*
 * Turn siblings that stand together, sorted by parent, into depth-first order. The position of a
 * node is its parent's position plus the sizes of the subtrees before it.
 */
static void arrange(const uint32_t *parents, uint32_t nr, const uint32_t *sorted, uint32_t *size,
		    uint32_t *next, uint32_t *order)
{
	for (uint32_t i = 0; i < nr; i++)
		size[i] = 1;
	for (uint32_t i = nr; i-- > 1;)
		size[parents[i]] += size[i];
	order[0] = 0;
	next[0] = 1;
	for (uint32_t i = 1; i < nr; i++) {
		uint32_t node = sorted[i], parent = parents[node];

		order[next[parent]] = node;
		next[node] = next[parent] + 1;
		next[parent] += size[node];
	}
}

uint32_t *kb_tree_order(const uint32_t *parents, uint32_t nr,
			int (*compare)(const void *left, const void *right, void *context),
			void *context)
{
	struct sorting sorting = { parents, compare, context };
	uint32_t *sorted = reallocarray(NULL, nr, sizeof(*sorted));
	uint32_t *size = reallocarray(NULL, nr, sizeof(*size));
	uint32_t *next = reallocarray(NULL, nr, sizeof(*next));
	uint32_t *order = reallocarray(NULL, nr, sizeof(*order));

	if (sorted && size && next && order) {
		for (uint32_t i = 0; i < nr; i++)
			sorted[i] = i;
		qsort_r(sorted + 1, nr - 1, sizeof(*sorted), by_parent, &sorting);
		arrange(parents, nr, sorted, size, next, order);
	} else {
		free(order);
		order = NULL;
	}
	free(sorted);
	free(size);
	free(next);
	return order;
}
