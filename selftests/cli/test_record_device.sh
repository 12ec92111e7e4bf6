#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `kbarman record` and the example map_reader on a real module: run it as root where
# /dev/kbarman is, in a VM for instance. Needs no more than busybox has.
#
#	KBARMAN=path of the tool  MAP_READER=path of the example  TMPDIR=where to work
#	CHILD, PIE=two programs of selftests/truth/part.c, which burn in functions of their own
#	PEERS=selftests/vm/peers.c  THREADS=selftests/vm/threads.c

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. "${lib%test.sh}record.sh"
lib_beside=$(readlink -f "$(dirname "$0")")
built_beside MAP_READER map_reader
built_beside CHILD names/part-child
built_beside PIE names/part-static_pie
built_beside PEERS peers
built_beside THREADS threads

# ---- promises ----

a_command_is_recorded_whole() {
	# shellcheck disable=SC2016 # the other shell's
	record -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done' || return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	[ "$(sum_of kbarman.cap '^lost')" -eq 0 ] || return 1
	[ "$(facts kbarman.cap | sed -n 's/^ext=//p')" = 1 ]
}

its_name_and_text_are_there() {
	cp "$(readlink -f /proc/$$/exe)" sh
	record ./sh -c 'echo' || return 1
	"$KBARMAN" dump --json kbarman.cap >json
	grep -q '"kind":"task".*"task":"sh"' json && grep -q "\"kind\":\"image\".*$dir/sh\"" json
}

kernel_text_and_symbols_are_there() {
	record true || return 1
	"$KBARMAN" dump --json kbarman.cap | grep -q '"kind":"image".*\[kernel.kallsyms\]' &&
		grep -q ' _stext$' kbarman.cap.kallsyms
}

# The value of counter $1 of all records of kind $2, or of the task $3 alone
counts() {
	"$KBARMAN" dump --json kbarman.cap | grep "\"type\":\"$2\"" | grep "${3:+\"tid\":$3,}" |
		sed -n "s/.*\"counters\":\[\([^]]*\)\].*/\1/p" |
		awk -F, -v i="$1" '{ sum += $i } END { printf "%.0f\n", sum }'
}

counters_are_read_at_switches_and_belong_to_tasks() {
	# shellcheck disable=SC2016 # the other shell's
	record -e page-faults,context-switches -F 0 --read-counters switch -- \
		sh -c 'i=0; while [ $i -lt 50 ]; do i=$((i + 1)); sleep 0; done' || return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	"$KBARMAN" report kbarman.cap >said && "$KBARMAN" report --json kbarman.cap >json || return 1
	cat said
	grep -q '^# Counters by task' said && grep -q 'No samples with an address' said || return 1
	# what the report adds up is what the records say, and a program that runs has faults
	all=$(counts 1 sample)
	sum=$(sed -n 's/.*"kind":"task_counters".*"counters":\[\([0-9]*\),.*/\1/p' json |
		awk '{ sum += $1 } END { printf "%.0f\n", sum }')
	[ "$all" -gt 1000 ] && [ "$sum" -eq "$all" ] && [ "$(counts 1 sample_pc)" -eq 0 ]
}

groups_take_turns_and_have_errors() {
	# shellcheck disable=SC2016 # the other shell's
	record -a -F 0 --rotate 10 -e 'cpu-clock,{page-faults,context-switches},{minor-faults,cpu-migrations}' \
		-- sh -c 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); sleep 0; done' || return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	facts kbarman.cap | grep -E '^turn\.' >turns
	[ "$(grep -c '^turn\.0\.' turns)" -eq 4 ] || { cat turns; return 1; }
	"$KBARMAN" report kbarman.cap >said && "$KBARMAN" report --json kbarman.cap >json || return 1
	grep -A 30 '^# Counters by task' said
	grep -q 'page-faults   error  time' said && grep -q '^#  100.00%.* all tasks$' said || return 1
	# faults and minor faults are the same here, whoever counted them
	grep '"kind":"all_counters"' json
	grep '"kind":"all_counters"' json | sed 's/.*"estimates":\[null,\([^]]*\)\].*/\1/' |
		awk -F, '{ exit !($1 > 500 && $3 > 500 && $1 < 3 * $3 && $3 < 3 * $1) }'
}

