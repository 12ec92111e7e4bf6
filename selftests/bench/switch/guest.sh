#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the guests of scripts/bench-switches do, in the directory with the programs.
#
#	guest.sh count [-k] WORKLOADS USUAL TRACER...
#		workloads that switch tasks, with each tracer; those of USUAL with those that
#		record what is usual with them, or wakeups; tracers that take samples, and those of
#		system calls, have a workload of their own
#	guest.sh record TIMES
#		one of them, recorded by all, for decoding
#	guest.sh recordings TRACER...
#		a workload that they record into files, as their manuals recommend
#	guest.sh neighbours TRACER...
#		what programs do beside a session
#	guest.sh agent SECONDS
#		10,000 switches a second, with a session that nobody reads, and with kbarmand
#
# Prints, a line each:
#
#	count TRACER WORKLOAD NUMBER	of switches, samples or calls, in the order in which the plugin
#					counts sections
#	bytes TRACER NUMBER BYTES	what a tracer wrote of how many switches or samples
#	lost TRACER NUMBER		how many records the tracer says it has lost
#	why TRACER REASON		it cannot run here
#
# -k leaves the kernel's symbols of each tracer's run in kallsyms.TRACER.
#
# A tracer is a pair of functions, NAME_on and NAME_off; the first says why when it fails.
# None of them has a reader that runs meanwhile: all but BPF's overwrite what is oldest, and
# BPF's buffer has room for all.
#
# shellcheck disable=SC2317,SC2012 # functions are called by name; ls has sizes

# shellcheck source=SCRIPTDIR/../../lib/lttng.sh
. ./lttng.sh

tracing=/sys/kernel/tracing
here=$PWD

# ---- programs that keep a tracer running

# hold COMMAND...: it says "ready", runs until its input ends, and says what it has done
hold() {
	mkfifo in out
	"$@" <in >out 2>why &
	held=$!
	exec 8>in 9<out
	rm in out
	read -r word <&9 && [ "$word" = ready ] && return
	release
	cat why
	return 1
}

