# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Runs suites of tests and counts their results. The scripts of `make test`, `make soak` and the
# other long tests source this file in the top directory, after lib.sh.
#
#	suite_begin NAME	the output of programs goes to out/NAME/; $scrap is a directory for
#				temporary files
#	title, build, tap, within, boot, workers, figures, dmesg_is_clean …
#	suite_end		prints the ten slowest tests, once more what failed, and "N passed,
#				N failed, N skipped", and returns the status of the run
#
# A signal ends the run and all processes that the run has started: programs, VMs, makes.

# mawk would wait for a whole block of input before it prints
KB_AWK='awk'
! awk -W version 2>&1 | grep -q mawk || KB_AWK='awk -W interactive'

# A background process of a shell ignores most of these signals, and so would its children.
KB_SIGNALS='env --default-signal=INT,QUIT,HUP'

suite_begin() {
	out=$PWD/out/$1
	rm -rf "$out"
	mkdir -p "$out"
	: >"$out/totals"
	: >"$out/times"
	: >"$out/failures"
	begun=$(date +%s)
	scrap=$(mktemp -d "${TMPDIR:-/tmp}/kbarman-$1.XXXXXX")
	trap 'rm -rf "$scrap"' EXIT
	trap 'interrupted 130' INT
	trap 'interrupted 143' TERM
	hangup='interrupted 129'	# what this shell does then
	trap 'interrupted 129' HUP
	# the settings of the calling make (ARCH=) must not reach the makes here
	unset MAKEFLAGS MFLAGS MAKEOVERRIDES ARCH CROSS_COMPILE KDIR
}

# family: sets $they to the living descendants of this process. A descendant stays in $they when
# its parent has ended.
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

# A shell handles signals while it waits, but not while it runs a program in the foreground. So long
# programs run in the background. Processes get SIGTERM and time to clean up, then SIGTERM again,
# and SIGKILL in the end, which on a busy machine must not come while they do that.
# shellcheck disable=SC2317 # called by the traps
interrupted() {
	trap '' INT TERM HUP
	they=
	for signal in TERM 0 0 0 0 0 TERM 0 0 0 0 0 TERM 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
		0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 KILL 0; do
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

# tap NAME SECONDS COMMAND...: runs a program that prints TAP, or with 0 seconds a function
tap() {
	name=$1 seconds=$2
	shift 2
	log=$out/$(echo "$name" | tr / -).tap
	# a hangup of the terminal must end these processes as well
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
		-v totals="$out/totals" -v times="$out/times" \
		-v failures="$out/failures" &
	# shellcheck disable=SC2064 # what it is now
	trap "$hangup" HUP
	wait $!
}

# fails WORDS: a failure that no TAP tells of, and that counts as one test
fails() {
	echo "FAIL  $*" | tee -a "$out/failures"
	echo '0 1 0' >>"$out/totals"
}

# build NAME TARGET...: runs make; a failed make is a failed test. Two makes would get into each
# other's way, so one waits for the other.
build() {
	name=$1
	shift
	title "building $name"
	$KB_SIGNALS flock "$scrap/building" make --no-print-directory -j2 "$@" >"$out/build-$name.log" 2>&1 &
	if wait $!; then
		return 0
	fi
	grep -E '(error|warning): |\*\*\*|cannot find' "$out/build-$name.log" | head -20 || :
	fails "build-$name (the whole output is in $out/build-$name.log)"
	return 1
}

# complaints LOG...: prints what compilers and sparse report about files of this tree
complaints() {
	grep -hE '(^|[ /])kmod/[^ ]*: (warning|error)|modpost:|: (warning|error):.*kmod/' "$@" || :
}

# figures FILE WORDS: prints the lines of FILE in which a program counts WORDS
figures() {
	sed -n "s/^# \(# \)*\(.*[0-9] \($2\).*\)/      \2/p" "$1"
}

# dmesg_is_clean FILE: prints one TAP test
dmesg_is_clean() {
	# Looks for messages of the module, reports about it, and reports of checkers, from its load
	# on. Linux logs that a module is from outside its tree and not signed, and the module what is
	# wrong with a parameter: this is expected.
	awk '/kbarman: loading out-of-tree module/ { from = FNR } NR > FNR && FNR >= from' \
		"$1" "$1" >"$1.of-it"
	grep -E 'WARNING|\<BUG[: ]|Oops|INFO: (rcu|task|possible)|[Ll]ockdep|hung_task|blocked for more|detected stalls|Call [Tt]race|KASAN|UBSAN|scheduling while|enqueued on deprecated|kbarman' \
		"$1.of-it" | grep -vE 'loading out-of-tree module taints|module verification failed|kselftest: |kbarman: boot=' \
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

# boot ARCH NAME SECONDS COMMAND OPTION...: runs one program in a VM and checks the kernel's log
boot() {
	arch=$1 boot=$2 seconds=$3 command=$4
	shift 4
	dmesg=$out/$(echo "$boot" | tr / -).dmesg
	tap "$boot" $((seconds + 60)) scripts/vm --arch "$arch" --share "build/guest/$arch" \
		--dmesg "$dmesg" --timeout "$seconds" "$@" -- sh -c "$command"
	tap "$boot/dmesg" 0 dmesg_is_clean "$dmesg"
}

# device_tree ARCH FILE [MB]: writes the device tree that QEMU gives a VM, for fdtput(1) to change
device_tree() {
	arch_table "$1"
	"$(scripts/qemu "$1")" -M "$A_MACHINE,dumpdtb=$2" -cpu "$A_CPU" -smp 2 -m "${3:-1024}" -display none \
		-nodefaults >/dev/null 2>&1
}

# reserve ARCH FLAVOUR FILE: for a VM of 640 MB, memory that survives its resets, in each of the ways that
# the manual has, with its words: $kept as the module has it, $append for Linux, $tree for QEMU, with FILE
reserve() {
	page=user/man/kbarman-blackbox.7 append='' tree=''
	kept=$(sed -n 's/^\.BR memory=\(kbarman\) \.$/\1/p' $page | head -n 1)
	case $1:$2 in
	amd64:6.1)
		append=$(sed -n 's/^\.B \(memmap=.*\)/\1/p' $page)
		kept=$(sed -n 's/^\.BR memory=\(0x.*\) \.$/\1/p' $page)
		;;
	arm64:6.1)
		tree="-dtb $3"
		node=$(sed -n 's/^\.B \(.*@[0-9a-f]*\) { reg = <.*/\1/p' $page)
		region=$(sed -n 's/^\.B .*@.* { reg = <\(.*\)>; };$/\1/p' $page)
		# If these commands fail, the tests fail too.
		{
			device_tree "$1" "$3" 640 && for words in '#address-cells 2' '#size-cells 2'; do
				# shellcheck disable=SC2086 # a property and its value
				fdtput -p -t x "$3" /reserved-memory $words
			done
			fdtput "$3" /reserved-memory ranges
			# shellcheck disable=SC2086 # numbers
			fdtput -p -t x "$3" "/reserved-memory/$node" reg $region
			fdtput "$3" "/reserved-memory/$node" no-map
		} || :
		;;
	*) append=$(sed -n 's/^\.BR \(reserve_mem=.*\) \.$/\1/p' $page) ;;
	esac
}

