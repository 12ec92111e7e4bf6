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

void kbarman_thread_end_rows(struct kbarman_thread *thread)
{
	struct kbarman_space *space = thread->space;

	if (space->all->capture->collector) {
		space->rows -= thread->rows;
		space->all->nr_rows -= thread->rows;
	}
	thread->rows = 0;
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

static void thread_make_row(struct kbarman_thread *thread, u64 timestamp, u64 start, u64 length,
			    u64 offset, const char *image, size_t image_length, size_t name_at)
{
	struct kbarman_spaces *spaces = thread->space->all;

	if (!kbarman_spaces_step(spaces) || !space_may_have_rows(thread->space, 1)) {
		kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MAP, 1);
		return;
	}
	if (kbarman_tables_add_map(spaces->capture, timestamp, KBARMAN_USER_UNWANTED,
				   thread->task_id, start, length, offset, image, image_length,
				   name_at))
		return;
	thread->rows++;
	thread->space->rows++;
	spaces->nr_rows++;
}

void kbarman_thread_add_row(struct kbarman_thread *thread, const struct kbarman_known *mapping)
{
	thread_make_row(thread, max(mapping->timestamp, thread->since), mapping->start,
			mapping->end - mapping->start, mapping->offset, mapping->image->name,
			mapping->image->length, mapping->image->name_at);
}

void kbarman_thread_add_rows(struct kbarman_thread *thread)
{
	struct kbarman_known *mapping;

	list_for_each_entry(mapping, &thread->space->by_age, age)
		kbarman_thread_add_row(thread, mapping);
}

void kbarman_thread_renew_rows(struct kbarman_thread *thread)
{
	struct kbarman_space *space = thread->space;
	struct kbarman_capture *capture = space->all->capture;
	u64 now;

	if (!capture->collector || thread->rows <= 2 * space->nr_mappings + 64 ||
	    !space_may_have_rows(space, space->nr_mappings))
		return;
	now = kbarman_clock();
	kbarman_tables_end_maps(capture, now, thread->task_id);
	kbarman_thread_end_rows(thread);
	thread->since = now;
	kbarman_thread_add_rows(thread);
}

void kbarman_thread_forget_rows(struct kbarman_thread *thread)
{
	thread_make_row(thread, thread->since - 1, 0, thread->space->mm->task_size, 0,
			KBARMAN_IMAGE_UNKNOWN, strlen(KBARMAN_IMAGE_UNKNOWN), 0);
}
