// SPDX-License-Identifier: MIT
/* The symbol table: which name wins, where symbols end, and that searches are right. */
#include <stdlib.h>

#include "../lib/tap.h"
#include "sym/tables/symtab_fill.h"

#define UNLIMITED	KB_SYMTAB_NO_LIMIT

static void add(struct kb_symtab *symtab, uint64_t start, uint64_t size, const char *name,
		enum kb_symtab_rank rank)
{
	if (kb_symtab_add(symtab, start, size, UNLIMITED, name, strlen(name), rank, 0))
		abort();
}

static const char *name_at(const struct kb_symtab *symtab, uint64_t address)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(symtab, address, &hit);
	if (address < hit.low || address > hit.high)
		return "(hit does not hold for its own address)";
	return hit.symbol ? kb_symtab_name(symtab, hit.symbol) : NULL;
}

static void test_empty(void)
{
	struct kb_symtab symtab = { 0 };

	tap_is(kb_symtab_sort(&symtab), 0, "an_empty_table_sorts");
	tap_is_string(name_at(&symtab, 0), NULL, "an_empty_table_knows_nothing");
	tap_is_string(name_at(&symtab, UINT64_MAX), NULL, "an_empty_table_knows_nothing_at_the_top");
	kb_symtab_release(&symtab);
}

static void test_aliases(void)
{
	struct kb_symtab symtab = { 0 };

	add(&symtab, 100, 10, "local_name", KB_RANK_LOCAL);
	add(&symtab, 100, 10, "weak_name", KB_RANK_WEAK);
	add(&symtab, 100, 10, "global", KB_RANK_GLOBAL);
	add(&symtab, 200, 10, "__write", KB_RANK_GLOBAL);
	add(&symtab, 200, 10, "write", KB_RANK_GLOBAL);
	add(&symtab, 200, 10, "_write_long_name", KB_RANK_GLOBAL);
	add(&symtab, 300, 0, "label", KB_RANK_GLOBAL);
	add(&symtab, 300, 8, "sized", KB_RANK_LOCAL);
	add(&symtab, 400, 4, "short", KB_RANK_GLOBAL);
	add(&symtab, 400, 9, "longer", KB_RANK_LOCAL);
	kb_symtab_sort(&symtab);
	tap_is_string(name_at(&symtab, 105), "global", "global_is_preferred");
	tap_is_string(name_at(&symtab, 205), "write", "fewest_underscores_are_preferred");
	tap_is_string(name_at(&symtab, 305), "sized", "a_size_is_preferred_to_a_label");
	tap_is_string(name_at(&symtab, 308), NULL, "a_label_does_not_stretch_its_sized_alias");
	tap_is_string(name_at(&symtab, 408), "short", "the_largest_alias_gives_the_size");
	kb_symtab_release(&symtab);
}

