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
	/* the program; its libraries in the order of addresses, then ranges of nothing */
	struct kbarman_range code[1 + KBARMAN_LIBRARY_RANGES];
	struct kbarman_range stack;
	struct kbarman_range high;	/* has the libraries and the stack in it */
	unsigned long floor;		/* all of these begin here or above */
	unsigned long low_end;		/* what is below `high` ends here */
	unsigned long half;		/* code[3] and code[4] begin here or above */
	unsigned long plain;		/* bits of an address without authentication code */
};

/* A byte of kbarman_sparse.places for each word, and for some words below and above. */
#define KBARMAN_PLACES_BELOW	3
#define KBARMAN_PLACES(words)	(KBARMAN_PLACES_BELOW + (words) + 1)

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
	ranges->half = ranges->code[3].span ? ranges->code[3].low : ~0UL;
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

/*
 * A scan, block by block. Byte n of `places` is 1 if a pointer to word n of the stack is kept: all
 * of them, or as the scan finds what is beside that word. Words of 4 bytes have no places: all
 * pointers to words above are kept. s390x keeps those to words below as well. Addresses of the
 * user's stack are those of the words read from there.
 */
struct kbarman_sparse {
	const struct kbarman_sparse_ranges *ranges;
	unsigned long stack, span;	/* pointers to these bytes may be kept */
	u8 *places;
	u32 *next;			/* what is kept goes below it */
	u64 map;			/* of the last block */
	unsigned long code;		/* the last word that points into code: bytes from word 0 */
	const void *low;		/* where word 0 is, or would be if it were read */
};

/* What most words are compared with, in registers: all else stays in memory. */
struct sparse_tests {
	struct sparse_test stack;
	unsigned long floor, low_end, high, plain;
	const u8 *places;
};

/* Half of all 64-bit numbers are negative. Only s390x has such addresses in user code. */
static __always_inline bool sparse_is_small(const struct sparse_tests *tests, unsigned long word,
					    unsigned int size)
{
	return size == sizeof(u64) && !IS_ENABLED(CONFIG_S390) ? (s64)word < (s64)tests->floor :
								 word < tests->floor;
}

/* Where word @n from @at on is. The compiler would find out before it is asked. */
static __always_inline const void *sparse_place(const void *at, unsigned int n, unsigned int size)
{
	OPTIMIZER_HIDE_VAR(at);
	return at + n * size;
}

/*
 * Whether word @n from @at on, which points to @offset, may lead to the frame of a caller. A bit of
 * @map above bit @n: the word there is kept.
 */
static __always_inline bool sparse_is_saved(const struct kbarman_sparse *sparse,
					    const struct sparse_tests *tests, const void *at,
					    unsigned int n, unsigned long offset, u64 map,
					    unsigned int size)
{
	unsigned long own;

	if (offset >= sparse->span)
		return false;
	/* The task chose it: a CPU must not look elsewhere before it knows that. */
	offset = array_index_nospec(offset, sparse->span);
	if (size == sizeof(u32) || tests->places[offset / size])
		return !(offset % size) && (IS_ENABLED(CONFIG_S390) ||
					    sparse->low + offset > sparse_place(at, n, size));
	if (likely(!(map & 2ULL << n)))
		return false;
	own = sparse_place(at, n, size) - sparse->low;
	return own + size == sparse->code && !(offset % size) &&
	       (long)(offset - own) >= KBARMAN_SIGNAL_BYTES;
}

/* Whether @word, which is not below `high`, points into code. */
static __always_inline bool sparse_is_high_code(const struct kbarman_sparse *sparse,
						const struct sparse_tests *tests,
						unsigned long word)
{
	const struct kbarman_range *code = sparse->ranges->code;

	if (word >= sparse->ranges->half) {
		if (kbarman_range_has(&code[4], word) || kbarman_range_has(&code[3], word))
			return true;
	} else if (kbarman_range_has(&code[2], word) || kbarman_range_has(&code[1], word)) {
		return true;
	}
	return unlikely(word < tests->low_end) && kbarman_range_has(&code[0], word);
}

