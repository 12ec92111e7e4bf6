#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs plug.c in a virtual machine of two CPUs, which gets a third and a fourth when plug.c asks.

    selftests/vm/plug.py ARCH GUEST-DIRECTORY

GUEST-DIRECTORY is what `make guest` made. Prints what plug.c prints, which is TAP.
"""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import qmp  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ARCH, GUEST = sys.argv[1:3]
PLUG = os.path.join(GUEST, "plug")


def add_cpu(monitor):
    absent = [cpu for cpu in monitor.ask("query-hotpluggable-cpus") if "qom-path" not in cpu]
    monitor.ask("device_add", driver=absent[-1]["type"], **absent[-1]["props"])


def main():
    shutil.rmtree(PLUG, ignore_errors=True)
    os.mkdir(PLUG)
    path = os.path.join(PLUG, "monitor")
    vm = subprocess.Popen([os.path.join(TOP, "scripts", "vm"), "--arch", ARCH, "--share", GUEST,
                           "--timeout", "600", "--cpus", "2", "--qemu-arg", "-smp", "--qemu-arg",
                           "2,maxcpus=4", "--qemu-arg", "-qmp", "--qemu-arg",
                           f"unix:{path},server=on,wait=off", "--", "sh", "-c",
                           "export KBARMAN_TEST_VM=1 PLUG=/host/plug;"
                           " cd kselftest/kbarman && ./plug"], stdin=subprocess.DEVNULL)
    for cpu in 2, 3:
        while not os.path.exists(os.path.join(PLUG, f"cpu{cpu}")):
            if vm.poll() is not None:
                sys.exit(vm.returncode or 1)
            time.sleep(0.1)
        add_cpu(qmp.Monitor(path))
    sys.exit(vm.wait())


main()
