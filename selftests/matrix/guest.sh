#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: sh guest.sh [PROGRAM...]
#
# What a VM of the matrix does: the kselftests of the module but PROGRAMs, and captures, which it
# leaves in results/ for the host's reader. Prints TAP as run_kselftest.sh does.

export KBARMAN_TEST_VM=1
tests=
# shellcheck disable=SC2013 # one word a line
for t in $(cat kselftest/kselftest-list.txt); do
	case " $* lockdown " in *" ${t#*:} "*) ;; *) tests="$tests -t $t" ;; esac
done
# shellcheck disable=SC2086 # a list
sh kselftest/run_kselftest.sh $tests

rm -rf results
[ -e /dev/kbarman ] || insmod kbarman.ko
echo '# selftests: kbarman: capture'
if ./capture results >/run/kb/said 2>&1; then
	status='ok 1'
else
	status='not ok 1'
fi
sed 's/^/# /' /run/kb/said
echo "$status selftests: kbarman: capture"
uname -r >release
rmmod kbarman
sh kselftest/run_kselftest.sh -t kbarman:lockdown
exit 0
