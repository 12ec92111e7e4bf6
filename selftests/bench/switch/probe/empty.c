// SPDX-License-Identifier: GPL-2.0-only
/*
 * A probe of sched_switch, or with waking=1 of sched_waking, that does nothing: what every tracer
 * pays before it does anything. Built and loaded by `make bench` alone.
 */
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "compat/tracepoint.h"

static void on_sched_switch(void *unused, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
}

static void on_waking(void *unused, struct task_struct *woken)
{
}

static struct kbarman_probe switch_probe = { .name = "sched_switch", .function = on_sched_switch };
static struct kbarman_probe waking_probe = { .name = "sched_waking", .function = on_waking };

static bool waking;
module_param(waking, bool, 0);
MODULE_PARM_DESC(waking, "A probe of wakeups, not of switches");

static struct kbarman_probe *empty_probe(void)
{
	return waking ? &waking_probe : &switch_probe;
}

static int __init empty_probe_init(void)
{
	check_trace_callback_type_sched_switch(on_sched_switch);
	check_trace_callback_type_sched_waking(on_waking);
	kbarman_probes_find(empty_probe(), 1);
	return kbarman_probes_attach(empty_probe(), 1, NULL);
}

static void __exit empty_probe_exit(void)
{
	kbarman_probes_detach(empty_probe(), 1, NULL);
}

module_init(empty_probe_init);
module_exit(empty_probe_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An empty probe, to be compared with");
