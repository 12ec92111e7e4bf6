/* SPDX-License-Identifier: MIT */
/*
 * The times in which a capture lacks records, of all CPUs together: because they were lost, or
 * because newer ones have overwritten them. A task that was away in a gap may have run, on the CPU
 * that has the gap, without a record.
 */
#ifndef KB_LIB_ANALYSIS_TIME_GAPS_H
#define KB_LIB_ANALYSIS_TIME_GAPS_H

#include <kbarman/losses.h>

struct kb_gaps {
	struct kb_gap {
		int64_t start, end;	/* ns */
	} *rows;			/* after kb_gaps_read(): in order, none overlaps another */
	uint32_t nr, room;
	uint64_t *before;		/* of each: ns of the gaps in front of it; NULL: there is no gap */
};

/*
 * Find the gaps of @trace, and leave it where it begins again. This reads the capture, if its facts
 * do not say that nothing is lost. Returns 0, -ENOMEM, or what kb_barman_keep() returns.
 */
int kb_gaps_read(struct kb_gaps *gaps, struct kb_trace *trace, struct kb_error *err);
void kb_gaps_release(struct kb_gaps *gaps);

/* Does the time from @from to @until overlap a gap? */
bool kb_gaps_overlap(const struct kb_gaps *gaps, int64_t from, int64_t until);

/* How much of the time from @from to @until, which is not in front of it, are gaps: ns. */
uint64_t kb_gaps_ns(const struct kb_gaps *gaps, int64_t from, int64_t until);

#endif
