// SPDX-License-Identifier: GPL-2.0-only
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "maps/mm_user.h"
#include "maps/space.h"
#include "maps/spaces.h"
#include "ring/clock.h"

#define WALK_LOCKED	16	/* mappings of any kind that are looked at without a pause: a task
				 * may wait to exit */
#define WALK_SLICE	64	/* times that one slice does this */
#define WALK_PAUSE	HZ	/* jiffies from the end of a walk to the next walk of the same
				 * address space */
#define MAX_PAUSE	(2 * HZ)
#define LOCK_PAUSE	(HZ / 100 + 1)	/* jiffies until a busy mmap_lock is tried again */

/* Free the processes that have ended. */
static void space_free_ended(struct kbarman_space *space)
{
	struct kbarman_process *process, *next;

	if (!space->nr_ended)
		return;
	list_for_each_entry_safe(process, next, &space->processes, node) {
		if (process->ended)
			kbarman_process_free(process);
		cond_resched();
	}
	space->nr_ended = 0;
}

static void space_end_walk(struct kbarman_space *space)
{
	space_free_ended(space);
	list_del_init(&space->pending);
	space->walk_due = get_jiffies_64() + WALK_PAUSE;
}

/*
 * Takes the lock of a task that has the memory, so that it stays, and mmap_lock without waiting.
 * NULL: mmap_lock is taken, or @gone. Its owner may itself wait for a network or for another
 * process.
 */
static struct task_struct *space_trylock(struct kbarman_space *space, bool *gone)
{
	struct task_struct *task = kbarman_mm_lock_user(space->mm, space->task_id);

	*gone = !task;
	if (!task)
		return NULL;
	space->task_id = task->pid;
	if (mmap_read_trylock(space->mm))
		return task;
	kbarman_mm_unlock_user(task);
	return NULL;
}

static void space_unlock(struct kbarman_space *space, struct task_struct *task)
{
	mmap_read_unlock(space->mm);
	kbarman_mm_unlock_user(task);
}

/* With some short tries if `hurry` is set. */
static struct task_struct *space_lock(struct kbarman_space *space, bool *gone)
{
	struct task_struct *task = space_trylock(space, gone);
	struct kbarman_spaces *spaces = space->all;

	while (!task && !*gone && READ_ONCE(spaces->hurry) && spaces->tries_left-- > 0) {
		usleep_range(200, 1000);
		task = space_trylock(space, gone);
	}
	return task;
}

/* If there is no room, the new mapping is counted and left out, and the known ones stay. */
static void space_walk_mapping(struct kbarman_space *space, const struct kbarman_mapping *mapping)
{
	const struct kbarman_known *known;

	if (space->nr_mappings >= KBARMAN_MAX_MAPPINGS) {
		known = kbarman_space_mapping_behind(space, mapping->start);
		if (!known || known->start >= mapping->end) {
			space->trimmed = true;
			space->walk_left++;
			return;
		}
	}
	kbarman_space_map(space, mapping, space->walk_since);
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

/* The walk is not made: no process needs it any more, or there is no time left. */
static void space_give_up_walk(struct kbarman_space *space)
{
	space->complete = false;
	space_end_walk(space);
}

static void space_begin_walk(struct kbarman_space *space)
{
	space->gap = false;
	space->complete = true;
	space->trimmed = false;
	space->walk_left = 0;
}

static bool batch_is_full(const struct kbarman_walk_batch *batch)
{
	return batch->nr == ARRAY_SIZE(batch->mappings) ||
	       sizeof(batch->names) - batch->bytes < PATH_MAX;
}

static void batch_add(struct kbarman_walk_batch *batch, struct vm_area_struct *vma)
{
	struct kbarman_mapping *mapping = &batch->mappings[batch->nr++];
	char *room = batch->names + batch->bytes;

	kbarman_mapping_init(mapping, vma, room);
	/* The name may stand at the end of the room. */
	mapping->name = memmove(room, mapping->name, mapping->length);
	batch->bytes += mapping->length;
}

/* True if the walk has reached the end. Context: mmap_lock held, and a spinlock. */
static bool space_walk_locked(struct kbarman_space *space, struct kbarman_walk_batch *batch)
{
	struct vm_area_struct *vma;
	unsigned int count = 0;

	batch->nr = 0;
	batch->bytes = 0;
	/* find_vma() works on kernels with a list of mappings and on kernels without one. */
	for (vma = find_vma(space->mm, space->walk_at); vma;
	     vma = find_vma(space->mm, space->walk_at)) {
		if (count++ >= WALK_LOCKED || batch_is_full(batch) ||
		    !kbarman_spaces_step_atomic(space->all))
			return false;
		space->walk_at = vma->vm_end;
		if (vma->vm_flags & VM_EXEC)
			batch_add(batch, vma);
	}
	return true;
}

/* 1: the walk has reached the end; 0: not yet; -EBUSY: mmap_lock is taken; -ESRCH: all is gone. */
static int space_walk_part(struct kbarman_space *space)
{
	struct kbarman_walk_batch *batch = space->all->batch;
	struct task_struct *task;
	unsigned int i;
	bool done, gone;

	task = space_lock(space, &gone);
	if (!task)
		return gone ? -ESRCH : -EBUSY;
	if (!space->walk_at)
		space_begin_walk(space);
	done = space_walk_locked(space, batch);
	space_unlock(space, task);
	for (i = 0; i < batch->nr; i++) {
		cond_resched();
		space_walk_mapping(space, &batch->mappings[i]);
	}
	return done;
}

void kbarman_space_walk(struct kbarman_space *space)
{
	struct kbarman_spaces *spaces = space->all;
	int state = 0, parts;

	for (parts = 0; !state && parts < WALK_SLICE; parts++) {
		if (READ_ONCE(spaces->hurry) && spaces->steps_left <= 0)
			break;
		state = space_walk_part(space);
	}
	space->busy = state == -EBUSY;
	if (state == -ESRCH) {
		/* A process was sampled, and its mappings are gone. */
		if (!list_empty(&space->processes))
			kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
		space_give_up_walk(space);
	} else if (state > 0) {
		space_count_left(space);
		space_end_walk(space);
		if (space->gap && !READ_ONCE(spaces->hurry)) {
			space->complete = false;
			kbarman_space_want_walk(space, kbarman_clock());
		}
	} else if (READ_ONCE(spaces->hurry) && (space->busy || spaces->steps_left <= 0)) {
		kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
		space_give_up_walk(space);
	} else if (space->busy) {
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
		/* No process needs the walk any more, or there is no time left. */
		if (READ_ONCE(spaces->hurry) &&
		    (list_empty(&space->processes) || spaces->steps_left <= 0)) {
			if (!list_empty(&space->processes))
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
