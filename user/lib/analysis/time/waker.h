/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_ANALYSIS_TIME_WAKER_H
#define KB_LIB_ANALYSIS_TIME_WAKER_H

#include <kbarman/latency.h>

/*
 * Who woke in @event, a wakeup: the task, the idle task, or what interrupted them. @tiles has taken
 * the record already.
 */
struct kb_origin kb_waker(const struct kb_tiles *tiles, const struct kb_event *event);

#endif
