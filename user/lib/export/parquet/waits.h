/* SPDX-License-Identifier: MIT */
/* How long a task waited for a CPU: from its wakeup, or from when it was preempted, until it ran. */
#ifndef KB_LIB_EXPORT_PARQUET_WAITS_H
#define KB_LIB_EXPORT_PARQUET_WAITS_H

#include <kbarman/columns.h>

#include "base/table.h"

struct kb_parquet_waits {
	struct kb_table ready;	/* by task: since when it could run */
	int64_t *ns;		/* by switch of the part: what the next task waited; -1: not known */
	size_t max;
};

void kb_parquet_waits_init(struct kb_parquet_waits *waits);
void kb_parquet_waits_release(struct kb_parquet_waits *waits);

/* Fill waits->ns for the switches of @part, the part behind the one before. Returns 0 or -ENOMEM. */
int kb_parquet_waits_feed(struct kb_parquet_waits *waits, const struct kb_columns_part *part);

#define KB_PARQUET_WAITS_TABLES	\
	"switches.ns switches.cpu switches.known switches.tid switches.blocked switches.next_tid gaps " \
	"wakeups.ns wakeups.woken_tid"

#endif
