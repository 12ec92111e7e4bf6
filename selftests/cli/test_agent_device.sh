#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kbarmand on a real module: files one behind the other, nothing lost and nothing twice whatever
# happens to the agent and its disk. selftests/lib/device_test.sh says how to run it; besides
#
#	KEEPER=path of selftests/vm/keeper.c
#	AGENT_KILLS=10	how often the agent is killed

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. "${lib%test.sh}record.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/device_parts.sh
. "${lib%test.sh}parts.sh"
built_beside KEEPER keeper
built_beside AGENT kbarmand

# configure [LINE...]: of the one session
configure() {
	mkdir -p caps
	cat >conf <<-END
		[agent]
		folder = $PWD/caps
		folder_max = ${FOLDER_MAX:-1G}
		keep_free = 0
		state = $PWD/state
		[session all]
		$(for line; do echo "$line"; done)
	END
}

# Switches tasks until the file `stop` is there: who reads waits for who writes.
busy() {
	while [ ! -e stop ]; do echo; done | while read -r line; do :; done
}

one_agent_writes_captures_one_behind_the_other() {
	configure 'file_time = 1s' 'buffer = 4M'
	busy &
	"$AGENT" -c conf &
	pid=$!
	until_true nr_captures 4
	[ "$(find caps -name '*.part' | wc -l)" -le 2 ] || return 1
	"$AGENT" -c conf --status || return 1
	kill -TERM $pid
	wait $pid || return 1
	touch stop
	wait
	[ "$(find caps -name '*.part' | wc -l)" -eq 0 ] && have_all && parts_follow || return 1
	for c in $(captures); do
		is_whole "$c" && in_order "$c" || return 1
		"$KBARMAN" report "$c" >/dev/null || return 1
	done
	[ ! -e state ] && [ "$(sum_of "$(captures | tail -n 1)" '^part_lost')" -eq 0 ]
}

an_agent_that_is_killed_loses_nothing() {
	configure 'file_time = 1s' 'buffer = 4M'
	busy &
	"$KEEPER" -k "${AGENT_KILLS:-10}" -l 1 -m 1500 "$AGENT" -k -c conf >kept 2>said &
	pid=$!
	until_true grep -q 'killed enough' kept || { i=0; until_true grep -q 'killed enough' kept; }
	sleep 1
	# without the section the session ends
	sed -i 's/session all/session other/' conf
	kill -HUP $pid
	until_true sh -c 'ls caps/other-*' || { cat kept said; return 1; }
	rm -f caps/other-*
	kill -TERM $pid
	wait $pid
	touch stop
	wait
	rm -f caps/other-*
	cat said
	have_all && parts_follow
}

# Each kind of source alone: what a session has no use for, the module refuses.
a_session_has_the_sources_that_it_names_alone() {
	cat >conf <<-END
		[agent]
		folder = $PWD/caps
		keep_free = 0
		state = $PWD/state
		[session switches]
		sources = sched
		[session marks]
		sources = marks
	END
	mkdir caps
	begin
	until_true status_is sessions 2
	two=$?
	ended
	cat said
	return $two
}

# Runs the agent with its messages in `said`, until `ended`.
begin() {
	"$AGENT" -c conf 2>>said &
	pid=$!
	until_true [ -e state ]
}

ended() {
	kill -TERM "$pid"
	wait "$pid"
}

# status_is KEY PATTERN: of the state, which is rewritten every 5 s
status_is() {
	grep -q "^$1=$2" state
}

# All that the files say is lost is what the kernel counted.
losses_are_told() {
	told=0
	for c in $(captures); do
		told=$((told + $(sum_of "$c" '^lost')))
	done
	counted=$(sum_of "$(captures | tail -n 1)" '^part_lost')
	echo "$told lost records told, $counted counted"
	[ "$told" -eq "$counted" ]
}

