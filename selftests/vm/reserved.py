#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a virtual machine recorded into memory that survives its resets: a crash, and then a restart.

    selftests/vm/reserved.py ARCH FLAVOUR ROOT GUEST-DIRECTORY TOOL MEMORY ARGUMENTS PARAMETERS [OPTION-OF-QEMU...]

GUEST-DIRECTORY is what `make guest` made; MEMORY is the parameter of the module, ARGUMENTS are the kernel's, and PARAMETERS
the module's others: all as kbarman-blackbox(7) has them. With the ROOT debian, the tool itself recovers it in the last boot.
"""
# pylint: disable=unused-argument
import functools
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
ARCH, FLAVOUR, ROOT, GUEST = sys.argv[1:5]
tap.KBARMAN = os.path.abspath(sys.argv[5])
MEMORY, APPEND, PARAMETERS, *QEMU = sys.argv[6:]
PLACE = os.path.abspath(os.path.join(GUEST, "reserved"))
UNKNOWN, REBOOT, PANIC = range(3)


@functools.cache
def boots():
    """A machine that boots three times. What it finds is in PLACE."""
    shutil.rmtree(PLACE, ignore_errors=True)
    os.mkdir(PLACE)
    with open(os.path.join(PLACE, "boots"), "w", encoding="ascii") as file:
        file.write("0\n")
    shutil.copy(os.path.join(HERE, "reserved.sh"), PLACE)
    options = [word for option in ["-action", "reboot=reset", *QEMU] for word in ("--qemu-arg", option)]
    return subprocess.run([os.path.join(HERE, "../../scripts/vm"), "--arch", ARCH, "--flavour", FLAVOUR, "--root", ROOT, "--share",
                           GUEST, "--mem", "640", "--timeout", "900", "--append", APPEND, "--dmesg",
                           os.path.join(PLACE, "dmesg"), *options, "--", "sh", "reserved/reserved.sh", MEMORY, PARAMETERS],
                          check=False, capture_output=True, text=True)


def booted():
    done = boots()
    said = read("said") if os.path.exists(os.path.join(PLACE, "said")) else ""
    assert (done.returncode, read("boots")) == (0, "3\n"), (done, read("boots"), said)
    return PLACE


def read(*name):
    with open(os.path.join(PLACE, *name), encoding="ascii") as file:
        return file.read()


def found(directory):
    """(address, bytes, end) of each former recording."""
    booted()
    return [(int(address, 16), int(size), int(end)) for _, address, size, end in
            map(str.split, read(directory, "found").splitlines())]


def capture_of(tmp, directory, number):
    """What `recover` makes of it, and says."""
    memory = os.path.join(tmp, "memory")
    os.symlink(os.path.join(booted(), directory, str(number)), memory)
    done = tap.run("recover", "--base", hex(found(directory)[number][0]), "-o", os.path.join(tmp, "cap"), memory)
    assert done.returncode == 0, done
    return os.path.join(tmp, "cap"), done.stderr


def sessions_record_into_reserved_memory_as_elsewhere(tmp):
    booted()
    lines = read("reserved.tap").splitlines()
    assert not [line for line in lines if line.startswith("not ok")] and \
        [line for line in lines if line.startswith("# PASSED: 11 / 11")], read("reserved.tap")


def a_crash_leaves_the_recording_to_the_next_boot(tmp):
    (_, size, end), = found("crash")
    assert end == PANIC and size > 1 << 20, found("crash")
    capture, said = capture_of(tmp, "crash", 0)
    done = tap.run("report", "--waits", capture)
    assert done.returncode == 0 and "last_work" in done.stdout, done


def the_last_records_are_those_before_the_crash(tmp):
    """Who crashed the machine ran last on its CPU."""
    capture, _ = capture_of(tmp, "crash", 0)
    done = tap.run("dump", "--json", capture)
    assert done.returncode == 0, done
    assert "reserved.sh" in done.stdout or '"sh"' in done.stdout, done.stdout[-2000:]


def the_last_second_tells_who_ran_when_it_crashed(tmp):
    capture, _ = capture_of(tmp, "crash", 0)
    rows = [json.loads(line) for line in tap.run("report", "--json", capture).stdout.splitlines()]
    end, = (row for row in rows if row["kind"] == "end")
    last = [row for row in rows if row["kind"] == "last"]
    runs = [row["cpu"] for row in last if row["state"] == "runs"]
    assert len(runs) == len(set(runs)) > 0 and end["chain"], (runs, end)
    assert [row["tid"] for row in last if row["state"] == "runs" and row["cpu"] == end["cpu"]] == [end["tid"]], (last, end)
    assert any(row["state"] == "waits" and row.get("call") in ("nanosleep", "clock_nanosleep") for row in last), last


def it_names_the_functions_of_linux_in_which_that_was(tmp):
    """Of that boot, out of the memory: the next one has others."""
    capture, _ = capture_of(tmp, "crash", 0)
    done = tap.run("report", capture)
    assert re.search(r"^# +in .*panic.* < .*sysrq_handle_crash < ", done.stdout, re.M), done
    os.remove(capture + ".kallsyms")
    assert "sysrq_handle_crash" not in tap.run("report", capture).stdout


def a_restart_is_no_crash_and_both_recordings_are_kept(tmp):
    assert [end for _, _, end in found("both")] == [PANIC, REBOOT], found("both")
    assert found("both")[0] == found("crash")[0]
    capture, _ = capture_of(tmp, "both", 1)
    assert tap.run("report", capture).returncode == 0


def a_recording_is_there_until_it_is_released(tmp):
    assert found("one") == found("both")[:1] and found("again") == found("one")


def the_tool_recovers_and_releases_it(tmp):
    booted()
    if ROOT != "debian":
        raise tap.Skip("the tool does not run in this root")
    page, script = (open(os.path.join(HERE, name), encoding="utf-8").read() for name in (
        "../../user/man/kbarman-blackbox.7", "reserved.sh"))
    commands = page.split(".SS After the crash\n.EX\n")[1].split("\n.EE")[0].replace("\\-", "-").splitlines()
    assert all(f"'{command[8:]}'" in script for command in commands[:2]), commands
    listed, recovered, behind = read("tool").partition("kbarman recover: ")
    assert "ended by panic" in listed and "ended by panic" not in behind, read("tool")
    assert "ended with a panic: sysrq triggered crash" in recovered + behind, read("tool")
    capture, said = capture_of(tmp, "crash", 0)
    assert "ended with a panic: sysrq triggered crash" in said, said
    here, there = (tap.run("dump", "--json", cap).stdout.splitlines() for cap in (capture, os.path.join(PLACE, "tool.cap")))
    # The head says how much room for strings a file has, which not each file system makes smaller.
    assert here[1:] == there[1:] and len(here) > 50000


if __name__ == "__main__":
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
