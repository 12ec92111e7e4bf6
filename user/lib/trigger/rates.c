// SPDX-License-Identifier: MIT
/*
 * Ten steps of a hundredth. The newest one is not over, so the sum is that of a time of up to a tenth
 * of a second: what is above the limit is so in truth.
 */
#include <string.h>

#include "trigger/rates.h"

#define STEP_NS	(KB_RATE_NS / KB_RATE_STEPS)

static double sum_of(const struct kb_rate *rate)
{
	double sum = 0;

	for (int i = 0; i < KB_RATE_STEPS; i++)
		sum += rate->sums[i];
	return sum;
}

/* Go on to @step, which is newer. */
static void advance(struct kb_rate *rate, int64_t step, double limit)
{
	int64_t steps = step - rate->step;

	for (int64_t i = 1; i <= steps && i <= KB_RATE_STEPS; i++) {
		rate->above &= sum_of(rate) > limit;	/* of ten steps that are over */
		rate->sums[(rate->step + i) % KB_RATE_STEPS] = 0;
	}
	rate->above &= steps <= KB_RATE_STEPS;
	rate->step = step;
}

bool kb_rate_add(struct kb_rate *rate, int64_t ns, double value, double limit, double *sum)
{
	int64_t step = ns < 0 ? 0 : ns / STEP_NS;
	bool was;

	if (step > rate->step)
		advance(rate, step, limit);
	if (rate->step - step >= KB_RATE_STEPS)
		return false;
	rate->sums[step % KB_RATE_STEPS] += value;
	*sum = sum_of(rate);
	was = rate->above;
	rate->above = *sum > limit;
	return rate->above && !was;
}
