// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "capture/memory.h"
#include "capture/work.h"
#include "here.h"
#include "pmu/pmu.h"
#include "ring/record.h"
#include "session.h"
#include "sessions/attach.h"
#include "sessions/cpus.h"
#include "sessions/rings.h"
#include "stacks/callchain.h"

LIST_HEAD(kbarman_running_sessions);
static DEFINE_SPINLOCK(running_lock);	/* for those who change the list */

/*
 * CPUs that are online and not about to go offline. A CPU loses its bit before it goes offline:
 * perf events that would be created for it after that are lost with the CPU.
 */
static cpumask_var_t cpus_here;

/*
 * False if @cpu is offline, or was while something failed there. Then it is no failure: when the CPU
 * comes back, the work item of the session follows.
 */
static bool cpu_is_here(const struct kbarman_session *session, int cpu)
{
	return cpumask_test_cpu(cpu, cpus_here) && !cpumask_test_cpu(cpu, session->gone);
}

/* The CPU records from here on. Context: interrupts off. */
static void cpu_begin_here(void *data)
{
	struct kbarman_cpu *here = kbarman_here(data);
	struct kbarman_ring *ring = kbarman_ring_of(here);

	/* A CPU that is about to go has closed its ring. */
	if (!ring || !cpumask_test_cpu(smp_processor_id(), cpus_here))
		return;
	kbarman_ring_open(ring);
	kbarman_sources_begin_here(here);
	/* The CPU is back without its counters, which had said that it is offline. */
	if (!here->counters.ready && here->counters.told == KBARMAN_STOPPED_OFFLINE + 1) {
		here->counters.told = 0;
		here->told_offline = true;
	}
	if (here->told_offline)
		kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED, 0);
	here->told_offline = false;
}

/*
 * The CPU does not record any more, and its ring says so. Where the CPU has counters, they have said
 * it. Context: interrupts off.
 */
static void cpu_end_here(struct kbarman_session *session)
{
	struct kbarman_cpu *here = this_cpu_ptr(session->each);
	struct kbarman_ring *ring = kbarman_ring_of(here);

	if (!ring || READ_ONCE(ring->closed))
		return;
	here->told_offline = here->counters.told != KBARMAN_STOPPED_OFFLINE + 1;
	if (here->told_offline)
		kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED,
				       KBARMAN_STOPPED_OFFLINE + 1);
	kbarman_ring_close(ring);
}

/* The ring of a CPU that was not there when the session was configured. */
static int cpu_add_ring(struct kbarman_session *session, int cpu)
{
	u64 bytes = session->config.ring_bytes + kbarman_callchain_memory(session);
	int error;

	if (kbarman_rings_find(session, cpu))
		return 0;
	error = kbarman_memory_promise(bytes);
	if (error)
		return error;
	error = kbarman_rings_add(session, cpu);
	kbarman_memory_keep(bytes);
	if (!error)
		kbarman_rings_sign(session);
	return error;
}

/*
 * Record @cpu, which has come online. An error does not keep the CPU offline; the CPU is then not
 * recorded, or not completely.
 */
static void cpu_take_in(struct kbarman_session *session, int cpu)
{
	struct kbarman_start report;
	int error = cpu_add_ring(session, cpu);

	if (!error)
		error = kbarman_sources_prepare_cpu(session, cpu, &report);
	if (!error)
		kbarman_sources_start_cpu(session, cpu);
	/* Whatever there is of it. */
	if (kbarman_rings_find(session, cpu))
		smp_call_function_single(cpu, cpu_begin_here, kbarman_probe_data(session), true);
	if (!error)
		cpumask_set_cpu(cpu, session->recording);
	else if (cpu_is_here(session, cpu))
		pr_warn("CPU %d is online, but not all of it is recorded (error %d)\n", cpu, error);
}

/*
 * Follow the changes of CPUs. This is a work item and not a hotplug callback: creating and
 * releasing software events and tracepoints takes cpu_hotplug_lock.
 */
static void cpus_follow(struct work_struct *work)
{
	struct kbarman_session *session = container_of(work, struct kbarman_session,
						       cpus_changed);
	int cpu;

	mutex_lock(&session->lock);
	for_each_possible_cpu(cpu)
		if (cpumask_test_and_clear_cpu(cpu, session->gone) &&
		    cpumask_test_and_clear_cpu(cpu, session->recording)) {
			kbarman_sources_last_cpu(session, cpu);
			kbarman_sources_stop_cpu(session, cpu);
		}
	if (session->running)
		for_each_cpu_and(cpu, session->cpus, cpus_here)
			if (!cpumask_test_cpu(cpu, session->recording))
				cpu_take_in(session, cpu);
	mutex_unlock(&session->lock);
}

