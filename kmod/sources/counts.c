// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples without a PC. The module reads the session's counters at every task switch, or
 * periodically, or both. What the counters counted since the last reading belongs to the current
 * task. So the values of a CPU's samples add up to what its counters counted, and the values of a
 * task's samples to what the task did. Overflows (pmu/pmu.c) read the same counters, and their
 * samples are part of these sums.
 *
 * A CPU's last sample is written when its counters have stopped (pmu/pmu.c), or before the CPU
 * goes offline.
 */
#include <linux/err.h>
#include <linux/mm_types.h>	/* 6.12: for <trace/events/sched.h> */
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "capture/header.h"
#include "compat/task.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "pmu/overflow.h"
#include "sources/sources.h"

/* ---- at switches ---- */

/* Context: rq lock held, interrupts off. The outgoing task is still the current one. */
static void on_sched_switch_count(KBARMAN_SWITCH_ARGUMENTS)
{
	kbarman_pmu_count(kbarman_here(data));
}

/* Runs before the probe that records the switch: the sample of the outgoing task comes first. */
static struct kbarman_probe counts_probes[] = {
	{ KBARMAN_PROBE(sched_switch, on_sched_switch_count), .early = true },
};

/* ---- periodically ---- */

/* Context: interrupt. */
static void on_counts_tick(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	kbarman_pmu_count(event->overflow_handler_context);
}

static struct perf_event *counts_create_ticker(u64 period, int cpu, struct kbarman_cpu *percpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.pinned = 1,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, on_counts_tick, percpu);
}

/* ---- the source ---- */

static bool counts_at_switches(const struct kbarman_session *session)
{
	return session->config.flags & KBARMAN_CONFIGURE_COUNT_SWITCH;
}

static int counts_start(struct kbarman_session *session)
{
	bool switches = counts_at_switches(session);
	int error = 0;

	if (!switches && !session->config.count_ns)
		return 0;
	if (switches)
		error = kbarman_probes_attach(counts_probes, ARRAY_SIZE(counts_probes),
					      kbarman_probe_data(session));
	WRITE_ONCE(session->counting, !error);
	return error;
}

static void counts_begin(struct kbarman_session *session)
{
	if (session->counting)
		kbarman_header_fact(session->capture, "counts", "%s%llu",
				    counts_at_switches(session) ? "switch," : "",
				    session->config.count_ns);
}

static void counts_stop(struct kbarman_session *session)
{
	WRITE_ONCE(session->counting, false);
	if (counts_at_switches(session))
		kbarman_probes_detach(counts_probes, ARRAY_SIZE(counts_probes),
				      kbarman_probe_data(session));
}

static int counts_cpu_prepare(struct kbarman_session *session, int cpu,
			      struct kbarman_start *report)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);
	struct perf_event *ticker;

	if (!session->config.count_ns)
		return 0;
	ticker = counts_create_ticker(session->config.count_ns, cpu, percpu);
	if (IS_ERR(ticker))
		return PTR_ERR(ticker);
	percpu->ticker = ticker;
	return 0;
}

static void counts_cpu_stop(struct kbarman_session *session, int cpu)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);

	if (percpu->ticker)
		perf_event_release_kernel(percpu->ticker);
	percpu->ticker = NULL;
}

static void counts_cpu_goes(struct kbarman_session *session)
{
	if (READ_ONCE(session->counting))
		kbarman_pmu_count(this_cpu_ptr(session->each));
}

const struct kbarman_source kbarman_source_counts = {
	.name = "counts",
	.probes = counts_probes,
	.nr_probes = ARRAY_SIZE(counts_probes),
	.start = counts_start,
	.begin = counts_begin,
	.stop = counts_stop,
	.cpu_prepare = counts_cpu_prepare,
	.cpu_stop = counts_cpu_stop,
	.cpu_goes = counts_cpu_goes,
};
