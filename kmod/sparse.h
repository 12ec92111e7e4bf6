/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which words of a user's stack are kept for a sparse stack: those that point into code, and those
 * that point to a place of the stack where the frame of a caller may be found. A reader that
 * unwinds needs no others; it reads them as 0. What points into code is found by a few ranges, one
 * for the program and some for its libraries: a word costs a few comparisons and no look-up. Pure
 * code.
 *
 * Most words that point into the stack are addresses of variables, of which C++ programs have more
 * than return addresses. Those that unwinding needs are frame pointers, stack pointers and CFAs
 * that a function saved. All of these point above themselves. Some machines have the caller's
 * address beside the place to which such a word points:
 *
 *	frame pointer	one word above (a frame record), or up to three if others are pushed
 *			first, as when ld.so binds a function
 *	stack pointer	there, as OpenSSL saves it
 *	CFA		one word below, as of functions that align their stack
 *
 * The stack pointer of an interrupted frame points to anything. A signal's frame has it one word
 * below the program counter.
 *
 * So a stack is scanned from its end down: what is beside a place is known before the words that
 * point there are looked at.
 */
#ifndef KBARMAN_SPARSE_H
#define KBARMAN_SPARSE_H

#include "sparse_env.h"
#include "uapi/barman_v2.h"

/* The addresses [low, low + span). */
struct kbarman_range {
	unsigned long low, span;
};

#define KBARMAN_LIBRARY_RANGES	4
#define KBARMAN_SPARSE_LONG	3	/* most __u32 of a word that is kept */
#define KBARMAN_SIGNAL_BYTES	512	/* a signal's frame has more behind its stack pointer */

/*
 * Most words are in none of the ranges: they are small numbers, below `floor`, or they point into
 * the heap, which is between the program and `high`.
 */
struct kbarman_sparse_ranges {
	struct kbarman_range code[1 + KBARMAN_LIBRARY_RANGES];	/* the program; its libraries */
	struct kbarman_range stack;
	struct kbarman_range high;	/* has the libraries and the stack in it */
	unsigned long floor;		/* all of these begin here or above */
	unsigned long low_end;		/* what is below `high` ends here */
	unsigned long plain;		/* bits of an address without authentication code */
};

/* A byte of kbarman_sparse.places for each word, and for some words below and above. */
#define KBARMAN_PLACES_BELOW	3
#define KBARMAN_PLACES(words)	(KBARMAN_PLACES_BELOW + (words) + 1)

/*
 * The state of a scan, from block to block. Byte n of `places` is 1 if a pointer to word n of the
 * stack is kept: all of them, or as the scan finds what is beside that word. Words of 4 bytes have
 * no places: all pointers to words above are kept.
 */
struct kbarman_sparse {
	u32 *next;		/* what is kept goes below it */
	u8 *places;
	unsigned long low;	/* address of word 0; a multiple of the size of words */
	unsigned long span;	/* bytes: pointers to what is above are not kept */
	unsigned long code;	/* where the last word is that points into code: bytes from `low` */
};

static __always_inline bool kbarman_range_has(const struct kbarman_range *range,
					      unsigned long address)
{
	return address - range->low < range->span;
}

static inline void kbarman_range_include(struct kbarman_range *range,
					 const struct kbarman_range *other)
{
	unsigned long end = range->low + range->span, others = other->low + other->span;

	if (!other->span)
		return;
	if (!range->span) {
		*range = *other;
		return;
	}
	range->low = min(range->low, other->low);
	range->span = max(end, others) - range->low;
}

/* Set what is found out of the others. */
static inline void kbarman_sparse_ranges_close(struct kbarman_sparse_ranges *ranges)
{
	struct kbarman_range all;
	unsigned int i;

	ranges->high = ranges->stack;
	for (i = 1; i < ARRAY_SIZE(ranges->code); i++)
		kbarman_range_include(&ranges->high, &ranges->code[i]);
	all = ranges->high;
	kbarman_range_include(&all, &ranges->code[0]);
	ranges->floor = all.low;
	ranges->low_end = ranges->code[0].low + ranges->code[0].span;
}

/* A range to compare with: to add takes one instruction less than to subtract on x86. */
struct sparse_test {
	unsigned long minus_low, span;
};

static __always_inline struct sparse_test sparse_test_of(unsigned long low, unsigned long span)
{
	struct sparse_test test = { -low, span };

	/* The compiler would subtract. */
	OPTIMIZER_HIDE_VAR(test.minus_low);
	return test;
}

static __always_inline bool sparse_is_in(const struct sparse_test *test, unsigned long word)
{
	return unlikely(word + test->minus_low < test->span);
}

/* A scan of a block. Addresses of the user's stack are those of the words read from there. */
struct sparse_block {
	const struct kbarman_sparse_ranges *ranges;
	struct sparse_test stack;
	unsigned long floor, low_end, high, plain;
	const void *low, *code;		/* word 0; the last one that points into code */
	u8 *places;
	u32 *next;
	u64 map;
};

/* Half of all 64-bit numbers are negative. Only s390x has such addresses in user code. */
static __always_inline bool sparse_is_small(const struct sparse_block *block, unsigned long word,
					    unsigned int size)
{
	return size == sizeof(u64) && !IS_ENABLED(CONFIG_S390) ? (s64)word < (s64)block->floor :
								 word < block->floor;
}

