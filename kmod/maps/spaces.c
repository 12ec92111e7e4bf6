// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "capture/capture.h"
#include "capture/tables.h"
#include "here.h"
#include "maps/code_bounds.h"
#include "maps/queue.h"
#include "maps/space.h"
#include "maps/spaces.h"
#include "ring/clock.h"

#define MIN_GRAVES	64
#define LOOK_PAUSE	(HZ / 10)	/* jiffies from one look for dead address spaces to the
					 * next */

static struct hlist_head *space_bucket(struct kbarman_spaces *spaces,
				       const struct mm_struct *mm)
{
	return &spaces->spaces[hash_ptr(mm, KBARMAN_SPACE_BITS)];
}

static struct kbarman_space *space_find(struct kbarman_spaces *spaces, const struct mm_struct *mm)
{
	struct kbarman_space *space;

	hlist_for_each_entry(space, space_bucket(spaces, mm), node)
		if (space->mm == mm)
			return space;
	return NULL;
}

/* NULL: there is no memory. */
static struct kbarman_space *space_get(struct kbarman_spaces *spaces, struct mm_struct *mm)
{
	struct kbarman_space *space = space_find(spaces, mm);

	if (space)
		return space;
	space = kzalloc(sizeof(*space), GFP_KERNEL);
	if (!space) {
		kbarman_spaces_out_of_memory(spaces);
		return NULL;
	}
	mmgrab(mm);
	space->all = spaces;
	space->mm = mm;
	space->mappings = RB_ROOT;
	space->walk_due = get_jiffies_64();
	INIT_LIST_HEAD(&space->by_age);
	INIT_LIST_HEAD(&space->processes);
	INIT_LIST_HEAD(&space->pending);
	list_add_tail(&space->size, &spaces->sizes[0]);
	hlist_add_head(&space->node, space_bucket(spaces, mm));
	spaces->nr_spaces++;
	return space;
}

static void space_free(struct kbarman_space *space)
{
	struct kbarman_process *process, *next;

	if (!list_empty(&space->pending) && !list_empty(&space->processes))
		kbarman_header_miss(space->all->capture, KBARMAN_MISSED_QUEUE, 1);
	kbarman_code_bounds_forget(space->all->bounds, space->mm);
	kbarman_space_free_mappings(space);
	list_for_each_entry_safe(process, next, &space->processes, node) {
		kbarman_process_free(process);
		cond_resched();
	}
	hlist_del(&space->node);
	list_del(&space->size);
	list_del(&space->pending);
	space->all->nr_spaces--;
	mmdrop(space->mm);
	kfree(space);
}

/*
 * Finds a thread that still has memory, of every process that is recorded. Takes references to the
 * threads. Returns their number, at most @room.
 */
static unsigned int spaces_collect_threads(const struct kbarman_spaces *spaces,
					   struct task_struct **found, unsigned int room)
{
	struct task_struct *process, *thread;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process(process) {
		if (count == room)
			break;
		/* Other bits of `flags` may change at this moment; PF_KTHREAD does not. */
		if (data_race(process->flags) & PF_KTHREAD ||
		    !kbarman_wants(spaces->session, process->pid))
			continue;
		for_each_thread(process, thread) {
			if (!READ_ONCE(thread->mm))
				continue;
			get_task_struct(thread);
			found[count++] = thread;
			break;
		}
	}
	rcu_read_unlock();
	return count;
}

static unsigned int spaces_count_processes(void)
{
	struct task_struct *process;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process(process)
		count++;
	rcu_read_unlock();
	return count;
}

/* The memory of @task with a reference (mm_count), or NULL. */
static struct mm_struct *task_grab_mm(struct task_struct *task)
{
	struct mm_struct *mm;

	task_lock(task);
	mm = data_race(task->flags) & PF_KTHREAD ? NULL : task->mm;
	if (mm)
		mmgrab(mm);
	task_unlock(task);
	return mm;
}

/*
 * Makes an entry for the address space of every process that is recorded. With @walk_them, asks for
 * walks of them; without, each one is walked when a process is sampled there.
 */
