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

#endif /* KBARMAN_COMPAT_TASK_H */
