#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal to what runs tests and VMs (scripts/suite.sh, scripts/vm) ends all that they have
started, and leaves no file behind. QEMU is one that does nothing, and as a VM does not listen:
what counts is who ends it."""
import glob
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
VM = "scripts/vm --arch amd64 --kernel /dev/null --dmesg $TMPDIR/../dmesg -- true"
SUITE = "cd {top}; . scripts/lib.sh; . scripts/suite.sh; suite_begin signals-{pid};"


def begin(tmp, script, vms):
    """The script, in a session of its own, with a QEMU, a cache and a TMPDIR of its own."""
    here = os.path.join(tmp, "tmp")
    programs = os.path.join(tmp, "bin")
    cache = os.path.join(tmp, "cache", "kbarman", "busybox", "amd64")
    for path in here, programs, cache:
        os.makedirs(path)
    with open(os.path.join(cache, "busybox"), "w", encoding="utf-8"):
        pass
    qemu = os.path.join(programs, "qemu-system-x86_64")
    with open(qemu, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n[ $# -eq 0 ] || trap '' TERM INT HUP\n"
                   ": >$TMPDIR/../begun.$$\nwhile :; do sleep 1; done\n")
    os.chmod(qemu, 0o755)
    environment = dict(os.environ, TMPDIR=here, XDG_CACHE_HOME=os.path.join(tmp, "cache"),
                       PATH=programs + ":" + os.environ["PATH"])
    script = SUITE.format(top=TOP, pid=os.getpid()) + script
    process = subprocess.Popen(["sh", "-c", script, os.path.join(TOP, "scripts", "test")],
                               env=environment, start_new_session=True, cwd=TOP,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(glob.glob(os.path.join(tmp, "begun.*"))) == vms, "it has begun")
    return process


def wait_for(condition, what):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, f"not seen: {what}"
        time.sleep(0.1)


def relatives(directory):
    """Who has our TMPDIR in its environment."""
    mark = f"TMPDIR={directory}/tmp".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            pass
    return found


def ends(tmp, script, number, whole_group, vms=1):
    process = begin(tmp, script, vms)
    try:
        (os.killpg if whole_group else os.kill)(process.pid, number)
        process.wait(tap.HANG)
        assert process.returncode == 128 + number, process.returncode
        wait_for(lambda: not relatives(tmp), "all have ended")
        left = os.listdir(os.path.join(tmp, "tmp"))
        assert not left, left
    finally:
        for pid in relatives(tmp):
            os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["rm", "-rf", f"{TOP}/out/signals-{os.getpid()}"], check=True)


def term_ends_a_suite_and_its_vm_which_leaves_its_messages(tmp):
    ends(tmp, f"tap vm 100 {VM}", signal.SIGTERM, False)
    assert os.path.exists(os.path.join(tmp, "dmesg"))


def ctrl_c_ends_a_suite_and_its_vm(tmp):
    ends(tmp, f"tap vm 100 {VM}", signal.SIGINT, True)


def hangup_ends_a_suite_and_its_vm(tmp):
    ends(tmp, f"tap vm 100 {VM}", signal.SIGHUP, True)


def workers(tmp, number, whole_group):
    """Two where there are two CPUs."""
    both = len(os.sched_getaffinity(0)) > 1
    script = "good() { echo ok 1 - good; }; part() { tap first 0 good; tap $1 100 " + VM + "; }; "
    ends(tmp, script + "workers part a b", number, whole_group, 2 if both else 1)


def hangup_ends_workers_and_their_vms(tmp):
    workers(tmp, signal.SIGHUP, True)


def term_ends_workers_and_their_vms(tmp):
    workers(tmp, signal.SIGTERM, False)


def term_ends_a_suite_in_a_function(tmp):
    ends(tmp, "f() { qemu-system-x86_64; }; tap f 0 f", signal.SIGTERM, False)


def term_ends_a_suite_and_what_it_makes(tmp):
    with open(os.path.join(tmp, "Makefile"), "w", encoding="utf-8") as file:
        file.write("all:\n\t@qemu-system-x86_64; true\n")
    ends(tmp, f"build it -f {tmp}/Makefile all", signal.SIGTERM, False)


def term_reaches_through_make(tmp):
    """make ends its own child and nobody else: that has to be the script, not a shell."""
    targets = ["test", "check", "soak", "test-debug", "test-matrix", "analyze"]
    said = subprocess.run(["make", "-n", "-C", TOP, *targets], capture_output=True, text=True,
                          check=True).stdout
    lines = [line for line in said.splitlines() if "scripts/" in line]
    assert len(lines) == len(targets), (tmp, lines)
    for line in lines:
        assert line.startswith("exec "), line


if __name__ == "__main__":
    tap.main(globals())
