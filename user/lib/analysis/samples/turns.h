/* SPDX-License-Identifier: MIT */
/*
 * What was counted in turns, and how far off the extrapolated count may be.
 *
 * Groups of events take turns: each has one turn in every round, at a random place of it, and turns
 * differ in length. So nothing that happens periodically stays with one group. The count of the
 * whole time is the rate of the turns times that time, and a sum over turns that differ from the
 * next one says how far off it may be: whatever changes the rate is seen there.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_TURNS_H
#define KB_LIB_ANALYSIS_SAMPLES_TURNS_H

#define KB_TURNS_MIN	6	/* fewer turns say nothing of the error */

/* The turns of one counter, in their order. Begins as zeros. */
struct kb_turns {
	double value, time;			/* sums */
	double last_value, last_time;		/* of the turn before */
	/* Sums of products of the differences between each turn and the next: */
	double values, times, both;
	unsigned long nr;
};

/* @time: any unit, the same for all. */
void kb_turns_add(struct kb_turns *turns, double value, double time);

struct kb_estimate {
	double value;
	double error;	/* the true value is not further off, in 95 of 100 cases; infinite: there
			 * were fewer than KB_TURNS_MIN turns */
};

/* The count of the whole @time. There was a turn. */
struct kb_estimate kb_turns_estimate(const struct kb_turns *turns, double time);

#endif
