// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples. Every CPU that records has a set of counters (events.c). An overflow of the first
 * counter makes a sample (overflow.c).
 */
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "capture/header.h"
#include "pmu/cpu.h"
#include "pmu/events.h"
#include "pmu/overflow.h"
#include "pmu/pmu.h"
#include "pmu/turns.h"
#include "ring/clock.h"

#define SOFTWARE_COUNTER	0x80000000U	/* in counter_types, ORed with PERF_COUNT_SW_* */
#define TRACEPOINT_COUNTER	0xc0000000U	/* ORed with the tracepoint's number */
#define LOOK_EVERY		HZ		/* jiffies from one check for events without a place
						 * on the PMU to the next */

/* ---- counters that have lost their place ---- */

/* The CPU checks its own first counter. Context: interrupts off. */
static void counters_tell_if_lost(void *data)
{
	struct kbarman_cpu *here = kbarman_here(data);
	struct kbarman_counters *counters = &here->counters;
	struct kbarman_ring *ring = kbarman_pmu_ring(here);

	if (ring && kbarman_pmu_has_lost_place(counters->events[0]) &&
	    counters->told != KBARMAN_STOPPED_ERROR + 1)
		kbarman_pmu_tell_stop(ring, counters, KBARMAN_STOPPED_ERROR);
}

/* @cpu is interrupted only if its first counter has lost its place. */
static void counters_look_at(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	unsigned int i;

	for (i = 0; i < counters->nr; i++) {
		/* What takes turns is enabled again in its next turn. */
		if (!kbarman_pmu_has_lost_place(counters->events[i]) || counters->turn[i])
			continue;
		if (!i)
			smp_call_function_single(cpu, counters_tell_if_lost,
						 kbarman_probe_data(session), true);
		/* The PMU may have a place for the event again. */
		perf_event_enable(counters->events[i]);
	}
}

static void counters_look(struct work_struct *work)
{
	struct kbarman_session *session = container_of(to_delayed_work(work),
						       struct kbarman_session, counters_look);
	int cpu;

	/* Only try the lock: its holder may be waiting for this work to end. */
	if (mutex_trylock(&session->lock)) {
		for_each_online_cpu(cpu)
			counters_look_at(session, cpu);
		mutex_unlock(&session->lock);
	}
	schedule_delayed_work(&session->counters_look, LOOK_EVERY);
}

/* ---- the entry in the header ---- */

/*
 * The Barman type of @event, which was created for @wanted. perf may have changed the event's own
 * type to that of another PMU.
 */
static u32 entry_counter_type(const struct perf_event *event, const struct kbarman_event *wanted)
{
	if (wanted->attr.type == PERF_TYPE_SOFTWARE)
		return SOFTWARE_COUNTER | wanted->attr.config;
	if (wanted->attr.type == PERF_TYPE_TRACEPOINT)
		return TRACEPOINT_COUNTER | wanted->attr.config;
	if (event->pmu->task_ctx_nr != perf_hw_context)
		return wanted->attr.config;
	/*
	 * The event's number in the hardware, even if the event was requested by a generic number.
	 */
#if defined(CONFIG_ARM64) || defined(CONFIG_ARM)
	return event->hw.config_base & 0xffff;
#elif defined(CONFIG_X86)
	return event->hw.config & 0xffff;
#else
	return wanted->attr.config;
#endif
}

/* The CPU counts, but none of the first counter's events that take samples. */
static void entry_tell_unsampled(struct kbarman_session *session, int cpu,
				 const struct kbarman_counters *counters)
{
	char key[32];

	if (!session->events[0].attr.sample_period || !counters->nr ||
	    is_sampling_event(counters->events[0]))
		return;
	snprintf(key, sizeof(key), "unsampled.%d.0", cpu);
	kbarman_header_fact(session->capture, key, "%s", session->events[0].name);
}

/* The optional events that the CPU does not count, also not by another event of the same name. */
static void entry_tell_uncounted(struct kbarman_session *session, int cpu,
				 const struct kbarman_counters *counters)
{
	unsigned int i;
	char key[32];

	for (i = 0; i < session->config.nr_events; i = kbarman_pmu_next_counter(session, i)) {
		const struct kbarman_event *event = &session->events[i];

		if (!(event->flags & KBARMAN_EVENT_OPTIONAL) ||
		    kbarman_pmu_counts_name(session, counters, event->name))
			continue;
		snprintf(key, sizeof(key), "uncounted.%d.%u", cpu, i);
		kbarman_header_fact(session->capture, key, "%s", event->name);
	}
}

static void entry_publish(struct kbarman_session *session, int cpu,
			  struct kbarman_counters *counters)
{
	struct bm_protocol_header_pmu_settings settings = {
		.configuration_timestamp = kbarman_clock(),
		.num_counters = counters->nr,
	};
	char key[32];
	unsigned int i;

