#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Usage: selftests/vm/power.sh ARCH GUEST-DIRECTORY TOOL [ROUNDS]
#
# The power goes while a VM records onto its disk: QEMU is killed, and what is on the disk
# image then, after the journal was replayed as the next boot would, is looked at here. What
# the recorder's header told of at some moment before is all there: it was told only when the
# disk had it. GUEST-DIRECTORY is what `make guest` made. Prints TAP. Guest and host are at
# one in the directory `power` there:
#
#	begun		the recorder's file as the guest saw it, when it had been synced
#	disk.img	the disk
#
# shellcheck disable=SC2016 # for the guest

arch=$1 guest=$2 tool=$3 rounds=${4:-3}
scripts=$(dirname -- "$0")/../../scripts
. "$scripts/lib.sh"
# shellcheck source=SCRIPTDIR/../lib/disk.sh
. "$(dirname -- "$0")/../lib/disk.sh"
power=$guest/power
failed=0

in_guest='
	for m in $(cat power/order); do insmod power/$m; done
	insmod kbarman.ko
	disk=$(mktemp -d) && mount -t ext4 /dev/vda "$disk" || exit 1
	./kbarman record -a -o "$disk/x.cap" sh -c "while :; do env true; done" &
	# at least one sync behind the first one has to be through
	i=0
	while [ $i -lt 5 ] || ! ./kbarman check "$disk/x.cap.partial" >/dev/null; do
		i=$((i + 1))
		sleep 1
	done
	cp "$disk/x.cap.partial" power/seen && mv power/seen power/begun
	sleep 600'

# Record, and let the power go at a moment.
lose_power() {
	rm -f "$power/begun"
	disk_make "$power/disk.img" 256M || return
	# only here is it certain who is killed
	"$scripts/vm" --arch "$arch" --root debian --share "$guest" --timeout 300 \
		--dmesg "$power/dmesg" --qemu-arg -drive \
		--qemu-arg "file=$power/disk.img,if=virtio,format=raw" -- sh -c "$in_guest" >"$power/log" 2>&1 &
	vm=$!
	while [ ! -e "$power/begun" ]; do
		kill -0 $vm 2>/dev/null || { sed 's/^/# /' "$power/log"; return 1; }
		sleep 0.2
	done
	moment=$(od -An -N1 -tu1 /dev/urandom)
	sleep "$((moment % 4)).$((moment % 10))"
	kill -TERM $vm
	wait $vm
	return 0
}

# What the header of a capture tells of, and what there is: records.
told() {
	"$tool" dump --json "$1" 2>/dev/null | grep -c '"kind":"record"'
}

look() {
	e2fsck -fy "$power/disk.img" >"$power/fsck" 2>&1
	[ $? -lt 4 ] || { sed 's/^/# /' "$power/fsck"; return 1; }
	rm -f "$power/x.partial" "$power/x.cap"
	debugfs -R "dump /x.cap.partial $power/x.partial" "$power/disk.img" 2>/dev/null
	"$tool" check "$power/x.partial" | sed 's/^/# /'
	"$tool" recover -o "$power/x.cap" "$power/x.partial" 2>&1 | sed 's/^/# /'
	"$tool" check "$power/x.cap" >/dev/null || { echo '# nothing valid was recovered'; return 1; }
	"$tool" report "$power/x.cap" >/dev/null || return 1
	before=$(told "$power/begun") after=$(told "$power/x.cap")
	echo "# $before records were told of, $after recovered"
	[ "$before" -gt 0 ] && [ "$after" -ge "$before" ]
}

need e2fsck e2fsprogs
need debugfs e2fsprogs
rm -rf "$power"
disk_modules "$arch" "$power"
round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	if lose_power && look; then
		echo "ok $round - what_was_told_of_survives_a_power_loss_$round"
	else
		echo "not ok $round - what_was_told_of_survives_a_power_loss_$round"
		failed=1
	fi
done
rm -rf "$power"
echo "1..$rounds"
exit $failed
