// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples. Every CPU that records has a set of counters. An overflow of the first counter makes a
 * sample, for which all counters of the set are read.
 *
 * The counters are pinned. If the hardware can't count all of them at the same time, start fails
 * and names the counter. So nothing is multiplexed, and every number is a count and not an
 * estimate.
 *
 * The deltas of a sample cover the time since the last overflow on its CPU. Overflows in tasks that
 * are not recorded are read too, so that their counts do not go to the next recorded task.
 *
 * The first counter may stop while the others go on: when Linux throttles it, when it loses its
 * place on the PMU, or when its CPU goes offline. Each stop is counted and recorded in the ring:
 * the value of a series is the reason of the stop until the counter overflows again.
 *
 * Context of overflow(): the CPU of the event, in an interrupt or an NMI; for software events any
 * context with preemption off. It takes no lock, allocates nothing, prints nothing, and never
 * disables the event (kernels 6.16 to 6.17 hang then).
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

#define UNREADABLE		U64_MAX		/* value of a delta */
#define SOFTWARE_COUNTER	0x80000000U	/* in counter_types, ORed with PERF_COUNT_SW_* */
#define TRACEPOINT_COUNTER	0xc0000000U	/* ORed with the tracepoint's number */
#define FALLBACK_NAME		"cpu-clock"
#define FALLBACK_MIN_NS		100000
#define THROTTLED		U64_MAX		/* hw.interrupts of a throttled event: perf's
						 * MAX_INTERRUPTS */
#define LOOK_EVERY		HZ		/* jiffies from one check for events without a place
						 * on the PMU to the next */

/* The counters of one CPU. */
struct counters {
	struct perf_event *events[BM_MAX_PMU_COUNTERS];
	unsigned int nr;	/* number of events created */
	bool ready;		/* all configured events exist. Set with release after the last one
				 * is created, cleared before the first one is released */
	bool fallback;		/* the first counter is cpu-clock, because there is no PMU */
	bool published;		/* the capture has the entry of this CPU. The entry does not change
				 * until the session ends */
	/* Used by the owning CPU only, at any level up to NMI. */
	local64_t last[BM_MAX_PMU_COUNTERS];	/* counts at the last overflow */
	local_t unreadable;
	u32 told;		/* what the ring says about the first counter: 0: it counts; else
				 * enum kbarman_stop + 1 */
	u64 bookmarked;		/* timestamp of the last bookmark of a stop */
	local_t stops[KBARMAN_STOP_REASONS];
};

static DEFINE_PER_CPU(struct counters, cpu_counters);

/* This CPU's ring if @counters, of this CPU, count; else NULL. Context: preemption off. */
static __always_inline struct kbarman_ring *counting_ring(const struct counters *counters)
{
	struct kbarman_ring *ring = kbarman_this_ring();

	/*
	 * Pairs with the release in cpu_start(): the events and the entry in the header are
	 * complete.
	 */
	return likely(ring && smp_load_acquire(&counters->ready)) ? ring : NULL;
}

/* ---- a counter that stops ---- */

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

	/*
	 * At most one bookmark a second: a counter may be throttled at every tick. The series has
	 * all of the stops.
	 */
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

/* The first counter has overflowed, so it counted. Context: as tell_stop(). */
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

/* The CPU checks its own first counter. Context: interrupts off. */
static void tell_if_lost(void *unused)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = counting_ring(counters);

	if (ring && has_lost_place(counters->events[0]) &&
	    counters->told != KBARMAN_STOPPED_ERROR + 1)
		tell_stop(ring, counters, KBARMAN_STOPPED_ERROR);
}

/*
 * Context: task, session's lock held. @cpu is interrupted only if its first counter has lost its
 * place.
 */
static void look_at_counters(struct counters *counters, int cpu)
{
	unsigned int i;

	for (i = 0; i < counters->nr; i++) {
		if (!has_lost_place(counters->events[i]))
			continue;
		if (!i)
			smp_call_function_single(cpu, tell_if_lost, NULL, true);
		/* The PMU may have a place for the event again. */
		perf_event_enable(counters->events[i]);
	}
}

static void look(struct work_struct *work)
{
	int cpu;

	/* Only try the lock: its holder may be waiting for this work to end. */
	if (mutex_trylock(&kbarman_session.lock)) {
		for_each_online_cpu(cpu)
			look_at_counters(per_cpu_ptr(&cpu_counters, cpu), cpu);
		mutex_unlock(&kbarman_session.lock);
	}
	schedule_delayed_work(to_delayed_work(work), LOOK_EVERY);
}

static DECLARE_DEFERRABLE_WORK(looker, look);

/* ---- an overflow ---- */

/* Only an event that counts on this CPU can be read here. */
static bool readable(const struct perf_event *event)
{
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE ||
	    READ_ONCE(event->oncpu) != smp_processor_id())
		return false;
	/*
	 * hw.idx is the number of a hardware counter. Events of other PMUs use this memory for
	 * something else.
	 */
	return event->pmu->task_ctx_nr != perf_hw_context || READ_ONCE(event->hw.idx) >= 0;
}

/*
 * Returns the counts since the last read. If an NMI reads the counter in between, the exchange
 * fails and the counter is read again. So the result is never negative, and nothing is counted
 * twice.
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
		/*
		 * Before the record is made, so that no mapping row is stamped later than its
		 * sample.
		 */
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

/* Read all counters into @deltas. Returns the number of counters. */
static __always_inline unsigned int read_deltas(struct counters *counters, u64 *deltas)
{
	unsigned int i, nr = kbarman_session.config.nr_events;
	unsigned long flags;

	/*
	 * On older kernels cpu_stop() can remove the events by an interrupt, even during the
	 * overflow of a software event.
	 */
	raw_local_irq_save(flags);
	for (i = 0; i < nr; i++)
		deltas[i] = read_delta(counters, i);
	raw_local_irq_restore(flags);
	return nr;
}

