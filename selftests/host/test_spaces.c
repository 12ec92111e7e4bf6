// SPDX-License-Identifier: MIT
/* What tasks have mapped: against a model that knows each address. */
#include <errno.h>
#include <string.h>

#include "sym/unwind/spaces.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define ADDRESSES	256U
#define ROUNDS		2000U

/* What is mapped at each address. */
struct model {
	struct {
		uint32_t file;		/* 0: nothing */
		uint64_t offset;
	} at[ADDRESSES];
};

static bool is_alike(const struct kb_spaces *spaces, uint32_t task, const struct model *model)
{
	for (uint64_t address = 0; address < ADDRESSES; address++) {
		const struct kb_space_range *range = kb_spaces_find(spaces, task, address);

		if (!range && !model->at[address].file)
			continue;
		if (!range || range->file != model->at[address].file ||
		    range->offset + (address - range->first) != model->at[address].offset)
			return false;
	}
	return true;
}

static bool map_at_random(struct kb_spaces *spaces, uint32_t task, struct model *model,
			  uint32_t file)
{
	struct kb_space_range range = { .first = random_below(ADDRESSES), .file = file };
	uint64_t length = 1 + random_below(random_below(4) ? 16 : ADDRESSES);

	range.last = range.first + length - 1 < ADDRESSES ? range.first + length - 1 : ADDRESSES - 1;
	range.offset = random_below(1000);
	for (uint64_t address = range.first; address <= range.last; address++) {
		model->at[address].file = file;
		model->at[address].offset = range.offset + (address - range.first);
	}
	return !kb_spaces_map(spaces, task, &range);
}

int main(void)
{
	static const struct kb_space_range top = { UINT64_MAX - 9, UINT64_MAX, 5, 7 };
	static struct model models[2];
	const struct kb_space_range *found;
	struct kb_spaces *spaces;
	unsigned int wrong = 0;

	random_start();
	tap_is(kb_spaces_create(&spaces), 0, "it_begins_empty");
	tap_ok(!kb_spaces_find(spaces, 1, 0), "an_unknown_task_has_nothing");
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		wrong += !map_at_random(spaces, i % 2 + 1, &models[i % 2], i);
		wrong += !is_alike(spaces, 1, &models[0]);
		wrong += !is_alike(spaces, 2, &models[1]);
		if (i % 50)
			continue;
		kb_spaces_destroy(spaces);
		kb_spaces_create(&spaces);
		memset(models, 0, sizeof(models));
	}
	tap_is(wrong, 0, "a_newer_row_replaces_what_was_there");
	tap_is(kb_spaces_map(spaces, 3, &top), 0, "a_row_may_end_at_the_top_of_memory");
	found = kb_spaces_find(spaces, 3, UINT64_MAX);
	tap_ok(found && found->file == 7, "and_is_found_there");
	tap_ok(!kb_spaces_find(spaces, 3, UINT64_MAX - 10), "and_not_below");
	tap_is(kb_spaces_map(spaces, 3, &(struct kb_space_range) { .first = 2, .last = 1 }), -EINVAL,
	       "a_row_that_ends_before_it_begins_is_refused");
	kb_spaces_destroy(spaces);
	return tap_done();
}
