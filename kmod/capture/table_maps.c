// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>

#include "capture/capture.h"
#include "capture/room.h"
#include "capture/tables.h"

u32 *kbarman_map_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.maps;
}

struct bm_protocol_header_mmap_layout *kbarman_map_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_mmap_layout *)(kbarman_map_count(capture) + 1) + row;
}

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
