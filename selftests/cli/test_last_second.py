#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The last second of recordings that ended with the machine, as `kbarman report` has it."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import Late
from make_capture import Maker

MS = 1_000_000
READ, FSYNC, FUTEX_CALL = 0, 74, 202
FILE, PIPE, FUTEX, MUTEX, IOWAIT = 3, 5, 8, 9, 1
K = 0xffffffff81000000
ENDED = {"end": "panic", "end_ticks": str(3000 * MS), "end_cpu": "1", "end_task": "8,sh", "end_text": "Fatal exception",
         "end_chain": f"{K + 0x1010:#x},{K + 0x2000:#x},0x10"}
NAMES = {0: "swapper", 7: "writer", 8: "sh", 9: "worker", 10: "hog", 11: "reader", 12: "daemon", 14: "saver"}
TITLE = "# The last second: what each CPU ran, held and waited for (times in ms)\n"


def make(tmp, facts):
    """8 has a mutex and runs until the end; 7 waits for it. 10 has the CPU that 9 could use. 12 has waited for long."""
    capture = Late(cores=2, facts={"machine": "x86_64", "objects": "1", "object.3.12.8388609.0": "/var/log/x", **facts})
    for task, name in NAMES.items():
        capture.task(task, name)
    capture.map(0, K, 0x3000, 0, "[kernel.kallsyms]")
    for when, cpu, task, waits_for in (
            (0, 1, 11, None), (0, 0, 7, None), (50, 0, 12, (READ, MUTEX, 0, 11, 0)), (100, 0, 9, (FUTEX_CALL, FUTEX, 0, 0, 0x1000)),
            (200, 1, 14, (READ, PIPE, 0, 5, 4712)), (300, 1, 0, (FSYNC, FILE, IOWAIT, 8 << 20 | 1, 12)),
            (1500, 0, 10, None), (2400, 1, 7, None)):
        capture.switch(cpu, when * MS, task, blocked=bool(waits_for), state=1 if waits_for else 0, waits_for=waits_for)
    capture.waking(1, 2500 * MS, waker=7, woken=11, cpu=1)
    capture.switch(1, 2600 * MS, 8, blocked=True, state=2, waits_for=(READ, MUTEX, 0, 8, 0))
    capture.waking(0, 2900 * MS, waker=10, woken=13, cpu=1, new=True)
    capture.waking(0, 2950 * MS, waker=10, woken=99)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    with open(os.path.join(tmp, "kbarman.cap.kallsyms"), "w", encoding="ascii") as file:
        file.write(f"{K:x} T _stext\n{K + 0x1000:x} T panic\n{K + 0x1800:x} T die\n{K + 0x3000:x} T _etext\n")


def report(tmp, *options):
    done = tap.run("report", *options, cwd=tmp)
    assert done.returncode == 0, done
    return done.stdout


def rows(tmp, *options):
    return [row for row in map(json.loads, report(tmp, "--json", *options).splitlines()) if row["kind"] == "last"]


def short(row):
    return (row["cpu"], row["state"], row["tid"], row.get("run_ns", 0) // MS, row.get("since_ns", 0) // MS,
            row["holds_up"])


def each_cpu_has_what_it_ran_and_who_waits(tmp):
    make(tmp, ENDED)
    found = rows(tmp)
    assert [short(row) for row in found] == [
        (0, "runs", 10, 1000, 1500, 0),
        (0, "runnable", 9, 0, 1500, 0),
        (0, "waits", 12, 0, 2900, 0),
        (1, "ran", 0, 400, 0, 0),
        (1, "ran", 7, 200, 0, 0),
        (1, "runs", 8, 400, 400, 1),
        (1, "runnable", 11, 0, 500, 0),
        (1, "runnable", 13, 0, 100, 0),
        (1, "waits", 14, 0, 2700, 0),
        (1, "waits", 7, 0, 400, 0)], found
    disk, lock = (row for row in found if row.get("held_up"))
    assert (disk["tid"], disk["object"], disk["call"], disk["name"]) == (14, "file", "fsync", "/var/log/x"), disk
    assert (lock["tid"], lock["object"], lock["holder_tid"], lock["holder"]) == (7, "mutex", 8, "sh"), lock


def it_is_in_front_of_the_other_tables(tmp):
    make(tmp, ENDED)
    text = report(tmp)
    assert "\n#            in panic < die < 0x10\n" in text, text
    head, last = text.split(TITLE)
    assert head.endswith("#\n") and not [line for line in head.splitlines() if line[0] != "#"], head
    shown = [line for line in last.split("# No samples")[0].splitlines() if line.startswith(" ")]
    assert shown[0].split() == ["0", "100.00%", "1500.000", "runs", "10", "hog"], shown
    assert any(line.endswith(" could run        11  reader") for line in shown), shown
    assert any(line.endswith(" sh, holds what 1 task waits for") for line in shown), shown
    assert any(line.endswith(" writer: read Linux's mutex, held by sh (8)") for line in shown), shown
    assert "daemon" not in last.split("# No samples")[0] and "# 1 more row: " in last, last
    assert "daemon: futex 0x1000 of process 12\n" in report(tmp, "--percent-limit", "0"), report(tmp, "--percent-limit", "0")


def without_a_stamp_it_ends_with_the_last_record(tmp):
    make(tmp, {"end": "unknown"})
    assert [short(row) for row in rows(tmp) if row["state"] == "runs"] == [(0, "runs", 10, 1000, 1450, 0),
                                                                          (1, "runs", 8, 350, 350, 1)], rows(tmp)


def a_capture_that_was_stopped_has_none(tmp):
    make(tmp, {})
    assert not rows(tmp) and TITLE not in report(tmp)


def what_was_in_front_of_a_gap_is_not_told(tmp):
    capture = Maker(cores=1, series=["Lost records"], facts=ENDED)
    capture.switch(0, 0, 7)
    capture.switch(0, 2100 * MS, 8, blocked=True, state=2, waits_for=(READ, PIPE, 0, 5, 4711))
    capture.lost(0, 2200 * MS, 5)
    capture.switch(0, 2300 * MS, 9)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    assert not [row for row in rows(tmp) if row["tid"] == 7 and row["state"] != "ran"], rows(tmp)
    assert [row["tid"] for row in rows(tmp) if row["state"] == "runs"] == [9], rows(tmp)


def hostile_facts_are_only_told(tmp):
    for more in ({"end_ticks": str(2 ** 64 - 1)}, {"end_ticks": "1"}, {"end_ticks": "x", "end_chain": "x,,y"},
                 {"end_chain": ",,0x1,,"}, {"end_task": "4294967296"}, {"end": "else"}):
        make(tmp, {**ENDED, **more})
        for option in "--json", "--percent-limit=0":
            assert tap.run("report", option, cwd=tmp).returncode == 0, more


if __name__ == "__main__":
    tap.main(globals())
