/* SPDX-License-Identifier: MIT */
/*
 * Wakeups as pairs: where a task was woken, and where it ran because of it. A task that is woken
 * before it has left its CPU runs on without a switch, and has no such pair; nor has one that is woken
 * while it is preempted. What overlaps a gap in the records may be several waits, and is left out.
 */
#ifndef KB_LIB_ANALYSIS_TIME_ARROWS_H
#define KB_LIB_ANALYSIS_TIME_ARROWS_H

#include <stdbool.h>

#include <kbarman/trace.h>

#include "base/table.h"

/* From the moment in which a task was woken to the one in which it runs. */
struct kb_arrow {
	uint32_t task_id, waker;	/* the waker: the task that ran on the CPU */
	uint32_t from_core, to_core;
	uint8_t context;		/* enum kb_context: what woke */
	bool is_new;			/* it runs for the first time */
	bool waker_known;		/* before that record it was known already who ran there */
	uint64_t timestamp;		/* ticks: when it was woken */
	int64_t from, to;		/* ns */
};

struct kb_arrows {
	struct kb_table rows;
	uint64_t gaps;		/* so far, of all CPUs */
};

void kb_arrows_init(struct kb_arrows *arrows);
void kb_arrows_release(struct kb_arrows *arrows);

/*
 * Take the next record, with its `known` and `running`. Returns 1 and fills @done if a task that was
 * woken begins to run; else 0, or -ENOMEM.
 */
int kb_arrows_feed(struct kb_arrows *arrows, const struct kb_walk *walk, struct kb_arrow *done);

#endif
