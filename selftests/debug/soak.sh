#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: soak.sh [SECONDS]
#
# Everything at once, for ten minutes: sessions whose books are audited, races of calls, the
# fuzzer, and CPUs that come and go. None of them may end before its time, and the module
# goes when they are done. Prints TAP.

seconds=${1:-600}
dir=$(mktemp -d)
[ -e /dev/kbarman ] || insmod kbarman.ko

cpus_come_and_go() {
	while :; do
		echo 0 >/sys/devices/system/cpu/cpu1/online
		sleep 1
		echo 1 >/sys/devices/system/cpu/cpu1/online
		sleep 3
	done
}

names='sessions races fuzz cpus_come_and_go'
./sessions 1000000000 >"$dir/sessions" 2>&1 &
pids=$!
./races 1000000000 >"$dir/races" 2>&1 &
pids="$pids $!"
./fuzz 4000000000 100000000 >"$dir/fuzz" 2>&1 &
pids="$pids $!"
cpus_come_and_go >"$dir/cpus_come_and_go" 2>&1 &
pids="$pids $!"

sleep "$seconds"
n=0 failed=0
for pid in $pids; do
	n=$((n + 1))
	name=${names%% *}
	names=${names#* }
	if kill "$pid" 2>/dev/null; then
		echo "ok $n - ${name}_went_on_for_$seconds""_seconds"
	else
		failed=1
		tail -n 20 "$dir/$name" | sed 's/^/# /'
		echo "not ok $n - ${name}_went_on_for_$seconds""_seconds"
	fi
	wait "$pid" 2>/dev/null
done
echo 1 >/sys/devices/system/cpu/cpu1/online 2>/dev/null
n=$((n + 1))
# children of theirs end with them
sleep 2
if rmmod kbarman; then
	echo "ok $n - the_module_goes_when_they_are_done"
else
	failed=1
	echo "not ok $n - the_module_goes_when_they_are_done"
fi
rm -rf "$dir"
echo "1..$n"
exit $failed
