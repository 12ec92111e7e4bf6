# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Fetches packages of Debian, of any architecture, and of Ubuntu, without root and without changing
# the host's package state: apt-get uses its own lists, status and caches below the cache. It uses the
# host's mirror, proxy, credentials and keys for a suite if the host has them, and deb.debian.org or
# archive.ubuntu.com otherwise. The suite is bookworm until apt_suite changes it. Source this file
# after lib.sh.

# apt_suite SUITE: what follows is about this suite, and those that it stands on
apt_suite() {
	KB_SUITE=$1 KB_ORIGIN=Debian
	KB_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
	KB_MIRROR=http://deb.debian.org/debian KB_SECURITY=http://deb.debian.org/debian-security
	case $1 in
	jammy | noble | resolute)
		KB_ORIGIN=Ubuntu KB_KEYRING=$KB_CACHE/keys/ubuntu/ubuntu.gpg
		KB_MIRROR=http://archive.ubuntu.com/ubuntu KB_SECURITY=http://security.ubuntu.com/ubuntu
		cache_make keys/ubuntu ubuntu_keys
		;;
	esac
	case $1 in
	*-backports) set -- "$1" "${1%-backports}" "${1%-backports}-security" ;;
	experimental) set -- experimental sid ;;
	sid) ;;
	*) set -- "$1" "$1-updates" "$1-security" ;;
	esac
	KB_SUITES=$*
}

