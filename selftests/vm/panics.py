#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A virtual machine that panics again and again, at random moments, and what its next boot has of the last seconds.

    selftests/vm/panics.py ARCH FLAVOUR GUEST-DIRECTORY TOOL MEMORY ARGUMENTS PANICS SECONDS [OPTION-OF-QEMU...]

As reserved.py. It ends after SECONDS at the latest. GUEST-DIRECTORY/panics-PANICS keeps what was done, and captures that are
wrong: the next run goes on there, or anew if all was done.
"""
# pylint: disable=unused-argument
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import qmp  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
ARCH, FLAVOUR, GUEST = sys.argv[1:4]
tap.KBARMAN = os.path.abspath(sys.argv[4])
MEMORY, APPEND, PANICS, SECONDS, *QEMU = sys.argv[5:]
NAME = "panics-" + PANICS
PLACE = os.path.abspath(os.path.join(GUEST, NAME))
# Nanoseconds in which each CPU has records, of emulated machines on a busy host, too.
LONG = 20 * 10**9
HANG = 1200
# How it panics, and what it says then.
HOW = {"crash": "sysrq triggered crash", "bug": "Fatal exception", "memory": "panic_on_oom is enabled",
       "interrupt": "Fatal exception in interrupt", "hang": "hung_task: blocked tasks",
       **({"nmi": "NMI: Not continuing"} if ARCH == "amd64" else {})}


def path(*names):
    return os.path.join(PLACE, *map(str, names))


def read(*names):
    with open(path(*names), encoding="utf-8") as file:
        return file.read()


def same_end(ours, others):
    """Of two lists, one of which may have one item more."""
    return any(ours[-8 - i:len(ours) - i] == others[-8 - j:len(others) - j] for i, j in ((0, 0), (0, 1), (1, 0)))


def what_ftrace_says_otherwise(number, switches):
    """Of the last switches of each CPU, in its own ring."""
    if "boot_map" not in APPEND:
        return None
    theirs = {}
    for cpu, task in re.findall(r" \[(\d+)\] .* sched_switch: .* next_pid=(\d+)", read(number, "ftrace")):
        theirs.setdefault(int(cpu), []).append(int(task))
    if len(theirs) == len(switches) and all(same_end(switches[cpu], tasks) for cpu, tasks in theirs.items()):
        return None
    return theirs, {cpu: tasks[-40:] for cpu, tasks in switches.items()}


def what_is_wrong(number, how):
    """With what was recovered of one panic."""
    listed = [line.split() for line in read(number, "found").splitlines()]
    if len(listed) != 1:
        return f"{len(listed)} recordings"
    capture = path(number, "cap")
    done = tap.run("recover", "--base", listed[0][1], "-o", capture, path(number, "0"))
    if done.returncode:
        return done
    end, = (line for line in map(json.loads, tap.run("info", "-j", capture).stdout.splitlines()) if line["kind"] == "end")
    if end["how"] != "panic" or HOW[how] not in end["text"]:
        return end
    said, done = done.stderr, tap.run("dump", "--json", capture)
    records = [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "record"]
    last = {line["cpu"]: line["at_ns"] for line in records}
    if done.returncode or len(last) != 2 or not all(0 <= end["at_ns"] - at < LONG for at in last.values()):
        return done.stderr, last, end
    cpu, task = map(int, re.search(r"; CPU (\d+) ran .* \(task (\d+)\)$", said, re.M).groups())
    ran = {cpu: [line["tid"] for line in records if line["type"] == "task_switch" and line["cpu"] == cpu] for cpu in last}
    # An NMI comes before the task that is about to run, too.
    if task not in ran[cpu][-2 if how == "nmi" else -1:]:
        return said, ran[cpu][-9:]
    report = tap.run("report", capture)
    return what_ftrace_says_otherwise(number, ran) if report.returncode == 0 and "last_work" in report.stdout else report


def judge():
    """What the machine has left, which is removed if it is as it should be."""
    for number in sorted(map(int, filter(str.isdigit, os.listdir(PLACE)))):
        if not os.path.exists(path(number, "whole")):
            continue
        how = list(HOW)[(number - 1) % len(HOW)]
        wrong = what_is_wrong(number, how)
        with open(path("judged"), "a", encoding="utf-8") as file:
            print(number, how, wrong, file=file)
        print(f"# panic {number}, {how}: {wrong or 'a valid capture'}", flush=True)
        os.remove(path(number, "whole"))
        if not wrong:
            shutil.rmtree(path(number))


def done_before():
    """The panics of earlier runs, in a directory that is ready for the next one."""
    if os.path.exists(path("judged")):
        judge()
        if len(read("judged").splitlines()) >= int(PANICS):
            shutil.rmtree(PLACE)
    os.makedirs(PLACE, exist_ok=True)
    with open(path("judged"), "a+", encoding="utf-8") as file:
        file.seek(0)
        before = len(file.readlines())
    for name in "begun", "boot":
        with open(path(name), "w", encoding="ascii") as file:
            print(before, file=file)
    shutil.copy(os.path.join(HERE, "panics.sh"), PLACE)
    return before


@functools.cache
def judged():
    before, end = done_before(), time.monotonic() + int(SECONDS)
    options = ["-action", "reboot=reset", "-qmp", f"unix:{path('monitor')},server=on,wait=off", *QEMU]
    with subprocess.Popen([os.path.join(HERE, "../../scripts/vm"), "--arch", ARCH, "--flavour", FLAVOUR, "--share", GUEST,
                           "--mem", "640", "--timeout", "0", "--append", APPEND, "--dmesg", path("dmesg"),
                           *(word for option in options for word in ("--qemu-arg", option)), "--", "sh",
                           NAME + "/panics.sh", NAME, MEMORY, PANICS, *HOW], stdin=subprocess.DEVNULL) as vm:
        tap.ENDINGS.append(vm.terminate)
        monitor = None
        while vm.poll() is None and time.monotonic() < end:
            if os.path.exists(path("nmi")):
                os.remove(path("nmi"))
                monitor = monitor or qmp.Monitor(path("monitor"))
                monitor.ask("inject-nmi")
            judge()
            assert time.time() - os.path.getmtime(path("boot")) < HANG, "the machine hangs"
            time.sleep(0.2)
        if vm.poll() is None:
            vm.terminate()
            vm.wait()
        else:
            assert vm.returncode == 0, (vm.returncode, read("said"))
    judge()
    done = read("judged").splitlines()
    assert len(done) > before, "none"
    return done


def each_panic_leaves_a_valid_capture(tmp):
    wrong = [line for line in judged() if not line.endswith(" None")]
    assert not wrong, wrong
    print(f"# {len(judged())} panics of {PANICS}")


if __name__ == "__main__":
    tap.main(globals())
