#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What `kbarman record` does when something goes wrong around it: disks, pipes, clocks,
# kills, other recorders; and when there is very much of something. selftests/lib/device_test.sh
# says how to run it; besides
#
#	THREADS=path of selftests/vm/threads.c  TRUTH=path of selftests/truth/truth.c
#	KILLS=3  FORKS=300  NR_THREADS=300  STOP=2	how much (seconds) of each
#	KBARMAN_CPUS=1	how many CPUs there have to be

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. "${lib%test.sh}record.sh"
built_beside THREADS threads
built_beside TRUTH truth-static

# A program for a shell, which switches tasks until the file `stop` is there.
busy='while [ ! -e stop ]; do /bin/true; done'

# Whole seconds that a capture is of.
span() {
	"$KBARMAN" report "$1" | sed -n 's/^# recorded : .* UTC, \([0-9]*\)\..*/\1/p'
}

# The recorder of that number has ended by itself, in 20 s at most, with its status.
ends() {
	i=0
	while kill -0 "$1" 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 200 ] || { echo "it goes on"; kill -KILL "$1"; return 255; }
		sleep 0.1
	done
	wait "$1"
}

# A small disk of its own in ./small, until the test ends.
small_disk() {
	mkdir small && mount -t tmpfs -o "$1" tmpfs small
}

a_full_disk_ends_a_recording_with_what_fits() {
	small_disk size=24m || return 1
	# its tables' holes have no room any more either
	"$KBARMAN" record -F 10000 -a -o small/x.cap sh -c "$busy" 2>said &
	pid=$!
	begun small/x.cap && sleep 1
	dd if=/dev/zero of=small/rest bs=4k 2>/dev/null
	sleep 4
	touch stop
	ends $pid
	status=$?
	cat said
	"$KBARMAN" check small/x.cap.partial && "$KBARMAN" recover -o y.cap small/x.cap.partial &&
		"$KBARMAN" check y.cap && "$KBARMAN" report y.cap >/dev/null
	recovered=$?
	n=$(records_in y.cap)
	ls small
	umount small
	echo "status $status, $n records recovered"
	[ $recovered -eq 0 ] && [ $status -eq 1 ] && [ "$n" -gt 10 ] &&
		grep -q 'No space left' said &&
		grep -q 'kbarman recover small/x.cap.partial' said || return 1
	record -o next.cap true && is_whole next.cap
}

a_disk_without_any_room_is_found_before_anything_runs() {
	small_disk size=64k || return 1
	dd if=/dev/zero of=small/rest bs=4k 2>/dev/null
	record -o small/x.cap touch ran 2>said
	status=$?
	cat said
	ls small >left
	umount small
	[ $status -eq 2 ] && [ ! -e ran ] && grep -q 'small/x.cap: .*No space left' said &&
		[ "$(cat left)" = rest ]
}

a_read_only_directory_is_named_before_anything_runs() {
	small_disk ro || return 1
	record -o small/x.cap touch ran 2>said
	status=$?
	cat said
	umount small
	[ $status -eq 2 ] && [ ! -e ran ] && grep -q 'small/x.cap.*Read-only file system' said
}

a_pipe_that_closes_is_an_error_and_no_signal() {
	{
		record -o - -a sleep 1 2>said
		echo $? >status
	} | { sleep 0.1; }
	cat said status
	[ "$(cat status)" -eq 2 ] && grep -q 'standard output: Broken pipe' said || return 1
	record -o next.cap true && is_whole next.cap
}

two_recorders_in_one_place_do_not_touch_each_other() {
	"$KBARMAN" record -a sleep 30 &
	pid=$!
	begun kbarman.cap || return 1
	record touch ran 2>said
	status=$?
	kill -TERM $pid
	wait $pid
	cat said
	[ $status -eq 2 ] && [ ! -e ran ] && grep -q 'another recorder writes kbarman.cap' said &&
		is_whole kbarman.cap
}

# All that the header of a capture tells of, at least.
is_recovered() {
	"$KBARMAN" check "$1" && "$KBARMAN" recover -o r.cap "$1" && "$KBARMAN" check r.cap || return 1
	recovered=$(records_in r.cap)
	[ "$recovered" -ge "$(records_in "$1")" ]
}

