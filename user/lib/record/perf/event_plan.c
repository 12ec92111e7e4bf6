// SPDX-License-Identifier: MIT
/*
 * See event_plan.h. A PMU of CPUs of one kind has a file `cpus` in sysfs, which a PMU of all CPUs
 * lacks. A machine with one such PMU, as of arm64, has CPUs of one kind: there an event that does
 * not count is a mistake.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "record/perf/counter.h"
#include "record/perf/event_plan.h"
#include "record/perf/pmus.h"
#include "record/perf/probe.h"

#define CLOCK_MIN_NS	100000

/* What the plan is made of. */
struct planner {
	struct kb_event_plan *plan;
	const struct kb_perf_event *events;
	unsigned int nr;
	const struct kb_sampling *sampling;
	struct kb_cpu_pmus pmus;
	bool takes_type;	/* a generic event may name the PMU of a kind of CPUs */
};

static bool is_generic(const struct kb_perf_event *event)
{
	return event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE;
}

/*
 * The number of the PMU that the event names; 0: it names none, so that each CPU's own PMU counts
 * it. On most architectures the first PMU of CPUs has the number of raw events.
 */
static uint32_t named_pmu(const struct kb_perf_event *event)
{
#if defined(__arm__) || defined(__aarch64__)
	const bool raw_is_any = true;
#else
	const bool raw_is_any = false;
#endif

	if (is_generic(event))
		return (uint32_t)(event->config >> PERF_PMU_TYPE_SHIFT);
	if (event->type == PERF_TYPE_RAW)
		return raw_is_any ? 0 : PERF_TYPE_RAW;
	return event->type < PERF_TYPE_MAX ? 0 : event->type;
}

/* ---- alternatives ---- */

/* False: there is no memory. */
static bool add(struct planner *p, const struct kbarman_event *event)
{
	struct kb_event_plan *plan = p->plan;

	if (!KB_ARRAY_ROOM(plan->events, plan->max, plan->nr + 1u))
		return false;
	plan->events[plan->nr++] = *event;
	return true;
}

static struct kbarman_event make(const struct kb_perf_event *wanted)
{
	struct kbarman_event event = {
		.attr = {
			.type = wanted->type,
			.size = sizeof(event.attr),
			.config = wanted->config,
			.config1 = wanted->config1,
			.config2 = wanted->config2,
			.exclude_user = !!(wanted->flags & KB_PERF_NO_USER),
			.exclude_kernel = !!(wanted->flags & KB_PERF_NO_KERNEL),
			.exclude_hv = !!(wanted->flags & KB_PERF_NO_HV),
			/*
			 * What a virtual machine does is nothing that a task of this machine does.
			 * And a host whose guests have the PMU to themselves refuses events that
			 * would count in them, or, while there are such events, guests.
			 */
			.exclude_guest = kb_perf_event_is_hardware(wanted),
		},
	};

	memcpy(event.name, wanted->name, sizeof(event.name));
	return event;
}

static void let_sample(const struct planner *p, const struct kb_perf_event *wanted,
		       struct kbarman_event *event)
{
	if (!p->sampling->period)
		return;
	event->attr.freq = p->sampling->freq;
	event->attr.sample_period = p->sampling->period;
	/* x86 refuses precise events that do not sample. */
	event->attr.precise_ip = wanted->flags >> KB_PERF_PRECISE_SHIFT & 3;
	event->turn = 0;
}

/* Which turn event @i has, from 1 on; 0: it is counted all the time. */
static unsigned int turn_of(const struct planner *p, unsigned int i)
{
	unsigned int turn = 0;

	if (!(p->events[i].flags & KB_PERF_TURN))
		return 0;
	for (unsigned int j = 0; j <= i; j++)
		turn += p->events[j].flags & KB_PERF_TURN && !(p->events[j].flags & KB_PERF_GROUP);
	return turn;
}

static bool same_name(const struct planner *p, unsigned int i, unsigned int j)
{
	return !strcmp(p->events[i].name, p->events[j].name);
}

/* True if an event of @pmu, which comes after those before @i, is of a PMU that none of them is of. */
static bool is_of_another_pmu(const struct planner *p, unsigned int i, uint32_t pmu)
{
	for (unsigned int j = 0; j < i; j++) {
		uint32_t named = named_pmu(&p->events[j]);

		if (!same_name(p, i, j) && (!named || named == pmu))
			return false;
	}
	return true;
}

/* Does event @i, of which this is the variant of @pmu, sample where the first one does not count? */
static bool stands_in(const struct planner *p, unsigned int i, uint32_t pmu)
{
	/* That of each kind is there as well, and says which PMU it is of. */
	if (!pmu && is_generic(&p->events[i]) && p->takes_type)
		return false;
	return kb_perf_event_is_hardware(&p->events[i]) && is_of_another_pmu(p, i, pmu);
}

/*
 * Event @i, and if it is generic the same one of each kind of CPU, as alternatives of a counter that
 * begins with event @first.
 */
