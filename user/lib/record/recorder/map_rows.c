// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/barman/file.h"
#include "record/recorder/map_rows.h"
#include "record/recorder/mounts.h"

struct thread {
	uint64_t task_id;		/* the key */
	uint64_t tgid;
};

void kb_map_rows_init(struct kb_map_rows *rows)
{
	*rows = (struct kb_map_rows) { 0 };
	kb_table_init(&rows->processes, sizeof(struct thread), 1);
}

/* Who has mappings at a time comes before they do. */
static int compare_rows(const void *left, const void *right)
{
	const struct kb_map_row *a = left, *b = right;

	if (a->timestamp != b->timestamp)
		return a->timestamp < b->timestamp ? -1 : 1;
	if (a->is_task != b->is_task)
		return a->is_task ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* Rows that are in force need no room any more. */
static void forget_used(struct kb_map_rows *rows)
{
	rows->nr -= rows->next;
	if (rows->next && rows->nr)
		memmove(rows->rows, rows->rows + rows->next, rows->nr * sizeof(*rows->rows));
	rows->next = 0;
}

/* How many rows of a table there are that were not seen; 0: none. */
static uint32_t count_new(const __u32 *counter, uint32_t max, uint32_t seen)
{
	uint32_t count = counter ? kb_mapped_count(counter) : 0;

	if (count > max)
		count = max;
	return count > seen ? count - seen : 0;
}

static uint32_t process_of_row(const struct kb_mapped *mapped, uint32_t row)
{
	const struct bm_kbarman_task *more = kb_mapped_task(mapped, row);

	return more ? more->tgid : mapped->tasks[row].task_id;
}

static int note_process(struct kb_map_rows *rows, const struct kb_mapped *mapped, uint32_t row)
{
	uint64_t task = mapped->tasks[row].task_id;
	struct thread *thread = kb_table_get(&rows->processes, &task);

	if (!thread)
		return -ENOMEM;
	thread->tgid = process_of_row(mapped, row);
	return 0;
}

/* The first row of a thread holds before its time as well. */
static int see_task(struct kb_map_rows *rows, const struct kb_mapped *mapped, uint32_t row)
{
	uint64_t task = mapped->tasks[row].task_id;

	if (task == KBARMAN_NO_TASK)
		return 0;
	rows->rows[rows->nr++] = (struct kb_map_row) { mapped->tasks[row].timestamp, row, true };
	return kb_table_find(&rows->processes, &task) ? 0 : note_process(rows, mapped, row);
}

static void see_map(struct kb_map_rows *rows, const struct kb_mapped *mapped, uint32_t at)
{
	const struct bm_protocol_header_mmap_layout *row = &mapped->maps[at];

	if (row->task_id && row->task_id != KBARMAN_NO_TASK && row->length)
		rows->rows[rows->nr++] = (struct kb_map_row) { row->timestamp, at, false };
}

int kb_map_rows_look(struct kb_map_rows *rows, const struct kb_mapped *mapped)
{
	const struct bm_protocol_config_values *max = &mapped->header->config_constants;
	/* The kernel writes the row of a task before those of its mappings. */
	uint32_t maps = count_new(mapped->nr_maps, max->max_mmap_layout, rows->seen_maps);
	uint32_t tasks = count_new(mapped->nr_tasks, max->max_task_infos, rows->seen_tasks);
	int ret = 0;

	if (!maps && !tasks)
		return 0;
	forget_used(rows);
	if (!KB_ARRAY_ROOM(rows->rows, rows->max, rows->nr + (size_t)maps + tasks))
		return -ENOMEM;
	for (; tasks && !ret; tasks--)
		ret = see_task(rows, mapped, rows->seen_tasks++);
	for (; maps; maps--)
		see_map(rows, mapped, rows->seen_maps++);
	if (rows->nr)
		qsort(rows->rows, rows->nr, sizeof(*rows->rows), compare_rows);
	return ret;
}

/* A row that ends before it begins is nobody's mapping. */
static int put_in_force(const struct kb_mapped *mapped, struct kb_mounts *mounts,
			struct kb_stacks *stacks,
			const struct bm_protocol_header_mmap_layout *row)
{
	struct kb_unwind_place place = {
		.pid = row->task_id,
		.start = row->base_address,
		.length = row->length,
		.offset = row->image_offset,
		.image = kb_mapped_string(mapped, row->image_ptr),
	};
	int ret;

	if (!place.image)
		return 0;
	if (*place.image)
		place.file = barman_file_of(mapped->strings, row->image_ptr);
	place.image = kb_mounts_path(mounts, row->task_id, place.image, place.file);
	if (!place.image)
		return -ENOMEM;
	/* The string table has a string once for each file. */
	ret = kb_stacks_map(stacks, row->task_id, row->image_ptr, &place);
	return ret == -EINVAL ? 0 : ret;
}

int kb_map_rows_until(struct kb_map_rows *rows, const struct kb_mapped *mapped,
		      struct kb_mounts *mounts, struct kb_stacks *stacks, uint64_t timestamp)
{
	int ret = 0;

	while (!ret && rows->next < rows->nr && rows->rows[rows->next].timestamp <= timestamp) {
		const struct kb_map_row *row = &rows->rows[rows->next++];

		ret = row->is_task ? note_process(rows, mapped, row->row) :
				     put_in_force(mapped, mounts, stacks, &mapped->maps[row->row]);
	}
	return ret;
}

uint32_t kb_map_rows_process(const struct kb_map_rows *rows, uint32_t task)
{
	uint64_t key = task;
	const struct thread *thread = kb_table_find(&rows->processes, &key);

	return thread ? (uint32_t)thread->tgid : task;
}

void kb_map_rows_release(struct kb_map_rows *rows)
{
	free(rows->rows);
	kb_table_release(&rows->processes);
}
