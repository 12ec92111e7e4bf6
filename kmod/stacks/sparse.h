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
 * that a function saved. All of these point above themselves, but on s390x: there a function saves
 * registers in the frame of its caller, above the places to which they point. Some machines have
 * the caller's address beside the place to which such a word points:
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

#include "maps/range.h"
#include "stacks/sparse_env.h"
#include "uapi/barman_v2.h"

#define KBARMAN_SPARSE_LONG	3	/* most __u32 of a word that is kept */
#define KBARMAN_SPARSE_MAP	2	/* and those of the map in front of the words of a chunk */
#define KBARMAN_SIGNAL_BYTES	512	/* a signal's frame has more behind its stack pointer */

/*
 * Most words are in none of the ranges: they are small numbers, below `floor`, or they point into
 * the heap, which is between the program and `high`, or in a hole between libraries.
 */
struct kbarman_sparse_ranges {
	/* the program; its libraries in the order of addresses, then ranges of nothing */
	struct kbarman_range code[1 + KBARMAN_LIBRARY_RANGES];
	struct kbarman_range stack;
	struct kbarman_range high;	/* has the libraries and the stack in it */
	unsigned long floor, top;	/* all of these are between */
	unsigned long low_end;		/* what is below `high` ends here */
	struct kbarman_range hole;	/* a part of `high` that has none of these in it */
	unsigned long library_end[KBARMAN_LIBRARY_RANGES];
	unsigned long second, third;	/* where code[2] and code[3] begin; or no address */
	unsigned long plain;		/* bits of an address without authentication code */
};

/* A byte of kbarman_sparse.places for each word, and for some words below and above. */
#define KBARMAN_PLACES_BELOW	3
#define KBARMAN_PLACES(words)	(KBARMAN_PLACES_BELOW + (words) + 1)

/* Let `hole` be [low, high) if that is larger, and has nothing of the stack and the program. */
static inline void sparse_try_hole(struct kbarman_sparse_ranges *ranges, unsigned long low,
				   unsigned long high)
{
	const struct kbarman_range hole = { low, high - low };

	if (high > low && high - low > ranges->hole.span &&
	    !kbarman_range_overlaps(&hole, &ranges->stack) &&
	    !kbarman_range_overlaps(&hole, &ranges->code[0]))
		ranges->hole = hole;
}

/* Set what is found out of the others. */
static inline void kbarman_sparse_ranges_close(struct kbarman_sparse_ranges *ranges)
{
	unsigned long end = ranges->stack.low + ranges->stack.span;
	struct kbarman_range all;
	unsigned int i;

	ranges->high = ranges->stack;
	ranges->hole = (struct kbarman_range) { };
	for (i = 0; i < KBARMAN_LIBRARY_RANGES && ranges->code[1 + i].span; i++) {
		const struct kbarman_range *code = &ranges->code[1 + i];

		kbarman_range_include(&ranges->high, code);
		sparse_try_hole(ranges, end, code->low);
		end = code->low + code->span;
		ranges->library_end[i] = end;
	}
	for (; i < KBARMAN_LIBRARY_RANGES; i++)
		ranges->library_end[i] = 0;
	all = ranges->high;
	kbarman_range_include(&all, &ranges->code[0]);
	ranges->floor = all.low;
	ranges->top = all.low + all.span;
	ranges->low_end = ranges->code[0].low + ranges->code[0].span;
	ranges->second = ranges->code[2].span ? ranges->code[2].low : ~0UL;
	ranges->third = ranges->code[3].span ? ranges->code[3].low : ~0UL;
}

/* A range to compare with: to add takes one instruction less than to subtract on x86. */
struct sparse_test {
	unsigned long minus_low, span;
};

static __always_inline bool sparse_is_in(const struct sparse_test *test, unsigned long word)
{
	return unlikely(word + test->minus_low < test->span);
}

/*
 * A scan, block by block. Byte n of `places` is 1 if a pointer to word n of the stack is kept: all
 * of them, or as the scan finds what is beside that word. Words of 4 bytes have no places: all
 * pointers to words above are kept. s390x keeps those to words below as well. Addresses of the
 * user's stack are those of the words read from there.
 */
