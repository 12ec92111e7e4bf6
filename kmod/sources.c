// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/workqueue.h>

#include "compat/tracepoint.h"
#include "sources.h"

/* Started from first to last, stopped from last to first. */
static const struct kbarman_source *const sources[] = {
	&kbarman_source_tasks,
	&kbarman_source_maps,
	&kbarman_source_sched,
	&kbarman_source_idle,
	&kbarman_source_pmu,
	&kbarman_source_counts,
	&kbarman_source_marker,
};

static bool enabled(const struct kbarman_session *session, const struct kbarman_source *source)
{
	return !source->bit || session->config.sources & source->bit;
}

/* ---- what this kernel lacks ---- */

/* Written at module init only. */
static u32 absent;

u32 kbarman_sources_absent(void)
{
	return absent;
}

static void __init find_absent(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (sources[i]->probes &&
		    !kbarman_probes_exist(sources[i]->probes, sources[i]->nr_probes))
			absent |= sources[i]->absent;
}

/* ---- all CPUs ---- */

/* Stop the sources sources[0 .. count), last one first. */
static void detach(struct kbarman_session *session, int count)
{
	while (count-- > 0)
		if (enabled(session, sources[count]) && sources[count]->stop)
			sources[count]->stop(session);
}

int kbarman_sources_attach(struct kbarman_session *session)
{
	int i, error;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!enabled(session, sources[i]) || !sources[i]->start)
			continue;
		error = sources[i]->start(session);
		if (error) {
			detach(session, i);
			return error;
		}
	}
	return 0;
}

void kbarman_sources_detach(struct kbarman_session *session)
{
	detach(session, ARRAY_SIZE(sources));
}

/* ---- one CPU ---- */

static void stop_cpu(struct kbarman_session *session, int cpu)
{
	int i;

	for (i = ARRAY_SIZE(sources) - 1; i >= 0; i--)
		if (enabled(session, sources[i]) && sources[i]->cpu_stop)
			sources[i]->cpu_stop(session, cpu);
}

static int start_cpu(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	int i, error;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!enabled(session, sources[i]) || !sources[i]->cpu_start)
			continue;
		error = sources[i]->cpu_start(session, cpu, report);
		if (error) {
			stop_cpu(session, cpu);
			return error;
		}
	}
	return 0;
}

/* ---- CPUs that come and go ---- */

/* CPUs that record now. Protected by the session's lock. */
static cpumask_var_t recording;

/*
 * CPUs that are online and not about to go offline. A CPU loses its bit before it goes offline:
 * perf events that would be created for it after that are lost with the CPU.
 */
static cpumask_var_t here;

/*
 * CPUs that have gone offline since the last follow_cpus(), even if they are online again: their
 * perf events are lost.
 */
static cpumask_var_t gone;

/*
 * Record @cpu, which has come online. An error does not keep the CPU offline; the CPU is then not
 * recorded, or not completely.
 */
static void take_in(struct kbarman_session *session, int cpu)
{
	struct kbarman_start report;
	int error = 0;

	if (!per_cpu(kbarman_rings, cpu).data)
		error = kbarman_session_add_ring(session, cpu);
	if (!error)
		error = start_cpu(session, cpu, &report);
	if (!error)
		cpumask_set_cpu(cpu, recording);
	else if (cpumask_test_cpu(cpu, here))
		pr_warn("CPU %d is online, but not all of it is recorded (error %d)\n", cpu, error);
}

/*
 * Follow the changes of CPUs. This is a work item and not a hotplug callback: creating and
 * releasing software events and tracepoints takes cpu_hotplug_lock.
 */
static void follow_cpus(struct work_struct *unused)
{
	struct kbarman_session *session = &kbarman_session;
	int cpu;

	mutex_lock(&session->lock);
	for_each_possible_cpu(cpu)
		if (cpumask_test_and_clear_cpu(cpu, gone) &&
		    cpumask_test_and_clear_cpu(cpu, recording))
			stop_cpu(session, cpu);
	if (session->running)
		for_each_cpu_and(cpu, session->cpus, here)
			if (!cpumask_test_cpu(cpu, recording))
				take_in(session, cpu);
	mutex_unlock(&session->lock);
}

static DECLARE_WORK(cpus_changed, follow_cpus);

static int cpu_comes(unsigned int cpu)
{
	cpumask_set_cpu(cpu, here);
	schedule_work(&cpus_changed);
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	int i;

	for (i = ARRAY_SIZE(sources) - 1; i >= 0; i--)
		if (sources[i]->cpu_goes)
			sources[i]->cpu_goes();
	cpumask_clear_cpu(cpu, here);
	cpumask_set_cpu(cpu, gone);
	schedule_work(&cpus_changed);
	return 0;
}

/* ---- start and stop of all CPUs ---- */

void kbarman_sources_stop(struct kbarman_session *session)
{
	int cpu;

	for_each_cpu(cpu, recording)
		stop_cpu(session, cpu);
	cpumask_clear(recording);
}

int kbarman_sources_start(struct kbarman_session *session, struct kbarman_start *report)
{
	int cpu, error;

	cpumask_clear(gone);
	for_each_cpu_and(cpu, session->cpus, here) {
		if (!per_cpu(kbarman_rings, cpu).data)
			continue;
		error = start_cpu(session, cpu, report);
		if (!error) {
			cpumask_set_cpu(cpu, recording);
		} else if (cpumask_test_cpu(cpu, here)) {
			kbarman_sources_stop(session);
			return error;
		}
	}
	report->event = ~0U;
	report->cpu = ~0U;
	return cpumask_empty(recording) ? -ENODEV : 0;
}

/* ---- init and exit ---- */

static enum cpuhp_state cpuhp_state;

static void free_masks(void)
{
	free_cpumask_var(gone);
	free_cpumask_var(here);
	free_cpumask_var(recording);
}

int __init kbarman_sources_init(void)
{
	int state = -ENOMEM;

	find_absent();
	if (!zalloc_cpumask_var(&recording, GFP_KERNEL) ||
	    !zalloc_cpumask_var(&here, GFP_KERNEL) || !zalloc_cpumask_var(&gone, GFP_KERNEL))
		goto err_state;
	/* Calls cpu_comes() for each CPU that is online. */
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "kbarman:online", cpu_comes, cpu_goes);
	if (state < 0)
		goto err_state;
	cpuhp_state = state;
	return 0;

err_state:
	free_masks();
	return state;
}

void kbarman_sources_exit(void)
{
	cpuhp_remove_state_nocalls(cpuhp_state);
	cancel_work_sync(&cpus_changed);
	free_masks();
}