static int cpu_comes(unsigned int cpu)
{
	struct kbarman_session *session;

	cpumask_set_cpu(cpu, cpus_here);
	smp_mb__after_atomic();	/* pairs with that of kbarman_cpus_start() */
	rcu_read_lock();
	list_for_each_entry_rcu(session, &kbarman_running_sessions, running_list)
		queue_work(kbarman_wq, &session->cpus_changed);
	rcu_read_unlock();
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	struct kbarman_session *session;
	unsigned long flags;

	preempt_disable();
	list_for_each_entry_rcu(session, &kbarman_running_sessions, running_list)
		kbarman_sources_cpu_goes(session);
	cpumask_clear_cpu(cpu, cpus_here);
	smp_mb__after_atomic();	/* as above */
	list_for_each_entry_rcu(session, &kbarman_running_sessions, running_list) {
		local_irq_save(flags);
		cpu_end_here(session);
		local_irq_restore(flags);
		cpumask_set_cpu(cpu, session->gone);
		queue_work(kbarman_wq, &session->cpus_changed);
	}
	preempt_enable();
	return 0;
}

/* ---- start and stop of all CPUs ---- */

void kbarman_cpus_init_session(struct kbarman_session *session)
{
	INIT_WORK(&session->cpus_changed, cpus_follow);
}

static void cpus_end(struct kbarman_session *session)
{
	spin_lock(&running_lock);
	list_del_rcu(&session->running_list);
	spin_unlock(&running_lock);
}

void kbarman_cpus_last(struct kbarman_session *session)
{
	int cpu;

	for_each_cpu(cpu, session->recording)
		kbarman_sources_last_cpu(session, cpu);
}

void kbarman_cpus_stop(struct kbarman_session *session)
{
	int cpu;

	for_each_cpu(cpu, session->recording)
		kbarman_sources_stop_cpu(session, cpu);
	cpumask_clear(session->recording);
	cpus_end(session);
}

static int cpu_prepare(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	int error;

	report->cpu = cpu;
	error = cpu_add_ring(session, cpu) ?: kbarman_sources_prepare_cpu(session, cpu, report);
	if (!error)
		cpumask_set_cpu(cpu, session->recording);
	return error;
}

int kbarman_cpus_prepare(struct kbarman_session *session, struct kbarman_start *report)
{
	int cpu, error;

	cpumask_clear(session->gone);
	spin_lock(&running_lock);
	list_add_tail_rcu(&session->running_list, &kbarman_running_sessions);
	spin_unlock(&running_lock);
	smp_mb();	/* a CPU that is not seen here sees the session: cpu_comes(), cpu_goes() */
	for_each_cpu_and(cpu, session->cpus, cpus_here) {
		error = cpu_prepare(session, cpu, report);
		if (error && cpu_is_here(session, cpu))
			return error;
	}
	report->event = ~0U;
	report->cpu = ~0U;
	return cpumask_empty(session->recording) ? -ENODEV : 0;
}

void kbarman_cpus_cancel(struct kbarman_session *session)
{
	kbarman_cpus_stop(session);
	/* The next start puts it into the list again, where somebody may still be at it. */
	synchronize_rcu();
}

void kbarman_cpus_start(struct kbarman_session *session)
{
	int cpu;

	for_each_cpu(cpu, session->recording)
		kbarman_sources_start_cpu(session, cpu);
}

void kbarman_cpus_begin(struct kbarman_session *session)
{
	on_each_cpu_mask(session->recording, cpu_begin_here, kbarman_probe_data(session), true);
}

/* ---- init and exit ---- */

static enum cpuhp_state cpus_state;

int __init kbarman_cpus_init(void)
{
	int state;

	if (!zalloc_cpumask_var(&cpus_here, GFP_KERNEL))
		return -ENOMEM;
	/* Calls cpu_comes() for each CPU that is online. */
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "kbarman:online", cpu_comes, cpu_goes);
	if (state < 0) {
		free_cpumask_var(cpus_here);
		return state;
	}
	cpus_state = state;
	return 0;
}

void kbarman_cpus_exit(void)
{
	cpuhp_remove_state_nocalls(cpus_state);
	free_cpumask_var(cpus_here);
}
