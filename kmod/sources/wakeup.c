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
#include "sources/object.h"
#include "sources/sources.h"

static __always_inline struct kbarman_detail wake_detail(enum bm_kbarman_what what,
							 enum bm_kbarman_context context,
							 const struct task_struct *woken)
{
	return kbarman_detail(what, context, woken->pid, task_cpu(woken));
}

/* The ring may not be ready. */
static __always_inline void wake_record(struct kbarman_cpu *here, enum bm_kbarman_what what,
					const struct task_struct *woken)
{
	u32 waker = current->pid;

	kbarman_record_detail(&here->ring, waker, KBARMAN_SERIES_WAKEUPS, 1,
			      wake_detail(what, kbarman_context(waker), woken));
}

static noinline notrace void wake_long(struct kbarman_cpu *here, enum bm_kbarman_what what,
				       const struct task_struct *woken)
{
	u32 waker = current->pid;
	struct kbarman_object object;

	if (kbarman_object_of_waker(&object))
		kbarman_record_wakeup(&here->ring, waker,
				      wake_detail(what, kbarman_context(waker), woken), object);
	else
		wake_record(here, what, woken);
}

/* With the call of the task that wakes, or that a softirq interrupts, as far as there is one. */
static __always_inline void wake_record_object(struct kbarman_cpu *here, enum bm_kbarman_what what,
					       const struct task_struct *woken)
{
	u32 waker = current->pid;
	enum bm_kbarman_context context = kbarman_context(waker);
	struct kbarman_object object;

	static_assert(BM_KBARMAN_IN_TASK < BM_KBARMAN_IN_SOFTIRQ && BM_KBARMAN_IN_SOFTIRQ < BM_KBARMAN_IN_IRQ);

	if (context > BM_KBARMAN_IN_SOFTIRQ || !kbarman_has_object(0))
		wake_record(here, what, woken);
	else if (likely(kbarman_object_of_call(here, false, &object)))
		kbarman_record_wakeup(&here->ring, waker, wake_detail(what, context, woken), object);
	else
		wake_long(here, what, woken);
}

/* If one of the two is chosen: a wait has an end as well if its waker is not chosen. */
static __always_inline void wake_record_chosen(struct kbarman_cpu *here,
					       enum bm_kbarman_what what,
					       const struct task_struct *woken)
{
	const struct kbarman_session *session = here->session;

	if (!kbarman_wants(session, woken->pid) && !kbarman_wants(session, current->pid))
		return;
	if (session->config.flags & KBARMAN_CONFIGURE_OBJECTS)
		wake_record_object(here, what, woken);
	else
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

static notrace void on_waking_object(void *data, struct task_struct *woken)
{
	wake_record_object(kbarman_here(data), BM_KBARMAN_WAKING, woken);
}

static notrace void on_waking_new_object(void *data, struct task_struct *woken)
{
	wake_record_object(kbarman_here(data), BM_KBARMAN_WAKING_NEW, woken);
}

static notrace void on_waking_chosen(void *data, struct task_struct *woken)
{
	wake_record_chosen(kbarman_here(data), BM_KBARMAN_WAKING, woken);
}

static notrace void on_waking_new_chosen(void *data, struct task_struct *woken)
{
	wake_record_chosen(kbarman_here(data), BM_KBARMAN_WAKING_NEW, woken);
}

/* A session attaches two of them: those that check more cost more. */
enum { WAKE_ANY, WAKE_OBJECT, WAKE_CHOSEN, WAKE_GROUPS };

static struct kbarman_probe wake_probes[2 * WAKE_GROUPS] = {
	[2 * WAKE_ANY] = { KBARMAN_PROBE(sched_waking, on_waking) },
	{ KBARMAN_PROBE(sched_wakeup_new, on_waking_new) },
	[2 * WAKE_OBJECT] = { KBARMAN_PROBE(sched_waking, on_waking_object) },
	{ KBARMAN_PROBE(sched_wakeup_new, on_waking_new_object) },
	[2 * WAKE_CHOSEN] = { KBARMAN_PROBE(sched_waking, on_waking_chosen) },
	{ KBARMAN_PROBE(sched_wakeup_new, on_waking_new_chosen) },
};

static unsigned int wake_group(const struct kbarman_session *session)
{
	if (session->tasks)
		return WAKE_CHOSEN;
	return session->config.flags & KBARMAN_CONFIGURE_OBJECTS ? WAKE_OBJECT : WAKE_ANY;
}

const struct kbarman_source kbarman_source_wake = {
	.name = "wake",
	.bit = KBARMAN_SOURCE_WAKE,
	.absent = KBARMAN_SOURCE_WAKE,
	.probes = wake_probes,
	.nr_probes = ARRAY_SIZE(wake_probes),
	.nr_groups = WAKE_GROUPS,
	.group = wake_group,
};
