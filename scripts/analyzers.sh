# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The static analyzers. Each one is a function that prints one TAP test. scripts/analyze sources
# this file after suite.sh; so does scripts/test, which runs the quick analyzers. Analyzers of the
# module need $kernel, the directory of the kernel's source.
#
# shellcheck disable=SC2154 # $out is of suite.sh, $kernel of scripts/analyze

# judge NAME FILE...: a finding is a line "FILE:LINE...: error|warning|CHECK...: ...". There must
# be none in the code, and at least one in selftests/analyze/, which shows that the analyzer works.
judge() {
	name=$1
	shift
	cat -- "$@" | sed "s|$PWD/||g" |
		grep -E '^[^ :]+:[0-9]+[:0-9-]*: *(warning|error|WARNING|ERROR|CHECK)' | sort -u >"$out/$name.all" || :
	grep -v '^selftests/analyze/' "$out/$name.all" >"$out/$name.found" || :
	if cmp -s "$out/$name.all" "$out/$name.found"; then
		echo "# the analyzer does not find the bugs in selftests/analyze"
		echo "not ok - $name"
	elif [ -s "$out/$name.found" ]; then
		head -40 "$out/$name.found" | sed 's/^/# /'
		echo "not ok - $name"
	else
		echo "ok - $name"
	fi
}

# analyzed NAME ANALYZER: make runs the analyzer, with one log per file
analyzed() {
	rm -rf "build/analyze/$2"
	# shellcheck disable=SC2016 # $1 is of that shell
	if scripts/cached-log "$out/$2.log" -- sh -c '
		make --no-print-directory -j2 "analyze-$1" && find "build/analyze/$1" -type f -exec cat {} +
		' sh "$2"; then
		judge "$1" "$out/$2.log"
	else
		tail -n 20 "$out/$2.log" | sed 's/^/# /'
		echo "not ok - $1 (it does not run: $out/$2.log)"
	fi
}

user_is_clean_with_cppcheck() {
	analyzed user_is_clean_with_cppcheck cppcheck
}

user_is_clean_with_fanalyzer() {
	analyzed user_is_clean_with_fanalyzer fanalyzer
}

user_is_clean_with_clang_tidy() {
	analyzed user_is_clean_with_clang_tidy tidy
}

# .checkpatch.conf lists the checks that are switched off.
module_is_clean_with_checkpatch() {
	perl "$kernel/scripts/checkpatch.pl" --terse -f kmod/*.[ch] kmod/*/*.[ch] \
		selftests/analyze/module.c >"$out/checkpatch.log" 2>&1 || :
	judge module_is_clean_with_checkpatch "$out/checkpatch.log"
}

# All of the kernel's semantic patches, as `make coccicheck M=` runs them.
module_is_clean_with_coccinelle() {
	for dir in kmod selftests/analyze; do
		srctree=$kernel KBUILD_EXTMOD=$PWD/$dir LINUXINCLUDE="-I$kernel/include -I$PWD/kmod" \
			MODE=report C=0 J=$(nproc) V=0 bash "$kernel/scripts/coccicheck" && continue
		echo "not ok - module_is_clean_with_coccinelle (it does not run: $out/coccinelle.log)" >&3
		return
	done 3>&1 >"$out/coccinelle.log" 2>&1
	judge module_is_clean_with_coccinelle "$out/coccinelle.log"
}
