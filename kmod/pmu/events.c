// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "pmu/events.h"
#include "pmu/overflow.h"
#include "pmu/turns.h"
#include "stacks/callchain.h"

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
				       const struct kbarman_event *wanted, int cpu)
{
	struct perf_event_attr attr = wanted->attr;
	perf_overflow_handler_t handler =
		session->config.flags & KBARMAN_CONFIGURE_CHAIN ? kbarman_pmu_overflow_chain :
								  kbarman_pmu_overflow;
	int error = event_check_name(&attr, cpu);
	struct perf_event *event;

	if (error)
		return ERR_PTR(error);
	attr.pinned = 1;
	attr.disabled = !!wanted->turn;
	/*
	 * Without this Intel's PMU lets several precise samples wait in a buffer (large PEBS), and
	 * only the last one of them comes to the overflow handler.
	 */
	attr.wakeup_events = attr.precise_ip ? 1 : 0;
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

/* ---- the counters of a CPU ---- */

bool kbarman_pmu_counts_name(const struct kbarman_session *session,
			     const struct kbarman_counters *counters, const char *name)
{
	unsigned int i;

	for (i = 0; i < counters->nr; i++)
		if (!strcmp(session->events[counters->wanted[i]].name, name))
			return true;
	return false;
}

/*
 * Count the first one of the events from @i up to @end that the CPU accepts. -ENODEV also says that
 * the CPU is gone; then it is the last error, too.
 */
static int counters_take(struct kbarman_session *session, int cpu,
			 struct kbarman_counters *counters, unsigned int i, unsigned int end,
			 struct kbarman_start *report)
{
	struct perf_event *event;
	unsigned int at = counters->nr;

	for (;; i++) {
		report->event = i;
		event = event_create(session, &session->events[i], cpu);
		if (!IS_ERR(event))
			break;
		if (i + 1 == end || (event != ERR_PTR(-ENOENT) && event != ERR_PTR(-EOPNOTSUPP) &&
				     event != ERR_PTR(-ENODEV)))
			return PTR_ERR(event);
	}
	counters->events[at] = event;
	local64_set(&counters->last[at], 0);
	counters->released[at] = 0;
	counters->wanted[at] = i;
	counters->turn[at] = session->events[i].turn;
	counters->nr = at + 1;
	return 0;
}

unsigned int kbarman_pmu_next_counter(const struct kbarman_session *session, unsigned int i)
{
	do
		i++;
	while (i < session->config.nr_events && session->events[i].flags & KBARMAN_EVENT_ELSE);
	return i;
}

/* A counter for event @i or one of its alternatives, up to @end. */
static int counters_add(struct kbarman_session *session, int cpu,
			struct kbarman_counters *counters, unsigned int i, unsigned int end,
			struct kbarman_start *report)
{
	const struct kbarman_event *wanted = &session->events[i];
	bool optional = wanted->flags & KBARMAN_EVENT_OPTIONAL;
	int error;

	if (optional && kbarman_pmu_counts_name(session, counters, wanted->name))
		return 0;
	error = counters_take(session, cpu, counters, i, end, report);
	return optional && (error == -ENOENT || error == -EOPNOTSUPP) ? 0 : error;
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
			       struct kbarman_counters *counters, struct kbarman_start *report)
{
	/* A CPU that comes online again has the events that its entry names. */
	bool again = session->running && counters->published;
	unsigned int i, end;
	int error = 0;

	for (i = 0; again && i < counters->values && !error; i++)
		error = counters_take(session, cpu, counters, counters->wanted[i],
				      counters->wanted[i] + 1, report);
	for (i = 0; !again && i < session->config.nr_events && !error; i = end) {
		end = kbarman_pmu_next_counter(session, i);
		error = counters_add(session, cpu, counters, i, end, report);
	}
	if (error)
		return error;
	report->event = ~0U;
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
	error = counters_create_all(session, cpu, counters, report);
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
	unsigned int i;
	u64 hz = 0;
	int error;

	for (i = 0; i < session->config.nr_events; i++)
		if (session->events[i].attr.freq)
			hz = max_t(u64, hz, session->events[i].attr.sample_freq);
	if (!hz)
		return 0;
	event = perf_event_create_kernel_counter(&dummy, cpumask_any(cpu_online_mask), NULL,
						 kbarman_pmu_overflow, NULL);
	/* The session's own events will report this error. */
	if (IS_ERR(event))
		return 0;
	error = perf_event_period(event, hz);
	perf_event_release_kernel(event);
	return error == -EINVAL ? -ERANGE : 0;
}
