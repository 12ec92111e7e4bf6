#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/cached-warnings: a warning that the cache has is as good as one that the compiler gives,
# and whatever decides about warnings has the compiler work again.
set -eu
cd "$(dirname -- "$0")/../.."
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
XDG_CACHE_HOME=$tmp/cache
export XDG_CACHE_HOME
mkdir "$tmp/bin"
cat >"$tmp/bin/compiler" <<'END'
#!/bin/sh
case " $* " in *' -o '*) echo once >>"$RUNS" ;; esac
exec gcc "$@"
END
chmod +x "$tmp/bin/compiler"
RUNS=$tmp/runs
export RUNS
echo 'static int unused(void) { return ONE; }' >"$tmp/a.c"
echo '#define ONE 1' >"$tmp/a.h"

# warnings ARGUMENT...: how many the log has, and how often the compiler worked
warnings() {
	: >"$RUNS"
	scripts/cached-warnings "$tmp/log" "$tmp/bin/compiler" -include "$tmp/a.h" "$@" "$tmp/a.c" || echo fails
	echo "$(grep -c 'warning:' "$tmp/log") $(wc -l <"$RUNS")"
}

is a_warning_is_told "$(warnings -Wall)" '1 1'
is a_warning_of_the_cache_is_told "$(warnings -Wall)" '1 0'
is other_arguments_compile_again "$(warnings -w)" '0 1'
echo '#define ONE 2' >"$tmp/a.h"
is another_header_compiles_again "$(warnings -Wall)" '1 1'
echo 'int unused(void) { return ONE; }' >"$tmp/a.c"
is another_source_compiles_again "$(warnings -Wall)" '0 1'
echo 'int unused(void) { return NONE; }' >"$tmp/a.c"
rm "$tmp/log"
: >"$tmp/log"
is an_error_fails "$(warnings -Wall 2>/dev/null)" "fails
0 1"
is an_error_is_not_kept "$(warnings -Wall 2>/dev/null)" "fails
0 1"
echo "1..$count"
