// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU idling.
 * Context of the probe: the idle task, which is never preempted; no sleeping, no printk.
 */
#include <linux/cpuidle.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/power.h>

#include "compat/tracepoint.h"
#include "record.h"
#include "session.h"
#include "sources.h"

/* The last state of this CPU that the ring holds. Written by this CPU, with interrupts off. */
enum told {
	TOLD_NOTHING,
	TOLD_OUT,
	TOLD_IN,
};

static DEFINE_PER_CPU(enum told, told);

/*
 * Linux patches the call sites of a tracepoint one after the other. So while the probe is attached
 * or detached, it may see the begin of a halt without its end, or the end without its begin. A
 * state that the ring already holds is not recorded again.
 */
static void on_cpu_idle(void *unused, unsigned int state, unsigned int cpu)
{
	bool entered = state != (unsigned int)PWR_EVENT_EXIT;
	enum told now = entered ? TOLD_IN : TOLD_OUT;
	struct kbarman_ring *ring = kbarman_this_ring();

	if (likely(ring && __this_cpu_read(told) != now)) {
		__this_cpu_write(told, now);
		kbarman_record_halt(ring, entered, entered ? min(state + 1, 255U) : 0);
	}
}

static struct kbarman_probe probes[] = {
	{ .name = "cpu_idle", .function = on_cpu_idle },
};

static int start(struct kbarman_session *session)
{
	int cpu;

	check_trace_callback_type_cpu_idle(on_cpu_idle);
	for_each_possible_cpu(cpu)
		per_cpu(told, cpu) = TOLD_NOTHING;
	return kbarman_probes_attach(probes, ARRAY_SIZE(probes));
}

static void stop(struct kbarman_session *session)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

/*
 * Records whether the CPU was halted when the recording began. On some machines this interrupt is
 * handled inside the halt, and the probe sees the end of the halt later. Other machines leave the
 * halt before they handle the interrupt, so the probe has already recorded its end.
 */
static void record_idle(void *unused)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	if (!ring || __this_cpu_read(told) != TOLD_NOTHING)
		return;
	__this_cpu_write(told, is_idle_task(current) ? TOLD_IN : TOLD_OUT);
	kbarman_record_halt(ring, is_idle_task(current), 0);
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	return smp_call_function_single(cpu, record_idle, NULL, true);
}

const struct kbarman_source kbarman_source_idle = {
	.name = "cpu_idle",
	.bit = KBARMAN_SOURCE_IDLE,
	.absent = KBARMAN_SOURCE_IDLE,
	.probes = probes,
	.nr_probes = ARRAY_SIZE(probes),
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
};
