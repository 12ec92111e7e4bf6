// SPDX-License-Identifier: GPL-2.0-only
/*
 * Task switches.
 * Context of the probe: rq lock held, interrupts off, no sleeping, no printk.
 */
#include <linux/mm_types.h>	/* 6.12: <trace/events/sched.h> needs this */
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "capture/header.h"
#include "compat/task.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/object.h"
#include "sources/sources.h"
#include "stacks/callchain.h"

/* 6.1 gave frozen tasks a state of their own. Linux shows this state as TASK_UNINTERRUPTIBLE. */
#ifdef TASK_FROZEN
#define FROZEN		TASK_FROZEN
#else
#define FROZEN		TASK_UNINTERRUPTIBLE
#endif

static __always_inline enum bm_task_switch_reason sched_reason(bool preempt,
							       unsigned int prev_state)
{
	return !preempt && prev_state ? BM_TASK_SWITCH_BLOCKED : BM_TASK_SWITCH_PREEMPTED;
}

/*
 * The state that is recorded, which has 16 bits. A task of PREEMPT_RT that waits for a lock has a
 * state of its own, which Linux shows as TASK_UNINTERRUPTIBLE.
 */
static __always_inline unsigned int sched_told_state(unsigned int prev_state)
{
	if (prev_state & KBARMAN_TASK_RTLOCK_WAIT)
		return TASK_UNINTERRUPTIBLE;
	return TASK_STATE_MAX > 0x10000 ? (u16)prev_state : prev_state;
}

static __always_inline void sched_record(struct kbarman_ring *ring, bool preempt,
					 struct task_struct *next, unsigned int prev_state)
{
	kbarman_record_switch(ring, next->pid, sched_reason(preempt, prev_state),
			      sched_told_state(prev_state));
}

/*
 * The probes are `notrace`: the function tracer would have its instruction in each of them.
 *
 * Of all tasks. The cheapest callback: @data is the rings themselves, and what is recorded is no
 * question. The ring may not be ready.
 */
static __always_inline void sched_switch_any(void *data, bool preempt, struct task_struct *next,
					     unsigned int prev_state)
{
	sched_record(&kbarman_here(data)->ring, preempt, next, prev_state);
}

static __always_inline void sched_record_object(struct kbarman_cpu *here, struct task_struct *next,
						unsigned int prev_state, struct kbarman_object object)
{
	kbarman_record_switch_object(&here->ring, next->pid, BM_TASK_SWITCH_BLOCKED,
				     sched_told_state(prev_state), object);
}

/* The task has blocked, and is not one of Linux. */
static noinline notrace void sched_switch_long(void *data, struct task_struct *next,
					       unsigned int prev_state)
{
	struct kbarman_cpu *here = kbarman_here(data);

	if (kbarman_has_object(prev_state))
		sched_record_object(here, next, prev_state, kbarman_object_here(here->session));
	else
		sched_record(&here->ring, false, next, prev_state);
}

/*
 * The cheapest first: the task did not block, its object is known without a call, all others. The last way
 * is a tail call, so the probe need not save a register. Where @faults are recorded the task may wait in one,
 * which the last way alone knows.
 */
static __always_inline void sched_switch_object(void *data, bool preempt, struct task_struct *next,
						unsigned int prev_state, bool faults)
{
	struct kbarman_object object;
	struct kbarman_cpu *here;

	if (sched_reason(preempt, prev_state) == BM_TASK_SWITCH_PREEMPTED || kbarman_is_kernels()) {
		sched_switch_any(data, preempt, next, prev_state);
		return;
	}
	here = kbarman_here(data);
	if (likely(!faults && kbarman_object_short(here, &object)))
		sched_record_object(here, next, prev_state, object);
	else
		sched_switch_long(data, next, prev_state);
}

static void sched_switch_chosen(void *data, bool preempt, struct task_struct *prev,
				struct task_struct *next, unsigned int prev_state)
{
	const struct kbarman_session *session = kbarman_here(data)->session;

	if (!kbarman_wants(session, next->pid) && !kbarman_wants(session, prev->pid))
		return;
	if (!(session->config.flags & KBARMAN_CONFIGURE_OBJECTS) || !kbarman_wants(session, prev->pid))
		sched_switch_any(data, preempt, next, prev_state);
	else
		sched_switch_object(data, preempt, next, prev_state,
				    session->config.sources & KBARMAN_SOURCE_FAULTS);
}

static const void *sched_iterator(void);

