/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which words of a user's stack are kept for a sparse stack: those that point into code, and those
 * that point into the stack itself. A reader that unwinds needs no others; it reads them as 0. What
 * points into code is found by two ranges, one for the program and one for its libraries: a word
 * costs a few comparisons and no look-up. Pure code.
 */
#ifndef KBARMAN_SPARSE_H
#define KBARMAN_SPARSE_H

#include "sparse_env.h"

/* The addresses [low, low + span). */
struct kbarman_range {
	unsigned long low, span;
};

/*
 * Most words are in none of the ranges: they are small numbers, below `all`, or they point into the
 * heap, which is between the program and `high`.
 */
struct kbarman_sparse_ranges {
	struct kbarman_range code[2];	/* the program; its libraries */
	struct kbarman_range stack;
	struct kbarman_range high;	/* has the libraries and the stack in it */
	struct kbarman_range all;	/* has the program in it as well */
};

/* What is kept. Records are aligned to 4 bytes on 32-bit machines. */
typedef u64 kbarman_kept __attribute__((aligned(4)));

/* Where kept words go. */
struct kbarman_sparse {
	kbarman_kept *next, *end;
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

/* Set `high` and `all`. */
static inline void kbarman_sparse_ranges_close(struct kbarman_sparse_ranges *ranges)
{
	ranges->high = ranges->stack;
	kbarman_range_include(&ranges->high, &ranges->code[1]);
	ranges->all = ranges->high;
	kbarman_range_include(&ranges->all, &ranges->code[0]);
}

static __always_inline bool kbarman_sparse_wants(const struct kbarman_sparse_ranges *ranges,
						 unsigned long word)
{
	return kbarman_range_has(&ranges->stack, word) ||
	       kbarman_range_has(&ranges->code[1], word) ||
	       kbarman_range_has(&ranges->code[0], word);
}

static __always_inline unsigned long sparse_word(const void *at, unsigned int size)
{
	return size == sizeof(u32) ? *(const u32 *)at : *(const u64 *)at;
}

/* Keep the word at @at, which is @word in its map, if it is wanted. */
static __always_inline void sparse_take(struct kbarman_sparse *sparse, u64 *map,
					const struct kbarman_sparse_ranges *ranges, const void *at,
					const void *words, unsigned int size)
{
	unsigned long word = sparse_word(at, size);

	if (!kbarman_sparse_wants(ranges, word))
		return;
	*map |= 1ULL << (at - words) / size;
	*sparse->next++ = word;
}

/* A range to compare with: to add takes one instruction less than to subtract on x86. */
struct sparse_test {
	unsigned long minus_low, span;
};

static __always_inline struct sparse_test sparse_test_of(const struct kbarman_range *range)
{
	struct sparse_test test = { -range->low, range->span };

	/* The compiler would subtract. */
	OPTIMIZER_HIDE_VAR(test.minus_low);
	return test;
}

static __always_inline bool sparse_is_in(const struct sparse_test *test, unsigned long word)
{
	return unlikely(word + test->minus_low < test->span);
}

struct sparse_tests {
	struct sparse_test all, program, high;
};

/* False for most words that are not wanted. */
static __always_inline bool sparse_may_want(const struct sparse_tests *tests, unsigned long word)
{
	return sparse_is_in(&tests->all, word) &&
	       (sparse_is_in(&tests->program, word) || sparse_is_in(&tests->high, word));
}

/*
 * Look at @nr words of @size bytes, a multiple of 4 and 64 at most, and keep the wanted ones, for
 * which there is room. Bit n of the result: word n is kept. Four words in one turn, because the
 * loop itself would cost as much as a word does.
 */
static __always_inline u64 kbarman_sparse_scan(struct kbarman_sparse *sparse,
					       const struct kbarman_sparse_ranges *ranges,
					       const void *words, unsigned int nr,
					       unsigned int size)
{
	const struct sparse_tests tests = {
		.all = sparse_test_of(&ranges->all),
		.program = sparse_test_of(&ranges->code[0]),
		.high = sparse_test_of(&ranges->high),
	};
	const void *at, *end = words + nr * size;
	u64 kept = 0;

	for (at = words; at != end; at += 4 * size) {
		if (sparse_may_want(&tests, sparse_word(at, size)))
			sparse_take(sparse, &kept, ranges, at, words, size);
		if (sparse_may_want(&tests, sparse_word(at + size, size)))
			sparse_take(sparse, &kept, ranges, at + size, words, size);
		if (sparse_may_want(&tests, sparse_word(at + 2 * size, size)))
			sparse_take(sparse, &kept, ranges, at + 2 * size, words, size);
		if (sparse_may_want(&tests, sparse_word(at + 3 * size, size)))
			sparse_take(sparse, &kept, ranges, at + 3 * size, words, size);
	}
	return kept;
}

#endif /* KBARMAN_SPARSE_H */
