#!/bin/sh
# SPDX-License-Identifier: MIT
# Every seeded bug in mutants/ must be found, by the single-step test, or by the one of polling
# if it is the wake-up's: a test that can't fail proves nothing. Prints TAP, with what gave
# each one away.
#
#	mutants.sh DIRECTORY	where the mutants are built
set -eu

here=$(cd "$(dirname "$0")" && pwd)
kmod=$here/../../kmod
build=$1
rm -rf "$build"
mkdir -p "$build"

count=0
failed=0
result() {
	count=$((count + 1))
	echo "$1 $count - $2"
	case $1 in not*) failed=1 ;; esac
}

for mutant in "$here"/mutants/*.sed; do
	name=$(basename "$mutant" .sed)
	what=$(sed -n '1s/^# //p' "$mutant")
	mkdir -p "$build/$name/ring"
	program=
	for file in ring.c ring.h wake.c wake.h snapshot.h; do
		from=$kmod/ring
		[ $file != snapshot.h ] || from=$here
		sed -f "$mutant" "$from/$file" >"$build/$name/ring/$file"
		cmp -s "$build/$name/ring/$file" "$from/$file" && continue
		case $file in
		ring.* | snapshot.h) program=step tested=ring.c arguments='5 16 1' ;;
		wake.*) program=poll tested=wake.c arguments=100 ;;
		esac
	done
	if [ -z "$program" ]; then
		result "not ok" "$name changes nothing: the ring has moved on, mend the mutant"
		continue
	fi
	"${CC:-gcc}" -std=gnu11 -O2 -w -D_GNU_SOURCE -include "$here/ring_env.h" -I"$build/$name" \
		-I"$build/$name/ring" -I"$here" -I"$kmod" "$here/$program.c" "$build/$name/ring/$tested" -pthread \
		-o "$build/$name/$program"
	status=0
	# Of the processor's time: a busy machine takes longer. SIGXCPU is 24.
	# shellcheck disable=SC2086 # words
	timeout 600 prlimit --cpu=120:130 "$build/$name/$program" $arguments \
		>"$build/$name/out" 2>&1 || status=$?
	sed -n 's/^not ok - /# /p' "$build/$name/out"
	skip=$(sed -n 's/^ok.*\(# SKIP .*\)/\1/p' "$build/$name/out")
	if [ "$skip" ]; then
		result ok "found: $what $skip"
		continue
	fi
	case $status in
	0 | 124 | 152)
		echo "# exit status $status"
		result "not ok" "found: $what"
		;;
	1) result ok "found: $what" ;;
	*) # a signal: what the mutant did to itself
		echo "# exit status $status"
		result ok "found: $what"
		;;
	esac
done
echo "1..$count"
exit $failed
