#!/bin/sh
# SPDX-License-Identifier: MIT
#
# VERSION is the one place for the version. Files that others read as they are hold it again: this
# test compares them. Every other file must take it from VERSION.

cd "$(dirname -- "$0")/../.." || exit
# shellcheck source=SCRIPTDIR/../lib/is.sh
. selftests/lib/is.sh

# first FILE PATTERN REPLACEMENT: the first line of FILE that matches, replaced
first() {
	sed -n "s/$2/$3/p" "$1" | head -n 1
}

version=$(cat VERSION)
is the_version_has_three_numbers "$(grep -Ex '[0-9]+\.[0-9]+\.[0-9]+' VERSION)" "$version" VERSION
is dkms_has_the_version "$(first dkms.conf '^PACKAGE_VERSION="\(.*\)"$' '\1')" "$version" VERSION
is the_packages_have_the_version \
	"$(first debian/changelog '^kbarman (\([^)-]*\)\(-[^)]*\)*) .*' '\1')" "$version" VERSION
is the_news_begin_with_the_version "$(first NEWS '^kbarman \([0-9][0-9.]*\).*' '\1')" "$version" \
	VERSION

# A version by itself, as in VERSION = 1.2.3 or "1.2.3". The formats and kernels that these files
# name have versions, too, but those stand in sentences or have other numbers.
literal=$(echo "$version" | sed 's/\./\\./g')
is no_other_file_holds_the_version "$(grep -rnE "([:=(] *|\")$literal([\") ]|\$)" Kbuild Makefile \
	kmod user/agent user/cli user/lib user/include user/kbarman.pc.in user/man scripts packaging debian/rules)" \
	'' VERSION
is the_tool_has_the_version "$(build/kbarman --version)" "kbarman $version" VERSION
echo "1..$count"