a_full_disk_is_counted_and_told_and_gone_on_from() {
	mkdir caps && mount -t tmpfs -o size=8m tmpfs caps || return 1
	configure 'buffer = 64K' 'file_max = 1M' 'file_time = 2s'
	busy &
	begin
	until_true nr_captures 2
	dd if=/dev/zero of=caps/rest bs=4k 2>/dev/null
	until_true status_is health trouble && until_true status_is session.all.lost '[1-9]'
	full=$?
	"$AGENT" -c conf --status >status
	rm caps/rest
	until_true status_is health well && sleep 3
	well=$?
	ended
	touch stop
	wait
	cat said status
	have_all && parts_follow && losses_are_told
	good=$?
	lost=$counted
	rm -rf caps/* && umount caps
	[ $full$well$good = 000 ] && [ "$lost" -gt 0 ] && grep -q 'No space left' said &&
		grep -q 'there is room again; [1-9][0-9]* records were lost' said
}

a_configuration_that_is_read_again_leaves_other_sessions_alone() {
	configure 'file_time = 1h' 'buffer = 4M'
	printf '[session other]\nfile_time = 1h\n' >>conf
	begin
	until_true status_is sessions 2
	until_true sh -c 'ls caps/all-*.part caps/other-*.part'
	sed -i 's/^buffer = .*/buffer = 2M/' conf
	kill -HUP $pid
	until_true sh -c 'ls caps/all-*.cap && ls caps/all-*.part'
	# the other one was not touched
	[ "$(find caps -name 'other-*')" = "$(find caps -name 'other-*.part')" ] || return 1
	printf 'bufer = 1M\n' >>conf
	kill -HUP $pid
	until_true grep -q 'the configuration stays as it was' said
	until_true status_is health trouble || return 1
	sed -i '/bufer/d; /session other/,$d' conf
	kill -HUP $pid
	until_true sh -c 'ls caps/other-*.cap' || return 1
	ended
	cat said
	grep -q "conf:[0-9]*: a session has no 'bufer'" said && have_all_of other
}

# As have_all, of the session of that name.
have_all_of() {
	mkdir aside
	find caps -name "*.cap" ! -name "$1-*" -exec mv {} aside \;
	have_all
}

