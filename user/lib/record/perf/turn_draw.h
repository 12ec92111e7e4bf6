/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is, for groups of events that do not fit on the PMU together. In each round every
 * group has one turn. The order and the lengths are drawn, so that nothing which happens
 * periodically stays with one group: analysis/samples/turns.h says why.
 */
#ifndef KB_LIB_RECORD_PERF_TURN_DRAW_H
#define KB_LIB_RECORD_PERF_TURN_DRAW_H

#include <stdint.h>

#define KB_TURNS_MAX	256

struct kb_turn_draw {
	unsigned int nr;			/* groups; 0: nothing takes turns */
	unsigned int left;			/* turns of this round that are still to come */
	unsigned int order[KB_TURNS_MAX];	/* of this round, the last one first */
	uint64_t random;
};

/* There are @nr groups, at most KB_TURNS_MAX. */
void kb_turn_draw_begin(struct kb_turn_draw *draw, unsigned int nr);

/* The group whose turn is next, from 1 to its number. */
unsigned int kb_turn_draw_next(struct kb_turn_draw *draw);

/* How long this turn is, in ns: from two thirds to four thirds of @ms. */
int64_t kb_turn_draw_length(struct kb_turn_draw *draw, uint64_t ms);

#endif