struct kbarman_sparse {
	const struct kbarman_sparse_ranges *ranges;
	struct sparse_test stack, hole;
	unsigned long floor, low_end, high, program, plain;
	unsigned long span;		/* pointers to these bytes may be kept */
	u8 *places;
	u32 *next, *end;		/* chunks: the last one, and where they end */
};

/* @stack: the address of word 0. */
static inline void kbarman_sparse_begin(struct kbarman_sparse *sparse,
					const struct kbarman_sparse_ranges *ranges,
					unsigned long stack, unsigned long span, u8 *places,
					u32 *end)
{
	/* With what was cut off it: a range of code may have the stack in it. */
	unsigned long high = ranges->stack.low + ranges->stack.span;

	*sparse = (struct kbarman_sparse) {
		.ranges = ranges,
		.stack = { -stack, high - stack },
		.hole = { -ranges->hole.low, ranges->hole.span },
		.floor = ranges->floor,
		.low_end = ranges->low_end,
		.high = ranges->high.low,
		.program = ranges->code[0].low,
		.plain = ranges->plain,
		.span = span, .places = places, .next = end, .end = end,
	};
}

/* A block, and in registers what most of its words are compared with: all else stays in memory. */
struct sparse_block {
	const void *at, *end;		/* the four words that are looked at; behind the last one */
	unsigned long places;		/* where the byte of a word at address 0 would be */
	u64 map;			/* of the words that were looked at */
	u32 *next;
	unsigned long floor, low_end, high, minus_hole;
};

/* Word @n of the four. */
static __always_inline unsigned long sparse_word(const struct sparse_block *block, unsigned int n,
						 unsigned int size)
{
	return size == sizeof(u32) ? ((const u32 *)block->at)[n] : ((const u64 *)block->at)[n];
}

/*
 * Three questions about @word, which is word @n: whether it is small, whether it is below @limit,
 * and what it is after all. Half of all 64-bit numbers are negative. Only s390x has such addresses
 * in user code.
 *
 * x86 compares what is in memory, but the compiler would first load an address or a word that is
 * used twice: an instruction for each word. So the code of these is given.
 */
#if defined(CONFIG_X86_64) && defined(__GCC_ASM_FLAG_OUTPUTS__) && defined(__OPTIMIZE__)
static __always_inline bool sparse_is_small(const struct sparse_block *block, unsigned int n,
					    unsigned long word, unsigned int size)
{
	bool small = word < block->floor;

	if (size == sizeof(u64))
		__asm__("cmpq %3, %c2(%1)" : "=@ccl" (small)
			: "r" (block->at), "i" (n * sizeof(u64)), "r" (block->floor),
			  "m" (*(const u64 (*)[4])block->at));
	return small;
}

static __always_inline bool sparse_is_below(const struct sparse_block *block, unsigned int n,
					    unsigned long word, unsigned long limit,
					    unsigned int size)
{
	bool below = word < limit;

	if (size == sizeof(u64))
		__asm__("cmpq %3, %c2(%1)" : "=@ccb" (below)
			: "r" (block->at), "i" (n * sizeof(u64)), "r" (limit),
			  "m" (*(const u64 (*)[4])block->at));
	return below;
}

static __always_inline unsigned long sparse_load(const struct sparse_block *block, unsigned int n,
						 unsigned long word, unsigned int size)
{
	if (size == sizeof(u64))
		__asm__("movq %c2(%1), %0" : "=r" (word)
			: "r" (block->at), "i" (n * sizeof(u64)),
			  "m" (*(const u64 (*)[4])block->at));
	return word;
}
#else
static __always_inline bool sparse_is_small(const struct sparse_block *block, unsigned int n,
					    unsigned long word, unsigned int size)
{
	return size == sizeof(u64) && !IS_ENABLED(CONFIG_S390) ? (s64)word < (s64)block->floor :
								 word < block->floor;
}

