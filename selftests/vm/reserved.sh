#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh reserved.sh MEMORY PARAMETERS
#
# What a VM does at each of its boots, for reserved.py: MEMORY is the parameter `memory` of the module, PARAMETERS are
# others. Files are left in /host/reserved: boots, and of each boot what it found. The first boot ends with a crash, the
# second one with a restart.

export KBARMAN_TEST_VM=1 MEMORY="$1"
parameters=$2
cd kselftest/kbarman || exit 1
out=/host/reserved
boot=$(cat "$out/boots")
echo $((boot + 1)) >"$out/boots"

# It waits for the disk of the host only.
left() {
	sync "$out"/* 2>/dev/null || sync
}

case $boot in
0)
	./reserved >"$out/reserved.tap" 2>&1
	# shellcheck disable=SC2086 # words
	insmod ./kbarman.ko memory="$MEMORY" $parameters || exit 1
	grep ' [tTwW] ' /proc/kallsyms | gzip >/tmp/symbols
	./survivor record /tmp/symbols >"$out/said" 2>&1 || exit 1
	sleep 600 &
	until grep -q '^State:.S' /proc/$!/status; do :; done
	left
	echo c >/proc/sysrq-trigger
	;;
1)
	insmod ./kbarman.ko memory="$MEMORY" || exit 1
	mkdir "$out/crash" && ./survivor save "$out/crash" >"$out/crash/found" 2>"$out/said" || exit 1
	./survivor record 2>"$out/said" || exit 1
	left
	/run/kb/busybox reboot -f
	sleep 600
	;;
2)
	insmod ./kbarman.ko memory="$MEMORY" || exit 1
	mkdir "$out/both" && ./survivor save "$out/both" >"$out/both/found" 2>"$out/said" || exit 1
	./survivor refused 2>"$out/said" && ./survivor release 1 2>"$out/said" || exit 1
	mkdir "$out/one" && ./survivor save "$out/one" >"$out/one/found" 2>"$out/said" || exit 1
	# The crash stays when both halves are needed, one after the other.
	rmmod kbarman
	insmod ./kbarman.ko memory="$MEMORY" || exit 1
	mkdir "$out/again" && ./survivor save "$out/again" >"$out/again/found" 2>"$out/said" || exit 1
	# The tool needs libraries.
	[ "$KB_ROOT" = debian ] || exit 0
	cd "$out" && for verb in 'list --sessions' 'recover --previous --release' 'list --sessions'; do
		# shellcheck disable=SC2086 # words
		/host/kbarman $verb >>"$out/tool" 2>&1 || exit 1
	done
	mv previous-*.cap tool.cap
	;;
esac
