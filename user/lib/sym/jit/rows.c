// SPDX-License-Identifier: MIT
/* Few rows are those of jitdumps, so they are collected once. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "sym/jit/jitdump_file.h"
#include "sym/jit/rows.h"

static int compare(const void *left, const void *right)
{
	const struct kb_jit_row *a = left, *b = right;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->map->timestamp != b->map->timestamp)
		return a->map->timestamp < b->map->timestamp ? -1 : 1;
	return (a->map > b->map) - (a->map < b->map);
}

int kb_jit_rows_init(struct kb_jit_rows *rows, const struct kb_header *header,
		     const struct kb_tasks *tasks)
{
	struct kb_task_hit task;

	*rows = (struct kb_jit_rows) { 0 };
	for (uint32_t i = 0; i < header->nr_maps; i++) {
		const struct kb_map *map = &header->maps[i];

		if (!map->task_id || !map->image || !kb_is_jitdump(map->image))
			continue;
		if (!KB_ARRAY_ROOM(rows->rows, rows->max, rows->nr + 1)) {
			kb_jit_rows_release(rows);
			return -ENOMEM;
		}
		kb_tasks_find(tasks, map->task_id, map->timestamp, &task);
		rows->rows[rows->nr++] = (struct kb_jit_row) { .map = map, .tgid = task.tgid };
	}
	if (rows->nr)
		qsort(rows->rows, rows->nr, sizeof(*rows->rows), compare);
	return 0;
}

void kb_jit_rows_release(struct kb_jit_rows *rows)
{
	free(rows->rows);
	*rows = (struct kb_jit_rows) { 0 };
}

/* The number of rows before those of @tgid that are newer than @timestamp. */
static uint32_t count_until(const struct kb_jit_rows *rows, uint32_t tgid, uint64_t timestamp)
{
	const struct kb_jit_row *row = rows->rows;

	return KB_BISECT(i, 0, rows->nr, row[i].tgid < tgid ||
			 (row[i].tgid == tgid && row[i].map->timestamp <= timestamp));
}

static bool is_of(const struct kb_jit_rows *rows, uint32_t i, uint32_t tgid)
{
	return i < rows->nr && rows->rows[i].tgid == tgid;
}

const struct kb_map *kb_jit_rows_find(const struct kb_jit_rows *rows, uint32_t tgid,
				      uint64_t timestamp, bool *only)
{
	uint32_t at = count_until(rows, tgid, timestamp);

	if (at && is_of(rows, at - 1, tgid))
		at--;
	*only = !(at && is_of(rows, at - 1, tgid)) && !is_of(rows, at + 1, tgid);
	return is_of(rows, at, tgid) ? rows->rows[at].map : NULL;
}
