#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/kernel takes the newest release that there really is, however its packages are laid
# out. scripts/canary names what is different for the newest ones. apt has packages that are made
# here, and lists some that it has not.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin" "$tmp/pool"

# package NAME FILE...: each file has its own name in it; a Makefile is as Debian's are
package() {
	name=$1
	shift
	mkdir -p "$tmp/package/DEBIAN"
	printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: test\nDescription: test\n' \
		"$name" >"$tmp/package/DEBIAN/control"
	for file; do
		mkdir -p "$tmp/package/${file%/*}"
		echo "$file" >"$tmp/package/$file"
	done
	if [ -e "$tmp/makefile" ] || [ -L "$tmp/makefile" ]; then
		cp -P "$tmp/makefile" "$tmp/package/usr/src/$name/Makefile"
	fi
	dpkg-deb --root-owner-group -b "$tmp/package" "$tmp/pool/${name}_1_all.deb" >/dev/null
	rm -rf "$tmp/package" "$tmp/makefile"
}

# headers RELEASE COMMON MORE: of a release; MORE is what its Makefile begins with
headers() {
	src=usr/src
	printf '%binclude /%s/linux-headers-%s/Makefile\n' "$3" $src "$2" >"$tmp/makefile"
	package "linux-headers-$1" "$src/linux-headers-$1/.kernelvariables"
	# shellcheck disable=SC2016 # for make
	printf 'all:\n\t@echo $(realpath $(KBUILD_OUTPUT))\n' >"$tmp/makefile"
	package "linux-headers-$2" "$src/linux-headers-$2/Kbuild"
}

package linux-image-6.1.0-9-amd64 boot/vmlinuz-6.1.0-9-amd64 \
	lib/modules/6.1.0-9-amd64/kernel/some.ko
headers 6.1.0-9-amd64 6.1.0-9-common ''
package linux-kbuild-6.1 usr/lib/linux-kbuild-6.1/program

new=7.3.4+deb13-amd64
package linux-image-$new usr/share/doc/linux-image-$new/copyright
package linux-binary-$new usr/lib/modules/$new/vmlinuz
package linux-modules-$new usr/lib/modules/$new/kernel/some.ko
package linux-base-$new usr/lib/modules/$new/modules.order
headers $new 7.3.4+deb13-common "KBUILD_OUTPUT=/usr/src/linux-headers-$new\n"
package linux-kbuild-7.3.4+deb13 usr/lib/linux-kbuild-7.3.4+deb13/program

# Ubuntu's: the makefile is the kernel's own, or a link to it in the common part.
package ubuntu-keyring usr/share/keyrings/ubuntu-archive-keyring.gpg
own() {
	# shellcheck disable=SC2016 # for make
	printf 'CC\t= $(CROSS_COMPILE)%s\nall:\n\t@echo $(realpath $(KBUILD_OUTPUT)) $(CC)\n' "$1"
}
for release in 5.15.0-9 6.8.0-9; do
	package linux-image-$release-generic boot/vmlinuz-$release-generic
	package linux-modules-$release-generic lib/modules/$release-generic/kernel/some.ko
done
own gcc >"$tmp/makefile"
package linux-headers-5.15.0-9 usr/src/linux-headers-5.15.0-9/Kbuild
ln -s ../linux-headers-5.15.0-9/Makefile "$tmp/makefile"
package linux-headers-5.15.0-9-generic usr/src/linux-headers-5.15.0-9-generic/Module.symvers
own gcc-13 >"$tmp/makefile"
package linux-headers-6.8.0-9-generic usr/src/linux-headers-6.8.0-9-generic/Module.symvers
package linux-hwe-6.8-headers-6.8.0-9 usr/src/linux-hwe-6.8-headers-6.8.0-9/Kbuild

# what is listed and not in the pool; what has no image; other kinds of kernels
for name in image-7.3.5+deb13-amd64 headers-7.3.5+deb13-amd64 headers-7.3.6+deb13-amd64 \
	image-7.3.7+deb13-rt-amd64 headers-7.3.7+deb13-rt-amd64 image-7.30-amd64 \
	headers-7.30-amd64 image-6.12.9-amd64 headers-6.12.9-amd64; do
	echo "linux-$name"
done >"$tmp/names"

