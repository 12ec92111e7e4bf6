# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The VM in which tracers are compared, for scripts/bench-*, which source this file after lib.sh.
# Its programs are in selftests/bench/switch/.

# bench_guest ARCH: sets $out, for the results; $guest, with the programs that `make bench-switch`
# builds; and $root, a Debian with the tracers
bench_guest() {
	bench_arch=$1 guest=build/bench/guest-$1 out=$PWD/out/bench
	mkdir -p "$out"
	rm -rf "$guest/lttng"
	if modules=$(scripts/lttng-modules "$1"); then
		mkdir -p "$guest/lttng"
		cp "$modules"/*.ko "$guest/lttng"
	fi
	cp selftests/bench/switch/guest.sh selftests/lib/lttng.sh "$guest"
	root=$(scripts/rootfs "$1" bench)
}

# count NAME PLUGIN-OPTION ARGUMENT...: passes ARGUMENT... to guest.sh, or $script, in a VM of $memory MB, and
# leaves its output in $out/guest. If $disk is set, the VM has that image, and changes are forgotten. Writes
# lines "TRACER WORKLOAD SWITCHES INSTRUCTIONS" and "why TRACER REASON" to $out/NAME.
count() {
	name=$1 option=$2
	shift 2
	# amd64 with the TSC of a real machine, which QEMU offers only on request; arm64 with the atomic
	# instructions that all but old machines have. amd64 also has memory that survives a reset.
	kept=''
	case $bench_arch in
	amd64) cpu=max,+invtsc,x-force-features=on kept=" memmap=64M\$0x20000000" ;;
	*) cpu=neoverse-n1 ;;
	esac
	# One CPU, whose time is the number of its instructions. No address is randomised.
	scripts/vm --arch "$bench_arch" --root "$root" --cpus 1 --mem "${memory:-1024}" --share "$guest" \
		--timeout 3000 --log "$out/console.txt" --append "nokaslr norandmaps tsc=reliable$kept" \
		--qemu-arg -cpu --qemu-arg "$cpu" \
		--qemu-arg -icount --qemu-arg shift=0 \
		--qemu-arg -plugin --qemu-arg "$PWD/build/bench/count.so,out=$out/sections$option" \
		${disk:+--qemu-arg -drive} \
		${disk:+--qemu-arg "file=$disk,if=virtio,format=raw,snapshot=on,cache=unsafe"} \
		-- sh "${script:-guest.sh}" "$@" >"$out/guest"
	[ "$(grep -c ^count "$out/guest")" -eq "$(wc -l <"$out/sections")" ] ||
		die 'the guest has not counted all runs' "see $out/guest and $out/console.txt"
	grep ^why "$out/guest" >"$out/$name" || :
	grep ^bytes "$out/guest" | awk '{ printf "%s %.1f\n", $2, $4 / $3 }' >"$out/$name.bytes"
	grep ^count "$out/guest" | paste -d ' ' - "$out/sections" | cut -d ' ' -f 2-4,6 >>"$out/$name"
}

# object NAME FILE TRACER...: prints a member of the JSON object from the lines "TRACER NUMBER" in
# FILE. A tracer without a number gets null, and the reason is added.
object() {
	name=$1 file=$2
	shift 2
	printf '"%s":{' "$name"
	comma='' reasons=''
	for t; do
		n=$(awk -v t="$t" '$1 == t { print $2; exit }' "$file")
		printf '%s"%s":%s' "$comma" "$t" "${n:-null}"
		[ "$n" ] || reasons="$reasons${reasons:+; }$(awk -v t="$t" '
			$1 == "why" && $2 == t { sub(/why [^ ]* /, ""); r = $0 }
			END { gsub(/["\\:,{}]/, "", r); print t " " (r ? r : "did not run") }' "$out/all")"
		comma=,
	done
	[ ! "$reasons" ] || printf ',"why":"%s"' "$reasons"
	printf '}'
}

# in_root PROGRAM: prints the command that runs a program of the bench root on this machine
in_root() {
	libraries=$root/usr/lib/x86_64-linux-gnu
	echo "$root/lib64/ld-linux-x86-64.so.2 --library-path $libraries:$libraries/babeltrace2/plugins $root/usr/bin/$1"
}