# Kills come from the moment on when the recorder is started: in the first second there may be
# no file yet, or one that has not been told what is in it.
killed_at_any_moment_it_leaves_what_it_wrote() {
	sh -c "$busy" &
	worker=$!
	k=0
	bad=0
	early=0
	kept=0
	seed=$(od -An -N2 -tu2 /dev/urandom)
	while [ $k -lt "${KILLS:-3}" ] && [ $bad -eq 0 ]; do
		k=$((k + 1))
		seed=$(((seed * 1103 + 12345) % 65536))
		"$KBARMAN" record -q -o k.cap -a &
		pid=$!
		[ $((seed % 5)) -eq 0 ] || begun k.cap || bad=1
		sleep "$((seed / 7 % 2)).$((seed / 14 % 900 + 100))"
		[ $((seed % 3)) -ne 0 ] || kill -TERM $pid
		kill -KILL $pid
		wait $pid 2>/dev/null
		f=k.cap.partial
		[ -e $f ] || f=k.cap
		if [ $((seed % 5)) -eq 0 ] && ! has_header $f; then
			early=$((early + 1))
		elif is_recovered $f >said 2>&1; then
			kept=$((kept + recovered))
			echo "kill $k: $recovered records"
		else
			bad=1
			cat said
			echo "kill $k, seed $seed"
		fi
		rm -f k.cap* r.cap*
	done
	touch stop
	wait $worker
	echo "NOTE $k kills, $early of them before the first sync; $kept records recovered"
	[ $bad -eq 0 ] || return 1
	record -o next.cap true && is_whole next.cap && "$KBARMAN" report next.cap >/dev/null
}

has_marker() {
	"$KBARMAN" script "$1" 2>/dev/null | grep -q '^ *marker '
}

# A program that nobody can read, because who reads it is stopped: what comes after it waits.
killed_while_it_reads_a_program_it_leaves_what_waits() {
	mkdir home
	HOME=$PWD/home "$KBARMAN" record -q -g -a -o k.cap &
	pid=$!
	begun k.cap || return 1
	decoder=
	while [ ! "$decoder" ]; do
		cp "$TRUTH" first
		./first -s 1 >/dev/null
		decoder=$(pgrep -P $pid)
	done
	# shellcheck disable=SC2086 # one of them, or several
	kill -STOP $decoder
	cp "$THREADS" unread
	./unread 30 >/dev/null &
	worker=$!
	cp "$THREADS" marker
	tries=0
	until "$KBARMAN" recover -o r.cap k.cap.partial 2>said && has_marker r.cap; do
		./marker 1 >/dev/null
		sleep 0.2
		[ $((tries += 1)) -lt 100 ] || { cat said; break; }
	done
	! has_marker k.cap.partial || { echo "it did not wait"; tries=100; }
	# shellcheck disable=SC2086 # as above
	kill -KILL $pid $decoder
	wait $pid $worker 2>/dev/null
	"$KBARMAN" recover -o last.cap k.cap.partial 2>said && [ $tries -lt 100 ] && "$KBARMAN" check last.cap &&
		has_marker last.cap && grep -q 'had not yet unwound their stacks' said && return
	cat said
	return 1
}

a_clock_that_steps_changes_no_record() {
	before=$(date +%s)
	"$KBARMAN" record -a sleep 30 &
	pid=$!
	begun kbarman.cap || return 1
	date -s "@$(($(date +%s) + 86400))" >/dev/null
	sleep 1
	date -s "@$(($(date +%s) - 2 * 86400))" >/dev/null
	sleep 1
	date -s "@$(($(date +%s) + 86400))" >/dev/null
	kill -TERM $pid
	wait $pid
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	# the wall clock is that of the start
	anchor=$("$KBARMAN" dump --json kbarman.cap |
		sed -n 's/.*"unix_base_ns":\([0-9]*\)[0-9]\{9\}[,}].*/\1/p')
	span=$(span kbarman.cap)
	echo "anchor $anchor, before $before; span $span s"
	[ $((anchor - before)) -ge 0 ] && [ $((anchor - before)) -lt 600 ] && [ "$span" -lt 600 ]
}

long_processes_that_are_frozen_lose_nothing_but_what_is_counted() {
	if ! [ -w /sys/power/pm_test ] || ! grep -q freeze /sys/power/state; then
		echo 'SKIP: this kernel has no test of its suspend'
		return 0
	fi
	"$KBARMAN" record -a sleep 30 &
	pid=$!
	begun kbarman.cap || return 1
	echo freezer >/sys/power/pm_test
	# Linux waits 5 s in a loop whose speed it may have misjudged, but for the first CPU's.
	taskset -c 0 sh -c 'echo freeze >/sys/power/state' || return 1
	echo none >/sys/power/pm_test
	sleep 1
	kill -TERM $pid
	wait $pid
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	span=$(span kbarman.cap)
	echo "$span s"
	[ "$span" -ge 5 ]
}

