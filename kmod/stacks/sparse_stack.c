// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stack is read in blocks that are aligned to their size, so no block has parts of two pages,
 * from the end of the stack down. A page that is not there ends the stack, so what was found above
 * it is given up. A block may begin below the stack pointer.
 *
 * A word that is kept takes ten times as long as one that is not, and a program can have a stack
 * that is full of such words. So once the room is half full, or full, and much of the stack is
 * left, what was kept is given up, and the scan goes on nearer to the stack pointer: no word is
 * looked at twice, and what is left halves each time. A page that is not there takes longer still,
 * because each try is a fault. So the first one makes the scan go on below the lowest.
 *
 * What counts is how long all this takes, and on a slow machine, or in a virtual one that does not
 * run, every word takes long. So half of the time that the scan has, and all of it, do the same as
 * half of the room, and all of it.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/string.h>

#include "ring/clock.h"
#include "stacks/sparse_stack.h"
#include "stacks/user_memory.h"
#include "stacks/user_registers.h"

#define CHUNK		64	/* words of a block, and of a bit map */
#define STEP		4	/* words that are looked at in one turn */
#define REGISTERS	64	/* most registers: bits of a map */
#define UNIT		sizeof(u32)	/* of what is kept */
#define MAP_UNITS	KBARMAN_SPARSE_MAP
#define CHUNK_UNITS	(MAP_UNITS + CHUNK * KBARMAN_SPARSE_LONG)	/* at most */

struct scan {
	const struct kbarman_sparse_ranges *ranges;
	u32 *room, *room_end;		/* for chunks: a bit map and the words of a block */
	u32 *enough;			/* chunks below it are looked after: see scan_make_room() */
	u32 *next;			/* the last chunk */
	u8 *places;
	unsigned long low, high;	/* addresses: where it begins and ends */
	unsigned long end;		/* pointers to what is above are not kept */
	enum bm_kbarman_stack_end why;	/* it ends at `high` */
	u64 begun, ticks;		/* when it began, and how long it may take */
	u64 alarm;			/* ticks since `begun`: see scan_save_time() */
};

/* Most chunks of @limit bytes: the first and the last one may be parts of a block. */
static unsigned long stack_chunks(u32 limit, unsigned int word)
{
	return limit / (CHUNK * word) + 2;
}

/* Stacks of 8-byte words have half as many chunks. */
static unsigned long stack_units(u32 limit)
{
	return stack_chunks(limit, sizeof(u32)) * MAP_UNITS + KBARMAN_STACK_UNITS + CHUNK_UNITS;
}

unsigned long kbarman_sparse_stack_max(u32 limit)
{
	return sizeof(struct bm_kbarman_stack) + REGISTERS * sizeof(u64) +
	       (stack_units(limit) + 1) * UNIT;
}

unsigned long kbarman_sparse_stack_room(u32 limit)
{
	return kbarman_sparse_stack_max(limit) + KBARMAN_PLACES(limit / sizeof(u64));
}

static u32 *stack_put_registers(struct bm_kbarman_stack *to, const struct pt_regs *regs,
				const struct kbarman_user_registers *wanted,
				const struct kbarman_sparse_ranges *ranges)
{
	u32 *value = (u32 *)(to + 1);
	unsigned int i;

	to->registers = 0;
	for (i = 0; i < wanted->nr; i++) {
		const struct kbarman_user_register *which = &wanted->all[i];
		u64 word = kbarman_register_value(regs, which);

		if (which->scratch && !kbarman_range_has(&ranges->stack, word))
			continue;
		to->registers |= 1ULL << which->number;
		kbarman_sparse_put_64(value, which->link ? word & ranges->plain : word);
		value += 2;
	}
	return value;
}

/* Nothing at @address or above is there. */
static void scan_end_at(struct scan *scan, unsigned long address, enum bm_kbarman_stack_end why)
{
	scan->high = address;
	scan->end = address;
	scan->why = why;
}