/* With the call chain of @prev, which is still the current task. */
static void sched_switch_chain(void *data, bool preempt, struct task_struct *prev,
			       struct task_struct *next, unsigned int prev_state)
{
	struct kbarman_cpu *here = kbarman_here(data);
	struct kbarman_ring *ring = kbarman_ring_of(here);
	const enum bm_task_switch_reason reason = sched_reason(preempt, prev_state);
	struct kbarman_callchain *chain;
	struct kbarman_object object;
	bool has_object;

	if (!ring || !kbarman_wants(here->session, prev->pid) || is_idle_task(prev))
		chain = NULL;
	else
		chain = kbarman_callchain_here(here, sched_iterator());
	if (!chain) {
		sched_switch_chosen(data, preempt, prev, next, prev_state);
		return;
	}
	has_object = here->session->config.flags & KBARMAN_CONFIGURE_OBJECTS &&
		     reason == BM_TASK_SWITCH_BLOCKED && kbarman_has_object(prev_state);
	if (has_object)
		object = kbarman_object_here(here->session);
	kbarman_record_switch_chain(ring, next->pid, reason, sched_told_state(prev_state), &chain->head,
				    kbarman_callchain_bytes(chain), has_object ? &object : NULL);
	kbarman_callchain_put(here, chain);
}

static notrace void on_sched_switch(KBARMAN_SWITCH_ARGUMENTS)
{
	sched_switch_any(data, preempt, next, KBARMAN_SWITCH_STATE);
}

static notrace void on_sched_switch_object(KBARMAN_SWITCH_ARGUMENTS)
{
	sched_switch_object(data, preempt, next, KBARMAN_SWITCH_STATE, false);
}

static notrace void on_sched_switch_chosen(KBARMAN_SWITCH_ARGUMENTS)
{
	sched_switch_chosen(data, preempt, prev, next, KBARMAN_SWITCH_STATE);
}

static notrace void on_sched_switch_chain(KBARMAN_SWITCH_ARGUMENTS)
{
	sched_switch_chain(data, preempt, prev, next, KBARMAN_SWITCH_STATE);
}

/* A session attaches one of them: those that check more cost more. */
enum { SCHED_ANY, SCHED_OBJECT, SCHED_CHOSEN, SCHED_CHAIN, SCHED_PROBES };

static struct kbarman_probe sched_probes[SCHED_PROBES] = {
	[SCHED_ANY] = { KBARMAN_PROBE(sched_switch, on_sched_switch) },
	[SCHED_OBJECT] = { KBARMAN_PROBE(sched_switch, on_sched_switch_object) },
	[SCHED_CHOSEN] = { KBARMAN_PROBE(sched_switch, on_sched_switch_chosen) },
	[SCHED_CHAIN] = { KBARMAN_PROBE(sched_switch, on_sched_switch_chain) },
};

/* The kernel's function that calls the probe. */
static const void *sched_iterator(void)
{
	return sched_probes[SCHED_CHAIN].tracepoint->iterator;
}

static unsigned int sched_group(const struct kbarman_session *session)
{
	if (session->config.flags & KBARMAN_CONFIGURE_CHAIN_SWITCH)
		return SCHED_CHAIN;
	if (session->tasks || session->config.sources & KBARMAN_SOURCE_FAULTS)
		return SCHED_CHOSEN;
	return session->config.flags & KBARMAN_CONFIGURE_OBJECTS ? SCHED_OBJECT : SCHED_ANY;
}

/*
 * Records what the bits of this kernel's task states mean. Each entry is a letter of ps(1) and a
 * mask of bits; the first mask whose bits are all set applies. Other kernels use other bits.
 */
void kbarman_sched_tell_states(struct kbarman_capture *capture)
{
	kbarman_header_fact(capture, "states", "I%x,D%x,D%x,S%x,T%x,t%x,P%x,X%x",
			    TASK_IDLE, TASK_UNINTERRUPTIBLE, FROZEN, TASK_INTERRUPTIBLE,
			    __TASK_STOPPED, __TASK_TRACED, TASK_PARKED, TASK_DEAD);
}

/*
 * Records the task that runs when the recording begins, if it is recorded at all: the interrupted
 * one.
 */
static void sched_here_begin(struct kbarman_cpu *here)
{
	if (kbarman_wants(here->session, current->pid))
		kbarman_record_first(&here->ring, current->pid);
}

const struct kbarman_source kbarman_source_sched = {
	.name = "sched_switch",
	.bit = KBARMAN_SOURCE_SCHED,
	.absent = KBARMAN_SOURCE_SCHED,
	.probes = sched_probes,
	.nr_probes = ARRAY_SIZE(sched_probes),
	.nr_groups = SCHED_PROBES,
	.group = sched_group,
	.here_begin = sched_here_begin,
};
