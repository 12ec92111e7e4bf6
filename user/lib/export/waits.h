/* SPDX-License-Identifier: MIT */
/*
 * Waits with the stacks in which they began, for exports that have stacks as nodes of
 * callstacks.h. Those without a call chain, and those still open at the end, are left out.
 */
#ifndef KB_LIB_WAITS_H
#define KB_LIB_WAITS_H

#include "analysis/sched.h"
#include "export/callstacks.h"
#include "export/walk.h"

struct kb_waits {
	struct kb_sched *sched;
	struct kb_callstacks *stacks;
	struct kb_symbolizer *symbolizer;
	void (*take)(void *context, const struct kb_wait *wait);
	void *context;
	uint64_t nr;		/* taken */
	bool no_memory;
};

/*
 * @take hears of every wait when it is over: its mark is the node in @stacks. 0, or
 * -ENOMEM with @err. To be released even then.
 */
int kb_waits_init(struct kb_waits *waits, uint32_t max_cores, struct kb_callstacks *stacks,
		  struct kb_symbolizer *symbolizer,
		  void (*take)(void *context, const struct kb_wait *wait), void *context,
		  struct kb_error *err);
void kb_waits_release(struct kb_waits *waits);

/* The record at which @walk is; and behind the last one. */
void kb_waits_feed(struct kb_waits *waits, const struct kb_walk *walk);
void kb_waits_end(struct kb_waits *waits, const struct kb_walk *walk);

#endif