# release [NAME]: with a name, what it said of its records and bytes
release() {
	exec 8>&-
	cat <&9 >said
	exec 9<&-
	wait "$held"
	[ $# -eq 0 ] || echo "bytes $1 $(cat said)"
}

# ---- tracers: of sched_switch alone, as each is when nothing else is asked for

off_on() { :; }
off_off() { :; }
off_usual_on() { :; }
off_usual_off() { :; }

empty_probe_on() { insmod empty_probe.ko 2>&1; }
empty_probe_off() { rmmod empty_probe; }

kbarman_on() { hold ./hold_kbarman sched; }
kbarman_off() { release kbarman; }

kbarman_reserved_on() { hold ./hold_kbarman reserved; }
kbarman_reserved_off() { release kbarman_reserved; }

# What tasks wait for is told beside the switch alone, with workloads that wait.
off_object_on() { hold ./hold_kbarman sched; }
off_object_off() { release; }

kbarman_object_on() { hold ./hold_kbarman objects; }
kbarman_object_off() { release kbarman_object; }

bpf_ringbuf_on() { hold ./hold_bpf; }
bpf_ringbuf_off() { release bpf_ringbuf; }

# ftrace EVENTS KIB
ftrace() {
	echo "$2" >$tracing/buffer_size_kb &&
	: >$tracing/trace &&
	echo 1 >"$tracing/events/$1/enable"
} 2>&1
ftrace_on() { ftrace sched/sched_switch 4096; }
ftrace_off() { echo 0 >$tracing/events/enable; }

# perf_hold EVENTS
perf_hold() {
	hold perf record -q -a --overwrite -m 4M -e "$1" -o perf.data -- sh -c 'echo ready; cat'
}
perf_on() { perf_hold sched:sched_switch; }
perf_off() { release; }

lttng_daemon() {
	[ -d lttng ] || {
		echo "its modules do not build for this kernel"
		return 1
	}
	lttng_begin lttng
}

# lttng_session EVENTS SUBBUFFER CREATE-OPTION...: EVENTS are words, which no file here matches
# shellcheck disable=SC2086
lttng_session() {
	events=$1 subbuffer=$2
	shift 2
	lttng_daemon &&
	lttng create bench "$@" &&
	lttng enable-channel --kernel --subbuf-size="$subbuffer" --num-subbuf=4 bench &&
	lttng enable-event --kernel --channel=bench $events &&
	lttng start
} >why 2>&1
lttng_on() { lttng_session sched_switch 1M --snapshot --output="$PWD/snapshot" || { cat why; false; }; }
lttng_off() {
	lttng destroy bench
	lttng_end
} >/dev/null

# ---- and of what each has to say of scheduling

kbarman_usual_on() { hold ./hold_kbarman usual; }
kbarman_usual_off() { release; }

ftrace_usual_on() { ftrace sched 4096; }
ftrace_usual_off() { ftrace_off; }

perf_usual_on() { perf_hold 'sched:*'; }
perf_usual_off() { perf_off; }

lttng_usual_on() { lttng_session 'sched_*' 1M --snapshot --output="$PWD/snapshot" || { cat why; false; }; }
lttng_usual_off() { lttng_off; }

# ---- and of wakeups alone

off_wake_on() { :; }
off_wake_off() { :; }

empty_wake_on() { insmod empty_probe.ko waking=1 2>&1; }
empty_wake_off() { rmmod empty_probe; }

kbarman_wake_on() { hold ./hold_kbarman wake; }
kbarman_wake_off() { release; }

bpf_ringbuf_wake_on() { hold ./hold_bpf waking; }
bpf_ringbuf_wake_off() { release; }

ftrace_wake_on() { ftrace sched/sched_waking 4096; }
ftrace_wake_off() { ftrace_off; }

perf_wake_on() { perf_hold sched:sched_waking; }
perf_wake_off() { perf_off; }

lttng_wake_on() { lttng_session sched_waking 1M --snapshot --output="$PWD/snapshot" || { cat why; false; }; }
lttng_wake_off() { lttng_off; }

# ---- and of system calls alone

off_syscall_on() { :; }
off_syscall_off() { :; }

empty_syscall_on() { insmod empty_probe.ko syscalls=1 2>&1; }
empty_syscall_off() { rmmod empty_probe; }

kbarman_syscall_on() { hold ./hold_kbarman syscalls; }
kbarman_syscall_off() { release kbarman_syscall; }

bpf_ringbuf_syscall_on() { hold ./hold_bpf syscalls; }
bpf_ringbuf_syscall_off() { release bpf_ringbuf_syscall; }

ftrace_syscall_on() { ftrace raw_syscalls 4096; }
ftrace_syscall_off() { ftrace_off; }

perf_syscall_on() { perf_hold raw_syscalls:sys_enter,raw_syscalls:sys_exit; }
perf_syscall_off() { perf_off; }

lttng_syscall_on() {
	lttng_session '--syscall --all' 1M --snapshot --output="$PWD/snapshot" || { cat why; false; }
}
lttng_syscall_off() { lttng_off; }

# ---- samples by a clock: plain, and with call chains of each kind

off_sample_on() { :; }
off_sample_off() { :; }

empty_sample_on() { insmod empty_probe.ko sample_ns=$period 2>&1; }
empty_sample_off() { rmmod empty_probe; }
kbarman_sample_on() { hold ./hold_kbarman plain $period; }
kbarman_sample_off() { release kbarman_sample; }
kbarman_sample_fp_on() { hold ./hold_kbarman fp $period; }
kbarman_sample_fp_off() { release kbarman_sample_fp; }
kbarman_sample_stack_on() { hold ./hold_kbarman stack $period; }
kbarman_sample_stack_off() { release kbarman_sample_stack; }

# perf_sample_hold OPTION...
perf_sample_hold() {
	hold perf record -q -a --overwrite -m 4M -e cpu-clock -c $period "$@" -o perf.data -- \
		sh -c 'echo ready; cat'
}
# perf_sample_release NAME
perf_sample_release() {
	release
	echo "bytes $1 $(perf script -f -i perf.data -F tid | wc -l) $(perf_data_bytes perf.data)"
}
perf_sample_on() { perf_sample_hold; }
perf_sample_off() { perf_sample_release perf_sample; }
perf_sample_fp_on() { perf_sample_hold --call-graph fp; }
perf_sample_fp_off() { perf_sample_release perf_sample_fp; }
# perf_sample_bytes NAME OPTION...
# 4 MiB of copied stacks are over soon, and of a ring that was full perf writes few samples: the
# bytes are of samples that are rarer, all of which it writes.
perf_sample_bytes() {
	name=$1
	shift
	hold perf record -q -a -m 64M -e cpu-clock -c $((10 * period)) "$@" -o perf.data -- \
		sh -c 'echo ready; cat' &&
	query sample_warm >/dev/null &&
	perf_sample_release "$name"
}
perf_sample_dwarf_on() { perf_sample_hold --call-graph dwarf; }
perf_sample_dwarf_off() {
	release
	perf_sample_bytes perf_sample_dwarf --call-graph dwarf
}
perf_sample_dwarf_64k_on() { perf_sample_hold --call-graph dwarf,65528; }
perf_sample_dwarf_64k_off() {
	release
	perf_sample_bytes perf_sample_dwarf_64k --call-graph dwarf,65528
}

# ---- workloads, on one CPU. Programs are in memory: no waiting for files that are on the host.

yield() { ./measure yield 60000; }
wait_call() { ./measure wait-call 30000; }
wait_pipe() { ./measure wait-pipe 30000; }
wait_socket() { ./measure wait-socket 30000; }
wait_futex() { ./measure wait-futex 30000; }
syscall() { ./measure syscall 60000; }
pipe() { ./measure run root perf bench -f simple sched pipe -l 60000 | tail -n 1; }
pipe_warm() { ./measure warm root perf bench -f simple sched pipe -l 50000; }
# With so little room in a socket a writer soon waits for its reader.
hackbench() {
	echo 4608 >/proc/sys/net/core/wmem_default
	./measure run root hackbench -g 1 -f 5 -l 10000 -s 1024 | tail -n 1
}

query() {
	./measure "$1" $period root sqlite3 :memory: 'WITH RECURSIVE n(x) AS
		(VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 250000)
		SELECT count(*) FROM (SELECT DISTINCT substr(x * 7919 || hex(x), 2) y FROM n ORDER BY y);' |
		tail -n 1
}
sample() { query sample; }

make_root() {
	mkdir -p root/proc root/sys
	mount --bind /proc root/proc
	mount --bind /sys root/sys
	for program in /usr/bin/perf /usr/bin/hackbench /usr/bin/sqlite3; do
		echo $program
		ldd $program | grep -o '/[^ ]*'
	done | sort -u | while read -r file; do
		cp --parents -L "$file" root
	done
}

count() {
	workloads=$(echo "$1" | tr , ' ') usual_workloads=$(echo "$2" | tr , ' ')
	shift 2
	make_root
	# what they leave warm is warm for all
	with=
	case " $workloads $*" in *' sample '*) ;; *_sample*) with=sample ;; esac
	case " $workloads $*" in *' syscall '*) ;; *_syscall*) with="$with syscall" ;; esac
	for workload in $workloads $with; do
		echo "count warm_up $workload $($workload)"
	done
	for tracer; do
		"${tracer}_on" >failed || {
			echo "why $tracer $(tail -n 1 failed)"
			continue
		}
		# what the one before leaves to be done later is done now
		sleep 1
		[ ! "$keep" ] || cat /proc/kallsyms >"$here/kallsyms.$tracer"
		case $tracer in
		*_sample*) these=sample ;;
		*_object) these=${keep:+$workloads} these=${these:-yield wait_call wait_pipe wait_socket wait_futex} ;;
		*_syscall) these=syscall ;;
		*_usual | *_wake) these=$usual_workloads ;;
		*) these=$workloads ;;
		esac
		# 4 MiB are filled once: a ring that overwrites has more to do than an empty one
		case $tracer in
		*_sample*) query sample_warm >/dev/null ;;
		*_object) ./measure fill 80000 >/dev/null ;;
		off* | empty* | bpf_ringbuf*) ;;
		# the other task of a pair that gives way is not woken
		*_wake) pipe_warm >/dev/null ;;
		*) ./measure fill 80000 >/dev/null ;;
		esac
		for workload in $these; do
			echo "count $tracer $workload $($workload)"
		done
		"${tracer}_off"
	done
}

