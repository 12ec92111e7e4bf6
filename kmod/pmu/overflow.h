/* SPDX-License-Identifier: GPL-2.0-only */
/* Overflows of a session's counters, and other readings of the counters. */
#ifndef KBARMAN_PMU_OVERFLOW_H
#define KBARMAN_PMU_OVERFLOW_H

#include <linux/perf_event.h>

#include "here.h"

struct pt_regs;

/* The ring of @here, of this CPU, if its counters count; else NULL. Context: preemption off. */
static __always_inline struct kbarman_ring *kbarman_pmu_ring(struct kbarman_cpu *here)
{
	struct kbarman_ring *ring = kbarman_ring_of(here);

	/*
	 * Pairs with the release in pmu_here_begin(): the events and the entry in the header are
	 * complete.
	 */
	return likely(ring && smp_load_acquire(&here->counters.ready)) ? ring : NULL;
}

/* The handlers. The context of the event is the struct kbarman_cpu of its CPU. */
void kbarman_pmu_overflow(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs);
void kbarman_pmu_overflow_chain(struct perf_event *event, struct perf_sample_data *data,
				struct pt_regs *regs);

/*
 * Read the counters of @here, of this CPU, and write a sample without PC: what they counted since
 * they were last read belongs to the current task. Does nothing if the CPU has no counters.
 * Context: the CPU, preemption off, any level up to NMI.
 */
void kbarman_pmu_count(struct kbarman_cpu *here);

/*
 * What the counters of @here, of this CPU, have counted up to now is no part of the recording.
 * Context: the CPU, interrupts off; the counters are not ready.
 */
void kbarman_pmu_forget(struct kbarman_cpu *here);

/*
 * Resting counters of @here, of this CPU, that @mask has a bit for, count again. What they have
 * counted up to now is in no record. Context: the CPU, interrupts off.
 */
void kbarman_pmu_rouse(struct kbarman_cpu *here, u32 mask);

/*
 * Count and record that the first counter has stopped. Context: the CPU, preemption off, any level
 * up to NMI.
 */
void kbarman_pmu_tell_stop(struct kbarman_ring *ring, struct kbarman_counters *counters,
			   enum kbarman_stop reason);

/* True if perf has given up the event, because the PMU has no place for it. Context: any. */
static inline bool kbarman_pmu_has_lost_place(const struct perf_event *event)
{
	return READ_ONCE(event->state) <= PERF_EVENT_STATE_ERROR;
}

#endif /* KBARMAN_PMU_OVERFLOW_H */
