// SPDX-License-Identifier: GPL-2.0-only
/* 6.16 added an argument to sched_process_exit: whether the thread is the last one of its group. */
#include <linux/mm_types.h>
#include <trace/events/sched.h>

static void probe(void *data, struct task_struct *task, bool group_dead)
{
}

static __maybe_unused void compat(void)
{
	check_trace_callback_type_sched_process_exit(probe);
}
