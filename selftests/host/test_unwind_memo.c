// SPDX-License-Identifier: MIT
/*
 * Chains of stacks that were seen before: a stack that differs in anything that a chain depends on
 * is another one, and what is kept has its limits.
 */
#include <elf.h>
#include <string.h>

#include "sym/unwind/memo.h"

#include "../lib/tap.h"

#define KNOWN	(1U << 3 | 1U << 6 | 1U << 7)	/* rbx, rbp, rsp; and the PC */
#define HEAD	32U
#define RBX	HEAD
#define RBP	(HEAD + 8)
#define RSP	(HEAD + 16)
#define PC	(HEAD + 24)
#define WORDS	(HEAD + 32)

static struct kb_unwind_memo *memo;

/* A sparse stack of @size bytes, by the words of barman_v2.h; all of it is different at each @number. */
static void make(uint8_t *data, size_t size, uint64_t number)
{
	const uint64_t registers = KNOWN | UINT64_C(1) << 63, map = 1;

	memset(data, 0, size);
	memcpy(data, &registers, sizeof(registers));
	data[30] = 8;
	memcpy(data + RSP, &number, sizeof(number));
	memcpy(data + PC, &number, sizeof(number));
	memcpy(data + WORDS, &map, sizeof(map));
}

static struct kb_unwind_seen seen(const uint8_t *data, size_t size, uint32_t task, uint64_t changes)
{
	return (struct kb_unwind_seen) {
		.task = task, .changes = changes, .machine = kb_unwind_machine(EM_X86_64, 8),
		.data = data, .size = size,
	};
}

static const struct kb_unwind_chain *find(const uint8_t *data, size_t size, uint32_t task, uint64_t changes)
{
	struct kb_unwind_seen stack = seen(data, size, task, changes);

	return kb_unwind_memo_find(memo, &stack);
}

/* Of one frame, whose walk looked at rbp. */
static void keep(const uint8_t *data, size_t size, uint64_t pc)
{
	struct kb_unwind_frame frame = { .pc = pc };
	const struct kb_unwind_chain chain = {
		.frames = &frame, .max = 1, .nr = 1, .end = KB_UNWIND_WHOLE, .used = 1U << 6,
	};
	struct kb_unwind_seen stack = seen(data, size, 1, 1);

	if (!kb_unwind_memo_find(memo, &stack))
		kb_unwind_memo_keep(memo, &stack, &chain);
}

/* Whether the kept stack is still found when the byte at @at has changed. */
static bool is_found_without(const uint8_t *data, size_t size, size_t at)
{
	uint8_t other[size];

	memcpy(other, data, size);
	other[at] ^= 1;
	return find(other, size, 1, 1);
}

static void only_the_same_stack_is_found(void)
{
	uint8_t data[WORDS + 8 + 4];
	const struct kb_unwind_chain *chain;
	unsigned int wrong = 0;

	make(data, sizeof(data), 77);
	tap_ok(!find(data, sizeof(data), 1, 1), "what_nobody_kept_is_not_found");
	keep(data, sizeof(data), 5);
	chain = find(data, sizeof(data), 1, 1);
	tap_ok(chain && chain->nr == 1 && chain->frames[0].pc == 5 && chain->end == KB_UNWIND_WHOLE,
	       "a_stack_that_was_seen_before_has_its_chain");
	tap_ok(!find(data, sizeof(data), 2, 1), "another_task_has_another_stack");
	tap_ok(!find(data, sizeof(data), 1, 2), "a_task_with_other_mappings_has_another_stack");
	tap_ok(!find(data, sizeof(data) - 4, 1, 1), "a_shorter_stack_is_another_one");
	for (size_t i = 0; i < sizeof(data); i++)
		wrong += is_found_without(data, sizeof(data), i) != (i >= RBX && i < RBX + 8);
	tap_is(wrong, 0, "every_byte_counts_but_those_of_registers_at_which_no_walk_looked");
}

/* They take each other's place. */
static void stacks_that_differ_in_a_used_register_have_their_own_chains(void)
{
	uint8_t data[2][WORDS + 8];
	unsigned int wrong = 0;

	for (unsigned int round = 0; round < 4; round++) {
		make(data[round % 2], sizeof(data[0]), 78);
		data[round % 2][RBP] = (uint8_t)round % 2;
		keep(data[round % 2], sizeof(data[0]), round);
		wrong += find(data[round % 2], sizeof(data[0]), 1, 1)->frames[0].pc != round;
	}
	tap_is(wrong, 0, "stacks_that_differ_in_a_used_register_have_their_own_chains");
}

/* How many of the stacks with numbers below @nr are found. */
static unsigned int count_found(uint8_t *data, size_t size, unsigned int nr)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < nr; i++) {
		const struct kb_unwind_chain *chain;

		make(data, size, 1000 + i);
		chain = find(data, size, 1, 1);
		found += chain && chain->frames[0].pc == i;
	}
	return found;
}

static void what_is_kept_has_its_limits(void)
{
	static uint8_t large[KB_UNWIND_MEMO_BYTES / 4];
	uint8_t small[WORDS + 8];
	unsigned int found;

	for (unsigned int i = 0; i < 2 * KB_UNWIND_MEMO_STACKS; i++) {
		make(small, sizeof(small), 1000 + i);
		keep(small, sizeof(small), i);
	}
	found = count_found(small, sizeof(small), 2 * KB_UNWIND_MEMO_STACKS);
	tap_ok(found > KB_UNWIND_MEMO_STACKS / 2 && found <= KB_UNWIND_MEMO_STACKS,
	       "at_most_so_many_stacks_are_kept");
	for (unsigned int i = 0; i < 9; i++) {
		make(large, sizeof(large), 1000 + i);
		keep(large, sizeof(large), i);
	}
	found = count_found(large, sizeof(large), 9);
	tap_ok(found >= 1 && found <= 3, "at_most_so_many_bytes_are_kept");
}

static void what_is_no_stack_is_not_found(void)
{
	uint8_t data[WORDS + 8];

	make(data, sizeof(data), 79);
	keep(data, sizeof(data), 1);
	tap_ok(!find(data, WORDS - 1, 1, 1) && !find(data, HEAD - 1, 1, 1) && !find(data, 0, 1, 1),
	       "what_is_cut_off_in_its_registers_is_not_found");
}

int main(void)
{
	if (kb_unwind_memo_create(&memo))
		return 1;
	only_the_same_stack_is_found();
	stacks_that_differ_in_a_used_register_have_their_own_chains();
	what_is_kept_has_its_limits();
	what_is_no_stack_is_not_found();
	kb_unwind_memo_destroy(memo);
	return tap_done();
}
