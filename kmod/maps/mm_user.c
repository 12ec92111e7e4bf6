// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm_types.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "maps/mm_user.h"

/* Kernel threads borrow memory, and do not take the lock to give it back. */
static bool task_lock_if_user(struct task_struct *task, const struct mm_struct *mm)
{
	if (READ_ONCE(task->mm) != mm || data_race(task->flags) & PF_KTHREAD)
		return false;
	task_lock(task);
	if (task->mm == mm) {
		__release(&task->alloc_lock);	/* for sparse, which sees no pair here */
		return true;
	}
	task_unlock(task);
	return false;
}

/* All threads of a process that have memory have the same. */
static struct task_struct *process_lock_user(struct task_struct *process,
					     const struct mm_struct *mm)
{
	struct task_struct *thread;

	for_each_thread(process, thread) {
		if (task_lock_if_user(thread, mm))
			return thread;
		if (READ_ONCE(thread->mm))
			return NULL;
	}
	return NULL;
}

struct task_struct *kbarman_mm_lock_user(struct mm_struct *mm, u32 task_id)
{
	struct task_struct *process, *found = NULL;

	if (!atomic_read(&mm->mm_users))
		return NULL;
	rcu_read_lock();
	process = pid_task(find_pid_ns(task_id, &init_pid_ns), PIDTYPE_PID);
	if (process)
		found = process_lock_user(process, mm);
	if (!found)
		for_each_process(process) {
			found = process_lock_user(process, mm);
			if (found)
				break;
		}
	rcu_read_unlock();
	return found;
}

void kbarman_mm_unlock_user(struct task_struct *task)
{
	__acquire(&task->alloc_lock);	/* as above */
	task_unlock(task);
}