static void spaces_collect(struct kbarman_spaces *spaces, u64 timestamp, bool walk_them)
{
	unsigned int i, count, room = spaces_count_processes();
	struct task_struct **found;

	/* A process that is created meanwhile is a copy of one that is counted. */
	room += room / 8 + 64;
	found = kvmalloc_array(room, sizeof(*found), GFP_KERNEL);
	if (!found) {
		kbarman_spaces_out_of_memory(spaces);
		return;
	}
	count = spaces_collect_threads(spaces, found, room);
	spaces->all_seen = count < room;
	for (i = 0; i < count; i++) {
		struct mm_struct *mm = task_grab_mm(found[i]);
		struct kbarman_space *space = mm ? space_get(spaces, mm) : NULL;

		if (space)
			space->task_id = found[i]->pid;
		if (space && walk_them)
			kbarman_space_want_walk(space, timestamp);
		if (mm)
			mmdrop(mm);
		put_task_struct(found[i]);
		cond_resched();
	}
	kvfree(found);
}

void kbarman_spaces_walk_all(struct kbarman_spaces *spaces)
{
	spaces_collect(spaces, 0, true);
}

void kbarman_spaces_distrust(struct kbarman_spaces *spaces, struct mm_struct *mm, u64 timestamp)
{
	struct kbarman_space *space = space_get(spaces, mm);

	if (space)
		kbarman_space_distrust(space, timestamp);
	else
		spaces->all_seen = false;
}

void kbarman_spaces_distrust_all(struct kbarman_spaces *spaces, u64 timestamp)
{
	struct kbarman_space *space;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spaces->spaces); i++) {
		hlist_for_each_entry(space, &spaces->spaces[i], node)
			kbarman_space_distrust(space, timestamp);
		cond_resched();
	}
	spaces_collect(spaces, timestamp, false);
}

static void spaces_look_again_later(struct kbarman_spaces *spaces)
{
	spaces->look_at = spaces->nr_spaces +
			  max(spaces->nr_spaces / 4, (unsigned int)MIN_GRAVES);
	spaces->look_at_bytes = spaces->nr_bytes / 2 + KBARMAN_MAX_BYTES / 2;
	spaces->looked = get_jiffies_64();
}

bool kbarman_spaces_condemn(struct kbarman_spaces *spaces)
{
	struct kbarman_space *space;
	unsigned int i;

	if (spaces->nr_spaces < spaces->look_at &&
	    (spaces->nr_bytes < spaces->look_at_bytes ||
	     time_before64(get_jiffies_64(), spaces->looked + LOOK_PAUSE)))
		return false;
	for (i = 0; i < ARRAY_SIZE(spaces->spaces); i++) {
		hlist_for_each_entry(space, &spaces->spaces[i], node)
			space->unused = !atomic_read(&space->mm->mm_users);
		cond_resched();
	}
	/*
	 * Tasks that used the address space have reported their facts before they dropped mm_users.
	 * Pairs with the atomic_dec_and_test() of mmput().
	 */
	smp_rmb();
	return true;
}

static void spaces_free_some(struct kbarman_spaces *spaces, bool all)
{
	struct hlist_node *next;
	struct kbarman_space *space;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spaces->spaces); i++) {
		hlist_for_each_entry_safe(space, next, &spaces->spaces[i], node)
			if (all || space->unused)
				space_free(space);
		cond_resched();
	}
}

void kbarman_spaces_free_unused(struct kbarman_spaces *spaces)
{
	spaces_free_some(spaces, false);
	spaces_look_again_later(spaces);
}

/* ---- what is reported ---- */

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
	if (kbarman_space_is_complete(space))
		return;
	kbarman_space_want_walk(space, since);
	if (kbarman_space_walk_is_due(space))
		kbarman_space_walk(space);
}

void kbarman_spaces_hurry(struct kbarman_spaces *spaces)
{
	WRITE_ONCE(spaces->hurry, true);
}

/*
 * The mapping replaces what was at its addresses. After kbarman_spaces_walk_all(), the registry
 * assumes that all new mappings are reported here, until kbarman_spaces_distrust() says otherwise.
 */
