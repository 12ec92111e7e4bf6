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
 * that a function saved. The machines of which sparse->records is true have the caller's address
 * beside the place to which such a word points:
 *
 *	frame pointer	one word above (a frame record), or up to three if others are pushed
 *			first, as when ld.so binds a function
 *	stack pointer	there, as OpenSSL saves it
 *	CFA		one word below, as of functions that align their stack
 *
 * The stack pointer of an interrupted frame points to anything. A signal's frame has it one word
 * below the program counter. All of these words point above themselves.
 */
#ifndef KBARMAN_SPARSE_H
#define KBARMAN_SPARSE_H

#include "sparse_env.h"

/* The addresses [low, low + span). */
struct kbarman_range {
	unsigned long low, span;
};

#define KBARMAN_LIBRARY_RANGES	4
#define KBARMAN_SIGNAL_BYTES	512	/* a signal's frame has more behind its stack pointer */

/*
 * Most words are in none of the ranges: they are small numbers, below `all`, or they point into the
 * heap, which is between the program and `high`.
 */
struct kbarman_sparse_ranges {
	struct kbarman_range code[1 + KBARMAN_LIBRARY_RANGES];	/* the program; its libraries */
	struct kbarman_range stack;
	struct kbarman_range high;	/* has the libraries and the stack in it */
	struct kbarman_range all;	/* has the program in it as well */
};

/* What is kept. Records are aligned to 4 bytes on 32-bit machines. */
typedef u64 kbarman_kept __attribute__((aligned(4)));

/* Where kept words go. */
struct kbarman_sparse {
	kbarman_kept *next, *end;
	u64 code;	/* bit n: word n of the last scan points into code */
	bool records;	/* frames have records: see above */
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
	unsigned int i;

	ranges->high = ranges->stack;
	for (i = 1; i < ARRAY_SIZE(ranges->code); i++)
		kbarman_range_include(&ranges->high, &ranges->code[i]);
	ranges->all = ranges->high;
	kbarman_range_include(&ranges->all, &ranges->code[0]);
}

static inline bool kbarman_sparse_is_code(const struct kbarman_sparse_ranges *ranges,
					  unsigned long word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges->code); i++)
		if (kbarman_range_has(&ranges->code[i], word))
			return true;
	return false;
}

static __always_inline unsigned long sparse_word(const void *at, unsigned int size)
{
	return size == sizeof(u32) ? *(const u32 *)at : *(const u64 *)at;
}

/* What a scan is at: the words at @words are those of the user's stack from @address on. */
struct sparse_block {
	const void *words;
	unsigned long address;
	u64 kept;
};

/* Keep the word at @at if it is wanted. */
static __always_inline void sparse_take(struct kbarman_sparse *sparse, struct sparse_block *block,
					const struct kbarman_sparse_ranges *ranges, const void *at,
					unsigned int size)
{
	unsigned long word = sparse_word(at, size), offset = at - block->words;
	u64 bit = 1ULL << offset / size;

	if (kbarman_range_has(&ranges->stack, word)) {
		if (sparse->records && (word % size || word <= block->address + offset))
			return;
	} else if (kbarman_sparse_is_code(ranges, word)) {
		sparse->code |= bit;
	} else {
		return;
	}
	block->kept |= bit;
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
 * Look at @nr words of @size bytes, a multiple of 4 and 64 at most, which are from @address on in
 * the user's stack, and keep the wanted ones, for which there is room. Bit n of the result: word n
 * is kept. Four words in one turn, because the loop itself would cost as much as a word does.
 */
static __always_inline u64 kbarman_sparse_scan(struct kbarman_sparse *sparse,
					       const struct kbarman_sparse_ranges *ranges,
					       const void *words, unsigned long address,
					       unsigned int nr, unsigned int size)
{
	const struct sparse_tests tests = {
		.all = sparse_test_of(&ranges->all),
		.program = sparse_test_of(&ranges->code[0]),
		.high = sparse_test_of(&ranges->high),
	};
	struct sparse_block block = { words, address, 0 };
	const void *at, *end = words + nr * size;

	sparse->code = 0;
	for (at = words; at != end; at += 4 * size) {
		if (sparse_may_want(&tests, sparse_word(at, size)))
			sparse_take(sparse, &block, ranges, at, size);
		if (sparse_may_want(&tests, sparse_word(at + size, size)))
			sparse_take(sparse, &block, ranges, at + size, size);
		if (sparse_may_want(&tests, sparse_word(at + 2 * size, size)))
			sparse_take(sparse, &block, ranges, at + 2 * size, size);
		if (sparse_may_want(&tests, sparse_word(at + 3 * size, size)))
			sparse_take(sparse, &block, ranges, at + 3 * size, size);
	}
	return block.kept;
}

/*
 * Chunks of 64 words of 8 bytes that were scanned: for each a bit map and the words that are kept,
 * from `first` to `end`; and in `code` which words point into code, with a 0 behind the last chunk.
 */
struct kbarman_sparse_chunks {
	kbarman_kept *first, *end;
	const u64 *code;
	unsigned long low, high;	/* addresses: of the first chunk's block, of the end */
	unsigned int below;		/* words of that block below the stack: its map has none */
};

/* Whether a word beside the place to which @word points is one that points into code. */
static __always_inline bool sparse_is_record(const struct kbarman_sparse_chunks *chunks,
					     unsigned long word)
{
	/* It points above a word of the stack, so another one is below the place. */
	unsigned long below = (word - chunks->low) / sizeof(u64) - 1;
	const u64 *code = &chunks->code[below / 64];
	unsigned int bit = below % 64;

	if (word >= chunks->high)
		return false;
	return (code[0] >> bit | code[1] << 1 << (63 - bit)) & 31;
}

/* Whether the word at @address, in front of one that points into code, may be of a signal. */
static __always_inline bool sparse_is_interrupted(unsigned long address, unsigned long word)
{
	return word - address >= KBARMAN_SIGNAL_BYTES;
}

/*
 * Drop the words that point into the stack, but not beside a caller's address. Returns where the
 * chunks end now. They were scanned with sparse->records.
 */
static inline kbarman_kept *kbarman_sparse_drop(const struct kbarman_sparse_chunks *chunks)
{
	kbarman_kept *from = chunks->first, *to = from;
	const u64 *code = chunks->code;
	unsigned int below = chunks->below;
	unsigned long address = chunks->low + below * sizeof(u64);

	for (; from < chunks->end; code++, below = 0) {
		u64 is_code = code[0] >> below, front = (code[0] >> 1 | code[1] << 63) >> below;
		u64 left = *from++, kept = left;
		kbarman_kept *map = to++;

		for (; left; left &= left - 1, from++) {
			u64 bit = left & -left;

			if (bit & is_code || sparse_is_record(chunks, *from) ||
			    (bit & front &&
			     sparse_is_interrupted(address + __ffs64(bit) * sizeof(u64), *from)))
				*to++ = *from;
			else
				kept ^= bit;
		}
		*map = kept;
		address += (64 - below) * sizeof(u64);
	}
	return to;
}

#endif /* KBARMAN_SPARSE_H */
