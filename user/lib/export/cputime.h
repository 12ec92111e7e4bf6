/* SPDX-License-Identifier: MIT */
/* CPU time of tasks between their samples, as the scheduler's records tell it. */
#ifndef KB_LIB_EXPORT_CPUTIME_H
#define KB_LIB_EXPORT_CPUTIME_H

#include <stdint.h>

#include "export/walk.h"
#include "table.h"

struct kb_cputime {
	const struct kb_timeline *timeline;
	struct kb_table tasks;
	int64_t *since;		/* by core: where its current slice began, ns */
	uint8_t *seen;		/* by core: since holds */
	uint32_t max_cores;
};

/* 0 or -ENOMEM. @timeline must stay. */
int kb_cputime_init(struct kb_cputime *times, const struct kb_timeline *timeline,
		    uint32_t max_cores);
void kb_cputime_release(struct kb_cputime *times);

/* Of each record of @walk, which has the timeline of these times. 0 or -ENOMEM. */
int kb_cputime_feed(struct kb_cputime *times, const struct kb_walk *walk);

/* Behind that, of the task of a sample: ns since its sample before. 0 or -ENOMEM. */
int kb_cputime_sample(struct kb_cputime *times, const struct kb_event *event, int64_t ns,
		      uint64_t *since);

#endif
