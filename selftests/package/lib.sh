# shellcheck shell=sh disable=SC2154 # $work is that of the test
# SPDX-License-Identifier: MIT
#
# What the tests of packages and archives share. They set $work, which they remove in the end.

# result STATUS NAME: with what was said, if it was in vain
result() {
	if [ "$1" -eq 0 ]; then
		echo "ok - $2"
	else
		tail -n 30 "$work/said" | sed 's/^/# /'
		echo "not ok - $2"
	fi
	return "$1"
}

# present: the commit of this tree as it stands, with what is not committed. It is on no branch.
present() {
	commit=$(GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test GIT_COMMITTER_NAME=test \
		GIT_COMMITTER_EMAIL=test git stash create) && git rev-parse "${commit:-HEAD}"
}

# otherwise COMMAND...: what may not change what is made: another user, place of the Earth, language
otherwise() (
	umask 077
	TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 LANGUAGE=tr HOME=$work/nobody USER=nobody
	export TZ LC_ALL LANGUAGE HOME USER
	"$@"
)
