// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "pmu/events.h"
#include "pmu/overflow.h"
#include "pmu/turns.h"
#include "stacks/callchain.h"

#define FALLBACK_MIN_NS		100000

static bool event_is_hardware(const struct kbarman_event *event)
{
	return event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT &&
	       event->type != PERF_TYPE_BREAKPOINT;
}

/* What @flags of an event say of where it counts. */
static void attr_exclude(struct perf_event_attr *attr, u32 flags)
{
	attr->exclude_user = !!(flags & KBARMAN_EVENT_NO_USER);
	attr->exclude_kernel = !!(flags & KBARMAN_EVENT_NO_KERNEL);
	attr->exclude_hv = !!(flags & KBARMAN_EVENT_NO_HV);
}

static struct perf_event_attr event_wanted_attr(const struct kbarman_event *wanted)
{
	struct perf_event_attr attr = {
		.type = wanted->type,
		.size = sizeof(attr),
		.config = wanted->config,
		.config1 = wanted->config1,
		.config2 = wanted->config2,
		.pinned = 1,
		.disabled = !!(wanted->flags & KBARMAN_EVENT_TURN),
		/*
		 * What a virtual machine does is nothing that a task of this machine does. And a
		 * host whose guests have the PMU to themselves (mediated vPMU) refuses events that
		 * would count in them, or, while there are such events, guests.
		 */
		.exclude_guest = event_is_hardware(wanted),
	};

	attr_exclude(&attr, wanted->flags);
	return attr;
}

/* The same for the counter of a CPU that samples. */
static struct perf_event_attr event_sampling_attr(const struct kbarman_session *session,
						  const struct kbarman_event *wanted)
{
	struct perf_event_attr attr = event_wanted_attr(wanted);

	/* Also where it stands for the first event, and takes turns on other CPUs. */
	attr.disabled = 0;
	if (session->config.flags & KBARMAN_CONFIGURE_FREQ) {
		attr.freq = 1;
		attr.sample_freq = session->config.sample;
	} else {
		attr.sample_period = session->config.sample;
	}
	/* x86 refuses precise events that do not sample. */
	attr.precise_ip = (wanted->flags & KBARMAN_EVENT_PRECISE) >> KBARMAN_EVENT_PRECISE_SHIFT;
	/*
	 * Without this Intel's PMU lets several precise samples wait in a buffer (large PEBS), and
	 * only the last one of them comes to the overflow handler.
	 */
	attr.wakeup_events = attr.precise_ip ? 1 : 0;
	return attr;
}

/* A period in cycles is used as a period in ns: the order of magnitude is right. */
static struct perf_event_attr event_fallback_attr(const struct kbarman_session *session)
{
	u64 sample = session->config.sample;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.pinned = 1,
		.sample_period = !sample ? 0 : session->config.flags & KBARMAN_CONFIGURE_FREQ ?
					 max(div64_u64(NSEC_PER_SEC, sample), 1ULL) :
					 max_t(u64, sample, FALLBACK_MIN_NS),
	};

	attr_exclude(&attr, session->events[0].flags);
	return attr;
}

/*
 * PMUs that take config1 for the user address of a name and copy this name. With FUSE or
 * userfaultfd that copy could wait forever, while the session's lock is held. The worker that
 * follows the CPUs has no user memory at all.
 */
static const char *const naming_pmus[] = { "kprobe", "uprobe" };

static bool event_names_pmu(const struct device *any, const char *name, u32 type)
{
	struct device *device = bus_find_device_by_name(any->bus, NULL, name);
	const struct pmu *pmu = device ? dev_get_drvdata(device) : NULL;
	bool same = pmu && pmu->type == type;

	put_device(device);
	return same;
}

/* -EFAULT for an event whose name is in user memory. */
static int event_check_name(const struct perf_event_attr *attr, int cpu)
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
		if (!event->pmu->dev ||
		    event_names_pmu(event->pmu->dev, naming_pmus[i], attr->type))
			error = -EFAULT;
	perf_event_release_kernel(event);
	return error;
}

