# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# A disk for a guest, with ext4: for scripts that source this file after scripts/lib.sh; `scripts` is the
# directory of that one, if it is not their own. The guest loads the modules:
#
#	for m in $(cat DIRECTORY/order); do insmod DIRECTORY/$m; done

: "${scripts:=$KB_SCRIPTS}"

# disk_modules ARCH DIRECTORY: the modules that it takes, and in `order` their names as they are loaded
disk_modules() {
	k=$("$scripts/kernel" "$1") || return
	eval "$k"
	. "$scripts/kernels.sh"
	mkdir -p "$2"
	: >"$2/order"
	# shellcheck disable=SC2153 # they come from there
	for m in virtio_blk crc32c ext4; do
		modprobe -d "$MODROOT" -S "$KREL" --show-depends "$m" 2>/dev/null
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
		name=$(basename "${file%.ko*}").ko
		kernel_module "$file" >"$2/$name"
		echo "$name" >>"$2/order"
	done
}

# disk_make IMAGE SIZE [DIRECTORY]: with what is in DIRECTORY
disk_make() {
	need mkfs.ext4 e2fsprogs
	rm -f "$1"
	truncate -s "$2" "$1"
	mkfs.ext4 -q ${3:+-d "$3"} "$1"
}
