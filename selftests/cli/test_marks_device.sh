#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Marks and charts on a real module: `kbarman annotate`, a program with mark.h. Run it as
# root where /dev/kbarman is, in a VM for instance. Needs no more than busybox has.
#
#	KBARMAN=path of the tool  MARKS=path of the example  TMPDIR=where to work

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
built_beside MARKS marks

# said TEXT: the last capture has an annotation or a counter that looks so in `script`
said() {
	"$KBARMAN" script -e annotation,counter kbarman.cap >script.txt || return 1
	grep -q -e "$1" script.txt || { cat script.txt; return 1; }
}

# ---- promises ----

annotate_reaches_the_recording() {
	cat >marks.sh <<-END
		"$KBARMAN" annotate -n 3 --name phase --colour ff8000 "the first phase" &&
		"$KBARMAN" annotate -b "a moment" &&
		"$KBARMAN" annotate -c pond:frogs=5 -u frogs &&
		"$KBARMAN" annotate -c pond:frogs=0x7 &&
		printf 'line one\\n\\nline two\\n' | "$KBARMAN" annotate - &&
		"$KBARMAN" annotate -n 3 --end
	END
	"$KBARMAN" record sh marks.sh || return 1
	"$KBARMAN" check kbarman.cap || return 1
	for text in 'the first phase' phase 'a moment' 'line one' 'line two' frogs=5 frogs=7; do
		said "$text" || return 1
	done
}

nobody_records_is_an_error() {
	"$KBARMAN" annotate lost >said 2>&1
	[ $? -eq 2 ] && grep -q 'no recording runs' said
}

who_may_write_may_annotate_and_not_record() {
	chmod 622 /dev/kbarman
	"$KBARMAN" record setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$KBARMAN" annotate -b by-nobody >said 2>&1
	status=$?
	setpriv --reuid 65534 --regid 65534 --clear-groups "$KBARMAN" record true >said2 2>&1
	recorded=$?
	chmod 600 /dev/kbarman
	cat said said2
	[ $status -eq 0 ] && [ $recorded -eq 2 ] && said by-nobody
}

the_example_marks_itself() {
	[ -x "$MARKS" ] || { echo 'SKIP: it is not built'; return 0; }
	"$KBARMAN" record -F 100 "$MARKS" || return 1
	said phase && said 'million 1' && said 'million 3' && said 'all found' && said found=216816
}

the_example_needs_no_recording() {
	[ -x "$MARKS" ] || { echo 'SKIP: it is not built'; return 0; }
	"$MARKS"
}

tracepoints_are_counted_by_name() {
	[ -e /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing || return 1
	"$KBARMAN" record -a -e cpu-clock,sched:sched_wakeup,sched:sched_switch \
		sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done' || return 1
	"$KBARMAN" check kbarman.cap || return 1
	for event in sched:sched_wakeup sched:sched_switch; do
		tr "\0" "\n" <kbarman.cap | grep -q "^kbarman.counter.0.[12]=$event\$" || return 1
	done
	"$KBARMAN" record -e cpu-clock,sched:nothing true 2>said2
	[ $? -eq 2 ] && grep -q 'no such tracepoint' said2
}

files_and_charts_are_polled() {
	echo 17.5 >number
	"$KBARMAN" record -a --poll "pond:frogs=$PWD/number@50" --chart runnable,memory,irq@20 \
		sh -c 'sleep 0.5; echo 23.5 >number; sleep 0.5' || return 1
	"$KBARMAN" check kbarman.cap || return 1
	for text in 'frogs=17.5' 'frogs=23.5' 'runnable=' 'used=' 'interrupts='; do
		said "$text" || return 1
	done
}

# A driver that this machine does not have: its files, for a while.
frequencies_and_idle_states_are_polled() {
	mount -t tmpfs nodev /sys/devices/system/cpu || return 1
	for cpu in 0 1; do
		at=/sys/devices/system/cpu/cpu$cpu
		mkdir -p $at/cpufreq $at/cpuidle/state0 $at/cpuidle/state1
		echo 1${cpu}00000 >$at/cpufreq/scaling_cur_freq
		echo C1 >$at/cpuidle/state0/name
		echo C6 >$at/cpuidle/state1/name
		echo 1000 >$at/cpuidle/state0/time
		echo 2000 >$at/cpuidle/state1/time
	done
	"$KBARMAN" record -a --chart freq@20,idle@20 sh -c "sleep 0.5
		echo 1500 >/sys/devices/system/cpu/cpu0/cpuidle/state0/time
		echo 2700 >/sys/devices/system/cpu/cpu1/cpuidle/state1/time
		sleep 0.5" >said2 2>&1
	status=$?
	umount /sys/devices/system/cpu
	cat said2
	[ $status -eq 0 ] || return 1
	for text in '000.*frequency=1000000000' '001.*frequency=1100000000' '000.*C1=0.0005' \
		'001.*C6=0.0007'; do
		said "$text" || return 1
	done
}

# ---- all of them ----

run_tests said
