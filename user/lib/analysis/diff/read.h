/* SPDX-License-Identifier: MIT */
/* One capture becomes cells of the table of differences. */
#ifndef KB_LIB_ANALYSIS_DIFF_READ_H
#define KB_LIB_ANALYSIS_DIFF_READ_H

#include "analysis/diff/capture.h"

/* Read what @filter wants of @trace. Returns what kb_differ_add() returns. */
int kb_diff_read(struct kb_diff_table *table, struct kb_diff_capture *capture,
		 struct kb_trace *trace, const struct kb_filter *filter, struct kb_error *err);

#endif
