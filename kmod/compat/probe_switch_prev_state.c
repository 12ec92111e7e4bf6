// SPDX-License-Identifier: GPL-2.0-only
/* 5.18 (fa2c3254d7cf) added the previous task's state as the last argument of sched_switch. */
#include <linux/mm_types.h>	/* 6.12: <trace/events/sched.h> needs this */
#include <trace/events/sched.h>

static void probe(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		  unsigned int prev_state)
{
}

static __maybe_unused void compat(void)
{
	check_trace_callback_type_sched_switch(probe);
}