static __always_inline bool sparse_is_below(const struct sparse_block *block, unsigned int n,
					    unsigned long word, unsigned long limit,
					    unsigned int size)
{
	return word < limit;
}

static __always_inline unsigned long sparse_load(const struct sparse_block *block, unsigned int n,
						 unsigned long word, unsigned int size)
{
	return word;
}
#endif

/* Its byte of the places. */
static __always_inline u8 *sparse_place(const struct sparse_block *block, unsigned int n,
					unsigned int size)
{
	unsigned long at = (unsigned long)block->at;

	/* The compiler would find out where most words have no use for it. */
	OPTIMIZER_HIDE_VAR(at);
	return (u8 *)(block->places + at / size + n);
}

/* Whether the word above word @n points into code. It is kept then, but not as one of the stack. */
static __always_inline bool sparse_is_below_code(const struct kbarman_sparse *sparse,
						 const struct sparse_block *block, unsigned int n,
						 unsigned int size)
{
	const u32 *above = block->next;
	u64 map = block->map >> n;

	if (n == 3 && block->at + 4 * size == block->end) {
		if (above == sparse->end)
			return false;
		memcpy(&map, above, sizeof(map));
		map <<= 1;
		above += KBARMAN_SPARSE_MAP;
	}
	return map & 2 && *above >> BM_KBARMAN_STACK_WORD_SHIFT != BM_KBARMAN_STACK_WORD_STACK;
}

/* Whether word @n, which points to @offset, may lead to the frame of a caller. */
static __always_inline bool sparse_is_saved(const struct kbarman_sparse *sparse,
					    struct sparse_block *block, unsigned int n,
					    unsigned long offset, unsigned int size)
{
	const u8 *place;

	if (IS_ENABLED(CONFIG_S390) && offset >= sparse->span)
		return false;
	/*
	 * The task chose it: a CPU must not look elsewhere before it knows that. What is too far
	 * becomes 0, which is not above any word.
	 */
	offset = array_index_nospec(offset, sparse->span);
	place = sparse->places + offset / size;
	if (unlikely(size == sizeof(u32) || *place))
		return !(offset % size) &&
		       (IS_ENABLED(CONFIG_S390) || place > sparse_place(block, n, size));
	return unlikely(sparse_is_below_code(sparse, block, n, size)) && !(offset % size) &&
	       place - sparse_place(block, n, size) >= KBARMAN_SIGNAL_BYTES / (long)size;
}

/* Whether @word, which is not below `high`, points into code. */
static __always_inline bool sparse_is_high_code(const struct kbarman_sparse_ranges *ranges,
						const struct sparse_block *block,
						unsigned long word)
{
	if (word >= ranges->top)
		return false;
	if (word >= ranges->third) {
		if (word < ranges->library_end[2] ||
		    (word >= ranges->code[4].low && word < ranges->library_end[3]))
			return true;
	} else if (word >= ranges->second) {
		if (word < ranges->library_end[1])
			return true;
	} else if (word < ranges->library_end[0] && word >= ranges->code[1].low) {
		return true;
	}
	return unlikely(word < block->low_end) && kbarman_range_has(&ranges->code[0], word);
}

/* Keep a word that is @offset bytes behind @low, which is what @base says. */
static __always_inline void sparse_keep(struct sparse_block *block, unsigned int n,
					unsigned long offset, unsigned long low,
					enum bm_kbarman_stack_word base, unsigned int size)
{
	const u64 wide = low + offset;

	if (size == sizeof(u32)) {
		*--block->next = wide;
	} else if (base == BM_KBARMAN_STACK_WORD_STACK ||
		   likely(offset < 1UL << BM_KBARMAN_STACK_WORD_SHIFT)) {
		*--block->next = offset | (u32)base << BM_KBARMAN_STACK_WORD_SHIFT;
	} else {
		block->next -= KBARMAN_SPARSE_LONG;
		block->next[0] = (u32)BM_KBARMAN_STACK_WORD_LONG << BM_KBARMAN_STACK_WORD_SHIFT;
		memcpy(&block->next[1], &wide, sizeof(wide));
	}
	block->map |= 1U << n;
}

