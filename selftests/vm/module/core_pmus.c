// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two PMUs, "kb_big" and "kb_little", which stand for the PMUs of a machine with CPUs of two kinds.
 * Each has CPUs of its own, as its file `cpus` in sysfs says, and refuses events on any other CPU.
 * They count what a test can know:
 *
 *	cycles		ns
 *	instructions	ns / 4
 *	steps		what was written to the parameter `step`, on the CPU that wrote
 *	flags		for each step, the event's exclude_user, 2 * exclude_kernel,
 *			4 * exclude_hv, 8 * precise_ip, 32 * wakeup_events, 64 * exclude_guest
 *	wide, narrow	as steps; kb_big has only the first of them, and kb_little only the second
 *
 * An event that samples overflows by a timer. So it never overflows while interrupts are off, as it
 * does where overflows are NMIs: `nest` makes up for this. Each read of a counter by others may be
 * interrupted by an overflow of the CPU's sampling event.
 *
 * Parameters: `big`, `little`: lists of CPUs; `generic`: how generic events find the PMUs: 0 not at
 * all, 1 as on arm: each PMU takes the generic events of its CPUs, 2: these and, as on x86, those
 * whose number names the PMU; `places`: how many events a CPU counts at the same time; `nest`: every
 * so many reads an overflow comes in between, 0 never; `nested`: how many of these there were;
 * `forward`: a third PMU, "kb_precise", takes generic events that are to be precise, and can't be
 * read, as IBS on AMD; `guests`: 0: they refuse to leave out guests; `accepted`: how many events more
 * are accepted: after that EBUSY.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>
#include <asm/irq_regs.h>

#include "compat/argument.h"

#define EVENTS(E) E(CYCLES, cycles, 0x11) E(INSTRUCTIONS, instructions, 0x08) \
	E(STEPS, steps, 0x01) E(FLAGS, flags, 0x02) E(WIDE, wide, 0x21) E(NARROW, narrow, 0x22)

#define EVENT_NUMBER(upper, lower, number) EVENT_##upper = (number),
enum { EVENTS(EVENT_NUMBER) };

static char *big = "0", *little = "1";
static int generic, forward, guests = 1;
static unsigned int places = 8, nest, nested, accepted = ~0U;

module_param(big, charp, 0444);
module_param(little, charp, 0444);
module_param(generic, int, 0444);
module_param(forward, int, 0444);
module_param(guests, int, 0444);
module_param(places, uint, 0444);
module_param(accepted, uint, 0644);
module_param(nest, uint, 0644);
module_param(nested, uint, 0444);

/* Its CPU alone uses it, mostly with interrupts off. */
struct core {
	u64 steps;
	unsigned int used, reads;
	struct perf_event *sampling;	/* the event that overflows */
	bool overflows;			/* by kb_read() */
};

static DEFINE_PER_CPU(struct core, cores);

static int set_step(const char *value, const struct kernel_param *parameter)
{
	unsigned int steps;
	int ret = kstrtouint(value, 0, &steps);

	if (!ret)
		this_cpu_add(cores.steps, steps);
	return ret;
}

static const struct kernel_param_ops step_ops = { .set = set_step };

module_param_cb(step, &step_ops, NULL, 0200);

struct core_pmu {
	struct pmu pmu;
	const char *name;
	cpumask_t cpus;
	unsigned long own;	/* the event that the other PMU lacks; 0: it is kb_precise */
	bool registered;
};

static struct core_pmu pmus[];

/* perf_event_overflow(), which is for PMUs of the kernel itself. */
static int (*overflow)(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs);

static struct core_pmu *core_pmu(struct pmu *pmu)
{
	return container_of(pmu, struct core_pmu, pmu);
}

/* ---- counting ---- */

static unsigned long event_number(const struct perf_event *event)
{
	return (unsigned long)event->pmu_private;
}

static u64 counter_now(const struct perf_event *event)
{
	switch (event_number(event)) {
	case EVENT_CYCLES:
		return ktime_get_mono_fast_ns();
	case EVENT_INSTRUCTIONS:
		return ktime_get_mono_fast_ns() / 4;
	case EVENT_FLAGS:
		return this_cpu_read(cores.steps) *
		       (event->attr.exclude_user | event->attr.exclude_kernel << 1 |
			event->attr.exclude_hv << 2 | event->attr.precise_ip << 3 |
			event->attr.wakeup_events << 5 | event->attr.exclude_guest << 6);
	}
	return this_cpu_read(cores.steps);
}

