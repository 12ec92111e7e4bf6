// SPDX-License-Identifier: MIT
/* Arrays grow, keep their rows, and say when they can't. */
#include <stdlib.h>

#include "../lib/tap.h"
#include "base/array.h"
#include "base/large.h"

/* From a few bytes to many, past where it is mapped. */
static void test_large(void)
{
	size_t bytes = 0, next;
	uint32_t *memory = NULL;
	bool kept = true;

	for (next = 64; next <= (size_t)16 << 20; next *= 4) {
		uint32_t *grown = kb_large_grow(memory, bytes, next);

		if (!grown)
			break;
		for (size_t i = 0; i < bytes / sizeof(*grown); i++)
			kept &= grown[i] == i;
		for (size_t i = bytes / sizeof(*grown); i < next / sizeof(*grown); i++)
			grown[i] = (uint32_t)i;
		memory = grown;
		bytes = next;
	}
	tap_ok(bytes == (size_t)16 << 20 && kept, "large_memory_keeps_what_it_has");
	tap_ok(!kb_large_grow(memory, bytes, SIZE_MAX / 2) && memory[1000] == 1000,
	       "what_cannot_grow_stays");
	kb_large_free(memory, bytes);
	kb_large_free(kb_large_grow(NULL, 0, 100), 100);
	kb_large_free(NULL, 0);
}

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
	test_large();
	return tap_done();
}
