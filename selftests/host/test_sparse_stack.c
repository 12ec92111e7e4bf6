// SPDX-License-Identifier: MIT
/*
 * Where a sparse stack ends: the module's own sparse_stack.c over the memory of a made task. All
 * words of its stack point into code, or none.
 */
#include "../compare/kernel.h"
#include "../../kmod/sparse_stack.c"
#include "../lib/tap.h"

#define STACK	0x7ffc00000000UL	/* begins a block */
#define WORDS	8192U
#define CODE	0x400000UL
#define LIMIT	65536U

struct pt_regs {
	u64 pc, sp;
};

static unsigned long absent;	/* address of a page that is not there; 0: all are */
static unsigned int faults;	/* tries to read it */
static unsigned int step;	/* every so many words, one points into code */
static unsigned long code;	/* how far behind the program's begin */

unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long size)
{
	unsigned long at = (unsigned long)from, n = (at - STACK) / sizeof(u64), i;
	u64 *words = to;

	if (absent && ALIGN_DOWN(at, PAGE_SIZE) == absent) {
		faults++;
		return size;
	}
	for (i = 0; i < size / sizeof(u64); i++)
		words[i] = (n + i) % step ? 0 : CODE + code + n + i;
	return 0;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	(void)to, (void)from, (void)size;
	return false;
}

struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
	static const struct kbarman_user_register all[] = {
		{ 7, false, false, offsetof(struct pt_regs, sp) },
		{ BM_KBARMAN_REGISTER_PC, false, false, offsetof(struct pt_regs, pc) },
	};

	(void)regs;
	return (struct kbarman_user_registers) { all, ARRAY_SIZE(all), sizeof(u64), true };
}

static struct {
	struct bm_kbarman_stack head;
	u32 values[65536];
} stack;

/*
 * Gather the stack from word @first on, and look whether each word of it is the right one. Returns
 * the number of words that are kept, or ~0.
 */
static unsigned int gather(unsigned int first, bool known)
{
	const struct pt_regs regs = { .pc = CODE, .sp = STACK + first * sizeof(u64) };
	struct kbarman_sparse_ranges ranges = {
		.code[0] = { CODE, (2UL << 30) + WORDS },
		.stack = { regs.sp, (WORDS - first) * sizeof(u64) },
	};
	bool far = code >> 30;
	unsigned int n = ALIGN_DOWN(first, 4), end, kept = 0, next, wrong = 0;
	unsigned long bytes;
	const u32 *at = stack.values + 4;

	kbarman_sparse_ranges_close(&ranges);
	memset(&stack, 0xa5, sizeof(stack));
	bytes = kbarman_sparse_stack_gather(&stack.head, &regs, &ranges, LIMIT, known);
	end = n + stack.head.scanned / sizeof(u64);
	for (; n < end; n = next) {
		u64 map = at[0] | (u64)at[1] << 32;

		at += 2;
		next = min((n / 64 + 1) * 64, end);
		for (; n < next; n++, map >>= 1) {
			wrong += (map & 1) != !(n % step);
			if (map & 1) {
				wrong += *at++ != (far ? 3U << 30 : 1U << 30 | (n + code));
				if (far) {
					wrong += at[0] + ((u64)at[1] << 32) != CODE + code + n;
					at += 2;
				}
				kept++;
			}
		}
	}
	if (((const char *)at - (const char *)&stack) % sizeof(u64))
		wrong += *at++ != 0;
	wrong += (const char *)at != (const char *)&stack + bytes;
	wrong += bytes > kbarman_sparse_stack_max(LIMIT);
	return wrong ? ~0U : kept;
}

int main(void)
{
	unsigned int kept;

	step = 16;
	tap_is(gather(5, true), WORDS / 16 - 1, "all_words_of_a_stack_are_looked_at");
	tap_is(stack.head.end, BM_KBARMAN_STACK_WHOLE, "it_is_whole");
	tap_is(gather(5, false), WORDS / 16 - 1, "so_are_those_of_an_unknown_one");
	tap_is(stack.head.end, BM_KBARMAN_STACK_ABSENT, "which_has_no_end");

	absent = STACK + 1024 * sizeof(u64);
	tap_is(gather(5, true), 1024 / 16 - 1, "a_page_that_is_not_there_ends_the_stack");
	tap_is(faults, 1, "it_is_tried_once");
	tap_is(stack.head.end, BM_KBARMAN_STACK_ABSENT, "this_is_told");
	absent = STACK;
	tap_is(gather(5, true), 0, "nothing_is_kept_if_the_first_page_is_not_there");
	tap_is(stack.head.scanned, 0, "and_nothing_is_said_to_be_there");
	absent = 0;

	step = 1;
	kept = gather(5, true);
	tap_ok(kept >= KBARMAN_STACK_UNITS / 2 - 64 && kept <= KBARMAN_STACK_UNITS,
	       "of_too_many_words_those_near_the_stack_pointer_are_kept");
	tap_is(stack.head.end, BM_KBARMAN_STACK_FULL, "and_so_is_that_there_were_more");

	code = 1UL << 30;
	step = 16;
	tap_is(gather(5, true), WORDS / 16 - 1, "code_of_a_large_program_is_kept");
	step = 1;
	kept = gather(5, true);
	tap_ok(kept >= KBARMAN_STACK_UNITS / 6 - 64 && kept < KBARMAN_STACK_UNITS / 2,
	       "too_many_of_its_words_are_cut_as_well");
	return tap_done();
}
