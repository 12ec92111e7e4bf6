#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: known.py RECORDED COUNTED

Compares what the records say of known programs (known.c) with what a plugin of QEMU counted
(bench/switch/tasks.c). Both files have lines "PROGRAM USER ALL"."""
import sys

BOUND = 0.001


def read(path):
    with open(path, encoding="ascii") as file:
        return [[int(word) for word in line.split()] for line in file]


def main():
    recorded, counted = map(read, sys.argv[1:])
    failed = len(recorded) != len(counted) or not counted
    for place, name in (1, "user space"), (2, "user space and the kernel"):
        ok = not failed
        for ours, theirs in zip(recorded, counted):
            off = (ours[place] - theirs[place]) / theirs[place] if theirs[place] else 1
            ok = ok and abs(off) <= BOUND
            print(f"# program {ours[0]} in {name}: recorded {ours[place]}, "
                  f"counted {theirs[place]}: {100 * off:+.4f} %")
        failed = failed or not ok
        print(f"{'ok' if ok else 'not ok'} {place} - "
              f"each_task_has_its_instructions_in_{name.replace(' ', '_')}")
    print("1..2")
    return failed


sys.exit(main())