a_reader_that_stops_loses_what_is_counted() {
	"$KBARMAN" record -m 64K -F 10000 -a sh -c "$busy" 2>said &
	pid=$!
	begun kbarman.cap || return 1
	kill -STOP $pid
	sleep "${STOP:-2}"
	kill -CONT $pid
	sleep 1
	touch stop
	wait $pid || return 1
	cat said
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	lost=$(sum_of kbarman.cap '^lost')
	echo "NOTE ${STOP:-2} s, $lost lost of $((lost + $(sum_of kbarman.cap '^written')))"
	[ "$lost" -gt 0 ] ||
		{ echo 'SKIP: this machine does not fill a buffer in that time'; return 0; }
	grep -q "lost $lost records" said
}

a_storm_of_forks_is_recorded_and_what_is_missing_counted() {
	# shellcheck disable=SC2016 # for the other shell
	record -o storm.cap sh -c 'i=0
		while [ $i -lt '"${FORKS:-300}"' ]; do (:) & i=$((i + 1)); done; wait' 2>said ||
		return 1
	cat said
	is_whole storm.cap && in_order storm.cap || return 1
	tasks=$("$KBARMAN" dump --json storm.cap | grep -c '"kind":"task"')
	missed=$(sum_of storm.cap '^missed.task')
	echo "NOTE $tasks tasks, $missed missed"
	[ $((tasks + missed)) -ge "${FORKS:-300}" ]
}

# many_threads OPTION...: sets named and missed. A thread that takes a name is two rows.
many_threads() {
	# a machine allows as many as it has memory for, and eight times that
	[ "$(cat /proc/sys/kernel/threads-max)" -gt $((${NR_THREADS:-300} + 1000)) ] ||
		echo $((${NR_THREADS:-300} + 1000)) >/proc/sys/kernel/threads-max
	record -o threads.cap "$@" "$THREADS" "${NR_THREADS:-300}" >out 2>said ||
		{ cat out said; return 1; }
	cat out said
	is_whole threads.cap && in_order threads.cap || return 1
	"$KBARMAN" dump --json threads.cap >json
	named=$(grep '"kind":"task"' json | grep -o '"task":"thread-[0-9]*"' | sort -u | wc -l)
	ran=$(sed -n 's/.*"type":"task_switch".*"tid":\([0-9]*\).*/\1/p' json | sort -u | wc -l)
	missed=$(sum_of threads.cap '^missed.task')
	echo "NOTE $named named, $ran ran, $missed missed"
	[ $((named + missed)) -ge "${NR_THREADS:-300}" ] && [ "$ran" -ge "${NR_THREADS:-300}" ]
}

every_one_of_many_threads_is_there() {
	[ -x "$THREADS" ] || { echo 'SKIP: the program is not built'; return 0; }
	many_threads || return 1
	[ "$missed" -eq 0 ] || grep -q "$missed tasks have no name.*--max-tasks" said
}

every_one_of_many_threads_has_its_name_where_there_is_room() {
	[ -x "$THREADS" ] || { echo 'SKIP: the program is not built'; return 0; }
	many_threads --max-tasks $((${NR_THREADS:-300} * 2 + 1000)) &&
		[ "$missed" -eq 0 ] && [ "$named" -eq "${NR_THREADS:-300}" ]
}

long_every_cpu_is_recorded() {
	# few samples: an emulated machine takes the CPUs one after the other
	# shellcheck disable=SC2016 # for the other shell
	record -F 10 -a -m 1M sh -c 'cpu=0
		while [ $cpu -lt '"$(nproc)"' ]; do taskset -c $cpu true || :; cpu=$((cpu + 1)); done' ||
		return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	cpus=$("$KBARMAN" dump --json kbarman.cap |
		sed -n 's/.*"kind":"record".*"cpu":\([0-9]*\),.*/\1/p' | sort -u | wc -l)
	echo "$cpus of $(nproc) CPUs"
	[ "$cpus" -eq "$(nproc)" ] && [ "$cpus" -ge "${KBARMAN_CPUS:-1}" ]
}

run_tests ends small_disk span is_recovered has_marker many_threads