/* Units of the chunk at @at. */
static unsigned int chunk_units(const u32 *at, unsigned int word)
{
	unsigned int units = MAP_UNITS, words = hweight32(at[0]) + hweight32(at[1]);

	if (word == sizeof(u32))
		return units + words;
	while (words--)
		units += at[units] >> BM_KBARMAN_STACK_WORD_SHIFT == BM_KBARMAN_STACK_WORD_LONG ?
				 KBARMAN_SPARSE_LONG : 1;
	return units;
}

/* Give up half of the words, those farthest from the stack pointer. @at: where the chunks begin. */
static void scan_halve(struct scan *scan, struct kbarman_sparse *sparse, unsigned long at,
		       unsigned int word)
{
	u32 *next = sparse->next, *to = next;

	while (to - next < (scan->room_end - scan->room) / 2) {
		to += chunk_units(to, word);
		at += CHUNK * word;
	}
	scan_end_at(scan, at, BM_KBARMAN_STACK_FULL);
	sparse->span = at - scan->low;
	sparse->next = memmove(scan->room_end - (to - next), next, (to - next) * UNIT);
}

/* Give up all words, and begin again below @address. */
static unsigned long scan_begin_at(struct scan *scan, struct kbarman_sparse *sparse,
				   unsigned long address, enum bm_kbarman_stack_end why)
{
	scan_end_at(scan, address, why);
	scan->enough = scan->room + (scan->room_end - scan->room) / 2;
	sparse->span = address - scan->low;
	sparse->next = scan->room_end;
	return address;
}

/*
 * The room is half full for the first time, or full, and nothing below @end was looked at. If it is
 * half full, it will do for as many bytes again. Returns the end of the next block.
 */
static noinline unsigned long scan_make_room(struct scan *scan, struct kbarman_sparse *sparse,
					     unsigned long end, unsigned int word)
{
	bool full = sparse->next - scan->room < CHUNK_UNITS;
	unsigned long bytes = (scan->high - end) / (full ? 4 : 1);

	if (end - scan->low > bytes)
		return scan_begin_at(scan, sparse, scan->low + ALIGN_DOWN(bytes, STEP * word),
				     BM_KBARMAN_STACK_FULL);
	if (full)
		scan_halve(scan, sparse, end, word);
	scan->enough = scan->room + CHUNK_UNITS;
	return end;
}

/*
 * Half of the time is over, or all of it, and nothing below @end was looked at. In the second half
 * the scan gets as far as in the first one. Returns the end of the next block.
 */
static noinline unsigned long scan_save_time(struct scan *scan, struct kbarman_sparse *sparse,
					     unsigned long end, unsigned int word)
{
	u64 took = kbarman_clock() - scan->begun;
	bool over = took >= scan->ticks;
	unsigned long bytes = (scan->high - end) / (over ? 4 : 1);

	scan->alarm = over ? took + scan->ticks / 4 + 1 : scan->ticks;
	if (end - scan->low <= bytes)
		return end;
	return scan_begin_at(scan, sparse, scan->low + ALIGN_DOWN(bytes, STEP * word),
			     BM_KBARMAN_STACK_TIME);
}

static __always_inline bool scan_is_late(const struct scan *scan)
{
	return scan->ticks && kbarman_clock() - scan->begun >= scan->alarm;
}

/* Read the block at @from, of words of @size bytes. False: it is not there. */
static __always_inline bool read_block(u64 (*words)[CHUNK], unsigned long from, unsigned int size)
{
	if (size == sizeof(u64) ? kbarman_read_user(words, from) :
				  kbarman_read_user((u32 (*)[CHUNK])words, from))
		return true;
	return kbarman_read_old_page(words, from, CHUNK * size);
}

/*
 * Nothing of the page of @block is there. Look from the stack pointer up for the first such page:
 * none behind it is tried. @words: what is read. Returns the end of the next block.
 */
static noinline unsigned long scan_leave_page(struct scan *scan, struct kbarman_sparse *sparse,
					      u64 (*words)[CHUNK], unsigned long block,
					      unsigned int word)
{
	unsigned long page = max(ALIGN_DOWN(block, PAGE_SIZE), scan->low), at = scan->low;

	while (at < page && read_block(words, ALIGN_DOWN(at, CHUNK * word), word))
		at = ALIGN_DOWN(at, PAGE_SIZE) + PAGE_SIZE;
	return scan_begin_at(scan, sparse, min(at, page), BM_KBARMAN_STACK_ABSENT);
}