without_samples_there_are_switches_alone() {
	record -a -F 0 -- sh -c 'sleep 0.2; sleep 0.1' || return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	"$KBARMAN" dump --json kbarman.cap >json
	grep -q '"type":"task_switch"' json && ! grep -q '"type":"sample' json || return 1
	"$KBARMAN" report kbarman.cap
}

counters_are_read_periodically_beside_samples() {
	record -a -e cpu-clock,page-faults -F 100 --read-counters 500 sleep 1 || return 1
	is_whole kbarman.cap && in_order kbarman.cap || return 1
	[ "$(facts kbarman.cap | sed -n 's/^counts=//p')" = 2000000 ] || return 1
	[ "$(counts 1 sample)" -gt 0 ] && [ "$(counts 1 sample_pc)" -gt 0 ]
}

events_are_given_in_groups_and_one_after_the_other() {
	for list in '{cpu-clock,page-faults}:u context-switches' 'cpu-clock:u {page-faults:u,context-switches}'; do
		record -a -e "${list% *}" -e "${list#* }" -F 100 --read-counters switch sleep 1 || return 1
		is_whole kbarman.cap || return 1
		[ "$(facts kbarman.cap | sed -n 's/^counter\.0\.[0-9]*=//p' | tr '\n' ' ')" = \
			'cpu-clock:u page-faults:u context-switches ' ] || return 1
	done
	"$KBARMAN" top -n 1 -d 0.5 -e '{cpu-clock,page-faults}:u' -e context-switches >said || return 1
}

what_ran_before_the_recorder_is_recorded() {
	with_module taken_over boot=usual,latency,chains boot_hz=200 ring_bytes=4194304
}

taken_over() {
	cp "$(readlink -f /proc/$$/exe)" early
	# shellcheck disable=SC2016 # the other shell's
	./early -c 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
	"$KBARMAN" list --sessions >said && cat said && grep -q 'recording *stream' said || return 1
	record --boot -o boot.cap true || return 1
	is_whole boot.cap && in_order boot.cap || return 1
	[ "$(sum_of boot.cap '^lost')" -eq 0 ] || return 1
	"$KBARMAN" report --sort task boot.cap >said && cat said && grep -q ' early' said || return 1
	record --boot true 2>said
	[ $? -eq 2 ] && cat said && grep -q boot=usual said
}

# CPUs of one kind: an event that they lack is a mistake.
events_that_no_cpu_has_are_refused() {
	type=/sys/bus/event_source/devices/msr/type
	[ -e "$type" ] || { echo "SKIP no second PMU"; return 0; }
	# a PMU that no machine has the event of, beside another PMU
	record -a -e 'r1:u,msr/tsc/,page-faults' -o none.cap true 2>said
	[ $? -eq 2 ] && cat said && grep -q "event '" said && [ ! -e none.cap ]
}

# Two PMUs, each of other CPUs: those of selftests/vm/module, if they are beside the tests.
each_cpu_counts_what_its_pmu_has() {
	pmus=
	for f in "$lib_beside/core_pmus.ko" "$lib_beside/kselftest/kbarman/core_pmus.ko"; do
		[ ! -e "$f" ] || pmus=$f
	done
	[ "$pmus" ] || { echo "SKIP no core_pmus.ko"; return 0; }
	insmod "$pmus" big=0 little=1 generic=1 || return 1
	counts_on_two_pmus
	status=$?
	rmmod core_pmus || return 1
	return $status
}

