#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What runs at once on a new machine needs Debian's package lists at once: scripts/apt.sh has
# them read once, and lets nobody look meanwhile. apt is one that takes a second, and has no
# lists before it is done.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"
for program in apt-get apt-cache apt-config; do
	cat >"$tmp/bin/$program" <<-'END'
	#!/bin/sh
	case ${0##*/}\ $* in
	*\ indextargets*) ;;
	apt-config*) echo 'Acquire::Retries "3";' ;;
	apt-get*\ update*)
		echo update >>"$LISTS.updates"
		rm -f "$LISTS"
		sleep 1
		: >"$LISTS"
		;;
	apt-cache*)
		sleep 0.2
		[ -e "$LISTS" ] || { echo 'E: No packages found' >&2; exit 100; }
		printf 'Package: linux-image-amd64\nDepends: linux-image-6.1.0-1-amd64 (= 1)\n'
		;;
	esac
	END
	chmod +x "$tmp/bin/$program"
done
LISTS=$tmp/lists PATH=$tmp/bin:$PATH XDG_CACHE_HOME=$tmp/cache
export LISTS PATH XDG_CACHE_HOME

# shellcheck disable=SC2016 # for the shell that is started
look='. scripts/lib.sh; . scripts/apt.sh; KB_KEYRING=/dev/null; apt_update amd64
	apt_depends amd64 linux-image-amd64 "^linux-image-[0-9]"'
runs='1 2 3 4'
for n in $runs; do
	sleep "0.$n"
	sh -ec "$look" "$PWD/scripts/test" >"$tmp/found.$n" 2>"$tmp/said.$n" &
done
wait

for n in $runs; do
	is "run_${n}_of_4_finds_its_package" "$(cat "$tmp/found.$n")" linux-image-6.1.0-1-amd64 \
		"$tmp"/said.*
done
is package_lists_are_read_once "$(grep -c update "$LISTS.updates")" 1 "$tmp"/said.*
echo "1..$count"
