# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Running suites of tests and counting what they say: sourced behind lib.sh, in the top
# directory, by the scripts behind `make test` and its longer sisters.
#
#	suite_begin NAME	what programs say is kept in out/NAME/; $scrap is a directory for
#				what is of no use afterwards
#	title, build, tap, boot, figures, dmesg_is_clean …
#	suite_end		prints "N passed, N failed, N skipped"; its status is the run's
#
# A signal ends the run and all that it has started: programs, VMs, makes.

# mawk would wait for a block of input before it says anything
KB_AWK='awk'
! awk -W version 2>&1 | grep -q mawk || KB_AWK='awk -W interactive'

# What a shell starts in the background ignores most of these, and so would all that it starts.
KB_SIGNALS='env --default-signal=INT,QUIT,HUP'

suite_begin() {
	out=$PWD/out/$1
	rm -rf "$out"
	mkdir -p "$out"
	: >"$out/totals"
	begun=$(date +%s)
	scrap=$(mktemp -d "${TMPDIR:-/tmp}/kbarman-$1.XXXXXX")
	trap 'rm -rf "$scrap"' EXIT
	trap 'interrupted 130' INT
	trap 'interrupted 143' TERM
	trap 'interrupted 129' HUP
	# what make was asked for (ARCH=) is not for each of the makes here
	unset MAKEFLAGS MFLAGS MAKEOVERRIDES ARCH CROSS_COMPILE KDIR
}

# family: $they, all that this process has started, and what that has, as long as they are there:
# also those who have lost their parents meanwhile
family() {
	cat /proc/[0-9]*/stat >"$scrap/family" 2>/dev/null || :
	known=$they they=
	for pid in $known $(sed -n 's/^\([0-9]*\) (.*) [^Z] \([0-9]*\) .*/\1 \2/p' "$scrap/family" | awk -v me=$$ '
		{ parent[$1] = $2 }
		END {
			for (pid in parent) {
				for (p = pid; p in parent && p != me; p = parent[p])
					;
				if (p == me && pid != me)
					print pid
			}
		}'); do
		case "$they " in *" $pid "*) continue ;; esac
		[ ! -d "/proc/$pid" ] || they="$they $pid"
	done
}

# A shell hears of signals while it waits, but not while it runs something: so what takes time
# runs in the background. Who is told to end may have things to put away; who has not heard of it
# is told again; who does not listen is killed.
# shellcheck disable=SC2317 # called by the traps
interrupted() {
	trap '' INT TERM HUP
	they=
	for signal in TERM 0 0 0 0 0 TERM 0 0 0 0 0 TERM 0 0 0 0 0 0 0 KILL 0; do
		family
		[ "$they" ] || break
		# shellcheck disable=SC2086 # a list
		kill -s $signal $they 2>/dev/null || :
		sleep 0.5
	done
	exit "$1"
}

title() {
	printf '== %s (%d s)\n' "$*" $(($(date +%s) - begun))
}

# tap NAME SECONDS COMMAND...: a program that prints TAP; or, with 0 seconds, a function
tap() {
	name=$1 seconds=$2
	shift 2
	log=$out/$(echo "$name" | tr / -).tap
	# who hangs up is not to orphan what runs here
	trap '' HUP
	{
		r=0
		# shellcheck disable=SC2086 # words
		case $seconds in
		0) "$@" </dev/null 2>&1 || r=$? ;;
		*) timeout -k 5 "$seconds" $KB_SIGNALS "$@" </dev/null 2>&1 || r=$? ;;
		esac
		echo
		echo "exit $r"
	} | tee "$log" | $KB_AWK -f scripts/tap.awk -v suite="$name" -v nested="${nested-}" \
		-v totals="$out/totals" &
	trap 'interrupted 129' HUP
	wait $!
}

# build NAME TARGET...: make; that it fails is a failed test
build() {
	name=$1
	shift
	title "building $name"
	$KB_SIGNALS make --no-print-directory -j2 "$@" >"$out/build-$name.log" 2>&1 &
	if wait $!; then
		return 0
	fi
	grep -E '(error|warning): |\*\*\*|cannot find' "$out/build-$name.log" | head -20 || :
	echo "FAIL  build-$name (all of it: $out/build-$name.log)"
	echo "0 1 0" >>"$out/totals"
	return 1
}

# figures FILE WORDS: what a program counted
figures() {
	sed -n "s/^# \(# \)*\(.*[0-9] \($2\).*\)/      \2/p" "$1"
}

# dmesg_is_clean FILE: TAP
dmesg_is_clean() {
	# What the module, the kernel about it, and its checkers may have to say from its load on.
	# Linux itself announces modules from outside its tree, and notes that they are not signed.
	awk '/kbarman: loading out-of-tree module/ { from = FNR } NR > FNR && FNR >= from' \
		"$1" "$1" >"$1.of-it"
	grep -E 'WARNING|\<BUG[: ]|Oops|INFO: (rcu|task|possible)|[Ll]ockdep|hung_task|blocked for more|detected stalls|Call [Tt]race|KASAN|UBSAN|scheduling while|kbarman' \
		"$1.of-it" | grep -vE 'loading out-of-tree module taints|module verification failed|kselftest: ' \
		>"$1.found" || :
	if [ ! -s "$1" ]; then
		echo 'not ok 1 - the_kernels_messages_are_there'
	elif [ -s "$1.found" ]; then
		head -20 "$1.found" | sed 's/^/# /'
		echo 'not ok 1 - the_kernel_has_nothing_to_complain_of'
	else
		echo 'ok 1 - the_kernel_has_nothing_to_complain_of'
	fi
	echo 1..1
}

# boot ARCH NAME SECONDS COMMAND OPTION...: one program in a VM, and its kernel is content
boot() {
	arch=$1 boot=$2 seconds=$3 command=$4
	shift 4
	dmesg=$out/$(echo "$boot" | tr / -).dmesg
	tap "$boot" $((seconds + 60)) scripts/vm --arch "$arch" --share "build/guest/$arch" \
		--dmesg "$dmesg" --timeout "$seconds" "$@" -- sh -c "$command"
	tap "$boot/dmesg" 0 dmesg_is_clean "$dmesg"
}

# device_tree ARCH FILE: what QEMU tells a VM of itself; fdtput(1) changes it
device_tree() {
	arch_table "$1"
	"qemu-system-$A_QEMU" -M "$A_MACHINE,dumpdtb=$2" -cpu "$A_CPU" -smp 2 -m 1024 -display none \
		-nodefaults >/dev/null 2>&1
}

suite_end() {
	title 'all done'
	awk '{ p += $1; f += $2; s += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", p, f, s
			exit f > 0 || p + f == 0
		}' "$out/totals"
}