static __always_inline void take(struct perf_event *event, struct pt_regs *regs, bool with_chain)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = counting_ring(counters);
	u64 deltas[BM_MAX_PMU_COUNTERS];
	unsigned int nr;
	bool throttled;

	if (unlikely(!ring))
		return;
	nr = read_deltas(counters, deltas);
	/*
	 * perf has already decided to throttle the event, and stops the event when this handler
	 * returns.
	 */
	throttled = READ_ONCE(event->hw.interrupts) == THROTTLED;
	if (kbarman_wants(current->pid))
		sample(ring, regs, deltas, nr, with_chain);
	if (unlikely(throttled || counters->told))
		tell_overflow(ring, counters, throttled);
}

void kbarman_pmu_count(void)
{
	struct counters *counters = this_cpu_ptr(&cpu_counters);
	struct kbarman_ring *ring = counting_ring(counters);
	u64 deltas[BM_MAX_PMU_COUNTERS];
	unsigned int nr;

	if (unlikely(!ring))
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

/* A period in cycles is used as a period in ns: the order of magnitude is right. */
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
 * PMUs that take config1 for the user address of a name and copy this name. With FUSE or
 * userfaultfd that copy could wait forever, while the session's lock is held. The worker that
 * follows the CPUs has no user memory at all.
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

/* -EFAULT for an event whose name is in user memory. */
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
	/* All PMUs are on one bus. The device of any PMU leads to this bus. */
	event = perf_event_create_kernel_counter(&dummy, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	for (i = 0; i < ARRAY_SIZE(naming_pmus); i++)
		if (!event->pmu->dev || is_pmu(event->pmu->dev, naming_pmus[i], attr->type))
			error = -EFAULT;
	perf_event_release_kernel(event);
	return error;
}

/* Create an event that counts on @cpu from now on. Returns an ERR_PTR. */
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
	/*
	 * The overflow handler can't read PMUs outside of the CPU. A PMU without an interrupt never
	 * calls the handler; perf checks this only for events of user space.
	 */
	if (event->pmu->task_ctx_nr == perf_invalid_context || event->cpu != cpu ||
	    (attr.sample_period && event->pmu->capabilities & PERF_PMU_CAP_NO_INTERRUPT))
		error = -EOPNOTSUPP;
	/* A pinned event that can't count at the same time as the events before it. */
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

/* True if @error of the first event says that no PMU can sample it. */
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

	/* A CPU that comes online again keeps the first counter that its entry names. */
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
 * A software event may be in its overflow handler during this. The handler finds the events
 * inactive. Their memory is freed an RCU grace period later, so counters->events[] is not cleared.
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

/*
 * The Barman type of @event, which was created for @wanted. perf may have changed the event's own
 * type to that of another PMU.
 */
static u32 counter_type(const struct perf_event *event, const struct kbarman_event *wanted)
{
	if (wanted->type == PERF_TYPE_SOFTWARE)
		return SOFTWARE_COUNTER | wanted->config;
	if (wanted->type == PERF_TYPE_TRACEPOINT)
		return TRACEPOINT_COUNTER | wanted->config;
	if (event->pmu->task_ctx_nr != perf_hw_context)
		return wanted->config;
	/*
	 * The event's number in the hardware, even if the event was requested by a generic number.
	 */
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

/*
 * -ERANGE for a frequency above kernel.perf_event_max_sample_rate. perf itself checks this limit
 * only for events of user space.
 */
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
	/* The session's own events will report this error. */
	if (IS_ERR(event))
		return 0;
	error = perf_event_period(event, session->config.sample);
	perf_event_release_kernel(event);
	return error == -EINVAL ? -ERANGE : 0;
}

static int start(struct kbarman_session *session)
{
	int cpu, reason, error;

	/* perf would take a larger period for a negative number. */
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
	/* Pairs with the acquire in take(): a sample has as many deltas as the entry says. */
	smp_store_release(&counters->ready, true);
	return 0;
}

static void cpu_stop(struct kbarman_session *session, int cpu)
{
	struct counters *counters = per_cpu_ptr(&cpu_counters, cpu);

	/* The first counter may have lost its place since the last look(). */
	if (counters->nr && has_lost_place(counters->events[0]))
		smp_call_function_single(cpu, tell_if_lost, NULL, true);
	release_events(counters);
}

/*
 * The CPU goes offline. Its events still exist, but are removed soon and do not count from here on.
 * Context: the CPU, in a task.
 */
static void cpu_goes(void)
{
	struct counters *counters;
	struct kbarman_ring *ring;

	preempt_disable();
	counters = this_cpu_ptr(&cpu_counters);
	ring = counting_ring(counters);
	if (ring) {
		WRITE_ONCE(counters->ready, false);
		tell_stop(ring, counters, KBARMAN_STOPPED_OFFLINE);
	}
	preempt_enable();
}

static void stop(struct kbarman_session *session)
{
	cancel_delayed_work_sync(&looker);
	/* Wait for the last overflow(), which runs with preemption off. */
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

/* The PMU of the CPUs. Written at init, and later with the session's lock held. */
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
	/*
	 * Other errors, as for no memory or a CPU that goes offline, say nothing about the machine.
	 */
	cpu_pmu.known = !IS_ERR(event) || PTR_ERR(event) == -ENOENT ||
			PTR_ERR(event) == -EOPNOTSUPP;
}

bool kbarman_pmu_present(char *name, size_t size)
{
	kbarman_pmu_find();
	strscpy(name, cpu_pmu.name, size);
	return cpu_pmu.present;
}
