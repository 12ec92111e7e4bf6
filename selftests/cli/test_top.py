#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman top`, on a device that is not there: fake_device.c."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder


def kernel_function(*names):
    """The first function of these that this kernel has, and an address in it."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if name in names and kind in "tT" and int(address, 16):
                return name, int(address, 16) + 4
    raise tap.Skip("the kernel hides its addresses")


def top(tmp, *args, names=("schedule",), **settings):
    name, address = kernel_function(*names)
    log = os.path.join(tmp, "reads")
    done = tap.run("top", "-d", "0.6", *args, cwd=tmp,
                   env=recorder.fake(FAKE_PC=hex(address), FAKE_READS=log, **settings))
    assert done.returncode == 0, done
    with open(log, encoding="utf-8") as file:
        return name, done, [line.rstrip("\n") for line in file]


def the_kernels_symbols_are_read_once_for_all_refreshes(tmp):
    name, done, reads = top(tmp, "-j", "-n", "5")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(row["kind"] == "interval" for row in rows) == 5, done
    assert sum(row["kind"] == "symbol" and row["symbol"] == name for row in rows) >= 1, rows
    # where the kernel's text is, before all, and the names
    assert reads.count("/proc/kallsyms") == 2, reads


def a_refresh_reads_no_image_anew(tmp):
    image = os.path.join(tmp, "program")
    # of whose first bytes some are a function
    subprocess.run(["cc", "-x", "c", "-", "-Wl,-z,noseparate-code", "-o", image], check=True,
                   input=b'void found(void) { asm(".skip 4096"); } int main(void) { found(); }')
    reads = {}
    for refreshes in 1, 5:
        _, done, log = top(tmp, "-j", "-n", refreshes, FAKE_IMAGES=image)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        named = [row for row in rows if row["kind"] == "symbol" and row["image"] == image]
        assert sum(row["kind"] == "interval" for row in rows) == refreshes, done
        assert any(row["symbol"] == "found" for row in named), rows
        reads[refreshes] = log.count(image)
        os.remove(os.path.join(tmp, "reads"))
    # once to look at it, and once to decode it
    assert reads[5] == reads[1] and 1 <= reads[1] <= 2, reads


def they_are_read_again_when_modules_come_or_go(tmp):
    _, _, reads = top(tmp, "-j", "-n", "5", FAKE_MODULES="other")
    assert reads.count("/proc/kallsyms") == 6, reads
    # one that is used by more or by fewer is the same
    os.remove(os.path.join(tmp, "reads"))
    _, _, reads = top(tmp, "-j", "-n", "5", FAKE_MODULES="same")
    assert reads.count("/proc/kallsyms") == 2, reads


def the_idle_loop_is_told_from_work(tmp):
    idle = {"names": ("do_idle", "call_cpuidle", "default_idle_call", "cpu_do_idle"),
            "FAKE_TASK": 0}
    name, done, _ = top(tmp, "-n", "1", **idle)
    assert "(idle loop: 100.00%)" in done.stdout and name not in done.stdout, done
    name, done, _ = top(tmp, "-n", "1", "-j", **idle)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["symbol"], row["idle"]) for row in rows if row["kind"] == "symbol"] == \
        [(name, True)], rows
    # the idle task's work is work, and a task's is
    for task in 0, 1:
        _, done, _ = top(tmp, "-n", "1", FAKE_TASK=task)
        assert "(idle loop: 0.00%)" in done.stdout and "schedule" in done.stdout, done


def shares_have_colours_for_those_who_want_them(tmp):
    for option, coloured in ("--color", True), ("--color=never", False), ("-d0.2", False):
        _, done, _ = top(tmp, "-n", "1", option)
        assert ("\033[31m 100.00%\033[m" in done.stdout) == coloured, done


if __name__ == "__main__":
    recorder.main(globals())