counts_on_two_pmus() {
	for list in kb_big/cycles/,kb_little/cycles/,kb_little/instructions/ cycles; do
		record -a -e "$list" -F 200 --read-counters switch -o cores.cap sleep 1 2>said || { cat said; return 1; }
		cat said
		is_whole cores.cap && in_order cores.cap || return 1
		facts cores.cap | grep -E '^(counter|uncounted|counted)\.'
		"$KBARMAN" report cores.cap >report.txt || return 1
		"$KBARMAN" info cores.cap >info.txt || return 1
		case $list in
		cycles)
			! grep -q "can't count" said && grep -q '^# events   : cycles$' report.txt || return 1
			;;
		*)
			grep -q "CPU 0 can't count event 'kb_little/cycles/'" said &&
				grep -q 'kb_big/cycles/ on CPU 1$' report.txt &&
				grep -q 'kb_little/instructions/ on CPU 0$' info.txt || return 1
			;;
		esac
	done
	# another event must not sample as often as the one that is lost
	record -a -e kb_big/cycles/,page-faults -F 200 --read-counters switch -o lost.cap sleep 1 2>said || return 1
	cat said
	grep -q "CPU 1 takes no samples: put an event of its PMU beside 'kb_big/cycles/'" said || return 1
	facts lost.cap | grep -q '^unsampled\.1\.0=kb_big/cycles/$' && is_whole lost.cap || return 1
	# nothing that any CPU can count
	record -a -e kb_big/narrow/,kb_little/wide/ -o none.cap true 2>said
	[ $? -eq 2 ] && cat said && grep -q 'no CPU can count' said && [ ! -e none.cap ]
}

the_exit_status_passes_through() {
	record sh -c 'exit 7'
	[ $? -eq 7 ] || return 1
	record sh -c 'kill -9 $$'
	[ $? -eq 137 ] || return 1
	record ./no-such-command
	[ $? -eq 127 ] || return 1
	is_whole kbarman.cap
}

the_whole_system_is_recorded_until_a_signal() {
	"$KBARMAN" record -o sys.cap &
	begun sys.cap || return 1
	sleep 1.2
	kill -TERM $!
	wait $! || return 1
	is_whole sys.cap && [ ! -e sys.cap.partial ]
}

processes_are_recorded_to_their_end() {
	sh -c 'while [ ! -e stop ]; do :; done' &
	pid=$!
	"$KBARMAN" record -p $pid &
	begun kbarman.cap || return 1
	sleep 0.5
	touch stop
	wait $! || return 1
	is_whole kbarman.cap && "$KBARMAN" dump --json kbarman.cap | grep -q "\"tid\":$pid"
}

# How many chains of a capture reach the start of their program
whole_chains() {
	facts "$1" | sed -n 's/^stacks.whole=//p'
}

stacks_are_unwound_in_each_mode() {
	# shellcheck disable=SC2016 # the other shell's
	busy='i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
	for mode in stream overwrite; do
		record --mode $mode -g -o $mode.cap -- sh -c "$busy" || return 1
		is_whole $mode.cap && facts $mode.cap | grep -q '^callchain=.*,stack' || return 1
		[ "$(whole_chains $mode.cap)" -gt 10 ] || return 1
	done
	"$KBARMAN" script overwrite.cap | grep -q ' _start+0x'
}

# How many waits of the capture $1 are shorter and longer than $2 ns, and how many of them have or
# lack a call chain, and should not. The clock of the file may differ a little from the module's.
count_waits() {
	"$KBARMAN" dump --json "$1" | grep '"type":"task_switch"' |
		sed 's/.*"cpu":\([0-9]*\),.*"at_ns":\([0-9]*\),"tid":\([0-9]*\),/\1 \2 \3 /' |
		awk -v min="$2" '{
			if (running[$1] && running[$1] in since)
				delete since[running[$1]]
			if (running[$1]) {
				since[running[$1]] = $2
				chain[running[$1]] = /"stack"/
			}
			running[$1] = $3
			if (!($3 in since))
				next
			wait = $2 - since[$3]
			short += wait < min * 0.999
			long += wait > min * 1.001
			wrong += wait < min * 0.999 && chain[$3]
			wrong += wait > min * 1.001 && !chain[$3]
			delete since[$3]
		} END { print short + 0, long + 0, wrong + 0 }'
}

