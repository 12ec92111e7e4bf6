# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What tests of the tool on a real module begin and end with: a directory of their own, a
# function a promise, TAP. They are run as root where /dev/kbarman is, in a VM for instance,
# and need no more than busybox has.
#
#	KBARMAN=path of the tool  TMPDIR=where to work
#	ONLY="name ..."  LONG=1, for those too whose name begins with long_
#
# This is sourced in front of the functions; behind them comes `run_tests HELPER...` with
# those that are no tests.

self=$(readlink -f "$0")
KBARMAN=$(readlink -f "${KBARMAN:-build/kbarman}")

# built_beside VARIABLE NAME: a program's path, from VARIABLE or beside the tool
built_beside() {
	eval "$1=\$(readlink -f \"\${$1:-\$(dirname \"\$KBARMAN\")/$2}\")"
}

# with_module COMMAND PARAMETER...: COMMAND, while the module is loaded anew with these parameters;
# behind it the module is loaded without any again
with_module() {
	command=$1 module=
	shift
	for f in "${self%/*}/kbarman.ko" "${KBARMAN%/*}/kbarman.ko"; do
		[ ! -e "$f" ] || module=$f
	done
	[ "$module" ] || { echo "SKIP no kbarman.ko"; return 0; }
	rmmod kbarman || return 1
	insmod "$module" "$@" && "$command"
	status=$?
	rmmod kbarman && insmod "$module" || return 1
	return $status
}

count=0 failed=0

# Run the test of that name, a function that fails by its status; say why on stdout. Lines
# that begin with NOTE or SKIP are shown in any case.
check() {
	count=$((count + 1))
	rm -rf ./*
	if "$1" >.said 2>&1; then
		sed -n 's/^NOTE/#/p' .said
		echo "ok $count - $1$(sed -n 's/^SKIP/ # SKIP/p' .said)"
	else
		echo "not ok $count - $1"
		sed 's/^/# /' .said
		failed=$((failed + 1))
	fi
}

run_tests() {
	if [ ! -e /dev/kbarman ]; then
		echo "1..0 # SKIP there is no /dev/kbarman here"
		exit 0
	fi
	dir=$(mktemp -d "${TMPDIR:-/tmp}/kbarman-test.XXXXXX") || exit 2
	cd "$dir" || exit 2
	trap 'rm -rf "$dir"' EXIT
	# shellcheck disable=SC2013 # a word a line
	for test in ${ONLY-$(sed -n 's/^\([a-z_]*\)() {$/\1/p' "$self")}; do
		case " $* ${LONG-long_}" in
		*" $test "*) ;;
		*long_) case $test in long_*) ;; *) check "$test" ;; esac ;;
		*) check "$test" ;;
		esac
	done
	echo "1..$count"
	[ $failed -eq 0 ]
}