/*
 * Create an event with @attr on @cpu. A PMU that can leave out nothing, guests included, refuses
 * to: there the event counts wherever the PMU does.
 */
static struct perf_event *event_of_attr(struct perf_event_attr *attr, int cpu,
					perf_overflow_handler_t handler, void *context)
{
	struct perf_event *event = perf_event_create_kernel_counter(attr, cpu, NULL, handler,
								    context);

	if (!attr->exclude_guest ||
	    (event != ERR_PTR(-EINVAL) && event != ERR_PTR(-EOPNOTSUPP)))
		return event;
	attr->exclude_guest = 0;
	return perf_event_create_kernel_counter(attr, cpu, NULL, handler, context);
}

/*
 * The number of the PMU that counts an event with @attr on @cpu if the event takes no samples; 0:
 * there is none.
 */
static u32 event_counting_pmu(struct perf_event_attr attr, int cpu)
{
	struct perf_event *event;
	u32 type;

	attr.sample_period = 0;
	attr.freq = 0;
	attr.precise_ip = 0;
	attr.wakeup_events = 0;
	attr.pinned = 0;
	attr.disabled = 1;
	if (event_check_name(&attr, cpu))
		return 0;
	event = event_of_attr(&attr, cpu, NULL, NULL);
	if (IS_ERR(event))
		return 0;
	type = event->pmu->type;
	perf_event_release_kernel(event);
	return type;
}

/*
 * True if Linux gave the precise @event to another PMU than the one that counts such events. AMD's
 * CPUs sample cycles precisely by IBS, whose counter can't be read.
 */
static bool event_is_forwarded(const struct perf_event *event, const struct perf_event_attr *attr,
			       int cpu)
{
	u32 pmu = attr->precise_ip ? event_counting_pmu(*attr, cpu) : 0;

	return pmu && pmu != event->pmu->type;
}

/* Create an event that counts on @cpu from now on. Returns an ERR_PTR. */
static struct perf_event *event_create(struct kbarman_session *session,
				       struct perf_event_attr attr, int cpu)
{
	perf_overflow_handler_t handler =
		session->config.flags & KBARMAN_CONFIGURE_CHAIN ? kbarman_pmu_overflow_chain :
								  kbarman_pmu_overflow;
	int error = event_check_name(&attr, cpu);
	struct perf_event *event;

	if (error)
		return ERR_PTR(error);
	event = event_of_attr(&attr, cpu, attr.sample_period ? handler : NULL,
			      per_cpu_ptr(session->each, cpu));
	if (IS_ERR(event))
		return event;
	/*
	 * The overflow handler can't read PMUs outside of the CPU. A PMU without an interrupt never
	 * calls the handler; perf checks this only for events of user space.
	 */
	if (event->pmu->task_ctx_nr == perf_invalid_context || event->cpu != cpu ||
	    (attr.sample_period && event->pmu->capabilities & PERF_PMU_CAP_NO_INTERRUPT) ||
	    event_is_forwarded(event, &attr, cpu))
		error = -EOPNOTSUPP;
	/* A pinned event that can't count at the same time as the events before it. */
	else if (READ_ONCE(event->state) <= PERF_EVENT_STATE_ERROR)
		error = -ENOSPC;
	if (!error)
		return event;
	perf_event_release_kernel(event);
	return ERR_PTR(error);
}

static bool session_is_per_core(const struct kbarman_session *session)
{
	return session->config.flags & KBARMAN_CONFIGURE_PER_CORE;
}

/*
 * True if a CPU whose PMU answers @error can do without event @i. -ENODEV is not among these
 * errors, because it also says that the CPU is gone.
 */