for program in apt-get apt-cache apt-config; do
	cat >"$tmp/bin/$program" <<-'END'
	#!/bin/sh
	case ${0##*/}\ $* in
	apt-config*) echo 'Acquire::Retries "3";' ;;
	apt-get*\ download\ *)
		while [ "$1" != download ]; do shift; done
		shift
		for name; do cp "$POOL/$name"_*.deb . || exit 100; done
		;;
	apt-cache\ pkgnames*)
		cat "$NAMES"
		ls "$POOL" | sed 's/_.*//'
		;;
	apt-cache\ show*)
		release=${2#linux-headers-}
		case $release in
		5.15*-generic) echo "Depends: linux-headers-${release%-generic}, libc6 (>= 2.34)"; exit ;;
		6.8*-generic) echo "Depends: linux-hwe-6.8-headers-${release%-generic}, libc6"; exit ;;
		esac
		common=$(ls "$POOL" | sed -n "s/_.*//; /^linux-headers-${release%-amd64}-common/p")
		kbuild=linux-kbuild-${release%-amd64}
		[ -e "$POOL/${kbuild}_1_all.deb" ] || kbuild=linux-kbuild-6.1
		printf 'Depends: gcc, %s (= 1), %s\n' "$common" "$kbuild"
		;;
	esac
	END
	chmod +x "$tmp/bin/$program"
done
POOL=$tmp/pool NAMES=$tmp/names PATH=$tmp/bin:$PATH XDG_CACHE_HOME=$tmp/cache
export POOL NAMES PATH XDG_CACHE_HOME
tools=$XDG_CACHE_HOME/kbarman/rootfs/tools-trixie-$(cksum <scripts/kernel-tools | cut -d' ' -f1)
mkdir -p "$tools"
echo gcc-14 >"$tools/gcc"

# kernel FLAVOUR RELEASE [COMPILER]: Ubuntu's are to be built with COMPILER
kernel() {
	KREL='' KDIR='' VMLINUZ='' MODROOT='' KTOOLS=''
	k=$(scripts/kernel amd64 "$1" 2>"$tmp/said") || :
	eval "$k"
	is "${1}_is_the_newest_that_can_be_had" "$KREL" "$2" "$tmp/said"
	is "${1}_has_an_image" "$(sed 's,.*/,,' "$VMLINUZ")" "${VMLINUZ##*/}" "$tmp/said"
	is "${1}_has_modules" "$(ls "$MODROOT/lib/modules/$2/kernel")" some.ko "$tmp/said"
	is "${1}_has_its_common_headers" "$(make -s -C "$KDIR" KBUILD_OUTPUT="$KDIR" all)" \
		"$KDIR${3+ $3}" "$tmp/said"
}

kernel 6.1 6.1.0-9-amd64
kernel 7.3 $new
is 7.3_builds_into_its_own_headers "$(make -s -C "$KDIR" all)" "$KDIR" "$tmp/said"
wanted="$PWD/scripts/with-tools $tools"
! grep -q '^VERSION_CODENAME=trixie' /etc/os-release || wanted=''
is 7.3_is_built_with_tools_of_its_suite "$KTOOLS" "$wanted" "$tmp/said"
kernel 5.15 5.15.0-9-generic gcc-12
kernel 6.8 6.8.0-9-generic gcc-14
is others_are_told_by_name "$(scripts/kernel amd64 5.9 2>&1 | grep -c 'use one of: .*7\.3')" 1 "$tmp/said"

# ---- scripts/canary, in a tree of its own, where make only says what it found

mkdir "$tmp/tree"
cp -r scripts "$tmp/tree"
cat >"$tmp/bin/make" <<'END'
#!/bin/sh
case $* in
*KDIR=*-6.1.0-9-amd64*) echo 'gcc -DKBARMAN_HAVE_OLD -DKBARMAN_HAVE_BOTH -c kmod/main.c' ;;
*KDIR=*-7.3.4+deb13-amd64*)
	echo 'gcc -DKBARMAN_HAVE_BOTH -DKBARMAN_HAVE_NEW -c kmod/main.c'
	echo '/some/where/kmod/main.c:1:2: error: too few arguments'
	exit 2
	;;
esac
END
chmod +x "$tmp/bin/make"
canary() {
	grep -Fxc -- "$1" "$tmp/canary" || :
}
if "$tmp/tree/scripts/canary" bookworm >"$tmp/canary" 2>"$tmp/said"; then status=good; else status=bad; fi
is a_kernel_for_which_nothing_builds_fails_the_canary "$status" bad "$tmp/canary"
is the_canary_names_the_complaint \
	"$(canary '      # /some/where/kmod/main.c:1:2: error: too few arguments')" 1 "$tmp/canary"
is the_canary_names_the_probes_that_moved "$(canary "$new  moved: +new -old ")" 1 "$tmp/canary"
# 6.12, two kinds of rt, and five that arm64 has not
is the_canary_takes_what_can_be_had "$(canary '1 passed, 1 failed, 8 skipped')" 1 "$tmp/canary"
echo "1..$count"
