// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples: on every CPU that records a set of counters of which the first one
 * overflows, and all are read when it does.
 *
 * The counters are pinned: what the hardware can't count at the same time is
 * refused by name at start. So there is no multiplexing, and every number is a
 * count, not an estimate.
 *
 * A sample's deltas cover the time since the last overflow on its CPU. Overflows in
 * tasks that are not recorded are read all the same, so that what those tasks did is
 * not put down to the next task that is.
 *
 * The first counter may stand still while the others go on: when Linux throttles it, when it
 * loses its place on the PMU, when its CPU goes. Each time is counted and told in the ring, by
 * a series whose value is the reason until the counter has overflowed again.
 *
 * Context of overflow(): the CPU of the event, in an interrupt or an NMI, or with
 * preemption off for software events. No lock, no memory, no printing; and the event
 * is never disabled from there (kernels 6.16 to 6.17 hang).
 */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <asm/local64.h>

#include "callchain.h"
#include "clock.h"
#include "cpu.h"
#include "record.h"
#include "session.h"
#include "source_maps.h"
#include "source_pmu.h"
#include "sources.h"

#define UNREADABLE		U64_MAX		/* as a delta */
#define SOFTWARE_COUNTER	0x80000000U	/* in counter_types: or PERF_COUNT_SW_* */
#define TRACEPOINT_COUNTER	0xc0000000U	/* or the tracepoint's number */
#define FALLBACK_NAME		"cpu-clock"
#define FALLBACK_MIN_NS		100000
#define THROTTLED		U64_MAX		/* MAX_INTERRUPTS of perf's, in hw.interrupts */
#define LOOK_EVERY		HZ		/* at events that say nothing any more */

/* The counters of one CPU. */
struct counters {
	struct perf_event *events[BM_MAX_PMU_COUNTERS];
	unsigned int nr;	/* created */
	bool ready;		/* all that are configured are: released last, and
				 * cleared before the first one goes */
	bool fallback;		/* the first one is cpu-clock for want of a PMU */
	bool published;		/* the capture has the CPU's entry; it stays as it is
				 * until the session ends */
	/* The owning CPU's, any level up to NMI. */
	local64_t last[BM_MAX_PMU_COUNTERS];	/* counts at the last overflow */
	local_t unreadable;
	u32 told;		/* what the ring tells of the first one: 0: it counts, else it
				 * stands still for this enum kbarman_stop, + 1 */
	u64 bookmarked;		/* when there was a bookmark of that */
	local_t stops[KBARMAN_STOP_REASONS];
};

static DEFINE_PER_CPU(struct counters, cpu_counters);

/* ---- a counter that stands still ---- */

static void bookmark_stop(struct kbarman_ring *ring, struct counters *counters,
			  enum kbarman_stop reason)
{
	static const char *const texts[KBARMAN_STOP_REASONS] = {
		[KBARMAN_STOPPED_THROTTLED] = "counter throttled",
		[KBARMAN_STOPPED_ERROR] = "counter lost its place on the PMU",
		[KBARMAN_STOPPED_OFFLINE] = "CPU goes offline",
	};
	const struct kbarman_mark mark = {
		.type = KBARMAN_MARK_BOOKMARK,
		.text_bytes = strlen(texts[reason]),
	};
	u64 now = kbarman_clock();

	/* One a second: a counter may be throttled at every tick, and the series tells of each. */
	if (counters->bookmarked && now - counters->bookmarked < kbarman_clock_hz())
		return;
	counters->bookmarked = now;
	kbarman_record_annotation(ring, 0, &mark, texts[reason]);
}

/* Context: the CPU, preemption off, any level up to NMI. */
static noinline void tell_stop(struct kbarman_ring *ring, struct counters *counters,
			       enum kbarman_stop reason)
{
	local_inc(&counters->stops[reason]);
	counters->told = reason + 1;
	kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED, reason + 1);
	bookmark_stop(ring, counters, reason);
}

/* It has overflowed, so it counted. Context: as tell_stop(). */
static noinline void tell_overflow(struct kbarman_ring *ring, struct counters *counters,
				   bool throttled)
{
	if (throttled) {
		tell_stop(ring, counters, KBARMAN_STOPPED_THROTTLED);
		return;
	}
	counters->told = 0;
	kbarman_record_counter(ring, 0, KBARMAN_SERIES_STOPPED, 0);
}

static bool has_lost_place(const struct perf_event *event)
{
	return READ_ONCE(event->state) <= PERF_EVENT_STATE_ERROR;
}

