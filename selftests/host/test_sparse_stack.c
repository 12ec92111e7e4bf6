// SPDX-License-Identifier: MIT
/*
 * Where a sparse stack ends, and how much is read for it: the module's own sparse_stack.c over the
 * memory of a made task.
 */
#define KBARMAN_CLOCK_H
#include <stdint.h>

static uint64_t kbarman_clock(void);

#include "../compare/kernel.h"
#include "../../kmod/stacks/sparse_stack.c"
#include "../lib/tap.h"

#define WORDS	8192U
#define CODE	0x400000UL
#define LIMIT	65536U
#define LARGE	(1U << 20)
#define PAGE_WORDS	(PAGE_SIZE / sizeof(u64))

struct pt_regs {
	u64 pc, sp;
};

/* The task. */
static unsigned int size = sizeof(u64);	/* bytes of a word */
static bool records = true;		/* frames have records */
static unsigned int words = WORDS;	/* of its stack */
static unsigned int step;		/* every so many words, one points into code */
static bool pointers;			/* the one behind it points to no caller's frame */
static unsigned long code;		/* how far behind the program's begin */
static unsigned long limit = LIMIT;

/* Pages, from 1 on, that are not there: from `absent` on, every so many; 0: all are there. */
static unsigned int absent, absent_step;
static unsigned int reads, faults;	/* of blocks; tries to read what is not there */

/* The clock: what a block takes, the time there is, and the block that takes all of it. */
static u64 now, pace, ticks;
static unsigned int halt;

static u64 kbarman_clock(void)
{
	return now;
}

/* Where the stack begins, and a block. */
static unsigned long stack_begin(void)
{
	return size == sizeof(u32) ? 0xf7c00000UL : 0x7ffc00000000UL;
}

static u64 word_at(unsigned int n)
{
	if (n % step == 0)
		return CODE + code + n;
	return pointers && n % step == 1 ? stack_begin() + (n + 2) * size : 0;
}

static bool is_absent(unsigned long page)
{
	return absent && page >= absent && (page - absent) % absent_step == 0;
}

unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long bytes)
{
	unsigned long at = (unsigned long)from - stack_begin(), n = at / size, i;
	u32 *narrow = to;
	u64 *wide = to;

	now += ++reads == halt ? 100 * ticks : pace;
	if (is_absent(at / PAGE_SIZE + 1)) {
		faults++;
		return bytes;
	}
	for (i = 0; i < bytes / size; i++) {
		if (size == sizeof(u32))
			narrow[i] = word_at(n + i);
		else
			wide[i] = word_at(n + i);
	}
	return 0;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t bytes)
{
	(void)to, (void)from, (void)bytes;
	return false;
}

struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
	static const struct kbarman_user_register all[] = {
		{ 7, false, false, offsetof(struct pt_regs, sp) },
		{ BM_KBARMAN_REGISTER_PC, false, false, offsetof(struct pt_regs, pc) },
	};

	(void)regs;
	return (struct kbarman_user_registers) { all, ARRAY_SIZE(all), size, records };
}

static struct {
	struct bm_kbarman_stack head;
	u32 values[65536];
} stack;

/* Whether a word is what is kept of word @n; the stack pointer is in word @first or the next 3. */
static unsigned int is_wrong(const u32 **at, unsigned int n, unsigned int first)
{
	u64 word = word_at(n), wide;
	u32 kept = *(*at)++;

	if (size == sizeof(u32))
		return kept != word;
	if (n % step)
		return kept != (n + 2 - first) * sizeof(u64);
	if (!(code >> 30))
		return kept != (1U << 30 | (word - CODE));
	memcpy(&wide, *at, sizeof(wide));
	*at += 2;
	return kept != 3U << 30 || wide != word;
}

/*
 * Gather the stack from word @first on, and look whether each word of it is the right one. Returns
 * the number of words that are kept, or ~0.
 */
static unsigned int gather(unsigned int first, bool known)
{
	const struct pt_regs regs = { .pc = CODE, .sp = stack_begin() + first * size + first % 4 };
	struct kbarman_sparse_ranges ranges = {
		.code[0] = { CODE, (2UL << 30) + LARGE },
		.stack = { regs.sp, stack_begin() + words * size - regs.sp },
		.plain = ~0UL,
	};
	unsigned int low = ALIGN_DOWN(first, 4), n = low, end, kept = 0, next, wrong = 0;
	unsigned long bytes;
	const u32 *at = stack.values + 4;

	kbarman_sparse_ranges_close(&ranges);
	memset(&stack, 0xa5, sizeof(stack));
	reads = faults = 0;
	bytes = kbarman_sparse_stack_gather(&stack.head, &regs, &ranges, limit, known, ticks);
	end = n + stack.head.scanned / size;
	for (; n < end; n = next) {
		u64 map = at[0] | (u64)at[1] << 32;

		at += 2;
		next = min((n / 64 + 1) * 64, end);
		for (; n < next; n++, map >>= 1) {
			wrong += (map & 1) != (n % step == 0 || (word_at(n) && !records));
			if (map & 1) {
				wrong += is_wrong(&at, n, low);
				kept++;
			}
		}
	}
	if (((const char *)at - (const char *)&stack) % sizeof(u64))
		wrong += *at++ != 0;
	wrong += (const char *)at != (const char *)&stack + bytes;
	wrong += bytes > kbarman_sparse_stack_max(limit);
	return wrong ? ~0U : kept;
}