static void test_extents(void)
{
	struct kb_symtab symtab = { 0 };

	add(&symtab, 1000, 100, "outer", KB_RANK_GLOBAL);
	add(&symtab, 1020, 10, "inner", KB_RANK_GLOBAL);
	add(&symtab, 1050, 0, "label_in_outer", KB_RANK_GLOBAL);
	add(&symtab, 1200, 0, "open", KB_RANK_GLOBAL);
	add(&symtab, 1300, 0, "", KB_RANK_BOUNDARY);
	add(&symtab, 1400, 0, "last", KB_RANK_GLOBAL);
	add(&symtab, UINT64_MAX - 1, 100, "top", KB_RANK_GLOBAL);
	kb_symtab_sort(&symtab);
	tap_is_string(name_at(&symtab, 999), NULL, "nothing_before_the_first");
	tap_is_string(name_at(&symtab, 1019), "outer", "outer_goes_up_to_inner");
	tap_is_string(name_at(&symtab, 1020), "inner", "inner_begins");
	tap_is_string(name_at(&symtab, 1029), "inner", "inner_has_its_last_byte");
	tap_is_string(name_at(&symtab, 1030), "outer", "outer_goes_on_behind_inner");
	tap_is_string(name_at(&symtab, 1060), "outer", "a_label_does_not_split_a_function");
	tap_is_string(name_at(&symtab, 1099), "outer", "outer_has_its_last_byte");
	tap_is_string(name_at(&symtab, 1100), NULL, "a_gap_has_no_name");
	tap_is_string(name_at(&symtab, 1299), "open", "no_size_reaches_to_the_next");
	tap_is_string(name_at(&symtab, 1300), NULL, "a_boundary_has_no_name");
	tap_is_string(name_at(&symtab, 1400), "last", "the_last_one_is_found");
	tap_is_string(name_at(&symtab, UINT64_MAX - 1), "top", "the_top_of_memory_is_found");
	kb_symtab_release(&symtab);

	if (kb_symtab_add(&symtab, 0x1010, 0, UNLIMITED, "a", 1, KB_RANK_LOCAL, 1) ||
	    kb_symtab_add(&symtab, 0x9000, 0, UNLIMITED, "b", 1, KB_RANK_LOCAL, 2) ||
	    kb_symtab_add(&symtab, 0xa010, 0, 0xa020, "c", 1, KB_RANK_LOCAL, 2))
		abort();
	kb_symtab_sort(&symtab);
	tap_is_string(name_at(&symtab, 0x1fff), "a", "the_last_of_a_group_fills_its_page");
	tap_is_string(name_at(&symtab, 0x2000), NULL, "the_last_of_a_group_ends_with_its_page");
	tap_is_string(name_at(&symtab, 0xa00f), "b", "within_a_group_pages_do_not_count");
	tap_is_string(name_at(&symtab, 0xa01f), "c", "a_limit_is_reached");
	tap_is_string(name_at(&symtab, 0xa020), NULL, "a_limit_is_not_passed");
	kb_symtab_release(&symtab);
}

/* Sized symbols in a small space, so that they overlap in all ways there are. */
static void test_against_naive_search(void)
{
	enum { ROUNDS = 300, SPACE = 400, MOST = 60 };
	unsigned int round, wrong = 0;

	srand(1);
	for (round = 0; round < ROUNDS; round++) {
		uint64_t starts[MOST], sizes[MOST], shift = rand() % 50;
		struct kb_symtab symtab = { 0 };
		unsigned int i, nr = 1 + rand() % MOST;
		uint64_t address;

		for (i = 0; i < nr; i++) {
			char name[16];

			starts[i] = (uint64_t)(rand() % SPACE) << shift;
			sizes[i] = (uint64_t)(1 + rand() % (round % 100 + 1)) << shift;
			snprintf(name, sizeof(name), "%llx", (unsigned long long)starts[i]);
			add(&symtab, starts[i], sizes[i], name, KB_RANK_LOCAL);
		}
		kb_symtab_sort(&symtab);
		for (address = 0; address < SPACE + 110; address++) {
			const char *name = name_at(&symtab, address << shift);
			int best = -1;
			char want[16] = "";

			for (i = 0; i < nr; i++)
				if (starts[i] <= address << shift &&
				    (address << shift) - starts[i] < sizes[i] &&
				    (best < 0 || starts[i] > starts[best]))
					best = i;
			if (best >= 0)
				snprintf(want, sizeof(want), "%llx",
					 (unsigned long long)starts[best]);
			wrong += strcmp(name ? name : "", want) != 0;
		}
		kb_symtab_release(&symtab);
	}
	tap_is(wrong, 0, "overlapping_symbols_agree_with_a_naive_search");
}

static void test_hostile(void)
{
	struct kb_symtab symtab = { 0 };
	unsigned int i;

	for (i = 0; i < 20000; i++)
		add(&symtab, i, UINT64_MAX, "nested", KB_RANK_LOCAL);
	add(&symtab, UINT64_MAX, 5, "beyond", KB_RANK_LOCAL);
	tap_is(kb_symtab_sort(&symtab), 0, "deep_nesting_is_sorted");
	tap_is_string(name_at(&symtab, 1ULL << 40), "nested", "sizes_beyond_memory_are_cut");
	kb_symtab_release(&symtab);
}

/* ---- a table that counts where another one has nothing ---- */

