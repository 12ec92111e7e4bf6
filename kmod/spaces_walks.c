// SPDX-License-Identifier: GPL-2.0-only
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "clock.h"
#include "header.h"
#include "space.h"

#define WALK_SLICE	1024	/* mappings of any kind that one slice looks at */
#define WALK_PAUSE	HZ	/* jiffies from the end of a walk to the next walk of the same
				 * address space */
#define MAX_PAUSE	(2 * HZ)
#define LOCK_PAUSE	(HZ / 100 + 1)	/* jiffies until a busy mmap_lock is tried again */

static void space_end_walk(struct kbarman_space *space)
{
	kbarman_space_free_ended(space);
	list_del_init(&space->pending);
	space->walk_due = get_jiffies_64() + WALK_PAUSE;
}

/*
 * Takes mmap_lock without waiting, except for some short tries if `hurry` is set. The owner of the
 * lock may itself wait for a network or for another process.
 */
static bool space_lock(struct kbarman_spaces *spaces, struct mm_struct *mm)
{
	if (mmap_read_trylock(mm))
		return true;
	while (READ_ONCE(spaces->hurry) && spaces->tries_left-- > 0) {
		usleep_range(200, 1000);
		if (mmap_read_trylock(mm))
			return true;
	}
	return false;
}

/* If there is no room, the new mapping is counted and left out, and the known ones stay. */
static void space_walk_vma(struct kbarman_space *space, struct vm_area_struct *vma)
{
	struct kbarman_mapping mapping;
	const struct kbarman_known *known;

	if (space->nr_mappings >= KBARMAN_MAX_MAPPINGS) {
		known = kbarman_space_mapping_behind(space, vma->vm_start);
		if (!known || known->start >= vma->vm_end) {
			space->trimmed = true;
			space->walk_left++;
			return;
		}
	}
	kbarman_mapping_init(&mapping, vma);
	kbarman_space_map(space, &mapping, space->walk_since);
}

/* Counts the mappings for which a walk found no room. The next walk does not count them again. */
static void space_count_left(struct kbarman_space *space)
{
	if (space->walk_left > space->left) {
		kbarman_header_miss(space->all->capture, KBARMAN_MISSED_MEMORY,
				    space->walk_left - space->left);
		space->left = space->walk_left;
	}
}

/* The walk is not made: no thread needs it any more, or there is no time left. */
static void space_give_up_walk(struct kbarman_space *space)
{
	space->complete = false;
	space_end_walk(space);
}

/* True if the walk has reached the end. Context: mmap_lock held. */
static bool space_walk_slice(struct kbarman_space *space)
{
	struct vm_area_struct *vma;
	unsigned int count = 0;

	if (!space->walk_at) {
		space->gap = false;
		space->complete = true;
		space->trimmed = false;
		space->walk_left = 0;
	}
	/* find_vma() works on kernels with a list of mappings and on kernels without one. */
	for (vma = find_vma(space->mm, space->walk_at); vma;
	     vma = find_vma(space->mm, space->walk_at)) {
		if (count++ >= WALK_SLICE || !kbarman_spaces_step(space->all))
			return false;
		space->walk_at = vma->vm_end;
		if (vma->vm_flags & VM_EXEC)
			space_walk_vma(space, vma);
	}
	return true;
}

void kbarman_space_walk(struct kbarman_space *space)
{
	bool locked, done = false;

	if (!mmget_not_zero(space->mm)) {
		/* A thread was sampled, and its mappings are gone. */
		if (!list_empty(&space->threads))
			kbarman_header_miss(space->all->capture, KBARMAN_MISSED_QUEUE, 1);
		space_give_up_walk(space);
		return;
	}
	locked = space_lock(space->all, space->mm);
	space->busy = !locked;
	if (locked) {
		done = space_walk_slice(space);
		mmap_read_unlock(space->mm);
	}
	mmput_async(space->mm);
	if (done) {
		space_count_left(space);
		space_end_walk(space);
		if (space->gap && !READ_ONCE(space->all->hurry)) {
			space->complete = false;
			kbarman_space_want_walk(space, kbarman_clock());
		}
	} else if (READ_ONCE(space->all->hurry) && (!locked || space->all->steps_left <= 0)) {
		kbarman_header_miss(space->all->capture, KBARMAN_MISSED_QUEUE, 1);
		space_give_up_walk(space);
	} else if (!locked) {
		space->walk_due = get_jiffies_64() + LOCK_PAUSE;
	}
}

bool kbarman_space_walk_is_due(const struct kbarman_space *space)
{
	return time_after_eq64(get_jiffies_64(), space->walk_due) || READ_ONCE(space->all->hurry);
}

bool kbarman_spaces_walk(struct kbarman_spaces *spaces, unsigned long *pause)
{
	u64 now = get_jiffies_64(), next = now + MAX_PAUSE;
	struct kbarman_space *space, *other;

	list_for_each_entry_safe(space, other, &spaces->to_walk, pending) {
		/* No thread needs the walk any more, or there is no time left. */
		if (READ_ONCE(spaces->hurry) &&
		    (list_empty(&space->threads) || spaces->steps_left <= 0)) {
			if (!list_empty(&space->threads))
				kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
			space_give_up_walk(space);
			continue;
		}
		if (kbarman_space_walk_is_due(space)) {
			/* Move @space to the end, so that others get their turn. */
			list_move_tail(&space->pending, &spaces->to_walk);
			kbarman_space_walk(space);
			return true;
		}
		next = min(next, space->walk_due);
	}
	*pause = list_empty(&spaces->to_walk) ? MAX_SCHEDULE_TIMEOUT : next - now;
	return false;
}
