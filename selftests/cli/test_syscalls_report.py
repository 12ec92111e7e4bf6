#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --syscalls` says of captures whose system calls are known."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import SERIES
from make_capture import Maker

READ, WRITE, CLOSE, CLONE = 0, 1, 3, 56


def call(capture, end, task, number, ns, result=0, begun=True, compat=False):
    capture.syscall(0, end, task, number, end - ns if begun else 0, result, (1, 2, 3), compat,
                    SERIES.index("System calls"))


def make(tmp, **facts):
    capture = Maker(cores=1, series=SERIES, facts={"machine": "x86_64", "sources": "syscalls", **facts})
    for task, name in (7, "reader"), (8, "writer"), (9, "writer"):
        capture.task(task, name)
    capture.switch(0, 0, 7)
    for i in range(10):
        call(capture, 10_000 * (i + 1), 7, READ, 1000 + i, result=-11 if i == 3 else 1)
        call(capture, 10_000 * (i + 1) + 1, 8 + i % 2, WRITE, 50)
    call(capture, 200_000, 9, READ, 10, begun=False)
    call(capture, 200_001, 8, READ, 5, compat=True)
    call(capture, 200_002, 8, 9999, 5, result=-4096)
    call(capture, 200_003, 7, CLONE, 30, result=10)
    call(capture, 200_004, 10, CLONE, 0, begun=False)      # the new task's return from it
    capture.save(os.path.join(tmp, "kbarman.cap"))


def rows(tmp, *args):
    done = tap.run("report", "--syscalls", "--json", *args, cwd=tmp)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def calls_are_added_up_by_task_and_call(tmp):
    make(tmp)
    head, *found = rows(tmp)
    assert (head["kind"], head["calls"], head["sum_ns"]) == ("syscalls", 24, 10_045 + 500 + 5 + 5 + 30), head
    assert [(row["task"], row.get("call"), row["number"], row["compat"], row["calls"], row["errors"], row["unbegun"],
             row["sum_ns"], row["max_ns"]) for row in found] == [
        ("reader", "read", READ, False, 10, 1, 0, 10_045, 1009), ("writer", "write", WRITE, False, 10, 0, 0, 500, 50),
        ("reader", "clone", CLONE, False, 1, 0, 0, 30, 30), ("writer", None, READ, True, 1, 0, 0, 5, 5),
        ("writer", None, 9999, False, 1, 0, 0, 5, 5), ("writer", "read", READ, False, 1, 0, 1, 0, 0)], found
    done = tap.run("query", "--json", "SELECT call, calls FROM report_syscalls_of WHERE errors", cwd=tmp)
    assert json.loads(done.stdout) == [{"call": "read", "calls": 10}], done


def people_read_the_same(tmp):
    make(tmp)
    text = tap.run("report", "--syscalls", cwd=tmp).stdout
    assert "# syscalls : 24, 0.010585 ms\n" in text, text
    line, = [line for line in text.splitlines() if line.endswith("reader            read")]
    assert line.split()[:4] == ["0.010", "94.90%", "10", "1"], line
    assert "4 more rows are below 0.5% of the sum" in text, text
    text = tap.run("report", "--syscalls", "--percent-limit", "0", cwd=tmp).stdout
    assert "[call 9999]\n" in text, text


def tasks_and_times_are_chosen(tmp):
    make(tmp)
    assert {row["task"] for row in rows(tmp, "--tid", "8")[1:]} == {"writer"}
    assert sum(row["calls"] for row in rows(tmp, "--tid", "8")[1:]) == 7
    assert rows(tmp, "--time", "0,0.00005")[0]["calls"] == 9, rows(tmp, "--time", "0,0.00005")


def a_capture_without_system_calls_says_how_to_have_them(tmp):
    capture = Maker(cores=1)
    capture.switch(0, 0, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    done = tap.run("report", "--syscalls", cwd=tmp)
    assert done.returncode == 2 and "record with 'kbarman record --sources syscalls'" in done.stderr, done


def it_is_a_report_of_its_own(tmp):
    make(tmp)
    for other in "--waits", "--latency", "--irq":
        done = tap.run("report", "--syscalls", other, cwd=tmp)
        assert done.returncode == 2 and "is a report of its own" in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
