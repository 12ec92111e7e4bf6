/* SPDX-License-Identifier: MIT */
/*
 * analysis/latency/: why tasks were late: waits from wakeup to run (wakeups.h), what interrupts
 * took, what ended halts, and the chain of who waited for whom (path).
 *
 * The waits of tasks that could run: from a wakeup or a preemption until the task runs. Feed it
 * with each record of a walk, after its tiles have gone to the history.
 */
#ifndef KB_LIB_ANALYSIS_LATENCY_WAKEUPS_H
#define KB_LIB_ANALYSIS_LATENCY_WAKEUPS_H

#include "analysis/latency/lateness.h"
#include "analysis/time/gaps.h"
#include "analysis/time/history.h"
#include "analysis/trace/wanted.h"

struct kb_wakeups;

/* A time in which a task was off its CPU, whatever it waited for. */
struct kb_off {
	uint32_t task_id;
	uint32_t core;			/* that it left; when it is over: on which it runs */
	bool preempted;			/* it could have run on */
	bool sure;			/* false: it may have run on a CPU without a record */
	struct kb_object object;	/* what it waits for */
	int64_t since;			/* ns */
};

/* Returns 0 or -ENOMEM. */
typedef int (*kb_off_take)(void *context, const struct kb_off *off);

/* What is read elsewhere; all of it must live as long as the waits. */
struct kb_wakeups_parts {
	const struct kb_wanted *wanted;
	const struct kb_tiles *tiles;		/* NULL: who woke a task is not told */
	const struct kb_history *history;	/* NULL: what ran meanwhile is not told */
	const struct kb_gaps *gaps;
	kb_late_take take;		/* NULL: the waits go to the tables */
	kb_off_take take_off;		/* gets the times off a CPU, too; NULL: nobody asks */
	void *context;
	bool only_some;			/* only some tasks are recorded, whatever the capture says */
};

/* Who woke a task. */
struct kb_woken {
	struct kb_origin waker;
	uint32_t core;
};

/* Returns 0 or -ENOMEM. */
int kb_wakeups_create(struct kb_wakeups **out, const struct kb_wakeups_parts *parts);
void kb_wakeups_destroy(struct kb_wakeups *wakeups);

/* Take the record of @walk. Returns 0 or -ENOMEM. */
int kb_wakeups_feed(struct kb_wakeups *wakeups, const struct kb_walk *walk);

/* Call @take with each time off a CPU that is not over. Returns 0 or what @take returns. */
int kb_wakeups_off(const struct kb_wakeups *wakeups, kb_off_take take, void *context);

/* Who woke the task that runs since the last record fed. NULL: it is no switch, or unknown. */
const struct kb_woken *kb_wakeups_woken(const struct kb_wakeups *wakeups);

/* Fill in what @shown has of waits; it lives as long as @wakeups. Returns 0 or -ENOMEM. */
int kb_wakeups_finish(struct kb_wakeups *wakeups, struct kb_latency *shown);

#endif
