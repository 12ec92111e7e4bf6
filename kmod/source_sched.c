// SPDX-License-Identifier: GPL-2.0-only
/*
 * Task switches.
 * Context of the probe: rq lock held, interrupts off, no sleeping, no printk.
 */
#include <linux/mm_types.h>	/* 6.12: for <trace/events/sched.h> */
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/sched.h>

#include "compat/tracepoint.h"
#include "record.h"
#include "session.h"

static __always_inline void task_switch(bool preempt, struct task_struct *prev,
					struct task_struct *next, unsigned int prev_state)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	if (likely(ring) && (kbarman_wants(next->pid) || kbarman_wants(prev->pid)))
		kbarman_record_switch(ring, next->pid,
				      !preempt && prev_state ? BM_TASK_SWITCH_BLOCKED :
							       BM_TASK_SWITCH_PREEMPTED,
				      prev_state);
}

#ifdef KBARMAN_HAVE_SWITCH_PREV_STATE
/* 5.18: prev_state is what __schedule() decided by; prev->__state may have changed. */
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	task_switch(preempt, prev, next, prev_state);
}
#else
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next)
{
	task_switch(preempt, prev, next, READ_ONCE(prev->__state));
}
#endif

static struct kbarman_probe probes[] = {
	{ .name = "sched_switch", .function = on_sched_switch },
};

static int start(struct kbarman_session *session)
{
	check_trace_callback_type_sched_switch(on_sched_switch);
	return kbarman_probes_attach(probes, ARRAY_SIZE(probes));
}

static void stop(struct kbarman_session *session)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

/*
 * Who runs as the recording begins, written by the CPU itself. The task that the
 * interrupt came in on is the one that runs, whoever asked.
 */
static void record_current(void *unused)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	if (ring)
		kbarman_record_switch(ring, current->pid, BM_TASK_SWITCH_PREEMPTED, 0);
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	return smp_call_function_single(cpu, record_current, NULL, true);
}

const struct kbarman_source kbarman_source_sched = {
	.name = "sched_switch",
	.bit = KBARMAN_SOURCE_SCHED,
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
};
