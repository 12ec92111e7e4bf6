#!/bin/sh
# SPDX-License-Identifier: MIT
# The tool of `make static` on a machine that has nothing but a busybox: no library, no locale, no
# /etc. Prints TAP; runs in a VM (scripts/test-static).
nr=0 failed=0

# promise NAME COMMAND...
promise() {
	name=$1
	shift
	nr=$((nr + 1))
	if "$@" >out 2>&1; then
		echo "ok $nr - $name"
	else
		sed 's/^/# /' out
		echo "not ok $nr - $name"
		failed=1
	fi
}

# shellcheck disable=SC2317 # called by promise
nothing_is_here() {
	[ ! -e /etc/passwd ] && [ ! -e /etc/ld.so.cache ] && ! find / -xdev -name 'ld*.so*' | grep .
}

# shellcheck disable=SC2317
report_names() {
	./kbarman report static.cap | tee report
	grep -q "$1" report
}

cd /host || exit
promise the_machine_has_no_library nothing_is_here
promise the_module_is_loaded insmod ./kbarman.ko
promise the_tool_runs ./kbarman version
promise doctor_looks_at_the_machine sh -c './kbarman doctor --json; [ $? -lt 2 ]'
promise a_program_is_recorded ./kbarman record -g -o static.cap -- ./truth-static
promise the_whole_system_is_recorded ./kbarman record -a -o all.cap -- sleep 1
promise the_capture_is_valid ./kbarman check static.cap
promise functions_have_names report_names truth_sixty
promise kernel_functions_have_names report_names '\[k\] [a-z_]'
promise all_is_converted_to_html ./kbarman convert static.cap --to html
promise events_are_counted ./kbarman stat -- ./truth-static
promise the_module_is_removed rmmod kbarman
echo "1..$nr"
exit $failed