static bool event_may_be_left_out(const struct kbarman_session *session, unsigned int i, int error)
{
	const struct kbarman_event *event = &session->events[i];
	/* Kernels that know no PMU in the number of a generic event refuse the number. */
	bool names_pmu = (event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE) &&
			 event->config >> 32;

	return session_is_per_core(session) &&
	       (error == -ENOENT || error == -EOPNOTSUPP || (error == -EINVAL && names_pmu));
}

/* True if @error of the first event says that no PMU can sample it. */
static bool event_may_fall_back(const struct kbarman_session *session, int error)
{
	return session->config.flags & KBARMAN_CONFIGURE_FALLBACK &&
	       event_is_hardware(&session->events[0]) &&
	       (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV);
}

/* ---- which event samples ---- */

/*
 * The number of the PMU that the event names; 0: it names none, so that each CPU's own PMU counts
 * it. On most architectures the first PMU of CPUs has the number of raw events.
 */
static u32 event_named_pmu(const struct kbarman_event *event)
{
	bool raw_is_any = IS_ENABLED(CONFIG_ARM) || IS_ENABLED(CONFIG_ARM64);

	if (event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE)
		return event->config >> 32;
	if (event->type == PERF_TYPE_RAW)
		return raw_is_any ? 0 : PERF_TYPE_RAW;
	return event->type < PERF_TYPE_MAX ? 0 : event->type;
}

/*
 * True if event @i samples on CPUs that count none of the events in front of it: it has their name,
 * or it is of the CPU's PMU and they are of others. All other events would sample with the period
 * of an event that the CPU has lost.
 */
static bool event_may_sample(const struct kbarman_session *session, unsigned int i, int cpu)
{
	const struct kbarman_event *events = session->events;
	u32 named, pmu = 0;
	unsigned int j;

	for (j = 0; j < i; j++) {
		if (!strcmp(events[j].name, events[i].name))
			continue;
		named = event_named_pmu(&events[j]);
		if (!named || !event_is_hardware(&events[i]))
			return false;
		if (!pmu)
			pmu = event_counting_pmu(event_wanted_attr(&events[i]), cpu);
		if (!pmu || named == pmu)
			return false;
	}
	return true;
}

/* ---- the counters of a CPU ---- */

bool kbarman_pmu_counts_name(const struct kbarman_session *session,
			     const struct kbarman_counters *counters, unsigned int nr,
			     const char *name)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(session->events[counters->wanted[i]].name, name))
			return true;
	return false;
}

/*
 * True if the CPU need not try event @i. A CPU that comes online again has the events that its
 * entry names. Any other one need not try what it has by another event of the same name.
 */
static bool counters_skip(const struct kbarman_session *session,
			  const struct kbarman_counters *counters, unsigned int i)
{
	if (counters->published)
		return counters->nr == counters->values || counters->wanted[counters->nr] != i;
	return session_is_per_core(session) &&
	       kbarman_pmu_counts_name(session, counters, counters->nr, session->events[i].name);
}

/* Event @i as the next counter, or cpu-clock in its place. */
static struct perf_event *counters_create(struct kbarman_session *session, int cpu,
					  struct kbarman_counters *counters, unsigned int i)
{
	bool again = counters->published, first = !counters->nr;
	bool samples = first && session->config.sample && event_may_sample(session, i, cpu);
	const struct kbarman_event *wanted = &session->events[i];
	struct perf_event *event;

	if (!again || !first || !counters->fallback) {
		event = event_create(session, samples ? event_sampling_attr(session, wanted) :
							event_wanted_attr(wanted), cpu);
		if (!IS_ERR(event) || again || i || session_is_per_core(session) ||
		    !event_may_fall_back(session, PTR_ERR(event)))
			return event;
	}
	event = event_create(session, event_fallback_attr(session), cpu);
	if (!IS_ERR(event))
		counters->fallback = true;
	return event;
}

static void counters_add(const struct kbarman_session *session, struct kbarman_counters *counters,
			 struct perf_event *event, unsigned int i)
{
	unsigned int at = counters->nr;