/* The CPU's own look at its first counter. Context: interrupts off. */
static void tell_if_lost(void *unused)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = kbarman_this_ring();

	/* As in take(). */
	if (ring && smp_load_acquire(&counters->ready) && has_lost_place(counters->events[0]) &&
	    counters->told != KBARMAN_STOPPED_ERROR + 1)
		tell_stop(ring, counters, KBARMAN_STOPPED_ERROR);
}

/* Under the session's lock. Where nothing is wrong the CPU is left alone. */
static void look_at_counters(struct counters *counters, int cpu)
{
	unsigned int i;

	for (i = 0; i < counters->nr; i++) {
		if (!has_lost_place(counters->events[i]))
			continue;
		if (!i)
			smp_call_function_single(cpu, tell_if_lost, NULL, true);
		/* There may be room again. */
		perf_event_enable(counters->events[i]);
	}
}

static void look(struct work_struct *work)
{
	int cpu;

	/* Who holds the lock may wait for this to end. */
	if (mutex_trylock(&kbarman_session.lock)) {
		for_each_online_cpu(cpu)
			look_at_counters(per_cpu_ptr(&cpu_counters, cpu), cpu);
		mutex_unlock(&kbarman_session.lock);
	}
	schedule_delayed_work(to_delayed_work(work), LOOK_EVERY);
}

static DECLARE_DEFERRABLE_WORK(looker, look);

/* ---- an overflow ---- */

/* Only an event that counts on this very CPU can be read here. */
static bool readable(const struct perf_event *event)
{
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE ||
	    READ_ONCE(event->oncpu) != smp_processor_id())
		return false;
	/* hw.idx is the counter's number, but memory of something else elsewhere. */
	return event->pmu->task_ctx_nr != perf_hw_context || READ_ONCE(event->hw.idx) >= 0;
}

/*
 * What the counter counted since it was last asked. An NMI that asks in between
 * makes the exchange fail, and then the counter is read again, so the answer is never
 * negative and nothing is counted twice.
 */
static u64 read_delta(struct counters *counters, unsigned int i)
{
	struct perf_event *event = counters->events[i];
	u64 before, now;

	if (unlikely(!readable(event))) {
		local_inc(&counters->unreadable);
		return UNREADABLE;
	}
	do {
		before = local64_read(&counters->last[i]);
		event->pmu->read(event);
		now = local64_read(&event->count);
	} while (unlikely(local64_cmpxchg(&counters->last[i], before, now) != before));
	return now - before;
}

static __always_inline void sample(struct kbarman_ring *ring, struct pt_regs *regs,
				   const u64 *deltas, unsigned int nr, bool with_chain)
{
	struct kbarman_callchain *chain = NULL;
	unsigned long pc = 0;

	if (user_mode(regs)) {
		pc = instruction_pointer(regs);
		/* First, so that no row is stamped later than the sample it is for. */
		kbarman_maps_sampled();
	} else if (kbarman_session.kernel_addresses) {
		pc = instruction_pointer(regs);
	}
	if (with_chain)
		chain = kbarman_callchain_sample(regs);
	if (with_chain && chain)
		kbarman_record_sample(ring, current->pid, pc, deltas, nr, &chain->head,
				      kbarman_callchain_bytes(chain));
	else
		kbarman_record_sample(ring, current->pid, pc, deltas, nr, NULL, 0);
	if (with_chain)
		kbarman_callchain_put(chain);
}

/* All counters, into @deltas. Returns how many. */
static __always_inline unsigned int read_deltas(struct counters *counters, u64 *deltas)
{
	unsigned int i, nr = kbarman_session.config.nr_events;
	unsigned long flags;

	/* Older kernels let stop() interrupt a software event's overflow, and take them away. */
	raw_local_irq_save(flags);
	for (i = 0; i < nr; i++)
		deltas[i] = read_delta(counters, i);
	raw_local_irq_restore(flags);
	return nr;
}

static __always_inline void take(struct perf_event *event, struct pt_regs *regs, bool with_chain)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = kbarman_this_ring();
	u64 deltas[BM_MAX_PMU_COUNTERS];
	unsigned int nr;
	bool throttled;

	/* Pairs with the release in cpu_start(): the events, the entry in the header. */
	if (unlikely(!ring || !smp_load_acquire(&counters->ready)))
		return;
	nr = read_deltas(counters, deltas);
	/* perf has decided already, and stops the counter when this returns. */
	throttled = READ_ONCE(event->hw.interrupts) == THROTTLED;
	if (kbarman_wants(current->pid))
		sample(ring, regs, deltas, nr, with_chain);
	if (unlikely(throttled || counters->told))
		tell_overflow(ring, counters, throttled);
}

