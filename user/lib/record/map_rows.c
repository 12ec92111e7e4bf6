// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/barman_file.h"
#include "record/map_rows.h"
#include "record/mounts.h"

static int compare_rows(const void *left, const void *right)
{
	const struct kb_map_row *a = left, *b = right;

	if (a->timestamp != b->timestamp)
		return a->timestamp < b->timestamp ? -1 : 1;
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

int kb_map_rows_look(struct kb_map_rows *rows, const struct kb_mapped *m)
{
	uint32_t count = m->nr_maps ? kb_mapped_count(m->nr_maps) : 0;

	if (count > m->header->config_constants.max_mmap_layout)
		count = m->header->config_constants.max_mmap_layout;
	if (count <= rows->seen)
		return 0;
	forget_used(rows);
	if (!KB_ARRAY_ROOM(rows->rows, rows->max, rows->nr + (size_t)(count - rows->seen)))
		return -ENOMEM;
	for (; rows->seen < count; rows->seen++) {
		const struct bm_protocol_header_mmap_layout *row = &m->maps[rows->seen];

		if (row->task_id && row->task_id != KBARMAN_NO_TASK && row->length)
			rows->rows[rows->nr++] = (struct kb_map_row) { row->timestamp, rows->seen };
	}
	if (rows->nr)
		qsort(rows->rows, rows->nr, sizeof(*rows->rows), compare_rows);
	return 0;
}

/* A row that ends before it begins is nobody's mapping. */
static int put_in_force(const struct kb_mapped *m, struct kb_mounts *mounts,
			struct kb_stacks *stacks,
			const struct bm_protocol_header_mmap_layout *row)
{
	struct kb_unwind_place place = {
		.pid = row->task_id,
		.start = row->base_address,
		.length = row->length,
		.offset = row->image_offset,
		.image = kb_mapped_string(m, row->image_ptr),
	};
	int ret;

	if (!place.image)
		return 0;
	if (*place.image)
		place.file = barman_file_of(m->strings, row->image_ptr);
	place.image = kb_mounts_path(mounts, row->task_id, place.image, place.file);
	if (!place.image)
		return -ENOMEM;
	/* The string table has a string once for each file. */
	ret = kb_stacks_map(stacks, row->task_id, row->image_ptr, &place);
	return ret == -EINVAL ? 0 : ret;
}

int kb_map_rows_until(struct kb_map_rows *rows, const struct kb_mapped *m,
		      struct kb_mounts *mounts, struct kb_stacks *stacks, uint64_t timestamp)
{
	int ret = 0;

	while (!ret && rows->next < rows->nr && rows->rows[rows->next].timestamp <= timestamp)
		ret = put_in_force(m, mounts, stacks, &m->maps[rows->rows[rows->next++].row]);
	return ret;
}

void kb_map_rows_release(struct kb_map_rows *rows)
{
	free(rows->rows);
	*rows = (struct kb_map_rows) { 0 };
}