	counters->events[at] = event;
	local64_set(&counters->last[at], 0);
	counters->released[at] = 0;
	counters->turn[at] = event->attr.disabled ? kbarman_turns_of_event(session, i) : 0;
	if (!counters->published)
		counters->wanted[at] = i;
	counters->nr = at + 1;
}

/* The CPU can count none of the events. */
static int counters_fall_back(struct kbarman_session *session, int cpu,
			      struct kbarman_counters *counters)
{
	struct perf_event *event;
	unsigned int i;

	for (i = 0; i < session->config.nr_events; i++)
		if (event_is_hardware(&session->events[i]))
			break;
	if (i == session->config.nr_events ||
	    !(session->config.flags & KBARMAN_CONFIGURE_FALLBACK))
		return 0;
	event = event_create(session, event_fallback_attr(session), cpu);
	if (IS_ERR(event))
		return PTR_ERR(event);
	counters->fallback = true;
	counters_add(session, counters, event, 0);
	return 0;
}

void kbarman_pmu_settle(struct kbarman_counters *counters)
{
	unsigned int i;

	if (!counters->unsettled)
		return;
	for (i = 0; i < counters->values; i++) {
		local64_add(counters->released[i] - local64_read(&counters->last[i]),
			    &counters->unrecorded[i]);
		counters->counted[i] += counters->released[i];
		counters->released[i] = 0;
		local64_set(&counters->last[i], 0);
	}
	counters->unsettled = false;
}

/*
 * A software event may be in its overflow handler during this. The handler finds the events
 * inactive. Their memory is freed an RCU grace period later, so counters->events[] is not cleared.
 */
void kbarman_pmu_release_events(struct kbarman_counters *counters)
{
	u64 enabled, running;
	unsigned int i;

	WRITE_ONCE(counters->ready, false);
	for (i = 0; i < counters->nr; i++) {
		counters->released[i] = perf_event_read_value(counters->events[i], &enabled,
							      &running);
		perf_event_release_kernel(counters->events[i]);
	}
	counters->nr = 0;
	counters->unsettled = true;
}

void kbarman_pmu_disable_events(struct kbarman_counters *counters)
{
	unsigned int i;

	WRITE_ONCE(counters->ended, ~0U);
	for (i = 0; i < counters->nr; i++)
		perf_event_disable(counters->events[i]);
}

static int counters_create_all(struct kbarman_session *session, int cpu,
			       struct kbarman_start *report)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	struct perf_event *event;
	unsigned int i;

	report->cpu = cpu;
	for (i = 0; i < session->config.nr_events; i++) {
		if (counters_skip(session, counters, i))
			continue;
		report->event = i;
		event = counters_create(session, cpu, counters, i);
		if (!IS_ERR(event))
			counters_add(session, counters, event, i);
		else if (counters->published ||
			 !event_may_be_left_out(session, i, PTR_ERR(event)))
			return PTR_ERR(event);
	}
	report->event = 0;
	if (!counters->nr && !counters->published)
		return counters_fall_back(session, cpu, counters);
	return kbarman_turns_try(session, counters, report);
}

int kbarman_pmu_create_events(struct kbarman_session *session, int cpu,
			      struct kbarman_start *report)
{
	struct kbarman_counters *counters = &per_cpu_ptr(session->each, cpu)->counters;
	int error;

	/* What the CPU counted until it went offline. Its last handler has to end first. */
	if (counters->unsettled)
		synchronize_rcu();
	kbarman_pmu_settle(counters);
	counters->ended = 0;
	counters->resting = 0;
	error = counters_create_all(session, cpu, report);
	if (error)
		kbarman_pmu_release_events(counters);
	return error;
}

int kbarman_pmu_check_frequency(const struct kbarman_session *session)
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
						 kbarman_pmu_overflow, NULL);
	/* The session's own events will report this error. */
	if (IS_ERR(event))
		return 0;
	error = perf_event_period(event, session->config.sample);
	perf_event_release_kernel(event);
	return error == -EINVAL ? -ERANGE : 0;
}
