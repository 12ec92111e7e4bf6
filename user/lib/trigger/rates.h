/* SPDX-License-Identifier: MIT */
/* How fast a counter grows: the sum of what came in the last tenth of a second. */
#ifndef KB_LIB_TRIGGER_RATES_H
#define KB_LIB_TRIGGER_RATES_H

#include <stdbool.h>
#include <stdint.h>

#define KB_RATE_NS	INT64_C(100000000)	/* the tenth of a second */
#define KB_RATE_STEPS	10

/* All zero at first. */
struct kb_rate {
	double sums[KB_RATE_STEPS];
	int64_t step;		/* number of the newest one */
	bool above;		/* it was above the limit, and not below since */
};

/*
 * Add @value at @ns. Returns whether the sum is above @limit now and was not before: then *@sum is
 * the sum. Values come nearly in order; one that is older than the tenth of a second is left out.
 */
bool kb_rate_add(struct kb_rate *rate, int64_t ns, double value, double limit, double *sum);

#endif
