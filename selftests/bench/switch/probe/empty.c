// SPDX-License-Identifier: GPL-2.0-only
/*
 * A probe of sched_switch, or with waking=1 of sched_waking, or with syscalls=1 two of sys_enter and
 * sys_exit, that does nothing: what every tracer pays before it does anything. With sample_ns=NS a
 * sample each NS nanoseconds, of which nothing is kept. Built and loaded by `make bench` alone.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <trace/events/sched.h>
#include <trace/events/syscalls.h>

#include "compat/tracepoint.h"

static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
}

static void on_waking(void *unused, struct task_struct *woken)
{
}

static void on_sys_enter(void *unused, struct pt_regs *regs, long call)
{
}

static void on_sys_exit(void *unused, struct pt_regs *regs, long result)
{
}

static struct kbarman_probe switch_probe = { .name = "sched_switch", .function = on_sched_switch };
static struct kbarman_probe waking_probe = { .name = "sched_waking", .function = on_waking };
static struct kbarman_probe syscall_probes[] = {
	{ .name = "sys_enter", .function = on_sys_enter },
	{ .name = "sys_exit", .function = on_sys_exit },
};

static bool waking;
module_param(waking, bool, 0);
MODULE_PARM_DESC(waking, "A probe of wakeups, not of switches");

static bool syscalls;
module_param(syscalls, bool, 0);
MODULE_PARM_DESC(syscalls, "Probes of system calls, not of switches");

static unsigned long sample_ns;
module_param(sample_ns, ulong, 0);
MODULE_PARM_DESC(sample_ns, "Samples, not a probe");

static struct kbarman_probe *empty_probes(void)
{
	return syscalls ? syscall_probes : waking ? &waking_probe : &switch_probe;
}

static unsigned int nr_empty_probes(void)
{
	return syscalls ? ARRAY_SIZE(syscall_probes) : 1;
}

/* ---- samples ---- */

static DEFINE_PER_CPU(struct perf_event *, empty_event);

static void on_overflow(struct perf_event *event, struct perf_sample_data *data,
			struct pt_regs *regs)
{
}

static void release_events(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		if (per_cpu(empty_event, cpu))
			perf_event_release_kernel(per_cpu(empty_event, cpu));
	}
}

static int create_events(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = sample_ns,
	};
	struct perf_event *event;
	int cpu;

	for_each_online_cpu(cpu) {
		event = perf_event_create_kernel_counter(&attr, cpu, NULL, on_overflow, NULL);
		if (IS_ERR(event)) {
			release_events();
			return PTR_ERR(event);
		}
		per_cpu(empty_event, cpu) = event;
	}
	return 0;
}

/* ---- init and exit ---- */

static int __init empty_probe_init(void)
{
	if (sample_ns)
		return create_events();
	check_trace_callback_type_sched_switch(on_sched_switch);
	check_trace_callback_type_sched_waking(on_waking);
	check_trace_callback_type_sys_enter(on_sys_enter);
	check_trace_callback_type_sys_exit(on_sys_exit);
	kbarman_probes_find(empty_probes(), nr_empty_probes());
	return kbarman_probes_attach(empty_probes(), nr_empty_probes(), NULL);
}

static void __exit empty_probe_exit(void)
{
	if (sample_ns)
		release_events();
	else
		kbarman_probes_detach(empty_probes(), nr_empty_probes(), NULL);
}

module_init(empty_probe_init);
module_exit(empty_probe_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An empty probe, to be compared with");
