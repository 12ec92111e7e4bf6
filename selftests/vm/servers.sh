#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh servers.sh
#
# Records programs that others wrote, in the root of a VM that has them: servers and their clients on
# two CPUs, and others. Leaves in results/, of each, for servers.py:
#
#	NAME.cap	the recording
#	NAME.samples	what sampler.c says meanwhile
#	NAME.kernel	the numbers of Linux's own tasks
#	NAME.counts	wakeups from task to task, or requests to disks, as bpftrace counts them
#
# and mutexes-LIBC.cap and .out, for mutexes.py.

set -u
here=$PWD
results=$here/results
busybox=/run/kb/busybox
wakeups='tracepoint:sched:sched_waking { @[comm, args->comm] = count(); }'
requests='tracepoint:block:block_rq_complete /args->dev == 7 << 20/ {
	@requests = count();
	@sectors = sum(args->nr_sector);
}'
export LC_ALL=C HOME=/root

rm -rf "$results"
mkdir -p "$results" /dev/shm
[ -e /dev/kbarman ] || insmod kbarman.ko || exit 1
mountpoint -q /sys/kernel/debug || $busybox mount -t debugfs none /sys/kernel/debug
mountpoint -q /dev/shm || $busybox mount -t tmpfs none /dev/shm
ip link set lo up
chmod 1777 "${TMPDIR:-/tmp}"
work=$(mktemp -d)
chmod 755 "$work"
cd "$work" || exit 1

# record NAME COMMAND...
record() {
	name=$1
	shift
	rm -f stop
	"$here/sampler" "$results/$name.samples" stop &
	"$here/kbarman" record -a --latency --sources syscalls,block -F 0 -m 16M -o "$results/$name.cap" \
		-- "$@" >"$name.said" 2>&1 || cat "$name.said"
	touch stop
	wait $!
	for process in /proc/[0-9]*; do
		[ "$(head -c 1 "$process/cmdline" 2>/dev/null | wc -c)" -ne 0 ] ||
			echo "${process#/proc/}"
	done >"$results/$name.kernel"
	grep ' records of ' "$name.said" | sed 's/^/# /'
}

# counted NAME PROGRAM COMMAND...: beside bpftrace with that program
counted() {
	name=$1 program=$2
	shift 2
	# shellcheck disable=SC2016 # the other shell's
	record "$name" sh -c '
		counts=$0 program=$1
		shift
		bpftrace -e "$program" >"$counts" 2>&1 &
		until grep -q Attaching "$counts"; do sleep 0.2; done
		sleep 3
		"$@"
		kill -INT $!
		wait $!' "$results/$name.counts" "$program" "$@"
}

taskset 1 redis-server --port 6379 --save '' --daemonize yes --dir "$work" >server.said
sleep 2
counted redis "$wakeups" taskset 2 redis-benchmark -n 400 -c 1 -t get -q
redis-cli shutdown

mkdir -p /var/log/nginx /var/lib/nginx /var/www/html
echo hello >/var/www/html/a.html
taskset 1 nginx
sleep 1
counted nginx "$wakeups" taskset 2 ab -q -k -n 300 -c 1 http://127.0.0.1/a.html
record go hey -n 300 -c 4 http://127.0.0.1/a.html
nginx -s stop

bin=$(echo /usr/lib/postgresql/*/bin)
mkdir -p pg /run/postgresql
chown postgres pg /run/postgresql
cat >pg.sh <<-END
	cd "$work/pg"
	$bin/initdb -D data -A trust -N
	taskset 1 $bin/pg_ctl -D data -o '-c shared_buffers=8MB -c listen_addresses=127.0.0.1' \
		-l log -w start
	$bin/pgbench -h 127.0.0.1 -i -q postgres
END
su postgres -s /bin/sh "$work/pg.sh" >server.said 2>&1 || cat server.said
counted postgres "$wakeups" taskset 2 "$bin/pgbench" -U postgres -h 127.0.0.1 -c 1 -t 60 postgres
su postgres -s /bin/sh -c "$bin/pg_ctl -D $work/pg/data -m immediate stop" >server.said 2>&1

dd if=/dev/zero of=/dev/shm/disk bs=1M count=16 2>server.said
$busybox losetup /dev/loop0 /dev/shm/disk
counted fio "$requests" fio --name=job --filename=/dev/loop0 --direct=1 --rw=randrw --bs=4k \
	--size=16M --io_size=1M --ioengine=libaio --iodepth=4 --numjobs=2 --fsync=16 --thread \
	--output=server.said
$busybox losetup -d /dev/loop0

printf 'all: 1 2 3 4 5 6\n%%:\n\tsleep 0.0$@; seq 999 | sort -R | md5sum\n' >Makefile
record make make -j 3
record python python3 -c '
import asyncio, multiprocessing, queue, socket, subprocess, threading, time
jobs = queue.Queue()
def work():
    while jobs.get():
        time.sleep(0.002)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for job in [1] * 200 + [None] * 4:
    jobs.put(job)
for thread in threads:
    thread.join()
subprocess.run(["true"])
one, other = socket.socketpair()
echo = threading.Thread(target=lambda: [other.send(b"y") for _ in iter(lambda: other.recv(1), b"")])
echo.start()
for _ in range(200):
    one.send(b"x"), one.recv(1)
one.close()
echo.join()
async def sleep():
    await asyncio.gather(*[asyncio.sleep(0.01 * i) for i in range(20)])
asyncio.run(sleep())
with multiprocessing.Pool(3) as pool:
    pool.map(abs, range(200))'
# mutexes LIBC COMPILER
mutexes() {
	mkdir "$1"
	"$2" -O2 -pthread -static -o "$1/mutexes" "$here/mutexes.c"
	"$here/kbarman" record -F 0 -o "$results/mutexes-$1.cap" -- "$1/mutexes" >"$results/mutexes-$1.out"
}

mutexes glibc gcc
mutexes musl musl-gcc
echo 'ok 1 - programs_of_others_are_recorded'
echo 1..1
