/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the libraries of an address space are, for sparse stacks: a few ranges, which have all
 * executable mappings outside of the program in them. If these are more, the ranges with the least
 * between them become one. The worker of the mappings writes the ranges, and probes read them, also
 * in an NMI. The table is lossy: if too many address spaces have the same hash, one takes the place of
 * another.
 */
#ifndef KBARMAN_CODE_BOUNDS_H
#define KBARMAN_CODE_BOUNDS_H

#include <linux/types.h>

#include "maps/range.h"

#define KBARMAN_BOUNDS_BITS	7
#define KBARMAN_BOUNDS_PLACES	8	/* for address spaces of one hash */

struct mm_struct;

struct kbarman_bound {
	u32 sequence;			/* odd while it is written, or its mm */
	struct kbarman_range ranges[KBARMAN_LIBRARY_RANGES];	/* by address; then empty ones */
};

struct kbarman_bounds_row {
	const struct mm_struct *mm[KBARMAN_BOUNDS_PLACES];	/* NULL: the place is free */
	struct kbarman_bound of[KBARMAN_BOUNDS_PLACES];
};

struct kbarman_code_bounds {
	struct kbarman_bounds_row rows[1 << KBARMAN_BOUNDS_BITS];	/* by hash */
};

/* @mm has code from @start to @end. Context: one task at a time; also of the next one. */
void kbarman_code_bounds_include(struct kbarman_code_bounds *bounds, const struct mm_struct *mm,
				 unsigned long start, unsigned long end);
void kbarman_code_bounds_forget(struct kbarman_code_bounds *bounds, const struct mm_struct *mm);

/*
 * The KBARMAN_LIBRARY_RANGES ranges of @mm in @ranges. False: they are not known, or are just
 * written; @ranges may have anything then. Context: any.
 */
bool kbarman_code_bounds_find(const struct kbarman_code_bounds *bounds,
			      const struct mm_struct *mm, struct kbarman_range *ranges);

#endif /* KBARMAN_CODE_BOUNDS_H */
