/* SPDX-License-Identifier: MIT */
/* One of the captures that are compared: how to read it, and what it was. */
#ifndef KB_LIB_ANALYSIS_DIFF_CAPTURE_H
#define KB_LIB_ANALYSIS_DIFF_CAPTURE_H

#include "analysis/diff/table.h"
#include "stats/blocks.h"

struct kb_diff_capture {
	uint32_t number;	/* of its cells */
	unsigned int side;
	bool slices;		/* compute variances from slices of its time */
	bool per_second;
	/* For tests: gets what each cell comes from. With a total, @what has no name. */
	void (*see)(void *context, const struct kb_diff_what *what,
		    const double blocks[KB_BLOCKS_SLICES], double events);
	void *context;

	double ns, seconds;	/* how long it is: the same */
	uint64_t records, samples, switches;
	double weight, weighed;	/* sum of the weights of samples, and their number */
	bool has_objects;	/* it says what tasks waited for */
	bool damaged;
};

#endif
