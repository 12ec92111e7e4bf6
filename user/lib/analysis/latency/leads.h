/* SPDX-License-Identifier: MIT */
/*
 * What led each task to what it does now: the walk goes forward, and each task has its chain of links.
 * A task that another one wakes gives up its own chain and takes the chain of the task that wakes. So at
 * any moment the critical path of each task is there, without going back over the capture.
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
	uint32_t head;		/* of its chain, up to `since` */
	uint32_t before;	/* of the chain that it had when it ran last, if woken since */
	int64_t since;		/* ns */
	int64_t first;		/* ns: its first record */
	int64_t ran;		/* ns: the end of its last run so far */
	uint64_t ran_ticks;	/* the same */
};

struct kb_leads {
	struct kb_trace *trace;
	const struct kb_names *names;
	struct kb_tiles *tiles;
	struct kb_history *history;
	struct kb_gaps gaps;
	struct kb_chains chains;
	struct kb_table tasks;	/* struct kb_lead */
	uint64_t wakeups;	/* records so far */
};

/* Begins @trace anew. Returns 0 or a negative errno; kb_leads_release() is called in any case. */
int kb_leads_init(struct kb_leads *leads, struct kb_trace *trace, struct kb_error *err);
void kb_leads_release(struct kb_leads *leads);

/* Take the next record. Returns 0 or -ENOMEM. */
int kb_leads_feed(struct kb_leads *leads, const struct kb_walk *walk);

/*
 * The task that wrote the record of @walk, which was fed, with its chain up to there. It runs, also if no
 * record says so. NULL without memory.
 */
struct kb_lead *kb_leads_writer(struct kb_leads *leads, const struct kb_walk *walk);

/* The chain of @lead goes on until @walk, with what it does there. Returns 0 or -ENOMEM. */
int kb_leads_extend(struct kb_leads *leads, struct kb_lead *lead, const struct kb_walk *walk);

/*
 * Fill in the links of @path, whose task and times are known, by the chain from @head backwards. If that
 * does not reach path->from, the path begins later, or with @whole by a link of a task that is not seen.
 * The links are the caller's to free. Returns 0 or -ENOMEM.
 */
int kb_leads_path(const struct kb_leads *leads, uint32_t head, struct kb_path *path, bool whole);

/* What is added up: the link without what was in front of the task in queues. */
static inline struct kb_link kb_link_cause(const struct kb_link *link)
{
	struct kb_link cause = *link;

	cause.in_gap = false;
	if (cause.kind != KB_LINK_WAIT)
		cause.by = (struct kb_origin){ .kind = KB_TILE_UNKNOWN };
	return cause;
}

#endif
