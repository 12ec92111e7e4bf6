// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "collect.h"
#include "header.h"
#include "tables.h"

#define FACTS_AT_ONCE	128	/* rows whose facts are copied under the lock */

/* ---- rows ---- */

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key)
{
	rows->size = size;
	rows->bits = by_key ? max(ilog2(size), 1) : 0;
	rows->buckets = vzalloc(sizeof(*rows->buckets) << rows->bits);
	rows->next = vzalloc(array_size(size, sizeof(*rows->next)));
	rows->until = vzalloc(array_size(size, sizeof(*rows->until)));
	rows->payer = vzalloc(size);
	return rows->buckets && rows->next && rows->until && rows->payer;
}

void kbarman_rows_free(struct kbarman_rows *rows)
{
	vfree(rows->payer);
	vfree(rows->until);
	vfree(rows->next);
	vfree(rows->buckets);
}

void kbarman_rows_reset(struct kbarman_rows *rows)
{
	memset(rows->buckets, 0, sizeof(*rows->buckets) << rows->bits);
	rows->seed = get_random_u32();
	rows->empty = 0;
}

u32 *kbarman_rows_bucket(struct kbarman_rows *rows, u32 id, u64 address)
{
	u32 hash = jhash_3words(id, lower_32_bits(address), upper_32_bits(address),
				rows->seed);

	return &rows->buckets[hash >> (32 - rows->bits)];
}

void kbarman_rows_link(struct kbarman_rows *rows, u32 *bucket, u32 row)
{
	rows->next[row] = *bucket;
	*bucket = row + 1;
}

static void unlink_row(struct kbarman_rows *rows, u32 *bucket, u32 row)
{
	while (*bucket && *bucket != row + 1)
		bucket = &rows->next[*bucket - 1];
	if (*bucket)
		*bucket = rows->next[row];
}

/* A row for a new entry: an empty row, or the row behind the last one; -1 if there is none. */
static s64 new_row(struct kbarman_rows *rows, u32 count)
{
	u32 row;

	if (!rows->empty)
		return count < rows->size ? count : -1;
	row = rows->empty - 1;
	rows->empty = rows->next[row];
	return row;
}

static void add_empty(struct kbarman_rows *rows, u32 row)
{
	rows->next[row] = rows->empty;
	rows->empty = row + 1;
}

/* ---- what tables take ---- */

s64 kbarman_intern(struct kbarman_capture *capture, const struct kbarman_text *text, u8 payer)
{
	u32 before = capture->strings.used;
	s64 offset;
	bool low;

	lockdep_assert_held(&capture->lock);
	offset = kbarman_strings_get(&capture->strings, text, payer);
	if (offset < 0)
		capture->missed[KBARMAN_MISSED_STRING]++;
	else if (capture->strings.used != before)
		kbarman_shares_take(&capture->shares, payer, KBARMAN_SHARE_STRINGS,
				    capture->strings.used - before, &low);
	return offset;
}

u32 kbarman_forget(struct kbarman_capture *capture, u32 offset)
{
	u8 payer;
	u32 units = kbarman_strings_put(&capture->strings, offset, &payer);

	if (units)
		kbarman_shares_give(&capture->shares, payer, KBARMAN_SHARE_STRINGS, units);
	return units;
}

/*
 * The same for a string whose length others choose. If the string is new, @payer's share must
 * allow it, and it must leave room for the names of all tasks.
 */
static s64 intern_shared(struct kbarman_capture *capture, const struct kbarman_text *text, u8 payer)
{
	struct kbarman_strings *strings = &capture->strings;
	u32 units = kbarman_strings_units(strings, text->length);
	u32 kept = min(capture->tasks.size, strings->units / 4);
	s64 offset = kbarman_strings_find(strings, text);
	bool low = false, may;

	if (offset >= 0) {
		kbarman_strings_hold(strings, offset);
		return offset;
	}
	may = strings->used + units <= strings->units - kept;
	if (may)
		may = kbarman_shares_take(&capture->shares, payer, KBARMAN_SHARE_STRINGS, units,
					  &low);
	/* kbarman_intern() takes it again. */
	if (may)
		kbarman_shares_give(&capture->shares, payer, KBARMAN_SHARE_STRINGS, units);
	if (low || !may)
		kbarman_collect_soon(capture);
	if (may)
		return kbarman_intern(capture, text, payer);
	capture->missed[KBARMAN_MISSED_STRING]++;
	return -ENOSPC;
}

/* A row of @what for @payer, or -1 (counted). */
static s64 take_row(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 count,
		    u8 payer, enum kbarman_resource what)
{
	bool low = false;
	s64 row = -1;

	if (kbarman_shares_take(&capture->shares, payer, what, 1, &low)) {
		row = new_row(rows, count);
		if (row < 0)
			kbarman_shares_give(&capture->shares, payer, what, 1);
	}
	if (low || row < 0)
		kbarman_collect_soon(capture);
	if (row < 0)
		capture->missed[what == KBARMAN_SHARE_TASKS ? KBARMAN_MISSED_TASK :
							      KBARMAN_MISSED_MAP]++;
	else
		rows->payer[row] = payer;
	return row;
}

static void give_row(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 row,
		     enum kbarman_resource what)
{
	kbarman_shares_give(&capture->shares, rows->payer[row], what, 1);
	add_empty(rows, row);
}

