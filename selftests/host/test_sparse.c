// SPDX-License-Identifier: MIT
/*
 * Which words of a stack are kept: the module's own sparse.h and code_bounds.c against the plain
 * definitions, with words that are near the ends of the ranges more often than not.
 */
#define IS_ENABLED(option)	IS_##option
#ifndef IS_CONFIG_S390			/* test_sparse_s390.c */
#define IS_CONFIG_S390	0
#endif
#ifndef IS_CONFIG_ARM64_PTR_AUTH	/* test_sparse_x86.c */
#define IS_CONFIG_ARM64_PTR_AUTH (!IS_CONFIG_S390)	/* addresses may be signed */
#endif
#include "../compare/kernel.h"
#include "../../kmod/maps/code_bounds.c"
#include "../../kmod/stacks/sparse.h"
#include "../lib/random.h"
#include "../lib/tap.h"

#define ROUNDS	100000
#define WORDS	64
#define STACK_BYTES	65536U
#define PLAIN		((1UL << 48) - 1)
#define SIGNATURE	(0x55UL << 48)

static unsigned long range_end(const struct kbarman_range *range)
{
	return range->low + range->span;
}

static bool is_in(const struct kbarman_range *range, unsigned long word)
{
	return range->span && word >= range->low && word <= range_end(range) - 1;
}

static bool is_code(const struct kbarman_sparse_ranges *ranges, unsigned long word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges->code); i++)
		if (is_in(&ranges->code[i], word) && !is_in(&ranges->stack, word))
			return true;
	return false;
}

/*
 * @at: where the word of @size bytes is. Pointers to any place of the stack are wanted; but of those
 * that point below themselves only s390x has some that unwinding needs.
 */
static bool is_wanted(const struct kbarman_sparse_ranges *ranges, unsigned long word,
		      unsigned long at, unsigned int size)
{
	if (is_in(&ranges->stack, word))
		return word % size == 0 && (IS_CONFIG_S390 || word > at);
	return is_code(ranges, word);
}

/* As the ranges of a program may be; a program may have one range of code. */
static struct kbarman_sparse_ranges some_ranges(bool narrow)
{
	unsigned long top = narrow ? 1UL << 31 : 1UL << 46;
	struct kbarman_sparse_ranges ranges = {
		.code[0] = { random_below(top), random_below(2) ? 0 : random_below(top / 64) },
		.code[1] = { random_below(top), 1 + random_below(top / 64) },
		.stack = { random_below(top) & -64UL, 1 + random_below(STACK_BYTES) },
		.plain = PLAIN,
	};
	unsigned int i;

	for (i = 2; i < ARRAY_SIZE(ranges.code); i++) {
		unsigned long end = range_end(&ranges.code[i - 1]);

		if (!ranges.code[i - 1].span || !random_below(3) || end > top)
			break;
		ranges.code[i] = (struct kbarman_range) {
			end + random_below(top / 64), 1 + random_below(top / 64) };
	}
	kbarman_sparse_ranges_close(&ranges);
	return ranges;
}

static unsigned long some_word(const struct kbarman_sparse_ranges *ranges)
{
	const struct kbarman_range *range = random_below(3) ? &ranges->code[random_below(ARRAY_SIZE(ranges->code))] :
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
		return range->span ? (range->low + random_below(range->span)) |
				     (range->low >> 32 && random_below(2) ? SIGNATURE : 0) : 0;
	}
}

/* The map of the chunk at @kept. */
static u64 next_map(const u32 **kept)
{
	u64 map;

	memcpy(&map, *kept, sizeof(map));
	*kept += KBARMAN_SPARSE_MAP;
	return map;
}

/* The word that is kept at @kept. */
static u64 next_word(const u32 **kept, const struct kbarman_sparse_ranges *ranges,
		     unsigned int size)
{
	const unsigned long bases[] = {
		ranges->stack.low, ranges->code[0].low, ranges->code[1].low };
	u32 word = *(*kept)++;
	u64 wide;

	if (size == sizeof(u32))
		return word;
	if (word >> 30 != BM_KBARMAN_STACK_WORD_LONG)
		return bases[word >> 30] + (word & ((1U << 30) - 1));
	memcpy(&wide, *kept, sizeof(wide));
	*kept += 2;
	return wide;
}

