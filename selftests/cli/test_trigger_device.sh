#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `kbarman record --trigger` and `flight --trigger` on a real module: everything that is injected is in
# a capture, with its reason, and nothing else is. selftests/lib/device_test.sh says how to run it;
# besides
#
#	OUTLIERS=path of selftests/vm/outliers.c
#	COUNT=20	how many of each are injected

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. "${lib%test.sh}record.sh"
built_beside OUTLIERS outliers
N=${COUNT:-20}

# Work of both CPUs that no trigger here is about, until the file `stop` is there.
busy() {
	while [ ! -e stop ]; do
		dd if=/dev/zero bs=4k count=2000 2>/dev/null | cksum >/dev/null
	done
}

captures() {
	find out -name '*.cap' | sort
}

how_many() {
	captures | wc -l
}

# of all captures, a line each
reasons() {
	captures | while read -r capture; do
		"$KBARMAN" info "$capture" | grep -A 40 '^trigger ' |
			sed -n 's/^trigger *//p; s/^ \{11\}\([a-z]*[:>].*: .*\)/\1/p'
	done
}

# each_has_its_capture KIND: the bookmark behind each injected moment is in a capture
each_has_its_capture() {
	captures | while read -r capture; do
		"$KBARMAN" check "$capture" >/dev/null || echo "$capture is damaged" >bad
		"$KBARMAN" script -e annotation "$capture"
	done >marks.txt
	[ ! -e bad ] || { cat bad; return 1; }
	i=1
	while [ $i -le "$N" ]; do
		grep -q "injected $1 $i\$" marks.txt || { echo "no capture has '$1 $i'"; return 1; }
		i=$((i + 1))
	done
}

# watch OPTION... -- COMMAND...: record with triggers, beside other work; saving symbols would be more of it
watch() {
	busy &
	work=$!
	"$KBARMAN" record -a -o out --no-bundle "$@" >said 2>&1
	status=$?
	touch stop
	wait $work
	cat said
	return $status
}

# ---- promises ----

every_delay_is_kept_with_its_reason() {
	watch --trigger 'wakeup:victim>100ms' --before 300ms --after 100ms --every 0s -- \
		"$OUTLIERS" delay "$N" 400 150 || return 1
	each_has_its_capture delay || return 1
	reasons >reasons.txt
	cat reasons.txt
	[ "$(grep -c "^wakeup:victim>100ms: 'victim' ([0-9]*) waited .* for CPU 0, woken by" reasons.txt)" \
		-eq "$N" ] || return 1
	[ "$(wc -l <reasons.txt)" -eq "$N" ] && [ "$(how_many)" -eq "$N" ] && no_loss
}

no_loss() {
	! grep -e 'overwritten before' -e 'were lost' said
}

without_delays_there_is_no_capture() {
	watch --trigger 'wakeup:victim>100ms' --every 0s -- "$OUTLIERS" calm "$N" 200 0 || return 1
	[ "$(how_many)" -eq 0 ] && grep -q ': 0 captures of 0 moments' said
}

