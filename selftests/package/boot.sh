#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs in the VM: systemd as the first process of a namespace of its own, with inside.sh as
# the one unit that it is to reach.

modprobe kbarman || exit 3
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cat >/etc/systemd/system/kbarman-test.service <<'END'
[Unit]
Description=tests of the installed packages
[Service]
Type=oneshot
ExecStart=/bin/sh /host/inside.sh
StandardOutput=file:/host/inside.tap
StandardError=inherit
ExecStopPost=/bin/systemctl exit 0
END
export container=kbarman
unshare --pid --fork --mount --mount-proc /lib/systemd/systemd --system \
	--unit=kbarman-test.service --log-target=console --show-status=no </dev/null
