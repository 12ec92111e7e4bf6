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

/* @process was sampled in @space at @since, and belongs to @space from now on. */
static void process_settle(struct kbarman_process *process, struct kbarman_space *space, u64 since)
{
	struct kbarman_spaces *spaces = space->all;

	process->space = space;
	process->since = __test_and_set_bit(process->id, spaces->had_rows) ? since : 0;
	list_add_tail(&process->node, &space->processes);
	if (process->since && spaces->capture->collector)
		kbarman_tables_end_maps(spaces->capture, since - 1, process->id);
	if (process->since && (!kbarman_space_is_complete(space) || space->trimmed))
		kbarman_process_hide_rows(process);
	kbarman_process_add_rows(process);
}

/* The process @id, which was not known; NULL if there is no memory. */
static struct kbarman_process *process_new(struct kbarman_spaces *spaces, u32 id)
{
	struct kbarman_process *process = kzalloc(sizeof(*process), GFP_KERNEL);

	if (!process || xa_err(xa_store(&spaces->processes, id, process, GFP_KERNEL))) {
		kfree(process);
		kbarman_spaces_out_of_memory(spaces);
		return NULL;
	}
	process->id = id;
	return process;
}

bool kbarman_spaces_sampled(struct kbarman_spaces *spaces, struct mm_struct *mm, u32 id,
			    u64 timestamp)
{
	struct kbarman_process *process;
	struct kbarman_space *space;

	if (!spaces_fact_step(spaces))
		return true;
	space = kbarman_space_get(spaces, mm);
	if (!space)
		return false;
	space->task_id = id;
	space_know_all(space, timestamp);
	/* Behind the walk, which frees the processes that have ended: one may have had this id. */
	process = xa_load(&spaces->processes, id);
	if (process) {
		/* A new image; or a new process with the id of one whose exit was left out. */
		if (process->ended)
			kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
		process->ended = false;
		kbarman_process_end_rows(process);
		list_del(&process->node);
	} else {
		process = process_new(spaces, id);
	}
	if (process)
		process_settle(process, space, timestamp);
	return process;
}

/*
 * A process whose walk was put off, because somebody held mmap_lock, has no rows yet. It stays until
 * the walk has been made, so that its samples have images: another process may have the memory, too.
 */
static void process_exit(struct kbarman_process *process)
{
	if (list_empty(&process->space->pending)) {
		kbarman_process_free(process);
	} else if (!process->ended) {
		process->ended = true;
		process->space->nr_ended++;
	}
}

void kbarman_spaces_exit(struct kbarman_spaces *spaces, u32 id)
{
	struct kbarman_process *process = xa_load(&spaces->processes, id);

	if (process)
		process_exit(process);
}

void kbarman_spaces_exits(struct kbarman_spaces *spaces, const unsigned long *live)
{
	struct kbarman_process *process;
	unsigned long id;

	xa_for_each(&spaces->processes, id, process) {
		if (!test_bit(id, live))
			process_exit(process);
		cond_resched();
	}
}
