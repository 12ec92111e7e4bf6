/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of a capture's header: tasks, mappings, charts and their series.
 *
 * Tables grow: a row is complete before the count that covers it, a string before the
 * table's length; a reader loads the count first. In a session that overwrites rows come
 * back (collect.h): a row that no record in any ring needs is emptied, and `generation`
 * changes. An empty row is a row of task KBARMAN_NO_TASK, until it is used again. That
 * changes no generation: only records that are younger than the row need it. So a reader
 * that copies the rings first, then the tables, and sees the same generation before and
 * after, has every row that its records need.
 *
 * Adding takes the capture's raw spinlock, for some thousand instructions at most, whatever
 * is in the tables: not from the sched, idle and PMU probes, from every other context but NMI.
 */
#ifndef KBARMAN_TABLES_H
#define KBARMAN_TABLES_H

#include <linux/types.h>

#include "shares.h"
#include "string_table.h"
#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

struct kbarman_capture;

/* The rows of a table: all of them by number, and in some tables those that hold by key. */
struct kbarman_rows {
	u32 size;
	u32 bits;	/* of a bucket's number; 0 = no buckets */
	u32 seed;	/* of the hash */
	u32 *buckets;	/* [1 << bits]: row + 1, the newest of a key; no others */
	u32 *next;	/* [size]: row + 1: of the bucket, or of the empty rows */
	u32 empty;	/* row + 1: to be used again */
	u64 *until;	/* [size]: the time of the row is over; 0 = it is not */
	u8 *payer;	/* [size] */
};

/* What the header does not say of a row of the task table. */
struct kbarman_life {
	u64 begun;		/* of the task, under whatever name */
	u64 maps_ended;		/* rows of its mappings that are older say nothing since then */
	bool freed;		/* it is gone for good, and ->until says when */
};

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key);
void kbarman_rows_free(struct kbarman_rows *rows);
void kbarman_rows_reset(struct kbarman_rows *rows);

/* Where the rows of that key begin. The hash can't be guessed. */
u32 *kbarman_rows_bucket(struct kbarman_rows *rows, u32 id, u64 address);
void kbarman_rows_link(struct kbarman_rows *rows, u32 *bucket, u32 row);

/*
 * A row, unless the newest one of @task_id says the same: @task_id of thread group @tgid,
 * which @user pays for, is called @name from @timestamp on. 0 or -ENOSPC (counted).
 */
int kbarman_tables_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    u32 user, const char *name);

/* @task_id exited at @timestamp. It may run on for a while, until kbarman_tables_free_task(). */
void kbarman_tables_exit_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/* It does not run any more. Nothing, if that id has a new owner. */
void kbarman_tables_free_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * A row: @task_id has @image, of @image_length bytes without NUL, mapped, whose name
 * begins at @name_at; in front of it may be which file it is. @user is root, or else whoever
 * pays if that is not known of @task_id any more. 0 or -ENOSPC (counted).
 */
int kbarman_tables_add_map(struct kbarman_capture *capture, u64 timestamp, u32 user, u32 task_id,
			   u64 base_address, u64 length, u64 image_offset,
			   const char *image, size_t image_length, size_t name_at);

/* The rows that @task_id has by now say nothing of what comes after @timestamp. */
void kbarman_tables_end_maps(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * The series of that name and chart, made if there is none and paid for by @user: its number,
 * or -ENOSPC (counted). All of it or nothing.
 */
int kbarman_tables_add_series(struct kbarman_capture *capture, u32 user,
			      const struct kbarman_mark_series *wanted);

/* Facts of at most @count rows from @first on; returns how many. */
u32 kbarman_tables_task_facts(struct kbarman_capture *capture, u32 first, u32 count,
			      struct kbarman_task_fact *facts);

/* ---- for header.c and collect.c; under the capture's lock ---- */

u32 *kbarman_task_count(struct kbarman_capture *capture);
u32 *kbarman_map_count(struct kbarman_capture *capture);
struct bm_protocol_header_task_info *kbarman_task_row(struct kbarman_capture *capture, u32 row);
struct bm_protocol_header_mmap_layout *kbarman_map_row(struct kbarman_capture *capture, u32 row);

/*
 * The string's offset, one reference more; -ENOSPC (counted). @payer: whose it is if it is
 * new; nobody's share is asked.
 */
s64 kbarman_intern(struct kbarman_capture *capture, const struct kbarman_text *text, u8 payer);
/* That reference goes. Returns how many units are free for that. */
u32 kbarman_forget(struct kbarman_capture *capture, u32 offset);

/* The row that still holds of @task_id, or -1. */
s64 kbarman_tables_find_task(struct kbarman_capture *capture, u32 task_id);

/* Empty the row, whose time is over. Returns how many units of strings are free for that. */
u32 kbarman_tables_drop_task(struct kbarman_capture *capture, u32 row);
u32 kbarman_tables_drop_map(struct kbarman_capture *capture, u32 row);

/* Rows without names, and the series that every capture has. The session is still. */
void kbarman_series_reset(struct kbarman_capture *capture);

#endif /* KBARMAN_TABLES_H */
