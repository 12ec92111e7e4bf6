// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/tables.h"
#include "maps/space.h"
#include "ring/clock.h"
#include "session.h"

void kbarman_process_end_rows(struct kbarman_process *process)
{
	struct kbarman_space *space = process->space;

	if (space->all->capture->collector) {
		space->rows -= process->rows;
		space->all->nr_rows -= process->rows;
	}
	process->rows = 0;
}

/*
 * True if @space may have @count more rows. An address space has at most as many rows as are free.
 * A session of chosen processes has no such limit.
 */
static bool space_may_have_rows(struct kbarman_space *space, u32 count)
{
	const struct kbarman_spaces *spaces = space->all;
	const u32 all = spaces->capture->layout.max_maps;

	return spaces->session->tasks ||
	       (u64)spaces->nr_rows + space->rows + 2 * count <= all + 1;
}

static void process_make_row(struct kbarman_process *process, u64 timestamp, u64 start, u64 length,
			     u64 offset, const char *image, size_t image_length, size_t name_at)
{
	struct kbarman_spaces *spaces = process->space->all;

	if (!kbarman_spaces_step(spaces) || !space_may_have_rows(process->space, 1)) {
		kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MAP, 1);
		return;
	}
	if (kbarman_tables_add_map(spaces->capture, timestamp, KBARMAN_USER_UNWANTED,
				   process->id, start, length, offset, image, image_length,
				   name_at))
		return;
	process->rows++;
	process->space->rows++;
	spaces->nr_rows++;
}

void kbarman_process_add_row(struct kbarman_process *process, const struct kbarman_known *mapping)
{
	process_make_row(process, max(mapping->timestamp, process->since), mapping->start,
			 mapping->end - mapping->start, mapping->offset, mapping->image->name,
			 mapping->image->length, mapping->image->name_at);
}

void kbarman_process_add_rows(struct kbarman_process *process)
{
	struct kbarman_known *mapping;

	list_for_each_entry(mapping, &process->space->by_age, age)
		kbarman_process_add_row(process, mapping);
}

void kbarman_process_renew_rows(struct kbarman_process *process)
{
	struct kbarman_space *space = process->space;
	struct kbarman_capture *capture = space->all->capture;
	u64 now;

	if (!capture->collector || process->rows <= 2 * space->nr_mappings + 64 ||
	    !space_may_have_rows(space, space->nr_mappings))
		return;
	now = kbarman_clock();
	kbarman_tables_end_maps(capture, now, process->id);
	kbarman_process_end_rows(process);
	process->since = now;
	kbarman_process_add_rows(process);
}

void kbarman_process_hide_rows(struct kbarman_process *process)
{
	process_make_row(process, process->since - 1, 0, process->space->mm->task_size, 0,
			 KBARMAN_IMAGE_UNKNOWN, strlen(KBARMAN_IMAGE_UNKNOWN), 0);
}
