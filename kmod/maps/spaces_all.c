// SPDX-License-Identifier: GPL-2.0-only
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

#include "capture/header.h"
#include "here.h"
#include "maps/code_bounds.h"
#include "maps/mm_user.h"
#include "maps/space.h"
#include "ring/clock.h"

#define MIN_GRAVES	64
#define LOOK_PAUSE	(HZ / 10)	/* jiffies from one look for dead address spaces to the
					 * next */

static struct hlist_head *space_bucket(struct kbarman_spaces *spaces,
				       const struct mm_struct *mm)
{
	return &spaces->spaces[hash_ptr(mm, KBARMAN_SPACE_BITS)];
}

struct kbarman_space *kbarman_space_find(struct kbarman_spaces *spaces, const struct mm_struct *mm)
{
	struct kbarman_space *space;

	hlist_for_each_entry(space, space_bucket(spaces, mm), node)
		if (space->mm == mm)
			return space;
	return NULL;
}

struct kbarman_space *kbarman_space_get(struct kbarman_spaces *spaces, struct mm_struct *mm)
{
	struct kbarman_space *space = kbarman_space_find(spaces, mm);

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

void kbarman_process_free(struct kbarman_process *process)
{
	kbarman_process_end_rows(process);
	xa_erase(&process->space->all->processes, process->id);
	list_del(&process->node);
	kfree(process);
}

void kbarman_space_free_ended(struct kbarman_space *space)
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
		struct mm_struct *mm = kbarman_mm_grab(found[i]);
		struct kbarman_space *space = mm ? kbarman_space_get(spaces, mm) : NULL;

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
	struct kbarman_space *space = kbarman_space_get(spaces, mm);

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
