# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What all scripts here share: messages, the table of architectures, and a cache whose entries
# are either complete or absent. Sourced, never run; the script that sources it has set -eu.
#
# Cache rule: an entry is a directory, built beside its final name and moved there when it is
# complete. So its existence means it can be used, a run that was killed leaves only a *.tmp
# behind, and two runs that want the same entry wait for each other instead of colliding.

# Ordinary users have no sbin in their PATH; depmod and modprobe live there.
PATH=$PATH:/usr/sbin:/sbin

KB_ME=${0##*/}
# shellcheck disable=SC2034 # for those who source this
KB_SCRIPTS=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
KB_CACHE=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME: it says where the cache goes}/.cache}/kbarman

say() {
	printf '%s: %s\n' "$KB_ME" "$*" >&2
}

# die WHAT-IS-WRONG WHAT-TO-DO
die() {
	printf '%s: %s\n' "$KB_ME" "$1" >&2
	[ $# -lt 2 ] || printf '%s: %s\n' "$KB_ME" "$2" >&2
	exit 1
}

# need PROGRAM PACKAGE: fail early and with the remedy, not in the middle of a step
need() {
	command -v "$1" >/dev/null || die "$1 is not installed" "run scripts/setup (package $2)"
}

# usage: print the comment block at the head of the script, which is its manual
usage() {
	sed -n '/^# Usage:/,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p;}' "$0"
	exit "${1:-0}"
}

host_arch() {
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	armv7l) echo armhf ;;
	i?86) echo i386 ;;
	*) uname -m ;;
	esac
}

# The one place that knows what an architecture is called by whom. Debian names it DEB; QEMU,
# the kernel's build (ARCH=), GNU tools and Debian's kernel packages each have their own word.
# arch_table DEB sets: A_QEMU A_KBUILD A_GNU A_LINUX A_CONSOLE A_MACHINE A_CPU
arch_table() {
	case $1 in
	#      QEMU     Kbuild  GNU triplet          linux-image- console   machine  cpu
	amd64) set -- "$1" x86_64  x86_64 x86_64-linux-gnu    amd64   ttyS0   q35  max ;;
	arm64) set -- "$1" aarch64 arm64  aarch64-linux-gnu   arm64   ttyAMA0 virt cortex-a72 ;;
	armhf) set -- "$1" arm     arm    arm-linux-gnueabihf armmp   ttyAMA0 virt,highmem=off cortex-a15 ;;
	i386)  set -- "$1" i386    i386   i386-linux-gnu      686-pae ttyS0   q35  max ;;
	s390x) set -- "$1" s390x   s390   s390x-linux-gnu     s390x   ttysclp0 s390-ccw-virtio max ;;
	*) die "unknown architecture '$1'" "use amd64 or arm64 (also known: armhf, i386, s390x)" ;;
	esac
	# shellcheck disable=SC2034 # each script uses its part of the row
	A_QEMU=$2 A_KBUILD=$3 A_GNU=$4 A_LINUX=$5 A_CONSOLE=$6 A_MACHINE=$7 A_CPU=$8
}

# locked NAME COMMAND...: only one run at a time holds NAME
locked() (
	lock=$KB_CACHE/lock/$1
	mkdir -p "${lock%/*}" 2>/dev/null || die "cannot create ${lock%/*}" \
		"make it writable, or point XDG_CACHE_HOME at a directory that is"
	[ -w "${lock%/*}" ] || die "$KB_CACHE belongs to somebody else" \
		"run this as its owner, remove it, or set XDG_CACHE_HOME"
	shift
	exec 9>"$lock"
	flock -n 9 || { say "waiting for another run (${lock##*/})"; flock 9; }
	"$@" 9>&-
)

# cache_make ENTRY BUILDER [ARG...]: makes sure $KB_CACHE/ENTRY is there. The builder gets a
# new directory as its first argument and fills it. Not to be called where the shell ignores
# set -e (in a condition): a failed step of the builder must end it.
cache_make() {
	[ ! -e "$KB_CACHE/$1" ] || return 0
	need flock util-linux
	locked "$(echo "$1" | tr / .)" cache_build "$@"
}

cache_build() {
	entry=$KB_CACHE/$1 builder=$2
	shift 2
	[ ! -e "$entry" ] || return 0
	mkdir -p "${entry%/*}"
	[ "$(df -Pk "$KB_CACHE" | awk 'NR == 2 { print $4 }')" -gt 800000 ] ||
		die "less than 800 MB are free in $KB_CACHE" \
			'make room, or point XDG_CACHE_HOME somewhere else'
	# we hold the lock, so what lies here was left by a run that was killed
	rm -rf "$entry".tmp.*
	tmp=$entry.tmp.$$
	trap 'chmod -R u+rwX "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir "$tmp"
	"$builder" "$tmp" "$@"
	mv "$tmp" "$entry"
	trap - EXIT
}

# stamp FILE...: a short name for the contents of files, for entries that depend on them
stamp() {
	cat -- "$@" | cksum | cut -d' ' -f1
}
