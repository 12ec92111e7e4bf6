/* SPDX-License-Identifier: MIT */
/* Cells become differences, with their certainty. */
#ifndef KB_LIB_ANALYSIS_DIFF_JUDGE_H
#define KB_LIB_ANALYSIS_DIFF_JUDGE_H

#include "analysis/diff/table.h"
#include "stats/contrast.h"

struct kb_diff_judging {
	double level;			/* of confidence */
	double least;			/* share of a row that is compared */
	const uint8_t *sides;		/* by capture: 0 or 1 */
	uint32_t nr_captures;
};

/*
 * Make a row of each line of @table; they are in the order of kb_diff.rows. Returns their number, or
 * -ENOMEM. The caller frees *@rows.
 */
int64_t kb_diff_judge(const struct kb_diff_table *table, const struct kb_diff_judging *judging,
		      struct kb_diff_row **rows);

/* What the row says of B minus @factor times A. */
struct kb_contrast kb_diff_row_contrast(const struct kb_diff_row *row, double factor);

#endif
