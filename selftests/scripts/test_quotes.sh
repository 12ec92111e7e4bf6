#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/quotes finds each kind of quotes that messages don't have, there alone, and mends it.

quotes=$PWD/scripts/quotes
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
cd "$work" && git init -q && mkdir user kmod || exit

result() {
	echo "$1 - $2"
	[ "$1" = ok ] || status=1
}

# try NAME STATUS CONTENT: what is said of a file that is that
try() {
	printf '%s\n' "$3" >user/a.c
	git add user/a.c
	"$quotes" >said
	if [ $? -eq "$2" ]; then result ok "$1"; else result 'not ok' "$1"; fi
}

status=0
try plain_quotes_are_fine 0 "say(\"no file 'x'\");"
try a_comment_is_no_message 0 "/* \`x' */ say(\"x\"); // \`x'"
try a_character_is_no_message 0 "c = '\"'; d = '\`';"
try backticks_are_found 1 "say(\"no \\\"file\\\" \`x'\");"
# shellcheck disable=SC1112 # these are meant
try typographic_quotes_are_found 1 'say("no file ‘x’");'
try what_stands_behind_a_character_is_found 1 "c = '\"'; say(\"\`x'\");"
try what_stands_behind_a_comment_is_found 1 "/* \" */ say(\"\`x'\");"
"$quotes" --mend >said
if grep -qx "/\* \" \*/ say(\"'x'\");" user/a.c && "$quotes" >said; then
	result ok they_are_mended
else
	result 'not ok' they_are_mended
fi
echo 1..8
exit $status
