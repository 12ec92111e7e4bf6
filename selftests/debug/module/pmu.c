// SPDX-License-Identifier: GPL-2.0-only
/*
 * A PMU that overflows with interrupts on, as software events of older kernels do. It counts the
 * reads of its counters. cpu_stop() removes counters by an interrupt. So an overflow handler that
 * reads them with interrupts on may find no counter.
 *
 * While the parameter test_pmu is 1, the PMU exists, under the name kbarman_test. The value of each
 * of its counters is the number of reads of this counter. Each write to test_pmu_overflow makes one
 * overflow, on the CPU of the writer.
 *
 * While test_pmu_refuse is 1, the PMU has no place for counters: perf then gives up a pinned
 * counter when it schedules the counters again.
 *
 * test_pmu_reads is the number of reads of all counters since test_pmu was set.
 * test_pmu_interruptible is the number of those with interrupts on.
 */
#include <linux/atomic.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/sched/task_stack.h>

static atomic_t reads;
static atomic_t interruptible;
static bool refuse;
static DEFINE_PER_CPU(struct perf_event *, sampling_event);

/* ---- calls of perf ---- */

static void read_counter(struct perf_event *event)
{
	atomic_inc(&reads);
	if (!irqs_disabled())
		atomic_inc(&interruptible);
	local64_inc(&event->count);
}

static void start_counter(struct perf_event *event, int flags)
{
	event->hw.state = 0;
}

static void stop_counter(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int add_counter(struct perf_event *event, int flags)
{
	if (READ_ONCE(refuse))
		return -EAGAIN;
	if (is_sampling_event(event))
		this_cpu_write(sampling_event, event);
	start_counter(event, flags);
	return 0;
}

static void delete_counter(struct perf_event *event, int flags)
{
	stop_counter(event, flags);
	if (is_sampling_event(event))
		this_cpu_write(sampling_event, NULL);
}

static int init_event(struct perf_event *event)
{
	return event->attr.type == event->pmu->type ? 0 : -ENOENT;
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_sw_context,
	.event_init = init_event,
	.add = add_counter,
	.del = delete_counter,
	.start = start_counter,
	.stop = stop_counter,
	.read = read_counter,
};

/* ---- calls of the test ---- */

static bool registered;

static int set_pmu(const char *value, const struct kernel_param *parameter)
{
	bool wanted;
	int error = kstrtobool(value, &wanted);

	if (error || wanted == registered)
		return error;
	if (wanted) {
		atomic_set(&reads, 0);
		atomic_set(&interruptible, 0);
		error = perf_pmu_register(&pmu, "kbarman_test", -1);
	} else {
		perf_pmu_unregister(&pmu);
	}
	if (!error)
		registered = wanted;
	return error;
}

static const struct kernel_param_ops pmu_ops = { .set = set_pmu };

module_param_cb(test_pmu, &pmu_ops, NULL, 0200);
module_param_named(test_pmu_refuse, refuse, bool, 0600);

static int overflow(const char *value, const struct kernel_param *parameter)
{
	struct perf_sample_data data;
	struct perf_event *event;
	int error = -ENODEV;

	preempt_disable();
	event = this_cpu_read(sampling_event);
	if (event) {
		perf_sample_data_init(&data, 0, event->hw.last_period);
		READ_ONCE(event->overflow_handler)(event, &data, task_pt_regs(current));
		error = 0;
	}
	preempt_enable();
	return error;
}

static const struct kernel_param_ops overflow_ops = { .set = overflow };

module_param_cb(test_pmu_overflow, &overflow_ops, NULL, 0200);

static int get_count(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%d\n", atomic_read((atomic_t *)parameter->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_count };

module_param_cb(test_pmu_reads, &count_ops, &reads, 0400);
module_param_cb(test_pmu_interruptible, &count_ops, &interruptible, 0400);
