/* SPDX-License-Identifier: GPL-2.0-only */
/* In what a probe runs: a task, or what interrupts tasks. */
#ifndef KBARMAN_CONTEXT_H
#define KBARMAN_CONTEXT_H

#include <linux/preempt.h>

#include "uapi/barman_v2.h"

/* @task_id is the task that runs. An NMI counts as an interrupt. Context: any. */
static __always_inline enum bm_kbarman_context kbarman_context(u32 task_id)
{
	if (likely(in_task() && task_id))
		return BM_KBARMAN_IN_TASK;
	if (in_task())
		return BM_KBARMAN_IN_IDLE;
	return preempt_count() & (HARDIRQ_MASK | NMI_MASK) ? BM_KBARMAN_IN_IRQ :
							      BM_KBARMAN_IN_SOFTIRQ;
}

#endif /* KBARMAN_CONTEXT_H */
