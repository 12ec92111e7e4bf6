/* SPDX-License-Identifier: MIT */
/* One capture becomes cells of the table of differences. */
#ifndef KB_LIB_ANALYSIS_DIFF_READ_H
#define KB_LIB_ANALYSIS_DIFF_READ_H

#include "analysis/diff_table.h"
#include "stats/blocks.h"

/* How to read it, and what it was. */
struct kb_diff_capture {
	uint32_t number;	/* of its cells */
	bool slices;		/* compute variances from slices of its time */
	bool per_second;
	/* For tests: gets what each cell comes from. With a total, @what has no name. */
	void (*see)(void *context, const struct kb_diff_what *what,
		    const double blocks[KB_BLOCKS_SLICES], double events);
	void *context;

	double seconds;
	uint64_t records, samples, switches;
	bool damaged;
};

/* Read all of @trace. Returns what kb_differ_add() returns. */
int kb_diff_read(struct kb_diff_table *table, struct kb_diff_capture *capture,
		 struct kb_trace *trace, struct kb_error *err);

#endif
