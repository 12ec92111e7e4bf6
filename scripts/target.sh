# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Tests of one kernel on one machine, a target: ARCH-FLAVOUR of scripts/kernels.txt. `make test` and
# `make test-matrix` source this file, after suite.sh.
#
#	target_tests TARGET [PROGRAM...]
#				builds the module and the VM tests for that kernel, and runs them, some of
#				them short, but none of PROGRAMs; fails if something does not build
#	target_captures TARGET	reads the captures that those have left, on this machine
#	target_guest TARGET	prints the directory of both
#
# shellcheck disable=SC2154 # $out is of suite.sh

# What makes tests short. The tasks are nearly twice as many as a table has rows.
short='KBARMAN_UNLOADS=5 TASKS=30000'

target_guest() {
	echo "build/guest/matrix-$1"
}

# QEMU does not announce the PMU of this machine's CPU.
armhf_tree() {
	device_tree armhf "$1"
	fdtput -p -t s "$1" /pmu compatible arm,cortex-a15-pmu
	fdtput -p -t x "$1" /pmu interrupts 1 7 304
}

target_tests() {
	target=$1 arch=${1%%-*} flavour=${1#*-}
	shift
	guest=$(target_guest "$target")
	options=
	case $arch in
	armhf)
		armhf_tree "$out/armhf.dtb"
		options="--qemu-arg -dtb --qemu-arg $out/armhf.dtb"
		;;
	esac
	build "$target" matrix-guest ARCH="$arch" FLAVOUR="$flavour" GUEST="$guest" || return
	title "$target: booting"
	rm -rf "$guest/results" "$guest/release"
	# shellcheck disable=SC2086 # words
	nested=1 tap "$target" 3060 scripts/vm --arch "$arch" --flavour "$flavour" --share "$guest" \
		--timeout 3000 --dmesg "$out/$target.dmesg" $options -- env $short sh matrix.sh "$@"
	tap "$target/dmesg" 0 dmesg_is_clean "$out/$target.dmesg"
}

# target_format ARCH: prints what its captures are
target_format() {
	case $1 in
	armhf | i386) echo 'BARMAN32 little' ;;
	s390x) echo 'BARMAN64 big' ;;
	*) echo 'BARMAN64 little' ;;
	esac
}

target_captures() {
	tap "$1/captures" 1200 python3 selftests/matrix/check.py "$(target_guest "$1")" build/kbarman \
		"$(target_format "${1%%-*}")"
}