static void try_ends(void)
{
	step = 16;
	tap_is(gather(8, true), WORDS / 16 - 1, "all_words_of_a_stack_are_looked_at");
	tap_is(stack.head.end, BM_KBARMAN_STACK_WHOLE, "it_is_whole");
	tap_is(gather(5, false), WORDS / 16 - 1, "so_are_those_of_an_unknown_one");
	tap_is(stack.head.end, BM_KBARMAN_STACK_ABSENT, "which_has_no_end");

	limit = LIMIT / 2 - 4;
	tap_is(gather(5, true), WORDS / 32 - 1, "those_behind_the_limit_are_not");
	tap_is(stack.head.scanned, LIMIT / 2 - 32, "of_which_there_are_whole_steps");
	tap_is(stack.head.end, BM_KBARMAN_STACK_LIMIT, "it_is_told_that_there_was_a_limit");
	limit = LIMIT;
}

static void try_absent(void)
{
	absent = 3;
	absent_step = 100;
	tap_is(gather(5, true), 2 * PAGE_WORDS / 16 - 1, "a_page_that_is_not_there_ends_the_stack");
	tap_is(faults, 1, "it_is_tried_once");
	tap_is(stack.head.end, BM_KBARMAN_STACK_ABSENT, "this_is_told");
	absent = 1;
	tap_is(gather(5, true), 0, "nothing_is_kept_if_the_first_page_is_not_there");
	tap_is(stack.head.scanned, 0, "and_nothing_is_said_to_be_there");
	absent = 4;
	absent_step = 2;
	tap_is(gather(5, true), 3 * PAGE_WORDS / 16 - 1, "of_many_such_pages_the_nearest_ends_it");
	tap_ok(faults <= 2, "the_others_are_not_tried");
	absent = 0;
}

static void try_full(void)
{
	unsigned int kept;

	step = 1;
	kept = gather(5, true);
	tap_ok(kept >= KBARMAN_STACK_UNITS / 2 - 64 && kept <= KBARMAN_STACK_UNITS,
	       "of_too_many_words_those_near_the_stack_pointer_are_kept");
	tap_is(stack.head.end, BM_KBARMAN_STACK_FULL, "and_so_is_that_there_were_more");
	absent = 2;
	absent_step = 100;
	tap_is(gather(5, true), PAGE_WORDS - 4, "a_page_may_be_missing_among_them");
	tap_is(stack.head.end, BM_KBARMAN_STACK_ABSENT, "which_is_told");
	absent = 0;

	limit = LARGE;
	words = LARGE / sizeof(u64);
	kept = gather(5, true);
	tap_ok(kept >= KBARMAN_STACK_UNITS / 2 && kept != ~0U, "they_are_of_a_large_stack");
	tap_ok(reads <= words / CHUNK / 4, "of_which_most_words_are_not_looked_at");
	limit = LIMIT;
	words = WORDS;

	code = 1UL << 30;
	step = 16;
	tap_is(gather(5, true), WORDS / 16 - 1, "code_of_a_large_program_is_kept");
	step = 1;
	kept = gather(5, true);
	tap_ok(kept >= KBARMAN_STACK_UNITS / 6 - 64 && kept < KBARMAN_STACK_UNITS / 2,
	       "too_many_of_its_words_are_cut_as_well");
	code = 0;
}

static void try_time(void)
{
	unsigned int blocks = WORDS / CHUNK, kept;

	step = 16;
	pace = 1;
	ticks = 4 * blocks;
	tap_is(gather(0, true), WORDS / 16, "a_scan_that_has_the_time_looks_at_all_words");
	tap_is(stack.head.end, BM_KBARMAN_STACK_WHOLE, "and_is_whole");
	ticks = blocks / 2;
	kept = gather(0, true);
	tap_ok(kept >= WORDS / 16 / 5 && kept <= WORDS / 16 / 2,
	       "one_that_has_less_looks_at_those_near_the_stack_pointer");
	tap_is(stack.head.end, BM_KBARMAN_STACK_TIME, "it_is_told_that_the_time_was_over");
	tap_ok(reads <= ticks * 3 / 2 + 1, "it_takes_no_longer_than_half_as_long_again");
	halt = 3;
	kept = gather(0, true);
	tap_ok(kept && kept != ~0U && reads < 8, "one_that_is_held_up_ends_soon");
	tap_is(stack.head.end, BM_KBARMAN_STACK_TIME, "this_is_told_as_well");
	limit = LARGE;
	words = LARGE / sizeof(u64);
	halt = 0;
	for (ticks = 1; ticks <= 64; ticks++) {
		gather(5, true);
		if (reads > ticks * 3 / 2 + 2)
			break;
	}
	tap_is(ticks, 65, "however_little_time_it_has");
	limit = LIMIT;
	words = WORDS;
	pace = ticks = 0;
}

static void try_programs(void)
{
	pointers = true;
	step = 16;
	tap_is(gather(5, true), WORDS / 16 - 1, "pointers_to_no_frame_are_left_out");
	records = false;
	tap_is(gather(5, true), WORDS / 16 * 2 - 2, "all_are_kept_without_records");
	size = sizeof(u32);
	tap_is(gather(5, true), WORDS / 16 * 2 - 2, "and_those_of_a_32_bit_program");
	tap_is(stack.head.word, sizeof(u32), "whose_words_are_told");
	words = 2 * WORDS;
	step = 4;
	tap_ok(gather(5, true) <= KBARMAN_STACK_UNITS, "too_many_of_its_words_are_cut_as_well");
	tap_is(stack.head.end, BM_KBARMAN_STACK_FULL, "which_is_told_as_well");
}

int main(void)
{
	try_ends();
	try_absent();
	try_full();
	try_time();
	try_programs();
	return tap_done();
}
