/* SPDX-License-Identifier: MIT */
/*
 * What the capture says of its counters beside their values. On machines with CPUs of several kinds
 * a CPU may not count all events that were asked for (kbarman.uncounted.CPU.EVENT), and may have
 * none that takes samples (kbarman.unsampled.CPU.EVENT). And what a counter counted, by Linux, is
 * the sum of the values of all samples of its CPU, and of what is in no record
 * (kbarman.counted.CPU.COUNTER).
 */
#ifndef KB_LIB_ANALYSIS_FACTS_COUNTED_H
#define KB_LIB_ANALYSIS_FACTS_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

/* An event that some CPUs do not count. */
struct kb_uncounted {
	const char *name;	/* of the header */
	char *cpus;		/* as in "0-3,7" */
};

/*
 * Fill *@rows, by the order of the facts, and *@nr. 0 or -ENOMEM. kb_uncounted_free() frees the
 * rows.
 */
int kb_uncounted_read(const struct kb_header *header, struct kb_uncounted **rows, uint32_t *nr);

/* The same for an event that was to take samples: CPUs without it count and take none. */
int kb_unsampled_read(const struct kb_header *header, struct kb_uncounted **rows, uint32_t *nr);

void kb_uncounted_free(struct kb_uncounted *rows, uint32_t nr);

/* The sums of a capture's counters. */
struct kb_counted;

/* *@out is NULL if the capture says nothing that could be compared. 0 or -ENOMEM. */
int kb_counted_create(struct kb_counted **out, const struct kb_header *header);
void kb_counted_destroy(struct kb_counted *counted);

/* Add each event, in any order. */
void kb_counted_feed(struct kb_counted *counted, const struct kb_event *event);

/* A counter whose values are not what it counted. */
struct kb_miscounted {
	uint32_t core, index;
	uint64_t counted, unrecorded;	/* as the capture says */
	uint64_t sum;			/* of the values */
	uint32_t next;			/* the counter of the core that is looked at next */
};

/*
 * The first difference behind *@difference, which is all 0 at first, ordered by core and counter;
 * false: there are no more. One pass over the counters finds all of them.
 */
bool kb_counted_next(const struct kb_counted *counted, struct kb_miscounted *difference);

#endif