# panics ARCH FLAVOUR NAME GUEST PANICS SECONDS: a VM panics so often, or so long
panics() {
	reserve "$1" "$2" "$out/$(echo "$3" | tr / -).dtb"
	# what ftrace has of the same boot survives, too
	case $append in reserve_mem=*) append="$append reserve_mem=512K:4096:trace trace_instance=boot_map^traceoff@trace" ;; esac
	# shellcheck disable=SC2086 # words
	tap "$3" $(($6 + 600)) python3 selftests/vm/panics.py "$1" "$2" "$4" build/kbarman "$kept" "$append" "$5" "$6" $tree
	figures "$out/$(echo "$3" | tr / -).tap" panics
}

# within NAME SCRIPT...: runs a script that ends with suite_end, and counts its tests as those of this
# run. Shown is what failed or was skipped.
within() {
	name=$1
	shift
	log=$out/$name.log
	r=0
	$KB_SIGNALS "$@" </dev/null >"$log" 2>&1 &
	wait $! || r=$?
	grep -E '^(==|FAIL|skip|      #)' "$log" || :
	if sum=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'); then
		echo "      $name: $sum"
		echo "$sum" | tr -d , | awk '{ print $1, $3, $5 }' >>"$out/totals"
		grep '^FAIL' "$log" | grep -v ' passed, ' >>"$out/failures" || :
	else
		tail -n 20 "$log"
		fails "$name: it ended with status $r (the whole output is in $log)"
	fi
}

# workers FUNCTION ITEM...: runs FUNCTION ITEM for each of them in this order, two at a time where
# this machine has two CPUs. FUNCTION is a failed test if it ends with another status than 0.
workers() {
	what=$1
	shift
	items=$*
	second=
	if [ "$(nproc)" -gt 1 ]; then
		{ leave_hangup; worker; } &
		second=$!
	fi
	worker
	[ ! "$second" ] || wait "$second"
	for item in $items; do
		[ -d "$scrap/taken-$item" ] || fails "$item: nobody has begun it"
	done
}

# A hangup comes to all shells: the first one ends the others.
leave_hangup() {
	hangup=
	trap '' HUP
}

# Takes one item after the other that no worker has taken yet. Each has a shell of its own, which
# may end where a command fails; what it has begun in the background goes on to its end.
worker() {
	for item in $items; do
		mkdir "$scrap/taken-$item" 2>/dev/null || continue
		{ leave_hangup; trap wait EXIT; "$what" "$item"; } &
		r=0
		wait $! || r=$?
		[ $r -eq 0 ] || fails "$item: it broke off with status $r"
	done
}

suite_end() {
	title 'all done'
	if [ -s "$out/times" ]; then
		echo 'the slowest tests, in seconds:'
		sort -rn "$out/times" | awk -F '\t' 'NR <= 10 { printf "%7d  %s\n", $1, $2 }'
	fi
	if [ -s "$out/failures" ]; then
		echo 'what failed:'
		sed 's/^/  /' "$out/failures"
	fi
	awk '{ p += $1; f += $2; s += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", p, f, s
			exit f > 0 || p + f == 0
		}' "$out/totals"
}
