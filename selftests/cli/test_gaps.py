#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records that are missing inside a capture, because they were lost or because a CPU was offline: since
when, and why, if the capture tells. What the module tells is in selftests/vm."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

MS = 1_000_000
FULL, NESTED, TOO_BIG, RATE, LATER = range(5)


def save(tmp, *losses):
    """Task 7 runs from 1 ms on; losses are told at 10 ms; task 8 runs from 11 ms to 12 ms."""
    capture = Maker(cores=1, series=["Lost records"], facts={"raw_base": "0", "sources": "irq"})
    capture.task(7, "before")
    capture.task(8, "behind")
    capture.switch(0, 1 * MS, 7)
    for count, *told in losses:
        capture.lost(0, 10 * MS, count, *told)
    capture.switch(0, 11 * MS, 8)
    capture.switch(0, 12 * MS, 0)
    return capture.save(os.path.join(tmp, "a.cap"))


def output(*args):
    done = tap.run(*args)
    assert done.returncode == 0, done
    return done.stdout


def slices(path):
    """(kind, begin and end in ms, task, reason), of runs that took time"""
    rows = json.loads(output("query", "--json", path, "SELECT * FROM slices WHERE duration_ns > 0 OR kind = 'lost' ORDER BY at_ns"))
    return [(row["kind"], row["at_ns"] / MS, row["end_ns"] / MS, row["tid"], row["reason"])
            for row in rows]


def ran(path):
    """ms, by task, in the report"""
    rows = [json.loads(line) for line in output("report", "--json", path).splitlines()]
    return {row["tid"]: row["run_ns"] / MS for row in rows if row["kind"] == "task_time"}


def cpu_times(path):
    rows = [json.loads(line) for line in output("report", "--irq", "--json", path).splitlines()]
    return [row for row in rows if row["kind"] == "cpu_time"]


def a_task_ran_until_the_first_record_was_lost(tmp):
    for reason, word in (FULL, "full"), (NESTED, "nested"), (TOO_BIG, "too_big"):
        path = save(tmp, (5, reason, 4 * MS))
        assert slices(path) == [("run", 1, 4, 7, None), ("lost", 4, 10, None, word),
                                ("run", 11, 12, 8, None)], slices(path)
        assert ran(path)[7] == 3 and ran(path)[8] == 1, ran(path)
        cpu, = cpu_times(path)
        assert cpu["lost_ns"] == 6 * MS and cpu["task_ns"] == 4 * MS, cpu


def a_gap_that_says_nothing_begins_with_the_last_record(tmp):
    path = save(tmp, (5,))
    assert slices(path) == [("lost", 1, 10, None, "unknown"), ("run", 11, 12, 8, None)], slices(path)
    assert ran(path).get(7, 0) == 0, ran(path)
    # a recording that was cut off has no counts: more may be lost behind the last record
    assert "# lost     : at least 5 records" in output("report", path)


def a_begin_that_can_not_be_is_put_right(tmp):
    """In front of a record that is there, as when an interrupt came in between; or behind the end."""
    for begin, wanted in (0, 1), (2**64 - 1, 10):
        gap, = [row for row in slices(save(tmp, (5, FULL, begin))) if row[0] == "lost"]
        assert gap[1:3] == (wanted, 10), (begin, gap)


def the_first_of_several_reasons_begins_the_gap(tmp):
    path = save(tmp, (1, TOO_BIG, 3 * MS), (5, FULL, 4 * MS))
    assert ran(path)[7] == 2, ran(path)
    assert [row[4] for row in slices(path) if row[0] == "lost"] == ["too_big", "full"]


def lost_marks_hide_no_task(tmp):
    path = save(tmp, (5, RATE, 4 * MS))
    assert slices(path) == [("run", 1, 11, 7, None), ("run", 11, 12, 8, None)], slices(path)


def nobody_runs_on_a_cpu_that_is_offline(tmp):
    capture = Maker(cores=1, series=["Lost records", "Counters stopped"],
                    facts={"raw_base": "0", "sources": "irq"})
    capture.task(7, "before")
    capture.switch(0, 1 * MS, 7)
    capture.custom(0, 4 * MS, 0, 1, 3)
    capture.switch(0, 9 * MS, 8)
    capture.custom(0, 9 * MS, 0, 1, 0)
    capture.switch(0, 10 * MS, 0)
    path = capture.save(os.path.join(tmp, "a.cap"))
    assert slices(path) == [("run", 1, 4, 7, None), ("run", 9, 10, 8, None)], slices(path)
    assert ran(path)[7] == 3 and ran(path)[8] == 1, ran(path)
    cpu, = cpu_times(path)
    assert cpu["unknown_ns"] == 5 * MS and cpu["task_ns"] == 4 * MS and not cpu["lost_ns"], cpu


def the_record_is_shown(tmp):
    path = save(tmp, (5, FULL, 4 * MS), (2, LATER, 5 * MS))
    dumped = [json.loads(line) for line in output("dump", "--json", path).splitlines()]
    assert [(row["value"], row["reason"], row["begin"]) for row in dumped
            if row.get("type") == "custom_counter"] == [(5, "full", 4 * MS), (2, "4", 5 * MS)]
    told = [json.loads(line) for line in output("script", "--json", path).splitlines()]
    assert [(row["value"], row["reason"], row["begin_ns"]) for row in told
            if row["kind"] == "counter"] == [(5, "full", 4 * MS), (2, "?", 5 * MS)], told
    assert "Lost records=5 reason=full\n" in output("script", path)
    assert output("check", path)


if __name__ == "__main__":
    tap.main(globals())
