#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Of the race detector's reports, `make test-debug` fails on those that are the module's
# (selftests/debug/kcsan.awk). The reports here have the form of Linux 6.1's.
set -eu
cd "$(dirname -- "$0")/../.."
line='=================================================================='

# report TITLE FRAMES FRAMES: frames are names, of the innermost function first
report() {
	echo "[   10.000001] $line"
	echo "[   10.000002] BUG: KCSAN: data-race in $1"
	for frames in "$2" "$3"; do
		printf '[   10.000003] \n[   10.000004] write to 0xffff888003d84ce0 of 8 bytes by task 7 on cpu 1:\n'
		for frame in $frames; do
			echo "[   10.000005]  $(echo "$frame" | sed 's/@/+0x38\/0x80 [kbarman]/; t; s/$/+0x1a4\/0x1b0/')"
		done
	done
	echo '[   10.000006] '
	echo '[   10.000007] Reported by Kernel Concurrency Sanitizer on:'
	echo "[   10.000008] $line"
}

reports=$(mktemp)
left=$(mktemp)
trap 'rm -f "$reports" "$left"' EXIT
count=0 failed=0

# promise NAME PATTERN SHOWN: of the lines with PATTERN in the reports, so many are left
promise() {
	count=$((count + 1))
	awk -f selftests/debug/kcsan.awk "$reports" >"$left"
	if [ "$(grep -c "$2" "$left")" -eq "$3" ]; then
		echo "ok $count - $1"
	else
		sed 's/^/# /' "$left"
		echo "not ok $count - $1"
		failed=1
	fi
}

report 'gather [kbarman] / load_elf_binary' 'gather@ sample@ perf_swevent' 'load_elf_binary exec' \
	>"$reports"
promise a_race_of_the_module_with_Linux_is_shown KCSAN 1

report 'racer [kbarman] / racer [kbarman]' 'racer@ kthread' 'racer@ kthread' >"$reports"
promise a_race_of_the_module_with_itself_is_shown KCSAN 1

report 'schedule / memcpy' 'schedule' 'memcpy copy_out@ ioctl' >"$reports"
promise a_copy_for_the_module_is_its_own_access KCSAN 1

report 'schedule / __arch_copy_to_user' 'schedule' '__arch_copy_to_user stats@ ioctl' >"$reports"
promise so_is_one_to_a_user KCSAN 1

report '__hrtimer_run_queues / hrtimer_active' '__hrtimer_run_queues hrtimer_interrupt' \
	'hrtimer_active hrtimer_try_to_cancel perf_event_stop end_session@ ioctl' >"$reports"
promise a_race_within_what_the_module_calls_is_not_shown KCSAN 0

report 'copy_from_kernel_nofault / do_page_fault' \
	'copy_from_kernel_nofault kbarman_frames_kernel@ gather@' 'do_page_fault do_mem_abort' >"$reports"
promise what_a_task_counts_of_its_faults_is_linuxs_own KCSAN 0

report 'tick_sched_timer / do_idle' 'tick_sched_timer irq on_sched_switch@ schedule' 'do_idle' \
	>"$reports"
promise a_race_of_an_interrupt_of_the_module_is_not_shown KCSAN 0

{ report 'a / b' a b; echo '[   11.000000] WARNING: something else'; report 'a / c' a@ c; } >"$reports"
promise other_messages_and_the_next_report_stay 'WARNING: something else\|in a / c' 2

report 'a / b' a b | head -n 4 >"$reports"
promise a_report_that_is_cut_off_is_shown KCSAN 1

echo "1..$count"
exit "$failed"
