#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A kernel's options are those of the compiler that built it. Kbuild says so where another kind of compiler
# is to build the module, and how to build it.

work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
for cc in gcc clang; do
	# what each of them says of itself
	printf '#!/bin/sh\necho "#define __GNUC__ 4"; [ %s = gcc ] || echo "#define __clang__ 1"\n' $cc >"$work/$cc"
	chmod +x "$work/$cc"
done
status=0

# try NAME KERNEL CC WORDS: Kbuild says the WORDS, or nothing, where CC builds for a kernel of KERNEL
try() {
	kernel=$(echo "$2" | tr '[:lower:]' '[:upper:]')
	if said=$(printf 'src := .\nCONFIG_CC_IS_%s := y\nCONFIG_CC_VERSION_TEXT := "%s 17.0.1"\ninclude Kbuild\nall:;\n' \
		"$kernel" "$2" | make -s -f - CC="$work/$3" all 2>&1); then
		[ "$4" ] && result='not ok' || result=ok
	else
		case $said in *"$2 17.0.1"*"$4"*) result=ok ;; *) result='not ok' ;; esac
	fi
	echo "$result - $1"
	[ "$result" = ok ] || { echo "$said" | sed 's/^/# /'; status=1; }
}

try gcc_for_a_kernel_of_gcc_is_fine gcc gcc ''
try clang_for_a_kernel_of_clang_is_fine clang clang ''
try gcc_for_a_kernel_of_clang_is_told clang gcc 'make LLVM=1'
try clang_for_a_kernel_of_gcc_is_told gcc clang 'leave out LLVM= and CC='
echo 1..4
exit $status
