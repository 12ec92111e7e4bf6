/* SPDX-License-Identifier: GPL-2.0-only */
/* What a probe asks: the ring of this CPU, who is recorded, and in what the probe runs. */
#ifndef KBARMAN_HERE_H
#define KBARMAN_HERE_H

#include <linux/preempt.h>

#include "session.h"

/*
 * The argument of a probe that has a session's struct kbarman_cpu of every CPU. The rings are at
 * the same address.
 */
static inline void *kbarman_probe_data(const struct kbarman_session *session)
{
	static_assert(offsetof(struct kbarman_cpu, ring) == 0);

	return (void *)(__force unsigned long)session->each;
}

/* This CPU's part of the session whose kbarman_probe_data() is @data. Context: preemption off. */
static __always_inline struct kbarman_cpu *kbarman_here(void *data)
{
	/* By way of a number: per-CPU pointers may be pointers of another kind. */
	return this_cpu_ptr((struct kbarman_cpu __percpu *)(__force unsigned long)data);
}

/*
 * The ring of @here, or NULL if the CPU has none. A CPU of session.cpus has a ring, unless it came
 * online later and there was no memory for one.
 */
static __always_inline struct kbarman_ring *kbarman_ring_of(struct kbarman_cpu *here)
{
	return likely(kbarman_ring_ready(&here->ring)) ? &here->ring : NULL;
}

/* True if @session records thread @task_id. Context: any. */
static __always_inline bool kbarman_wants(const struct kbarman_session *session, u32 task_id)
{
	const unsigned long *tasks = session->tasks;

	return likely(!tasks) || test_bit(task_id, tasks);
}

/*
 * In what a probe runs: a task, or what interrupts tasks. @task_id is the task that runs. An NMI
 * counts as an interrupt. Context: any.
 */
static __always_inline enum bm_kbarman_context kbarman_context(u32 task_id)
{
	if (likely(in_task() && task_id))
		return BM_KBARMAN_IN_TASK;
	if (in_task())
		return BM_KBARMAN_IN_IDLE;
	return preempt_count() & (HARDIRQ_MASK | NMI_MASK) ? BM_KBARMAN_IN_IRQ :
							      BM_KBARMAN_IN_SOFTIRQ;
}

#endif /* KBARMAN_HERE_H */
