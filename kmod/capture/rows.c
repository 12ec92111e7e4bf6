// SPDX-License-Identifier: GPL-2.0-only
#include <linux/irq_work.h>
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/random.h>

#include "capture/collector.h"
#include "capture/memory.h"
#include "capture/rows.h"

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key)
{
	rows->size = size;
	rows->bits = by_key ? max(ilog2(size), 1) : 0;
	rows->buckets = kbarman_memory_pages(sizeof(*rows->buckets) << rows->bits, NUMA_NO_NODE);
	rows->next = kbarman_memory_pages(array_size(size, sizeof(*rows->next)), NUMA_NO_NODE);
	rows->until = kbarman_memory_pages(array_size(size, sizeof(*rows->until)), NUMA_NO_NODE);
	rows->payer = kbarman_memory_pages(size, NUMA_NO_NODE);
	return rows->buckets && rows->next && rows->until && rows->payer;
}

void kbarman_rows_free(struct kbarman_rows *rows)
{
	kbarman_memory_free(rows->payer);
	kbarman_memory_free(rows->until);
	kbarman_memory_free(rows->next);
	kbarman_memory_free(rows->buckets);
}

u64 kbarman_rows_bytes(u32 count)
{
	const struct kbarman_rows *rows;

	return (u64)count * (sizeof(*rows->buckets) + sizeof(*rows->next) +
			     sizeof(*rows->until) + sizeof(*rows->payer));
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

void kbarman_rows_unlink(struct kbarman_rows *rows, u32 *bucket, u32 row)
{
	while (*bucket && *bucket != row + 1)
		bucket = &rows->next[*bucket - 1];
	if (*bucket)
		*bucket = rows->next[row];
}

/* An empty row, or the row behind the last one; -1 if there is none. */
static s64 rows_take(struct kbarman_rows *rows, u32 count)
{
	u32 row;

	if (!rows->empty)
		return count < rows->size ? count : -1;
	row = rows->empty - 1;
	rows->empty = rows->next[row];
	return row;
}

static void rows_give(struct kbarman_rows *rows, u32 row)
{
	rows->next[row] = rows->empty;
	rows->empty = row + 1;
}

/* ---- what a user pays for ---- */

/* Little room is left in a table. */
static void room_is_low(struct kbarman_capture *capture)
{
	if (capture->collector && READ_ONCE(capture->collector->on))
		irq_work_queue(&capture->collector->kick);
}

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

s64 kbarman_intern_shared(struct kbarman_capture *capture, const struct kbarman_text *text,
			  u8 payer)
{
	struct kbarman_strings *strings = &capture->strings;
	u32 units = kbarman_strings_units(strings, text->length);
	u32 kept = min(capture->tasks.size + KBARMAN_END_UNITS, strings->units / 4);
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
		room_is_low(capture);
	if (may)
		return kbarman_intern(capture, text, payer);
	capture->missed[KBARMAN_MISSED_STRING]++;
	return -ENOSPC;
}

s64 kbarman_row_take(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 count,
		     u8 payer, enum kbarman_resource what)
{
	bool low = false;
	s64 row = -1;

	if (kbarman_shares_take(&capture->shares, payer, what, 1, &low)) {
		row = rows_take(rows, count);
		if (row < 0)
			kbarman_shares_give(&capture->shares, payer, what, 1);
	}
	if (low || row < 0)
		room_is_low(capture);
	if (row < 0)
		capture->missed[what == KBARMAN_SHARE_TASKS ? KBARMAN_MISSED_TASK :
							      KBARMAN_MISSED_MAP]++;
	else
		rows->payer[row] = payer;
	return row;
}

void kbarman_row_give(struct kbarman_capture *capture, struct kbarman_rows *rows, u32 row,
		      enum kbarman_resource what)
{
	kbarman_shares_give(&capture->shares, rows->payer[row], what, 1);
	rows_give(rows, row);
}