an_agent_that_is_killed_without_a_keeper_tells_of_the_gap() {
	configure 'file_time = 1h'
	begin
	sleep 3
	kill -KILL $pid
	wait $pid
	find caps -name '*.part' | grep -q . || return 1
	rm state
	sleep 1
	begin
	ended
	cat said
	grep -q 'nothing was recorded in the last [0-9.]* s: its session was not kept' said || return 1
	first=$(captures | head -n 1) second=$(captures | tail -n 1)
	nr_captures 2 && "$KBARMAN" check "$first" && "$KBARMAN" check "$second" || return 1
	gap=$(fact "$second" agent_gap)
	echo "gap $gap"
	[ -z "$(fact "$first" agent_gap)" ] && [ $((${gap#*,} - ${gap%,*})) -gt 900000000 ]
}

the_folder_is_bounded() {
	FOLDER_MAX=2M
	configure 'file_max = 1M' 'file_time = 1s' 'sources = sched'
	FOLDER_MAX=
	begin
	busy &
	until_true status_is removed.files '[1-9]'
	"$AGENT" -c conf --status >status
	ended
	touch stop
	wait
	cat status said
	du -sk caps
	[ "$(find caps -name '*.cap' -exec du -k {} + | awk '{ n += $1 } END { print n }')" -le 2048 ] &&
		grep -q 'removed the [0-9]* oldest captures' said
}

a_clock_that_is_set_back_does_not_mix_files_up() {
	configure 'file_time = 1s' 'buffer = 4M'
	begin
	until_true nr_captures 1
	now=$(date +%s)
	date -s "@$((now - 7200))" >/dev/null
	until_true nr_captures 4
	ended
	date -s "@$((now + 10))" >/dev/null
	cat said
	captures
	have_all && parts_follow || return 1
	newest=$(captures | tail -n 1)
	"$KBARMAN" info --json "$newest" | grep -o '"unix_base_ns":[0-9]*'
	begun=$(fact "$newest" part_begin)
	# its times are those of the clock then
	[ $((${begun#*,} / 1000000000)) -lt $((now - 3600)) ]
}

tasks_come_and_go_for_ever() {
	configure 'file_time = 2s' 'max_tasks = 512' 'buffer = 1M'
	begin
	i=0
	while [ $i -lt "${TASKS:-1000}" ]; do
		/bin/true
		i=$((i + 1))
	done
	ended
	cat said
	have_all && parts_follow || return 1
	for c in $(captures); do
		[ "$(sum_of "$c" '^missed')" -eq 0 ] || { facts "$c" | grep missed; return 1; }
		"$KBARMAN" script "$c" >lines || return 1
		! grep -m 3 -E '\?\?|unknown task|<[0-9]*>' lines || return 1
	done
}

what_was_recorded_since_the_boot_is_a_capture() {
	with_module handed_over boot=sched,marks ring_bytes=4194304
}

handed_over() {
	cp "$(readlink -f /proc/$$/exe)" early
	# shellcheck disable=SC2016 # the other shell's
	./early -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'
	configure 'file_time = 1h'
	begin
	ended
	cat said
	early=$(ls caps/since_boot-*.cap) && "$KBARMAN" check "$early" && in_order "$early" || return 1
	records=$(records_in "$early") written=$(sum_of "$early" '^part_written')
	echo "$records records, $written written"
	[ "$records" -gt 0 ] && [ "$records" -eq "$written" ] || return 1
	"$KBARMAN" script --task early "$early" >lines && [ -s lines ] || return 1
	grep -q 'taken over' said && nr_captures 2
}

processes_have_their_cgroups() {
	mkdir -p cg && mount -t cgroup2 none cg 2>/dev/null
	group=$(sed -n 's/^0::.*/cg/p' /proc/self/cgroup)
	if [ -z "$group" ] || ! mkdir -p cg/system.slice/shop.service; then
		echo "SKIP there are no cgroups here"
		return 0
	fi
	configure 'file_time = 1h'
	sh -c 'echo $$ >cg/system.slice/shop.service/cgroup.procs; exec sleep 30' &
	sleeper=$!
	begin
	sleep 3
	ended
	kill $sleeper
	wait
	c=$(captures)
	facts "$c" | grep '^cgroup'
	number=$(facts "$c" | sed -n 's|^cgroup\.\([0-9]*\)=.*/system.slice/shop.service$|\1|p')
	facts "$c" | grep -q "^cgroup_of\.[0-9]*=$number$"
	good=$?
	rmdir cg/system.slice/shop.service cg/system.slice
	umount cg
	return $good
}

only_the_time_around_moments_is_kept() {
	configure 'trigger = mark:now' 'before = 1s' 'every = 1s'
	busy &
	begin
	sleep 2
	[ -z "$(captures)" ] || return 1
	"$KBARMAN" annotate now && until_true nr_captures 1
	sleep 2
	"$KBARMAN" annotate other
	"$KBARMAN" annotate now && until_true nr_captures 2
	ended
	touch stop
	wait
	cat said
	nr_captures 2 && ! nr_captures 3 || return 1
	for c in $(captures); do
		facts "$c" | grep '^trigger'
		"$KBARMAN" check "$c" && "$KBARMAN" script -e annotation "$c" | grep -q now &&
			"$KBARMAN" report "$c" >/dev/null || return 1
	done
	grep -q "session all: mark:now: " said
}

# A week of files of a minute, as fast as they can be written: nothing grows.
a_week_leaves_the_agent_as_it_was() {
	configure 'file_time = 1h' 'buffer = 256K' 'file_max = 1M'
	sed -i 's/^folder_max = .*/folder_max = 4M/' conf
	busy &
	begin
	rotations 20 || return 1
	memory=$(memory_of $pid) files=$(find /proc/$pid/fd | wc -l)
	rotations "${ROTATIONS:-100}" || return 1
	echo "NOTE ${ROTATIONS:-100} files: VmRSS $memory, then $(memory_of $pid) KiB, $files files open, then $(find /proc/$pid/fd | wc -l)"
	sed -n 's/^\(VmRSS\|RssAnon\|RssFile\|RssShmem\):\s*/NOTE \1 /p' /proc/$pid/status
	grown=$(($(memory_of $pid) - memory)) now=$(find /proc/$pid/fd | wc -l)
	ended
	touch stop
	wait
	tail -n 3 said
	# its copy of the table of tasks grows up to max_tasks, and no further
	[ $grown -lt 2000 ] && [ "$now" -le $((files + 20)) ] && [ "$(du -sk caps | cut -f1)" -lt 6000 ]
}

memory_of() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"
}

# rotations N: so many files more
rotations() {
	goal=$(($(newest_number) + $1))
	while [ "$(newest_number)" -lt "$goal" ]; do
		kill -USR1 "$pid" || return 1
		sleep 0.05
	done
}

newest_number() {
	# shellcheck disable=SC2012 # names are ours
	n=$(ls caps | sort -t- -k2 | tail -n 1)
	n=${n#*-} n=${n%%-*}
	echo "${n:-0}" | sed 's/^0*\(.\)/\1/'
}

run_tests handed_over configure busy until_true begin ended status_is \
	losses_are_told have_all_of memory_of rotations newest_number