/* One scan of @nr words of @size bytes. False: the result is not the definition's. */
static bool is_right(const struct kbarman_sparse_ranges *ranges, unsigned int nr, unsigned int size)
{
	static u8 places[KBARMAN_PLACES(STACK_BYTES / sizeof(u64))];
	u32 narrow[WORDS], kept[KBARMAN_SPARSE_MAP + KBARMAN_SPARSE_LONG * WORDS];
	u32 *const end = kept + ARRAY_SIZE(kept);
	u64 wide[WORDS], wanted[WORDS], map = 0;
	unsigned long at = ranges->stack.low;
	struct kbarman_sparse sparse;
	unsigned int n, first = WORDS;
	const u32 *next;

	kbarman_sparse_begin(&sparse, ranges, at, ranges->stack.span,
			     places + KBARMAN_PLACES_BELOW, end);
	memset(places, 1, sizeof(places));
	for (n = nr; n--;) {
		u64 word;

		wide[n] = narrow[n] = (u32)some_word(ranges);
		if (size == sizeof(u64))
			wide[n] = some_word(ranges);
		word = !IS_CONFIG_ARM64_PTR_AUTH || wide[n] >> 63 ? wide[n] : wide[n] & PLAIN;
		if (is_wanted(ranges, word, at + n * size, size)) {
			wanted[--first] = word;
			map |= 1ULL << n;
		}
	}
	if (size == sizeof(u64))
		kbarman_sparse_scan(&sparse, wide, 0, nr * size, sizeof(u64));
	else
		kbarman_sparse_scan(&sparse, narrow, 0, nr * size, sizeof(u32));
	next = sparse.next;
	if (next_map(&next) != map)
		return false;
	for (; next < end && first < WORDS; first++)
		if (next_word(&next, ranges, size) != wanted[first])
			return false;
	return next == end && first == WORDS;
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

/* ---- words that point into the stack ---- */

#define CHUNKS		4
#define STACK_WORDS	(CHUNKS * WORDS)
#define STACK		0x7ffc00000000UL	/* where the block begins */
#define CODE		0x400000UL

/* What is on a stack: words, of which the first @below are not there. */
struct words {
	unsigned int below;
	u64 word[STACK_WORDS], kept[STACK_WORDS];	/* kept: 0 if it was not */
};

static const struct kbarman_sparse_ranges some_program = {
	.plain = PLAIN, .code[0] = { CODE, 4096 }, .stack = { STACK, STACK_WORDS * sizeof(u64) },
};

static u64 address_of(unsigned int n)
{
	return STACK + n * sizeof(u64);
}

/* Scan from the last block down, as sparse_stack.c does. */
static void take(struct words *words)
{
	u32 kept[CHUNKS * KBARMAN_SPARSE_MAP + STACK_WORDS];
	const u32 *next;
	u8 places[KBARMAN_PLACES(STACK_WORDS)] = { 0 };
	struct kbarman_sparse_ranges ranges = some_program;
	struct kbarman_sparse_ranges bases = some_program;
	struct kbarman_sparse sparse;
	unsigned int n, first, chunk = CHUNKS;
	u64 map;

	bases.stack.low = address_of(words->below);
	kbarman_sparse_ranges_close(&ranges);
	kbarman_sparse_begin(&sparse, &ranges, bases.stack.low,
			     (STACK_WORDS - words->below) * sizeof(u64),
			     places + KBARMAN_PLACES_BELOW, kept + ARRAY_SIZE(kept));
	memset(words->kept, 0, sizeof(words->kept));
	while (chunk--) {
		first = max(chunk * WORDS, words->below);
		kbarman_sparse_scan(&sparse, &words->word[first],
				    (first - words->below) * sizeof(u64),
				    ((chunk + 1) * WORDS - first) * sizeof(u64), sizeof(u64));
		next = sparse.next;
		map = next_map(&next);
		for (n = first; map; map >>= 1, n++)
			if (map & 1)
				words->kept[n] = next_word(&next, &bases, sizeof(u64));
	}
}

static bool has_code(const struct words *words, unsigned int n)
{
	return n >= words->below && n < STACK_WORDS && words->word[n] - CODE < 4096;
}

/* Whether word @n points to a place with a caller's address beside it, or may be of a signal. */
static bool is_saved(const struct words *words, unsigned int n)
{
	unsigned int to = (words->word[n] - STACK) / sizeof(u64), i;

	for (i = to - 1; i <= to + 3; i++)
		if (has_code(words, i))
			return true;
	return has_code(words, n + 1) && words->word[n] - address_of(n) >= 512;
}

static u64 definition(const struct words *words, unsigned int n)
{
	u64 word = words->word[n];

	if (has_code(words, n))
		return word;
	if (word % sizeof(u64) || word <= address_of(n) || word >= address_of(STACK_WORDS))
		return 0;
	return is_saved(words, n) ? word : 0;
}

static u64 some_stack_word(void)
{
	switch (random_below(8)) {
	case 0:
		return CODE + random_below(4096);
	case 1:
	case 2:
		return address_of(0) + random_below(STACK_WORDS * sizeof(u64));
	case 3:
	case 4:
	case 5:
		return address_of(random_below(STACK_WORDS));
	default:
		return random_below(100);
	}
}

static void only_pointers_to_a_callers_frame_are_kept(void)
{
	unsigned int round, n, wrong = 0;
	struct words words;

	for (round = 0; round < ROUNDS / 10; round++) {
		words.below = 4 * random_below(WORDS / 4);
		for (n = 0; n < STACK_WORDS; n++)
			words.word[n] = random_below(1 + round % 8) ? 0 : some_stack_word();
		take(&words);
		for (n = words.below; n < STACK_WORDS; n++)
			wrong += words.kept[n] != definition(&words, n);
	}
	tap_is(wrong, 0, "only_pointers_to_a_callers_frame_are_kept");
}

/* @at: what points to word 100. Word @code has a caller's address. */
static bool is_kept(unsigned int at, unsigned int code)
{
	struct words words = { .below = 8 };

	words.word[at] = address_of(100);
	words.word[code] = CODE + 1;
	take(&words);
	return words.kept[at] && words.kept[code];
}

static void what_unwinding_needs_is_kept(void)
{
	tap_ok(is_kept(20, 101), "a_frame_pointer_is_kept");
	tap_ok(is_kept(20, 100), "a_stack_pointer_at_the_callers_address_is_kept");
	tap_ok(is_kept(20, 99), "the_cfa_of_a_function_that_aligns_its_stack_is_kept");
	tap_ok(is_kept(20, 103), "the_frame_of_a_function_that_ld_so_binds_is_kept");
	tap_ok(is_kept(20, 21), "the_stack_pointer_that_a_signal_interrupted_is_kept");
	tap_ok(!is_kept(90, 91), "an_address_of_a_variable_is_not_kept_beside_a_callers");
	tap_ok(!is_kept(20, 98) && !is_kept(20, 104), "an_address_of_a_variable_is_not_kept");
	tap_ok(!is_kept(101, 99) && !is_kept(100, 99), "nothing_below_itself_is_a_frame");
}

/* ---- where libraries are ---- */

static struct kbarman_code_bounds bounds;

static bool bounds_are(const struct mm_struct *mm, const struct kbarman_range *wanted)
{
	struct kbarman_range found[KBARMAN_LIBRARY_RANGES];

	return kbarman_code_bounds_find(&bounds, mm, found) &&
	       !memcmp(found, wanted, sizeof(found));
}

static void the_libraries_are_a_few_ranges(void)
{
	const struct mm_struct mm = { .start_code = 0x1000, .end_code = 0x2000 };
	struct kbarman_range found[KBARMAN_LIBRARY_RANGES];

	tap_ok(!kbarman_code_bounds_find(&bounds, &mm, found), "unknown_libraries_are_unknown");
	kbarman_code_bounds_include(&bounds, &mm, 0x1000, 0x2000);
	tap_ok(!kbarman_code_bounds_find(&bounds, &mm, found), "the_program_is_none_of_them");
	kbarman_code_bounds_include(&bounds, &mm, 0x90000, 0x91000);
	kbarman_code_bounds_include(&bounds, &mm, 0x50000, 0x51000);
	kbarman_code_bounds_include(&bounds, &mm, 0x51000, 0x52000);
	kbarman_code_bounds_include(&bounds, &mm, 0x70000, 0x71000);
	kbarman_code_bounds_include(&bounds, &mm, 0x70800, 0x70900);
	tap_ok(bounds_are(&mm, (struct kbarman_range [KBARMAN_LIBRARY_RANGES]) {
		{ 0x50000, 0x2000 }, { 0x70000, 0x1000 }, { 0x90000, 0x1000 } }),
	       "ranges_that_touch_are_one");
	kbarman_code_bounds_include(&bounds, &mm, 0x30000, 0x31000);
	kbarman_code_bounds_include(&bounds, &mm, 0x93000, 0x94000);
	tap_ok(bounds_are(&mm, (struct kbarman_range [KBARMAN_LIBRARY_RANGES]) {
		{ 0x30000, 0x1000 }, { 0x50000, 0x2000 }, { 0x70000, 0x1000 },
		{ 0x90000, 0x4000 } }), "of_too_many_the_nearest_two_become_one");
	kbarman_code_bounds_include(&bounds, &mm, 0x2f000, 0x95000);
	tap_ok(bounds_are(&mm, (struct kbarman_range [KBARMAN_LIBRARY_RANGES]) {
		{ 0x2f000, 0x66000 } }), "one_that_has_all_in_it_is_alone");
	kbarman_code_bounds_forget(&bounds, &mm);
	tap_ok(!kbarman_code_bounds_find(&bounds, &mm, found), "what_was_forgotten_is_unknown");
}

/* None takes the place of another for good: each was looked at once only. */
static void address_spaces_of_one_hash_keep_their_libraries(void)
{
	static struct mm_struct all[64 << KBARMAN_BOUNDS_BITS];
	const struct mm_struct *same[KBARMAN_BOUNDS_PLACES];
	unsigned int i, nr = 0, kept = 0;

	for (i = 0; i < ARRAY_SIZE(all) && nr < ARRAY_SIZE(same); i++)
		if (hash_ptr(&all[i], KBARMAN_BOUNDS_BITS) == hash_ptr(&all[0], KBARMAN_BOUNDS_BITS))
			same[nr++] = &all[i];
	for (i = 0; i < nr; i++)
		kbarman_code_bounds_include(&bounds, same[i], 0x1000 * i, 0x1000 * (i + 1));
	for (i = 0; i < nr; i++) {
		kept += bounds_are(same[i], (struct kbarman_range [KBARMAN_LIBRARY_RANGES]) {
			{ 0x1000 * i, 0x1000 } });
		kbarman_code_bounds_forget(&bounds, same[i]);
	}
	tap_is(kept, ARRAY_SIZE(same), "address_spaces_of_one_hash_keep_their_libraries");
}

/* Which of four words of a stack at @stack are kept: bits. */
static u64 map_of_four(const struct kbarman_sparse_ranges *ranges, unsigned long stack,
		       unsigned long span, const u64 *words)
{
	u32 kept[KBARMAN_SPARSE_MAP + KBARMAN_SPARSE_LONG * 4], *end = kept + ARRAY_SIZE(kept);
	u8 places[KBARMAN_PLACES(STACK_WORDS)] = { 0 };
	struct kbarman_sparse sparse;
	const u32 *next;

	/* The compiler would warn of what is above the end, where nobody looks. */
	OPTIMIZER_HIDE_VAR(end);
	kbarman_sparse_begin(&sparse, ranges, stack, span, places + KBARMAN_PLACES_BELOW, end);
	kbarman_sparse_scan(&sparse, words, 0, 4 * sizeof(u64), sizeof(u64));
	next = sparse.next;
	return next_map(&next);
}

/* As of a thread below its libraries, if these are so far apart that one range has the stack in it. */
static void what_was_cut_off_a_stack_is_no_code(void)
{
	struct kbarman_sparse_ranges ranges = {
		.code[0] = { CODE, 4096 }, .code[1] = { STACK - 4096, 1 << 20 },
		.stack = { STACK, 2048 }, .plain = PLAIN,
	};
	u64 words[4] = { STACK + 1024, STACK + 2040, STACK - 8, STACK + 2048 };

	kbarman_sparse_ranges_close(&ranges);
	tap_is(map_of_four(&ranges, STACK, 1024, words), 1 << 2 | 1 << 3, "what_was_cut_off_a_stack_is_no_code");
}

static void nothing_is_kept_of_no_range(void)
{
	struct kbarman_sparse_ranges none = { 0 };
	u64 words[4] = { 0, 1, ~0ULL, 1ULL << 46 };

	kbarman_sparse_ranges_close(&none);
	tap_is(map_of_four(&none, 0, 0, words), 0, "nothing_is_kept_of_no_range");
}

int main(void)
{
	random_start();
	all_sizes(sizeof(u64), IS_CONFIG_S390 ?
			  "words_into_code_and_to_any_words_are_kept_and_no_others" :
			  "words_into_code_and_to_words_above_are_kept_and_no_others");
	all_sizes(sizeof(u32), "the_same_for_a_32_bit_program");
	nothing_is_kept_of_no_range();
	what_was_cut_off_a_stack_is_no_code();
	if (!IS_CONFIG_S390) {
		only_pointers_to_a_callers_frame_are_kept();
		what_unwinding_needs_is_kept();
	}
	the_libraries_are_a_few_ranges();
	address_spaces_of_one_hash_keep_their_libraries();
	return tap_done();
}
