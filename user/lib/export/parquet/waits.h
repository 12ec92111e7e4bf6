/* SPDX-License-Identifier: MIT */
/*
 * How long a task waited for a CPU: from its wakeup, or from when it was preempted, until it ran.
 * These are the waits of kbarman/latency.h, so that Parquet has those of the reports and of SQL.
 */
#ifndef KB_LIB_EXPORT_PARQUET_WAITS_H
#define KB_LIB_EXPORT_PARQUET_WAITS_H

#include "analysis/latency/wakeups.h"

struct kb_parquet_waits {
	struct kb_wanted wanted;
	struct kb_gaps gaps;
	struct kb_wakeups *wakeups;
	int64_t *ns;		/* by switch of the part: what the next task waited; -1: not known */
	size_t nr, max;
};

/*
 * Begin with @trace, which is where it begins again then. Call release() in any case. Returns 0 or a
 * negative errno.
 */
int kb_parquet_waits_begin(struct kb_parquet_waits *waits, struct kb_trace *trace, struct kb_error *err);
void kb_parquet_waits_release(struct kb_parquet_waits *waits);

/* Take a record of the part; for kb_columns_watch(): @context is the waits. Returns 0 or -ENOMEM. */
int kb_parquet_waits_feed(void *context, const struct kb_walk *walk);

#endif
