# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# TAP for tests of scripts: source this file, and end with echo "1..$count".

# is NAME GOT WANTED FILE...: one test. If it fails, the FILEs are shown, which hold messages.
is() {
	count=$((${count:-0} + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $count - $1"
		return
	fi
	echo "not ok $count - $1"
	echo "# '$2', not '$3'"
	shift 3
	sed 's/^/# /' "$@"
}
