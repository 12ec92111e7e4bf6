/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The custom series of programs. A program asks for a series once, and its values go to every
 * session that records marks. So a series has a number of its own, and a row in each session. A
 * session that begins later gets a row with the first value.
 *
 * A series stays while a session that has a row for it records marks. No number is given twice
 * while any session records marks.
 */
#ifndef KBARMAN_MARKS_SERIES_H
#define KBARMAN_MARKS_SERIES_H

#include <linux/types.h>

#include "uapi/kbarman.h"

struct kbarman_known_series;
struct kbarman_session;

/*
 * The series of that chart and name, which @user makes if there is none. *@wanted gets its number.
 * @rows adds it to all sessions that record marks now, by kbarman_series_add_row(); 0, or -errno if
 * no session has it. Context: task.
 */
int kbarman_series_get(struct kbarman_mark_series *wanted, u32 user,
		       int (*rows)(struct kbarman_known_series *series));

/* Add a row to @session, if it has none. 0 or -ENOSPC. Context: as kbarman_series_row(). */
int kbarman_series_add_row(struct kbarman_known_series *series, struct kbarman_session *session);

/* The series with that number, or NULL. Context: preemption off until it is used. */
struct kbarman_known_series *kbarman_series_find(u32 number);

/*
 * The row of the series in @session, which records marks, or -ENOSPC: there is no room. Context:
 * task, preemption off.
 */
int kbarman_series_row(struct kbarman_known_series *series, struct kbarman_session *session);

/*
 * @session does not record marks any more, and nobody adds rows to it. @last: nor did any other
 * session at that time. Context: task.
 */
void kbarman_series_leave(const struct kbarman_session *session, bool last);

#endif /* KBARMAN_MARKS_SERIES_H */