/* ---- tasks ---- */

u32 *kbarman_task_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.tasks;
}

struct bm_protocol_header_task_info *kbarman_task_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_task_info *)(kbarman_task_count(capture) + 1) + row;
}

s64 kbarman_tables_find_task(struct kbarman_capture *capture, u32 task_id)
{
	u32 next = *kbarman_rows_bucket(&capture->tasks, task_id, 0);

	lockdep_assert_held(&capture->lock);
	while (next && capture->facts[next - 1].task_id != task_id)
		next = capture->tasks.next[next - 1];
	return (s64)next - 1;
}

static void unlink_task(struct kbarman_capture *capture, u32 row)
{
	u32 *bucket = kbarman_rows_bucket(&capture->tasks, capture->facts[row].task_id, 0);

	unlink_row(&capture->tasks, bucket, row);
}

/* @row says what @task_id is called from @timestamp on. @former is its row till then, or -1. */
static void fill_task(struct kbarman_capture *capture, u32 row, u64 timestamp, u32 task_id,
		      u32 tgid, u32 name, s64 former)
{
	struct bm_protocol_header_task_info *info = kbarman_task_row(capture, row);
	bool lives = former >= 0 && !capture->facts[former].exit_timestamp;

	capture->lives[row] = (struct kbarman_life) {
		.begun = lives ? capture->lives[former].begun : timestamp,
		.maps_ended = lives ? capture->lives[former].maps_ended : 0,
	};
	capture->facts[row] = (struct kbarman_task_fact) { .task_id = task_id, .tgid = tgid };
	capture->tasks.until[row] = 0;
	if (former >= 0) {
		unlink_task(capture, former);
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

static bool is_called(struct kbarman_capture *capture, s64 row, u32 tgid, const char *name)
{
	return row >= 0 && capture->facts[row].tgid == tgid &&
	       !capture->facts[row].exit_timestamp &&
	       !strcmp(capture->strings.table + kbarman_task_row(capture, row)->task_name_ptr,
		       name);
}

int kbarman_tables_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    u32 user, const char *name)
{
	const struct kbarman_text text = kbarman_strings_text(&capture->strings, name,
							      strlen(name));
	unsigned long flags;
	s64 former, row, string;
	int error = 0;
	u8 payer;

	raw_spin_lock_irqsave(&capture->lock, flags);
	former = kbarman_tables_find_task(capture, task_id);
	if (is_called(capture, former, tgid, name))
		goto out;	/* as is known already */
	error = -ENOSPC;
	payer = kbarman_shares_payer(&capture->shares, user);
	row = take_row(capture, &capture->tasks, *kbarman_task_count(capture), payer,
		       KBARMAN_SHARE_TASKS);
	if (row < 0)
		goto out;
	string = kbarman_intern(capture, &text, payer);
	if (string < 0) {
		give_row(capture, &capture->tasks, row, KBARMAN_SHARE_TASKS);
		goto out;
	}
	fill_task(capture, row, timestamp, task_id, tgid, string, former);
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
		capture->facts[row].exit_timestamp = timestamp;
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
	unlink_task(capture, row);
	WRITE_ONCE(info->task_id, KBARMAN_NO_TASK);
	smp_wmb();	/* nobody's, then another name */
	info->task_name_ptr = capture->no_string;
	capture->facts[row] = (struct kbarman_task_fact) { .task_id = KBARMAN_NO_TASK };
	capture->tasks.until[row] = 0;
	give_row(capture, &capture->tasks, row, KBARMAN_SHARE_TASKS);
	return kbarman_forget(capture, name);
}

u32 kbarman_tables_task_facts(struct kbarman_capture *capture, u32 first, u32 count,
			      struct kbarman_task_fact *facts)
{
	u32 rows, some, done = 0;
	unsigned long flags;

	do {
		raw_spin_lock_irqsave(&capture->lock, flags);
		rows = *kbarman_task_count(capture);
		some = min3(count - done, rows - min(first + done, rows), (u32)FACTS_AT_ONCE);
		memcpy(facts + done, capture->facts + first + done, some * sizeof(*facts));
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		done += some;
	} while (some);
	return done;
}

/* ---- mappings ---- */

u32 *kbarman_map_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.maps;
}

struct bm_protocol_header_mmap_layout *kbarman_map_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_mmap_layout *)(kbarman_map_count(capture) + 1) + row;
}

/* A worker adds the row some time after the mapping was made: the task may be gone. */
static u8 map_payer(struct kbarman_capture *capture, u32 user, u32 task_id)
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
	payer = map_payer(capture, user, task_id);
	row = take_row(capture, &capture->maps, *kbarman_map_count(capture), payer,
		       KBARMAN_SHARE_MAPS);
	if (row < 0)
		goto out;
	string = intern_shared(capture, &text, payer);
	if (string < 0) {
		give_row(capture, &capture->maps, row, KBARMAN_SHARE_MAPS);
		goto out;
	}
	map = kbarman_map_row(capture, row);
	map->timestamp = timestamp;
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
	give_row(capture, &capture->maps, row, KBARMAN_SHARE_MAPS);
	return kbarman_forget(capture, capture->image_starts[row]);
}
