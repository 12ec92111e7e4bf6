/* SPDX-License-Identifier: MIT */
/*
 * Of many comparisons some look like a difference by chance: of a hundred at 95 %, five. By
 * Benjamini and Hochberg (1995), the share of false ones among those that are called different is
 * kept below a limit; if nothing differs, this is the probability that any is called different.
 */
#ifndef KB_LIB_STATS_MANY_H
#define KB_LIB_STATS_MANY_H

#include <stdint.h>

/* One comparison. */
struct kb_many {
	double p;	/* the probability of such a difference if there is none */
	double weight;	/* how important; the mean of all weights is 1 (Genovese et al. 2006) */
	double q;	/* the result: the smallest limit at which this one is called different */
	uint32_t number;	/* the caller's */
};

/* Compute the @q of all @nr. Sorts them. */
void kb_many_adjust(struct kb_many *many, uint32_t nr);

#endif
