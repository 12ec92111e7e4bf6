// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/mm_types.h>
#include <asm/barrier.h>

#include "code_bounds.h"

static void bound_write(struct kbarman_bound *bound, const struct mm_struct *mm,
			struct kbarman_range range)
{
	WRITE_ONCE(bound->sequence, bound->sequence + 1);
	smp_wmb();	/* [1] */
	WRITE_ONCE(bound->mm, mm);
	WRITE_ONCE(bound->range.low, range.low);
	WRITE_ONCE(bound->range.span, range.span);
	smp_wmb();	/* [2] */
	WRITE_ONCE(bound->sequence, bound->sequence + 1);
}

void kbarman_code_bounds_include(struct kbarman_code_bounds *bounds, const struct mm_struct *mm,
				 unsigned long start, unsigned long end)
{
	struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	const struct kbarman_range more = { start, end - start };
	struct kbarman_range range = { };

	/* The program has a range of its own. */
	if (start < mm->end_code && end > mm->start_code)
		return;
	if (bound->mm == mm)
		range = bound->range;
	kbarman_range_include(&range, &more);
	bound_write(bound, mm, range);
}

void kbarman_code_bounds_forget(struct kbarman_code_bounds *bounds, const struct mm_struct *mm)
{
	struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];

	if (bound->mm == mm)
		bound_write(bound, NULL, (struct kbarman_range) { });
}

bool kbarman_code_bounds_find(const struct kbarman_code_bounds *bounds,
			      const struct mm_struct *mm, struct kbarman_range *range)
{
	const struct kbarman_bound *bound = &bounds->of[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	u32 sequence = READ_ONCE(bound->sequence);

	smp_rmb();	/* pairs with [2] */
	if (sequence & 1 || READ_ONCE(bound->mm) != mm)
		return false;
	range->low = READ_ONCE(bound->range.low);
	range->span = READ_ONCE(bound->range.span);
	smp_rmb();	/* pairs with [1] */
	return READ_ONCE(bound->sequence) == sequence;
}
