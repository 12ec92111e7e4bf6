/* SPDX-License-Identifier: MIT */
/* Whether captures can be compared at all: what they say of how they were made. */
#ifndef KB_LIB_ANALYSIS_DIFF_DOUBTS_H
#define KB_LIB_ANALYSIS_DIFF_DOUBTS_H

#include <kbarman/diff.h>

#include "format/barman/identity.h"

/* What a capture says; texts are owned, "" where it does not say. */
struct kb_diff_origin {
	unsigned int side;
	struct barman_identity identity;
	char *facts[9];			/* see doubts.c */
	char *events;			/* names of the counters */
	uint32_t rate, cpus;		/* samples a second as its header says; CPUs with records */
	double seconds;
	double weight;			/* mean weight of a sample; 0: none has one */
	uint64_t lost, overwritten, asleep;
	bool damaged;
};

/* Returns 0 or -ENOMEM. Release @origin in any case. */
int kb_diff_origin_read(struct kb_diff_origin *origin, struct kb_trace *trace, struct kb_error *err);
void kb_diff_origin_release(struct kb_diff_origin *origin);

/* Doubts, whose sentences are to be freed. */
struct kb_diff_doubts {
	struct kb_diff_doubt *rows;
	uint32_t nr;
};

/* Returns 0 or -ENOMEM. @per_second: lengths do not matter. */
int kb_diff_doubts_find(struct kb_diff_doubts *doubts, const struct kb_diff_origin *origins,
			uint32_t nr, bool per_second);
void kb_diff_doubts_release(struct kb_diff_doubts *doubts);

#endif
