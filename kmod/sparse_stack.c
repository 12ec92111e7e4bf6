// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stack is read in blocks that are aligned to their size, so no block has parts of two pages,
 * and a page that is not there ends the stack. A block may begin below the stack pointer.
 */
#include <linux/kernel.h>
#include <linux/ptrace.h>

#include "sparse_stack.h"
#include "user_memory.h"
#include "user_registers.h"

#define CHUNK	64	/* words of a block, and of a bit map */
#define STEP	4	/* words that are looked at in one turn */

struct scan {
	struct kbarman_sparse kept;
	const struct kbarman_sparse_ranges *ranges;
	unsigned long at, end;	/* of the user's stack */
	unsigned int word;
	u64 *code;		/* which words of the next block point into code */
};

/* Most chunks of @limit bytes: the first and the last one may be parts of a block. */
static unsigned long stack_chunks(u32 limit, unsigned int word)
{
	return limit / (CHUNK * word) + 2;
}

/* Most words of a sparse stack. */
static unsigned long stack_words(u32 limit, unsigned int word)
{
	return 64 + stack_chunks(limit, word) + KBARMAN_STACK_WORDS + CHUNK;
}

/*
 * Stacks of 8-byte words have half as many chunks. So there is room behind them for a map of each,
 * and for the 0 behind these.
 */
unsigned long kbarman_sparse_stack_max(u32 limit)
{
	return sizeof(struct bm_kbarman_stack) +
	       (stack_words(limit, sizeof(u32)) + 3) * sizeof(u64);
}

static kbarman_kept *stack_put_registers(struct bm_kbarman_stack *to, const struct pt_regs *regs,
					 const struct kbarman_user_registers *wanted,
					 const struct kbarman_range *stack)
{
	kbarman_kept *value = (kbarman_kept *)(to + 1);
	unsigned int i;

	to->registers = 0;
	for (i = 0; i < wanted->nr; i++) {
		const struct kbarman_user_register *which = &wanted->all[i];
		u64 word = kbarman_register_value(regs, which);

		if (which->scratch && !kbarman_range_has(stack, word))
			continue;
		to->registers |= 1ULL << which->number;
		*value++ = word;
	}
	return value;
}

/* The next word is a bit map, which is none of KBARMAN_STACK_WORDS. */
static void kept_put_map(struct kbarman_sparse *kept)
{
	kept->next++;
	kept->end++;
}

/* Look at the rest of the block that scan->at is in. False: it is not there. */
static bool scan_block(struct scan *scan)
{
	unsigned long bytes = CHUNK * scan->word, block = ALIGN_DOWN(scan->at, bytes);
	unsigned long end = min(block + bytes, scan->end);
	unsigned int nr = (end - scan->at) / scan->word;
	u64 words[CHUNK];
	const void *first = (char *)words + (scan->at - block);
	kbarman_kept *map = scan->kept.next;

	if (scan->word == sizeof(u64)) {
		if (!kbarman_read_user(&words, block) &&
		    !kbarman_read_old_page(words, block, bytes))
			return false;
		kept_put_map(&scan->kept);
		*map = kbarman_sparse_scan(&scan->kept, scan->ranges, first, scan->at, nr,
					   sizeof(u64));
	} else {
		if (!kbarman_read_user((u32 (*)[CHUNK])words, block) &&
		    !kbarman_read_old_page(words, block, bytes))
			return false;
		kept_put_map(&scan->kept);
		*map = kbarman_sparse_scan(&scan->kept, scan->ranges, first, scan->at, nr,
					   sizeof(u32));
	}
	if (scan->kept.records)
		/* A block may begin below the stack. */
		*scan->code++ = scan->kept.code << (scan->at - block) / scan->word;
	scan->at = end;
	return true;
}

/* @at_end: what the stack ends with if all of it is there. */
static enum bm_kbarman_stack_end scan_stack(struct scan *scan, enum bm_kbarman_stack_end at_end)
{
	while (scan->at < scan->end) {
		if (scan->kept.end - scan->kept.next < CHUNK)
			return BM_KBARMAN_STACK_FULL;
		if (!scan_block(scan))
			return BM_KBARMAN_STACK_ABSENT;
	}
	return at_end;
}

/* Drop what no reader needs. @from: where the chunks begin, of the stack from @low on. */
static void stack_drop(struct scan *scan, kbarman_kept *from, const u64 *code, unsigned long low)
{
	unsigned long block = ALIGN_DOWN(low, CHUNK * sizeof(u64));
	const struct kbarman_sparse_chunks chunks = {
		.first = from, .end = scan->kept.next, .code = code,
		.low = block, .high = scan->at, .below = (low - block) / sizeof(u64),
	};

	*scan->code = 0;
	scan->kept.next = kbarman_sparse_drop(&chunks);
}

unsigned long kbarman_sparse_stack_gather(struct bm_kbarman_stack *to, const struct pt_regs *regs,
					  const struct kbarman_sparse_ranges *ranges, u32 limit,
					  bool known)
{
	struct kbarman_user_registers wanted = kbarman_user_registers(regs);
	unsigned long step = STEP * wanted.word, low = ALIGN_DOWN(ranges->stack.low, step);
	unsigned long end = ALIGN(ranges->stack.low + ranges->stack.span, step);
	struct scan scan = { .ranges = ranges, .at = low, .end = end, .word = wanted.word };
	enum bm_kbarman_stack_end at_end = known ? BM_KBARMAN_STACK_WHOLE :
						   BM_KBARMAN_STACK_ABSENT;
	kbarman_kept *chunks;
	u64 *code;

	if (!wanted.nr)
		return 0;
	if (end - low > limit) {
		scan.end = low + ALIGN_DOWN(limit, step);
		at_end = BM_KBARMAN_STACK_LIMIT;
	}
	chunks = stack_put_registers(to, regs, &wanted, &ranges->stack);
	code = (u64 *)(to + 1) + stack_words(limit, sizeof(u64));
	scan.code = code;
	scan.kept.records = wanted.records;
	scan.kept.next = chunks;
	scan.kept.end = chunks + KBARMAN_STACK_WORDS + CHUNK;
	to->word = wanted.word;
	to->end = scan_stack(&scan, at_end);
	to->scanned = scan.at - low;
	if (wanted.records)
		stack_drop(&scan, chunks, code, low);
	return (char *)scan.kept.next - (char *)to;
}
