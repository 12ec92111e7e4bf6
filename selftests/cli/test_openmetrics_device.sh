#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Metrics of a session on a real module: `kbarman push --openmetrics`. Run it as root where
# /dev/kbarman is, in a VM for instance. Needs no more than busybox has.
#
#	KBARMAN=path of the tool  TMPDIR=where to work

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"

# value FILE METRIC [LABEL="TEXT"]: the sum of its lines
value() {
	awk -v name="$2" -v label="$3" '
		index($0, name "{") == 1 || index($0, name " ") == 1 {
			if (label == "" || index($1, label))
				sum += $NF
		}
		END { printf "%.9f\n", sum }' "$1"
}

# grown FILE FILE METRIC: is it more in the second one, or MOST lines the same
grown() {
	awk -v a="$(value "$1" "$3")" -v b="$(value "$2" "$3")" 'BEGIN { exit !(b > a) }' ||
		{ echo "$3: $(value "$1" "$3"), then $(value "$2" "$3")"; return 1; }
}

# Every line with a number that only grows is in the second file, with no less.
never_less() {
	awk '
		/^#/ { next }
		{ n = $NF; sub(/ [^ ]*$/, "") }
		NR == FNR { if (/^[a-z_]*(_total|_count|_sum|_bucket)/) before[$0] = n; next }
		{ now[$0] = n }
		END {
			for (key in before)
				if (!(key in now) || now[key] < before[key]) {
					print key, before[key], now[key]
					bad = 1
				}
			exit bad
		}' "$1" "$2"
}

# wait_for FILE: at most 20 s
wait_for() {
	i=0
	until [ -s "$1" ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || { echo "no $1"; cat said; return 1; }
		sleep 0.1
	done
}

# A task that runs, sleeps, and is woken 100 times a second.
work() {
	while [ ! -e enough ]; do
		sleep 0.01
	done
}

push() {
	"$KBARMAN" push --openmetrics "$@" 2>said &
	pushed=$!
}

# ends STATUS: the push in the background, by a signal
ends() {
	kill "$pushed"
	wait "$pushed"
	status=$?
	[ $status -eq "$1" ] || { echo "status $status"; cat said; return 1; }
}

# ---- promises ----

metrics_of_this_machine_grow() {
	work &
	push now.prom --interval 1
	wait_for now.prom || return 1
	cp now.prom first.prom
	sleep 4
	cp now.prom second.prom
	ends 0
	result=$?
	touch enough
	wait
	[ $result -eq 0 ] || return 1
	never_less first.prom second.prom || return 1
	for metric in kbarman_run_queue_latency_seconds_count kbarman_run_queue_latency_seconds_sum \
		kbarman_cpu_seconds_total kbarman_context_switches_total kbarman_wakeups_total \
		kbarman_interrupts_total kbarman_interrupt_seconds_total kbarman_records_total \
		kbarman_records_written_total kbarman_reader_cpu_seconds_total \
		kbarman_reader_bytes_total kbarman_reader_wakeups_total; do
		grown first.prom second.prom $metric || return 1
	done
	# a sleep of 10 ms is a wakeup, of which each has its wait
	awk -v woken="$(value second.prom kbarman_wakeups_total)" \
		-v waits="$(value second.prom kbarman_run_queue_latency_seconds_count 'cause="woken"')" \
		'BEGIN { print woken, waits; exit !(woken > 100 && waits > woken / 2 && waits <= woken) }' ||
		return 1
	[ "$(value second.prom kbarman_records_lost_total)" = 0.000000000 ] || return 1
	[ "$(value second.prom kbarman_unread_seconds_total)" = 0.000000000 ] || return 1
	echo "NOTE reader: $(value second.prom kbarman_reader_cpu_seconds_total) s of CPU," \
		"$(value second.prom kbarman_reader_bytes_total) bytes," \
		"$(value second.prom kbarman_reader_resident_bytes) resident"
	"$KBARMAN" list --sessions >sessions 2>&1
	grep -q push sessions && { cat sessions; return 1; }
	return 0
}

# The flight recorder goes on; what it keeps at the end is what was counted: its rings hold all.
numbers_are_those_of_the_report_of_the_same_session() {
	work &
	"$KBARMAN" record -a --mode overwrite --latency -m 16M -F 0 -o kept.cap -- sh -c '
		touch begun; while [ ! -e over ]; do sleep 0.1; done' >recorded 2>&1 &
	i=0
	until [ -e begun ]; do
		i=$((i + 1)); sleep 0.1
		[ $i -lt 200 ] || { cat recorded; touch enough; return 1; }
	done
	push now.prom --interval 0.5
	wait_for now.prom
	sleep 3
	ends 0
	result=$?
	# later than all that was counted
	"$KBARMAN" snapshot -o all.cap || result=1
	touch over enough
	wait
	[ $result -eq 0 ] || return 1
	grep -q 'reading the session' said || { cat said; return 1; }
	# the same records up to a moment: the metrics of the snapshot have a little more
	"$KBARMAN" push --openmetrics all.prom all.cap || return 1
	never_less now.prom all.prom >less
	# the file of captures has its own cost, and says nothing of the server
	sed -i -e '/^kbarman_reader_/d' -e '/^kbarman_server_/d' -e '/^kbarman_captures/d' less
	[ ! -s less ] || { head -20 less; return 1; }
	for metric in kbarman_run_queue_latency_seconds_count kbarman_context_switches_total \
		kbarman_wakeups_total kbarman_interrupts_total kbarman_records_total; do
		awk -v a="$(value now.prom $metric)" -v b="$(value all.prom $metric)" \
			-v name=$metric 'BEGIN { print name, a, b; exit !(a > b / 2 && a <= b) }' || return 1
	done
	# and those are the report's
	"$KBARMAN" report --latency --json all.cap | sed -n 1,3p >report.json
	want=$(sed -n 's/.*"waits":\([0-9]*\),.*/\1/p' report.json | awk '{ n += $1 } END { printf "%.9f", n }')
	[ "$want" = "$(value all.prom kbarman_run_queue_latency_seconds_count)" ] ||
		{ cat report.json; value all.prom kbarman_run_queue_latency_seconds_count; return 1; }
	want=$(sed -n 's/.*"sum_ns":\([0-9]*\),.*/\1/p' report.json | awk '{ n += $1 } END { printf "%.6f", n / 1e9 }')
	[ "$want" = "$(printf '%.6f' "$(value all.prom kbarman_run_queue_latency_seconds_sum)")" ] ||
		{ cat report.json; value all.prom kbarman_run_queue_latency_seconds_sum; return 1; }
	"$KBARMAN" report --irq --json all.cap >irq.json
	want=$(sed -n 's/^{"kind":"halts".*"count":\([0-9]*\),.*/\1/p' irq.json |
		awk '{ n += $1 } END { printf "%.9f", n }')
	[ "$want" = "$(value all.prom kbarman_idle_entries_total)" ] ||
		{ grep '"halts"' irq.json; value all.prom kbarman_idle_entries_total; return 1; }
}

a_server_shows_them() {
	command -v wget >/dev/null || { echo 'SKIP no wget here'; return 0; }
	push 127.0.0.1:9977 --interval 0.5
	i=0
	until wget -q -O got.txt http://127.0.0.1:9977/metrics; do
		i=$((i + 1)); sleep 0.2
		[ $i -lt 100 ] || { cat said; ends 0; return 1; }
	done
	ends 0 || return 1
	[ "$(value got.txt kbarman_context_switches_total)" != 0.000000000 ]
}

run_tests value grown never_less wait_for work push ends
