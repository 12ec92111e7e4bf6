// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wakeups: who woke whom.
 *
 * Context of the probes: preemption off, and nearly always pi_lock of the woken task held with
 * interrupts off, in whatever woke: task, softirq, interrupt; no sleeping, no printk. Only a task
 * that wakes itself, because it has changed its mind about sleeping, does so with interrupts on.
 */
#include <linux/mm_types.h>	/* 6.12: <trace/events/sched.h> needs this */
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

/* The ring may not be ready. */
static __always_inline void wake_record(struct kbarman_cpu *here, enum bm_kbarman_what what,
					const struct task_struct *woken)
{
	u32 waker = current->pid;

	kbarman_record_detail(&here->ring, waker, KBARMAN_SERIES_WAKEUPS, 1,
			      kbarman_detail(what, kbarman_context(waker), woken->pid,
					     task_cpu(woken)));
}

/* If one of the two is chosen: a wait has an end as well if its waker is not chosen. */
static __always_inline void wake_record_chosen(struct kbarman_cpu *here,
					       enum bm_kbarman_what what,
					       const struct task_struct *woken)
{
	if (kbarman_wants(here->session, woken->pid) ||
	    kbarman_wants(here->session, current->pid))
		wake_record(here, what, woken);
}

static notrace void on_waking(void *data, struct task_struct *woken)
{
	wake_record(kbarman_here(data), BM_KBARMAN_WAKING, woken);
}

static notrace void on_waking_new(void *data, struct task_struct *woken)
{
	wake_record(kbarman_here(data), BM_KBARMAN_WAKING_NEW, woken);
}

static notrace void on_waking_chosen(void *data, struct task_struct *woken)
{
	wake_record_chosen(kbarman_here(data), BM_KBARMAN_WAKING, woken);
}

static notrace void on_waking_new_chosen(void *data, struct task_struct *woken)
{
	wake_record_chosen(kbarman_here(data), BM_KBARMAN_WAKING_NEW, woken);
}

/* A session attaches the first two or the last two. */
static struct kbarman_probe wake_probes[] = {
	{ KBARMAN_PROBE(sched_waking, on_waking) },
	{ KBARMAN_PROBE(sched_wakeup_new, on_waking_new) },
	{ KBARMAN_PROBE(sched_waking, on_waking_chosen) },
	{ KBARMAN_PROBE(sched_wakeup_new, on_waking_new_chosen) },
};

static unsigned int wake_group(const struct kbarman_session *session)
{
	return session->tasks ? 1 : 0;
}

const struct kbarman_source kbarman_source_wake = {
	.name = "wake",
	.bit = KBARMAN_SOURCE_WAKE,
	.absent = KBARMAN_SOURCE_WAKE,
	.probes = wake_probes,
	.nr_probes = ARRAY_SIZE(wake_probes),
	.nr_groups = 2,
	.group = wake_group,
};
