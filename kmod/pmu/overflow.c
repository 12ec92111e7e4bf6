// SPDX-License-Identifier: GPL-2.0-only
/*
 * An overflow of the first counter makes a sample, for which all counters of the set are read.
 *
 * The deltas of a sample cover the time since the last overflow on its CPU. Overflows in tasks that
 * are not recorded are read too, so that their counts do not go to the next recorded task.
 *
 * The first counter may stop while the others go on: when Linux throttles it, when it loses its
 * place on the PMU, or when its CPU goes offline. Each stop is counted and recorded in the ring:
 * the value of a series is the reason of the stop until the counter overflows again.
 *
 * Context of the overflow handlers: the CPU of the event, in an interrupt or an NMI; for software
 * events any context with preemption off. They take no lock, allocate nothing, print nothing, and
 * never disable the event (kernels 6.16 to 6.17 hang then).
 */
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/local64.h>

#include "compat/compiler.h"
#include "here.h"
#include "maps/maps.h"
#include "pmu/overflow.h"
#include "ring/clock.h"
#include "ring/record.h"
#include "stacks/callchain.h"

#define UNREADABLE		U64_MAX		/* value of a delta */
#define THROTTLED		U64_MAX		/* hw.interrupts of a throttled event: perf's
						 * MAX_INTERRUPTS */

/* ---- a counter that stops ---- */

static void counters_bookmark_stop(struct kbarman_ring *ring, struct kbarman_counters *counters,
				   enum kbarman_stop reason)
{
	static const char *const texts[KBARMAN_STOP_REASONS] = {
		[KBARMAN_STOPPED_THROTTLED] = "counter throttled",
		[KBARMAN_STOPPED_ERROR] = "counter lost its place on the PMU",
		[KBARMAN_STOPPED_OFFLINE] = "CPU goes offline",
	};
	const struct kbarman_mark mark = {
		.type = KBARMAN_MARK_BOOKMARK,
		.text_bytes = strlen(texts[reason]),
	};
	u64 now = kbarman_clock();

	/*
	 * At most one bookmark a second: a counter may be throttled at every tick. The series has
	 * all of the stops.
	 */
	if (counters->bookmarked && now - counters->bookmarked < kbarman_clock_hz())
		return;
	counters->bookmarked = now;
	kbarman_record_annotation(ring, 0, &mark, texts[reason]);
}

/* Context: the CPU, preemption off, any level up to NMI. */
noinline void kbarman_pmu_tell_stop(struct kbarman_ring *ring, struct kbarman_counters *counters,
				    enum kbarman_stop reason)
{
	local_inc(&counters->stops[reason]);
	counters->told = reason + 1;
	kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED, reason + 1);
	counters_bookmark_stop(ring, counters, reason);
}

/* The first counter has overflowed, so it counted. Context: as tell_stop(). */
static noinline void counters_tell_overflow(struct kbarman_ring *ring,
					    struct kbarman_counters *counters, bool throttled)
{
	if (throttled) {
		kbarman_pmu_tell_stop(ring, counters, KBARMAN_STOPPED_THROTTLED);
		return;
	}
	counters->told = 0;
	kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED, 0);
}

/* ---- reading ---- */

/* Only an event that counts on this CPU can be read here. */
static bool event_is_readable(const struct perf_event *event)
{
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE ||
	    READ_ONCE(event->oncpu) != smp_processor_id())
		return false;
	/*
	 * hw.idx is the number of a hardware counter. Events of other PMUs use this memory for
	 * something else.
	 */
	return event->pmu->task_ctx_nr != perf_hw_context || READ_ONCE(event->hw.idx) >= 0;
}

/*
 * Returns the counts since the last read. If an NMI reads the counter in between, the exchange
 * fails and the counter is read again. So the result is never negative, and nothing is counted
 * twice.
 */
static u64 counters_read_one(struct kbarman_counters *counters, unsigned int i)
{
	struct perf_event *event = counters->events[i];
	bool readable = event_is_readable(event);
	u64 before, now;

	if (unlikely(!readable && !(READ_ONCE(counters->ended) >> i & 1))) {
		local_inc(&counters->unreadable);
		return UNREADABLE;
	}
	do {
		before = local64_read(&counters->last[i]);
		if (likely(readable))
			event->pmu->read(event);
		now = local64_read(&event->count);
	} while (unlikely(local64_cmpxchg(&counters->last[i], before, now) != before));
	return now - before;
}

