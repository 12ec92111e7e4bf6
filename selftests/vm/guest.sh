#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh guest.sh [module | records | idle | sums | causes | devices | some_devices |
#		     services | some_services | examples | without | lockdown]...
#
# What a VM does in a test run, in one boot: the kselftests of the module ($PROGRAMS of them; all by
# default), then the tool on the real thing (recordings for the host, and the tests of selftests/cli
# that need the device; the last one unloads the module), then what there is no way back from. Prints
# TAP as run_kselftest.sh does.
# Captures and reports are left in results/ for selftests/vm/check.py and waits.py, which look into
# them on the host.
#
# shellcheck disable=SC2317 # functions are called by name

export KBARMAN_TEST_VM=1
here=$PWD
rooms=${*:-module records idle devices examples without lockdown}

module() {
	tests=
	for t in ${PROGRAMS:-$(sed 's/.*://' kselftest/kselftest-list.txt)}; do
		[ "$t" = lockdown ] || tests="$tests -t kbarman:$t"
	done
	# shellcheck disable=SC2086 # a list
	sh kselftest/run_kselftest.sh $tests
}

lockdown() {
	sh kselftest/run_kselftest.sh -t kbarman:lockdown
}

# ---- the tool

# program NAME COMMAND...: a program that prints TAP, as run_kselftest.sh would show it
program() {
	name=$1
	shift
	echo "# selftests: kbarman: $name"
	{
		"$@" 2>&1
		echo $? >/run/kb/status
	} | sed -u 's/^/# /'
	read -r status </run/kb/status
	if [ "$status" -eq 0 ]; then
		echo "ok 1 selftests: kbarman: $name"
	else
		echo "not ok 1 selftests: kbarman: $name # exit=$status"
	fi
}

count=0 failed=0

# promise NAME COMMAND...: the command ends well
promise() {
	name=$1
	shift
	count=$((count + 1))
	if "$@" >/run/kb/said 2>&1; then
		echo "ok $count - $name"
	else
		echo "# exit status $?: $*"
		sed 's/^/# /' /run/kb/said
		echo "not ok $count - $name"
		failed=1
	fi
}

# record_truth NAME OPTION...: the program whose truth is known, and what it says it did
record_truth() {
	name=$1
	shift
	../kbarman record -F 2000 -o "$name.cap" "$@" -- ../truth -s 2 -r 8000 -p 1000 >"$name.out" 2>"$name.err" &&
		return
	status=$?
	cat "$name.out" "$name.err"
	return "$status"
}

# Something of everything: a program of ours, the kernel, a shared library; long enough for
# the shares of thousands of samples, which chance moves by less than a point.
workload='../truth -t 1 -s 3 -r 100 -p 100 >/dev/null
dd if=/dev/zero of=/dev/null bs=4k count=60000 2>/dev/null
dd if=/dev/zero of=/tmp/zeros bs=64k count=750 2>/dev/null
openssl dgst -sha256 /tmp/zeros >/dev/null'

# The same execution, sampled by perf and by kbarman at once.
record_beside_perf() {
	event=cycles
	perf stat -e cycles true 2>&1 | grep -q 'not supported' && event=cpu-clock
	echo -1 >/proc/sys/kernel/perf_event_paranoid
	perf record -q -e "$event" -c 1000000 -o perf.data -- \
		../kbarman record -e "$event" -c 1000000 -o perf.cap -- sh -c "$workload" &&
		perf report -f -i perf.data --stdio -q -F overhead,sample,comm,dso,symbol -t '|' \
			>perf.txt &&
		../kbarman bundle perf.cap &&
		../kbarman report --json --samples --sort task,image,symbol perf.cap >perf.json
}

# Programs as the distribution ships them: without frame pointers and symbols
record_stripped() {
	../kbarman record -F 1000 -g -o stripped.cap -- sh -c '
		xz -T1 -2 -c /usr/bin/openssl >/run/xz.out &
		openssl speed -seconds 1 -bytes 8192 -evp sha256 >/run/openssl.out 2>&1 &
		sqlite3 :memory: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c
			WHERE x < 200000) SELECT sum(x % 7) FROM c" >/run/sqlite3.out
		wait' 2>stripped.err || { cat stripped.err; return 1; }
	../kbarman script -k sample stripped.cap >stripped.script
}

