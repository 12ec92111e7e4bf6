// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdlib.h>

#include "stats/many.h"

static double weighed(const struct kb_many *one)
{
	return one->weight > 0 ? fmin(one->p / one->weight, 1) : 1;
}

static int compare(const void *left, const void *right)
{
	const struct kb_many *a = left, *b = right;
	double of_a = weighed(a), of_b = weighed(b);

	if (of_a < of_b || of_a > of_b)
		return of_a < of_b ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

void kb_many_adjust(struct kb_many *many, uint32_t nr)
{
	double least = 1;

	if (nr)
		qsort(many, nr, sizeof(*many), compare);
	for (uint32_t i = nr; i-- > 0;) {
		least = fmin(least, weighed(&many[i]) * nr / (i + 1));
		many[i].q = least;
	}
}
