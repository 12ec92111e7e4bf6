#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A virtual machine stands still while it records, and does not know.

    selftests/vm/pause.py ARCH GUEST-DIRECTORY TOOL

Once QEMU's monitor stops it, and its clocks with it; once QEMU itself is stopped, and the
clocks go on. GUEST-DIRECTORY is what `make guest` made. Prints TAP. Guest and host are at
one in the directory `pause` there:

    begun    the recording runs
    end      it is to stop
    x.cap    what became of it
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ARCH, GUEST, TOOL = sys.argv[1:4]
PAUSE = os.path.join(GUEST, "pause")
SECONDS = 5

# the recorder's files are in memory: a share of the host's is not what is tried here
IN_GUEST = """
insmod kbarman.ko || exit 1
cd /tmp
sh -c 'while [ ! -e stop ]; do env true; done' &
/host/kbarman record -q -a -o x.cap &
recorder=$!
until [ -s x.cap.partial ]; do sleep 0.1; done
sleep 1
touch /host/pause/begun
until [ -e /host/pause/end ]; do sleep 0.1; done
touch stop
kill -TERM $recorder
wait $recorder || exit 1
cp x.cap /host/pause/
"""


class Machine:
    """A VM that records until it is told to end."""

    def __init__(self):
        shutil.rmtree(PAUSE, ignore_errors=True)
        os.mkdir(PAUSE)
        monitor = os.path.join(PAUSE, "monitor")
        arguments = ["--qemu-arg", "-qmp", "--qemu-arg", f"unix:{monitor},server=on,wait=off",
                     "--qemu-arg", "-pidfile", "--qemu-arg", os.path.join(PAUSE, "pid")]
        self.vm = subprocess.Popen([os.path.join(TOP, "scripts", "vm"), "--arch", ARCH, "--root",
                                    "debian", "--share", GUEST, "--timeout", "300", *arguments,
                                    "--", "sh", "-c", IN_GUEST], stdin=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(PAUSE, "begun")):
            assert self.vm.poll() is None, "the guest ended before it recorded"
            time.sleep(0.1)
        self.begun = time.monotonic()
        self.monitor = socket.socket(socket.AF_UNIX)
        self.monitor.connect(monitor)
        self.answers = self.monitor.makefile("r", encoding="utf-8")
        self.tell("qmp_capabilities")

    def tell(self, command):
        self.monitor.sendall(json.dumps({"execute": command}).encode())
        for line in self.answers:
            answer = json.loads(line)
            assert "error" not in answer, answer
            if "return" in answer:
                return

    def signal(self, number):
        with open(os.path.join(PAUSE, "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), number)

    def end(self):
        """What `kbarman info` says of the recording, and how long that ran here."""
        time.sleep(1)
        with open(os.path.join(PAUSE, "end"), "wb"):
            pass
        seconds = time.monotonic() - self.begun
        assert self.vm.wait() == 0, "the guest did not end well"
        path = os.path.join(PAUSE, "x.cap")
        subprocess.run([TOOL, "check", path], check=True, stdout=subprocess.DEVNULL)
        lines = subprocess.run([TOOL, "info", "--json", path], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        return {line["kind"]: line for line in map(json.loads, lines)}, seconds


def longest_gap(info):
    """Seconds between a record and the next one; all are in the order of time."""
    dump = subprocess.run([TOOL, "dump", "--json", os.path.join(PAUSE, "x.cap")], check=True,
                          capture_output=True, text=True).stdout
    ticks = [record["timestamp"] for record in map(json.loads, dump.splitlines())
             if record["kind"] == "record"]
    assert ticks == sorted(ticks), "time goes back"
    span = info["capture"]["last_ns"] - info["capture"]["first_ns"]
    return max(b - a for a, b in zip(ticks, ticks[1:])) / (ticks[-1] - ticks[0]) * span / 1e9


def tell_of(info, gap, seconds):
    span = (info["capture"]["last_ns"] - info["capture"]["first_ns"]) / 1e9
    print(f"# {info['records']['records']} records, {info['losses']['lost']} lost; {span:.3f} s,"
          f" {seconds:.3f} s of them seen from here; longest without a record {gap:.3f} s")


def is_whole(info):
    losses = info["losses"]
    return losses["stated"] and losses["written"] == info["records"]["records"] > 100


def stopped_with_its_clocks_it_has_no_gap():
    machine = Machine()
    machine.tell("stop")
    time.sleep(SECONDS)
    machine.tell("cont")
    info, seconds = machine.end()
    gap = longest_gap(info)
    tell_of(info, gap, seconds)
    return is_whole(info) and not info["losses"]["lost"] and gap < SECONDS - 1


def stopped_without_its_clocks_it_has_one():
    machine = Machine()
    machine.signal(signal.SIGSTOP)
    time.sleep(SECONDS)
    machine.signal(signal.SIGCONT)
    info, seconds = machine.end()
    gap = longest_gap(info)
    tell_of(info, gap, seconds)
    return is_whole(info) and not info["losses"]["lost"] and gap >= SECONDS - 1


def main():
    failed = 0
    tests = [stopped_with_its_clocks_it_has_no_gap, stopped_without_its_clocks_it_has_one]
    for number, test in enumerate(tests, 1):
        good = test()
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {test.__name__}", flush=True)
    print(f"1..{len(tests)}")
    shutil.rmtree(PAUSE, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
