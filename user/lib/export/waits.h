/* SPDX-License-Identifier: MIT */
/*
 * Waits with the stacks in which they began, as nodes of stack_table.h. Waits without a call
 * chain and waits that are open at the end are left out.
 */
#ifndef KB_LIB_WAITS_H
#define KB_LIB_WAITS_H

#include "analysis/time/sched.h"
#include "analysis/time/shown.h"
#include "export/stack_table.h"

struct kb_stack_waits {
	struct kb_sched *sched;
	struct kb_stack_table *stacks;
	const struct kb_trace *trace;
	void (*take)(void *context, const struct kb_wait *wait);
	void *context;
	bool begun;		/* a switch with a chain was seen */
	uint64_t nr;		/* number of waits given to @take */
	bool no_memory;
};

/*
 * waits->take is called with @context for every wait when it is over; all else of @waits is zero. The
 * mark of the wait is the node in @stacks. Returns 0, or -ENOMEM and @err. Release @waits in any case.
 */
int kb_stack_waits_init(struct kb_stack_waits *waits, const struct kb_trace *trace,
			struct kb_stack_table *stacks, void *context, struct kb_error *err);
void kb_stack_waits_release(struct kb_stack_waits *waits);

/* Call it for each record of the trace. */
void kb_stack_waits_feed(struct kb_stack_waits *waits, const struct kb_walk *walk);
/* Call it once behind the last one. */
void kb_stack_waits_end(struct kb_stack_waits *waits, struct kb_trace *trace);

#endif