/* Look at the blocks of a stack of words of @size bytes, from its end down. */
static __always_inline void scan_blocks(struct scan *scan, unsigned int size)
{
	const unsigned long bytes = CHUNK * size, low = scan->low;
	struct kbarman_sparse sparse;
	unsigned long end, block, at;
	u64 words[CHUNK];

	kbarman_sparse_begin(&sparse, scan->ranges, low, scan->end - low, scan->places,
			     scan->room_end);
	for (end = scan->high; end != low; end = at) {
		block = ALIGN_DOWN(end - 1, bytes);
		at = max(block, low);
		if (unlikely(sparse.next < scan->enough)) {
			at = scan_make_room(scan, &sparse, end, size);
			continue;
		}
		if (unlikely(scan_is_late(scan))) {
			at = scan_save_time(scan, &sparse, end, size);
			continue;
		}
		if (unlikely(!read_block(&words, block, size))) {
			at = scan_leave_page(scan, &sparse, &words, block, size);
			continue;
		}
		kbarman_sparse_scan(&sparse, (char *)words + (at - block), at - low,
				    end - at, size);
	}
	scan->next = sparse.next;
}

/* Functions for each size, that have enough registers. */
static noinline void scan_wide(struct scan *scan)
{
	scan_blocks(scan, sizeof(u64));
}

static noinline void scan_narrow(struct scan *scan)
{
	scan_blocks(scan, sizeof(u32));
}

/* Scan the stack, and put the chunks at @to, with room for those of @limit bytes, and places. */
static u32 *stack_put_chunks(u32 *to, struct scan *scan, u32 limit,
			     const struct kbarman_user_registers *wanted)
{
	unsigned long units = stack_units(limit);
	u8 *places = (u8 *)(to + units);

	scan->room = to;
	scan->room_end = to + units;
	scan->enough = to + units / 2;
	scan->places = places + KBARMAN_PLACES_BELOW;
	if (wanted->word == sizeof(u64)) {
		memset(places, !wanted->records,
		       KBARMAN_PLACES((scan->high - scan->low) / sizeof(u64)));
		scan_wide(scan);
	} else {
		scan_narrow(scan);
	}
	units = scan->room_end - scan->next;
	memmove(to, scan->next, units * UNIT);
	return to + units;
}

unsigned long kbarman_sparse_stack_gather(struct bm_kbarman_stack *to, const struct pt_regs *regs,
					  const struct kbarman_sparse_ranges *ranges, u32 limit,
					  bool known, u64 ticks)
{
	struct kbarman_user_registers wanted = kbarman_user_registers(regs);
	unsigned long step = STEP * wanted.word, low = ALIGN_DOWN(ranges->stack.low, step);
	unsigned long end = ranges->stack.low + ranges->stack.span;
	struct scan scan = {
		.ranges = ranges,
		.low = low,
		.high = ALIGN(end, step),
		.end = end,
		.why = known ? BM_KBARMAN_STACK_WHOLE : BM_KBARMAN_STACK_ABSENT,
		.begun = ticks ? kbarman_clock() : 0,
		.ticks = ticks,
		.alarm = ticks / 2,
	};
	u32 *chunks;

	if (!wanted.nr)
		return 0;
	if (scan.high < low)
		scan_end_at(&scan, low, BM_KBARMAN_STACK_ABSENT);
	else if (scan.high - low > limit)
		scan_end_at(&scan, low + ALIGN_DOWN(limit, step), BM_KBARMAN_STACK_LIMIT);
	chunks = stack_put_registers(to, regs, &wanted, ranges);
	chunks = stack_put_chunks(chunks, &scan, limit, &wanted);
	to->program = ranges->code[0].low;
	to->libraries = ranges->code[1].low;
	to->word = wanted.word;
	to->end = scan.why;
	to->scanned = scan.high - low;
	/* Lengths of records are multiples of this. */
	if (!IS_ALIGNED((char *)chunks - (char *)to, sizeof(bm_uintptr)))
		*chunks++ = 0;
	return (char *)chunks - (char *)to;
}
