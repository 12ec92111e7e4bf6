/* SPDX-License-Identifier: MIT */
/* What this machine can count; see kb_event_probe() as well. */
#ifndef KB_LIB_RECORD_PERF_PROBE_H
#define KB_LIB_RECORD_PERF_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/perf_events.h>

/* As of <linux/perf_event.h> since Linux 5.13; older headers lack it. */
#ifndef PERF_PMU_TYPE_SHIFT
#define PERF_PMU_TYPE_SHIFT	32
#endif

/*
 * Whether the kernel takes the number of a PMU in the upper half of a generic event's config, which
 * says on which kind of cores the event counts.
 */
bool kb_perf_takes_type(uint32_t pmu);

/* kb_event_probe() of @event in a group that @leader leads. */
int kb_event_probe_beside(const struct kb_perf_event *event, const struct kb_perf_event *leader);

/*
 * Is @event one of Intel's parts of the slots, as cpu/topdown-retiring/ of its large cores? Linux
 * counts it only in a group that the slots lead.
 */
bool kb_event_needs_slots(const struct kb_perf_event *event);

#endif
