# shellcheck shell=sh disable=SC2154 # $folder and $session are those of the test
# SPDX-License-Identifier: MIT
#
# Captures that an agent writes one behind the other: waiting for them, what is missing, and what is
# there twice.
# device_record.sh stands before it.

# until_true COMMAND...: at most 40 s
until_true() {
	i=0
	until "$@" >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 200 ] || { echo "never: $*"; return 1; }
		sleep 0.2
	done
}

# The captures in $folder, of session $session or all, in the order of their recording.
captures() {
	# shellcheck disable=SC2012 # names are ours
	ls "${folder:-caps}/${session-}"*.cap 2>/dev/null | sort -t- -k2
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
