/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of a capture's header: tasks, mappings, charts and their series.
 *
 * Tables grow. A row is complete before the count that covers it, and a string before the
 * table's length; a reader loads the count first.
 *
 * In a session that overwrites, rows come back (collect.h). A row that no record in any ring
 * needs is emptied, and `generation` changes. An empty row has the task KBARMAN_NO_TASK until it
 * is used again. That use changes no generation: only records that are younger than the row need
 * it. A reader copies the rings first, then the tables. If `generation` is the same before and
 * after, the reader has every row that its records need.
 *
 * Adding takes the capture's raw spinlock, for some thousand instructions at most, whatever
 * is in the tables. The sched, idle and PMU probes may not add, nor may an NMI; every other
 * context may.
 */
#ifndef KBARMAN_TABLES_H
#define KBARMAN_TABLES_H

#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

struct kbarman_capture;

/* How a task gets a row: */
#define KBARMAN_TASK_GOES_ON	(1U << 0)	/* it is no new task: it may have had a row */
#define KBARMAN_TASK_EXITED	(1U << 1)	/* ... and ended when that row says: a zombie */

/*
 * @task_id of thread group @tgid is called @name from @timestamp on. Adds a row, which @user pays
 * for, unless the newest row of @task_id says the same. 0 or -ENOSPC (counted).
 */
int kbarman_tables_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    u32 user, const char *name, u32 how);

/* @task_id exited at @timestamp. The task may run on until kbarman_tables_free_task(). */
void kbarman_tables_exit_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/* @task_id does not run any more. Does nothing if another task has that id by now. */
void kbarman_tables_free_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * Adds a row: the process @task_id has @image mapped. @image has @image_length bytes without NUL; the name
 * begins at byte @name_at, and what is in front of it may say which file it is. If @user is root,
 * root pays; else the payer of @task_id does, or @user if @task_id has no row any more. 0 or
 * -ENOSPC (counted).
 */
int kbarman_tables_add_map(struct kbarman_capture *capture, u64 timestamp, u32 user, u32 task_id,
			   u64 base_address, u64 length, u64 image_offset,
			   const char *image, size_t image_length, size_t name_at);

/* The rows of mappings that the process @task_id has by now are over at @timestamp. */
void kbarman_tables_end_maps(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * Returns the number of the series of that name and chart. If there is none it is made, and @user
 * pays for it; -ENOSPC (counted) if there is no room for all of it, and then nothing is made.
 */
int kbarman_tables_add_series(struct kbarman_capture *capture, u32 user,
			      const struct kbarman_mark_series *series);

/* ---- for the collector and the reset; under the capture's lock ---- */

/* The row that still holds of @task_id, or -1. */
s64 kbarman_tables_find_task(struct kbarman_capture *capture, u32 task_id);

/* Empties the row, which is over. Returns how many units of strings became free. */
u32 kbarman_tables_drop_task(struct kbarman_capture *capture, u32 row);
u32 kbarman_tables_drop_map(struct kbarman_capture *capture, u32 row);

/* Rows without names, and the series that every capture has. The session is still. */
void kbarman_series_reset(struct kbarman_capture *capture);

#endif /* KBARMAN_TABLES_H */