static void kb_update(struct perf_event *event)
{
	u64 before, now;

	do {
		before = local64_read(&event->hw.prev_count);
		now = counter_now(event);
	} while (local64_cmpxchg(&event->hw.prev_count, before, now) != before);
	local64_add(now - before, &event->count);
}

static void kb_start_timer(struct perf_event *event)
{
	hrtimer_start(&event->hw.hrtimer, ns_to_ktime(max_t(u64, event->hw.sample_period, 10000)),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static void kb_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	local64_set(&event->hw.prev_count, counter_now(event));
	if (is_sampling_event(event))
		kb_start_timer(event);
}

static void kb_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	/* It may be that its timer stops it: an overflow that is throttled. */
	if (is_sampling_event(event))
		hrtimer_try_to_cancel(&event->hw.hrtimer);
	kb_update(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static void kb_overflow(struct perf_event *event, struct pt_regs *regs)
{
	struct perf_sample_data data;

	perf_sample_data_init(&data, 0, event->hw.last_period);
	if (overflow(event, &data, regs))
		kb_stop(event, 0);
}

static enum hrtimer_restart kb_timer(struct hrtimer *timer)
{
	struct perf_event *event = container_of(timer, struct perf_event, hw.hrtimer);

	if (event->hw.state & PERF_HES_STOPPED)
		return HRTIMER_NORESTART;
	kb_update(event);
	kb_overflow(event, get_irq_regs());
	if (event->hw.state & PERF_HES_STOPPED)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(max_t(u64, event->hw.sample_period, 10000)));
	return HRTIMER_RESTART;
}

/* An overflow in the middle of what somebody else does with the counters. */
static void kb_nest(struct core *core)
{
	struct perf_event *event = core->sampling;
	struct pt_regs regs;

	if (!READ_ONCE(nest) || !event || core->overflows || event->hw.state & PERF_HES_STOPPED ||
	    ++core->reads < READ_ONCE(nest))
		return;
	core->reads = 0;
	core->overflows = true;
	nested++;
	perf_fetch_caller_regs(&regs);
	kb_update(event);
	kb_overflow(event, &regs);
	core->overflows = false;
}

static void kb_read(struct perf_event *event)
{
	unsigned long flags;

	local_irq_save(flags);
	if (!(event->hw.state & PERF_HES_STOPPED) && core_pmu(event->pmu)->own)
		kb_update(event);
	kb_nest(this_cpu_ptr(&cores));
	local_irq_restore(flags);
}

/* ---- events ---- */

static int kb_add(struct perf_event *event, int flags)
{
	struct core *core = this_cpu_ptr(&cores);

	/* An event that follows a task may come to any CPU. */
	if (!cpumask_test_cpu(smp_processor_id(), &core_pmu(event->pmu)->cpus))
		return -ENOENT;
	if (core->used == places)
		return -EAGAIN;
	core->used++;
	if (is_sampling_event(event))
		core->sampling = event;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		kb_start(event, flags);
	return 0;
}

static void kb_del(struct perf_event *event, int flags)
{
	struct core *core = this_cpu_ptr(&cores);

	kb_stop(event, PERF_EF_UPDATE);
	core->used--;
	if (core->sampling == event)
		core->sampling = NULL;
}

/* perf takes the number of the PMU out of a generic event. */
static bool find_number(const struct core_pmu *pmu, const struct perf_event *event,
			unsigned long *number)
{
	bool precise = forward && event->attr.precise_ip && event->attr.type == PERF_TYPE_HARDWARE;

	if (precise != !pmu->own)
		return false;
	*number = event->attr.config;
	if (event->attr.type == pmu->pmu.type)
		return (*number != EVENT_WIDE && *number != EVENT_NARROW) || *number == pmu->own;
	*number = event->attr.config == PERF_COUNT_HW_CPU_CYCLES ? EVENT_CYCLES :
								   EVENT_INSTRUCTIONS;
	return generic && event->attr.type == PERF_TYPE_HARDWARE &&
	       (event->attr.config == PERF_COUNT_HW_CPU_CYCLES ||
		event->attr.config == PERF_COUNT_HW_INSTRUCTIONS);
}

static int kb_event_init(struct perf_event *event)
{
	struct core_pmu *pmu = core_pmu(event->pmu);
	struct hw_perf_event *hw = &event->hw;
	unsigned long number;

	if (!find_number(pmu, event, &number) ||
	    (event->cpu >= 0 && !cpumask_test_cpu(event->cpu, &pmu->cpus)))
		return -ENOENT;
	if (event->attr.precise_ip > 2)
		return -EOPNOTSUPP;
	if (event->attr.exclude_guest && !guests)
		return -EINVAL;
	if (!accepted)
		return -EBUSY;
	if (accepted != ~0U)
		accepted--;
	/* Not hw->config, which is where the timer is. */
	event->pmu_private = (void *)number;
	if (!is_sampling_event(event))
		return 0;
#ifdef KBARMAN_HAVE_HRTIMER_SETUP
	hrtimer_setup(&hw->hrtimer, kb_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&hw->hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hw->hrtimer.function = kb_timer;
#endif
	/* A timer has a frequency, and needs no help of perf. */
	if (event->attr.freq) {
		event->attr.sample_period = div64_u64(NSEC_PER_SEC, event->attr.sample_freq);
		hw->sample_period = event->attr.sample_period;
		hw->last_period = hw->sample_period;
		local64_set(&hw->period_left, hw->sample_period);
		event->attr.freq = 0;
	}
	return 0;
}

/* ---- sysfs ---- */

PMU_FORMAT_ATTR(event, "config:0-31");

static struct attribute *format_attributes[] = { &format_attr_event.attr, NULL };
static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attributes,
};

#define EVENT_ATTRIBUTE(upper, lower, number) \
	PMU_EVENT_ATTR_STRING(lower, event_##lower, "event=" #number);
EVENTS(EVENT_ATTRIBUTE)

#define EVENT_POINTER(upper, lower, number) &event_##lower.attr.attr,
static struct attribute *event_attributes[] = { EVENTS(EVENT_POINTER) NULL };
static const struct attribute_group event_group = {
	.name = "events",
	.attrs = event_attributes,
};

static ssize_t cpus_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%*pbl\n",
			  cpumask_pr_args(&core_pmu(dev_get_drvdata(device))->cpus));
}

