#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh kdump/kdump.sh crash | work | dump
#
# In a guest whose Linux has crashkernel=, for kdump.py, which made kdump/. `crash` loads a crash kernel, records a task
# whose name is known, and crashes. `work` does so where kdump-tools have loaded it. `dump` is what the first crash kernel
# runs: it leaves in kdump/ the captures of the memory itself and of what makedumpfile writes of it, and the memory.

set -eu
cd /host/kdump
PATH=$PWD:$PATH

crash() {
	# as in kbarman-recover(1)
	{ sed -n 's/10000 T _stext$/00000 T _text/p' /proc/kallsyms; cat /proc/kallsyms; } >/tmp/kallsyms
	mount --bind /tmp/kallsyms /proc/kallsyms
	kexec -p vmlinuz --initrd=initrd --append="$(cat append)"
	umount /proc/kallsyms
	work
}

work() {
	[ "$(cat /sys/kernel/kexec_crash_loaded)" = 1 ]
	insmod ../kbarman.ko
	cd /dev/shm
	sync
	kbarman flight start -g -m 256K --keep-symbols
	cp /host/truth-static last_work
	./last_work -t 2 -s 3 -p 1000
	./last_work -t 2 -s 600 -p 1000 &
	sleep 3
	echo c >/proc/sysrq-trigger
}

# measured NAME COMMAND...: what it said, and what it cost
measured() {
	name=$1
	shift
	/run/kb/busybox time -v "$@" >"$name.out" 2>"$name.err" || :
}

dump() {
	measured direct kbarman recover -o direct.cap /proc/vmcore
	measured makedumpfile makedumpfile -F -c -d 31 /proc/vmcore
	mv makedumpfile.out dump
	measured dump kbarman recover -o dump.cap dump
	cp /proc/vmcore memory
}

"$1"
