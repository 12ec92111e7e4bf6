#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh panics.sh NAME MEMORY PANICS HOW...
#
# What a VM does at each of its boots, for panics.py: it leaves what the boot before recorded in /host/NAME/NUMBER, which is
# the number of that boot's panic, and panics again at a moment that chance chooses, in each way of HOW in turn. MEMORY is
# the parameter `memory` of the module. /host/NAME/boot has the number of the last panic, and `begun` that of the last one
# before the machine was there. Where Linux has it, ftrace's ring `boot_map` survives, too, and what it ends with is left.

export KBARMAN_TEST_VM=1
cd kselftest/kbarman || exit 1
out=/host/$1 memory=$2 panics=$3
shift 3
boot=$(cat "$out/boot") trace=/sys/kernel/tracing/instances/boot_map

# It waits for the disk of the host only.
left() {
	sync "$out"/* 2>/dev/null || sync
}

insmod ./kbarman.ko memory="$memory" boot=usual,latency,chains boot_overwrite=1 boot_hz=100 || exit 1
if [ "$boot" -gt "$(cat "$out/begun")" ]; then
	mkdir -p "$out/$boot"
	./survivor save "$out/$boot" >"$out/$boot/found" 2>"$out/said" && ./survivor release 0 2>"$out/said" || exit 1
	[ ! -d $trace ] || tail -n 40 $trace/per_cpu/cpu*/trace >"$out/$boot/ftrace"
	left
	: >"$out/$boot/whole"
fi
[ "$boot" -lt "$panics" ] || exit 0
echo $((boot + 1)) >"$out/boot"
shift $((boot % $#))

if [ -d $trace ]; then
	: >$trace/trace
	echo 1 >$trace/events/sched/sched_switch/enable
	echo 1 >$trace/tracing_on
fi
insmod ./panics.ko && ./survivor record 2>"$out/said" && ./survivor work || exit 1
left
# Its own work comes before that of the others.
renice -n -20 -p $$
usleep $(($(od -A n -N 2 -t u2 /dev/urandom) * 30))
case $1 in
crash) echo c >/proc/sysrq-trigger ;;
bug | interrupt) echo "$1" >/sys/module/panics/parameters/how ;;
hang)
	echo 1 >/proc/sys/kernel/hung_task_panic
	echo 1 >/proc/sys/kernel/hung_task_timeout_secs
	echo hang >/sys/module/panics/parameters/how
	;;
memory)
	echo 1 >/proc/sys/vm/panic_on_oom
	mount -t tmpfs -o size=1G memory /tmp
	dd if=/dev/zero of=/tmp/all bs=1M
	;;
nmi)
	echo 1 >/proc/sys/kernel/unknown_nmi_panic
	: >"$out/nmi"
	;;
esac
sleep 600
echo "no panic by $1" >"$out/said"
exit 1