static DEVICE_ATTR_RO(cpus);

static struct attribute *cpus_attributes[] = { &dev_attr_cpus.attr, NULL };
static const struct attribute_group cpus_group = { .attrs = cpus_attributes };

static const struct attribute_group *groups[] = {
	&format_group, &event_group, &cpus_group, NULL
};

/* ---- the module ---- */

static struct core_pmu pmus[] = {
	{ .name = "kb_big", .own = EVENT_WIDE },
	{ .name = "kb_little", .own = EVENT_NARROW },
	{ .name = "kb_precise" },
};

static void unregister_all(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pmus); i++)
		if (pmus[i].registered)
			perf_pmu_unregister(&pmus[i].pmu);
}

static int register_one(struct core_pmu *pmu, const char *cpus)
{
	int ret = cpulist_parse(cpus, &pmu->cpus);

	if (ret)
		return ret;
	pmu->pmu = (struct pmu) {
		.module = THIS_MODULE,
		.task_ctx_nr = perf_sw_context,
		.attr_groups = groups,
		.event_init = kb_event_init,
		.add = kb_add,
		.del = kb_del,
		.start = kb_start,
		.stop = kb_stop,
		.read = kb_read,
	};
#ifdef PERF_PMU_CAP_EXTENDED_HW_TYPE
	if (generic == 2)
		pmu->pmu.capabilities |= PERF_PMU_CAP_EXTENDED_HW_TYPE;
#endif
	ret = perf_pmu_register(&pmu->pmu, pmu->name, -1);
	pmu->registered = !ret;
	return ret;
}

/* As a debugger finds it: by a kprobe that is never hit. */
static int find_overflow(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*find)(const char *name);
	int ret = register_kprobe(&probe);

#ifdef KBARMAN_ENTRY_BYTES
	if (ret == -EINVAL) {
		probe = (struct kprobe) {
			.symbol_name = probe.symbol_name, .offset = KBARMAN_ENTRY_BYTES,
		};
		ret = register_kprobe(&probe);
	}
#endif
	if (ret)
		return ret;
	find = (void *)((unsigned long)probe.addr - probe.offset);
	unregister_kprobe(&probe);
	overflow = (void *)find("perf_event_overflow");
	return overflow ? 0 : -ENOENT;
}

static int __init core_pmus_init(void)
{
	int ret = find_overflow();

	if (!ret)
		ret = register_one(&pmus[0], big);
	if (!ret)
		ret = register_one(&pmus[1], little);
	if (!ret && forward)
		ret = register_one(&pmus[2], "0-1");
	if (ret)
		unregister_all();
	return ret;
}

static void __exit core_pmus_exit(void)
{
	unregister_all();
}

module_init(core_pmus_init);
module_exit(core_pmus_exit);
MODULE_DESCRIPTION("two PMUs, each of other CPUs");
MODULE_LICENSE("GPL");
