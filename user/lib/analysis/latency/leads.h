/* SPDX-License-Identifier: MIT */
/*
 * What led each task to what it does now, as a chain of links, which the walk makes as it goes
 * forward. So at any moment the critical path of each task is there, without going back over the
 * capture. When a task wakes another one:
 *
 * - if it is asked what led to an end (`stays' is false), the woken task gives up its own chain, and
 *   takes that of the task that wakes;
 * - if it is asked what a task did in a time, the woken task keeps its own chain. A link for its wait
 *   knows the chain of the task that wakes, and stands for the part of that which is as long as the
 *   wait.
 */
#ifndef KB_LIB_ANALYSIS_LATENCY_LEADS_H
#define KB_LIB_ANALYSIS_LATENCY_LEADS_H

#include <kbarman/names.h>

#include "analysis/latency/chains.h"
#include "analysis/time/gaps.h"
#include "analysis/time/history.h"
#include "base/table.h"

enum kb_lead_state {
	KB_LEAD_NEW = 0,		/* of this struct */
	KB_LEAD_RUNS,
	KB_LEAD_BLOCKED,
	KB_LEAD_WOKEN,
	KB_LEAD_PREEMPTED,
	KB_LEAD_DEAD,
};

/* A task. */
struct kb_lead {
	uint64_t key;		/* the task id */
	uint8_t state;		/* enum kb_lead_state */
	bool woken_early;	/* while it ran */
	bool idled;		/* it was preempted, and its CPU went idle */
	uint32_t core;		/* on which it ran last */
	uint32_t head;		/* of its chain, up to `since` */
	uint32_t before;	/* of the one that it had when it ran last, if it took another */
	int64_t since;		/* ns */
	int64_t first;		/* ns: its first record */
	int64_t ran;		/* ns: the end of its last run so far */
	uint64_t ran_ticks;	/* the same */
	struct kb_object object;	/* of its last wait */
};

struct kb_leads {
	struct kb_trace *trace;
	bool stays;
	const struct kb_names *names;
	struct kb_tiles *tiles;
	struct kb_history *history;
	uint32_t stock;		/* pieces of it that may be looked at */
	struct kb_gaps gaps;
	struct kb_chains chains;
	struct kb_table tasks;	/* struct kb_lead */
	uint64_t wakeups;	/* records so far */
};

/*
 * Begins @trace anew; @stays: see above. Returns 0 or a negative errno; kb_leads_release() is
 * called in any case.
 */
int kb_leads_init(struct kb_leads *leads, struct kb_trace *trace, bool stays,
		  struct kb_error *err);
void kb_leads_release(struct kb_leads *leads);

/* Take the next record. Returns 0 or -ENOMEM. */
int kb_leads_feed(struct kb_leads *leads, const struct kb_walk *walk);

/*
 * The task of the record of @walk, which was fed, with its chain up to there. NULL without memory.
 */
struct kb_lead *kb_leads_writer(struct kb_leads *leads, const struct kb_walk *walk);

/* The chain of @lead goes on until @walk, with what it did last. Returns 0 or -ENOMEM. */
int kb_leads_extend(struct kb_leads *leads, struct kb_lead *lead, const struct kb_walk *walk);

/*
 * Fill in the links of @path, whose task and times are known, by the chain from @head backwards.
 * If that does not reach path->from, the path begins later, or, if tasks stay, with a link of a
 * task that is not seen. The links are the caller's to free. Returns 0 or -ENOMEM.
 */
int kb_leads_path(const struct kb_leads *leads, uint32_t head, struct kb_path *path);

#endif
