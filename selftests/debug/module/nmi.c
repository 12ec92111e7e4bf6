// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer in an NMI, for emulated CPUs without counters that could overflow. While the parameter
 * test_nmi is 1, every NMI writes task switches to tasks that do not exist into the ring of its
 * CPU. The ids of these tasks count up, so that a reader sees what is missing.
 *
 * test_nmi_attempts is the number of records tried. test_nmi_nested is the number of NMIs that came
 * while another writer used the same ring. Both are sums over all CPUs.
 */
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <asm/local.h>
#include <asm/nmi.h>

#include "here.h"
#include "ring/record.h"
#include "sessions/cpus.h"

#define TASK_BASE	0x40000000U	/* higher than any pid */
#define TASK_MASK	0x0fffffffU
#define RECORDS		16		/* of each NMI */

static DEFINE_PER_CPU(local_t, attempts);
static DEFINE_PER_CPU(local_t, nested);

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	struct kbarman_session *session = list_first_or_null_rcu(&kbarman_running_sessions,
								 struct kbarman_session,
								 running_list);
	struct kbarman_ring *ring;
	long number;
	int i;

	ring = session ? kbarman_ring_of(this_cpu_ptr(session->each)) : NULL;
	if (!ring)
		return NMI_HANDLED;
	if (READ_ONCE(ring->w) != READ_ONCE(ring->commit))
		local_inc(this_cpu_ptr(&nested));
	for (i = 0; i < RECORDS; i++) {
		number = local_inc_return(this_cpu_ptr(&attempts)) - 1;
		kbarman_record_switch(ring, TASK_BASE | (number & TASK_MASK),
				      BM_TASK_SWITCH_PREEMPTED, 0);
	}
	return NMI_HANDLED;
}

static bool handled;

static int set_nmi(const char *value, const struct kernel_param *parameter)
{
	bool wanted;
	int cpu, error = kstrtobool(value, &wanted);

	if (error || wanted == handled)
		return error;
	if (wanted) {
		for_each_possible_cpu(cpu) {
			local_set(per_cpu_ptr(&attempts, cpu), 0);
			local_set(per_cpu_ptr(&nested, cpu), 0);
		}
		error = register_nmi_handler(NMI_LOCAL, on_nmi, 0, "kbarman-test");
	} else {
		unregister_nmi_handler(NMI_LOCAL, "kbarman-test");
	}
	if (!error)
		handled = wanted;
	return error;
}

static int get_nmi(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%d\n", handled);
}

static const struct kernel_param_ops nmi_ops = { .set = set_nmi, .get = get_nmi };

module_param_cb(test_nmi, &nmi_ops, NULL, 0600);

static int get_sum(char *buffer, const struct kernel_param *parameter)
{
	local_t __percpu *counter = (local_t __percpu *)parameter->arg;
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += local_read(per_cpu_ptr(counter, cpu));
	return sysfs_emit(buffer, "%ld\n", sum);
}

static const struct kernel_param_ops sum_ops = { .get = get_sum };

module_param_cb(test_nmi_attempts, &sum_ops, (void *)&attempts, 0400);
module_param_cb(test_nmi_nested, &sum_ops, (void *)&nested, 0400);
