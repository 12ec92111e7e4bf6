#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a VM recorded of threads that wait for mutexes (selftests/truth/mutexes.c): whoever is said to hold one
has it, by the program's own log.

    LIBC=glibc|musl mutexes.py GUEST-DIRECTORY TOOL

In results/ there, mutexes-LIBC.cap is the recording and mutexes-LIBC.out what the program says.
"""
# pylint: disable=unused-argument
import collections
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

RESULTS = os.path.join(sys.argv[1], "results")
TOOL = os.path.abspath(sys.argv[2])
LIBC = os.environ.get("LIBC", "glibc")
# Kinds whose holder is told. A robust one of glibc has another word, and all of musl have.
TOLD = {"glibc": ("normal", "recursive", "errorcheck", "inherits"), "musl": ("inherits",)}[LIBC]
WORD = {"glibc": 0, "musl": 4}[LIBC]    # where the word is in a mutex for which threads wait

Had = collections.namedtuple("Had", "thread kind asked got gives gave")


@functools.cache
def query(sql):
    done = subprocess.run([TOOL, "query", "--json", os.path.join(RESULTS, f"mutexes-{LIBC}.cap"), sql],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0, done
    return json.loads(done.stdout or "[]")


@functools.cache
def log():
    """{address of the word: [Had, ...]}, in the time of the capture."""
    base = int(query("SELECT value FROM facts WHERE key = 'raw_base'")[0]["value"])
    found = collections.defaultdict(list)
    with open(os.path.join(RESULTS, f"mutexes-{LIBC}.out"), encoding="ascii") as file:
        for line in file:
            thread, address, kind, *times = line.split()
            found[int(address) + WORD].append(Had(int(thread), kind, *(int(ns) - base for ns in times)))
    return found


@functools.cache
def waits():
    """(who, when, the thread that is said to hold it, kind or None, who may have it, who has it)"""
    found = []
    for row in query("SELECT at_ns, tid, object_id, object_value FROM switches "
                     "WHERE object = 'futex' AND blocked AND task = 'mutexes'"):
        all_of_it = log().get(row["object_value"], [])
        at = row["at_ns"]
        found.append((row["tid"], at, row["object_id"], all_of_it[0].kind if all_of_it else None,
                      {had.thread for had in all_of_it if had.asked <= at <= had.gave},
                      {had.thread for had in all_of_it if had.got <= at <= had.gives}))
    assert len(found) > 1000, len(found)
    return found


def whoever_is_said_to_hold_a_lock_has_it(tmp):
    wrong = [wait for wait in waits() if wait[2] and (wait[2] not in wait[4] or wait[5] - {wait[2]})]
    assert not wrong, (len(wrong), wrong[:5])


def what_is_no_mutex_has_no_holder(tmp):
    others = [wait for wait in waits() if not wait[3]]
    assert others and not any(wait[2] for wait in others), (
        len(others), [wait for wait in others if wait[2]][:5])


def nearly_all_that_have_a_holder_say_so(tmp):
    held = collections.Counter(wait[3] for wait in waits() if wait[5])
    told = collections.Counter(wait[3] for wait in waits() if wait[5] and wait[2])
    for kind, count in sorted(held.items()):
        print(f"# {kind}: {told[kind]} of {count} holders are told")
        assert count > 50 and (told[kind] >= 0.95 * count if kind in TOLD else not told[kind]), kind


if __name__ == "__main__":
    tap.main(globals())
