#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman top`, on a device that is not there: fake_device.c."""
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder


def kernel_function():
    """A function of this kernel: its name, and an address in it."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if name == "schedule" and kind in "tT" and int(address, 16):
                return name, int(address, 16) + 4
    raise tap.Skip("the kernel hides its addresses")


def top(tmp, *args, **settings):
    name, address = kernel_function()
    log = os.path.join(tmp, "reads")
    done = tap.run("top", "-d", "0.2", *args, cwd=tmp,
                   env=recorder.fake(FAKE_PC=hex(address), FAKE_READS=log, **settings))
    assert done.returncode == 0, done
    with open(log, encoding="utf-8") as file:
        return name, done, [line.rstrip("\n") for line in file]


def the_kernels_symbols_are_read_once_for_all_refreshes(tmp):
    name, done, reads = top(tmp, "-j", "-n", "5")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(row["kind"] == "interval" for row in rows) == 5, done
    assert sum(row["kind"] == "symbol" and row["symbol"] == name for row in rows) >= 5, rows
    # where the kernel's text is, before all, and the names
    assert reads.count("/proc/kallsyms") == 2, reads


if __name__ == "__main__":
    recorder.build_fake()
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(recorder.BUILT)
