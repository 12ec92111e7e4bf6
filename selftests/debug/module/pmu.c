// SPDX-License-Identifier: GPL-2.0-only
/*
 * A PMU that overflows with interrupts on, as software events of older kernels do, and looks at
 * who reads its counter: stop() takes counters away by interrupting, so an overflow handler that
 * lets interrupts through while it reads may be left with nothing to read. While the parameter
 * test_pmu is 1 there is one, by the name of kbarman_test, whose counter counts how often it is
 * read; it overflows once a write to test_pmu_overflow, on the writer's CPU.
 *
 * While test_pmu_refuse is 1 no counter finds a place on it: perf takes a pinned one off for good
 * when it schedules anew.
 *
 * test_pmu_reads says how many reads there were, of all counters since it was set,
 * test_pmu_interruptible how many of them with interrupts on.
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

/* ---- what perf asks of a PMU ---- */

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

/* ---- what the test asks of it ---- */

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