/* Where word @n from @at on is. The compiler would find out before it is asked. */
static __always_inline const void *sparse_place(const void *at, unsigned int n, unsigned int size)
{
	OPTIMIZER_HIDE_VAR(at);
	return at + n * size;
}

/* Whether word @n from @at on, which points to @offset, may lead to the frame of a caller. */
static __always_inline bool sparse_is_saved(const struct sparse_block *block, const void *at,
					    unsigned int n, unsigned long offset, unsigned int size)
{
	if (size == sizeof(u32) || block->places[offset / size])
		return !(offset % size) && block->low + offset > sparse_place(at, n, size);
	return at + (n + 1) * size == block->code && !(offset % size) &&
	       (long)offset - (block->code - block->low) >= (long)(KBARMAN_SIGNAL_BYTES - size);
}

/* Whether @word, which is not below `high`, points into code. */
static __always_inline bool sparse_is_high_code(const struct kbarman_range *code,
						unsigned long word)
{
	return kbarman_range_has(&code[4], word) || kbarman_range_has(&code[3], word) ||
	       kbarman_range_has(&code[2], word) || kbarman_range_has(&code[1], word) ||
	       kbarman_range_has(&code[0], word);
}

/* Keep @word, which is @offset bytes behind what @base says. */
static __always_inline void sparse_keep(struct sparse_block *block, unsigned long word,
					unsigned long offset, enum bm_kbarman_stack_word base,
					unsigned int size)
{
	const u64 wide = word;

	if (size == sizeof(u32)) {
		*--block->next = word;
	} else if (likely(!(offset >> BM_KBARMAN_STACK_WORD_SHIFT))) {
		*--block->next = offset | (u32)base << BM_KBARMAN_STACK_WORD_SHIFT;
	} else {
		block->next -= KBARMAN_SPARSE_LONG;
		block->next[0] = (u32)BM_KBARMAN_STACK_WORD_LONG << BM_KBARMAN_STACK_WORD_SHIFT;
		memcpy(&block->next[1], &wide, sizeof(wide));
	}
}

/* Keep @word, which is at @at and points into code. */
static __always_inline void sparse_keep_code(struct sparse_block *block, const void *at,
					     unsigned long word, const struct kbarman_range *code,
					     enum bm_kbarman_stack_word base, unsigned int size)
{
	u8 *place = block->places + (unsigned long)(at - block->low) / size;

	if (size == sizeof(u64)) {
		memset(place - KBARMAN_PLACES_BELOW, 1, KBARMAN_PLACES_BELOW + 1);
		place[1] = 1;
		block->code = at;
	}
	sparse_keep(block, word, word - code->low, base, size);
}

/* Look at word @n from @at on, and keep it if it is wanted. */
static __always_inline void sparse_look(struct sparse_block *block, const void *at, unsigned int n,
					unsigned int size)
{
	unsigned long word = size == sizeof(u32) ? ((const u32 *)at)[n] : ((const u64 *)at)[n];
	const struct kbarman_range *code = block->ranges->code;
	unsigned long offset;

	if (likely(sparse_is_small(block, word, size)))
		return;
	if (IS_ENABLED(CONFIG_ARM64_PTR_AUTH)) {
		word &= block->plain;
		if (sparse_is_small(block, word, size))
			return;
	}
	if (word < block->high) {
		if (word >= block->low_end)
			return;
		sparse_keep_code(block, sparse_place(at, n, size), word, &code[0],
				 BM_KBARMAN_STACK_WORD_PROGRAM, size);
	} else if (sparse_is_in(&block->stack, word)) {
		offset = word + block->stack.minus_low;
		if (!sparse_is_saved(block, at, n, offset, size))
			return;
		sparse_keep(block, word, offset, BM_KBARMAN_STACK_WORD_STACK, size);
	} else {
		if (!sparse_is_high_code(code, word))
			return;
		sparse_keep_code(block, sparse_place(at, n, size), word, &code[1],
				 BM_KBARMAN_STACK_WORD_LIBRARIES, size);
	}
	block->map |= 1U << n;
}

/*
 * Look at @nr words of @size bytes, a multiple of 4 and 64 at most, the first of which is @offset
 * bytes above sparse->low in the user's stack; from the last one down. Bit n of the result: word n
 * is kept. Four words in one turn, because the loop itself would cost as much as a word does.
 */
static __always_inline u64 kbarman_sparse_scan(struct kbarman_sparse *sparse,
					       const struct kbarman_sparse_ranges *ranges,
					       const void *words, unsigned long offset,
					       unsigned int nr, unsigned int size)
{
	struct sparse_block block = {
		.ranges = ranges,
		.stack = sparse_test_of(sparse->low, sparse->span),
		.floor = ranges->floor,
		.low_end = ranges->low_end,
		.high = ranges->high.low,
		.plain = ranges->plain,
		.low = words - offset,
		.code = words - offset + sparse->code,
		.places = sparse->places,
		.next = sparse->next,
	};
	const void *at;

	for (at = words + nr * size; at != words;) {
		at -= 4 * size;
		block.map <<= 4;
		sparse_look(&block, at, 3, size);
		sparse_look(&block, at, 2, size);
		sparse_look(&block, at, 1, size);
		sparse_look(&block, at, 0, size);
	}
	sparse->next = block.next;
	sparse->code = block.code - block.low;
	return block.map;
}

#endif /* KBARMAN_SPARSE_H */
