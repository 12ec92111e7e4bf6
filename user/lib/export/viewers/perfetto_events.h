/* SPDX-License-Identifier: MIT */
/* Values of kbarman's own series as the trace events of the kernel that they were made of. */
#ifndef KB_LIB_EXPORT_VIEWERS_PERFETTO_EVENTS_H
#define KB_LIB_EXPORT_VIEWERS_PERFETTO_EVENTS_H

#include <stdbool.h>

#include "analysis/trace/inside.h"

#define KB_PERFETTO_NAME	260	/* bytes that kb_perfetto_put_task() writes at most */

/* Flags of a wakeup. Source: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ of linux/trace_events.h. */
enum { KB_PERFETTO_IRQ = 8, KB_PERFETTO_SOFTIRQ = 16 };

/* Write the name of a task as a field of an event. Returns the place behind it. */
uint8_t *kb_perfetto_put_task(uint8_t *at, uint32_t field, const struct kb_task_name *task);

#define KB_PERFETTO_EVENT	512	/* bytes that kb_perfetto_put_event() writes at most */

/* Whether Perfetto has such an event. */
bool kb_perfetto_has_event(const struct kb_event *event);

/*
 * Write the field of a FtraceEvent for @event, a value of kbarman's own series. @from: the CPU that a
 * task leaves. Returns the place behind it.
 */
uint8_t *kb_perfetto_put_event(uint8_t *at, const struct kb_trace *trace,
			       const struct kb_event *event, uint32_t from);

#endif
