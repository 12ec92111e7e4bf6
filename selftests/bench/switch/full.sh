#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the guest of scripts/bench-full does: makes the disk its root and records one workload with each
# tracer, with stacks, into a file there.
#
#	full.sh WORKLOAD TRACER...
#
# Prints lines as guest.sh does, and
#
#	disk TRACER LENGTH BYTES	that were written to the disk
#	size TRACER BYTES		of the finished file
#
# shellcheck disable=SC2317 # functions are called by name

# ---- workloads: in two lengths, far enough apart for what their switches cost to stand out

# begin_WORKLOAD: what has to run or be there before; lengths_WORKLOAD, and load_WORKLOAD LENGTH

begin_hackbench() { echo 4608 >/proc/sys/net/core/wmem_default; }
lengths_hackbench() { echo 500 2500; }
load_hackbench() { hackbench -g 1 -f 5 -l "$1" -s 1024; }

begin_redis() {
	/run/kb/busybox ip link set lo up
	redis-server --save '' >redis.log &
	until redis-cli ping; do
		sleep 0.2
		kill -0 $! || return
	done
}
lengths_redis() { echo 2000 12000; }
load_redis() { redis-benchmark -q -n "$1" -c 5 -t set,get; }

# a file on the disk, and a transaction for each row
begin_sqlite() {
	for length in $(lengths_sqlite); do
		awk -v n="$length" 'BEGIN {
			print "CREATE TABLE t(number INTEGER PRIMARY KEY, text TEXT);"
			for (i = 1; i <= n; i++) {
				printf "INSERT INTO t(text) VALUES(hex(%d));\n", i * 7919
				if (i % 10 == 0) print "SELECT count(DISTINCT substr(text, 3)) FROM t;"
			}
		}' >"sql.$length" || return
	done
}
lengths_sqlite() { echo 100 500; }
load_sqlite() { rm -f db && sqlite3 db <"sql.$1"; }

# as a user other than root, whom the server refuses
begin_pgbench() {
	PATH=$PATH:/usr/lib/postgresql/15/bin
	mkdir data && chown daemon data &&
	as_daemon initdb -D data -A trust --no-locale --no-sync &&
	as_daemon pg_ctl -D data -l data/log -w start \
		-o '-k /tmp -c listen_addresses= -c autovacuum=off -c checkpoint_timeout=1d -c max_wal_size=4GB' &&
	pgbench -U daemon -h /tmp -i -q postgres
}
as_daemon() { setpriv --reuid=daemon --regid=daemon --clear-groups "$@"; }
lengths_pgbench() { echo 200 1000; }
load_pgbench() { pgbench -U daemon -h /tmp -n -c 4 -t $(($1 / 4)) postgres; }

# each compiler is a new process; the short run is long enough for the tables that are made once
begin_cxx() {
	cat >x.cc <<-'END'
		template <unsigned N> struct sum { static const unsigned value = N + sum<N - 1>::value; };
		template <> struct sum<0> { static const unsigned value = 0; };
		template <class T> T *sorted(T *first, T *last)
		{
			for (T *at = first; at < last; at++)
				for (T *other = at; other > first && *other < other[-1]; other--) {
					T kept = *other;
					*other = other[-1];
					other[-1] = kept;
				}
			return first;
		}
		double one(double *a) { return *sorted(a, a + sum<200>::value); }
		long two(long *a) { return *sorted(a, a + sum<201>::value); }
	END
}
lengths_cxx() { echo 8 20; }
load_cxx() {
	i=0
	while [ $((i += 1)) -le "$1" ]; do
		g++ -O2 -c -o x.o x.cc || return
	done
}

# ---- tracers: record_with_TRACER COMMAND..., the file that it writes, and how many records it says it has lost

record_with_off() { "$@"; }
file_of_off() { :; }

record_with_empty() {
	insmod empty_probe.ko sample_ns=1000000
	"$@"
	rmmod empty_probe
}
file_of_empty() { :; }

record_with_kbarman() { ./kbarman record -a -g --off-cpu --latency -o kbarman.cap -- "$@"; }
file_of_kbarman() { echo kbarman.cap; }
lost_of_kbarman() { ./kbarman info kbarman.cap | awk '$1 == "lost" { print $2 }'; }