only_long_waits_keep_their_chains() {
	# shellcheck disable=SC2016 # the other shell's
	busy='i=0; while [ $i -lt 15 ]; do i=$((i + 1)); echo | cat >/dev/null; sleep 0.1; done'
	for mode in stream overwrite; do
		record --mode $mode -a --off-cpu --off-cpu-min 0.02 -o $mode.cap -- sh -c "$busy" 2>said
		status=$?
		cat said
		[ $status -eq 0 ] && is_whole $mode.cap && in_order $mode.cap || return 1
		grep -q 'call chains of waits shorter than --off-cpu-min were left out' said || return 1
		facts $mode.cap | grep '^off_cpu'
		[ "$(facts $mode.cap | sed -n 's/^off_cpu_min=//p')" = 20000000 ] || return 1
		counts=$(count_waits $mode.cap 20000000)
		echo "$mode: short waits, long ones, wrong ones: $counts"
		echo "$counts" | awk '{ exit !($1 > 10 && $2 > 10 && $3 == 0) }' || return 1
	done
}

a_buffer_that_is_too_small_for_stacks_gets_frame_pointers() {
	record -m 64K -g -- true && facts kbarman.cap | grep -q '^callchain=both$' || return 1
	! record -m 64K --call-graph stack -- true 2>said || return 1
	cat said
	grep -q 'eighth of a buffer' said
}

overwrite_mode_keeps_the_newest() {
	record --mode overwrite -m 64K -F 5000 -a sleep 3 || return 1
	is_whole kbarman.cap && in_order kbarman.cap
}

only_the_cpus_asked_for() {
	record -C 0 -a sleep 0.3 || return 1
	is_whole kbarman.cap && ! "$KBARMAN" dump --json kbarman.cap | grep -q '"cpu":1'
}

standard_output_gets_it_too() {
	record -o - sh -c 'echo not in the capture' | cat >x.cap
	is_whole x.cap
}

what_the_hardware_cannot_do_is_named() {
	record -e r01,r02,r03,r04,r05,r06,r07,r08,r09,r0a,r0b,r0c,r0d,r0e,r0f,r10 true >said 2>&1
	[ $? -eq 2 ] || return 1
	cat said
	grep -q "event 'r[0-9a-f]*' on CPU" said && [ "$(wc -l <said)" -eq 1 ]
}

a_cpu_that_goes_and_comes_is_recorded() {
	online=/sys/devices/system/cpu/cpu1/online
	[ -e $online ] || { echo 'SKIP: CPU 1 is not there, or not removable'; return 0; }
	"$KBARMAN" record -o hot.cap &
	begun hot.cap || return 1
	echo 0 >$online; sleep 0.3
	echo 1 >$online; sleep 0.5
	kill -TERM $!
	wait $! || return 1
	is_whole hot.cap && in_order hot.cap
}

# "ok", "warn" or "FAIL", as the doctor says of a check
verdict_of() {
	"$KBARMAN" doctor | awk -v name="$1" '$2 == name { print $1 }'
}

the_doctor_finds_nothing_in_the_way_and_the_other_recorder_is_not() {
	"$KBARMAN" doctor || return 1
	[ "$(verdict_of device)" = ok ] && [ "$(verdict_of session)" = ok ] || return 1
	"$KBARMAN" record -o sys.cap &
	begun sys.cap || return 1
	verdict=$(verdict_of session)
	kill -TERM $!
	wait $! || return 1
	[ "$verdict" = ok ]
}

