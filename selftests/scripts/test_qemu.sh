#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/qemu: VMs of arm64 run with a QEMU whose CPUs see what Linux has patched; this machine's if it is
# new enough, otherwise one that the cache has.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for name in aarch64 arm x86_64; do
	# shellcheck disable=SC2016 # of that script
	printf '#!/bin/sh\necho "QEMU emulator version $VERSION (Debian 1:$VERSION+dfsg-7)"\n' \
		>"$tmp/qemu-system-$name"
	chmod +x "$tmp/qemu-system-$name"
done
own=$PATH
PATH=$tmp:$PATH

for VERSION in 8.1.0 8.10 9.0.2 10.0.13; do
	export VERSION
	is "version_${VERSION}_is_taken" "$(scripts/qemu arm64)" qemu-system-aarch64
done
VERSION=7.2.22
is x86_has_one_thread "$(scripts/qemu amd64)" qemu-system-x86_64
# What the cache has: not made here, for this test needs no network.
for VERSION in 5.2.0 7.2.22 8.0.5; do
	mkdir -p "$tmp/cache/kbarman/rootfs/qemu-trixie-$(cksum <scripts/qemu | cut -d ' ' -f 1)"
	for arch in arm64:aarch64 armhf:arm; do
		is "for_version_${VERSION}_${arch%:*}_has_another" \
			"$(XDG_CACHE_HOME=$tmp/cache scripts/qemu "${arch%:*}" | sed 's/-[0-9]*\//-N\//')" \
			"$tmp/cache/kbarman/rootfs/qemu-trixie-N/qemu-system-${arch#*:}"
	done
done
PATH=$own
if command -v qemu-system-aarch64 >/dev/null; then
	is what_is_taken_runs_and_is_new "$("$(scripts/qemu arm64)" --version | awk '
		match($0, /version [0-9]+\.[0-9]+/) {
			split(substr($0, RSTART + 8, RLENGTH - 8), v, ".")
			print (v[1] * 100 + v[2] >= 801) ? "new" : "old"
		}')" new
fi
echo "1..$count"