# Ubuntu's keys are those that Debian signs.
ubuntu_keys() {
	host=$(host_arch)
	apt_suite trixie
	apt_update "$host"
	apt_fetch "$host" "$1" ubuntu-keyring
	dpkg-deb --fsys-tarfile "$1"/*.deb |
		tar -x -O ./usr/share/keyrings/ubuntu-archive-keyring.gpg >"$1/ubuntu.gpg"
	rm "$1"/*.deb
}

# apt_home ARCH: the private root of ARCH for the suite; its name below the cache and as a lock
apt_home() {
	case $KB_SUITE in
	bookworm) echo "$1" ;;
	*) echo "$1-$KB_SUITE" ;;
	esac
}

# Prints "URI suite signed-by" for every source of the suite that the host has. apt leaves
# $(VARIABLE) unchanged if a source does not set it.
# shellcheck disable=SC2016
apt_host_sources() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN) $(SIGNED_BY)' \
		'Created-By: Packages' 2>/dev/null |
	while read -r uri suite component origin key; do
		[ "$component" = main ] || continue
		case $origin in "$KB_ORIGIN" | '$(ORIGIN)') ;; *) continue ;; esac
		case " $KB_SUITES " in *" $suite "*) ;; *) continue ;; esac
		case $key in /*) ;; *) key=$KB_KEYRING ;; esac
		echo "$uri $suite $key"
	done | sort -u
}

apt_sources() {
	have=$(apt_host_sources)
	for suite in $KB_SUITES; do
		line=$(echo "$have" | awk -v s="$suite" '$2 == s')
		if [ -z "$line" ]; then
			case $suite in
			*-security) line="$KB_SECURITY $suite $KB_KEYRING" ;;
			*) line="$KB_MIRROR $suite $KB_KEYRING" ;;
			esac
		fi
		echo "$line" | while read -r uri s key; do
			[ -r "$key" ] || key=$KB_KEYRING
			echo "deb [signed-by=$key] $uri $s main"
		done
	done
}

# Prints the network settings of the host (proxy, retries), not its targets or hooks.
apt_network() {
	apt-config dump --no-empty Acquire |
		grep -Ev '^Acquire::(IndexTargets|Languages|Changelogs|CompressionTypes|cdrom)'
}

# apt_root ARCH: (re)write the private configuration of ARCH
apt_root() {
	[ -r "$KB_KEYRING" ] || die "$KB_ORIGIN's archive keys ($KB_KEYRING) are missing" \
		"run scripts/setup (package debian-archive-keyring)"
	root=$KB_CACHE/apt/$(apt_home "$1")
	mkdir -p "$root/state/lists/partial" "$root/cache/archives/partial"
	: >"$root/status"
	apt_sources >"$root/sources.list"
	{
		apt_network
		cat <<-END
		#clear APT::Architectures;
		APT::Architecture "$1";
		APT::Architectures { "$1"; };
		APT::Sandbox::User "root";
		APT::Install-Recommends "false";
		Acquire::Languages { "none"; };
		Acquire::Retries "3";
		Acquire::GzipIndexes "true";
		Dir::State "$root/state";
		Dir::State::status "$root/status";
		Dir::Cache "$root/cache";
		Dir::Cache::srcpkgcache "";
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Etc::sourcelist "$root/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		END
	} >"$root/apt.conf"
}

# apt_get ARCH ARG...: apt-get on the private root. A terminal shows its progress. Any other
# output gets the last lines, and only if apt-get failed.
apt_get() {
	conf=$KB_CACHE/apt/$(apt_home "$1")/apt.conf log=$KB_CACHE/apt/$(apt_home "$1")/log
	shift
	if [ -t 2 ]; then
		APT_CONFIG=$conf apt-get "$@" >&2
	else
		APT_CONFIG=$conf apt-get -qq "$@" >"$log" 2>&1 || {
			tail -n 5 "$log" >&2
			return 1
		}
	fi
}

# Takes the lock: while another run reads new lists, there are no lists.
apt_cache() {
	locked "apt.$(apt_home "$1")" \
		env APT_CONFIG="$KB_CACHE/apt/$(apt_home "$1")/apt.conf" apt-cache "$2" "$3"
}

apt_is_new() {
	[ "$(find "$KB_CACHE/apt/$(apt_home "$1")/updated" -mmin -60 2>/dev/null)" ]
}

apt_update_now() {
	! apt_is_new "$1" || return 0	# the previous holder of the lock has read them
	say "reading $KB_ORIGIN's package lists for $(apt_home "$1")"
	apt_root "$1"
	# without this option apt reports success even without a network
	if apt_get "$1" update -o APT::Update::Error-Mode=any; then
		touch "$KB_CACHE/apt/$(apt_home "$1")/updated"
		return 0
	fi
	# The security suite's lists of the smaller architectures are broken at times. The lists of
	# the main suite are enough.
	ls "$KB_CACHE/apt/$(apt_home "$1")"/state/lists/*_"$KB_SUITE"_main_binary-"$1"_Packages* \
		>/dev/null 2>&1 ||
		die "cannot read $KB_ORIGIN's package lists" \
			"check the network (and the proxy in apt's configuration), then run this again"
	say 'continuing without the package lists that could not be read'
}

# apt_update ARCH: reads new package lists if the lists are older than an hour
apt_update() {
	apt_is_new "$1" || locked "apt.$(apt_home "$1")" apt_update_now "$1"
}

# apt_failed ARCH WHAT: ends with a message. The lists may be out of date: the next run reads new
# ones.
apt_failed() {
	rm -f "$KB_CACHE/apt/$(apt_home "$1")/updated"
	die "cannot download $2" \
		"check the network and the free space in $KB_CACHE, then run this again"
}

# apt_fetch ARCH DIR PACKAGE...: downloads these packages to DIR/*.deb, without dependencies
apt_fetch() (
	arch=$1
	cd "$2" || exit
	shift 2
	say "downloading $* ($arch)"
	locked "apt.$(apt_home "$arch")" apt_get "$arch" download "$@" || apt_failed "$arch" "$*"
)

# apt_fetch_all ARCH DIR PACKAGE...: downloads these packages and all dependencies to DIR/*.deb
apt_fetch_all() (
	arch=$1 dir=$2
	shift 2
	mkdir -p "$dir/partial"
	locked "apt.$(apt_home "$arch")" apt_get "$arch" install -y --download-only \
		--no-install-recommends -o Dir::Cache::archives="$dir" "$@" || apt_failed "$arch" "packages for $arch"
)

# apt_source DIR PACKAGE: downloads the source of PACKAGE to DIR, as apt_fetch does. The lists of
# sources are as large as those of packages, so nobody else reads them.
apt_source() (
	cd "$1" || exit
	arch=$(host_arch)
	apt_update "$arch"
	say "downloading the source of $2"
	conf=$KB_CACHE/apt/$(apt_home "$arch")
	sed 's/^deb /deb-src /' "$conf/sources.list" >sources.list
	mkdir -p state/lists/partial
	for words in update "source --download-only $2"; do
		# shellcheck disable=SC2086 # words
		locked "apt.$(apt_home "$arch")" apt_get "$arch" $words \
			-o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::State="$PWD/state" ||
			apt_failed "$arch" "the source of $2"
	done
)

# apt_depends ARCH PACKAGE PATTERN: prints the first dependency of PACKAGE that matches PATTERN
apt_depends() {
	apt_cache "$1" show "$2" | awk -v p="$3" '
		/^$/ { exit }	# only the newest version
		/^Depends:/ {
			sub(/^Depends: */, "")
			n = split($0, d, /, */)
			for (i = 1; i <= n; i++) {
				sub(/ .*/, "", d[i])
				if (d[i] ~ p) { print d[i]; exit }
			}
		}'
}

apt_suite bookworm
