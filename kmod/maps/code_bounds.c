// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/hash.h>
#include <linux/mm_types.h>
#include <asm/barrier.h>

#include "maps/code_bounds.h"

/* The place of @mm in @row; KBARMAN_BOUNDS_PLACES: there is none. */
static unsigned int row_find(const struct kbarman_bounds_row *row, const struct mm_struct *mm)
{
	unsigned int i;

	for (i = 0; i < KBARMAN_BOUNDS_PLACES; i++)
		if (READ_ONCE(row->mm[i]) == mm)
			break;
	return i;
}

/* The place of @mm, or a free one, or another's. */
static unsigned int row_place(const struct kbarman_bounds_row *row, const struct mm_struct *mm)
{
	unsigned int i = row_find(row, mm);

	if (i == KBARMAN_BOUNDS_PLACES)
		i = row_find(row, NULL);
	return i % KBARMAN_BOUNDS_PLACES;
}

static void row_write(struct kbarman_bounds_row *row, unsigned int i, const struct mm_struct *mm,
		      const struct kbarman_range *ranges)
{
	struct kbarman_bound *bound = &row->of[i];

	WRITE_ONCE(bound->sequence, bound->sequence + 1);
	smp_wmb();	/* [1] */
	WRITE_ONCE(row->mm[i], mm);
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
	struct kbarman_bounds_row *row = &bounds->rows[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	unsigned int place = row_place(row, mm), nr = 0, before;
	struct kbarman_range ranges[KBARMAN_LIBRARY_RANGES + 1] = { };
	const struct kbarman_bound *bound = &row->of[place];

	/* The program has a range of its own. */
	if (start < mm->end_code && end > mm->start_code)
		return;
	while (row->mm[place] == mm && nr < KBARMAN_LIBRARY_RANGES && bound->ranges[nr].span) {
		ranges[nr] = bound->ranges[nr];
		nr++;
	}
	nr = ranges_insert(ranges, nr, (struct kbarman_range) { start, end - start });
	do {
		before = nr;
		nr = ranges_merge(ranges, nr, nr > KBARMAN_LIBRARY_RANGES);
	} while (nr < before);
	row_write(row, place, mm, ranges);
}

void kbarman_code_bounds_forget(struct kbarman_code_bounds *bounds, const struct mm_struct *mm)
{
	struct kbarman_bounds_row *row = &bounds->rows[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	const struct kbarman_range none[KBARMAN_LIBRARY_RANGES] = { };
	unsigned int place = row_find(row, mm);

	if (place < KBARMAN_BOUNDS_PLACES)
		row_write(row, place, NULL, none);
}

bool kbarman_code_bounds_find(const struct kbarman_code_bounds *bounds,
			      const struct mm_struct *mm, struct kbarman_range *ranges)
{
	const struct kbarman_bounds_row *row = &bounds->rows[hash_ptr(mm, KBARMAN_BOUNDS_BITS)];
	unsigned int i, place = row_find(row, mm);
	const struct kbarman_bound *bound;
	u32 sequence;

	if (place == KBARMAN_BOUNDS_PLACES)
		return false;
	bound = &row->of[place];
	sequence = READ_ONCE(bound->sequence);
	smp_rmb();	/* pairs with [2] */
	if (sequence & 1 || READ_ONCE(row->mm[place]) != mm)
		return false;
	for (i = 0; i < KBARMAN_LIBRARY_RANGES; i++) {
		ranges[i].low = READ_ONCE(bound->ranges[i].low);
		ranges[i].span = READ_ONCE(bound->ranges[i].span);
	}
	smp_rmb();	/* pairs with [1] */
	return READ_ONCE(bound->sequence) == sequence;
}
