/* SPDX-License-Identifier: MIT */
/* What a task most likely waited for, where no object says it. */
#ifndef KB_LIB_ANALYSIS_LATENCY_INFERRED_H
#define KB_LIB_ANALYSIS_LATENCY_INFERRED_H

#include <kbarman/waits.h>

/* By the functions of Linux in which @task_id waits from @event on, a switch that may have a chain. */
enum kb_inferred kb_inferred_by_chain(struct kb_trace *trace, const struct kb_event *event, uint32_t task_id);

/* By who woke the task, at @ticks. */
enum kb_inferred kb_inferred_by_waker(struct kb_trace *trace, const struct kb_origin *waker, uint64_t ticks);

#endif
