/* SPDX-License-Identifier: MIT */
/* What one capture has of everything that is compared, while it is read. */
#ifndef KB_LIB_ANALYSIS_DIFF_SERIES_H
#define KB_LIB_ANALYSIS_DIFF_SERIES_H

#include "analysis/diff/capture.h"
#include "analysis/time/slices.h"

/* Amounts by small numbers. Begins as zeros. */
struct kb_diff_set {
	struct kb_sliced *rows;
	uint32_t nr;
	double sum;		/* of all rows */
};

/* A row below this part of its set is not worth slices, nor a chain a row. */
#define KB_DIFF_SMALL	1e-4

/*
 * Add to the row with that number, which is made: @amount at @ns, or spread over a time. Both return
 * 0 or -ENOMEM.
 */
int kb_diff_set_add(struct kb_diff_set *set, uint32_t i, struct kb_slicing *slicing, int64_t ns,
		    double amount);
int kb_diff_set_spread(struct kb_diff_set *set, uint32_t i, struct kb_slicing *slicing, int64_t from,
		       int64_t until);
void kb_diff_set_release(struct kb_diff_set *set);

/* Where cells go. */
struct kb_diff_cells {
	struct kb_diff_table *table;
	struct kb_diff_capture *capture;
	struct kb_slicing *slicing;
	int64_t last;		/* ns: the end of the capture */
};

/* Fills @what with the texts of a row, which belong to the table. Returns 0 or -ENOMEM. */
typedef int (*kb_diff_name)(void *context, uint32_t i, struct kb_diff_what *what);

/*
 * Put the amounts of @set, and with @total their sum, which has no name. @what has the measure, the
 * kind and the counter. Returns 0 or -ENOMEM.
 */
int kb_diff_put_set(const struct kb_diff_cells *cells, const struct kb_diff_set *set,
		    struct kb_diff_what what, bool total, kb_diff_name name, void *context);

/* The same of @above divided by @below, for the rows that have something in @below. */
int kb_diff_put_ratios(const struct kb_diff_cells *cells, const struct kb_diff_set *above,
		       const struct kb_diff_set *below, struct kb_diff_what what, bool total,
		       kb_diff_name name, void *context);

/* The p99 of @times. */
int kb_diff_put_p99(const struct kb_diff_cells *cells, const struct kb_sliced_times *times,
		    const struct kb_diff_what *what);

#endif