void kbarman_pmu_count(void)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = kbarman_this_ring();
	u64 deltas[BM_MAX_PMU_COUNTERS];
	unsigned int nr;

	/* As in take(). */
	if (unlikely(!ring || !smp_load_acquire(&counters->ready)))
		return;
	nr = read_deltas(counters, deltas);
	if (kbarman_wants(current->pid))
		kbarman_record_counts(ring, current->pid, deltas, nr);
}

static void overflow(struct perf_event *event, struct perf_sample_data *data,
		     struct pt_regs *regs)
{
	take(event, regs, false);
}

static void overflow_chain(struct perf_event *event, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	take(event, regs, true);
}

/* ---- events ---- */

static struct perf_event_attr wanted_attr(const struct kbarman_session *session, unsigned int i)
{
	const struct kbarman_event *wanted = &session->events[i];
	struct perf_event_attr attr = {
		.type = wanted->type,
		.size = sizeof(attr),
		.config = wanted->config,
		.config1 = wanted->config1,
		.config2 = wanted->config2,
		.pinned = 1,
	};

	if (i > 0 || !session->config.sample)
		return attr;
	if (session->config.flags & KBARMAN_CONFIGURE_FREQ) {
		attr.freq = 1;
		attr.sample_freq = session->config.sample;
	} else {
		attr.sample_period = session->config.sample;
	}
	return attr;
}

/* A period meant for cycles is taken for nanoseconds: the right order of magnitude. */
static struct perf_event_attr fallback_attr(const struct kbarman_session *session)
{
	u64 sample = session->config.sample;

	return (struct perf_event_attr) {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.pinned = 1,
		.sample_period = !sample ? 0 : session->config.flags & KBARMAN_CONFIGURE_FREQ ?
					 max(div64_u64(NSEC_PER_SEC, sample), 1ULL) :
					 max_t(u64, sample, FALLBACK_MIN_NS),
	};
}

/*
 * PMUs that take config1 for the address of a name, and copy that from the user's memory. Which
 * could make us wait for ever, with the session's lock held (FUSE, userfaultfd); and the worker
 * that follows the CPUs has no such memory of its own.
 */
static const char *const naming_pmus[] = { "kprobe", "uprobe" };

static bool is_pmu(const struct device *any, const char *name, u32 type)
{
	struct device *device = bus_find_device_by_name(any->bus, NULL, name);
	const struct pmu *pmu = device ? dev_get_drvdata(device) : NULL;
	bool same = pmu && pmu->type == type;

	put_device(device);
	return same;
}

/* -EFAULT for an event that is named in memory of the user's. */
static int check_name(const struct perf_event_attr *attr, int cpu)
{
	struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(dummy),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};
	struct perf_event *event;
	unsigned int i;
	int error = 0;

	if (attr->type < PERF_TYPE_MAX || !attr->config1)
		return 0;
	/* All PMUs are on one bus, and this is a way to it. */
	event = perf_event_create_kernel_counter(&dummy, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	for (i = 0; i < ARRAY_SIZE(naming_pmus); i++)
		if (!event->pmu->dev || is_pmu(event->pmu->dev, naming_pmus[i], attr->type))
			error = -EFAULT;
	perf_event_release_kernel(event);
	return error;
}

/* An event that counts on @cpu now, or an ERR_PTR. */
static struct perf_event *create_event(struct perf_event_attr attr, int cpu)
{
	perf_overflow_handler_t handler =
		kbarman_session.config.flags & KBARMAN_CONFIGURE_CHAIN ? overflow_chain : overflow;
	int error = check_name(&attr, cpu);
	struct perf_event *event;

	if (error)
		return ERR_PTR(error);
	event = perf_event_create_kernel_counter(&attr, cpu, NULL,
						 attr.sample_period ? handler : NULL, NULL);
	if (IS_ERR(event))
		return event;
	/* PMUs outside the CPU can't be read from its overflow handler; and there is none
	 * where a PMU has no interrupt, which perf only asks about for user space. */
	if (event->pmu->task_ctx_nr == perf_invalid_context || event->cpu != cpu ||
	    (attr.sample_period && event->pmu->capabilities & PERF_PMU_CAP_NO_INTERRUPT))
		error = -EOPNOTSUPP;
	/* Pinned, and not to be had at the same time as those before it. */
	else if (READ_ONCE(event->state) <= PERF_EVENT_STATE_ERROR)
		error = -ENOSPC;
	if (!error)
		return event;
	perf_event_release_kernel(event);
	return ERR_PTR(error);
}

