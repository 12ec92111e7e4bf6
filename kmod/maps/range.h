/* SPDX-License-Identifier: GPL-2.0-only */
/* A range of a program's addresses. */
#ifndef KBARMAN_RANGE_H
#define KBARMAN_RANGE_H

#include <linux/kernel.h>
#include <linux/types.h>

#define KBARMAN_LIBRARY_RANGES	4	/* of an address space, at most */

/* The addresses [low, low + span). */
struct kbarman_range {
	unsigned long low, span;
};

static __always_inline bool kbarman_range_has(const struct kbarman_range *range,
					      unsigned long address)
{
	return address - range->low < range->span;
}

static inline bool kbarman_range_overlaps(const struct kbarman_range *one,
					  const struct kbarman_range *other)
{
	return one->low < other->low + other->span && other->low < one->low + one->span;
}

static inline void kbarman_range_include(struct kbarman_range *range,
					 const struct kbarman_range *other)
{
	unsigned long end = range->low + range->span, others = other->low + other->span;

	if (!other->span)
		return;
	if (!range->span) {
		*range = *other;
		return;
	}
	range->low = min(range->low, other->low);
	range->span = max(end, others) - range->low;
}

#endif /* KBARMAN_RANGE_H */