# Programs whose waits are known. From memory: who waits for code from the disk waits once more.
record_waits() {
	cp ../waits /run/waits
	cat /proc/interrupts >waits.interrupts
	for d in /sys/bus/virtio/drivers/9pnet_virtio/virtio*; do
		! grep -qa '^host' "$d/mount_tag" || disk=${d##*/}
	done
	irq=$(sed -n "s/^ *\([0-9]*\):.* $disk-.*/\1/p" waits.interrupts | tail -n 1)
	cpus=$(cat "/proc/irq/$irq/effective_affinity_list") || cpus=0
	../kbarman record -a --latency -o waits.cap -- /run/waits ../waits "${cpus%%[,-]*}" \
		>waits.out 2>waits.err || {
		cat waits.err
		return 1
	}
	echo "disk=$disk" >>waits.out
}

record_mutexes() {
	../kbarman record -F 0 -o mutexes-glibc.cap -- ../mutexes >mutexes-glibc.out
}

records_and_reports() {
	promise records_the_system record_truth all -a
	promise records_a_command record_truth command
	for c in all command; do
		promise "reports_$c" sh -c "../kbarman report --json $c.cap >$c.json"
		promise "reports_${c}_for_people" sh -c "../kbarman report $c.cap >$c.txt"
	done
	promise records_beside_perf record_beside_perf
	# from memory: 9p takes a while to start a thousand programs
	cp -r ../names /run/names
	promise records_names_and_call_chains sh -c '../kbarman record -F 1000 -g -o names.cap \
		-- /run/names/names -s 0.4 -c '"${CHILDREN:-1000}"' >names.out 2>names.err || { cat names.err; exit 1; }'
	promise tells_names_and_call_chains sh -c \
		'../kbarman script -k sample names.cap >names.script 2>names.said'
	promise records_stripped_programs record_stripped
	promise records_known_waits record_waits
	promise records_mutexes record_mutexes
	echo "1..$count"
	return "$failed"
}

# record_late NAME PREFIX...: the system with wakeups and interrupts, while the idler does that
record_late() {
	verb=$1
	shift
	"$@" ../kbarman record -a --latency -m "${SIZE:-4M}" -o "$verb${IDLER_GAP:+-gaps}.cap" -- \
		../idler "$verb" >"$verb.out" 2>"$verb.err" &&
		return
	status=$?
	cat "$verb.out" "$verb.err"
	return "$status"
}

idle_and_late() {
	promise has_idle_states insmod ../idle_states.ko
	promise records_how_idle_states_are_left record_late leave
	promise tells_the_truth_of_it sh -c 'cat /proc/kbarman_idle >leave.log'
	promise records_idle_states_that_do_not_pay record_late misses ../idler around
	promise records_anything record_late random
	IDLER_GAP=1 SIZE=64K
	export IDLER_GAP
	promise records_anything_with_gaps record_late random
	unset IDLER_GAP SIZE
	promise has_no_idle_states_any_more rmmod idle_states
	echo "1..$count"
	return "$failed"
}

without_module() {
	promise unloads_after_all_that rmmod kbarman
	promise says_that_the_module_is_missing sh -c \
		'! ../kbarman record -o none.cap -- true 2>none.err && grep -q insmod none.err'
	promise leaves_nothing_where_it_did_not_record [ ! -e none.cap ]
	echo "1..$count"
	return "$failed"
}

# in_results NAME COMMAND: a program that leaves what it records there
in_results() {
	[ -e /dev/kbarman ] || insmod kbarman.ko
	mkdir -p results
	cd results || exit 1
	program "$@"
	cd "$here" || exit 1
}

records() {
	rm -rf results
	in_results tool records_and_reports
}

idle() {
	in_results idle idle_and_late
}

sums_of_times() {
	promise records_times_that_linux_sums_up record_late sums ../idler around
	echo "1..$count"
	return "$failed"
}

# For a machine whose time is that of its own instructions.
sums() {
	in_results sums sums_of_times
}

# Of the time of a period of 400 ms it has 20.
limited_cgroup() {
	mkdir -p /run/cgroup && mount -t cgroup2 none /run/cgroup && echo +cpu >/run/cgroup/cgroup.subtree_control &&
		mkdir /run/cgroup/limited && echo threaded >/run/cgroup/limited/cgroup.type &&
		echo 20000 400000 >/run/cgroup/limited/cpu.max
}

record_causes() {
	if [ -e ../kselftest/kbarman/virtio_blk.ko ]; then insmod ../kselftest/kbarman/virtio_blk.ko || return 1; fi
	limited_cgroup && ../kbarman record -a --latency --sources faults,syscalls -o causes.cap -- \
		../causes /dev/vda /run/cgroup/limited >causes.out
}

slow_requests() {
	promise records_requests_whose_causes_are_known record_causes
	echo "1..$count"
	return "$failed"
}

# For a machine whose disk takes long.
causes() {
	in_results causes slow_requests
}

# device_test NAME VARIABLE=VALUE...: a test of selftests/cli that needs the device
device_test() {
	name=$1
	shift
	[ -e /dev/kbarman ] || insmod kbarman.ko
	program "$name" env KBARMAN=./kbarman TMPDIR=/tmp "$@" sh "test_$name.sh"
}

devices() {
	device_test record_device MAP_READER=./map_reader
	device_test files_device THREADS=./threads
	device_test marks_device MARKS=./marks
}

# Those of their tests that tell most.
some_devices() {
	device_test record_device MAP_READER=./map_reader \
		ONLY='a_command_is_recorded_whole its_name_and_text_are_there
		kernel_text_and_symbols_are_there counters_are_read_at_switches_and_belong_to_tasks
		without_samples_there_are_switches_alone events_are_given_in_groups_and_one_after_the_other
		the_exit_status_passes_through the_whole_system_is_recorded_until_a_signal
		processes_are_recorded_to_their_end stacks_are_unwound_in_each_mode
		overwrite_mode_keeps_the_newest standard_output_gets_it_too
		flight_recorder_gives_the_last_moment_and_goes_on
		the_doctor_finds_nothing_in_the_way_and_the_other_recorder_is_not top_shows_who_runs
		wakeups_and_interrupts_are_recorded_if_asked_for what_tasks_wait_for_has_its_name
		system_calls_are_as_many_as_the_program_makes
		system_calls_are_as_many_as_strace_counts
		a_path_goes_through_sockets_to_their_peers'
	device_test files_device THREADS=./threads ONLY='a_full_disk_ends_a_recording_with_what_fits
		killed_at_any_moment_it_leaves_what_it_wrote
		killed_while_it_reads_a_program_it_leaves_what_waits'
	device_test marks_device MARKS=./marks
}

# What records all the time: the agent, triggers, metrics.
services() {
	device_test agent_device AGENT=./kbarmand KEEPER=./keeper
	device_test openmetrics_device
	device_test trigger_device OUTLIERS=./outliers
}

# Those of their tests that tell most, and less of each.
some_services() {
	device_test agent_device AGENT=./kbarmand KEEPER=./keeper \
		ONLY='one_agent_writes_captures_one_behind_the_other an_agent_that_is_killed_loses_nothing
		a_session_has_the_sources_that_it_names_alone
		what_was_recorded_since_the_boot_is_a_capture only_the_time_around_moments_is_kept'
	device_test openmetrics_device
	device_test trigger_device OUTLIERS=./outliers COUNT=5 \
		ONLY='every_delay_is_kept_with_its_reason every_mark_is_kept_and_no_other
		a_signal_writes_a_capture'
}

examples() {
	device_test examples_device EXAMPLES=./examples.txt
}

without() {
	cd results || exit 1
	program without_module without_module
	cd "$here" || exit 1
}

for room in $rooms; do
	$room
done
exit 0
