/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: groups of counters that do not fit on the PMU together. The session's owner says whose turn
 * it is (KBARMAN_TURN). All CPUs have the same turn at the same time, give or take a moment.
 *
 * Context of all functions: task, session's lock held.
 */
#ifndef KBARMAN_PMU_TURNS_H
#define KBARMAN_PMU_TURNS_H

#include "session.h"

/*
 * Let each turn of the new @counters begin and end: -ENOSPC if a counter finds no place beside
 * those of its turn and those that count all the time, and @report has its event. The turns rest
 * then.
 */
int kbarman_turns_try(const struct kbarman_session *session, struct kbarman_counters *counters,
		      struct kbarman_start *report);

/* At the start of the session: nobody has a turn. Does nothing without turns. */
void kbarman_turns_start(struct kbarman_session *session);

/* The counters with @turn count from now on, and the others rest. -EINVAL: none has this turn. */
int kbarman_turns_give(struct kbarman_session *session, u32 turn);

/* Write into the capture how many turns there were. */
void kbarman_turns_tell(struct kbarman_session *session);

#endif /* KBARMAN_PMU_TURNS_H */
