/* SPDX-License-Identifier: MIT */
/*
 * Handlers of interrupts, IPIs and softirqs as times: those tiles that end them (kbarman/tiles.h). They
 * nest: an interrupt may come during a softirq. A handler without its begin or its end is left out.
 */
#ifndef KB_LIB_ANALYSIS_TIME_HANDLERS_H
#define KB_LIB_ANALYSIS_TIME_HANDLERS_H

#include <kbarman/latency.h>

struct kb_handler {
	struct kb_origin origin;	/* irq, ipi or softirq */
	uint32_t core, task_id;	/* the task in whose time it ran */
	bool has_task;		/* it is known */
	uint32_t depth;		/* handlers that it has interrupted */
	uint64_t timestamp;	/* ticks: its end */
	int64_t start, end;	/* ns */
	uint64_t own;		/* ns in which it ran itself */
};

struct kb_handlers {
	struct kb_tiles *tiles;
};

/* Begin with the first record of @trace. Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_handlers_init(struct kb_handlers *handlers, struct kb_trace *trace);
void kb_handlers_release(struct kb_handlers *handlers);

/* Take the next record. Returns 1 and fills @done if it ends a handler; else 0, or -ENOMEM. */
int kb_handlers_feed(struct kb_handlers *handlers, const struct kb_walk *walk,
		     struct kb_handler *done);

#endif
