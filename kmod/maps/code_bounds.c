// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/mm_types.h>
#include <asm/barrier.h>

#include "maps/code_bounds.h"

static void bound_write(struct kbarman_bound *bound, const struct mm_struct *mm,
			const struct kbarman_range *ranges)
{
	unsigned int i;

	WRITE_ONCE(bound->sequence, bound->sequence + 1);
	smp_wmb();	/* [1] */
	WRITE_ONCE(bound->mm, mm);
	for (i = 0; i < KBARMAN_LIBRARY_RANGES; i++) {
		WRITE_ONCE(bound->ranges[i].low, ranges[i].low);
		WRITE_ONCE(bound->ranges[i].span, ranges[i].span);
	}
	smp_wmb();	/* [2] */
	WRITE_ONCE(bound->sequence, bound->sequence + 1);
}

/* Put @more into its place among the @nr ranges of @ranges, of which there may be one more then. */
static unsigned int ranges_insert(struct kbarman_range *ranges, unsigned int nr,
				  struct kbarman_range more)
{
	unsigned int i;

	for (i = nr; i && ranges[i - 1].low > more.low; i--)
		ranges[i] = ranges[i - 1];
	ranges[i] = more;
	return nr + 1;
}

/* Bytes between the range in front of @range and @range; 0: they touch. */
static unsigned long range_gap(const struct kbarman_range *range)
{
	unsigned long end = range[-1].low + range[-1].span;

	return range->low > end ? range->low - end : 0;
}

/* Make one range of two: those that touch, or if @any those with the least between them. */
static unsigned int ranges_merge(struct kbarman_range *ranges, unsigned int nr, bool any)
{
	unsigned int i, best = 1;

	for (i = 2; i < nr; i++)
		if (range_gap(&ranges[i]) < range_gap(&ranges[best]))
			best = i;
	if (nr < 2 || (!any && range_gap(&ranges[best])))
		return nr;
	kbarman_range_include(&ranges[best - 1], &ranges[best]);
	for (i = best; i + 1 < nr; i++)
		ranges[i] = ranges[i + 1];
	ranges[nr - 1] = (struct kbarman_range) { };
	return nr - 1;
}

void kbarman_code_bounds_include(struct kbarman_code_bounds *bounds, const struct mm_struct *mm,
				 unsigned long start, unsigned long end)
{
	struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	struct kbarman_range ranges[KBARMAN_LIBRARY_RANGES + 1] = { };
	unsigned int nr = 0, before;

	/* The program has a range of its own. */
	if (start < mm->end_code && end > mm->start_code)
		return;
	while (bound->mm == mm && nr < KBARMAN_LIBRARY_RANGES && bound->ranges[nr].span) {
		ranges[nr] = bound->ranges[nr];
		nr++;
	}
	nr = ranges_insert(ranges, nr, (struct kbarman_range) { start, end - start });
	do {
		before = nr;
		nr = ranges_merge(ranges, nr, nr > KBARMAN_LIBRARY_RANGES);
	} while (nr < before);
	bound_write(bound, mm, ranges);
}

void kbarman_code_bounds_forget(struct kbarman_code_bounds *bounds, const struct mm_struct *mm)
{
	struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	const struct kbarman_range none[KBARMAN_LIBRARY_RANGES] = { };

	if (bound->mm == mm)
		bound_write(bound, NULL, none);
}

bool kbarman_code_bounds_find(const struct kbarman_code_bounds *bounds,
			      const struct mm_struct *mm, struct kbarman_range *ranges)
{
	const struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	u32 sequence = READ_ONCE(bound->sequence);
	unsigned int i;

	smp_rmb();	/* pairs with [2] */
	if (sequence & 1 || READ_ONCE(bound->mm) != mm)
		return false;
	for (i = 0; i < KBARMAN_LIBRARY_RANGES; i++) {
		ranges[i].low = READ_ONCE(bound->ranges[i].low);
		ranges[i].span = READ_ONCE(bound->ranges[i].span);
	}
	smp_rmb();	/* pairs with [1] */
	return READ_ONCE(bound->sequence) == sequence;
}