# by frame pointers, which is what it has; the tasks that wake others, too
record_with_kbarmand() {
	rm -f agent.state
	mkdir -p agent
	cat >agent.conf <<-END
		[agent]
		folder = $PWD/agent
		state = $PWD/agent.state
		[session all]
		sources = sched wake
		sample = 1000
		chains = both
	END
	./kbarmand -c agent.conf &
	agent=$!
	until grep -sqx sessions=1 agent.state; do
		sleep 0.1
		kill -0 $agent || return
		! grep -s '^trouble=.' agent.state || return
	done
	"$@"
	status=$?
	kill $agent
	wait $agent && return $status
}
file_of_kbarmand() { echo agent; }
lost_of_kbarmand() {
	for capture in agent/*.cap; do
		./kbarman info "$capture"
	done | awk '$1 == "lost" { n += $2 } END { print n + 0 }'
}

record_with_perf() {
	chains=$1
	shift
	perf record -a --call-graph "$chains" -e cpu-clock/freq=1000/,sched:sched_switch,sched:sched_waking \
		-o perf.data -- "$@"
}
lost_of_perf() { perf report -f --stats -i perf.data | awk '/LOST/ { n += $NF } END { print n + 0 }'; }

record_with_perf_fp() { record_with_perf fp "$@"; }
file_of_perf_fp() { echo perf.data; }
lost_of_perf_fp() { lost_of_perf; }

record_with_perf_dwarf() { record_with_perf dwarf "$@"; }
file_of_perf_dwarf() { echo perf.data; }
lost_of_perf_dwarf() { lost_of_perf; }

# As offcputime and profile of bcc do, which are in Python: sums in the kernel, of which it writes a table.
record_with_bpf() {
	cat >full.bt <<-'PROGRAM'
		profile:hz:1000 { @on[kstack, ustack, comm] = count(); }
		kprobe:finish_task_switch* {
			$before = (struct task_struct *)arg0;
			@left[$before->pid] = nsecs;
			if (@left[tid]) {
				@off[kstack, ustack, comm] = sum(nsecs - @left[tid]);
				delete(@left[tid]);
			}
		}
		END { clear(@left); }
	PROGRAM
	BPFTRACE_MAP_KEYS_MAX=16384 bpftrace -o bpf.txt full.bt -c "/usr/bin/$*"
}
file_of_bpf() { echo bpf.txt; }
lost_of_bpf() { awk '/Lost/ { n += $2 } END { print n + 0 }' said; }

# ----

# one TRACER WORKLOAD LENGTH: the program that `measure whole` runs. What a recorder leaves for Linux to
# write is its own, too.
one() {
	"record_with_$1" sh "$0" load "$2" "$3" && sync
}

written() { awk '{ print $7 * 512 }' /sys/block/vda/stat; }

# whole TRACER NUMBER MEASURE...: what the tracer and the workload print is in `said`
whole() {
	tracer=$1 times=$2
	shift 2
	"$@" sh "$0" one "$tracer" "$workload" "$times" >said 2>&1 || {
		echo "why $tracer $(grep -v '^measure:' said | tail -n 1)"
		return 1
	}
}

# recording TRACER SHORT LONG
recording() {
	tracer=$1 short=$2
	file=$("file_of_$tracer")
	# what is loaded and made at the first time is not counted
	whole "$tracer" "$short" || return
	shift
	for length; do
		rm -rf "${file:-none}"
		sync
		before=$(written)
		# the section is there even if the tracer fails
		whole "$tracer" "$length" ./measure whole || {
			echo "count $tracer failed 0"
			return
		}
		[ "$length" = "$short" ] && name=short || name=long
		echo "count $tracer $name $(sed '$!d' said)"
		echo "disk $tracer $name $(($(written) - before))"
	done
	[ "$file" ] || return
	echo "lost $tracer $("lost_of_$tracer")"
	echo "size $tracer $(find "$file" -type f ! -name '.*' -exec cat {} + | wc -c)"
	rm -r "$file"
}

# recordings WORKLOAD TRACER...
# shellcheck disable=SC2046 # two numbers
recordings() {
	workload=$1
	shift
	"begin_$workload" >said 2>&1 || { echo "why $workload $(tail -n 1 said)"; return; }
	for tracer; do
		recording "$tracer" $("lengths_$workload")
	done
}

enter_disk() {
	while read -r module; do
		insmod "disk/$module" 2>/dev/null	# it may be there
	done <disk/order
	mkdir /disk && mount -t ext4 -o noinit_itable /dev/vda /disk || return
	for d in proc sys dev tmp run host; do
		mount -n --move /$d /disk/$d || return
	done
	mkdir /disk/old /disk/bench
	cd /disk && pivot_root . old && cd /bench || return
	cp /host/measure /host/kbarman /host/kbarmand /host/*.ko /host/full.sh .
}

case $1 in
one | recordings) "$@" ;;
load) "load_$2" "$3" ;;
*) enter_disk && insmod kbarman.ko && exec sh /bench/full.sh recordings "$@" ;;
esac