/* Read all counters into @deltas. Returns the number of counters. */
static __always_inline unsigned int counters_read(struct kbarman_cpu *here, u64 *deltas)
{
	struct kbarman_counters *counters = &here->counters;
	unsigned int i, nr = counters->values;
	unsigned long flags;
	u32 resting;

	/*
	 * On older kernels pmu_cpu_stop() can remove the events by an interrupt, even during the
	 * overflow of a software event.
	 */
	raw_local_irq_save(flags);
	resting = READ_ONCE(counters->resting);
	for (i = 0; i < nr; i++)
		deltas[i] = unlikely(resting >> i & 1) ? UNREADABLE :
							 counters_read_one(counters, i);
	raw_local_irq_restore(flags);
	return nr;
}

/*
 * @deltas were read, and are in no record: it was lost, or would be of a task that is not recorded.
 * Context: as of the handlers.
 */
static noinline void counters_unrecorded(struct kbarman_counters *counters, const u64 *deltas,
					 unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (deltas[i] != UNREADABLE)
			local64_add(deltas[i], &counters->unrecorded[i]);
}

/* ---- samples ---- */

/* False if the sample is lost. */
static __always_inline bool counters_sample(struct kbarman_cpu *here, struct pt_regs *regs,
					    const u64 *deltas, unsigned int nr, bool with_chain)
{
	const struct kbarman_session *session = here->session;
	struct kbarman_callchain *chain = NULL;
	struct kbarman_ring *ring = &here->ring;
	unsigned long pc = 0;
	bool written;

	if (user_mode(regs)) {
		pc = instruction_pointer(regs);
		/*
		 * Before the record is made, so that no mapping row is stamped later than its
		 * sample.
		 */
		kbarman_maps_sampled(session);
	} else if (session->kernel_addresses) {
		pc = instruction_pointer(regs);
	}
	if (with_chain)
		chain = kbarman_callchain_sample(here, regs);
	if (with_chain && chain)
		written = kbarman_record_sample(ring, current->pid, pc, deltas, nr, &chain->head,
						kbarman_callchain_bytes(chain));
	else
		written = kbarman_record_sample(ring, current->pid, pc, deltas, nr, NULL, 0);
	if (with_chain)
		kbarman_callchain_put(here, chain);
	return written;
}

static __always_inline void counters_overflow(struct perf_event *event, struct pt_regs *regs,
					      bool with_chain)
{
	struct kbarman_cpu *here = event->overflow_handler_context;
	struct kbarman_ring *ring = kbarman_pmu_ring(here);
	u64 deltas[BM_MAX_PMU_COUNTERS] KBARMAN_UNINITIALIZED;
	unsigned int nr;
	bool throttled;

	if (unlikely(!ring))
		return;
	nr = counters_read(here, deltas);
	/*
	 * perf has already decided to throttle the event, and stops the event when this handler
	 * returns.
	 */
	throttled = READ_ONCE(event->hw.interrupts) == THROTTLED;
	if (!kbarman_wants(here->session, current->pid) ||
	    unlikely(!counters_sample(here, regs, deltas, nr, with_chain)))
		counters_unrecorded(&here->counters, deltas, nr);
	if (unlikely(throttled || here->counters.told))
		counters_tell_overflow(ring, &here->counters, throttled);
}

void kbarman_pmu_count(struct kbarman_cpu *here)
{
	struct kbarman_ring *ring = kbarman_pmu_ring(here);
	u64 deltas[BM_MAX_PMU_COUNTERS] KBARMAN_UNINITIALIZED;
	unsigned int nr;

	if (unlikely(!ring))
		return;
	nr = counters_read(here, deltas);
	if (!kbarman_wants(here->session, current->pid) ||
	    unlikely(!kbarman_record_counts(ring, current->pid, deltas, nr)))
		counters_unrecorded(&here->counters, deltas, nr);
}

void kbarman_pmu_forget(struct kbarman_cpu *here)
{
	struct kbarman_counters *counters = &here->counters;
	unsigned int i;

	for (i = 0; i < counters->nr; i++)
		if (!(counters->resting >> i & 1) && event_is_readable(counters->events[i]))
			counters->counted[i] -= counters_read_one(counters, i);
}

void kbarman_pmu_rouse(struct kbarman_cpu *here, u32 mask)
{
	struct kbarman_counters *counters = &here->counters;
	u64 deltas[BM_MAX_PMU_COUNTERS];
	unsigned int i;

	if (!kbarman_pmu_ring(here))
		return;
	for (i = 0; i < counters->values; i++)
		deltas[i] = mask >> i & 1 ? counters_read_one(counters, i) : UNREADABLE;
	WRITE_ONCE(counters->resting, counters->resting & ~mask);
	counters_unrecorded(counters, deltas, counters->values);
}

void kbarman_pmu_overflow(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	counters_overflow(event, regs, false);
}

void kbarman_pmu_overflow_chain(struct perf_event *event, struct perf_sample_data *data,
				struct pt_regs *regs)
{
	counters_overflow(event, regs, true);
}
