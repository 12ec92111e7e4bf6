/* SPDX-License-Identifier: MIT */
/*
 * CPU time of tasks between their samples. If the counter that samples is a clock, it is what
 * that clock counted. Otherwise it comes from the scheduler's records.
 */
#ifndef KB_LIB_ANALYSIS_SAMPLES_CPUTIME_H
#define KB_LIB_ANALYSIS_SAMPLES_CPUTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/trace/inside.h"
#include "base/table.h"

struct kb_cputime {
	const struct kb_timeline *timeline;
	const struct kb_names *names;
	bool clock;		/* the first counter is a clock */
	struct kb_table tasks;
	struct kb_table_recent recent;
	int64_t *since;		/* by core: start of its current slice, ns */
	uint8_t *seen;		/* by core: since is valid */
	uint32_t max_cores;
};

/* Whether a counter of that name is a clock that counts nanoseconds. */
bool kb_cputime_is_clock(struct kb_text name);

/* Returns 0 or -ENOMEM. @trace must live as long as @times. */
int kb_cputime_init(struct kb_cputime *times, const struct kb_trace *trace);
void kb_cputime_release(struct kb_cputime *times);

/* Call it for each record of the trace. Returns 0 or -ENOMEM. */
int kb_cputime_feed(struct kb_cputime *times, const struct kb_walk *walk);

/*
 * Call it after that for the task of a sample: gives ns since the task's previous sample.
 * Returns 0 or -ENOMEM.
 */
int kb_cputime_sample(struct kb_cputime *times, const struct kb_event *event, int64_t ns,
		      uint64_t *since);

#endif