/* Keep @word, which is @offset bytes behind what @base says. */
static __always_inline void sparse_keep(struct kbarman_sparse *sparse, unsigned long word,
					unsigned long offset, enum bm_kbarman_stack_word base,
					unsigned int size)
{
	const u64 wide = word;

	if (size == sizeof(u32)) {
		*--sparse->next = word;
	} else if (base == BM_KBARMAN_STACK_WORD_STACK ||
		   likely(offset < 1UL << BM_KBARMAN_STACK_WORD_SHIFT)) {
		*--sparse->next = offset | (u32)base << BM_KBARMAN_STACK_WORD_SHIFT;
	} else {
		sparse->next -= KBARMAN_SPARSE_LONG;
		sparse->next[0] = (u32)BM_KBARMAN_STACK_WORD_LONG << BM_KBARMAN_STACK_WORD_SHIFT;
		memcpy(&sparse->next[1], &wide, sizeof(wide));
	}
}

/* Keep @word, which is at @at and points into code. */
static __always_inline void sparse_keep_code(struct kbarman_sparse *sparse, const void *at,
					     unsigned long word, const struct kbarman_range *code,
					     enum bm_kbarman_stack_word base, unsigned int size)
{
	unsigned long own = at - sparse->low;
	u8 *place = sparse->places + own / size;

	if (size == sizeof(u64)) {
		memset(place - KBARMAN_PLACES_BELOW, 1, KBARMAN_PLACES_BELOW + 1);
		place[1] = 1;
		sparse->code = own;
	}
	sparse_keep(sparse, word, word - code->low, base, size);
}

/* Look at word @n from @at on, and keep it if it is wanted. Returns bit n if it is. */
static __always_inline u64 sparse_look(struct kbarman_sparse *sparse,
				       const struct sparse_tests *tests, const void *at,
				       unsigned int n, u64 map, unsigned int size)
{
	unsigned long word = size == sizeof(u32) ? ((const u32 *)at)[n] : ((const u64 *)at)[n];
	unsigned long offset;

	if (likely(sparse_is_small(tests, word, size)))
		return 0;
	if (IS_ENABLED(CONFIG_ARM64_PTR_AUTH)) {
		word &= tests->plain;
		if (sparse_is_small(tests, word, size))
			return 0;
	}
	if (word < tests->high) {
		if (word >= tests->low_end)
			return 0;
		sparse_keep_code(sparse, sparse_place(at, n, size), word, &sparse->ranges->code[0],
				 BM_KBARMAN_STACK_WORD_PROGRAM, size);
	} else if (sparse_is_in(&tests->stack, word)) {
		offset = word + tests->stack.minus_low;
		if (!sparse_is_saved(sparse, tests, at, n, offset, map, size))
			return 0;
		sparse_keep(sparse, word, offset, BM_KBARMAN_STACK_WORD_STACK, size);
	} else {
		if (!sparse_is_high_code(sparse, tests, word))
			return 0;
		sparse_keep_code(sparse, sparse_place(at, n, size), word, &sparse->ranges->code[1],
				 BM_KBARMAN_STACK_WORD_LIBRARIES, size);
	}
	return 1U << n;
}

/*
 * Look at @nr words of @size bytes, a multiple of 4 and 64 at most, the first of which is @offset
 * bytes above the stack's word 0; from the last one down. Bit n of the result: word n is kept. Four
 * words in one turn, because the loop itself would cost as much as a word does.
 */
static __always_inline u64 kbarman_sparse_scan(struct kbarman_sparse *sparse, const void *words,
					       unsigned long offset, unsigned int nr,
					       unsigned int size)
{
	/* With what was cut off it: a range of code may have the stack in it. */
	const struct kbarman_range *stack = &sparse->ranges->stack;
	const struct sparse_tests tests = {
		.stack = sparse_test_of(sparse->stack, stack->low + stack->span - sparse->stack),
		.floor = sparse->ranges->floor,
		.low_end = sparse->ranges->low_end,
		.high = sparse->ranges->high.low,
		.plain = sparse->ranges->plain,
		.places = sparse->places,
	};
	u64 map = sparse->map & 1;
	const void *at;

	/* The compiler would have all of it in registers, of which there are too few. */
	OPTIMIZER_HIDE_VAR(sparse);
	sparse->low = words - offset;
	for (at = words + nr * size; at != words;) {
		at -= 4 * size;
		map <<= 4;
		map |= sparse_look(sparse, &tests, at, 3, map, size);
		map |= sparse_look(sparse, &tests, at, 2, map, size);
		map |= sparse_look(sparse, &tests, at, 1, map, size);
		map |= sparse_look(sparse, &tests, at, 0, map, size);
	}
	if (nr < 64)
		map &= (1ULL << nr) - 1;
	sparse->map = map;
	return map;
}

#endif /* KBARMAN_SPARSE_H */
