#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a VM does in a test run, in one boot: the kselftests of the module, then the tool on
# the real thing. Prints TAP as run_kselftest.sh does. Captures and reports are left in
# results/ for selftests/vm/check.py, which looks into them on the host.

export KBARMAN_TEST_VM=1
here=$PWD
# shellcheck disable=SC2013 # one word a line
for t in $(cat kselftest/kselftest-list.txt); do
	case $t in *:lockdown) ;; *) tests="$tests -t $t" ;; esac
done
# shellcheck disable=SC2086 # a list
sh kselftest/run_kselftest.sh $tests

# ---- the tool

rm -rf results
mkdir results
cd results || exit 1
count=0
say() { echo "# $*"; }
# promise NAME COMMAND...: the command ends well
promise() {
	name=$1
	shift
	count=$((count + 1))
	if "$@" >step.out 2>&1; then
		say "ok $count - $name"
	else
		say "# exit status $?: $*"
		sed 's/^/# # /' step.out
		say "not ok $count - $name"
		failed=1
	fi
}
exits_with() {
	want=$1
	shift
	"$@"
	got=$?
	[ $got -eq "$want" ] || { echo "exit status $got, not $want"; return 1; }
}
record_truth() { # NAME OPTIONS
	name=$1
	shift
	../kbarman record -o "$name.cap" "$@" -- ../truth -s 2 -p 1000 >"$name.out" 2>"$name.err" ||
		{ r=$?; cat "$name.out" "$name.err"; return $r; }
	cat "$name.err"
}

say "selftests: kbarman: tool"
promise module_loads insmod ../kbarman.ko
promise records_the_system record_truth all -a
promise records_a_command record_truth command
promise records_into_a_ring_that_is_overwritten record_truth ring --mode overwrite -a
promise passes_the_commands_exit_status_on exits_with 7 ../kbarman record -o seven.cap -- sh -c 'exit 7'
for c in all command ring; do
	promise "reports_$c" sh -c "../kbarman report --percent-limit 0 --json $c.cap >$c.json"
	promise "reports_${c}_as_text" sh -c "../kbarman report $c.cap >$c.txt"
done
promise map_reader_prints_records sh -c '../map_reader >map_reader.out && grep -c . map_reader.out'
promise module_unloads_after_it_all rmmod kbarman
promise says_that_the_module_is_missing sh -c \
	'! ../kbarman record -o none.cap -- true 2>none.err && grep -q insmod none.err && [ ! -e none.cap ]'
say "1..$count"
if [ "$failed" ]; then echo "not ok 99 selftests: kbarman: tool"; else echo "ok 99 selftests: kbarman: tool"; fi

cd "$here" || exit 1
sh kselftest/run_kselftest.sh -t kbarman:lockdown
