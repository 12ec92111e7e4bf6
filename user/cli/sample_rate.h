/* SPDX-License-Identifier: MIT */
/*
 * How often samples may come: perf lowers what user space asks for to
 * kernel.perf_event_max_sample_rate, and throttles what comes faster all the same.
 */
#ifndef KBARMAN_SAMPLE_RATE_H
#define KBARMAN_SAMPLE_RATE_H

#include <uapi/kbarman.h>

/*
 * Lower the frequency of @configure to what Linux takes, or raise its period where it is known how
 * often that is a second, and say so; where it can only be guessed, say what may come of it.
 */
void limit_sample_rate(struct kbarman_configure *configure);

#endif
