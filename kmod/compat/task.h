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

#endif /* KBARMAN_COMPAT_TASK_H */