	counters->values = counters->nr;
	for (i = 0; i < counters->nr; i++) {
		const struct kbarman_event *event = &session->events[counters->wanted[i]];

		settings.counter_types[i] = entry_counter_type(counters->events[i], event);
		snprintf(key, sizeof(key), "counter.%d.%u", cpu, i);
		kbarman_header_fact(session->capture, key, "%s", event->name);
		snprintf(key, sizeof(key), "turn.%d.%u", cpu, i);
		if (counters->turn[i])
			kbarman_header_fact(session->capture, key, "%u", counters->turn[i]);
		if (event->flags & KBARMAN_EVENT_FALLBACK) {
			session->fallback = true;
			kbarman_header_fact(session->capture, "fallback", "%s", event->name);
		}
	}
	entry_tell_uncounted(session, cpu, counters);
	entry_tell_unsampled(session, cpu, counters);
	kbarman_cpu_identify(cpu, &settings);
	kbarman_header_set_pmu(session->capture, cpu, &settings);
	counters->published = true;
}

/* ---- the source ---- */

static void counters_reset(struct kbarman_counters *counters)
{
	int reason, i;

	counters->published = false;
	counters->values = 0;
	counters->unsettled = false;
	for (i = 0; i < BM_MAX_PMU_COUNTERS; i++) {
		local64_set(&counters->unrecorded[i], 0);
		counters->counted[i] = 0;
	}
	local_set(&counters->unreadable, 0);
	counters->told = 0;
	counters->bookmarked = 0;
	for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++)
		local_set(&counters->stops[reason], 0);
}

static void pmu_begin(struct kbarman_session *session)
{
	int cpu;

	session->fallback = false;
	for_each_possible_cpu(cpu)
		counters_reset(&per_cpu_ptr(session->each, cpu)->counters);
	INIT_DEFERRABLE_WORK(&session->counters_look, counters_look);
	schedule_delayed_work(&session->counters_look, LOOK_EVERY);
}

static int pmu_cpu_prepare(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	int error;

	/* A CPU that comes later has what the others have. */
	if (!session->running) {
		error = kbarman_pmu_check_frequency(session);
		if (error) {
			report->cpu = ~0U;
			return error;
		}
		kbarman_turns_start(session);
	}
	return kbarman_pmu_create_events(session, cpu, report);
}

static void pmu_cpu_start(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;

	if (!counters->published)
		entry_publish(session, cpu, counters);
}

static void pmu_here_begin(struct kbarman_cpu *here)
{
	/* A CPU that counts nothing takes no samples. */
	if (!here->counters.nr)
		return;
	kbarman_pmu_forget(here);
	/*
	 * Pairs with the acquire in kbarman_pmu_ring(): a sample has as many deltas as the entry
	 * says.
	 */
	smp_store_release(&here->counters.ready, true);
}

/* Context: interrupts off, the counters have stopped. */
static void counters_take_last(void *data)
{
	struct kbarman_cpu *here = kbarman_here(data);

	if (here->session->counting)
		kbarman_pmu_count(here);
	WRITE_ONCE(here->counters.ready, false);
}

static void pmu_cpu_last(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;

	/* The first counter may have lost its place since the last look. */
	if (counters->nr && kbarman_pmu_has_lost_place(counters->events[0]))
		smp_call_function_single(cpu, counters_tell_if_lost, kbarman_probe_data(session),
					 true);
	/* A CPU that is offline has written its last sample in counts_cpu_goes(). */
	if (READ_ONCE(counters->ready)) {
		kbarman_pmu_disable_events(counters);
		smp_call_function_single(cpu, counters_take_last, kbarman_probe_data(session),
					 true);
	}
}

static void pmu_cpu_stop(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;

	kbarman_pmu_release_events(counters);
	/* Events of a start that fails have counted nothing that anybody waits for. */
	if (!session->running)
		counters->unsettled = false;
}

/* The CPU's events still exist, but are removed soon and do not count from here on. */
static void pmu_cpu_goes(struct kbarman_session *session)
{
	struct kbarman_cpu *here = this_cpu_ptr(session->each);
	struct kbarman_ring *ring = kbarman_pmu_ring(here);

	if (!ring)
		return;
	WRITE_ONCE(here->counters.ready, false);
	kbarman_pmu_tell_stop(ring, &here->counters, KBARMAN_STOPPED_OFFLINE);
}

static void pmu_stop(struct kbarman_session *session)
{
	cancel_delayed_work_sync(&session->counters_look);
}

/* What the counters counted, by perf, and how much of it is in no record of their CPU. */
static void counters_tell_counted(struct kbarman_session *session, int cpu)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	unsigned int i;
	char key[32];

	kbarman_pmu_settle(counters);
	for (i = 0; i < counters->values; i++) {
		snprintf(key, sizeof(key), "counted.%d.%u", cpu, i);
		kbarman_header_fact(session->capture, key, "%llu,%llu", counters->counted[i],
				    (u64)local64_read(&counters->unrecorded[i]));
	}
}

static void pmu_tell(struct kbarman_session *session)
{
	int cpu;

	for_each_possible_cpu(cpu)
		counters_tell_counted(session, cpu);
	kbarman_turns_tell(session);
}

const struct kbarman_source kbarman_source_pmu = {
	.name = "pmu",
	.bit = KBARMAN_SOURCE_PMU,
	.begin = pmu_begin,
	.stop = pmu_stop,
	.tell = pmu_tell,
	.cpu_prepare = pmu_cpu_prepare,
	.cpu_start = pmu_cpu_start,
	.here_begin = pmu_here_begin,
	.cpu_last = pmu_cpu_last,
	.cpu_stop = pmu_cpu_stop,
	.cpu_goes = pmu_cpu_goes,
};
