// SPDX-License-Identifier: MIT
/*
 * Which words of a stack are kept: the module's own sparse.h against the plain definition, with
 * words that are near the ends of the ranges more often than not.
 */
#define KBARMAN_SPARSE_ENV_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define OPTIMIZER_HIDE_VAR(var)	__asm__("" : "=r" (var) : "0" (var))

#include "../../kmod/sparse.h"
#include "../lib/random.h"
#include "../lib/tap.h"

#define ROUNDS	100000
#define WORDS	64

static unsigned long range_end(const struct kbarman_range *range)
{
	return range->low + range->span;
}

static bool is_in(const struct kbarman_range *range, unsigned long word)
{
	return range->span && word >= range->low && word <= range_end(range) - 1;
}

static bool is_wanted(const struct kbarman_sparse_ranges *ranges, unsigned long word)
{
	return is_in(&ranges->stack, word) || is_in(&ranges->code[0], word) ||
	       is_in(&ranges->code[1], word);
}

/* As the ranges of a program may be; a program may have one range of code. */
static struct kbarman_sparse_ranges some_ranges(bool narrow)
{
	unsigned long top = narrow ? 1UL << 31 : 1UL << 46;
	struct kbarman_sparse_ranges ranges = {
		.code[0] = { random_below(top), random_below(2) ? 0 : random_below(top / 64) },
		.code[1] = { random_below(top), 1 + random_below(top / 64) },
		.stack = { random_below(top), 1 + random_below(65536) },
	};

	kbarman_sparse_ranges_close(&ranges);
	return ranges;
}

static unsigned long some_word(const struct kbarman_sparse_ranges *ranges)
{
	const struct kbarman_range *range = random_below(3) ? &ranges->code[random_below(2)] :
							      &ranges->stack;

	switch (random_below(5)) {
	case 0:
		return random_below(1000);
	case 1:
		return random_u64();
	case 2:
		return range->low - 2 + random_below(4);
	case 3:
		return range_end(range) - 2 + random_below(4);
	default:
		return range->span ? range->low + random_below(range->span) : 0;
	}
}

/* One scan of @nr words of @size bytes. False: the result is not the definition's. */
static bool is_right(const struct kbarman_sparse_ranges *ranges, unsigned int nr, unsigned int size)
{
	u64 kept[2 * WORDS], wide[WORDS], wanted[WORDS], map = 0;
	struct kbarman_sparse sparse = { .next = kept, .end = kept + WORDS };
	unsigned int n, count = 0;
	u32 narrow[WORDS];

	memset(kept, 0xa5, sizeof(kept));
	for (n = 0; n < nr; n++) {
		wide[n] = narrow[n] = (u32)some_word(ranges);
		if (size == sizeof(u64))
			wide[n] = some_word(ranges);
		if (is_wanted(ranges, wide[n])) {
			wanted[count++] = wide[n];
			map |= 1ULL << n;
		}
	}
	if (size == sizeof(u64) ?
		    kbarman_sparse_scan(&sparse, ranges, wide, nr, sizeof(u64)) != map :
		    kbarman_sparse_scan(&sparse, ranges, narrow, nr, sizeof(u32)) != map)
		return false;
	return sparse.next == kept + count && !memcmp(kept, wanted, count * sizeof(u64)) &&
	       (count == WORDS || kept[count] == 0xa5a5a5a5a5a5a5a5ULL);
}

static void all_sizes(unsigned int size, const char *name)
{
	unsigned int round, wrong = 0;

	for (round = 0; round < ROUNDS; round++) {
		struct kbarman_sparse_ranges ranges = some_ranges(size == sizeof(u32));

		wrong += !is_right(&ranges, 4 * (1 + random_below(WORDS / 4)), size);
	}
	tap_is(wrong, 0, name);
}

static void nothing_is_kept_of_no_range(void)
{
	struct kbarman_sparse_ranges none = { 0 };
	u64 words[4] = { 0, 1, ~0ULL, 1ULL << 46 }, kept[WORDS];
	struct kbarman_sparse sparse = { .next = kept, .end = kept + WORDS };

	kbarman_sparse_ranges_close(&none);
	tap_is(kbarman_sparse_scan(&sparse, &none, words, 4, sizeof(u64)), 0,
	       "nothing_is_kept_of_no_range");
}

int main(void)
{
	random_start();
	all_sizes(sizeof(u64), "words_into_code_and_stack_are_kept_and_no_others");
	all_sizes(sizeof(u32), "the_same_for_a_32_bit_program");
	nothing_is_kept_of_no_range();
	return tap_done();
}
