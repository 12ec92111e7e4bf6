#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kbarmand on a real module: files one behind the other, nothing lost and nothing twice whatever
# happens to the agent and its disk. selftests/lib/device_test.sh says how to run it; besides
#
#	KEEPER=path of selftests/vm/keeper.c
#	AGENT_KILLS=10	how often the agent is killed

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
# shellcheck source-path=SCRIPTDIR source=../lib/device_record.sh
. "${lib%test.sh}record.sh"
built_beside KEEPER keeper
built_beside AGENT kbarmand

# configure [LINE...]: of the one session
configure() {
	mkdir -p caps
	cat >conf <<-END
		[agent]
		folder = $PWD/caps
		folder_max = ${FOLDER_MAX:-1G}
		state = $PWD/state
		[session all]
		$(for line; do echo "$line"; done)
	END
}

# Switches tasks until the file `stop` is there.
busy() {
	while [ ! -e stop ]; do /bin/true; done
}

# until_true COMMAND...: at most 30 s
until_true() {
	i=0
	until "$@" >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 300 ] || { echo "never: $*"; return 1; }
		sleep 0.1
	done
}

captures() {
	# shellcheck disable=SC2012 # names are ours
	ls caps/*.cap 2>/dev/null | sort -t- -k2
}

nr_captures() {
	[ "$(captures | wc -l)" -ge "$1" ]
}

fact() {
	facts "$1" | sed -n "s/^$2=//p"
}

# All captures together have all that the session wrote, each once: as many records as the kernel
# counted, and the parts of each ring one behind the other.
have_all() {
	records=0 last=
	for c in $(captures); do
		"$KBARMAN" check -q "$c" || return 1
		records=$((records + $(records_in "$c")))
		last=$c
	done
	written=$(sum_of "$last" '^part_written')
	echo "$(captures | wc -l) captures, $records records, $written written"
	[ "$records" -eq "$written" ] && [ "$records" -gt 0 ] || return 1
	for cpu in $(facts "$last" | sed -n 's/^part_ring\.\([0-9]*\)=.*/\1/p'); do
		at=
		for c in $(captures); do
			ring=$(fact "$c" "part_ring.$cpu")
			# a file that was cut off does not say where it ends
			if [ "$ring" ] && [ "$at" ] && [ "${ring%,*}" != "$at" ]; then
				echo "CPU $cpu: $c begins at ${ring%,*}, and the one before it ended at $at"
				return 1
			fi
			at=${ring#*,}
		done
	done
}

# No part is missing, and none is there twice.
parts_follow() {
	n=0
	for c in $(captures); do
		n=$((n + 1))
		part=$(fact "$c" part)
		[ "${part%%,*}" = $n ] || { echo "$c is part $part, not $n"; return 1; }
	done
}

one_agent_writes_captures_one_behind_the_other() {
	configure 'file_time = 1s' 'buffer = 4M'
	busy &
	"$AGENT" -c conf &
	pid=$!
	until_true nr_captures 4
	[ "$(find caps -name '*.part' | wc -l)" -le 2 ] || return 1
	"$AGENT" -c conf --status || return 1
	kill -TERM $pid
	wait $pid || return 1
	touch stop
	wait
	[ "$(find caps -name '*.part' | wc -l)" -eq 0 ] && have_all && parts_follow || return 1
	for c in $(captures); do
		is_whole "$c" && in_order "$c" || return 1
		"$KBARMAN" report "$c" >/dev/null || return 1
	done
	[ ! -e state ] && [ "$(sum_of "$(captures | tail -n 1)" '^part_lost')" -eq 0 ]
}

an_agent_that_is_killed_loses_nothing() {
	configure 'file_time = 1s' 'buffer = 4M'
	busy &
	"$KEEPER" -k "${AGENT_KILLS:-10}" -l 1 -m 1500 "$AGENT" -k -c conf >kept 2>said &
	pid=$!
	until_true grep -q 'killed enough' kept || { i=0; until_true grep -q 'killed enough' kept; }
	sleep 1
	# without the section the session ends
	sed -i 's/session all/session other/' conf
	kill -HUP $pid
	until_true sh -c 'ls caps/other-*' || { cat kept said; return 1; }
	rm -f caps/other-*
	kill -TERM $pid
	wait $pid
	touch stop
	wait
	rm -f caps/other-*
	cat said
	have_all && parts_follow
}

run_tests configure busy until_true captures nr_captures fact have_all parts_follow