static void spaces_map(struct kbarman_spaces *spaces, const struct kbarman_fact *fact)
{
	struct kbarman_space *space = space_find(spaces, fact->mm);

	if (!spaces_fact_step(spaces))
		return;
	if (!space) {
		space = space_get(spaces, fact->mm);
		if (!space)
			return;
		/*
		 * If not all address spaces are known, a walk finds the earlier mappings at the
		 * first sample.
		 */
		space->complete = spaces->all_seen;
	}
	space->task_id = fact->task_id;
	kbarman_space_map(space, &fact->mapping, fact->timestamp);
}

/* The new process is a copy of its parent. */
static void spaces_fork(struct kbarman_spaces *spaces, const struct kbarman_fact *fact)
{
	struct kbarman_space *from, *to;

	if (!spaces_fact_step(spaces))
		return;
	from = space_find(spaces, fact->parent);
	to = space_get(spaces, fact->mm);
	if (to)
		to->task_id = fact->task_id;
	/* A walk of all processes may have found the child's mappings already. */
	if (!from || !to || !list_empty(&to->by_age))
		return;
	/* fork() itself may have held mmap_lock before. The child may end before the next try. */
	if (!list_empty(&from->pending) && (kbarman_space_walk_is_due(from) || from->busy))
		kbarman_space_walk(from);
	kbarman_space_copy(to, from, fact->timestamp);
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

/* False: there was no memory to remember the process. */
static bool spaces_sampled(struct kbarman_spaces *spaces, const struct kbarman_fact *fact)
{
	struct kbarman_process *process;
	struct kbarman_space *space;

	if (!spaces_fact_step(spaces))
		return true;
	space = space_get(spaces, fact->mm);
	if (!space)
		return false;
	space->task_id = fact->task_id;
	space_know_all(space, fact->timestamp);
	/* Behind the walk, which frees the processes that have ended: one may have had this id. */
	process = xa_load(&spaces->processes, fact->task_id);
	if (process) {
		/* A new image; or a new process with the id of one whose exit was left out. */
		if (process->ended)
			kbarman_header_miss(spaces->capture, KBARMAN_MISSED_QUEUE, 1);
		process->ended = false;
		kbarman_process_end_rows(process);
		list_del(&process->node);
	} else {
		process = process_new(spaces, fact->task_id);
	}
	if (process)
		process_settle(process, space, fact->timestamp);
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

static void spaces_exit(struct kbarman_spaces *spaces, u32 id)
{
	struct kbarman_process *process = xa_load(&spaces->processes, id);

	if (process)
		process_exit(process);
}

bool kbarman_spaces_take(struct kbarman_spaces *spaces, const struct kbarman_fact *fact)
{
	switch (fact->kind) {
	case KBARMAN_FACT_MAP:
		spaces_map(spaces, fact);
		break;
	case KBARMAN_FACT_FORK:
		spaces_fork(spaces, fact);
		break;
	case KBARMAN_FACT_SAMPLED:
		return spaces_sampled(spaces, fact);
	case KBARMAN_FACT_EXIT:
		spaces_exit(spaces, fact->task_id);
		break;
	default:
		break;
	}
	return true;
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

/* ---- the registry ---- */

struct kbarman_spaces *kbarman_spaces_create(struct kbarman_session *session,
					     struct kbarman_code_bounds *bounds)
{
	struct kbarman_spaces *spaces = vzalloc(sizeof(*spaces));
	unsigned int i;

	if (!spaces)
		return NULL;
	spaces->batch = vmalloc(sizeof(*spaces->batch));
	if (!spaces->batch) {
		vfree(spaces);
		return NULL;
	}
	for (i = 0; i < ARRAY_SIZE(spaces->sizes); i++)
		INIT_LIST_HEAD(&spaces->sizes[i]);
	INIT_LIST_HEAD(&spaces->to_walk);
	xa_init(&spaces->processes);
	get_random_bytes(&spaces->salt, sizeof(spaces->salt));
	spaces->session = session;
	spaces->capture = session->capture;
	spaces->bounds = bounds;
	spaces->steps_left = KBARMAN_HURRY_STEPS;
	spaces->tries_left = KBARMAN_HURRY_TRIES;
	spaces_look_again_later(spaces);
	return spaces;
}

void kbarman_spaces_destroy(struct kbarman_spaces *spaces)
{
	if (!spaces)
		return;
	spaces_free_some(spaces, true);
	xa_destroy(&spaces->processes);
	vfree(spaces->batch);
	vfree(spaces);
}
