#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many records a second the package of Python reads into arrays, and in how much memory: the mix of
decode.c (60 % switches, 25 % halting events, 15 % samples with two counters), as the tables
switches, idle and samples with all their columns. In parts, and as whole tables; seconds of the
processor, the best of five. The memory is that of a process that reads a capture of 1 GiB in parts.
Prints members of a JSON object. Usage: python.py DIRECTORY [RECORDS]"""
import json
import os
import re
import subprocess
import sys
import time

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(TREE, "user", "python"))
import kbarman  # noqa: E402  pylint: disable=wrong-import-position

TABLES, ROUNDS = ("switches", "idle", "samples"), 5


def look(part):
    """Every column, as somebody who takes it would."""
    return sum(len(table[name]) for table in part.values() for name in table.columns)


def in_parts(path):
    records = 0
    for part in kbarman.open(path).parts(*TABLES):
        records += part.records
        look(part)
    return records


def whole(path):
    part = kbarman.open(path).read(*TABLES)
    look(part)
    return part.records


def rate(read, path, records):
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        assert read(path) == records
        best = min(best, time.process_time() - begun)
    return round(records / best)


def mib(path):
    """Of this script, in a process that does nothing else."""
    said = subprocess.run([sys.executable, __file__, "--memory", path], capture_output=True,
                          text=True, check=True).stdout
    return float(said)


def main():
    if sys.argv[1] == "--memory":
        in_parts(sys.argv[2])
        with open("/proc/self/status", encoding="ascii") as status:
            print(int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024)
        return
    path, records = os.path.join(sys.argv[1], "python.cap"), int((sys.argv + ["1900000"])[2])
    maker = [os.path.join(TREE, "build", "selftests", "bench", "decode"), "--make", path]
    subprocess.run([*maker, str(records)], check=True)
    figures = {"records_per_s": rate(in_parts, path, records),
               "whole_records_per_s": rate(whole, path, records)}
    subprocess.run([*maker, str(records * 16)], check=True)
    figures["1GiB_capture_mib"] = round(mib(path), 1)
    os.unlink(path)
    print(f'"python":{json.dumps(figures)}')


if __name__ == "__main__":
    main()