static bool add_variants(struct planner *p, unsigned int i, unsigned int first)
{
	unsigned int kinds = is_generic(&p->events[i]) && !named_pmu(&p->events[i]) && p->takes_type ?
			     p->pmus.nr_kinds : 0;
	bool samples = !first, other = samples && !same_name(p, i, first);

	for (unsigned int kind = 0; kind <= kinds; kind++) {
		struct kb_perf_event variant = p->events[i];
		struct kbarman_event event;

		if (kind)
			variant.config |= (uint64_t)p->pmus.pmus[kind - 1].type << PERF_PMU_TYPE_SHIFT;
		if (other && !stands_in(p, i, named_pmu(&variant)))
			continue;
		event = make(&variant);
		event.turn = turn_of(p, i);
		event.flags = KBARMAN_EVENT_OPTIONAL | (kind || i != first ? KBARMAN_EVENT_ELSE : 0);
		if (samples)
			let_sample(p, &variant, &event);
		if (!add(p, &event))
			return false;
	}
	return true;
}

/* A period in cycles is used as a period in ns: the order of magnitude is right. */
static bool add_clock(struct planner *p)
{
	const struct kb_perf_event *first = &p->events[0];
	struct kb_perf_event clock = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.flags = first->flags & (KB_PERF_NO_USER | KB_PERF_NO_KERNEL | KB_PERF_NO_HV),
	};
	struct kbarman_event event;
	uint64_t period = p->sampling->period;

	snprintf(clock.name, sizeof(clock.name), "cpu-clock%s",
		 clock.flags & KB_PERF_NO_KERNEL ? ":u" : clock.flags & KB_PERF_NO_USER ? ":k" : "");
	event = make(&clock);
	event.flags = KBARMAN_EVENT_ELSE | KBARMAN_EVENT_FALLBACK;
	if (period)
		event.attr.sample_period = p->sampling->freq ? (KB_NS_PER_S / period ?: 1) :
					   period < CLOCK_MIN_NS ? CLOCK_MIN_NS : period;
	return add(p, &event);
}

/* ---- counters ---- */

/* On CPUs of one kind an event is a counter, and has no alternative. */
static bool add_event(struct planner *p, unsigned int i)
{
	struct kbarman_event event = make(&p->events[i]);

	event.turn = turn_of(p, i);
	if (!i)
		let_sample(p, &p->events[i], &event);
	return add(p, &event);
}

/* A counter for the events with the name of event @i. */
static bool add_counter(struct planner *p, unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (same_name(p, i, j))
			return true;
	for (unsigned int j = i; j < p->nr; j++)
		if (same_name(p, i, j) && !add_variants(p, j, i))
			return false;
	return true;
}

/* Events of other PMUs take the samples where the first event does not count. */
static bool add_stand_ins(struct planner *p)
{
	for (unsigned int i = 1; i < p->nr && p->sampling->period; i++)
		if (!same_name(p, i, 0) && !add_variants(p, i, 0))
			return false;
	return true;
}

static bool make_plan(struct planner *p)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		if (p->plan->per_core ? !add_counter(p, i) : !add_event(p, i))
			return false;
		if (!i && ((p->plan->per_core && !add_stand_ins(p)) ||
			   (p->sampling->clock && kb_perf_event_is_hardware(&p->events[0]) &&
			    !add_clock(p))))
			return false;
	}
	return true;
}

int kb_event_plan_make(struct kb_event_plan *plan, const struct kb_perf_event *events,
		       unsigned int nr, const struct kb_sampling *sampling, const char *sysfs,
		       struct kb_error *err)
{
	struct planner p = { .plan = plan, .events = events, .nr = nr, .sampling = sampling };

	memset(plan, 0, sizeof(*plan));
	kb_cpu_pmus_read(sysfs ?: "/sys", &p.pmus);
	plan->per_core = p.pmus.nr_kinds > 1;
	p.takes_type = plan->per_core && (sysfs || kb_perf_takes_type(p.pmus.pmus[0].type));
	if (!make_plan(&p))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (unsigned int i = 0; i < plan->nr; i++)
		if (plan->events[i].turn > plan->nr_turns)
			plan->nr_turns = plan->events[i].turn;
	if (plan->nr > KBARMAN_EVENTS_MAX)
		return kb_error_set(err, -E2BIG, KB_NO_OFFSET,
				    "too many events for a machine with CPUs of %u kinds: use fewer of them",
				    p.pmus.nr_kinds);
	return 0;
}

void kb_event_plan_free(struct kb_event_plan *plan)
{
	free(plan->events);
	memset(plan, 0, sizeof(*plan));
}

void kb_event_plan_use(const struct kb_event_plan *plan, struct kbarman_configure *configure)
{
	configure->nr_events = plan->nr;
	configure->event_bytes = sizeof(*plan->events);
	configure->events_ptr = (uintptr_t)plan->events;
}
