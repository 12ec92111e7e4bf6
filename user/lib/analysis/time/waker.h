/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_ANALYSIS_TIME_WAKER_H
#define KB_LIB_ANALYSIS_TIME_WAKER_H

#include <kbarman/latency.h>

/*
 * Who woke in @event, a wakeup: the task, also in a softirq in which arrives what it sent, the idle
 * task, or what interrupted them. @tiles has taken the record already.
 */
struct kb_origin kb_waker(const struct kb_tiles *tiles, const struct kb_event *event);

/*
 * Tell @sched, which has taken the record of @walk, who wakes whom there. What runs on each CPU is followed
 * from the first wakeup on: *@followed is NULL at first, and the caller's to destroy. Returns 0 or -ENOMEM.
 */
struct kb_sched;
int kb_waker_feed(struct kb_tiles **followed, struct kb_trace *trace, const struct kb_walk *walk,
		  struct kb_sched *sched);

#endif