/* Keep @word, which is word @n and points into code. */
static __always_inline void sparse_keep_code(struct sparse_block *block, unsigned int n,
					     unsigned long word, unsigned long low,
					     enum bm_kbarman_stack_word base, unsigned int size)
{
	u8 *place = sparse_place(block, n, size);
	unsigned long offset = word - low;

	/* The compiler would have @word in a register for the rarest case. */
	OPTIMIZER_HIDE_VAR(offset);
	if (size == sizeof(u64)) {
		memset(place - KBARMAN_PLACES_BELOW, 1, KBARMAN_PLACES_BELOW + 1);
		place[1] = 1;
	}
	sparse_keep(block, n, offset, low, base, size);
}

/* Look at word @n of the next four, and keep it if it is wanted. */
static __always_inline void sparse_look(const struct kbarman_sparse *sparse,
					struct sparse_block *block, unsigned int n,
					unsigned int size)
{
	unsigned long word = sparse_word(block, n, size), offset;

	if (likely(sparse_is_small(block, n, word, size)))
		return;
	if (IS_ENABLED(CONFIG_ARM64_PTR_AUTH)) {
		word &= sparse->plain;
		if (sparse_is_small(block, n, word, size))
			return;
	}
	if (sparse_is_below(block, n, word, block->high, size)) {
		if (!sparse_is_below(block, n, word, block->low_end, size))
			return;
		word = sparse_load(block, n, word, size);
		sparse_keep_code(block, n, word, sparse->program, BM_KBARMAN_STACK_WORD_PROGRAM,
				 size);
		return;
	}
	word = sparse_load(block, n, word, size);
	if (word + block->minus_hole < sparse->hole.span)
		return;
	if (sparse_is_in(&sparse->stack, word)) {
		offset = word + sparse->stack.minus_low;
		if (!sparse_is_saved(sparse, block, n, offset, size))
			return;
		sparse_keep(block, n, offset, -sparse->stack.minus_low,
			    BM_KBARMAN_STACK_WORD_STACK, size);
	} else if (sparse_is_high_code(sparse->ranges, block, word)) {
		sparse_keep_code(block, n, word, sparse->ranges->code[1].low,
				 BM_KBARMAN_STACK_WORD_LIBRARIES, size);
	}
}

/* Records are aligned to 4 bytes on 32-bit machines. */
static __always_inline void kbarman_sparse_put_64(u32 *to, u64 value)
{
	memcpy(to, &value, sizeof(value));
}

/*
 * Look at @bytes of words of @size bytes, a multiple of 4 and 64 at most, the first of which is
 * @offset bytes above the stack's word 0; from the last one down. Put a chunk with those that are
 * wanted. Four words in one turn, because the loop itself would cost as much as a word does.
 */
static __always_inline void kbarman_sparse_scan(struct kbarman_sparse *sparse, const void *words,
						unsigned long offset, unsigned long bytes,
						unsigned int size)
{
	struct sparse_block block = {
		.at = words + bytes, .end = words + bytes,
		.places = (unsigned long)(sparse->places + offset / size) -
			  (unsigned long)words / size,
		.next = sparse->next,
		.floor = sparse->floor, .low_end = sparse->low_end, .high = sparse->high,
		.minus_hole = sparse->hole.minus_low,
	};

	/* The compiler would have all of it in registers, of which there are too few. */
	OPTIMIZER_HIDE_VAR(sparse);
	do {
		block.at -= 4 * size;
		block.map <<= 4;
		sparse_look(sparse, &block, 3, size);
		sparse_look(sparse, &block, 2, size);
		sparse_look(sparse, &block, 1, size);
		sparse_look(sparse, &block, 0, size);
	} while (block.at != words);
	sparse->next = block.next - KBARMAN_SPARSE_MAP;
	kbarman_sparse_put_64(sparse->next, block.map);
}

#endif /* KBARMAN_SPARSE_H */
