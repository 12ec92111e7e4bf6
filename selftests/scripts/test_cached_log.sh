#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/cached-log: what the cache has is what the command says, and whatever decides about it has
# the command run again.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
XDG_CACHE_HOME=$tmp/cache
export XDG_CACHE_HOME
# a source of its own
mkdir -p "$tmp/a/kmod" "$tmp/a/user" "$tmp/a/selftests/analyze"
cp -r scripts "$tmp/a"
touch "$tmp/a/Kbuild" "$tmp/a/Makefile" "$tmp/a/user/a.c"
cp -r "$tmp/a" "$tmp/b"

# said TREE WORD: what the log has, and how often the command ran
said() {
	: >"$tmp/runs"
	tree=$tmp/$1
	shift
	# shellcheck disable=SC2016 # $0 is of that shell
	(cd "$tree" && scripts/cached-log "$tmp/log" "$@" -- sh -c \
		'echo once >>"$0"; echo told; echo of it >&2; exit ${STATUS:-0}' "$tmp/runs") || echo fails
	echo "$(tr '\n' , <"$tmp/log")$(wc -l <"$tmp/runs")"
}

is what_the_command_says_is_written "$(said a word)" 'told,of it,1'
rm "$tmp/log"
is what_the_cache_has_is_written "$(said a word)" 'told,of it,0'
is another_tree_with_these_files_is_as_good "$(said b word)" 'told,of it,0'
is another_word_runs_it_again "$(said a other)" 'told,of it,1'
echo '/* */' >"$tmp/a/user/a.c"
is another_source_runs_it_again "$(said a word)" 'told,of it,1'
touch "$tmp/a/kmod/b.c"
is one_more_file_runs_it_again "$(said a word)" 'told,of it,1'
mv "$tmp/a/kmod/b.c" "$tmp/a/kmod/c.c"
is another_name_runs_it_again "$(said a word)" 'told,of it,1'
echo '# more' >>"$tmp/a/scripts/analyze.mk"
is a_changed_script_runs_it_again "$(said a word)" 'told,of it,1'
echo '/* more */' >>"$tmp/a/kmod/c.c"
is a_command_that_fails_is_told "$(STATUS=3 said a word)" 'fails
told,of it,1'
is and_not_kept "$(STATUS=3 said a word)" 'fails
told,of it,1'
echo "1..$count"