flight_recorder_gives_the_last_moment_and_goes_on() {
	export KBARMAN_RUNTIME_DIR="$PWD"
	"$KBARMAN" flight status && { echo 'status before start'; return 1; }
	"$KBARMAN" flight start -m 256K || return 1
	"$KBARMAN" flight start && { echo 'a second one'; return 1; }
	"$KBARMAN" flight status || return 1
	cp "$(command -v sleep)" ./lastone
	i=0
	while [ $i -lt 3 ]; do
		i=$((i + 1))
		./lastone 0.01 &
		last=$!
		wait $last
		"$KBARMAN" snapshot -o snap$i.cap || return 1
		"$KBARMAN" check snap$i.cap || return 1
		"$KBARMAN" dump --json snap$i.cap >snap.json
		# it came, and the last that is known of it is that it went
		grep '"type":"task_switch"' snap.json | grep -q "\"tid\":$last,\|\"tid\":$last}" || {
			echo "task $last is not in snapshot $i"; return 1; }
		tr '\0' '\n' <snap$i.cap | grep -q '^kbarman.exit' || { echo 'no exit'; return 1; }
	done
	pid=$(sed -n 1p kbarman-flight.pid)
	kill -USR1 "$pid"
	i=0
	until ls flight-*.cap >/dev/null 2>&1; do
		i=$((i + 1)); sleep 0.1
		[ $i -lt 100 ] || { echo 'nothing on SIGUSR1'; return 1; }
	done
	"$KBARMAN" flight status || return 1
	"$KBARMAN" flight stop || return 1
	"$KBARMAN" check flight.cap flight-*.cap || return 1
	! "$KBARMAN" flight status && ! kill -0 "$pid" 2>/dev/null
}

top_shows_who_runs() {
	sh -c 'while [ ! -e stop ]; do :; done' &
	busy=$!
	"$KBARMAN" top -n 2 -d 1 >screen || return 1
	"$KBARMAN" top -j -n 1 -d 1 >lines || return 1
	touch stop
	cat screen
	# half a CPU at least, however slow the machine is
	awk -v tid=$busy '$5 == tid { gsub("%", "", $1); found = found || $1 > 50 } END { exit !found }' \
		screen || { echo "task $busy is not seen to run"; return 1; }
	grep -q "\"kind\":\"task\",\"tid\":$busy," lines
}

top_says_what_tasks_wait_for() {
	{ until [ -e stop ]; do sleep 0.05; echo; done; } | cat >eaten &
	"$KBARMAN" top -n 2 -d 1 >screen || { touch stop; return 1; }
	"$KBARMAN" top -j -n 1 -d 1 >lines || { touch stop; return 1; }
	touch stop
	wait $!
	cat screen
	grep -q 'Task, and what it waits for$' screen || return 1
	# it reads, and the shell writes
	grep '"kind":"waits_for"' lines | grep '"task":"cat"' | grep '"object":"pipe"' |
		grep -q '"name":"[^"]* -> cat [0-9]*"' || { cat lines; return 1; }
	# only programs say what they wait for
	! grep '"kind":"waits_for"' lines | grep -E '"task":"(kworker|rcu|ksoftirqd|migration)'
}

the_example_prints_its_records() {
	[ -x "$MAP_READER" ] || { echo 'SKIP: it is not built'; return 0; }
	"$MAP_READER" 0 >printed || return 1
	tail -3 printed
	grep -q 'task switch to task' printed && grep -q 'sample with PC' printed
}

# Two programs at one path, one of them for who is in a mount namespace of its own.
# shellcheck disable=SC2016 # the other shell's
run_two='./program 1000000 & one=$!
unshare -m sh -c "mount --bind other/program program && exec ./program 1000000" & two=$!
echo $one $two >pids
for pid in $one $two; do
	until grep -qx program /proc/$pid/comm; do
		[ -e /proc/$pid ] || exit 1
		sleep 0.1
	done
	# the shell that it was before has run, too
	before=$(awk "{ print \$14 }" /proc/$pid/stat)
	until awk "{ exit \$14 < $before + 30 }" /proc/$pid/stat; do
		[ -e /proc/$pid ] || exit 1
		sleep 0.1
	done
done'

# The capture has samples in the functions of both, and complains of nothing.
has_both() {
	"$KBARMAN" report --json --sort image,symbol kbarman.cap >json 2>said || return 1
	cat said
	grep '"symbol":"child_burn"' json | grep -q "\"$dir/program\"" &&
		grep '"symbol":"static_pie_burn"' json | grep -q "\"$dir/program\"" &&
		! grep -q '/program' said
}

