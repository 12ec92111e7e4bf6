// SPDX-License-Identifier: GPL-2.0-only
/*
 * Softirqs: when one is asked for, and when its action runs.
 *
 * Context of the probes: who asks has interrupts off, and may be a task. An action runs behind an
 * interrupt, or in a task that runs softirqs. On PREEMPT_RT it is always such a task, which may be
 * preempted but stays on its CPU.
 */
#include <linux/interrupt.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <trace/events/irq.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

static __always_inline void softirq_record(void *data, enum bm_kbarman_what what,
					   enum bm_kbarman_context context, unsigned int nr)
{
	struct kbarman_ring *ring = &kbarman_here(data)->ring;

	kbarman_record_detail(ring, current->pid, KBARMAN_SERIES_SOFTIRQS,
			      what == BM_KBARMAN_SOFTIRQ_ENTRY,
			      kbarman_detail(what, context, nr, 0));
}

static notrace void on_softirq_raise(void *data, unsigned int nr)
{
	softirq_record(data, BM_KBARMAN_SOFTIRQ_RAISE, kbarman_context(current->pid), nr);
}

static notrace void on_softirq_entry(void *data, unsigned int nr)
{
	preempt_disable_notrace();
	softirq_record(data, BM_KBARMAN_SOFTIRQ_ENTRY, BM_KBARMAN_IN_SOFTIRQ, nr);
	preempt_enable_notrace();
}

static notrace void on_softirq_exit(void *data, unsigned int nr)
{
	preempt_disable_notrace();
	softirq_record(data, BM_KBARMAN_SOFTIRQ_EXIT, BM_KBARMAN_IN_SOFTIRQ, nr);
	preempt_enable_notrace();
}

static struct kbarman_probe softirq_probes[] = {
	{ KBARMAN_PROBE(softirq_raise, on_softirq_raise) },
	{ KBARMAN_PROBE(softirq_entry, on_softirq_entry) },
	{ KBARMAN_PROBE(softirq_exit, on_softirq_exit) },
};

const struct kbarman_source kbarman_source_softirq = {
	.name = "softirq",
	.bit = KBARMAN_SOURCE_SOFTIRQ,
	.absent = KBARMAN_SOURCE_SOFTIRQ,
	.probes = softirq_probes,
	.nr_probes = ARRAY_SIZE(softirq_probes),
};
