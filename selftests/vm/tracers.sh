#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh tracers.sh lttng | bpftrace
#
# Counts with that tracer how often a task is switched while it has a name that it gave itself, and
# says by how many that differs from what the task counted: "TRACER: off by N, lost nothing". The
# program tracers and lttng.sh are beside this script, and LTTng's modules are in ../../lttng. Works in a folder of
# its own, in the root of a VM.

set -eu
tracer=$1
here=$(cd "$(dirname -- "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../lib/lttng.sh
. "$here/lttng.sh"
program=$here/tracers
scrap=$(mktemp -d)
cd "$scrap"
trap 'rm -rf "$scrap"' EXIT

with_lttng() {
	export LTTNG_HOME="$scrap"
	lttng_begin "$here/../../lttng"
	{
		lttng create kbarman_test --output="$scrap/trace"
		lttng enable-channel --kernel --subbuf-size=1M --num-subbuf=8 switches
		lttng enable-event --kernel --channel=switches sched_switch
		lttng start
		"$program" --switch >said
		lttng stop
		lttng destroy
	} >lttng.log 2>&1 || cat lttng.log
	read -r name switches <said
	babeltrace2 trace >events 2>lost
	seen=$(grep -c "prev_comm = \"$name\"" events) || :
	lttng_end
}

with_bpftrace() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
	bpftrace -c "$program --switch" -e 'tracepoint:sched:sched_switch { @[args->prev_comm] = count(); }' \
		>said 2>lost
	read -r name switches <<-END
		$(sed -n '/^try_[0-9]* [0-9]*$/p' said)
	END
	seen=$(sed -n "s/^@\[$name\]: //p" said)
}

"with_$tracer"
lost=$(grep -ciE 'discarded|lost' lost) || :
[ "$lost" = 0 ] && lost=nothing
echo "$tracer: off by $((seen - switches)), lost $lost"
