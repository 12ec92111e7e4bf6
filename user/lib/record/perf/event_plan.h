/* SPDX-License-Identifier: MIT */
/*
 * Events of a user as what a session counts: for each counter the alternatives of which a CPU takes
 * the first one that its PMU has.
 */
#ifndef KB_LIB_RECORD_PERF_EVENT_PLAN_H
#define KB_LIB_RECORD_PERF_EVENT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <uapi/kbarman.h>

#include <kbarman/error.h>
#include <kbarman/perf_events.h>

/* The samples, which are those of the first event. */
struct kb_sampling {
	uint64_t period;	/* or Hz; 0: there are no samples */
	bool freq;		/* it is Hz */
	bool clock;		/* where there is no PMU, cpu-clock takes them */
};

struct kb_event_plan {
	struct kbarman_event *events;
	unsigned int nr, max;
	unsigned int nr_turns;
	bool per_core;		/* CPUs are of several kinds, and may count different events */
};

/*
 * Plan for these @nr events, which have KB_PERF_TURN if they take turns.
 *
 * On a machine whose CPUs are of several kinds, with a PMU for each:
 * - A CPU counts the events that its PMU has, and goes without the others.
 * - A name stands for all events that have it: a CPU counts the first one that it can.
 * - A generic event is also that of each kind of CPU, because on x86 it means one of them only.
 * - Where the first event does not count, another one samples if it is of a PMU of which no event
 *   before it is. So no event samples with the period of another one.
 *
 * @sysfs: NULL for "/sys". kb_event_plan_free() in any case. -ENOMEM; -E2BIG.
 */
int kb_event_plan_make(struct kb_event_plan *plan, const struct kb_perf_event *events,
		       unsigned int nr, const struct kb_sampling *sampling, const char *sysfs,
		       struct kb_error *err);
void kb_event_plan_free(struct kb_event_plan *plan);

/* Let @configure count this. The plan has to stay for the call. */
void kb_event_plan_use(const struct kb_event_plan *plan, struct kbarman_configure *configure);

#endif
