// SPDX-License-Identifier: GPL-2.0-only
#include <linux/irq_work.h>
#include <linux/lockdep.h>

#include "capture/collector.h"
#include "capture/room.h"

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
		row = kbarman_rows_take(rows, count);
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
	kbarman_rows_give(rows, row);
}
