// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frequencies of CPUs, and idle states that did not pay.
 *
 * Context of the probes: of a frequency, any but an NMI, on any CPU, with preemption on in a task;
 * of an idle state, the idle task, which is never preempted.
 */
#include <linux/cpufreq.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <trace/events/power.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

static void freq_record(void *data, unsigned int frequency, unsigned int cpu)
{
	u32 setter = current->pid;

	kbarman_record_detail(&kbarman_here(data)->ring, setter, KBARMAN_SERIES_FREQUENCY,
			      frequency,
			      kbarman_detail(BM_KBARMAN_FREQUENCY, kbarman_context(setter), 0,
					     cpu));
}

static void on_cpu_frequency(void *data, unsigned int frequency, unsigned int cpu)
{
	preempt_disable_notrace();
	freq_record(data, frequency, cpu);
	preempt_enable_notrace();
}

#ifdef KBARMAN_HAVE_IDLE_MISS
static void on_cpu_idle_miss(void *data, unsigned int cpu, unsigned int state, bool below)
{
	kbarman_record_detail(&kbarman_here(data)->ring, current->pid,
			      KBARMAN_SERIES_IDLE_MISSES, 1,
			      kbarman_detail(BM_KBARMAN_IDLE_MISS, below, state, cpu));
}
#endif

static struct kbarman_probe freq_probes[] = {
	{ KBARMAN_PROBE(cpu_frequency, on_cpu_frequency) },
#ifdef KBARMAN_HAVE_IDLE_MISS
	{ KBARMAN_PROBE(cpu_idle_miss, on_cpu_idle_miss), .optional = true },
#endif
};

/* ---- the frequency at the start ---- */

struct freq_first {
	void *data;
	unsigned int frequency;
};

static void freq_record_first(void *argument)
{
	const struct freq_first *first = argument;

	freq_record(first->data, first->frequency, smp_processor_id());
}

/* Nothing if Linux does not set the frequency of this CPU. */
static void freq_cpu_start(struct kbarman_session *session, int cpu)
{
	struct freq_first first = {
		.data = kbarman_probe_data(session),
		.frequency = cpufreq_quick_get(cpu),
	};

	/* If the CPU has gone, it has none. */
	if (first.frequency)
		smp_call_function_single(cpu, freq_record_first, &first, true);
}

const struct kbarman_source kbarman_source_freq = {
	.name = "freq",
	.bit = KBARMAN_SOURCE_FREQ,
	.absent = KBARMAN_SOURCE_FREQ,
	.probes = freq_probes,
	.nr_probes = ARRAY_SIZE(freq_probes),
	.cpu_start = freq_cpu_start,
};
