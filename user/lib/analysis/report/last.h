/* SPDX-License-Identifier: MIT */
/*
 * The last second of a recording that ended with the machine (analysis/facts/end.h): what each CPU ran, and in what
 * state tasks were at the end.
 */
#ifndef KB_LIB_ANALYSIS_REPORT_LAST_H
#define KB_LIB_ANALYSIS_REPORT_LAST_H

#include <kbarman/report.h>

struct kb_last;

/* *@out is NULL if the recording did not end so. Returns 0 or -ENOMEM. */
int kb_last_create(struct kb_last **out, struct kb_trace *trace);
void kb_last_destroy(struct kb_last *last);

/* The next record, and the slices that are open behind the last one. Return 0 or -ENOMEM. */
int kb_last_add(struct kb_last *last, const struct kb_walk *walk);
int kb_last_slice(struct kb_last *last, const struct kb_slice *slice);

/* The rows, in the order of `struct kb_report`; they live as long as @last. Returns 0 or -ENOMEM. */
int kb_last_finish(struct kb_last *last, struct kb_last_second *second);

#endif
