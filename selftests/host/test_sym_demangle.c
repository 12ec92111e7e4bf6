// SPDX-License-Identifier: MIT
/* Names as people write them. */
#include <stdlib.h>

#include "../lib/tap.h"
#include "sym/names/demangle.h"

static struct kb_demangler demangler;

static void check(const char *mangled, const char *want, const char *name)
{
	char *text = kb_demangle(&demangler, mangled);

	tap_is_string(text, want, name);
	free(text);
}

int main(void)
{
	char bomb[2048] = "_Z1f", *at = bomb + 4;
	int i;

	check("main", NULL, "c_names_stay");
	check("_start", NULL, "underscores_alone_mean_nothing");
	check("_Z", NULL, "a_bare_prefix_stays");
	check("_R", NULL, "a_bare_rust_prefix_stays");
	check("_ZN1r5inner10S$LT$T$GT$4work17h401961d7c58133abE", "r::inner::S<T>::work",
	      "legacy_rust_loses_its_hash");
	check("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
	      "<&T as core::fmt::Debug>::fmt", "legacy_rust_escapes_are_undone");
	check("_RNvNtCsgEmfK2I1SDS_4core9panicking19assert_failed_inner",
	      "core::panicking::assert_failed_inner", "rust_paths");
	check("_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>", "rust_generics");
	check("_RNCNvC1a4main0B3_", "a::main::{closure#0}", "rust_closures");
	check("_RNvMC1aNtB2_1S3run", "<a::S>::run", "rust_back_references");
	check("_RNvC1a3foo.llvm.1234", "a::foo", "what_llvm_hung_behind_is_left_out");
	check("_RNqC1au30____7hkackfecea1cbdathfdh9hlq6y", "a::საჭმელად_გემრიელი_სადილი",
	      "rust_punycode");
	check("_RNvC1au9Mnchen_zwa", NULL, "rust_punycode_that_is_cut_off_stays");
	check("_RNvC1au12_zzzzzzzzzzz", NULL, "rust_punycode_beyond_all_characters_stays");
	check("_RINvC1a1fKc41_Kc27_Kc1f600_Kb1_Kan7_E", "a::f::<'A', '\\'', '\\u{1f600}', true, -7>",
	      "rust_constants");
	check("_RINvC1a1fKhn1_E", NULL, "rust_constants_of_the_wrong_sign_stay");
	check("_RINvC1a1fRL0_hE", NULL, "rust_lifetimes_are_bound_where_they_are_used");
	check("_RINvC1a1fFG_RL0_hEuE", "a::f::<for<'a> fn(&'a u8)>", "rust_lifetimes");
	check("_RIC1bINtC1a1TjEDB3_p1IhEL_E", "b::<a::T<usize>, dyn a::T<usize, I = u8>>",
	      "rust_associated_types_go_into_the_brackets_of_their_trait");
	check("_RNvC1aB_B_B_", NULL, "rust_garbage_stays");
	check("_RNvB_1a", NULL, "rust_references_to_themselves_stay");
	for (i = 0; i < 400; i++)
		*at++ = 'I';
	memcpy(bomb, "_RIC1a", 6);
	check(bomb, NULL, "deep_rust_names_stay");

	if (!kb_demangle(&demangler, "_Z3foov")) {
		tap_skip("cxx_names", "there is no C++ library");
		return tap_done();
	}
	check("_Z3foov", "foo()", "cxx_functions");
	check("_ZNSt6vectorIiSaIiEE9push_backERKi",
	      "std::vector<int, std::allocator<int> >::push_back(int const&)", "cxx_templates");
	check("_Z3foov.isra.0", "foo()", "what_the_compiler_hung_behind_is_left_out");
	check("_Z3foov_not_a_name!", NULL, "cxx_garbage_stays");
	strcpy(bomb, "_Z1fIA_iE");
	for (i = 0; i < 60; i++)
		strcat(bomb, "1xIS_S_E");
	check(bomb, NULL, "names_that_grow_without_end_stay");
	kb_demangler_release(&demangler);
	return tap_done();
}
