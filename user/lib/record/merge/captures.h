/* SPDX-License-Identifier: MIT */
/*
 * Merges the captures of a session's CPUs into one, in time order. Each capture is read once, in
 * its own order. Memory use is a window of each capture (kb_barman_set_window()) and does not
 * depend on their sizes.
 */
#ifndef KB_LIB_RECORD_MERGE_CAPTURES_H
#define KB_LIB_RECORD_MERGE_CAPTURES_H

#include <kbarman/barman.h>

/* Why two captures can't be merged. */
struct kb_merge_conflict {
	unsigned int left, right;	/* which ones */
	const char *why;		/* a clause */
};

/*
 * Whether the captures can be merged. They must have the same layout, clock and custom series,
 * and the same counters for each core; none is a copy of another one. If not, fills @conflict.
 */
bool kb_captures_agree(struct kb_barman *const *captures, unsigned int count,
		       struct kb_merge_conflict *conflict);

/*
 * Merge @captures, which agree and are at their first record, into the file @fd, and add @facts, strings up to a
 * NULL; NULL: none. Damage of a capture is not an error: what can be read is merged, and kb_barman_damage() tells the
 * rest.
 * Returns 0 and the number of records, or a negative errno with a sentence in @err.
 */
int kb_captures_merge(struct kb_barman *const *captures, unsigned int count, const char *const *facts,
		      int fd, uint64_t *records, struct kb_error *err);

#endif
