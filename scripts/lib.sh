# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The common part of all scripts: messages, the table of architectures, and a cache whose entries
# are either complete or absent. Scripts that have set -eu source this file; it is never run.
#
# Cache rule: an entry is a directory. It is built beside its final name and renamed when it is
# complete. So an entry that exists can be used, a killed run leaves only a *.tmp, and a lock
# makes two runs that want the same entry wait for each other.

# Ordinary users have no sbin in their PATH; depmod and modprobe are there.
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

# need PROGRAM PACKAGE: ends with a message that names PACKAGE if PROGRAM is not installed
need() {
	command -v "$1" >/dev/null || die "$1 is not installed" "run scripts/setup (package $2)"
}

# usage STATUS: prints the comment block at the head of the script and exits
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

# Debian's name of this machine's release, such as bookworm.
host_suite() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

# The names of an architecture. Debian's name is DEB; QEMU, the kernel's build (ARCH=), GNU tools
# and Debian's kernel packages each have their own name.
# arch_table DEB sets: A_QEMU A_KBUILD A_GNU A_LINUX A_CONSOLE A_MACHINE A_CPU; A_CROSS, which is
# CROSS_COMPILE= of its compiler; and A_SUITE, the Debian release that its programs come from
arch_table() {
	A_SUITE=bookworm
	# shellcheck disable=SC2034 # as below
	[ "$1" != riscv64 ] || A_SUITE=trixie	# the first release that has it
	case $1 in
	#      QEMU     Kbuild  GNU triplet          linux-image- console   machine  cpu
	amd64) set -- "$1" x86_64  x86_64 x86_64-linux-gnu    amd64   ttyS0   q35  max ;;
	arm64) set -- "$1" aarch64 arm64  aarch64-linux-gnu   arm64   ttyAMA0 virt cortex-a72 ;;
	armhf) set -- "$1" arm     arm    arm-linux-gnueabihf armmp   ttyAMA0 virt,highmem=off cortex-a15 ;;
	i386)  set -- "$1" i386    i386   i386-linux-gnu      686-pae ttyS0   q35  max ;;
	s390x) set -- "$1" s390x   s390   s390x-linux-gnu     s390x   ttysclp0 s390-ccw-virtio max ;;
	riscv64) set -- "$1" riscv64 riscv riscv64-linux-gnu  riscv64 ttyS0   virt rv64,sscofpmf=on ;;
	*) die "unknown architecture '$1'" \
		"use amd64 or arm64 (also known: armhf, i386, riscv64, s390x)" ;;
	esac
	# shellcheck disable=SC2034 # each script uses its part of the row
	A_QEMU=$2 A_KBUILD=$3 A_GNU=$4 A_LINUX=$5 A_CONSOLE=$6 A_MACHINE=$7 A_CPU=$8
	# shellcheck disable=SC2034
	case $1 in
	"$(host_arch)") A_CROSS='' ;;
	# Debian names this compiler after the oldest CPU that it supports
	i386) A_CROSS=i686-linux-gnu- ;;
	*) A_CROSS=$A_GNU- ;;
	esac
}

# locked NAME COMMAND...: only one run at a time holds NAME
locked() (
	lock=$KB_CACHE/lock/$1
	mkdir -p "${lock%/*}" 2>/dev/null || die "cannot create ${lock%/*}" \
		"make it writable, or point XDG_CACHE_HOME at a directory that is"
	[ -w "${lock%/*}" ] || die "you may not write to $KB_CACHE" \
		"run this as its owner, remove it, or set XDG_CACHE_HOME"
	shift
	exec 9>"$lock"
	flock -n 9 || { say "waiting for another run (${lock##*/})"; flock 9; }
	"$@" 9>&-
)

# cache_make ENTRY BUILDER [ARG...]: makes $KB_CACHE/ENTRY unless it exists. The builder gets a new
# directory as its first argument and fills it. Don't call this function in a condition: the shell
# ignores set -e there, and a failed step must end the builder.
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
	# This run holds the lock, so a killed run has left this directory.
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

# stamp FILE...: prints a checksum of the files, for the names of entries that depend on them
stamp() {
	cat -- "$@" | cksum | cut -d' ' -f1
}
