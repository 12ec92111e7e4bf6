# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# LTTng's daemon in a VM, for scripts that source this file there.

# lttng_begin DIRECTORY: starts it, with the modules in DIRECTORY (scripts/lttng-modules)
lttng_begin() {
	modules=/lib/modules/$(uname -r)
	[ -e "$modules/lttng" ] || {
		mkdir -p "$modules" && cp -r "$1" "$modules/lttng" &&
		touch "$modules/modules.order" "$modules/modules.builtin" \
			"$modules/modules.builtin.modinfo" && depmod || return
	}
	lttng-sessiond --daemonize
}

# lttng_end: ends it, and waits until it has gone
lttng_end() {
	daemon=$(cat /var/run/lttng/lttng-sessiond.pid)
	kill "$daemon"
	while [ -d "/proc/$daemon" ]; do sleep 0.1; done
}
