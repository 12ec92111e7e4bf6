// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU idling.
 * Context of the probe: the idle task, interrupts off, no sleeping, no printk.
 */
#include <linux/cpuidle.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/power.h>

#include "compat/tracepoint.h"
#include "record.h"
#include "session.h"

static void on_cpu_idle(void *unused, unsigned int state, unsigned int cpu)
{
	struct kbarman_ring *ring;
	bool entered = state != (unsigned int)PWR_EVENT_EXIT;

	preempt_disable_notrace();
	ring = kbarman_this_ring();
	if (likely(ring))
		kbarman_record_halt(ring, entered, entered ? min(state + 1, 255U) : 0);
	preempt_enable_no_resched_notrace();
}

static struct kbarman_probe probes[] = {
	{ .name = "cpu_idle", .function = on_cpu_idle },
};

static int start(struct kbarman_session *session)
{
	check_trace_callback_type_cpu_idle(on_cpu_idle);
	return kbarman_probes_attach(probes, ARRAY_SIZE(probes));
}

static void stop(struct kbarman_session *session)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

/*
 * Whether the CPU idled as the recording began. That it takes this call says that it
 * does not any more: where it interrupts the idle task, the CPU has been halted up
 * to now, and the record that says so is the one that it left.
 */
static void record_idle(void *unused)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	if (ring)
		kbarman_record_halt(ring, false, 0);
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	return smp_call_function_single(cpu, record_idle, NULL, true);
}

const struct kbarman_source kbarman_source_idle = {
	.name = "cpu_idle",
	.bit = KBARMAN_SOURCE_IDLE,
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
};
