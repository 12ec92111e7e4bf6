// SPDX-License-Identifier: GPL-2.0-only
/*
 * A probe of sched_switch that does nothing: what every tracer pays before it does
 * anything. Built and loaded by `make bench` alone.
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

static struct kbarman_probe probes[] = {
	{ .name = "sched_switch", .function = on_sched_switch },
};

static int __init empty_probe_init(void)
{
	check_trace_callback_type_sched_switch(on_sched_switch);
	kbarman_probes_find(probes, ARRAY_SIZE(probes));
	return kbarman_probes_attach(probes, ARRAY_SIZE(probes), NULL);
}

static void __exit empty_probe_exit(void)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes), NULL);
}

module_init(empty_probe_init);
module_exit(empty_probe_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An empty sched_switch probe, to be compared with");
