#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: soak.sh [SECONDS]
#
# Everything at once, for ten minutes: sessions whose books are audited; sessions that are read
# while they run, with hackbench, marks and attempts to unload the module beside them; races of
# calls; the fuzzer; and CPUs that come and go. Each goes on until it is told to end, says then
# what it did, and did some of it in each half of the time. The module goes when they are done.
# Prints TAP.
#
# shellcheck disable=SC2317 # functions are called by name

seconds=${1:-600}
dir=$(mktemp -d)
online=/sys/devices/system/cpu/cpu1/online
[ -e /dev/kbarman ] || insmod kbarman.ko

# As told.h has it: SIGUSR1 is half time, SIGTERM the end.
cpus_come_and_go() {
	times=0 half=0 over=
	trap 'half=$times' USR1
	trap 'over=1' TERM
	until [ "$over" ]; do
		echo 0 >"$online" || return
		sleep 1
		echo 1 >"$online" || return
		times=$((times + 1))
		sleep 3
	done
	echo "# $times times, $half of them by half time"
	[ "$half" -gt 0 ] && [ "$times" -gt "$half" ]
}

pids='' names=''

# begin NAME COMMAND...
begin() {
	names="$names $1"
	out=$dir/$1
	shift
	"$@" >"$out" 2>&1 &
	pids="$pids $!"
}

n=0 failed=0

# promise NAME STATUS
promise() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n - $1"
	else
		failed=1
		echo "not ok $n - $1 # exit=$2"
	fi
}

begin sessions ./sessions 1000000000
begin streams ./streams 1000000000
begin races ./races 1000000000
begin fuzz ./fuzz 4000000000
begin cpus_come_and_go cpus_come_and_go

# shellcheck disable=SC2086 # words
{
	sleep $((seconds / 2))
	kill -USR1 $pids
	sleep $((seconds - seconds / 2))
	kill -TERM $pids
	# what has not ended long after that hangs
	{ sleep 600; kill -KILL $pids; } >/dev/null 2>&1 &
	killer=$!
}
for pid in $pids; do
	names=${names# }
	name=${names%% *}
	names=${names#* }
	wait "$pid"
	status=$?
	sed 's/^/# /' "$dir/$name"
	promise "${name}_went_on_for_$seconds""_seconds" $status
done
kill $killer
echo 1 >"$online" 2>/dev/null
# children of theirs end with them
sleep 2
rmmod kbarman
promise the_module_goes_when_they_are_done $?
rm -rf "$dir"
echo "1..$n"
exit $failed
