#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --syscalls`, `--faults` and `--block` say of captures in which all of these are known."""
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


KERNEL = 0xffffffff81000000
DISK, OTHER = 8 << 20 | 16, 259 << 20 | 1


def make_faults_and_requests(tmp):
    capture = Maker(cores=2, series=SERIES, facts={"sources": "faults,block", f"disk.{DISK}": "sdb"})
    faults, block = SERIES.index("Page faults"), SERIES.index("Block requests")
    for task, name in (7, "reader"), (8, "writer"):
        capture.task(task, name)
    capture.switch(0, 0, 7)
    for i in range(4):
        capture.fault(0, 1000 * i + 500, 7, 1000 * i + 400 if i else 0, i == 3, 4096 * i, 0x401000, counter=faults)
    capture.map(0, KERNEL, 0x2000, 0, "[kernel.kallsyms]")
    capture.fault(0, 9000, 8, 100, -14, 3, KERNEL + 0x10, kernel=True, counter=faults)
    for i in range(5):
        capture.block(1, 20_000 + i, 7 if i else 0, 10_000 if i < 4 else 0, -5 if i == 2 else 0, 8 * i, DISK, 4096,
                      0x101 if i == 1 else 0, counter=block)
    capture.block(1, 30_000, 8, 29_000, 0, 0, OTHER, 512, 200, counter=block)
    capture.block(1, 30_001, 8, 30_000, 0, 0, 0, 0, 2, counter=block)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    with open(os.path.join(tmp, "kbarman.cap.kallsyms"), "w", encoding="ascii") as file:
        file.write(f"{KERNEL:016x} T copy_from_user\n{KERNEL + 0x100:016x} T other\n")


def rows(tmp, *args, what="--syscalls"):
    done = tap.run("report", what, "--json", *args, cwd=tmp)
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


def faults_are_added_up_by_task_kind_and_function(tmp):
    make_faults_and_requests(tmp)
    head, *found = rows(tmp, what="--faults")
    assert (head["kind"], head["faults"], head["sum_ns"]) == ("faults", 5, 300), head
    assert [(row["task"], row["fault"], row.get("symbol"), row["image"], row["faults"], row["errors"], row["unbegun"],
             row["sum_ns"]) for row in found] == [
        ("reader", "minor", None, "[unknown]", 3, 0, 1, 200), ("reader", "major", None, "[unknown]", 1, 0, 0, 100),
        ("writer", "failed", "copy_from_user", "[kernel.kallsyms]", 1, 1, 1, 0)], found
    text = tap.run("report", "--faults", "--percent-limit", "0", cwd=tmp).stdout
    assert "# faults   : 5, 0.000300 ms\n" in text, text
    assert any(line.split()[-4:] == ["reader", "major", "[unknown]", "[unknown]"] for line in text.splitlines()), text
    done = tap.run("query", "--json", "SELECT fault, faults FROM report_faults_of WHERE errors", cwd=tmp)
    assert json.loads(done.stdout) == [{"fault": "failed", "faults": 1}], done


def requests_are_added_up_by_task_disk_and_operation(tmp):
    make_faults_and_requests(tmp)
    head, *found = rows(tmp, what="--block")
    assert (head["kind"], head["requests"], head["sum_ns"]) == ("block", 7, 41_007), head
    assert [(row.get("task"), row.get("disk"), row["device"], row.get("operation"), row["requests"], row["errors"],
             row["unbegun"], row["bytes"], row["sum_ns"]) for row in found] == [
        ("reader", "sdb", DISK, "read", 3, 1, 1, 12288, 20_005), ("reader", "sdb", DISK, "write", 1, 0, 0, 4096, 10_001),
        (None, "sdb", DISK, "read", 1, 0, 0, 4096, 10_000), ("writer", None, OTHER, None, 1, 0, 0, 512, 1000),
        ("writer", None, 0, "flush", 1, 0, 0, 0, 1)], found
    text = tap.run("report", "--block", "--percent-limit", "0", cwd=tmp).stdout
    for says in ("# requests : 7, 0.041007 ms\n", "reader            sdb write, 4096 bytes\n",
                 "[unknown]         sdb read, 4096 bytes\n", "writer            259:1 [operation 200], 512 bytes\n",
                 "writer            [unknown] flush\n"):
        assert says in text, (says, text)
    assert [row["requests"] for row in rows(tmp, "--tid", "8", what="--block")[1:]] == [1, 1]


def tables_have_their_times_and_names(tmp):
    make_faults_and_requests(tmp)
    ask = lambda query: json.loads(tap.run("query", "--json", query, cwd=tmp).stdout)
    assert ask("SELECT at_ns, end_ns, duration_ns, tid, task, kind, kernel, address, pc, symbol, image FROM faults "
               "WHERE kind <> 'minor'") == [
        {"at_ns": 3400, "end_ns": 3500, "duration_ns": 100, "tid": 7, "task": "reader", "kind": "major", "kernel": 0,
         "address": "0x3000", "pc": "0x401000", "symbol": None, "image": "[unknown]"},
        {"at_ns": 9000, "end_ns": 9000, "duration_ns": None, "tid": 8, "task": "writer", "kind": "failed", "kernel": 1,
         "address": "0x3", "pc": "0xffffffff81000010", "symbol": "copy_from_user", "image": "[kernel.kallsyms]"}]
    assert ask("SELECT at_ns, duration_ns, cpu, tid, task, disk, device, sector, bytes, operation, flags, result "
               "FROM block WHERE end_ns IN (20000, 20001, 30001)") == [
        {"at_ns": 10_000, "duration_ns": 10_000, "cpu": 1, "tid": None, "task": None, "disk": "sdb", "device": DISK,
         "sector": 0, "bytes": 4096, "operation": "read", "flags": "", "result": 0},
        {"at_ns": 10_000, "duration_ns": 10_001, "cpu": 1, "tid": 7, "task": "reader", "disk": "sdb", "device": DISK,
         "sector": 8, "bytes": 4096, "operation": "write", "flags": "sync", "result": 0},
        {"at_ns": 30_000, "duration_ns": 1, "cpu": 1, "tid": 8, "task": "writer", "disk": None, "device": 0,
         "sector": 0, "bytes": 0, "operation": "flush", "flags": "", "result": 0}]


def a_capture_without_them_says_how_to_have_them(tmp):
    capture = Maker(cores=1)
    capture.switch(0, 0, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    for source in "syscalls", "faults", "block":
        done = tap.run("report", f"--{source}", cwd=tmp)
        assert done.returncode == 2 and f"record with 'kbarman record --sources {source}'" in done.stderr, done


def each_is_a_report_of_its_own(tmp):
    make(tmp)
    for other in "--waits", "--latency", "--irq", "--faults", "--block":
        done = tap.run("report", "--syscalls", other, cwd=tmp)
        assert done.returncode == 2 and "give one of these reports alone" in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
