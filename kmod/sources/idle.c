// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU idling.
 * Context of the probe: the idle task, which is never preempted; no sleeping, no printk.
 */
#include <linux/cpuidle.h>
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <trace/events/power.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

/*
 * Before the recording begins there is only a state to remember, for idle_here_begin(). Some kernels
 * call the probe with interrupts on: then that may have come in between. False: it has.
 */
static noinline notrace bool idle_remember(struct kbarman_cpu *here, enum kbarman_idle_told now)
{
	unsigned long flags;
	bool closed;

	raw_local_irq_save(flags);
	closed = READ_ONCE(here->ring.closed);
	if (closed)
		WRITE_ONCE(here->idle_told, now);
	raw_local_irq_restore(flags);
	return closed;
}

/*
 * Linux patches the call sites of a tracepoint one after the other. So while the probe is attached
 * or detached, it may see the begin of a halt without its end, or the end without its begin. A
 * state that the ring already holds is not recorded again.
 */
static notrace void on_cpu_idle(void *data, unsigned int state, unsigned int cpu)
{
	bool entered = state != (unsigned int)PWR_EVENT_EXIT;
	enum kbarman_idle_told now = entered ? KBARMAN_IDLE_TOLD_IN : KBARMAN_IDLE_TOLD_OUT;
	struct kbarman_cpu *here = kbarman_here(data);
	struct kbarman_ring *ring = kbarman_ring_of(here);

	if (unlikely(!ring || (READ_ONCE(ring->closed) && idle_remember(here, now)) ||
		     READ_ONCE(here->idle_told) == now))
		return;
	WRITE_ONCE(here->idle_told, now);
	kbarman_record_halt(ring, entered, entered ? min(state + 1, 255U) : 0);
}

static struct kbarman_probe idle_probes[] = {
	{ KBARMAN_PROBE(cpu_idle, on_cpu_idle) },
};

/* For the next recording: the probe remembers states before that begins. */
static void idle_end(struct kbarman_session *session)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu_ptr(session->each, cpu)->idle_told = KBARMAN_IDLE_TOLD_NOTHING;
}

/*
 * Records whether the CPU was halted when the recording began. On some machines this interrupt is
 * handled inside the halt, and the probe sees the end of the halt later. Other machines leave the
 * halt before they handle the interrupt, so the probe has already seen its end.
 */
static void idle_here_begin(struct kbarman_cpu *here)
{
	if (here->idle_told == KBARMAN_IDLE_TOLD_NOTHING)
		WRITE_ONCE(here->idle_told, is_idle_task(current) ? KBARMAN_IDLE_TOLD_IN :
								    KBARMAN_IDLE_TOLD_OUT);
	kbarman_record_halt(&here->ring, here->idle_told == KBARMAN_IDLE_TOLD_IN, 0);
}

const struct kbarman_source kbarman_source_idle = {
	.name = "cpu_idle",
	.bit = KBARMAN_SOURCE_IDLE,
	.absent = KBARMAN_SOURCE_IDLE,
	.probes = idle_probes,
	.nr_probes = ARRAY_SIZE(idle_probes),
	.end = idle_end,
	.here_begin = idle_here_begin,
};
