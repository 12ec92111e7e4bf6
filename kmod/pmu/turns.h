/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: groups of counters that do not fit on the PMU together. The order and the lengths of the
 * turns are drawn, so that nothing which happens periodically stays with one group. All CPUs have
 * the same turn at the same time, give or take a moment.
 *
 * Context of all functions: task, session's lock held.
 */
#ifndef KBARMAN_PMU_TURNS_H
#define KBARMAN_PMU_TURNS_H

#include "session.h"

/* Number of the turn in which event @i of the session counts, from 1 on; 0: all the time. */
u8 kbarman_turns_of_event(const struct kbarman_session *session, unsigned int i);

/*
 * Let each turn of the new @counters begin and end: -ENOSPC if a counter finds no place beside
 * those of its turn and those that count all the time, and @report has its event. The turns rest
 * then.
 */
int kbarman_turns_try(const struct kbarman_session *session, struct kbarman_counters *counters,
		      struct kbarman_start *report);

/* The first turn begins soon after the session's start. Does nothing without turns. */
void kbarman_turns_start(struct kbarman_session *session);
void kbarman_turns_stop(struct kbarman_session *session);

#endif /* KBARMAN_PMU_TURNS_H */
