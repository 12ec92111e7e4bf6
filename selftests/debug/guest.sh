#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh debug/guest.sh STEP...
#
# What a VM with a debug kernel does, in one boot: the steps, in their order, and then asks
# the kernel's detectors whether they have anything to say. A step is "vm", "tool" (what
# selftests/vm/guest.sh does of the module, or with the tool), "lockdown" (after all that, as
# detectors are out of reach then), "test-build" (use the module's test build from here on), "bugs"
# (its seeded bugs), "coverage:NAME" (leave what GCOV counted in gcda/NAME), or a program of
# this directory, with its arguments behind colons.
# Prints TAP as run_kselftest.sh does.
#
# shellcheck disable=SC2317 # functions are called by name

export KBARMAN_TEST_VM=1
here=$PWD
debugfs=/sys/kernel/debug
mkdir -p /run/kb

# program NAME COMMAND...: a program that prints TAP, as run_kselftest.sh would show it
program() {
	name=$1
	shift
	echo "# selftests: kbarman: $name"
	{
		"$@" 2>&1
		echo $? >/run/kb/status
	} | while IFS= read -r line; do
		printf '# %s\n' "$line"
	done
	read -r status </run/kb/status
	if [ "$status" -eq 0 ]; then
		echo "ok 1 selftests: kbarman: $name"
	else
		echo "not ok 1 selftests: kbarman: $name # exit=$status"
	fi
}

count=0 failed=0

# promise NAME COMMAND...: the command ends well; what it said else
promise() {
	name=$1
	shift
	count=$((count + 1))
	if "$@" >/run/kb/said 2>&1; then
		echo "ok $count - $name"
	else
		sed 's/^/# /' /run/kb/said | head -60
		echo "not ok $count - $name"
		failed=1
	fi
}

# promise_where CONFIG NAME COMMAND...: where the kernel was built with that
promise_where() {
	if has "$1"; then
		shift
		promise "$@"
	else
		count=$((count + 1))
		echo "ok $count - $2 # SKIP this kernel is without $1"
	fi
}

done_promising() {
	echo "1..$count"
	count=0
	return "$failed"
}

# ---- the detectors

has() {
	zcat /proc/config.gz | grep -q "^CONFIG_$1=y"
}

# An object is a leak when it is some seconds old.
find_leaks() {
	sleep 6
	echo scan >$debugfs/kmemleak && echo scan >$debugfs/kmemleak && cat $debugfs/kmemleak ||
		echo 'kmemleak does not look'
}

# All of it but Linux's own races, and its warning where faults.c leaves it without memory.
kernel_log() {
	dmesg | awk -f "$here/debug/kcsan.awk" | grep -v 'WARNING: .* at __disarm_kprobe_ftrace'
}

# Each of KASAN, KCSAN, UBSAN, lockdep, ODEBUG and the rest begins a report in one of these ways.
reports() {
	kernel_log | grep -E 'WARNING: |\<BUG[: ]|UBSAN: |ODEBUG: |INFO: (rcu|task|possible|trying)|Oops|blocked for more|detected stall|kmemleak: .*(disabled|new suspected)|too low'
}

nothing_reported() {
	dmesg | tail -n 1 | grep -q . && ! reports
}

locks_watched() {
	grep -q 'debug_locks: *1' /proc/lockdep_stats
}

nothing_leaked() {
	leaks=$(find_leaks)
	echo "$leaks"
	[ -z "$leaks" ]
}

health() {
	failed=0
	promise_where DEBUG_KMEMLEAK nothing_leaked nothing_leaked
	promise_where PROVE_LOCKING lockdep_is_awake_at_the_end locks_watched
	promise no_detector_has_anything_to_report nothing_reported
	done_promising
}

# Of a kernel that lets nobody look at leaks any more.
health_behind_lockdown() {
	failed=0
	promise nothing_is_reported_of_lockdown nothing_reported
	done_promising
}

# ---- the seeded bugs: see module/bugs.c

# detected BUG PATTERN: the bug is committed, and the kernel's messages say so
detected() {
	# not all come back
	echo "$1" >/sys/module/kbarman/parameters/test_bug
	dmesg | grep -E "$2"
}

leak_detected() {
	echo leak >/sys/module/kbarman/parameters/test_bug
	find_leaks | grep -A 8 unreferenced | grep leak
}

seeded_bugs() {
	failed=0
	if has KCSAN; then
		promise kcsan_finds_a_race detected race 'BUG: KCSAN: data-race in .*racer'
		promise the_run_would_have_failed not nothing_reported
		done_promising
		return
	fi
	promise lockdep_finds_an_inversion detected inversion 'possible circular locking'
	promise lockdep_says_that_it_is_off not locks_watched
	promise atomic_sleep_is_found detected sleep 'BUG: sleeping function called'
	promise kasan_finds_out_of_bounds detected bounds 'BUG: KASAN: slab-out-of-bounds in out_of_bounds'
	promise kasan_finds_use_after_free detected after-free 'BUG: KASAN: .*use-after-free in use_after_free'
	promise kasan_finds_vmalloc_overrun detected vmalloc 'BUG: KASAN: vmalloc-out-of-bounds'
	promise ubsan_finds_a_shift detected shift 'UBSAN: shift-out-of-bounds'
	promise ubsan_finds_an_index detected index 'UBSAN: array-index-out-of-bounds'
	promise debug_objects_find_a_freed_timer detected timer 'ODEBUG: free active'
	promise kmemleak_finds_a_leak leak_detected
	promise the_run_would_have_failed not nothing_reported
	done_promising
}

not() {
	! "$@"
}

# ---- what is to be done

use() {
	rmmod kbarman 2>/dev/null
	for to in kselftest/kbarman .; do
		[ ! -d $to ] || cp "$1" $to/kbarman.ko
	done
	# from memory: hundreds of times over 9p takes a while
	cp "$1" /run/kb/kbarman.ko
	ln -sf /run/kb/kbarman.ko debug/kbarman.ko
}

if has DEBUG_KMEMLEAK; then
	find_leaks >/dev/null
	echo clear >$debugfs/kmemleak
fi
use debug/shipped.ko
asked=1 lockdown=
for step; do
	cd "$here" || exit 1
	case $step in
	# a thousand programs take minutes here, and nobody asks them for a profile
	vm) KBARMAN_UNLOADS=100 sh guest.sh module ;;
	tool) CHILDREN=50 sh guest.sh records devices without ;;
	lockdown) lockdown=1 ;;
	test-build) use debug/test.ko ;;
	coverage:*)
		to=gcda/${step#*:}
		rm -rf "$to"
		mkdir -p "$to"
		find $debugfs/gcov -path '*/kmod/*.gcda' | while read -r counts; do
			cat "$counts" >"$to/${counts##*/}"
		done
		;;
	bugs)
		asked=''
		insmod kbarman.ko
		program seeded_bugs seeded_bugs
		;;
	*)
		# the fuzzer loads it with a session to adopt
		case $step in fuzz*) rmmod kbarman ;; esac
		cd debug || exit 1
		# shellcheck disable=SC2046 # words
		program "${step%%:*}" $(echo "./$step" | tr : ' ')
		;;
	esac
	# should the machine not live to the end
	dmesg >"$here/dmesg.so-far"
done
cd "$here" || exit 1
[ ! "$asked" ] || program health health
if [ "$lockdown" ]; then
	sh guest.sh lockdown
	program health_behind_lockdown health_behind_lockdown
fi
exit 0