programs_of_one_path_have_names_of_their_own() {
	[ -x "$PIE" ] || { echo 'SKIP: the programs are not built'; return 0; }
	mkdir other && cp "$CHILD" program && cp "$PIE" other/program
	record -F 1000 -o kbarman.cap sh -c "$run_two" 2>said
	status=$?
	cat said
	files=$("$KBARMAN" dump --json kbarman.cap | grep "\"$dir/program\"" |
		grep -o '"file":"[^"]*"' | sort -u)
	mv kbarman.cap.symbols saved
	# as they are there, and with what was saved when they are gone
	has_both
	alive=$?
	# shellcheck disable=SC2046 # two of them
	kill -KILL $(cat pids)
	mv saved kbarman.cap.symbols
	rm program other/program
	[ $status -eq 0 ] && [ $alive -eq 0 ] && has_both || return 1
	echo "$files"
	[ "$(echo "$files" | wc -l)" -eq 2 ] || return 1
	"$KBARMAN" convert --to folded -o folded kbarman.cap || return 1
	grep -q 'child_burn' folded && ! grep -qF 'kbarman.file=' folded
}

a_program_that_is_copied_up_meanwhile_keeps_its_name() {
	[ -x "$CHILD" ] || { echo 'SKIP: the program is not built'; return 0; }
	grep -q overlay /proc/filesystems || { echo 'SKIP: no overlayfs here'; return 0; }
	mkdir disk merged && mount -t tmpfs tmpfs disk || return 1
	mkdir disk/lower disk/upper disk/work && cp "$CHILD" disk/lower/program
	mount -t overlay -o lowerdir=disk/lower,upperdir=disk/upper,workdir=disk/work overlay merged
	record -F 1000 sh -c 'merged/program 500; ln merged/program merged/link && merged/program 500'
	"$KBARMAN" dump --json kbarman.cap | grep "$dir/merged/program" | grep -o '"file":"[^"]*"' |
		sort | uniq -c
	mv kbarman.cap.symbols saved
	"$KBARMAN" report --json --sort image,symbol kbarman.cap >json 2>said
	mv saved kbarman.cap.symbols
	copied=$(ls disk/upper)
	umount merged
	umount disk
	"$KBARMAN" report --json --sort image,symbol kbarman.cap >bundled 2>>said
	cat said
	for file in json bundled; do
		grep "$dir/merged/program" $file
		[ "$(grep -c '"symbol":"child_burn"' $file)" -eq 1 ] || return 1
	done
	echo "$copied" | grep -q program && ! grep -q /program said
}

wakeups_and_interrupts_are_recorded_if_asked_for() {
	record true || return 1
	! facts kbarman.cap | grep -e '^sources=' -e '^irq\.' || return 1
	record -a --latency -o late.cap sh -c 'sleep 1; :' || return 1
	is_whole late.cap && in_order late.cap && "$KBARMAN" check late.cap || return 1
	facts late.cap | grep '^sources=wake,migrate,irq,softirq' && facts late.cap | grep '^irq\.' || return 1
	"$KBARMAN" script late.cap >said || return 1
	for event in sched:sched_waking sched:sched_wakeup_new irq:softirq_raise irq:softirq_entry \
		irq:softirq_exit; do
		grep -m 1 " $event: " said || return 1
	done
	# its timer wakes it; in which context depends on the machine
	grep -m 1 'sched:sched_waking: comm=sleep pid=[1-9][0-9]* target_cpu=[0-9]*$' said || return 1
	grep -m 1 -e ' irq:irq_handler_entry: irq=[0-9]* name=' -e ' ipi:ipi_entry: ' said || return 1
	for format in html perfetto chrome firefox; do
		"$KBARMAN" convert late.cap --to $format -o late.$format || return 1
	done
	"$KBARMAN" record --sources wake,x -o x.cap true
	[ $? -eq 2 ] && [ ! -e x.cap ]
}

