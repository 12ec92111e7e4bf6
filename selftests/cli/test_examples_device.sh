#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Examples of README.md and the manual that speak to the module, as they are written there. Run
# it as root where /dev/kbarman is, in a VM for instance. Needs no more than busybox has.
#
#	KBARMAN=path of the tool  TMPDIR=where to work
#	EXAMPLES=what selftests/lib/examples.py prints of `device`

# with what is beside it in the guest, or in the tree
lib=$(dirname "$0")/device_test.sh
[ -e "$lib" ] || lib=$(dirname "$0")/../lib/device_test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/device_test.sh
. "$lib"
EXAMPLES=$(readlink -f "${EXAMPLES:-$(dirname "$KBARMAN")/examples.txt}")
export KBARMAN STATUSES

# Programs that examples speak of; each kbarman leaves its status, for a pipe has another one.
prepare() {
	mkdir bin
	STATUSES=$PWD/statuses
	: >"$STATUSES"
	cat >bin/kbarman <<-'END'
		#!/bin/sh
		# Ctrl-C is for the tool alone
		trap : INT
		"$KBARMAN" "$@"
		status=$?
		echo "$status" >>"$STATUSES"
		exit $status
	END
	printf '#!/bin/sh\nsleep 0.5\n' >app
	cp app deploy
	# a small Debian has none
	cat >bin/pidof <<-'END'
		#!/bin/sh
		grep -lx "$1" /proc/[0-9]*/comm | sed 's,[^0-9],,g' | tr '\n' ' '
	END
	chmod +x bin/kbarman bin/pidof app deploy
	cp "$(command -v sleep)" server
}

# run EXAMPLE: what has no end of its own gets Ctrl-C
run() {
	case $1 in
	*'pidof server'*) ./server 4 & ;;
	*'kbarman annotate'*)
		# somebody has to record it
		"$KBARMAN" record -q -o marked.cap \
			sh -c 'touch started; while [ ! -e enough ]; do sleep 0.1; done' &
		i=0
		until [ -e started ]; do
			i=$((i + 1)); sleep 0.2
			[ $i -lt 100 ] || { echo 'no recording to write marks into'; return 1; }
		done ;;
	esac
	endless=
	seconds=600	# longer is a hang
	case $1 in
	dmesg* | *'--mode overwrite'* | *'push --openmetrics'* | 'kbarman flight --trigger'*)
		endless=yes seconds=5 ;;
	esac
	PATH=$PWD/bin:$PATH timeout -s INT $seconds sh -c "$1"
	status=$?
	touch enough
	# what an example leaves in the background
	case $1 in *'flight stop'*) ;; *'flight start'*) "$KBARMAN" flight stop || return 1 ;; esac
	wait
	[ "$endless" ] && [ $status -ge 124 ] && status=0
	return $status
}

# The example needs counters of the hardware that this machine's PMU lacks, and `kbarman stat` said so.
lacks_counters() {
	grep -qx 2 statuses && grep -qE '^kbarman stat: .*: not on this machine$' said
}

# works PLACE EXAMPLE, in a directory of its own
works() {
	prepare
	echo "NOTE $1: $2"
	run "$2" </dev/null 2>said
	status=$?
	cat said
	if lacks_counters; then
		echo 'NOTE this machine has no such counters'
		return 0
	fi
	[ $status -eq 0 ] || { echo "$1: $2: status $status"; return 1; }
	grep -qvxE "0${endless:+|130}" statuses && { echo "$1: $2"; cat statuses; return 1; }
	[ -s statuses ] || { echo "$1: $2: no kbarman ran"; return 1; }
	for capture in *.cap; do
		[ ! -e "$capture" ] || "$KBARMAN" check "$capture" || return 1
	done
}

each_example_works_as_it_is_written() {
	ran=0
	tab=$(printf '\t')
	while IFS=$tab read -r place example; do
		mkdir "$ran"
		(cd "$ran" && works "$place" "$example") || return 1
		ran=$((ran + 1))
	done <"$EXAMPLES"
	[ $ran -gt 5 ]
}

run_tests prepare run works lacks_counters
