#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: selftests/package/test.sh
#
# The Debian packages: built from this tree, installed into a Debian of their own, which then
# boots in a VM with systemd: inside.sh is what is tried there. Prints TAP.

set -u
cd "$(dirname -- "$0")/../.." || exit
here=$PWD/selftests/package
version=$(cat VERSION)
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP

# shellcheck source=SCRIPTDIR/lib.sh
. "$here/lib.sh"

# build_packages DIRECTORY [otherwise]: from the archive; they are in DIRECTORY
build_packages() {
	mkdir -p "$1" && tar -xf "$work/kbarman-$version.tar.xz" -C "$1" &&
		(cd "$1/kbarman-$version" && ${2-} nice dpkg-buildpackage -b -us -uc -d)
}

# Also those with debug information.
the_same_source_makes_the_same_packages() {
	again=$work/again/in/another/directory
	build_packages "$again" otherwise || return
	for package in "$work"/*.deb; do
		cmp "$package" "$again/${package##*/}" || return
	done
	[ "$(find "$work" -maxdepth 1 -name '*.deb' | wc -l)" -ge 9 ]
}

each_package_has_a_true_bill_of_materials() {
	# shellcheck disable=SC2046 # words
	python3 "$here/bill.py" "$work/kbarman-$version" \
		$(find "$work" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*')
}

# in_package NAME PATTERN: does the package's list of files have such a line?
in_package() {
	dpkg-deb --fsys-tarfile "$work"/"$1"_[0-9]*.deb | tar -t | grep -E "$2"
}

the_library_is_a_package_of_its_own() {
	in_package libkbarman0 '/libkbarman\.so\.0$' &&
		! in_package libkbarman-dev '/libkbarman\.so\.[0-9]' &&
		in_package libkbarman-dev '/libkbarman\.so$' &&
		in_package libkbarman-dev '/libkbarman\.a$' &&
		in_package libkbarman-dev '/man3/kb_barman_open\.3\.gz$' &&
		! in_package kbarman '/man3/' &&
		dpkg-deb -f "$work"/libkbarman-dev_*.deb Depends | grep 'libkbarman0 (= '
}

the_package_of_python_is_for_all_machines() {
	in_package python3-kbarman '/usr/lib/python3/dist-packages/kbarman/__init__\.py$' &&
		in_package python3-kbarman '/man7/kbarman-python\.7\.gz$' &&
		! in_package kbarman 'kbarman-python|dist-packages' &&
		dpkg-deb -f "$work"/python3-kbarman_*_all.deb Depends | grep 'libkbarman0 (>= '
}

what_sends_is_a_package_of_its_own() {
	in_package kbarman-push '/usr/bin/kbarman-push$' &&
		in_package kbarman-push '/man1/kbarman-push\.1\.gz$' &&
		! in_package kbarman 'kbarman-push' &&
		dpkg-deb -f "$work"/kbarman-push_*.deb Depends | grep 'kbarman (= .*libcurl4' &&
		! dpkg-deb -f "$work"/kbarman_*.deb Depends Recommends | grep curl
}

# What is opened at run time no dependency of the linker's tells of.
libraries_opened_at_run_time_are_recommended() {
	opened=0
	# shellcheck disable=SC2013 # one word a line
	for soname in $(grep -rhoE 'dlopen\("[^"]+"' user | cut -d'"' -f2); do
		# one of two libraries that do the same; the other one comes with the compiler
		[ "$soname" = libc++abi.so.1 ] && continue
		opened=$((opened + 1))
		provider=$(dpkg -S "*/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/$soname" | head -n 1)
		provider=${provider%%:*}
		[ "$provider" ] || { echo "no package has $soname"; return 1; }
		for package in kbarman libkbarman0; do
			dpkg-deb -f "$work/${package}"_[0-9]*.deb Depends Recommends Suggests |
				grep -w "$provider" || {
				echo "$package opens $soname and does not name $provider"
				return 1
			}
		done
	done
	[ $opened -ge 4 ]
}

# The kernel and its headers, as their packages would have put them there.
add_kernel() {
	kernel=$(scripts/kernel "$(dpkg --print-architecture)") && eval "$kernel" || return
	unpacked=${KDIR%/usr/src/*}
	release=${KDIR##*/linux-headers-}
	cp -a "$unpacked/usr/src/." "$root/usr/src/" &&
		cp -a "$unpacked"/usr/lib/linux-kbuild-* "$root/usr/lib/" &&
		mkdir -p "$root/lib/modules" &&
		cp -a "$unpacked/lib/modules/$release" "$root/lib/modules/" &&
		cp -a "$unpacked/boot/." "$root/boot/" &&
		ln -sfn "/usr/src/linux-headers-$release" "$root/lib/modules/$release/build"
}

install_packages() {
	root=$work/root
	cp -a --reflink=auto "$(scripts/package-root)" "$root" && add_kernel &&
		mkdir "$root/packages" && cp "$work"/*.deb "$root/packages" || return
	rm -f "$root"/packages/*dbgsym*
	unshare --mount sh -c "mount --bind /proc '$root/proc' && mount --bind /dev '$root/dev' &&
		exec chroot '$root' sh -c 'DEBIAN_FRONTEND=noninteractive dpkg -i /packages/*.deb'"
}

built_for_the_kernel() {
	find "$root/lib/modules" -path '*updates/dkms/kbarman.ko*' | grep .
}

boot() {
	mkdir "$work/share" && cp "$here/boot.sh" "$here/inside.sh" "$here/collector.py" "$here/../lib/device_record.sh" \
		"$here/../lib/device_parts.sh" "$work/share" &&
		scripts/vm --arch "$(dpkg --print-architecture)" --root "$root" --mem 1536 \
			--share "$work/share" --timeout 900 -- sh boot.sh
}

if ! command -v dpkg-buildpackage >/dev/null || ! command -v dh_dkms >/dev/null; then
	echo 'ok - packages_are_built # SKIP debhelper or dh-dkms is not installed (scripts/setup)'
	exit 0
fi
{ commit=$(present) && scripts/dist "$commit" "$work" && build_packages "$work"; } >"$work/said" \
	2>&1 </dev/null
result $? packages_are_built || exit
for test in the_same_source_makes_the_same_packages each_package_has_a_true_bill_of_materials \
	the_library_is_a_package_of_its_own the_package_of_python_is_for_all_machines \
	what_sends_is_a_package_of_its_own libraries_opened_at_run_time_are_recommended; do
	$test >"$work/said" 2>&1
	result $? $test
done
if [ "$(id -u)" -ne 0 ]; then
	echo 'ok - packages_are_installed # SKIP only root can install a Debian to try them on'
	exit 0
fi
install_packages >"$work/said" 2>&1 </dev/null
result $? packages_are_installed || exit
built_for_the_kernel >>"$work/said" 2>&1
result $? dkms_builds_the_module_for_the_kernel || exit
boot >"$work/booted" 2>"$work/said" </dev/null
status=$?
# without its plan, which is not that of all of these
grep -v '^1\.\.' "$work/share/inside.tap" 2>/dev/null
cat "$work/booted" >>"$work/said"
grep -q '^1\.\.' "$work/share/inside.tap" 2>/dev/null && [ $status -eq 0 ]
result $? the_installed_system_boots_and_ends