static void test_fill(void)
{
	const struct kb_text file = { "lib.so.5 (deleted)", 8 };
	struct kb_symtab symtab = { 0 }, more = { 0 }, none = { 0 };

	add(&symtab, 0x1000, 0x10, "first", KB_RANK_GLOBAL);
	add(&symtab, 0x1040, 0x10, "inside", KB_RANK_GLOBAL);
	add(&more, 0x1000, 0x10, "", KB_RANK_NAMELESS);
	add(&more, 0x1020, 0x40, "", KB_RANK_NAMELESS);
	add(&more, 0x1030, 0x8, "_init", KB_RANK_LOCAL);
	add(&more, 0x2000, 0x10, "", KB_RANK_NAMELESS);
	add(&more, 0x2000, 0x8, "_start", KB_RANK_LOCAL);
	kb_symtab_sort(&symtab);
	kb_symtab_sort(&more);
	tap_is(kb_symtab_fill(&symtab, &more, file), 0, "a_table_fills_another_one");
	tap_is_string(name_at(&symtab, 0x1005), "first", "a_symbol_comes_first");
	tap_is_string(name_at(&symtab, 0x1018), NULL, "what_neither_has_stays_unknown");
	tap_is_string(name_at(&symtab, 0x1025), "lib.so.5+0x1020", "a_function_gets_a_name");
	tap_is_string(name_at(&symtab, 0x1032), "_init", "a_name_stays");
	tap_is_string(name_at(&symtab, 0x1045), "inside", "a_symbol_inside_comes_first");
	tap_is_string(name_at(&symtab, 0x1055), "lib.so.5+0x1020", "a_function_goes_on_behind_it");
	tap_is_string(name_at(&symtab, 0x200f), "_start", "a_name_is_preferred_to_none");
	tap_is_string(name_at(&symtab, 0x2010), NULL, "nothing_is_behind_the_last");
	tap_is(symtab.nr_symbols, 5, "functions_that_do_not_count_are_not_added");
	tap_is(kb_symtab_fill(&none, &more, file), 0, "an_empty_table_is_filled");
	tap_is_string(name_at(&none, 0x1005), "lib.so.5+0x1000", "it_has_what_the_other_one_has");
	tap_is(kb_symtab_fill(&none, &(struct kb_symtab) { 0 }, file), 0, "nothing_fills_nothing");
	tap_ok(kb_symtab_is_nameless("lib.so.5+0x1020", 0x1020, file), "such_a_name_is_known_again");
	tap_ok(!kb_symtab_is_nameless("lib.so.5+0x1020", 0x1021, file) &&
	       !kb_symtab_is_nameless("lib.so.5+0x1020z", 0x1020, file) &&
	       !kb_symtab_is_nameless("lib.so.5", 0, file) &&
	       !kb_symtab_is_nameless("", 0, file), "others_are_not_such_names");
	kb_symtab_release(&symtab);
	kb_symtab_release(&more);
	kb_symtab_release(&none);
}

static void add_random(struct kb_symtab *symtab, const char *name, enum kb_symtab_rank rank)
{
	for (unsigned int i = 0; i < 12; i++)
		add(symtab, rand() % 200, 1 + rand() % 20, name, rank);
	kb_symtab_sort(symtab);
}

static void test_fill_everywhere(void)
{
	unsigned int wrong = 0;

	srand(7);
	for (unsigned int round = 0; round < 200; round++) {
		struct kb_symtab symtab = { 0 }, first = { 0 }, more = { 0 };
		unsigned int seed = rand();

		srand(seed);
		add_random(&symtab, "a", KB_RANK_LOCAL);
		srand(seed);
		add_random(&first, "a", KB_RANK_LOCAL);
		add_random(&more, "b", KB_RANK_LOCAL);
		kb_symtab_fill(&symtab, &more, kb_text("f"));
		for (uint64_t at = 0; at < 240; at++) {
			const char *want = name_at(&first, at) ?: name_at(&more, at);
			const char *name = name_at(&symtab, at);

			wrong += name ? !want || strcmp(name, want) : want != NULL;
		}
		kb_symtab_release(&symtab);
		kb_symtab_release(&first);
		kb_symtab_release(&more);
	}
	tap_is(wrong, 0, "each_address_has_the_first_table_or_else_the_second");
}

int main(void)
{
	test_fill();
	test_fill_everywhere();
	test_empty();
	test_aliases();
	test_extents();
	test_against_naive_search();
	test_hostile();
	return tap_done();
}
