// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples without a PC. The module reads the session's counters at every task switch, or
 * periodically, or both. What the counters counted since the last reading belongs to the current
 * task. So the values of a CPU's samples add up to what its counters counted, and the values of a
 * task's samples to what the task did. Overflows (source_pmu.c) read the same counters, and their
 * samples are part of these sums.
 *
 * A CPU's last sample is written when the session stops, or before the CPU goes offline.
 */
#include <linux/err.h>
#include <linux/mm_types.h>	/* 6.12: for <trace/events/sched.h> */
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/sched.h>

#include "compat/tracepoint.h"
#include "header.h"
#include "session.h"
#include "source_pmu.h"
#include "sources.h"

static bool counting;		/* between start() and stop() */
static DEFINE_PER_CPU(struct perf_event *, tickers);

/* ---- at switches ---- */

/* Context: rq lock held, interrupts off. The outgoing task is still the current one. */
#ifdef KBARMAN_HAVE_SWITCH_PREV_STATE
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
#else
static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next)
#endif
{
	kbarman_pmu_count();
}

/* Runs before the probe that records the switch: the sample of the outgoing task comes first. */
static struct kbarman_probe probes[] = {
	{ .name = "sched_switch", .function = on_sched_switch, .early = true },
};

/* ---- periodically ---- */

/* Context: interrupt. */
static void on_tick(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	kbarman_pmu_count();
}

static struct perf_event *create_ticker(u64 period, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.pinned = 1,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, on_tick, NULL);
}

/* ---- the source ---- */

static int start(struct kbarman_session *session)
{
	bool switches = session->config.flags & KBARMAN_CONFIGURE_COUNT_SWITCH;
	u64 period = session->config.count_ns;

	if (!switches && !period)
		return 0;
	check_trace_callback_type_sched_switch(on_sched_switch);
	kbarman_header_fact(session->capture, "counts", "%s%llu", switches ? "switch," : "",
			    period);
	WRITE_ONCE(counting, true);
	return switches ? kbarman_probes_attach(probes, ARRAY_SIZE(probes)) : 0;
}

static void stop(struct kbarman_session *session)
{
	WRITE_ONCE(counting, false);
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	struct perf_event *ticker;

	if (!session->config.count_ns)
		return 0;
	ticker = create_ticker(session->config.count_ns, cpu);
	if (IS_ERR(ticker))
		return PTR_ERR(ticker);
	per_cpu(tickers, cpu) = ticker;
	return 0;
}

static void count(void *unused)
{
	kbarman_pmu_count();
}

static void cpu_stop(struct kbarman_session *session, int cpu)
{
	struct perf_event *ticker = per_cpu(tickers, cpu);

	if (ticker)
		perf_event_release_kernel(ticker);
	per_cpu(tickers, cpu) = NULL;
	/* A CPU that is offline has written its last sample in cpu_goes(). */
	if (counting)
		smp_call_function_single(cpu, count, NULL, true);
}

static void cpu_goes(void)
{
	preempt_disable();
	if (READ_ONCE(counting))
		kbarman_pmu_count();
	preempt_enable();
}

const struct kbarman_source kbarman_source_counts = {
	.name = "counts",
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
	.cpu_stop = cpu_stop,
	.cpu_goes = cpu_goes,
};
