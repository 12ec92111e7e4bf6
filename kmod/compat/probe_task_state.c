// SPDX-License-Identifier: GPL-2.0-only
/* 5.14 (2f064a59a11f) renamed a task's state, which was long and volatile. */
#include <linux/sched.h>

static __maybe_unused unsigned int compat(const struct task_struct *task)
{
	return READ_ONCE(task->__state);
}