every_mark_is_kept_and_no_other() {
	# shellcheck disable=SC2016 # the other shell's
	watch --trigger 'mark:injected mark *' --before 200ms --after 50ms --every 0s -- sh -c '
		"$1" annotate -b "not this one"; "$2" mark "$3" 150 0; "$1" annotate -b "nor this injected mark"' \
		- "$KBARMAN" "$OUTLIERS" "$N" || return 1
	each_has_its_capture mark || return 1
	reasons >reasons.txt
	[ "$(grep -c "^mark:injected mark \*: 'marker' ([0-9]*) marked 'injected mark" reasons.txt)" -eq "$N" ] &&
		[ "$(wc -l <reasons.txt)" -eq "$N" ]
}

every_time_off_a_cpu_is_kept() {
	watch --trigger 'offcpu:sleeper>500ms' --before 200ms --after 700ms --every 0s -- \
		"$OUTLIERS" sleep 5 600 1000 || return 1
	N=5 each_has_its_capture sleep || return 1
	reasons
	# a recorder that comes late finds it over; on a machine that stands still short sleeps are long, too
	[ "$(reasons | grep -c "^offcpu:sleeper>500ms: 'sleeper' ([0-9]*) \(is\|was\) off its CPU")" -ge 5 ] &&
		[ "$(how_many)" -ge 5 ]
}

waits_for_a_call_are_kept() {
	watch --trigger 'wait:clock_nanosleep>500ms' --before 200ms --after 700ms --every 0s -- \
		"$OUTLIERS" sleep 5 600 1000 || return 1
	reasons
	reasons | grep -q "^wait:clock_nanosleep>500ms: 'sleeper' ([0-9]*) \(is\|was\) off its CPU.* blocked in clock_nanosleep"
}

calls_that_take_long_are_kept() {
	watch --trigger 'syscall:clock_nanosleep>500ms' --before 200ms --after 700ms --every 0s -- \
		"$OUTLIERS" sleep 5 600 1000 || return 1
	reasons
	[ "$(reasons | grep -c "^syscall:clock_nanosleep>500ms: clock_nanosleep took .*, called by 'sleeper' ([0-9]*)")" -ge 5 ]
}

send_signals() {
	i=1
	while [ $i -le 5 ]; do
		"$KBARMAN" annotate -b "injected signal $i"
		kill -USR2 "$pid"
		sleep 1
		i=$((i + 1))
	done
}

a_signal_writes_a_capture() {
	watch_from_outside --trigger signal:USR2 --trigger mark:nothing --trigger mark:never --after 100ms \
		send_signals
	N=5 each_has_its_capture signal && [ "$(how_many)" -eq 5 ] &&
		[ "$(reasons | grep -c '^signal:USR2: the signal USR2 came')" -eq 5 ]
}

# inject_interrupts KIND: N of 40 ms, with short ones between them
inject_interrupts() {
	i=1
	while [ $i -le "$N" ]; do
		before=$(cat /sys/module/long_interrupts/parameters/done)
		echo 40000 >"/sys/module/long_interrupts/parameters/$1_us"
		while [ "$(cat /sys/module/long_interrupts/parameters/done)" = "$before" ]; do sleep 0.01; done
		"$KBARMAN" annotate -b "injected $1 $i"
		echo 300 >"/sys/module/long_interrupts/parameters/$1_us"
		sleep 1.5
		i=$((i + 1))
	done
}

# An emulated machine that stands still in an interrupt has a long one, too: so there may be more.
every_long_interrupt_is_kept() {
	module=$(dirname "$KBARMAN")/long_interrupts.ko
	[ -e "$module" ] || { echo 'SKIP: there is no long_interrupts.ko'; return 0; }
	insmod "$module" || return 1
	watch_from_outside --trigger 'irq:TASKLET>30ms' --trigger 'irq:TASKLET>30s' \
		--trigger 'irq:TASKLET>20s' --after 1s inject_interrupts softirq
	each_has_its_capture softirq &&
		[ "$(reasons | grep -c "^irq:TASKLET>30ms: the softirq 'TASKLET' took")" -ge "$N" ]
	status=$?
	if [ $status -eq 0 ] && [ "$(uname -m)" = x86_64 ]; then	# others do not trace them
		rm -rf out said bad
		watch_from_outside --trigger 'irq:IRQ work interrupts>30ms' --trigger 'irq:x>30s' \
			--trigger 'irq:x>20s' --after 1s inject_interrupts irq
		each_has_its_capture irq
		status=$?
	fi
	reasons
	rmmod long_interrupts
	return $status
}

what_comes_too_soon_is_counted_and_said() {
	watch --trigger 'mark:injected*' --after 50ms --every 1h -- "$OUTLIERS" mark 10 300 0 || return 1
	[ "$(how_many)" -eq 1 ] && grep -q '1 capture of 1 moment; 9 more came too soon' said
}

a_counter_that_grows_fast_is_kept() {
	# shellcheck disable=SC2016 # the other shell's
	watch --trigger 'counter:frogs>50/s' --trigger 'counter:toads>7' --after 50ms --every 0s -- sh -c '
		"$1" annotate -c pond:frogs=1 -u frogs; sleep 1; "$1" annotate -c pond:frogs=20
		sleep 1; "$1" annotate -c pond:toads=7; sleep 1; "$1" annotate -c pond:toads=8; sleep 1' \
		- "$KBARMAN" || return 1
	reasons
	[ "$(reasons | grep -c "^counter:frogs>50/s: the counter 'frogs' grew by 190 a")" -eq 1 ] &&
		[ "$(reasons | grep -c "^counter:toads>7: the counter 'toads' was 8")" -eq 1 ] &&
		[ "$(how_many)" -eq 2 ]
}

pressure_is_kept() {
	[ -e /proc/pressure/cpu ] || { echo 'SKIP: this kernel has no PSI'; return 0; }
	watch --trigger 'psi:cpu>30%' --after 50ms --every 0s -- sh -c '
		for i in 1 2 3 4 5 6; do (timeout 3 sh -c "while :; do :; done") & done; wait' || return 1
	reasons
	[ "$(how_many)" -ge 1 ] && reasons | grep -q '^psi:cpu>30%: some tasks stalled for cpu'
}

# Start a recording in the background that COMMAND is not a child of; then COMMAND, then the end.
watch_from_outside() {
	"$KBARMAN" record -a -o out --every 0s "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" 2>said &
	pid=$!
	shift 8
	i=0
	until grep -q watching said; do
		i=$((i + 1))
		[ $i -lt 200 ] || return 1
		sleep 0.1
	done
	"$@"
	sleep 1
	kill -TERM "$pid"
	wait "$pid"
	cat said
}

# Reading and writing captures takes the CPU from others, and waits for it.
own_work_is_no_trigger() {
	watch_from_outside --trigger 'latency:kbarman>1ns' --trigger 'offcpu:kbarman>1ns' \
		--trigger 'mark:injected*' --after 10ms "$OUTLIERS" mark 5 300 0
	reasons
	[ "$(reasons | grep -vc '^mark:')" -eq 0 ] && [ "$(how_many)" -eq 5 ]
}

a_ring_that_is_too_small_is_said() {
	watch -m 64K -F 20000 --trigger 'mark:injected*' --after 5s --before 10s --every 0s -- \
		"$OUTLIERS" mark 3 2000 0
	# the capture is written before its moment is overwritten, and says what it lacks
	grep -q 'the buffers do not reach back further' said || return 1
	N=3 each_has_its_capture mark
}

# A recorder that does not get to run does not see what is overwritten meanwhile: it says so.
what_is_overwritten_unseen_is_said() {
	watch_from_outside --trigger 'mark:injected*' --after 10ms -m64K -F5000 --max-stack=8 -g stand_still
	grep -q 'overwritten before the triggers could look at them' said || return 1
	# what comes behind that is seen
	N=1 each_has_its_capture mark
}

stand_still() {
	busy &
	work=$!
	kill -STOP "$pid"
	sleep 5
	kill -CONT "$pid"
	sleep 1
	"$OUTLIERS" mark 1 300 0
	touch stop
	wait $work
}

flight_with_triggers_runs_in_the_background() {
	KBARMAN_RUNTIME_DIR=$PWD
	export KBARMAN_RUNTIME_DIR
	"$KBARMAN" flight start --trigger 'mark:injected*' --after 50ms --every 0s -o out || return 1
	"$OUTLIERS" mark 3 300 0
	"$KBARMAN" flight status && "$KBARMAN" flight stop
	status=$?
	cat kbarman-flight.log
	unset KBARMAN_RUNTIME_DIR
	[ $status -eq 0 ] && N=3 each_has_its_capture mark && [ "$(how_many)" -eq 3 ]
}

a_report_says_why() {
	watch --trigger 'mark:injected*' --after 10ms -- "$OUTLIERS" mark 1 100 0 || return 1
	capture=$(captures)
	"$KBARMAN" report "$capture" | grep "^# trigger  : [0-9.]* s: mark:injected\*: 'marker' ([0-9]*) marked" || return 1
	"$KBARMAN" report --json "$capture" | grep '"kind":"trigger".*"expression":"mark:injected\*"' || return 1
	"$KBARMAN" info --json "$capture" | grep '"kind":"triggers","moments":1,"suppressed":0' || return 1
	"$KBARMAN" script -e annotation "$capture" | grep "trigger mark:injected\*: 'marker'" || return 1
	[ -e "$capture.kallsyms" ] && is_whole_but_inserted "$capture" && in_order "$capture"
}

# As is_whole, and the bookmarks of the triggers.
is_whole_but_inserted() {
	"$KBARMAN" check "$1" || return 1
	in_file=$(records_in "$1")
	written=$(($(sum_of "$1" '^written') - $(sum_of "$1" '^overwritten') + $(sum_of "$1" '^inserted')))
	echo "$1: $in_file records, $written written"
	[ "$in_file" -eq "$written" ]
}

bad_wishes_are_refused() {
	for wish in '--trigger late>5ms' '--trigger latency>5' '--mode stream --trigger latency>5ms' \
		'--after 1s' '--trigger mark:x --after 5' '--trigger mark:x --poll a=/proc/uptime' \
		'--trigger mark:x -o /proc/version'; do
		# shellcheck disable=SC2086 # words
		"$KBARMAN" record $wish true 2>said && { echo "$wish was taken"; return 1; }
		cat said
		grep -q -e 'write ' -e 'give ' -e 'leave out' -e 'leave them out' said || return 1
	done
}

run_tests busy captures how_many reasons each_has_its_capture watch watch_from_outside send_signals \
	inject_interrupts stand_still \
	no_loss is_whole_but_inserted
