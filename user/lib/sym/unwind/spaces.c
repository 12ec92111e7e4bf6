// SPDX-License-Identifier: MIT
/* A sorted array of ranges for each task. Ranges of a task do not overlap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/table.h"
#include "sym/unwind/spaces.h"

struct space {
	uint64_t task;			/* the key */
	struct kb_space_range *ranges;
	uint32_t nr, max;
	uint32_t last;			/* the range that was found last */
	uint64_t changes;
} __attribute__((aligned(8)));

struct kb_spaces {
	struct kb_table by_task;
};

int kb_spaces_create(struct kb_spaces **out)
{
	struct kb_spaces *spaces = calloc(1, sizeof(*spaces));

	*out = spaces;
	if (!spaces)
		return -ENOMEM;
	kb_table_init(&spaces->by_task, sizeof(struct space), 1);
	return 0;
}

void kb_spaces_destroy(struct kb_spaces *spaces)
{
	if (!spaces)
		return;
	for (uint32_t i = 0; i < spaces->by_task.nr; i++)
		free(((struct space *)kb_table_row(&spaces->by_task, i))->ranges);
	kb_table_release(&spaces->by_task);
	free(spaces);
}

/* The first range that ends at @address or after it. */
static uint32_t find_at(const struct space *space, uint64_t address)
{
	return KB_BISECT(i, 0, space->nr, space->ranges[i].last < address);
}

/* Replace @nr ranges at @at by @nr_new ones, for which there is room. */
static void replace(struct space *space, uint32_t at, uint32_t nr,
		    const struct kb_space_range *new, uint32_t nr_new)
{
	struct kb_space_range *to = space->ranges + at;

	memmove(to + nr_new, to + nr, (space->nr - at - nr) * sizeof(*to));
	memcpy(to, new, nr_new * sizeof(*to));
	space->nr += nr_new - nr;
}

int kb_spaces_map(struct kb_spaces *spaces, uint32_t task, const struct kb_space_range *range)
{
	uint64_t key = task;
	struct space *space = kb_table_get(&spaces->by_task, &key);
	struct kb_space_range new[3];
	uint32_t at, end, nr = 0;

	if (range->last < range->first)
		return -EINVAL;
	/* A range in the middle of another one makes three of it. */
	if (!space || !KB_ARRAY_ROOM(space->ranges, space->max, space->nr + (size_t)2))
		return -ENOMEM;
	at = find_at(space, range->first);
	for (end = at; end < space->nr && space->ranges[end].first <= range->last; end++)
		;
	if (end > at && space->ranges[at].first < range->first) {
		new[nr] = space->ranges[at];
		new[nr++].last = range->first - 1;
	}
	new[nr++] = *range;
	if (end > at && space->ranges[end - 1].last > range->last) {
		new[nr] = space->ranges[end - 1];
		new[nr].offset += range->last + 1 - new[nr].first;
		new[nr++].first = range->last + 1;
	}
	replace(space, at, end - at, new, nr);
	space->changes++;
	return 0;
}

uint64_t kb_spaces_changes(const struct kb_spaces *spaces, uint32_t task)
{
	uint64_t key = task;
	const struct space *space = kb_table_find(&spaces->by_task, &key);

	return space ? space->changes : 0;
}

const struct kb_space_range *kb_spaces_find(const struct kb_spaces *spaces, uint32_t task,
					    uint64_t address)
{
	uint64_t key = task;
	struct space *space = kb_table_find(&spaces->by_task, &key);
	const struct kb_space_range *range;

	if (!space || !space->nr)
		return NULL;
	if (space->last >= space->nr || address < space->ranges[space->last].first ||
	    address > space->ranges[space->last].last)
		space->last = find_at(space, address);
	if (space->last == space->nr)
		return NULL;
	range = &space->ranges[space->last];
	return address >= range->first ? range : NULL;
}