system_calls_are_as_many_as_the_program_makes() {
	record --sources syscalls -- dd if=/dev/zero of=/dev/null bs=1 count=1000 status=none || return 1
	is_whole kbarman.cap && in_order kbarman.cap && "$KBARMAN" check kbarman.cap || return 1
	facts kbarman.cap | grep '^sources=syscalls' || return 1
	"$KBARMAN" report --syscalls kbarman.cap && "$KBARMAN" report --syscalls --json kbarman.cap >json || return 1
	cat json
	grep '"task":"dd","call":"write"' json | grep -q '"calls":1000,"errors":0,"unbegun":0,'
}

# Of processes that come and go, and of threads. None of them is killed in a call, which strace would not count.
system_calls_are_as_many_as_strace_counts() {
	command -v strace >/dev/null || { echo "SKIP no strace"; return 0; }
	# shellcheck disable=SC2016 # the other shell's
	record --sources syscalls -m 4M -- strace -f -c -o counted sh -c '
		"$0" 20 && seq 50 | sort -r | tail -n 3 && ls /nowhere; sleep 0.1' "$THREADS" || return 1
	is_whole kbarman.cap && [ "$(sum_of kbarman.cap '^lost')" -eq 0 ] || return 1
	"$KBARMAN" report --syscalls --json kbarman.cap | grep -v '"task":"\(kbarman\|strace\)"' |
		sed -n 's/.*"call":"\([^"]*\)",.*"calls":\([0-9]*\),"errors":\([0-9]*\),.*/\1 \2 \3/p' |
		awk '{ calls[$1] += $2; errors[$1] += $3 } END { for (c in calls) print c, calls[c], errors[c] }' >ours
	# its lines are: share seconds usecs/call calls [errors] call
	awk '$1 ~ /^[0-9.]+$/ && $NF !~ /^(total|rt_sigreturn)$/ { print $NF, $4, NF == 6 ? $5 : 0 }' counted >theirs
	[ "$(wc -l <theirs)" -gt 20 ] && ! sort ours theirs | uniq -u | grep .
}

a_recording_runs_beside_a_flight_recorder() {
	export KBARMAN_RUNTIME_DIR="$PWD"
	"$KBARMAN" flight start -m 256K || return 1
	"$KBARMAN" record -- sleep 2 &
	pid=$!
	begun kbarman.cap || return 1
	"$KBARMAN" list --sessions || return 1
	"$KBARMAN" list --sessions -j >sessions.json
	"$KBARMAN" snapshot -o snap.cap && "$KBARMAN" check snap.cap || return 1
	"$KBARMAN" flight status -j >flight.json && "$KBARMAN" top -n 1 -d 0.2 >top.txt || return 1
	"$KBARMAN" doctor | grep 'kbarman (process' || return 1
	wait $pid || return 1
	"$KBARMAN" flight stop || return 1
	cat sessions.json flight.json
	[ "$(grep -c '"kind":"session".*"state":"recording"' sessions.json)" -eq 2 ] || return 1
	grep -q '"ring_bytes":262144' flight.json && grep '"mode":"stream"' sessions.json | grep -q "\"pid\":$pid," ||
		return 1
	is_whole kbarman.cap && in_order kbarman.cap && "$KBARMAN" check flight.cap &&
		[ "$(sum_of kbarman.cap '^lost')" -eq 0 ]
}

