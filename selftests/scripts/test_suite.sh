#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What scripts/suite.sh says of a run. The programs are made here: one is slow, one is nested as
# run_kselftest.sh shows it.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/run" <<'END'
. scripts/lib.sh
. scripts/suite.sh
suite_begin "suite-$2"
fast() {
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
		echo "ok $n - fast_$n"
	done
	echo 1..12
}
slow() {
	echo 'ok 1 - at_once'
	sleep 2.5
	echo 'ok 2 - takes_its_time'
	echo 1..2
}
nested() {
	echo '# selftests: kbarman: one'
	sleep 1.2
	echo '# ok 1 one.first'
	sleep 3.5
	echo '# ok 2 one.second # SKIP no reason'
	echo '# 1..2'
	echo 'ok 1 selftests: kbarman: one'
}
tap fast 0 fast
tap slow 0 slow
nested=1 tap vm 0 nested
suite_end
END
sh -c '. "$1"' scripts/test "$tmp/run" "$$" >"$tmp/said" || :
rm -rf "out/suite-$$"
is the_last_line_counts "$(tail -n 1 "$tmp/said")" '15 passed, 0 failed, 1 skipped' "$tmp/said"
sed '1,/the slowest tests/d; $d' "$tmp/said" >"$tmp/slowest"
# A busy machine makes any of them slower: their order is that of their times.
seconds=$(awk '{ print $1 }' "$tmp/slowest")
is the_slowest_tests_are_listed_slowest_first "$seconds" "$(echo "$seconds" | sort -rn)" "$tmp/said"
is a_slow_test_is_listed_with_its_program \
	"$(grep -cE '^ *[0-9]+  (vm/one: one\.second|slow: takes_its_time)$' "$tmp/slowest")" 2 "$tmp/said"
# The clock may tick in one of them, and on a busy machine in some. If all were listed, it would be eight.
is tests_of_no_time_are_not_listed "$(($(grep -c fast "$tmp/slowest") < 8))" 1 "$tmp/said"

cat >"$tmp/failing" <<'END'
. scripts/lib.sh
. scripts/suite.sh
suite_begin "suite-$2"
bad() {
	echo 'ok 1 - good'
	echo '# why'
	echo 'not ok 2 - bad'
	echo 'ok 3 - good_again'
	echo 1..3
}
late() {
	echo 'not ok 1 - late'
	for n in $(seq 40); do
		echo "# line $n"
	done
	echo '# the reason'
	echo 1..1
}
tap first 0 bad
tap second 0 false
tap third 0 late
suite_end
END
sh -c '. "$1"' scripts/test "$tmp/failing" "$$" >"$tmp/said" || :
rm -rf "out/suite-$$"
is what_failed_is_told_again_at_the_end "$(sed '1,/^what failed:/d' "$tmp/said")" \
	'  FAIL  first: bad
        # why
  FAIL  second: no test ran (exit status 1)
  FAIL  third: late
        # line 1
        # line 2
        # line 3
        # line 4
        # line 5
        # line 6
        # line 7
        # line 8
        […]
'"$(seq -f '        # line %g' 26 40)"'
        # the reason
2 passed, 3 failed, 0 skipped' "$tmp/said"

cat >"$tmp/inner" <<'END'
echo '== inside (0 s)'
echo 'ok    what_is_well                                2 passed'
echo 'FAIL  what_is_not: why'
echo "$1"
exit 1
END
cat >"$tmp/outer" <<'END'
. scripts/lib.sh
. scripts/suite.sh
suite_begin "suite-$2"
within inner sh "$3/inner" "$4"
suite_end
END
# outer LAST: the end of a run within which another one says LAST at its end
outer() {
	sh -c '. "$1"' scripts/test "$tmp/outer" "$$" "$tmp" "$1" >"$tmp/said" || :
	rm -rf "out/suite-$$"
	tail -n 1 "$tmp/said"
}
is tests_of_a_run_within_a_run_count "$(outer '2 passed, 1 failed, 4 skipped')" \
	'2 passed, 1 failed, 4 skipped' "$tmp/said"
is a_failure_of_a_run_within_a_run_is_shown "$(grep -c '^FAIL  what_is_not' "$tmp/said")" 1 "$tmp/said"
is a_failure_of_a_run_within_a_run_is_told_again_at_the_end \
	"$(sed '1,/^what failed:/d; $d' "$tmp/said")" '  FAIL  what_is_not: why' "$tmp/said"
is a_run_within_a_run_that_breaks_off_is_a_failure "$(outer 'no sum')" '0 passed, 1 failed, 0 skipped' \
	"$tmp/said"

cat >"$tmp/parts" <<'END'
set -eu
. scripts/lib.sh
. scripts/suite.sh
suite_begin "suite-$2"
passes() { echo "ok 1 - $1"; echo 1..1; }
part() {
	case $1 in
	breaks) for n in 1 2; do sleep 1; tap "left-$n" 0 passes "$n"; done & false ;;
	waits) for n in 1 2 3; do sleep 1; tap "beside-$n" 0 passes "$n"; done & beside=$!
		tap first 0 passes first; rm -f nothing; wait $beside ;;
	esac
	tap "$1" 0 passes "$1"
}
workers part a b waits breaks
suite_end
END
# Each way to share the parts: the worker that takes one may be the script itself.
for cpus in 1 2; do
	printf '#!/bin/sh\necho %d\n' $cpus >"$tmp/nproc"
	chmod +x "$tmp/nproc"
	PATH=$tmp:$PATH sh -c '. "$1"' scripts/test "$tmp/parts" "$$" >"$tmp/said" || :
	rm -rf "out/suite-$$"
	is a_part_that_breaks_off_is_a_failure_and_the_others_run_on_$cpus \
		"$(grep -v '^ok' "$tmp/said" | sed '1,/^what failed:/d')" \
		'  FAIL  breaks: it broke off with status 1
9 passed, 1 failed, 0 skipped' "$tmp/said"
done
echo "1..$count"