static bool is_hardware(const struct kbarman_event *event)
{
	return event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT &&
	       event->type != PERF_TYPE_BREAKPOINT;
}

/* @error from the first event says that there is no PMU that could sample it. */
static bool may_fall_back(const struct kbarman_session *session, int error)
{
	return session->config.flags & KBARMAN_CONFIGURE_FALLBACK &&
	       is_hardware(&session->events[0]) &&
	       (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV);
}

static struct perf_event *create_first(struct kbarman_session *session, int cpu,
				       struct counters *counters)
{
	struct perf_event *event;

	/* A CPU that comes back goes on with what its entry says. */
	if (!counters->published || !counters->fallback) {
		event = create_event(wanted_attr(session, 0), cpu);
		if (!IS_ERR(event) || counters->published ||
		    !may_fall_back(session, PTR_ERR(event)))
			return event;
	}
	event = create_event(fallback_attr(session), cpu);
	if (!IS_ERR(event))
		counters->fallback = true;
	return event;
}

/*
 * An overflow may be under way yet, if it is a software event's: it finds the events
 * switched off. Their memory goes an RCU grace period later, so the pointers stay.
 */
static void release_events(struct counters *counters)
{
	unsigned int i;

	WRITE_ONCE(counters->ready, false);
	for (i = 0; i < counters->nr; i++)
		perf_event_release_kernel(counters->events[i]);
	counters->nr = 0;
}

static int create_events(struct kbarman_session *session, int cpu, struct counters *counters,
			 struct kbarman_start *report)
{
	struct perf_event *event;
	unsigned int i;

	for (i = 0; i < session->config.nr_events; i++) {
		event = i ? create_event(wanted_attr(session, i), cpu) :
			    create_first(session, cpu, counters);
		if (IS_ERR(event)) {
			report->event = i;
			report->cpu = cpu;
			release_events(counters);
			return PTR_ERR(event);
		}
		counters->events[i] = event;
		local64_set(&counters->last[i], 0);
		counters->nr = i + 1;
	}
	return 0;
}

/* ---- the entry in the header ---- */

/* Of @event, which was made as @wanted: perf may have moved it to another PMU's type since. */
static u32 counter_type(const struct perf_event *event, const struct kbarman_event *wanted)
{
	if (wanted->type == PERF_TYPE_SOFTWARE)
		return SOFTWARE_COUNTER | wanted->config;
	if (wanted->type == PERF_TYPE_TRACEPOINT)
		return TRACEPOINT_COUNTER | wanted->config;
	if (event->pmu->task_ctx_nr != perf_hw_context)
		return wanted->config;
	/* The number the hardware goes by, whatever name the event was asked for by. */
#if defined(CONFIG_ARM64) || defined(CONFIG_ARM)
	return event->hw.config_base & 0xffff;
#elif defined(CONFIG_X86)
	return event->hw.config & 0xffff;
#else
	return wanted->config;
#endif
}

static void publish(struct kbarman_session *session, int cpu, struct counters *counters)
{
	struct bm_protocol_header_pmu_settings settings = {
		.configuration_timestamp = kbarman_clock(),
		.num_counters = counters->nr,
	};
	static const struct kbarman_event fallback = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.name = FALLBACK_NAME,
	};
	char key[32];
	unsigned int i;

	for (i = 0; i < counters->nr; i++) {
		const struct kbarman_event *event =
			!i && counters->fallback ? &fallback : &session->events[i];

		settings.counter_types[i] = counter_type(counters->events[i], event);
		snprintf(key, sizeof(key), "counter.%d.%u", cpu, i);
		kbarman_header_fact(session->capture, key, "%s", event->name);
	}
	if (counters->fallback) {
		session->fallback = true;
		kbarman_header_fact(session->capture, "fallback", FALLBACK_NAME);
	}
	kbarman_cpu_identify(cpu, &settings);
	kbarman_header_set_pmu(session->capture, cpu, &settings);
	counters->published = true;
}

/* ---- the source ---- */

