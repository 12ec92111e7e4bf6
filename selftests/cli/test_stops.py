#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counters that stood still: what `kbarman report` and `info` say of captures where that is
known. What `record` says is in test_record.py, what the module does in selftests/vm."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

STOPS = 1	# the series' number
MS = 1_000_000
INVALID = 0xffffffffffffffff


def maker(**facts):
    capture = Maker(cores=2, counters=[17, 8], series=["Lost records", "Counters stopped"], facts={
        **{f"counter.{c}.{i}": name for c in range(2)
           for i, name in enumerate(["cycles", "instructions"])},
        "written.0": "10", **{key.replace("_", "."): value for key, value in facts.items()}})
    capture.task(7, "worker")
    return capture


def objects(verb, tmp, kind):
    done = tap.run(verb, "--json", "a.cap", cwd=tmp)
    assert done.returncode == 0, done
    return [row for row in map(json.loads, done.stdout.splitlines()) if row["kind"] == kind]


def text(verb, tmp):
    done = tap.run(verb, "a.cap", cwd=tmp)
    assert done.returncode == 0, done
    return done.stdout


def throttled(directory):
    """Half an instruction a cycle, but for a sample whose cycles stood still."""
    capture = maker(stopped_0_throttled="1")
    capture.sample(0, 1 * MS, 7, 0x1000, [1000, 500])
    capture.custom(0, 1 * MS, 0, STOPS, 1)
    capture.sample(0, 5 * MS, 7, 0x1000, [1000, 4000])
    capture.custom(0, 5 * MS, 0, STOPS, 0)
    capture.sample(0, 6 * MS, 7, 0x1000, [1000, 500])
    capture.sample(1, 6 * MS, 7, 0x1000, [1000, 500])
    capture.save(os.path.join(directory, "a.cap"))


def places_and_times_are_told(tmp):
    throttled(tmp)
    assert objects("report", tmp, "stopped") == [
        {"kind": "stopped", "cpu": 0, "reason": "throttled", "times": 1, "duration_ns": 4 * MS,
         "first_ns": 1 * MS, "last_ns": 5 * MS}]
    said = text("report", tmp)
    assert ("# stopped  : CPU 0: 1 time (throttled), 4.000 ms at most, from 0.000000 s to "
            "0.004000 s: sample less (-F, -c)") in said, said
    assert objects("info", tmp, "stopped") == [
        {"kind": "stopped", "cpu": 0, "reason": "throttled", "times": 1, "duration_ns": 4 * MS}]
    assert "stopped    CPU 0: 1 time (throttled), 4.000 ms at most: " in text("info", tmp)


def rates_leave_out_what_is_not_whole(tmp):
    throttled(tmp)
    row, = objects("report", tmp, "symbol")
    assert row["counters"] == [4000, 5500] and row["samples"] == 4, row
    assert row["partial"] == 1 and row["ipc"] == 0.5, row
    head, = objects("report", tmp, "report")
    assert head["samples_partial"] == 1, head
    assert "IPC leaves out 1 of 4 samples" in text("report", tmp)
    task, = objects("report", tmp, "task_samples")
    assert task["ipc"] == 0.5 and task["partial"] == 1, task


def where_nothing_is_whole_there_is_no_rate(tmp):
    capture = maker()
    capture.custom(0, 1 * MS, 0, STOPS, 1)
    for i in range(2, 5):
        capture.sample(0, i * MS, 7, 0x1000, [1000, 4000])
        capture.custom(0, i * MS, 0, STOPS, 1)
    capture.save(os.path.join(tmp, "a.cap"))
    row, = objects("report", tmp, "symbol")
    assert "ipc" not in row and row["partial"] == 3, row
    rows = [line.split() for line in text("report", tmp).splitlines() if "[unknown]" in line]
    assert rows and rows[0][2] == "-", rows
    stop, = objects("report", tmp, "stopped")
    assert stop["times"] == 4 and stop["duration_ns"] == 3 * MS, stop


def nothing_is_claimed_where_nothing_stopped(tmp):
    capture = maker()
    for i in range(1, 4):
        capture.sample(0, i * MS, 7, 0x1000, [1000, 500])
        capture.custom(0, i * MS, 0, 0, 5)
    capture.save(os.path.join(tmp, "a.cap"))
    assert not objects("report", tmp, "stopped") and not objects("info", tmp, "stopped")
    assert objects("report", tmp, "report")[0]["samples_partial"] == 0
    for verb in "report", "info":
        said = text(verb, tmp)
        assert "leaves out" not in said and "stopped  " not in said, said


def a_counter_stopped_to_the_end(tmp):
    capture = maker()
    capture.sample(1, 1 * MS, 7, 0x1000, [1000, 500])
    capture.custom(1, 2 * MS, 0, STOPS, 3)
    capture.switch(0, 9 * MS, 7)
    capture.save(os.path.join(tmp, "a.cap"))
    stop, = objects("report", tmp, "stopped")
    assert (stop["cpu"], stop["reason"], stop["duration_ns"]) == (1, "offline", 7 * MS), stop
    stop, = objects("info", tmp, "stopped")
    assert stop["duration_ns"] == 7 * MS, stop


def what_its_place_is_lost_of_is_counted_by_the_facts(tmp):
    capture = maker(stopped_1_throttled="7", stopped_0_error="2", stopped_9_error="1",
                    stopped_0_unheard="3")
    capture.sample(0, 1 * MS, 7, 0x1000, [1000, 500])
    capture.save(os.path.join(tmp, "a.cap"))
    found = [(s["cpu"], s["reason"], s["times"], s["duration_ns"]) for s in objects("report", tmp, "stopped")]
    assert found == [(0, "error", 2, 0), (1, "throttled", 7, 0)], found
    assert "# stopped  : CPU 0: 2 times (error): look for" in text("report", tmp)


def a_counter_that_was_not_read_makes_no_rate(tmp):
    capture = maker()
    capture.sample(0, 1 * MS, 7, 0x1000, [1000, 500])
    capture.sample(0, 2 * MS, 7, 0x1000, [1000, INVALID])
    capture.save(os.path.join(tmp, "a.cap"))
    row, = objects("report", tmp, "symbol")
    assert row["ipc"] == 0.5 and row["partial"] == 1, row


if __name__ == "__main__":
    tap.main(globals())
