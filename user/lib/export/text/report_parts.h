/* SPDX-License-Identifier: MIT */
/* The parts of a report as text. report.c says in which order they come. */
#ifndef KB_LIB_EXPORT_TEXT_REPORT_PARTS_H
#define KB_LIB_EXPORT_TEXT_REPORT_PARTS_H

#include "export/text/report_put.h"

/* ---- report_head.c ---- */

void text_put_head(const struct report_text *report);
void text_put_losses(const struct report_text *report);
void text_put_stops(const struct report_text *report);
void text_put_partial(const struct report_text *report);

/* ---- report_last.c ---- */

void text_put_last(const struct report_text *report);

/* ---- report_samples.c ---- */

void text_put_weight(const struct report_text *report);
void text_put_symbols(const struct report_text *report);
void text_put_task_samples(const struct report_text *report);
void text_put_task_counts(const struct report_text *report);

/* ---- report_times.c ---- */

void text_put_task_times(const struct report_text *report);
void text_put_cpus(const struct report_text *report);
void text_put_idle(const struct report_text *report);

/* ---- report_calls.c ---- */

void text_put_tree(const struct report_text *report, const struct kb_call_tree *tree, bool times);
void text_put_waits(const struct report_text *report, const char *title,
		    const struct kb_wait *waits, uint32_t nr);

#endif
