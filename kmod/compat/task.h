/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_TASK_H
#define KBARMAN_COMPAT_TASK_H

#include <linux/sched.h>

static inline unsigned int kbarman_task_state(const struct task_struct *task)
{
#ifdef KBARMAN_HAVE_TASK_STATE
	return READ_ONCE(task->__state);
#else
	return READ_ONCE(task->state);
#endif
}

/* The state in which PREEMPT_RT waits for its locks, if that is one of its own (since 5.15). */
#if defined(CONFIG_PREEMPT_RT) && defined(TASK_RTLOCK_WAIT)
#define KBARMAN_TASK_RTLOCK_WAIT	TASK_RTLOCK_WAIT
#else
#define KBARMAN_TASK_RTLOCK_WAIT	0
#endif

/*
 * The arguments of a probe of sched_switch, and the state of the previous task. 5.18 gives the
 * value on which __schedule() decided; prev->__state may have changed since.
 */
#ifdef KBARMAN_HAVE_SWITCH_PREV_STATE
#define KBARMAN_SWITCH_ARGUMENTS	void *data, bool preempt, struct task_struct *prev, \
					struct task_struct *next, unsigned int prev_state
#define KBARMAN_SWITCH_STATE		prev_state
#else
#define KBARMAN_SWITCH_ARGUMENTS	void *data, bool preempt, struct task_struct *prev, \
					struct task_struct *next
#define KBARMAN_SWITCH_STATE		kbarman_task_state(prev)
#endif

/* Those of a probe of sched_process_exit. */
#ifdef KBARMAN_HAVE_EXIT_GROUP_DEAD
#define KBARMAN_EXIT_ARGUMENTS	void *data, struct task_struct *task, bool group_dead
#else
#define KBARMAN_EXIT_ARGUMENTS	void *data, struct task_struct *task
#endif

#endif /* KBARMAN_COMPAT_TASK_H */
