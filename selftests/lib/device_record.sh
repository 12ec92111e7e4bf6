# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What tests of recordings on a real module have in common, beside device_test.sh: to wait
# until one runs, and to look whether a capture has all that the module says it wrote.

# In the foreground only: $! has to be the tool, not a shell.
record() {
	"$KBARMAN" record "$@"
}

# The file has what a capture begins with: it is written when all before it is on the disk.
has_header() {
	[ -e "$1" ] && [ "$(head -c 8 "$1" | tr -d '\0')" ]
}

# Wait until the recording in FILE.partial has begun, at most 20 s; the first sync is there.
begun() {
	i=0
	until has_header "$1.partial"; do
		i=$((i + 1))
		[ $i -lt 200 ] || { echo "no $1.partial"; return 1; }
		sleep 0.1
	done
}

# The facts of a capture, "KEY=VALUE" a line. While it is recorded its tables are mostly zeros.
facts() {
	tr -s '\0' '\n' <"$1" | sed -n 's/^kbarman\.//p'
}

# The sum of the facts whose key matches.
sum_of() {
	facts "$1" | awk -F= -v key="$2" '$1 ~ key { n += $2 } END { print n + 0 }'
}

records_in() {
	"$KBARMAN" info --json "$1" | sed -n 's/^{"kind":"records","records":\([0-9]*\),.*/\1/p'
}

# It decodes to its last byte, and has as many records as the module counted.
is_whole() {
	"$KBARMAN" check "$1" || return 1
	in_file=$(records_in "$1")
	written=$(($(sum_of "$1" '^written') - $(sum_of "$1" '^overwritten')))
	echo "$1: $in_file records, $written written"
	[ "$in_file" -eq "$written" ] && [ "$in_file" -gt 0 ]
}

in_order() {
	"$KBARMAN" dump --json "$1" | sed -n 's/.*"kind":"record".*"timestamp":\([0-9]*\).*/\1/p' |
		sort -n -c
}
