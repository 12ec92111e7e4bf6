// SPDX-License-Identifier: GPL-2.0-only
/* The tables of tasks and of mappings. Those of series are in table_series.c. */
#include <linux/kernel.h>

#include "capture/capture.h"
#include "capture/rows.h"
#include "capture/tables.h"

/* ---- tasks ---- */

s64 kbarman_tables_find_task(struct kbarman_capture *capture, u32 task_id)
{
	u32 next = *kbarman_rows_bucket(&capture->tasks, task_id, 0);

	lockdep_assert_held(&capture->lock);
	while (next && capture->facts[next - 1].task_id != task_id)
		next = capture->tasks.next[next - 1];
	return (s64)next - 1;
}

static void task_row_unlink(struct kbarman_capture *capture, u32 row)
{
	u32 *bucket = kbarman_rows_bucket(&capture->tasks, capture->facts[row].task_id, 0);

	kbarman_rows_unlink(&capture->tasks, bucket, row);
}

/* @row says what @task_id is called from @timestamp on. @former is its row till then, or -1. */
static void task_row_fill(struct kbarman_capture *capture, u32 row, u64 timestamp, u32 task_id,
			  u32 tgid, u32 name, s64 former, u32 how)
{
	struct bm_protocol_header_task_info *info = kbarman_task_row(capture, row);

	capture->lives[row] = former >= 0 && how & KBARMAN_TASK_GOES_ON ?
		capture->lives[former] : (struct kbarman_life) { .begun = timestamp };
	capture->lives[row].freed = false;
	capture->facts[row] = (struct bm_kbarman_task) { .task_id = task_id, .tgid = tgid };
	if (former >= 0 && how & KBARMAN_TASK_EXITED)
		capture->facts[row].exit_timestamp = capture->facts[former].exit_timestamp;
	capture->tasks.until[row] = 0;
	if (former >= 0) {
		task_row_unlink(capture, former);
		if (!capture->tasks.until[former])
			capture->tasks.until[former] = timestamp;
	}
	kbarman_rows_link(&capture->tasks, kbarman_rows_bucket(&capture->tasks, task_id, 0), row);

	info->timestamp = timestamp;
	info->task_name_ptr = name;
	smp_wmb();	/* a row that is used again is empty until it is complete */
	WRITE_ONCE(info->task_id, task_id);
	if (row == *kbarman_task_count(capture)) {
		smp_wmb();	/* the row and its name before the count */
		WRITE_ONCE(*kbarman_task_count(capture), row + 1);
	}
}

static bool task_row_is_called(struct kbarman_capture *capture, s64 row, u32 tgid, const char *name,
			       u32 how)
{
	return row >= 0 && capture->facts[row].tgid == tgid &&
	       (!capture->facts[row].exit_timestamp || how & KBARMAN_TASK_EXITED) &&
	       !strcmp(capture->strings.table + kbarman_task_row(capture, row)->task_name_ptr,
		       name);
}

int kbarman_tables_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    u32 user, const char *name, u32 how)
{
	const struct kbarman_text text = kbarman_strings_text(&capture->strings, name,
							      strlen(name));
	unsigned long flags;
	s64 former, row, string;
	int error = 0;
	u8 payer;

	raw_spin_lock_irqsave(&capture->lock, flags);
	timestamp = max(timestamp, capture->base);
	former = kbarman_tables_find_task(capture, task_id);
	if (task_row_is_called(capture, former, tgid, name, how))
		goto out;	/* as is known already */
	error = -ENOSPC;
	payer = kbarman_shares_payer(&capture->shares, user);
	row = kbarman_row_take(capture, &capture->tasks, *kbarman_task_count(capture), payer,
			       KBARMAN_SHARE_TASKS);
	if (row < 0)
		goto out;
	string = kbarman_intern(capture, &text, payer);
	if (string < 0) {
		kbarman_row_give(capture, &capture->tasks, row, KBARMAN_SHARE_TASKS);
		goto out;
	}
	task_row_fill(capture, row, timestamp, task_id, tgid, string, former, how);
	error = 0;
out:
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return error;
}

