# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Running suites of tests and counting what they say: sourced behind lib.sh, in the top
# directory, by the scripts behind `make test` and its longer sisters.
#
#	suite_begin NAME	what programs say is kept in out/NAME/
#	title, build, tap, dmesg_is_clean …
#	suite_end		prints "N passed, N failed, N skipped"; its status is the run's

# mawk would wait for a block of input before it says anything
KB_AWK='awk'
! awk -W version 2>&1 | grep -q mawk || KB_AWK='awk -W interactive'

suite_begin() {
	out=$PWD/out/$1
	rm -rf "$out"
	mkdir -p "$out"
	: >"$out/totals"
	begun=$(date +%s)
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	# what make was asked for (ARCH=) is not for each of the makes here
	unset MAKEFLAGS MFLAGS MAKEOVERRIDES ARCH CROSS_COMPILE KDIR
}

title() {
	printf '== %s (%d s)\n' "$*" $(($(date +%s) - begun))
}

# tap NAME SECONDS COMMAND...: a program that prints TAP; or, with 0 seconds, a function
tap() {
	name=$1 seconds=$2
	shift 2
	log=$out/$(echo "$name" | tr / -).tap
	{
		r=0
		case $seconds in
		0) "$@" </dev/null 2>&1 || r=$? ;;
		*) timeout -k 5 "$seconds" "$@" </dev/null 2>&1 || r=$? ;;
		esac
		echo
		echo "exit $r"
	} | tee "$log" | $KB_AWK -f scripts/tap.awk -v suite="$name" -v nested="${nested-}" \
		-v totals="$out/totals"
}

# build NAME TARGET...: make; that it fails is a failed test
build() {
	name=$1
	shift
	title "building $name"
	if make --no-print-directory -j2 "$@" >"$out/build-$name.log" 2>&1; then
		return 0
	fi
	grep -E '(error|warning): |\*\*\*|cannot find' "$out/build-$name.log" | head -20 || :
	echo "FAIL  build-$name (all of it: $out/build-$name.log)"
	echo "0 1 0" >>"$out/totals"
	return 1
}

# dmesg_is_clean FILE: TAP
dmesg_is_clean() {
	# What the module, the kernel about it, and its checkers may have to say. Linux itself
	# announces modules from outside its tree, and notes that they are not signed.
	grep -E 'WARNING|BUG:|Oops|INFO: (rcu|task|possible)|[Ll]ockdep|hung_task|blocked for more|detected stalls|Call [Tt]race|KASAN|UBSAN|scheduling while|kbarman' \
		"$1" | grep -vE 'loading out-of-tree module taints|module verification failed|kselftest: ' \
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

suite_end() {
	title 'all done'
	awk '{ p += $1; f += $2; s += $3 }
		END {
			printf "%d passed, %d failed, %d skipped\n", p, f, s
			exit f > 0 || p + f == 0
		}' "$out/totals"
}
