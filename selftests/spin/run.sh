#!/bin/sh
# SPDX-License-Identifier: MIT
# The model of the ring holds, whatever the order of its steps, and it holds because of
# every barrier and every look that the ring takes: without one of them it does not.
# Prints TAP.
#
#	run.sh DIRECTORY	where the searches are built
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v spin >/dev/null; then
	echo 'ok 1 - the_model_of_the_ring_holds # SKIP spin is not installed'
	echo 1..1
	exit 0
fi
rm -rf "$1"
mkdir -p "$1"
cd "$1"

count=0
failed=0
result() {
	count=$((count + 1))
	echo "$1 $count - $2"
	case $1 in not*) failed=1 ;; esac
}

# search DEFINITION...: the search's own words in ./out, its errors in $errors
search() {
	errors=none
	: >out
	if spin -a "$@" "$here/ring.pml" >build 2>&1 &&
		"${CC:-gcc}" -w -O2 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=2000 -o pan pan.c \
			>>build 2>&1; then
		timeout 600 ./pan -m10000 >out 2>&1 || :
		# neither the depth, nor the memory, nor the time was too little for all of it
		grep -qE 'max search depth too small|out of memory|Search not completed' out ||
			errors=$(sed -n 's/.*, errors: //p' out)
		sed -n 's/.*assertion violated \(.*\) (at depth.*/# \1/p' out
	else
		sed 's/^/# /' build
	fi
}

# holds NAME DEFINITION...
holds() {
	name=$1
	shift
	search "$@"
	if [ "$errors" = 0 ]; then
		result ok "$name ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out) states)"
	else
		sed 's/^/# /' out
		result 'not ok' "$name"
	fi
}

# breaks NAME DEFINITION...
breaks() {
	name=$1
	shift
	search "$@"
	# "not completed" is as it should be here: one counterexample is enough
	if grep -q '^pan.*: assertion violated' out; then
		result ok "$name"
	else
		sed 's/^/# /' out
		result 'not ok' "$name"
	fi
}

holds the_model_holds_with_two_slots -DSLOTS=2 -DTASK=3 -DIRQ=2 -DNMI=1
holds the_model_holds_with_three_slots -DSLOTS=3 -DTASK=3 -DIRQ=2 -DNMI=1
holds the_model_holds_with_two_nmis -DSLOTS=2 -DTASK=2 -DIRQ=1 -DNMI=2
holds the_model_holds_with_records_dropped -DSLOTS=2 -DTASK=3 -DIRQ=1 -DNMI=1 -DDROP
holds the_model_holds_with_records_dropped_of_three_slots -DSLOTS=3 -DTASK=3 -DIRQ=1 -DNMI=1 -DDROP
holds the_model_holds_with_writers_counted_by_load_and_store -DCOUNTS -DTASK=2 -DIRQ=1 -DNMI=1
holds the_model_holds_with_nested_writers_counted_apart -DCOUNTS -DTASK=1 -DIRQ=2 -DNMI=2
breaks without_the_writers_barrier_A_it_breaks -DNO_WMB
breaks with_the_writers_barrier_A_behind_the_limit_it_breaks -DLIMIT_BEFORE_BARRIER
breaks without_the_readers_barrier_A_it_breaks -DNO_RMB
breaks without_the_release_B_it_breaks -DNO_RELEASE
breaks without_the_acquire_B_it_breaks -DNO_ACQUIRE
breaks without_the_second_look_after_publishing_it_breaks -DNO_RECHECK
breaks without_a_limit_to_nested_writers_it_breaks -DNO_NESTED_LOSS
breaks with_a_plain_store_of_read_offset_it_breaks -DPLAIN_READ_OFFSET
breaks with_a_plain_store_by_drop_it_breaks -DDROP -DDROP_PLAIN -DTASK=2 -DIRQ=1 -DNMI=2
breaks with_a_limit_that_drop_renews_it_breaks -DDROP -DDROP_RENEWS_LIMIT -DTASK=3 -DIRQ=1
breaks with_a_plain_store_of_w_it_breaks -DPLAIN_W
breaks with_nested_writers_that_publish_it_breaks -DPUBLISH_NESTED
breaks with_nested_writers_on_the_short_way_it_breaks -DSHORT_FROM_W
breaks with_writers_that_publish_what_others_published_it_breaks -DPUBLISH_AGAIN
breaks with_writers_that_look_at_commit_before_w_it_breaks -DCOMMIT_BEFORE_W
breaks with_writers_outermost_by_w_it_breaks -DOUTERMOST_BY_W
breaks with_nested_writers_counted_with_the_outermost_it_breaks -DCOUNTS -DCOUNT_TOGETHER -DTASK=2

holds the_stream_holds_with_two_slots -DSTREAM -DSLOTS=2 -DTASK=2 -DIRQ=1 -DNMI=1
holds the_stream_holds_with_three_slots -DSTREAM -DSLOTS=3 -DTASK=2 -DIRQ=1 -DNMI=1
breaks without_the_readers_release_C_the_stream_breaks -DSTREAM -DNO_CONSUME_RELEASE
breaks without_the_writers_control_dependency_C_the_stream_breaks -DSTREAM -DNO_CONTROL
breaks without_the_release_B_the_stream_breaks -DSTREAM -DNO_RELEASE
breaks without_the_acquire_B_the_stream_breaks -DSTREAM -DNO_ACQUIRE
breaks without_the_second_look_after_publishing_the_stream_breaks -DSTREAM -DNO_RECHECK
breaks a_stream_that_overwrites_breaks -DSTREAM -DSTREAM_OVERWRITES
echo "1..$count"
exit $failed