void kbarman_tables_exit_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id)
{
	unsigned long flags;
	s64 row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	row = kbarman_tables_find_task(capture, task_id);
	if (row >= 0)
		capture->facts[row].exit_timestamp = max(timestamp, capture->base);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

void kbarman_tables_free_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id)
{
	unsigned long flags;
	s64 row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	row = kbarman_tables_find_task(capture, task_id);
	if (row >= 0 && capture->facts[row].exit_timestamp && !capture->lives[row].freed) {
		capture->lives[row].freed = true;
		capture->tasks.until[row] = timestamp;
	}
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

u32 kbarman_tables_drop_task(struct kbarman_capture *capture, u32 row)
{
	struct bm_protocol_header_task_info *info = kbarman_task_row(capture, row);
	u32 name = info->task_name_ptr;

	/* If a newer row has followed this one, it is not linked. */
	task_row_unlink(capture, row);
	WRITE_ONCE(info->task_id, KBARMAN_NO_TASK);
	smp_wmb();	/* nobody's, then another name */
	info->task_name_ptr = capture->no_string;
	capture->facts[row] = (struct bm_kbarman_task) { .task_id = KBARMAN_NO_TASK };
	capture->tasks.until[row] = 0;
	kbarman_row_give(capture, &capture->tasks, row, KBARMAN_SHARE_TASKS);
	return kbarman_forget(capture, name);
}

/* ---- mappings ---- */

/* A worker adds the row some time after the mapping was made: the task may be gone. */
static u8 map_row_payer(struct kbarman_capture *capture, u32 user, u32 task_id)
{
	s64 row = user == KBARMAN_USER_ROOT ? -1 : kbarman_tables_find_task(capture, task_id);

	return row >= 0 ? capture->tasks.payer[row] : kbarman_shares_payer(&capture->shares, user);
}

int kbarman_tables_add_map(struct kbarman_capture *capture, u64 timestamp, u32 user, u32 task_id,
			   u64 base_address, u64 length, u64 image_offset,
			   const char *image, size_t image_length, size_t name_at)
{
	const struct kbarman_text text = kbarman_strings_text(&capture->strings, image,
							      image_length);
	struct bm_protocol_header_mmap_layout *map;
	unsigned long flags;
	int error = -ENOSPC;
	s64 string, row;
	u8 payer;

	raw_spin_lock_irqsave(&capture->lock, flags);
	payer = map_row_payer(capture, user, task_id);
	row = kbarman_row_take(capture, &capture->maps, *kbarman_map_count(capture), payer,
			       KBARMAN_SHARE_MAPS);
	if (row < 0)
		goto out;
	string = kbarman_intern_shared(capture, &text, payer);
	if (string < 0) {
		kbarman_row_give(capture, &capture->maps, row, KBARMAN_SHARE_MAPS);
		goto out;
	}
	map = kbarman_map_row(capture, row);
	map->timestamp = max(timestamp, capture->base);
	map->base_address = base_address;
	map->length = length;
	map->image_offset = image_offset;
	map->image_ptr = string + name_at;
	capture->image_starts[row] = string;
	smp_wmb();	/* a row that is used again is empty until it is complete */
	WRITE_ONCE(map->task_id, task_id);
	capture->maps.until[row] = 0;
	if (row == *kbarman_map_count(capture)) {
		smp_wmb();	/* the row and its name before the count */
		WRITE_ONCE(*kbarman_map_count(capture), row + 1);
	}
	error = 0;
out:
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return error;
}

void kbarman_tables_end_maps(struct kbarman_capture *capture, u64 timestamp, u32 task_id)
{
	unsigned long flags;
	s64 row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	row = kbarman_tables_find_task(capture, task_id);
	if (row >= 0)
		capture->lives[row].maps_ended = timestamp;
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

u32 kbarman_tables_drop_map(struct kbarman_capture *capture, u32 row)
{
	struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);

	WRITE_ONCE(map->task_id, KBARMAN_NO_TASK);
	smp_wmb();	/* nobody's, then another name */
	map->length = 0;
	map->image_ptr = capture->no_string;
	capture->maps.until[row] = 0;
	kbarman_row_give(capture, &capture->maps, row, KBARMAN_SHARE_MAPS);
	return kbarman_forget(capture, capture->image_starts[row]);
}
