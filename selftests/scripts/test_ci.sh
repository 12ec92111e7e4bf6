#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What .ci/run makes, says and keeps. The demo and the tests are made here.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir -p "$tmp/tree/.ci" "$tmp/tree/scripts"
cp .ci/run "$tmp/tree/.ci/"
cat >"$tmp/tree/Makefile" <<'END'
demo:
	@echo "demo of CI=$$CI"; exit $(DEMO)
END
cat >"$tmp/tree/scripts/test" <<'END'
#!/bin/sh
echo "tests of CI=$CI"
echo "7 passed, $TESTS failed, 0 skipped"
exit "$TESTS"
END
chmod +x "$tmp/tree/scripts/test"
echo here >"$tmp/tree/file"
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
git_of() {
	git -C "$tmp/tree" -c user.name=n -c user.email=e "$@"
}
git_of init -q
git_of add .
git_of commit -qm one

# run DEMO TESTS: with these statuses; sets $status and $kept
run() {
	rm -rf "$tmp/cache"
	status=0
	DEMO=$1 TESTS=$2 XDG_CACHE_HOME=$tmp/cache bash "$tmp/tree/.ci/run" >"$tmp/said" 2>&1 || status=$?
	kept=$(cat "$tmp/cache/kbarman/green-trees" 2>/dev/null) || :
}

run 0 0
is what_passed_is_told "$status $(tail -n 1 "$tmp/said")" '0 7 passed, 0 failed, 0 skipped' "$tmp/said"
is the_demo_comes_first "$(head -n 2 "$tmp/said" | tr '\n' ,)" 'demo of CI=true,tests of CI=true,' "$tmp/said"
is a_green_tree_is_kept "$kept" "$(git_of rev-parse 'HEAD^{tree}')" "$tmp/said"
run 0 1
is failed_tests_fail "$((status > 0)) $(tail -n 1 "$tmp/said") $kept" '1 7 passed, 1 failed, 0 skipped ' "$tmp/said"
run 1 0
is a_failed_demo_fails "$((status > 0)) $(tail -n 1 "$tmp/said") $kept" '1 0 passed, 1 failed, 0 skipped ' "$tmp/said"
touch "$tmp/tree/other"
run 0 0
is files_that_git_does_not_know_do_not_matter "$kept" "$(git_of rev-parse 'HEAD^{tree}')" "$tmp/said"
echo there >"$tmp/tree/file"
run 0 0
is a_changed_tree_is_not_kept "$status $kept" '0 ' "$tmp/said"
echo "1..$count"
