/* SPDX-License-Identifier: MIT */
/*
 * CPU time of tasks between their samples: what a clock counted, if one samples, else as the
 * scheduler's records tell it.
 */
#ifndef KB_LIB_EXPORT_CPUTIME_H
#define KB_LIB_EXPORT_CPUTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "export/walk.h"
#include "table.h"

struct kb_cputime {
	const struct kb_timeline *timeline;
	const struct kb_names *names;
	bool clock;		/* the first counter is one */
	struct kb_table tasks;
	int64_t *since;		/* by core: where its current slice began, ns */
	uint8_t *seen;		/* by core: since holds */
	uint32_t max_cores;
};

/* Is a counter of that name a clock, that counts nanoseconds? */
bool kb_cputime_is_clock(struct kb_text name);

/* 0 or -ENOMEM. What @walk has must stay. */
int kb_cputime_init(struct kb_cputime *times, const struct kb_walk *walk, uint32_t max_cores);
void kb_cputime_release(struct kb_cputime *times);

/* Of each record of @walk, which has the timeline of these times. 0 or -ENOMEM. */
int kb_cputime_feed(struct kb_cputime *times, const struct kb_walk *walk);

/* Behind that, of the task of a sample: ns since its sample before. 0 or -ENOMEM. */
int kb_cputime_sample(struct kb_cputime *times, const struct kb_event *event, int64_t ns,
		      uint64_t *since);

#endif
