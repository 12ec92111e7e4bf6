/* SPDX-License-Identifier: MIT */
/*
 * The time that a capture covers: from the first to the last moment of its session, as far as
 * the capture has them. It begins with the first record instead if older records were
 * overwritten, and in captures that kbarman did not make. It ends with the stop; in a capture
 * that was cut off it ends with the last record.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_RECORDED_H
#define KB_LIB_ANALYSIS_FACTS_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/losses.h>

struct kb_recorded {
	const struct kb_barman *barman;
	bool from_start;		/* begin at the start of the session: */
	int64_t begin;			/* ns */
	int64_t first, last;		/* ns, of the records; first > last: there is no record */
};

/* @barman must live as long as @recorded; @losses, those of @barman, need not. */
void kb_recorded_init(struct kb_recorded *recorded, const struct kb_barman *barman,
		      const struct kb_losses *losses);

/* Add a record; @ns: its time by kb_barman_ns(). */
static inline void kb_recorded_add(struct kb_recorded *recorded, int64_t ns)
{
	if (ns < recorded->first)
		recorded->first = ns;
	if (ns > recorded->last)
		recorded->last = ns;
}

/* ns, from the header and the records added so far. */
int64_t kb_recorded_first(const struct kb_recorded *recorded);
int64_t kb_recorded_last(const struct kb_recorded *recorded);

/* From first to last, ns; a hostile capture may have up to 2^64 - 1. */
uint64_t kb_recorded_duration(const struct kb_recorded *recorded);

#endif
