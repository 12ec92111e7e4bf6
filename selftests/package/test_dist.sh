#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: selftests/package/test_dist.sh
#
# The archive of `make dist`: the same source makes the same archive, tool, library and module,
# wherever, whenever and by whom it is built, and the archive needs no git. Prints TAP.

set -u
cd "$(dirname -- "$0")/../.." || exit
top=$PWD
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP
# shellcheck source=SCRIPTDIR/lib.sh
. "$top/selftests/package/lib.sh"
version=$(cat VERSION)
# Two places. A name in a binary would be of another length, too.
one=$work/1/kbarman-$version
two=$work/2/a/much/longer/path/kbarman-$version

pack() {
	commit=$(present) && scripts/dist "$commit" "$work" &&
		mkdir "$work/again" && GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=tar.umask GIT_CONFIG_VALUE_0=0 \
		XZ_OPT=-0 otherwise scripts/dist "$commit" "$work/again"
}

the_same_commit_makes_the_same_archive() {
	cmp "$work/kbarman-$version.tar.xz" "$work/again/kbarman-$version.tar.xz"
}

it_has_what_git_has_and_belongs_to_root() {
	tar -tvf "$work/kbarman-$version.tar.xz" --numeric-owner --full-time >"$work/list" &&
		! grep -vE '^[d-]r[w-]xr-xr-x 0/0 |^[d-]rw-r--r-- 0/0 ' "$work/list" &&
		[ "$(awk '{ print $4, $5 }' "$work/list" | sort -u | wc -l)" -eq 1 ] &&
		sed -n "s,.* kbarman-$version/\(.*[^/]\)\$,\1,p" "$work/list" | sort >"$work/names" &&
		git ls-files | sort | diff - "$work/names"
}

# What a test had left behind at the top of the tree was once committed.
known='ARCHITECTURE.md CONTRIBUTING.md Kbuild LICENSE LICENSES Makefile NEWS README.md SECURITY.md
VERSION debian dkms.conf docs kmod packaging scripts selftests user'

it_has_no_leftovers() {
	echo "$known" | tr ' ' '\n' | sort >"$work/known" &&
		cut -d/ -f1 "$work/names" | grep -v '^\.' | sort -u | diff - "$work/known"
}

# The files of the second one are as old as their unpacking.
unpack() {
	mkdir -p "${one%/*}" "${two%/*}" &&
		tar -xf "$work/kbarman-$version.tar.xz" -C "${one%/*}" &&
		otherwise tar -xmf "$work/kbarman-$version.tar.xz" -C "${two%/*}"
}

it_builds_without_git() {
	make -C "$one" user && [ "$("$one/build/kbarman" --version)" = "kbarman $version" ]
}

the_same_source_makes_the_same_tool_and_library() {
	otherwise make -C "$two" user || return
	for file in kbarman kbarman-push libkbarman.a libkbarman.so map_reader; do
		cmp "$one/build/$file" "$two/build/$file" || return
	done
}

# as DKMS builds: it takes the command from dkms.conf and adds the release
by_dkms() (
	dkms_tree=$two/dkms kernel_source_dir=$KDIR
	export dkms_tree kernel_source_dir
	rm -rf "$dkms_tree"
	build=$dkms_tree/kbarman/$version/build
	mkdir -p "$build" && cp -r Kbuild VERSION kmod dkms.conf "$build" && cd "$build" || return
	# shellcheck disable=SC2016 # for the shell that knows MAKE[0]
	command=$(bash -c '. ./dkms.conf && echo "${MAKE[0]}"') &&
		eval "$KTOOLS make KERNELRELEASE=$KREL ${command#make}"
)

# the_module: by make in one place and by DKMS in the other
the_module() {
	rm -rf "$one/build/module"
	make -C "$one" module KDIR="$KDIR" CROSS_COMPILE="$KCROSS" KTOOLS="$KTOOLS" &&
		(cd "$two" && otherwise by_dkms) &&
		cmp "$one/build/kbarman.ko" "$two/dkms/kbarman/$version/build/kbarman.ko" &&
		[ "$(modinfo -F version "$one/build/kbarman.ko")" = "$version" ] &&
		! grep -c "$work" "$one/build/kbarman.ko"	# with its debug information
}

unset MAKEFLAGS MFLAGS MAKEOVERRIDES SOURCE_DATE_EPOCH
if [ ! -e .git ]; then
	echo 'ok - make_dist_packs_the_source # SKIP this tree is not one of git'
	exit 0
fi
pack >"$work/said" 2>&1
result $? make_dist_packs_the_source || exit
for test in the_same_commit_makes_the_same_archive it_has_what_git_has_and_belongs_to_root \
	it_has_no_leftovers unpack it_builds_without_git the_same_source_makes_the_same_tool_and_library; do
	$test >"$work/said" 2>&1 </dev/null
	result $? $test
done
# before and after 6.13, which builds a module in the module's own directory
for flavour in 6.1 7.3; do
	name=make_and_dkms_make_the_same_module_for_$flavour
	kernel=$(scripts/kernel "$(dpkg --print-architecture)" $flavour) && eval "$kernel"
	if [ "$KTOOLS" ] && ! $KTOOLS true 2>/dev/null; then
		echo "ok - $name # SKIP this machine grants no mount namespace (unshare --mount)"
		continue
	fi
	the_module >"$work/said" 2>&1 </dev/null
	result $? $name
done
