/* SPDX-License-Identifier: MIT */
/*
 * Calls back for each wait that kb_latency_create() would count, in the order in which they end,
 * while somebody else walks over the records.
 */
#ifndef KB_LIB_ANALYSIS_LATENCY_LATE_WAITS_H
#define KB_LIB_ANALYSIS_LATENCY_LATE_WAITS_H

#include "analysis/latency/lateness.h"

struct kb_late_waits;

/* What the report was asked for; NULL: the whole capture. */
const struct kb_filter *kb_latency_filter(const struct kb_latency *latency);

/*
 * Go to the first record of @trace, and read what is needed before: a capture that lacks records is
 * read for its gaps. @take is called with each wait. Returns what kb_latency_create() returns.
 */
int kb_late_waits_create(struct kb_late_waits **out, struct kb_trace *trace, kb_late_take take,
			 void *context, struct kb_error *err);

/* Free @waits, which may be NULL. */
void kb_late_waits_destroy(struct kb_late_waits *waits);

/* Take the record that kb_trace_next() gave last. Returns 0 or -ENOMEM. */
int kb_late_waits_feed(struct kb_late_waits *waits, const struct kb_walk *walk);

#endif