# Two readings, with what the kernel knows of their error: what `merge --machines` needs.
the_wall_clock_is_read_at_both_ends() {
	before=$(date +%s)
	"$KBARMAN" record -o one.cap -- sleep 1 && "$KBARMAN" record -o two.cap -- sleep 1 || return 1
	"$KBARMAN" flight start -m 256K && sleep 1 && "$KBARMAN" snapshot -o three.cap && "$KBARMAN" flight stop ||
		return 1
	for capture in one two three; do
		facts $capture.cap | grep '^realtime'
		facts $capture.cap | grep -q '^realtime_end=[0-9]*,[0-9]*$' || return 1
		facts $capture.cap | grep -q '^realtime_error_end=[01],[0-9]*,[0-9]*$' || return 1
	done
	facts one.cap | grep -q '^realtime_error_base=[01],' || return 1
	# a copy of a session that runs does not know how it was at its start
	facts three.cap | grep -q '^realtime_error_base=' && return 1
	"$KBARMAN" merge --machines -j -o all.perfetto one.cap two.cap three.cap >machines.json || return 1
	cat machines.json
	awk -v before="$before" -F'[:,]' '
		/"kind":"machine"/ {
			for (i = 1; i < NF; i++) {
				if ($i ~ /from_unix_ns/) from = $(i + 1)
				if ($i ~ /until_unix_ns/) until = $(i + 1)
				if ($i ~ /rate_ppm/) ppm = $(i + 1)
			}
			n++
			seconds = (until - from) / 1e9
			if (seconds < 0.9 || from / 1e9 < before - 1 || ppm > 500 || ppm < -500)
				bad = 1
			print seconds, ppm
		}
		END { exit !(n == 3 && !bad) }' machines.json
}

# Names of what tasks wait for are looked for while these tasks are there.
what_tasks_wait_for_has_its_name() {
	command -v flock >/dev/null || { echo "SKIP no flock"; return 0; }
	while [ ! -e stop ]; do sleep 0.1; echo; done | cat >/dev/null &
	reader=$!
	flock held sh -c 'touch has; while [ ! -e stop ]; do sleep 0.1; done' &
	holder=$!
	until [ -e has ]; do sleep 0.1; done
	"$KBARMAN" record -a -o waits.cap &
	recorder=$!
	begun waits.cap || { touch stop; kill $recorder; wait; return 1; }
	flock held true &
	waiter=$!
	i=0
	until facts waits.cap.partial >names &&
		grep -q "^object\.5\.[0-9]*\.0\.0=.* [0-9]* -> [^ ]* $reader\$" names &&
		grep -q "^object\.3\.[0-9]*\.[0-9]*\.0=$PWD/held\$" names; do
		i=$((i + 1))
		[ $i -lt 60 ] || { cat names; touch stop; kill $recorder; wait; return 1; }
		sleep 2
	done
	grep '^object' names
	touch stop
	wait $reader && wait $holder && wait $waiter || return 1
	kill -TERM $recorder
	wait $recorder || return 1
	is_whole waits.cap && "$KBARMAN" report --waits --percent-limit 0 waits.cap >said || return 1
	cat said
	grep -q "  read pipe [0-9]*: .* -> [^ ]* $reader\$" said && grep -q "  flock $PWD/held\$" said
}

# How many links of the path in the file json are of that kind, and of the task.
links() {
	grep -c "\"what\":\"$1\".*\"task\":\"$2\"" json
}

a_path_goes_through_sockets_to_their_peers() {
	"$PEERS" stop &
	talking=$!
	"$KBARMAN" record -a --latency -o peers.cap &
	recorder=$!
	begun peers.cap || { touch stop; kill $recorder; wait; return 1; }
	i=0
	until facts peers.cap.partial >names && grep -c '^object\.6\..*=tcp 127\.0\.0\.1:' names | grep -qx 2; do
		i=$((i + 1))
		[ $i -lt 60 ] || { cat names; touch stop; kill $recorder; wait; return 1; }
		sleep 2
	done
	touch stop
	wait $talking || return 1
	kill -TERM $recorder
	wait $recorder || return 1
	is_whole peers.cap && "$KBARMAN" report --critical-path client --time 0, peers.cap >said || return 1
	head -n 40 said
	# what it did in all of the time: back from its end the path may leave it for good, to who makes the file stop
	"$KBARMAN" report --critical-path client --time 0, --json peers.cap >json || return 1
	# each byte goes to the server and comes back, and a timer ends the millisecond between them
	there=$(links run server) back=$(links run client)
	echo "$there of the server, $back of the client"
	[ "$there" -ge 20 ] && [ "$back" -ge 20 ]
}

# ---- all of them ----

run_tests taken_over counts_on_two_pmus verdict_of has_both counts whole_chains count_waits \
	links
