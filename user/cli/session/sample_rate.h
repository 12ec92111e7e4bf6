/* SPDX-License-Identifier: MIT */
/*
 * Limits the rate of samples. perf lowers the frequencies that user space requests to
 * kernel.perf_event_max_sample_rate, and throttles counters that overflow more often.
 */
#ifndef KB_CLI_SESSION_SAMPLE_RATE_H
#define KB_CLI_SESSION_SAMPLE_RATE_H

#include <uapi/kbarman.h>

#include "record/perf/event_plan.h"

/*
 * Lowers the frequency at which @event samples to Linux's limit, or raises its period if the rate of
 * the event is known, and prints that. If the rate can only be estimated, prints a warning.
 */
void limit_sample_rate(struct kb_sampling *sampling, const struct kb_perf_event *event);

/*
 * Bounds how long the scan of a sample's stack takes, so that handlers of samples stay within the
 * share of time that Linux allows them (kernel.perf_cpu_time_max_percent). Beyond it, Linux would
 * lower the rate of samples for all programs.
 */
void limit_stack_time(struct kbarman_configure *configure, const struct kb_sampling *sampling,
		      const struct kb_perf_event *event);

#endif
