#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh kdump/kdump.sh crash | dump
#
# In a guest whose Linux has crashkernel=, for kdump.py, which made kdump/. `crash` loads a crash kernel, records a task
# whose name is known, and crashes. `dump` is what the crash kernel runs: it leaves in kdump/ the captures of the memory
# itself, and of what makedumpfile writes of it as kdump-tools calls it.

set -eu
cd /host/kdump

crash() {
	cp -r root/. /
	kexec -p vmlinuz --initrd=initrd --append="$(cat append)"
	insmod ../kbarman.ko
	cd /tmp
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
	busybox time -v "$@" >"$name.out" 2>"$name.err" || :
}

dump() {
	measured direct kbarman recover -o direct.cap /proc/vmcore
	measured makedumpfile makedumpfile -F -c -d 31 /proc/vmcore
	mv makedumpfile.out dump
	measured dump kbarman recover -o dump.cap dump
	measured service sh -e service.sh
	cmp /var/crash/*/vmcore.*.cap direct.cap
}

"$1"
