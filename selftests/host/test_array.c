// SPDX-License-Identifier: MIT
/* Arrays grow, keep their rows, and say when they can't. */
#include <stdlib.h>

#include "../lib/tap.h"
#include "base/array.h"

int main(void)
{
	const char **texts = NULL;
	uint32_t *rows = NULL, max = 0, moves = 0;
	size_t room = 0, many;
	bool grown = true, kept = true;
	char *bytes = NULL;
	void *before;

	for (uint32_t i = 0; i < 100000; i++) {
		before = rows;
		grown &= KB_ARRAY_ROOM(rows, max, i + 1) && max > i;
		moves += rows != before;
		rows[i] = i;
	}
	for (uint32_t i = 0; i < 100000; i++)
		kept &= rows[i] == i;
	tap_ok(grown, "there_is_room_for_each_row");
	tap_ok(kept, "rows_stay_when_the_array_moves");
	tap_ok(moves < 20, "it_moves_a_few_times_only");

	before = rows;
	moves = max;
	tap_ok(KB_ARRAY_ROOM(rows, max, 5) && rows == before && max == moves,
	       "room_that_is_there_is_not_made");
	tap_ok(sizeof(size_t) == sizeof(max) ||
	       (!KB_ARRAY_ROOM(rows, max, (size_t)UINT32_MAX + 1) && rows == before &&
		max == moves && rows[99999] == 99999), "more_rows_than_max_can_count_are_refused");
	tap_ok(KB_ARRAY_ROOM(bytes, room, 3000) && room >= 3000 && room < 6001,
	       "several_rows_at_once_find_room");
	before = bytes;
	many = room;
	tap_ok(!KB_ARRAY_ROOM(bytes, room, SIZE_MAX / 2 + 2) && bytes == before && room == many,
	       "without_memory_nothing_changes");
	many = SIZE_MAX / 4;
	tap_ok(!kb_array_grow(NULL, &many, SIZE_MAX / 2, 8, SIZE_MAX),
	       "a_size_that_overflows_is_refused");
	many = 0;
	texts = kb_array_grow(NULL, &many, 17, sizeof(*texts), 20);
	tap_ok(texts && many >= 17 && many <= 20 && !kb_array_grow(texts, &many, 21, 8, 20),
	       "a_limit_holds");
	free(rows);
	free(texts);
	free(bytes);
	return tap_done();
}
