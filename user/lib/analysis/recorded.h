/* SPDX-License-Identifier: MIT */
/*
 * From when to when a capture was recorded: from the first to the last moment of its
 * session, as far as the capture says them. The session's first moment is not meant where
 * older records were overwritten, and not known of captures that others made: there it is
 * the first record. The last moment is the stop; of a capture that was cut off it is the
 * last record.
 */
#ifndef KB_LIB_ANALYSIS_RECORDED_H
#define KB_LIB_ANALYSIS_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

struct kb_recorded {
	const struct kb_barman *barman;
	bool from_start;		/* the session's first moment is meant: 0 ns */
	int64_t first, last;		/* ns, of the records; first > last: there was none */
};

/* 0 or -ENOMEM. @barman must stay. */
int kb_recorded_init(struct kb_recorded *recorded, const struct kb_barman *barman);

/* A record, at kb_barman_ns(). */
static inline void kb_recorded_add(struct kb_recorded *recorded, int64_t ns)
{
	if (ns < recorded->first)
		recorded->first = ns;
	if (ns > recorded->last)
		recorded->last = ns;
}

/* ns, by the header and the records added so far. */
int64_t kb_recorded_first(const struct kb_recorded *recorded);
int64_t kb_recorded_last(const struct kb_recorded *recorded);

/* From the one to the other, ns; hostile captures have up to 2^64 - 1. */
uint64_t kb_recorded_duration(const struct kb_recorded *recorded);

#endif
