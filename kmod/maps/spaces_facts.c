// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/tables.h"
#include "maps/space.h"
#include "session.h"

/* Count a step for a whole fact. A fact that is dropped is counted as missed. */
static bool spaces_fact_step(struct kbarman_spaces *spaces)
{
	if (kbarman_spaces_step(spaces))
		return true;
	kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
	return false;
}

/*
 * Asks for a walk of @space unless all its mappings are known. If the walk is due, its first slice
 * is done now.
 */
static void space_know_all(struct kbarman_space *space, u64 since)
{
	if (space->complete && list_empty(&space->pending))
		return;
	kbarman_space_want_walk(space, since);
	if (kbarman_space_walk_is_due(space))
		kbarman_space_walk(space);
}

void kbarman_spaces_hurry(struct kbarman_spaces *spaces)
{
	WRITE_ONCE(spaces->hurry, true);
}

void kbarman_spaces_map(struct kbarman_spaces *spaces, struct mm_struct *mm, u32 task_id,
			const struct kbarman_mapping *mapping, u64 timestamp)
{
	struct kbarman_space *space = kbarman_space_find(spaces, mm);

	if (!spaces_fact_step(spaces))
		return;
	if (!space) {
		space = kbarman_space_get(spaces, mm);
		if (!space)
			return;
		/*
		 * If not all address spaces are known, a walk finds the earlier mappings at the
		 * first sample.
		 */
		space->complete = spaces->all_seen;
	}
	space->task_id = task_id;
	kbarman_space_map(space, mapping, timestamp);
}

void kbarman_spaces_fork(struct kbarman_spaces *spaces, struct mm_struct *parent,
			 struct mm_struct *child, u32 task_id, u64 timestamp)
{
	struct kbarman_space *from, *to;

	if (!spaces_fact_step(spaces))
		return;
	from = kbarman_space_find(spaces, parent);
	to = kbarman_space_get(spaces, child);
	if (to)
		to->task_id = task_id;
	/* A walk of all processes may have found the child's mappings already. */
	if (!from || !to || !list_empty(&to->by_age))
		return;
	/* fork() itself may have held mmap_lock before. The child may end before the next try. */
	if (!list_empty(&from->pending) && (kbarman_space_walk_is_due(from) || from->busy))
		kbarman_space_walk(from);
	kbarman_space_copy(to, from, timestamp);
}

/* @thread was sampled in @space, and belongs to @space from now on. */
static void thread_settle(struct kbarman_thread *thread, struct kbarman_space *space)
{
	thread->space = space;
	list_add_tail(&thread->node, &space->threads);
	if (thread->since && space->all->capture->collector)
		kbarman_tables_end_maps(space->all->capture, thread->since - 1, thread->task_id);
	if (thread->since && (!kbarman_space_is_complete(space) || space->trimmed))
		kbarman_thread_forget_rows(thread);
	kbarman_thread_add_rows(thread);
}

static bool thread_add(struct kbarman_space *space, u32 task_id, u64 timestamp)
{
	struct kbarman_thread *thread = kzalloc(sizeof(*thread), GFP_KERNEL);

	if (!thread || xa_err(xa_store(&space->all->threads, task_id, thread, GFP_KERNEL))) {
		kfree(thread);
		kbarman_spaces_out_of_memory(space->all);
		return false;
	}
	thread->task_id = task_id;
	thread->since = __test_and_set_bit(task_id, space->all->had_rows) ? timestamp : 0;
	thread_settle(thread, space);
	return true;
}

bool kbarman_spaces_sampled(struct kbarman_spaces *spaces, struct mm_struct *mm, u32 task_id,
			    u64 timestamp)
{
	struct kbarman_thread *thread = xa_load(&spaces->threads, task_id);
	struct kbarman_space *space;

	if (!spaces_fact_step(spaces))
		return true;
	space = kbarman_space_get(spaces, mm);
	if (!space)
		return false;
	space->task_id = task_id;
	space_know_all(space, timestamp);
	if (!thread)
		return thread_add(space, task_id, timestamp);
	/* A new image; or a new thread with an id whose former owner's exit was left out. */
	if (thread->ended)
		kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
	thread->ended = false;
	kbarman_thread_end_rows(thread);
	list_del(&thread->node);
	thread->since = timestamp;
	thread_settle(thread, space);
	return true;
}

/*
 * A thread whose walk was put off, because somebody held mmap_lock, has no rows yet. It stays until
 * the walk has been made, so that its samples have images.
 */
static void thread_exit(struct kbarman_thread *thread)
{
	if (list_empty(&thread->space->pending)) {
		kbarman_thread_free(thread);
	} else if (!thread->ended) {
		thread->ended = true;
		thread->space->nr_ended++;
	}
}

void kbarman_spaces_exit(struct kbarman_spaces *spaces, u32 task_id)
{
	struct kbarman_thread *thread = xa_load(&spaces->threads, task_id);

	if (thread)
		thread_exit(thread);
}

void kbarman_spaces_exits(struct kbarman_spaces *spaces, const unsigned long *live)
{
	struct kbarman_thread *thread;
	unsigned long task_id;

	xa_for_each(&spaces->threads, task_id, thread) {
		if (!test_bit(task_id, live))
			thread_exit(thread);
		cond_resched();
	}
}