/* -ERANGE for a frequency above perf's limit, which it asks for user space's events alone. */
static int check_frequency(const struct kbarman_session *session)
{
	struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(dummy),
		.config = PERF_COUNT_SW_DUMMY,
		.freq = 1,
		.sample_freq = 1,
		.disabled = 1,
	};
	struct perf_event *event;
	int error;

	if (!(session->config.flags & KBARMAN_CONFIGURE_FREQ) || !session->config.sample)
		return 0;
	event = perf_event_create_kernel_counter(&dummy, cpumask_any(cpu_online_mask), NULL,
						 overflow, NULL);
	/* What is wrong there the events themselves will say. */
	if (IS_ERR(event))
		return 0;
	error = perf_event_period(event, session->config.sample);
	perf_event_release_kernel(event);
	return error == -EINVAL ? -ERANGE : 0;
}

static int start(struct kbarman_session *session)
{
	int cpu, reason, error;

	/* Beyond it the period would be negative to perf. */
	if (session->config.sample > S64_MAX)
		return -EINVAL;
	error = check_frequency(session);
	if (error)
		return error;
	session->fallback = false;
	for_each_possible_cpu(cpu) {
		struct counters *counters = per_cpu_ptr(&cpu_counters, cpu);

		counters->published = false;
		counters->fallback = false;
		local_set(&counters->unreadable, 0);
		counters->told = 0;
		counters->bookmarked = 0;
		for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++)
			local_set(&counters->stops[reason], 0);
	}
	schedule_delayed_work(&looker, LOOK_EVERY);
	return 0;
}

static int cpu_start(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	struct counters *counters = per_cpu_ptr(&cpu_counters, cpu);
	int error;

	error = create_events(session, cpu, counters, report);
	if (error)
		return error;
	if (!counters->published)
		publish(session, cpu, counters);
	/* Pairs with take(): a sample has as many deltas as the entry says. */
	smp_store_release(&counters->ready, true);
	return 0;
}

static void cpu_stop(struct kbarman_session *session, int cpu)
{
	struct counters *counters = per_cpu_ptr(&cpu_counters, cpu);

	/* Lost since the last look. */
	if (counters->nr && has_lost_place(counters->events[0]))
		smp_call_function_single(cpu, tell_if_lost, NULL, true);
	release_events(counters);
}

/* The events are still there; but from here on they say nothing, and soon they are gone. */
static void cpu_goes(void)
{
	struct counters *counters;
	struct kbarman_ring *ring;

	preempt_disable();
	counters = this_cpu_ptr(&cpu_counters);
	ring = kbarman_this_ring();
	/* As in take(). */
	if (ring && smp_load_acquire(&counters->ready)) {
		WRITE_ONCE(counters->ready, false);
		tell_stop(ring, counters, KBARMAN_STOPPED_OFFLINE);
	}
	preempt_enable();
}

static void stop(struct kbarman_session *session)
{
	cancel_delayed_work_sync(&looker);
	/* For the last overflow(), which has preemption off at least. */
	synchronize_rcu();
}

const struct kbarman_source kbarman_source_pmu = {
	.name = "pmu",
	.bit = KBARMAN_SOURCE_PMU,
	.start = start,
	.stop = stop,
	.cpu_start = cpu_start,
	.cpu_stop = cpu_stop,
	.cpu_goes = cpu_goes,
};

u64 kbarman_pmu_stops(int cpu, enum kbarman_stop reason)
{
	return kbarman_counted(&per_cpu(cpu_counters, cpu).stops[reason]);
}

u64 kbarman_pmu_unreadable(void)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += kbarman_counted(&per_cpu(cpu_counters, cpu).unreadable);
	return sum;
}

/* What machine this is. Under the session's lock, but at init. */
static struct {
	bool known, present;
	char name[32];
} cpu_pmu;

void kbarman_pmu_find(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
	};
	struct perf_event *event;

	if (cpu_pmu.known)
		return;
	event = perf_event_create_kernel_counter(&attr, cpumask_any(cpu_online_mask), NULL, NULL,
						 NULL);
	if (!IS_ERR(event)) {
		strscpy(cpu_pmu.name, event->pmu->name, sizeof(cpu_pmu.name));
		perf_event_release_kernel(event);
		cpu_pmu.present = true;
	}
	/* No memory, or a CPU that goes, says nothing about the machine. */
	cpu_pmu.known = !IS_ERR(event) || PTR_ERR(event) == -ENOENT ||
			PTR_ERR(event) == -EOPNOTSUPP;
}

bool kbarman_pmu_present(char *name, size_t size)
{
	kbarman_pmu_find();
	strscpy(name, cpu_pmu.name, size);
	return cpu_pmu.present;
}
