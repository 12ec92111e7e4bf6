/* SPDX-License-Identifier: MIT */
/* The square root: neither the library nor the tool is linked with libm. */
#ifndef KB_LIB_ROOT_H
#define KB_LIB_ROOT_H

#include <math.h>

/* By Newton. 0 for what has no root. */
static inline double kb_root(double value)
{
	double guess = value > 1 ? value : 1;

	if (value <= 0 || !isfinite(value))
		return 0;
	for (double next; (next = (guess + value / guess) / 2) < guess;)
		guess = next;
	return guess;
}

#endif