# ---- the agent

unread_on() { hold ./hold_kbarman sched; }
unread_off() { release; }

agent_on() {
	mkdir -p /tmp/agent
	cat >/tmp/agent.conf <<-END
		[agent]
		folder = /tmp/agent
		folder_max = 8M
		state = /tmp/agent.state
		[session all]
		sources = sched
		file_max = 4M
		file_time = 60s
	END
	"$here/kbarmand" -c /tmp/agent.conf 2>why &
	agent=$!
	while [ ! -e /tmp/agent.state ]; do sleep 0.1; done
}

agent_off() {
	sed -n 's/^\(Vm[HR]...\|Rss[AFS][a-z]*\):[^0-9]*\([0-9]*\).*/rss \1 \2/p' "/proc/$agent/status"
	kill "$agent"
	wait "$agent"
	cat why
}

agent() {
	for tracer in unread unread agent agent unread; do
		"${tracer}_on" || return
		sleep 2
		# 1: to be warm
		for seconds in 1 "$1" "$1"; do
			echo "count $tracer ${seconds}s $(./measure sleep $((seconds * 5000)) 200000)"
		done
		"${tracer}_off" >&2
	done
}

# ---- what programs do beside a session

neighbours() {
	for tracer; do
		"${tracer}_on" || return
		sleep 1
		for deed in map:4000 rename:4000 thread:2000 fork:1000 exec:400 umount:400; do
			echo "count $tracer ${deed%:*} $(./neighbour "${deed%:*}" "${deed#*:}")"
		done
		"${tracer}_off" >&2
	done
}

# ---- recordings, left where the programs were

# said NAME SWITCHES BYTES
bytes_of() {
	[ "$3" -gt 0 ] && echo "bytes $*"
}

# the section with the data, as the file's header says
perf_data_bytes() {
	od -A n -t u8 -j 48 -N 8 "$1" | tr -d ' '
}

record() {
	for tracer in kbarman bpf_ringbuf; do
		if "${tracer}_on" >failed; then
			./measure yield "$1" >/dev/null
			"${tracer}_off"
		else
			echo "why $tracer $(tail -n 1 failed)"
		fi
	done

	if ftrace sched/sched_switch 131072 >failed; then
		n=$(./measure yield "$1")
		ftrace_off
		# what is there, and no waiting for more
		timeout 20 dd if=$tracing/per_cpu/cpu0/trace_pipe_raw of=ftrace.raw bs=4096 iflag=nonblock \
			2>/dev/null
		bytes_of ftrace "$n" "$(wc -c <ftrace.raw)"
		rm ftrace.raw
		echo 1 >$tracing/buffer_size_kb
	else
		echo "why ftrace $(tail -n 1 failed)"
	fi

	if n=$(perf record -q -a -m 128M -e sched:sched_switch -o "$here/perf.data" -- \
		./measure yield "$1" 2>why); then
		bytes_of perf "$n" "$(perf_data_bytes "$here/perf.data")"
	else
		echo "why perf $(tail -n 1 why)"
	fi

	if lttng_session sched_switch 64M --output="$here/lttng-trace"; then
		n=$(./measure yield "$1")
		lttng_off
		bytes_of lttng "$n" "$(cat "$here"/lttng-trace/kernel/bench_* | wc -c)"
	else
		echo "why lttng $(tail -n 1 why)"
	fi

	"$here/kbarman" record -a -m 64M -o "$here/kbarman.cap" -- ./measure yield "$1" >/dev/null 2>why ||
		echo "why kbarman $(tail -n 1 why)"
}

# ---- whole recordings, from the start of a tracer until it has written its file; readers, and the
# defaults of each, included. The programs, their libraries and the files are in memory.

# record_with_TRACER COMMAND..., the file that it writes, and how many records it says it has lost

record_with_off() { "$@"; }
file_of_off() { :; }

record_with_kbarman() { ./kbarman record -a -F 0 --no-objects -o kbarman.cap -- "$@"; }
file_of_kbarman() { echo kbarman.cap; }
lost_of_kbarman() { ./kbarman info kbarman.cap | awk '$1 == "lost" { print $2 }'; }

record_with_perf() { perf record -a -e sched:sched_switch -o perf.data -- "$@"; }
file_of_perf() { echo perf.data; }
lost_of_perf() { perf report -f --stats -i perf.data | awk '/LOST/ { n += $NF } END { print n + 0 }'; }

record_with_ftrace() { trace-cmd record -e sched_switch -o trace.dat "$@"; }
file_of_ftrace() { echo trace.dat; }
lost_of_ftrace() { awk '/Overruns:|events lost/ { n += $NF } END { print n + 0 }' said; }

# The daemon of LTTng is a service, which runs before.
record_with_lttng() {
	lttng create bench --output="$PWD/lttng-trace" &&
	lttng enable-event --kernel sched_switch &&
	lttng start &&
	"$@" &&
	lttng stop &&
	lttng list bench &&
	lttng destroy bench
}
file_of_lttng() { echo lttng-trace; }
lost_of_lttng() { awk '/Discarded events:/ { n += $NF } END { print n + 0 }' said; }

# No program that records sched_switch by a ring buffer of BPF comes with Debian.
record_with_bpf_ringbuf() { ./hold_bpf record bpf.data "$@"; }
file_of_bpf_ringbuf() { echo bpf.data; }
lost_of_bpf_ringbuf() { sed 'x; $!d' said; }

# whole TRACER TIMES MEASURE...: what the tracer and the workload print is in `said`
whole() {
	tracer=$1 times=$2
	shift 2
	"$@" sh "$here/guest.sh" one "$tracer" hackbench -g 1 -f 5 -l "$times" -s 1024 >said 2>&1 || {
		echo "why $tracer $(tail -n 1 said)"
		return 1
	}
}

recordings() {
	cp "$here/kbarman" .
	echo 4608 >/proc/sys/net/core/wmem_default
	lttng_daemon >why 2>&1 || echo "why lttng $(tail -n 1 why)"
	for tracer; do
		file=$("file_of_$tracer")
		# what is loaded and made at the first time is not counted
		whole "$tracer" 100 || continue
		for times in 1000 6000; do
			rm -rf "${file:-none}"
			whole "$tracer" $times ./measure whole || continue 2
			echo "count $tracer $times $(sed '$!d' said)"
		done
		[ "$file" ] || continue
		echo "lost $tracer $("lost_of_$tracer")"
		echo "size $tracer $(find "$file" -type f -exec cat {} + | wc -c)"
		cp -r "$file" "$here"
	done
}

# one TRACER COMMAND...: the program that `measure whole` runs
one() {
	tracer=$1
	shift
	unset -f hackbench	# the program, not the workload above
	"record_with_$tracer" "$@"
}

mode=$1 keep=
period=100000	# ns between samples
shift
[ "$mode" != one ] || { one "$@"; exit; }
[ "$1" != -k ] || { keep=1; shift; }
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
mkdir /tmp/bench
cp measure neighbour hold_* ./*.ko /tmp/bench
[ ! -d lttng ] || cp -r lttng /tmp/bench
cd /tmp/bench || exit
case $(cat /proc/cmdline) in
*memmap=64M*) insmod kbarman.ko memory=0x20000000,64M ;;
*) insmod kbarman.ko ;;
esac || exit
"$mode" "$@"
