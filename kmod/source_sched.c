// SPDX-License-Identifier: GPL-2.0-only
/*
 * Task switches.
 * Context of the probe: rq lock held, interrupts off, no sleeping, no printk.
 */
#include <linux/mm_types.h>	/* 6.12: <trace/events/sched.h> needs this */
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/sched.h>

#include "callchain.h"
#include "compat/task.h"
#include "compat/tracepoint.h"
#include "record.h"
#include "session.h"
#include "sources.h"

#define FIRST_BLOCKS	256

/* 6.1 gave frozen tasks a state of their own. Linux shows this state as TASK_UNINTERRUPTIBLE. */
#ifdef TASK_FROZEN
#define FROZEN		TASK_FROZEN
#else
#define FROZEN		TASK_UNINTERRUPTIBLE
#endif

/* start() chooses one of three functions. */
static struct kbarman_probe probes[] = {
	{ .name = "sched_switch" },
};

static __always_inline enum bm_task_switch_reason switch_reason(bool preempt,
								unsigned int prev_state)
{
	return !preempt && prev_state ? BM_TASK_SWITCH_BLOCKED : BM_TASK_SWITCH_PREEMPTED;
}

/*
 * The state that is recorded. A task of PREEMPT_RT that waits for a lock has a state of its own,
 * which Linux shows as TASK_UNINTERRUPTIBLE.
 */
static __always_inline unsigned int told_state(unsigned int prev_state)
{
	if (prev_state & KBARMAN_TASK_RTLOCK_WAIT)
		return TASK_UNINTERRUPTIBLE;
	return prev_state;
}

static __always_inline void task_switch(bool preempt, struct task_struct *prev,
					struct task_struct *next, unsigned int prev_state)
{
	kbarman_record_switch(kbarman_own_ring(), next->pid, switch_reason(preempt, prev_state),
			      told_state(prev_state));
}

/*
 * The callbacks for chosen tasks and for call chains. Call chains are those of @prev, which is
 * still the current task. These callbacks are separate, so that the callback for all tasks need not
 * check what to do.
 */
static void task_switch_chosen(bool preempt, struct task_struct *prev, struct task_struct *next,
			       unsigned int prev_state)
{
	if (kbarman_wants(next->pid) || kbarman_wants(prev->pid))
		task_switch(preempt, prev, next, prev_state);
}

static void task_switch_chain(bool preempt, struct task_struct *prev, struct task_struct *next,
			      unsigned int prev_state)
{
	struct kbarman_ring *ring = kbarman_this_ring();
	struct kbarman_callchain *chain;

	if (!ring || !kbarman_wants(prev->pid) || is_idle_task(prev))
		chain = NULL;
	else
		chain = kbarman_callchain_here(probes[0].iterator);
	if (!chain) {
		task_switch_chosen(preempt, prev, next, prev_state);
		return;
	}
	kbarman_record_switch_chain(ring, next->pid, switch_reason(preempt, prev_state),
				    told_state(prev_state), &chain->head,
				    kbarman_callchain_bytes(chain));
	kbarman_callchain_put(chain);
}

#ifdef KBARMAN_HAVE_SWITCH_PREV_STATE
/*
 * 5.18: prev_state is the value on which __schedule() decided; prev->__state may have changed
 * since.
 */
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	task_switch(preempt, prev, next, prev_state);
}

static void on_sched_switch_chosen(void *unused, bool preempt, struct task_struct *prev,
				   struct task_struct *next, unsigned int prev_state)
{
	task_switch_chosen(preempt, prev, next, prev_state);
}

static void on_sched_switch_chain(void *unused, bool preempt, struct task_struct *prev,
				  struct task_struct *next, unsigned int prev_state)
{
	task_switch_chain(preempt, prev, next, prev_state);
}
#else
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next)
{
	task_switch(preempt, prev, next, kbarman_task_state(prev));
}

static void on_sched_switch_chosen(void *unused, bool preempt, struct task_struct *prev,
				   struct task_struct *next)
{
	task_switch_chosen(preempt, prev, next, kbarman_task_state(prev));
}

static void on_sched_switch_chain(void *unused, bool preempt, struct task_struct *prev,
				  struct task_struct *next)
{
	task_switch_chain(preempt, prev, next, kbarman_task_state(prev));
}
#endif

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

static int start(struct kbarman_session *session)
{
	check_trace_callback_type_sched_switch(on_sched_switch);
	check_trace_callback_type_sched_switch(on_sched_switch_chosen);
	check_trace_callback_type_sched_switch(on_sched_switch_chain);
	if (session->config.flags & KBARMAN_CONFIGURE_CHAIN_SWITCH)
		probes[0].function = on_sched_switch_chain;
	else if (session->tasks)
		probes[0].function = on_sched_switch_chosen;
	else
		probes[0].function = on_sched_switch;
	return kbarman_probes_attach(probes, ARRAY_SIZE(probes));
}

static void stop(struct kbarman_session *session)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

/*
 * Records the task that runs when the recording begins. The CPU writes this record itself, in an
 * interrupt: the interrupted task is the one that runs. If the ring already holds a task switch
 * since the probe was attached, this record is not needed. That switch is among the first
 * FIRST_BLOCKS blocks, unless more blocks were written while the sources were started.
 */
static void record_current(void *unused)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	if (ring && !kbarman_ring_holds(ring, BM_RECORD_TASK_SWITCH, FIRST_BLOCKS))
		kbarman_record_switch(ring, current->pid, BM_TASK_SWITCH_PREEMPTED, 0);
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	return smp_call_function_single(cpu, record_current, NULL, true);
}

const struct kbarman_source kbarman_source_sched = {
	.name = "sched_switch",
	.bit = KBARMAN_SOURCE_SCHED,
	.absent = KBARMAN_SOURCE_SCHED,
	.probes = probes,
	.nr_probes = ARRAY_SIZE(probes),
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
};
