# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The kernels of scripts/kernels.txt: which releases a suite has of them, and their headers. Source
# this file after apt.sh.

kernel_table() {
	sed '/^#/d' "$KB_SCRIPTS/kernels.txt"
}

# kernel_releases ARCH VERSION KIND: those of apt_suite's suite that have both headers and an image,
# the newest one first. VERSION and KIND are as in the table.
kernel_releases() (
	arch_table "$1"
	version=$2 kind=${3#-}
	case $kind in
	generic) ;;
	*) kind=${kind:+$kind-}$A_LINUX ;;
	esac
	[ "$version" != any ] || version='[0-9][0-9.]*'
	apt_cache "$1" pkgnames linux- | sed -n 's/^linux-headers-//p; s/^linux-image-//p' |
		grep -Ex "${version}([.+~-](rc)?[0-9a-z.+~]*[0-9][0-9a-z.+~]*)*-$kind" |
		sort | uniq -d | sort -rV
)

# kernel_module FILE: prints this module of a kernel, which may be packed
kernel_module() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*) cat "$1" ;;
	esac
}

# kernel_can_build_here KIND ARCH: whether the programs that the headers bring run on this machine.
# Debian has them apart, for each machine.
kernel_can_build_here() {
	[ "$1" != generic ] || [ "$2" = "$(host_arch)" ]
}

# kernel_tools TOOLS: sets $gcc, the compiler for headers of that kind, and $run, what runs make
# with it ("": nothing is needed)
# shellcheck disable=SC2034 # for those who source this
kernel_tools() {
	run=
	case $1 in
	here) gcc="gcc-12" ;;
	"$(host_suite)") gcc=gcc ;;
	*)
		root=$("$KB_SCRIPTS/kernel-tools" "$1")
		gcc=$(cat "$root/gcc")
		run="$KB_SCRIPTS/with-tools $root"
		;;
	esac
}

# kernel_headers DIR ARCH KREL: unpacks the headers of a release into DIR, and sets $headers: they are in
# DIR/usr/src/$headers. They want $gcc.
kernel_headers() {
	hdir=$1 harch=$2 headers=linux-headers-$3
	common=$(apt_depends "$harch" "$headers" '^linux-.*headers-')
	kbuild=$(apt_depends "$harch" "$headers" '^linux-kbuild-')
	mkdir -p "$hdir/deb" "$hdir/usr/lib"
	apt_fetch "$harch" "$hdir/deb" "$headers" "$common" || return
	# The programs in kbuild run on this machine, for every target. Ubuntu's are in $headers.
	[ -z "$kbuild" ] || apt_fetch "$(host_arch)" "$hdir/deb" "$kbuild" || return
	# later packages have all below usr, where earlier ones have not
	ln -s usr/lib "$hdir/lib"
	for p in "$hdir"/deb/*.deb; do
		dpkg-deb --fsys-tarfile "$p" |
			tar -x -C "$hdir" --no-same-owner --keep-directory-symlink --exclude=./usr/share
	done
	rm -rf "$hdir/deb"

	if [ -e "$hdir/usr/src/$headers/.kernelvariables" ]; then
		# Debian's Makefile names /usr/src. The common part is beside this directory instead.
		# shellcheck disable=SC2016 # for make, not for the shell
		sed -i '1i beside := $(dir $(realpath $(lastword $(MAKEFILE_LIST))))..
			s,/usr/src/,$(beside)/,' "$hdir/usr/src/$headers/Makefile"
		# and the compiler that its suite has
		sed -i "s/gcc-[0-9.]*/$gcc/" "$hdir/usr/src/$headers/.kernelvariables"
	else
		# Ubuntu's Makefile is the kernel's own, or a link to it.
		sed -i --follow-symlinks "s/^\(CC[[:blank:]]*= \$(CROSS_COMPILE)\)gcc[-0-9.]*\$/\1$gcc/" \
			"$hdir/usr/src/$headers/Makefile"
	fi
	# Later headers include type information for BPF, and with it need pahole for every module.
	rm -f "$hdir/usr/src/$headers/vmlinux"
}
