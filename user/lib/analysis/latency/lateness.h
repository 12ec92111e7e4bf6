/* SPDX-License-Identifier: MIT */
/* The tables of waits: by task, by waker, by idle state, by what ran meanwhile; and the worst. */
#ifndef KB_LIB_ANALYSIS_LATENCY_LATENESS_H
#define KB_LIB_ANALYSIS_LATENCY_LATENESS_H

#include "analysis/time/history.h"

/* A wait that is over. */
struct kb_late {
	struct kb_latency_wait wait;	/* without what ran meanwhile */
	int64_t there_since;		/* ns: since then it waited for the CPU on which it ran */
	int64_t left;			/* ns: when that CPU left its halt, if wait.has_left */
};

/* Gets each wait when it is over; returns 0 or -ENOMEM. */
typedef int (*kb_late_take)(void *context, const struct kb_late *late);

struct kb_lateness;

/* @history must live as long. Returns 0 or -ENOMEM. */
int kb_lateness_create(struct kb_lateness **out, struct kb_trace *trace,
		       const struct kb_history *history);
void kb_lateness_destroy(struct kb_lateness *lateness);

/* Count @late. Returns 0 or -ENOMEM. */
int kb_lateness_add(struct kb_lateness *lateness, const struct kb_late *late);

/* Fill in the tables of @shown; they live as long as @lateness. Returns 0 or -ENOMEM. */
int kb_lateness_finish(struct kb_lateness *lateness, struct kb_latency *shown);

#endif
