/* SPDX-License-Identifier: MIT */
/* How long tasks waited for a CPU after they were woken, during one refresh of top. */
#ifndef KB_CLI_TOP_WAITS_H
#define KB_CLI_TOP_WAITS_H

#include "analysis/time/arrows.h"

/* The waits of a task. */
struct top_wait {
	uint64_t task_id;
	uint64_t count, sum_ns, longest_ns;
	struct kb_arrow longest;
};

struct top_waits {
	struct kb_arrows arrows;
	struct kb_table tasks;		/* struct top_wait */
};

void top_waits_init(struct top_waits *waits);
void top_waits_release(struct top_waits *waits);

/* Take the next record. Waits that end with it count if @counts. Returns 0 or -ENOMEM. */
int top_waits_add(struct top_waits *waits, const struct kb_walk *walk, bool counts);

/* Order the tasks, the longest wait first. Nothing is added afterwards. */
struct top_wait *top_waits_sort(struct top_waits *waits, uint32_t *nr);

#endif
