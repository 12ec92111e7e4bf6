#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman query`: tables over captures have what reports and dumps say, a part of a capture is read
as all of it is, and questions can do nothing but ask."""
import csv
import fcntl
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import examples
import tap
import test_json
from barman_image import Image
from latency_capture import IPI_RESCHEDULE, NET_RX, Late
from make_capture import Maker

# Tables over records, with a column that is no common one.
TABLES = {"records": "type", "switches": "next_tid", "slices": "end_ns", "waits": "asleep",
          "samples": "weight", "frames": "pc", "counters": "value", "wakeups": "woken_tid",
          "delays": "queue_ns", "migrations": "to_cpu", "interrupts": "own_ns", "syscalls": "number", "faults": "pc", "block": "sector", "marks": "text",
          "series": "value", "details": "about_id"}
COUNTERS = {f"counter.{cpu}.{i}": name for cpu in range(4)
            for i, name in enumerate(["cycles", "instructions"])}


def ask(*args, status=0, **kwargs):
    """The rows of an answer, as dictionaries."""
    done = tap.run("query", "--json", *args, **kwargs)
    assert done.returncode == status, done
    return json.loads(done.stdout or "[]")


def one(*args, **kwargs):
    """The only value of an answer."""
    (row,) = ask(*args, **kwargs)
    (value,) = row.values()
    return value


def text(*args, status=0, **kwargs):
    done = tap.run("query", *args, **kwargs)
    assert done.returncode == status, done
    return done.stdout


def refused(*args, **kwargs):
    done = tap.run("query", *args, **kwargs)
    assert done.returncode == 2 and not done.stdout, (args, done)
    assert done.stderr.startswith("kbarman query: ") and done.stderr.count("\n") == 1, (args, done)
    return done.stderr


def random_capture(path, records=3000, seed=1, cores=4, losses=True, readings=False):
    """All kinds of records of some tasks, in an order that could be."""
    rng = random.Random(seed)
    c = Late(cores=cores, counters=[17, 8], facts={
        "written.0": str(records), **COUNTERS, "irq.40": "disk", "tgid.2": "100",
        "idle.1": "20,2,0,C1", "machine": "x86_64", **({"lost.1.full": "7"} if losses else {}),
        **({"counts": "switch"} if readings else {})})
    for task in range(100, 120):
        c.task(task, f"task {task % 7}")
        c.map(task, 0x400000, 0x100000, 0, f"/gone/image-{task % 3}")
    now, running, halted = 1000, [0] * cores, [False] * cores
    for _ in range(records):
        now += rng.randrange(100, 5000)
        core, kind = rng.randrange(cores), rng.random()
        chain = [0x400000 + rng.randrange(0, 0x100000, 16) for _ in range(rng.randrange(5))]
        if halted[core]:
            halted[core] = False
            c.halt(core, now, False)
        elif kind < 0.4:
            task = rng.choice([0, *range(100, 120)])
            while task in running and task:
                task = rng.choice([0, *range(100, 120)])
            c.switch(core, now, task, blocked=rng.random() < .6, state=rng.choice([1, 2]),
                     chain=chain or None)
            running[core] = task
        elif kind < 0.6:
            values = [rng.randrange(10**6), rng.randrange(10**6)]
            if rng.random() < .1:
                values[0] = 2**64 - 1
            pc = None if readings and rng.random() < .5 else 0x400000 + rng.randrange(0x100000)
            c.sample(core, now, running[core], pc, values,
                     [pc, *chain] if chain and pc is not None else None)
        elif kind < 0.7 and not running[core]:
            halted[core] = True
            c.halt(core, now, True, rng.choice([0, 1]))
        elif kind < 0.85:
            c.waking(core, now, running[core], rng.randrange(100, 120), rng.randrange(cores),
                     new=rng.random() < .1)
        elif kind < 0.9:
            c.migrate(core, now, running[core], rng.randrange(100, 120), rng.randrange(cores))
        elif kind < 0.95:
            c.irq(core, now, now + 50, 40, running[core])
            c.softirq_entry(core, now + 60, NET_RX, running[core])
            c.ipi(core, now + 70, now + 80, IPI_RESCHEDULE, running[core])
            c.softirq_exit(core, now + 90, NET_RX, running[core])
            c.syscall(core, now + 95, running[core], (0, 56, 257)[now % 3], now - 40 if now % 5 else 0,
                      -2 if now % 2 else 0, (now, 2**64 - 100, 0), compat=now % 7 == 0)
            c.fault(core, now + 96, running[core], now - 30 if now % 5 else 0, now % 4 - 2, now, 0x401000 + now,
                    kernel=now % 3 == 0)
            c.block(core, now + 97, running[core] if now % 3 else 0, now - 20 if now % 5 else 0, -(now % 2), now,
                    8 << 20 | now % 3, 512 * (now % 9), now % 8)
        elif kind < 0.98:
            c.record(5, core, now, b"".join([running[core].to_bytes(4, "little"), (5).to_bytes(8, "little"),
                                             bytes(12), bytes([1]), b"mark\0"]))
        elif losses and rng.random() < .2:
            c.lost(core, now, rng.randrange(1, 5))
            running[core] = 0
    return c.save(path)


# ---- what the tables have ----

def each_table_has_as_many_rows_as_a_dump_has_records(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"))
    types, children = {}, 0
    for line in tap.run("dump", "--json", path).stdout.splitlines():
        row = json.loads(line)
        if row["kind"] == "record":
            kind = row["type"] if row["type"] != "custom_counter" else row.get("what", "value")
            types[kind] = types.get(kind, 0) + 1
            children += kind == "syscall" and row["about_id"] == 56 and row["about_cpu"] == row["begin"] == row["result"] == 0
    assert children
    want = {"switches": types["task_switch"], "samples": types["sample_pc"], "marks": types["annotation"],
            "records": sum(types.values()), "wakeups": types["waking"] + types["waking_new"],
            "migrations": types["migrate"], "syscalls": types["syscall"] - children, "faults": types["fault"], "block": types["block"], "series": types["value"],
            "counters": 2 * types["sample_pc"],
            "interrupts": types["irq_exit"] + types["ipi_exit"] + types["softirq_exit"]}
    got = {table: one(path, f"SELECT count(*) FROM {table}") for table in want}
    assert got == want and min(got.values()) > 0, (got, want)


def system_calls_have_their_times_and_names(tmp):
    """By their begin. What a new task returns from is the call of its parent, which has a row."""
    c = Late(facts={"machine": "x86_64", "tgid.1": "7"})
    c.task(8, "caller")
    c.switch(0, 1000, 8)
    c.syscall(1, 5000, 8, 0, 1500, -11, (3, 2**64 - 100, 2**63))
    c.syscall(0, 5100, 9, 56, 0, 0)
    c.syscall(0, 5200, 8, 56, 0, 9)
    c.syscall(0, 5300, 8, 56, 5250, 0, compat=True)
    c.syscall(0, 5400, 8, 9999, 0, 0)
    path = c.save(os.path.join(tmp, "a.cap"))
    rows = ask(path, "SELECT * FROM syscalls ORDER BY end_ns")
    assert rows[0].pop("record") > 0
    assert rows[0] == {"file": 1, "at_ns": 1500, "cpu": 1, "tid": 8, "pid": 7, "task": "caller", "end_ns": 5000,
                       "duration_ns": 3500, "call": "read", "number": 0, "compat": 0, "result": -11, "arg0": 3,
                       "arg1": -100, "arg2": -2**63}, rows
    assert [(row["at_ns"], row["duration_ns"], row["call"], row["result"]) for row in rows[1:]] == [
        (5200, None, "clone", 9), (5250, 50, None, 0), (5400, None, None, 0)], rows
    assert one(path, "SELECT end_ns FROM syscalls WHERE at_ns < 2000") == 5000


def rows_have_the_values_of_the_record(tmp):
    c = Late(cores=2, counters=[17], facts={"counter.0.0": "cycles", "counter.1.0": "cycles", "tgid.1": "7", "machine": "x86_64"})
    c.task(8, "worker")
    c.task(9, "other")
    c.switch(1, 1000, 8)
    c.sample(1, 1500, 8, 0x400010, [77], [0x400010, 0x400020])
    c.waking(1, 1600, 8, 9, cpu=0)
    c.switch(1, 2000, 9, blocked=True, state=2, chain=[0x400030], waits_for=(0, 5, 0, 3, 4711))
    path = c.save(os.path.join(tmp, "a.cap"))
    (row,) = ask(path, "SELECT * FROM switches WHERE at_ns = 2000")
    assert row.pop("record") > 0
    assert row == {"file": 1, "at_ns": 2000, "cpu": 1, "tid": 8, "pid": 7, "task": "worker",
                   "state": "D", "blocked": 1, "next_tid": 9, "next_pid": 9, "next_task": "other",
                   "object": "pipe", "call": "read", "object_id": 3, "object_value": 4711,
                   "object_name": None, "depth": 1}, row
    (row,) = ask(path, "SELECT tid, state, blocked, next_tid FROM switches WHERE at_ns = 1000")
    assert list(row.values()) == [None, None, None, 8], row
    (row,) = ask(path, "SELECT tid, task, weight, pc, depth, idle, cycles FROM samples")
    assert row == {"tid": 8, "task": "worker", "weight": 77, "pc": "0x400010", "depth": 2, "idle": 0,
                   "cycles": 77}, row
    (row,) = ask(path, "SELECT tid, woken_tid, woken_task, woken_cpu, new, context FROM wakeups")
    assert list(row.values()) == [8, 9, "other", 0, 0, "task"], row
    rows = ask(path, "SELECT of, frame, tid, pc, weight FROM frames ORDER BY at_ns, frame")
    assert [tuple(row.values()) for row in rows] == [
        ("sample", 0, 8, "0x400010", 77), ("sample", 1, 8, "0x400020", 77),
        ("switch", 0, 8, "0x400030", None)], rows
    rows = ask(path, "SELECT tid, kind, at_ns, duration_ns, ended FROM slices ORDER BY at_ns")
    assert [tuple(row.values()) for row in rows] == [(8, "run", 1000, 1000, "blocked"),
                                                     (9, "run", 2000, 0, "capture")], rows


def every_line_of_the_report_is_a_row(tmp):
    """And every key is a column, with the same value: text, number, list or truth."""
    paths = [random_capture(os.path.join(tmp, f"{seed}.cap"), 2000, seed, readings=seed == 2)
             for seed in (1, 2)]
    for args, lines in ((["-M", "all"], "report"), (["-g"], "calls"), (["--latency", "--irq"], "late")):
        for path in paths:
            seen = {}
            for line in tap.run("report", "--json", *args, path).stdout.splitlines():
                row = json.loads(line)
                seen.setdefault(row.pop("kind"), []).append(row)
            if lines == "calls":
                seen = {kind: rows for kind, rows in seen.items() if kind.endswith("call")}
            assert len(seen) >= 2, seen.keys()
            for kind, rows in seen.items():
                same_rows(path, "report" if kind == "report" else f"report_{kind}", rows)


def same_rows(path, table, rows):
    got = ask(path, f"SELECT * FROM {table}")
    assert len(got) == len(rows), (table, len(got), len(rows))
    for want, row in zip(rows, got):
        assert set(want) <= set(row), (table, set(want) - set(row))
        for key, value in row.items():
            if key == "file":
                continue
            expected = want.get(key)
            if isinstance(expected, list):
                value = json.loads(value)
            elif isinstance(expected, bool):
                value = bool(value)
            assert value == expected, (table, key, value, expected)


def the_report_tables_have_every_key_that_is_promised(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 50)
    optional = {"children", "tid", "cgroup", "command", "cpu", "line", "file", "inlined"}   # of other options of report
    chosen = {"only", "whole_capture", "all_tasks"}                     # of those that choose records
    for kind, keys in test_json.read_page()["REPORT"].items():
        if kind.startswith(("path", "requests")):
            continue
        table = "report" if kind == "report" else f"report_{kind}"
        columns = {row["name"] for row in ask(path, f"PRAGMA table_info({table})")}
        missing = set(keys) - columns - chosen - (optional if kind in ("symbol", "call", "wait_call") else set())
        assert not missing, (table, missing)


def sums_over_records_are_those_of_the_report(tmp):
    """The same numbers, computed in SQL from single records."""
    path = random_capture(os.path.join(tmp, "a.cap"), 5000)
    checks = [
        ("SELECT tid, sum(duration_ns) v FROM slices WHERE kind = 'run' GROUP BY tid",
         "SELECT tid, run_ns v FROM report_task_time WHERE run_ns OR runs"),
        ("SELECT next_tid tid, count(*) v FROM switches WHERE tid IS NOT NULL GROUP BY next_tid",
         "SELECT tid, runs v FROM report_task_time WHERE runs"),
        ("SELECT tid, sum(duration_ns) v FROM waits WHERE blocked GROUP BY tid",
         "SELECT tid, blocked_ns v FROM report_task_time WHERE blocked_ns"),
        ("SELECT tid, sum(duration_ns) v FROM waits WHERE NOT blocked GROUP BY tid",
         "SELECT tid, preempted_ns v FROM report_task_time WHERE preempted_ns"),
        ("SELECT tid, max(duration_ns) v FROM waits GROUP BY tid",
         "SELECT tid, longest_wait_ns v FROM report_task_time WHERE longest_wait_ns"),
        ("SELECT cpu tid, sum(duration_ns) v FROM idle GROUP BY cpu",
         "SELECT cpu tid, halted_ns v FROM report_cpu WHERE halted_ns"),
        ("SELECT cpu * 10 + state tid, count(*) v FROM idle GROUP BY 1",
         "SELECT cpu * 10 + idle_state tid, count v FROM report_idle"),
        ("SELECT cpu tid, sum(duration_ns) v FROM slices WHERE kind = 'run' AND tid > 0 GROUP BY cpu",
         "SELECT cpu tid, busy_ns v FROM report_cpu WHERE busy_ns"),
        ("SELECT tid, count(*) v FROM samples WHERE pc IS NOT NULL GROUP BY tid",
         "SELECT tid, sum(samples) v FROM report_task_samples GROUP BY tid"),
        ("SELECT tid, sum(coalesce(weight, (SELECT sum(weight) / count(weight) FROM samples))) v "
         "FROM samples GROUP BY tid", "SELECT tid, sum(weight) v FROM report_task_samples GROUP BY tid"),
        ("SELECT tid, sum(instructions) v FROM samples GROUP BY tid",
         "SELECT tid, sum(json_extract(counters, '$[1]')) v FROM report_task_samples GROUP BY tid"),
        ("SELECT preempted tid, sum(duration_ns) v FROM delays GROUP BY preempted",
         "SELECT preempted tid, sum_ns v FROM report_latency_sum"),
        ("SELECT preempted tid, sum(queue_ns) v FROM delays GROUP BY preempted",
         "SELECT preempted tid, queue_ns v FROM report_latency_sum"),
        ("SELECT preempted tid, count(*) v FROM delays GROUP BY preempted",
         "SELECT preempted tid, waits v FROM report_latency_sum"),
        ("SELECT tid, max(duration_ns) v FROM delays WHERE NOT preempted GROUP BY tid",
         "SELECT tid, max_ns v FROM report_latency_task WHERE NOT preempted"),
        ("SELECT name tid, sum(own_ns) v FROM interrupts GROUP BY name",
         "SELECT handler tid, own_ns v FROM report_interrupt WHERE own_ns"),
        ("SELECT name tid, count(*) v FROM interrupts GROUP BY name",
         "SELECT handler tid, count v FROM report_interrupt WHERE own_ns"),
        ("SELECT cpu tid, sum(count) v FROM losses WHERE kind = 'lost' GROUP BY cpu",
         "SELECT cpu tid, sum(records) v FROM report_lost GROUP BY cpu"),
        ("SELECT duration_ns tid, records v FROM files", "SELECT duration_ns tid, records v FROM report"),
        ("SELECT task || ifnull(symbol, '-') || image tid, samples v FROM hot",
         "SELECT task || ifnull(symbol, '-') || image tid, samples v FROM report_symbol WHERE NOT idle"),
        ("SELECT tid, run_ns v FROM run_time", "SELECT tid, run_ns v FROM report_task_time WHERE run_ns OR runs"),
    ]
    for mine, theirs in checks:
        got, want = ({row["tid"]: row["v"] for row in ask(path, sql)} for sql in (mine, theirs))
        assert got == want and want, (mine, got, want)


def weights_carry_readings_as_in_the_report(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 3000, 3, readings=True)
    got = one(path, "SELECT sum(coalesce(weight, (SELECT sum(weight) / count(weight) FROM samples "
                    "WHERE pc IS NOT NULL))) FROM samples WHERE pc IS NOT NULL")
    assert got == one(path, "SELECT weight FROM report"), got
    got = one(path, "SELECT count(*) FROM samples WHERE pc IS NULL")
    assert got == one(path, "SELECT samples_without_pc FROM report") > 0, got


def lists_have_what_the_header_has(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 50)
    dumped = [json.loads(line) for line in tap.run("dump", "--json", path).stdout.splitlines()]
    tasks = [(row["tid"], row["task"]) for row in dumped if row["kind"] == "task"]
    assert [(row["tid"], row["task"]) for row in ask(path, "SELECT * FROM tasks")] == tasks
    maps = [(row["tid"], hex(row["address"]), row["image"]) for row in dumped
            if row["kind"] == "image"]
    got = [(row["tid"], row["address"], row["image"]) for row in ask(path, "SELECT * FROM images")]
    assert got == maps and maps
    assert one(path, "SELECT value FROM facts WHERE key = 'irq.40'") == "disk"
    assert one(path, "SELECT pid FROM tasks WHERE tid = 101") == 100
    (file,) = ask(path, "SELECT * FROM files")
    assert file["path"] == path and file["cpus"] == 4 and file["lost"] == 7, file


def percentiles_are_values_of_the_column(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 50)
    rows = "WITH v(x) AS (SELECT 1 UNION ALL SELECT 5 UNION ALL SELECT 2 UNION ALL SELECT NULL) SELECT"
    assert one(path, f"{rows} median(x) FROM v") == 2
    assert one(path, f"{rows} percentile(x, 99) FROM v") == 5
    assert one(path, f"{rows} percentile(x, 0) FROM v") == 1
    assert one(path, f"{rows} percentile(x, 66) FROM v") == 2
    assert one(path, f"{rows} percentile(x, 67) FROM v") == 5
    assert one(path, f"{rows} median(x + 0.5) FROM v") == 2.5
    assert one(path, f"{rows} median(x) FROM v WHERE x > 9") is None
    assert "0 to 100" in refused(path, f"{rows} percentile(x, 101) FROM v")


# ---- a part of a capture is read as all of it is ----

def same_with_and_without_bounds(path, table, column, condition):
    """A + in front of a column hides it from the table, which then delivers all rows."""
    hidden = re.sub(r"\b(file|record|at_ns|cpu|tid)\b", r"+\1", condition)
    what = f"SELECT *, {column} FROM {table} WHERE"
    got, want = (text(path, f"{what} {where}") for where in (condition, hidden))
    assert got == want, (table, condition, len(got), len(want))
    return got.count("\n")


def bounds_do_not_change_what_is_found(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 12000)     # in several places: places.c
    last = one(path, "SELECT last_ns FROM files")
    for table, column in TABLES.items():
        found = 0
        for condition in (f"at_ns >= {last // 2} AND at_ns < {last // 2 + last // 50}",
                          f"at_ns <= {last // 9}", f"at_ns > {last - last // 20}", "cpu = 2",
                          f"tid = 103 AND at_ns BETWEEN {last // 3} AND {last // 2}",
                          f"at_ns BETWEEN {last / 4 + 0.5} AND {last / 3}", "tid = 100000",
                          f"at_ns = (SELECT at_ns FROM {table} LIMIT 1 OFFSET 20)", "file = 2",
                          "cpu = -1", "tid = NULL", "at_ns < 'x'",
                          f"at_ns > {2**63}.0", f"at_ns > {last}"):
            found += same_with_and_without_bounds(path, table, column, condition)
        assert found > 0, table
        assert text(path, f"SELECT * FROM {table} WHERE cpu = '1'") == \
            text(path, f"SELECT * FROM {table} WHERE cpu = 1"), table


def a_record_is_found_by_its_place(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 12000)
    for table, column in TABLES.items():
        offsets = [row["record"] for row in ask(path, f"SELECT DISTINCT record FROM {table} "
                                                      "WHERE record IS NOT NULL LIMIT 3 OFFSET 60")]
        assert offsets or table == "series", table
        for offset in (*offsets, 1, 3, -8, 2**40, (offsets or [800])[0] + 1):
            same_with_and_without_bounds(path, table, column, f"record = {offset}")


def joins_by_record_find_every_row(tmp):
    """A walk that has found a record goes on from there to the next one."""
    path = random_capture(os.path.join(tmp, "a.cap"), 12000)
    for table in "samples", "switches":
        depth = one(path, f"SELECT sum(depth) FROM {table}")
        for order in "record", "record DESC", "cpu, record", "record % 1009", "record / 5000, -record":
            assert one(path, f"SELECT count(*) FROM (SELECT record FROM {table} ORDER BY {order} LIMIT 100000) "
                             "s CROSS JOIN frames f ON f.record = s.record") == depth, (table, order)
    for table in TABLES:
        rows = "SELECT record FROM records WHERE type <> 'halt' ORDER BY {} LIMIT 400 OFFSET 3000"
        assert one(path, f"SELECT count(*) FROM ({rows.format('record')}) s CROSS JOIN {table} t ON "
                         "t.record = s.record") == \
            one(path, f"SELECT count(*) FROM {table} WHERE +record IN ({rows.format('record')})"), table
    other = random_capture(os.path.join(tmp, "b.cap"), 12000, seed=2)
    assert one(path, other, "SELECT count(*) FROM samples s JOIN frames f USING (file, record)") == \
        sum(one(which, "SELECT sum(depth) FROM samples") for which in (path, other))


def conditions_with_or_find_every_row_once(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 3000)
    for table in TABLES:
        got, want = (one(path, f"SELECT count(*) FROM {table} WHERE {where}")
                     for where in ("cpu = 1 OR tid = 103 OR at_ns < 900000",
                                   "+cpu = 1 OR +tid = 103 OR +at_ns < 900000"))
        assert got == want, table


def records_out_of_order_and_wrapped_rings_are_found(tmp):
    rng = random.Random(7)
    for word, order in (8, "<"), (4, ">"):
        parts = []
        for name, first in ("old", 0), ("new", 6000):
            part = Image(word, order, store=2, counters=0, clock=(0, 1, 1, 0))
            for i in range(first, first + 6000):
                part.record(3, i % 2, 1000 * i + rng.randrange(40000), "IBB", i % 5, i % 3 == 0, 1)
            parts.append(part.data)
        ring = Image(word, order, store=2, counters=0, clock=(0, 1, 1, 0))
        ring.data = parts[1] + parts[0]
        full = len(ring.data)
        ring.offsets = (full, len(parts[1]) + full, len(parts[1]), 5 * full)
        path = ring.save(os.path.join(tmp, f"{word}.cap"))
        assert [row["tid"] for row in ask(path, "SELECT next_tid tid FROM switches LIMIT 3")] == [0, 1, 2]
        for table in "records", "switches", "slices", "waits":
            found = [same_with_and_without_bounds(path, table, TABLES[table], condition)
                     for condition in ("at_ns BETWEEN 2000000 AND 2100000", "at_ns > 11950000",
                                       "at_ns < 30000", "at_ns BETWEEN 6000000 AND 6010000")]
            assert found[0] and found[1], (table, found)
        offset = one(path, "SELECT record FROM switches LIMIT 1 OFFSET 9000")
        assert one(path, f"SELECT count(*) FROM switches WHERE record = {offset}") == 1


def cumulative_counters_are_read_from_the_beginning(tmp):
    c = Maker(cores=1, counters=[17], facts={"ext": "0"})
    c.task(7, "a")
    for i in range(20000):
        c.sample(0, 1000 + 10 * i, 7, 0x400000, [1000 + 5 * i])
    path = c.save(os.path.join(tmp, "a.cap"))
    assert one(path, "SELECT count(*) FROM samples WHERE at_ns >= 150000 AND weight = 5") == 5100


# ---- several files ----

def several_captures_are_one_table(tmp):
    paths = [random_capture(os.path.join(tmp, f"{seed}.cap"), 500 * seed, seed) for seed in (1, 2)]
    for table in TABLES:
        counts = [row["n"] for row in ask(*paths, f"SELECT file, count(*) n FROM {table} GROUP BY file")]
        assert counts == [one(path, f"SELECT count(*) FROM {table}") for path in paths], table
        assert one(*paths, f"SELECT count(*) FROM {table} WHERE file = 2") == counts[1], table
    assert [row["path"] for row in ask(*paths, "SELECT path FROM files ORDER BY file")] == paths
    assert one(*paths, "SELECT count(*) FROM report_cpu WHERE file = 2") == 4


def standard_input_is_a_capture(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 500)
    want = one(path, "SELECT count(*) FROM records a JOIN report")
    with open(path, "rb") as file:
        assert one("-", "SELECT count(*) FROM records a JOIN report", stdin=file) == want
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert one("-", "SELECT count(*) FROM records a JOIN report", stdin=cat.stdout) == want
    assert "as an argument" in refused("-")


# ---- forms ----

QUESTION = "SELECT 1 AS a, 'x,y' AS \"b\"\"c\", NULL AS d UNION ALL SELECT 22, 'z', 1.5"


def forms_are_those_of_sqlites_shell(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    for mode, want in (
            ("list", "1|x,y|\n22|z|1.5\n"),
            ("csv", '1,"x,y",\n22,z,1.5\n'),
            ("tabs", "1\tx,y\t\n22\tz\t1.5\n"),
            ("json", '[{"a":1,"b\\"c":"x,y","d":null},\n{"a":22,"b\\"c":"z","d":1.5}]\n'),
            ("line", '    a = 1\n  b"c = x,y\n    d = \n\n    a = 22\n  b"c = z\n    d = 1.5\n'),
            ("column", ' a  b"c    d\n--  ---  ---\n 1  x,y     \n22  z    1.5\n'),
            ("table", '+----+-----+-----+\n|  a | b"c |   d |\n+----+-----+-----+\n|  1 | x,y |     |\n'
                      '| 22 | z   | 1.5 |\n+----+-----+-----+\n'),
            ("box", '┌────┬─────┬─────┐\n│  a │ b"c │   d │\n├────┼─────┼─────┤\n│  1 │ x,y │     │\n'
                    '│ 22 │ z   │ 1.5 │\n└────┴─────┴─────┘\n'),
            ("markdown", '|  a | b"c |   d |\n|----|-----|-----|\n|  1 | x,y |     |\n'
                         '| 22 | z   | 1.5 |\n')):
        got = text("--format", mode, path, QUESTION)
        assert [line.rstrip() for line in got.splitlines()] == [line.rstrip() for line in want.splitlines()], \
            (mode, got)
    rows = list(csv.reader(io.StringIO(text("--csv", path, QUESTION))))
    assert rows == [["a", 'b"c', "d"], ["1", "x,y", ""], ["22", "z", "1.5"]], rows
    assert text("--header", "--separator", "; ", "--nullvalue", "-", path, QUESTION) == \
        'a; b"c; d\n1; x,y; -\n22; z; 1.5\n'
    assert text("--json", path, "SELECT 1 WHERE 0") == "" == text("--format", "box", path, "SELECT 1 WHERE 0")


def long_answers_keep_their_widths(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    got = text("--format", "table", path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "LIMIT 3000) SELECT i, 'é' AS e FROM n").splitlines()
    assert len(got) == 3004 and {len(line) for line in got} == {len(got[0])}, got[:5]


def names_do_not_control_the_terminal_nor_break_the_output(tmp):
    c = Maker()
    c.task(7, "a\x1b[31mb\udcff")
    c.switch(0, 1000, 7)
    c.switch(0, 2000, 0)
    path = c.save(os.path.join(tmp, "a.cap"))
    sql = "SELECT task FROM switches WHERE tid = 7"
    assert one(path, sql) == "a\x1b[31mb\ufffd"
    assert text(path, sql) == text("--format", "csv", path, sql) == "a?[31mb?\n"
    main, other = os.openpty()
    with subprocess.Popen([tap.KBARMAN, "query", path, sql], stdout=other, stdin=subprocess.DEVNULL) as tool:
        os.close(other)
        said = tap.read_all(main).decode()
    assert tool.returncode == 0 and "a?[31mb?" in said and "┌" in said, said


# ---- the shell ----

def shell(path, *lines, status=0, args=(), **kwargs):
    done = tap.run("query", *args, path, input="\n".join(lines) + "\n", **kwargs)
    assert done.returncode == status, done
    return done.stdout


def questions_come_from_standard_input(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    assert shell(path, "SELECT 1,", "2;", "", "SELECT 3; SELECT 4;", ".mode csv", ".headers on",
                 "SELECT 5 AS x;", ".nullvalue none", "SELECT NULL", status=0) == \
        "1|2\n3\n4\nx\n5\nNULL\nnone\n"
    assert shell(path, "SELECT 1;", ".quit", "SELECT 2;") == "1\n"
    done = tap.run("query", path, input="SELECT 1;\nSELEKT 2;\nSELECT 3;\n")
    assert done.returncode == 2 and done.stdout == "1\n" and "SELEKT" in done.stderr, done
    assert text(path, "SELECT 1; SELECT 2") == "1\n2\n"


def commands_list_tables_and_columns(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    names = text(path, ".tables").split()
    assert set(TABLES) | {"files", "tasks", "images", "losses", "hot", "report_cpu"} <= set(names), names
    for name in names:
        assert text(path, f".schema {name}").startswith("CREATE "), name
        if name != "critical_path":
            text(path, f"SELECT * FROM {name} LIMIT 1")
    assert "next_tid INTEGER" in text(path, ".schema switches")
    assert ".quit" in text(path, ".help")
    assert "did you mean .tables" in refused(path, ".table")
    assert "list, csv" in refused(path, ".mode nothing")


def no_table_has_a_bare_ns(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    for name in text(path, ".tables").split():
        columns = [row["name"] for row in ask(path, f"PRAGMA table_xinfo({name})")]
        assert columns and "ns" not in columns, (name, columns)
    for sql in "SELECT max(ns) FROM slices", "SELECT w.NS FROM waits w", "SELECT tid FROM delays WHERE ns > 5":
        said = refused(path, sql)
        assert "at_ns" in said and "end_ns" in said and "duration_ns" in said, said
    assert "duration_ns" not in refused(path, "SELECT nothing FROM slices")
    assert text(path, "SELECT ns FROM (SELECT 5 AS ns)") == "5\n"


def names_from_before_work(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 2000)
    for table, old, new in (("counters", "counter", "event"), ("slices", "state", "idle_state"),
                            ("slices", "state_name", "idle_state_name"), ("delays", "state", "idle_state"),
                            ("interrupts", "name", "handler"), ("idle", "state", "idle_state")):
        assert text(path, f"SELECT count(*) FROM {table} WHERE {old} IS NOT {new}") == "0\n", (table, old)
        if table != "idle":
            assert old not in [row["name"] for row in ask(path, f"PRAGMA table_info({table})")]
    assert one(path, "SELECT count(counter) FROM counters") > 0


def runs_idle_and_gaps_are_the_slices(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 2000)
    for view, kind in ("runs", "run"), ("idle", "idle"), ("gaps", "lost"):
        rows = "count(*), sum(duration_ns), sum(end_ns - at_ns)"
        assert text(path, f"SELECT {rows} FROM {view}") == text(path, f"SELECT {rows} FROM slices WHERE kind = '{kind}'")


def read_and_output_work_in_this_folder(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    with open(os.path.join(tmp, "q.sql"), "w", encoding="ascii") as file:
        file.write(".mode csv\nSELECT 1, 'a b';\n")
    assert shell(path, ".output out.csv", ".read q.sql", ".output", "SELECT 2;", cwd=tmp) == "2\n"
    with open(os.path.join(tmp, "out.csv"), encoding="ascii") as file:
        assert file.read() == '1,"a b"\n'
    text("-o", "other.txt", path, "SELECT 3", cwd=tmp)
    with open(os.path.join(tmp, "other.txt"), encoding="ascii") as file:
        assert file.read() == "3\n"
    done = tap.run("query", path, input=".output ../x\n.output /tmp/x\n", cwd=tmp)
    assert done.returncode == 2 and "without '/'" in done.stderr, done
    assert "-o" in refused(path, ".output x", cwd=tmp)
    assert not os.path.exists(os.path.join(tmp, "x"))
    tap.run("query", "-o", "bad.txt", path, "SELEKT", cwd=tmp)
    assert not os.path.exists(os.path.join(tmp, "bad.txt"))


# ---- the manual ----

def page():
    with open(os.path.join(HERE, "..", "..", "user", "man", "kbarman-query.1"), encoding="utf-8") as file:
        return file.read().replace("\\-", "-")


def the_manual_has_every_table_and_column(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    entries = re.findall(r"^\.TP\n\.B (\w+)\n(.*)\n(?:Columns: (.*)\.\n)?", page(), re.M)
    sentences = {name: sentence for name, sentence, _ in entries}
    told = {name: columns.split(", ") for name, _, columns in entries if columns}
    common = ["file", "record", "at_ns", "cpu", "tid", "pid", "task"]
    for name in text(path, ".tables").split():
        columns = [row["name"] for row in ask(path, f"PRAGMA table_info({name})")]
        if name.startswith("report"):
            continue
        assert any(name == entry[0] for entry in entries), name
        said = text(path, f".schema {name}").split("-- ")[-1].strip()
        assert sentences[name].lower() == said.lower() + ".", (name, sentences[name], said)
        if name in told:
            columns = [column for column in columns if column not in ("cycles", "instructions")]
            assert columns in (told[name], common + told[name]), (name, columns, told[name])
    assert set(TABLES) <= set(told)


def the_twenty_questions_of_the_manual_have_answers(tmp):
    questions = [command for place, command in examples.examples() if "kbarman-query.1" in place
                 and command.startswith("kbarman query") and "SELECT" in command and ">" not in command[:20]]
    headings = re.findall(r'^\.SS "(\d+)\. ', page(), re.M)
    assert headings == [str(number) for number in range(1, 21)], headings
    for seed, name in enumerate(("kbarman.cap", "a.cap", "b.cap")):
        random_capture(os.path.join(tmp, name), 3000, seed=seed + 5)
    os.mkdir(programs := os.path.join(tmp, "bin"))
    os.symlink(tap.KBARMAN, os.path.join(programs, "kbarman"))
    ran = 0
    for command in questions:
        if "| jq" in command and not shutil.which("jq"):
            continue
        done = subprocess.run(["sh", "-c", command], cwd=tmp, capture_output=True, text=True, timeout=300,
                              check=False, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
        assert done.returncode == 0, (command, done)
        assert done.stdout or ">" in command, (command, done)
        ran += 1
    assert ran >= 20, ran


def a_copy_is_refused(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 300)
    copy, other = os.path.join(tmp, "copy.cap"), random_capture(os.path.join(tmp, "b.cap"), 300, seed=2)
    shutil.copy(path, copy)
    for paths in (path, other, copy), (path, path):
        done = tap.run("query", *paths, "SELECT 1")
        assert done.returncode == 2 and "the same capture as" in done.stderr and not done.stdout, done
    assert one(path, other, "SELECT count(DISTINCT file) FROM records") == 2


def a_terminal_has_a_shell(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 200)
    main, other = os.openpty()
    with subprocess.Popen([tap.KBARMAN, "query", path], stdin=other, stdout=other, stderr=other,
                          start_new_session=True,
                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as tool:
        os.close(other)
        said = ""

        def until(word):
            nonlocal said
            while word not in said:
                said += os.read(main, 4096).decode()
            before, _, said = said.partition(word)
            return before

        until("kbarman> ")
        for typed, answer, prompt in (
                (b"SELECT 1,\n", "", "    ...> "), (b"\x03", "", "kbarman> "),
                (b"SELECT count(*) FROM records a, records b, records c, records d;\n", "", "\n"),
                (b"\x03", "interrupted", "kbarman> "), (b"SELEKT 1;\n", "SELEKT", "kbarman> "),
                (b"SELECT 7 AS x;\n", "│ 7 │", "kbarman> ")):
            time.sleep(1)       # a Ctrl-C is for the answer that is being made
            os.write(main, typed)
            assert answer in until(prompt), (typed, answer, said)
        os.write(main, b"\x04")
        assert tool.wait(timeout=tap.HANG) == 0
    os.close(main)


# ---- what questions can't do ----

def questions_can_only_ask(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    target = os.path.join(tmp, "written")
    for sql in (f"ATTACH '{target}' AS x", f"VACUUM INTO '{target}'", "SELECT load_extension('libc.so.6')",
                "CREATE VIRTUAL TABLE x USING fts3(a)", "PRAGMA writable_schema = 1",
                "PRAGMA temp_store_directory = '/tmp'", "PRAGMA journal_mode = WAL",
                "PRAGMA hard_heap_limit = 0", "SELECT fts3_tokenizer('x')", "SELECT readfile('/etc/passwd')",
                f"SELECT writefile('{target}', 'x')", "INSERT INTO tasks VALUES(1, 2, 3, 4, 5, 6)",
                "UPDATE switches SET tid = 1", "DELETE FROM samples"):
        refused(path, sql)
        refused("--no-sandbox", path, sql)
    assert not os.path.exists(target)
    assert text(path, "CREATE TABLE mine AS SELECT 1 AS a; SELECT a FROM mine; CREATE VIEW v AS SELECT tid "
                      "FROM switches; SELECT count(*) > 1 FROM v") == "1\n1\n"


def memory_is_limited_and_sorting_uses_files(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) "
    assert "memory" in refused("--memory", "16M", path, many + "SELECT group_concat(i) FROM n")
    assert one("--memory", "16M", path, many + "SELECT i FROM n ORDER BY i * 7 % 1000003, i LIMIT 1") == 1000003
    assert "bytes" in refused("--memory", "x", path, "SELECT 1")
    assert "memory" in refused("--memory", "16M", path, many + "SELECT median(i) FROM n")
    refused(path, "SELECT length(zeroblob(1000000000))")


def an_interrupt_ends_a_question(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 200)
    with open(random_capture(os.path.join(tmp, "b.cap"), 20000), "rb") as file:
        data = file.read()
    many = [os.path.join(tmp, f"{number:09}.cap") for number in range(128)]
    for number, copy in enumerate(many):    # of different hosts
        with open(copy, "wb") as file:
            file.write(data.replace(b"elsewhere", b"%09d" % number))
    for paths, sql in (([path], "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"),
                       ([path], "SELECT count(*) FROM records a, records b, records c, records d, records e"),
                       (many, "SELECT (SELECT count(*) FROM report_lines) + (SELECT count(*) FROM report_call_lines)")):
        with subprocess.Popen([tap.KBARMAN, "query", *paths, sql], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as tool:
            tap.wait_for_handler(tool.pid, signal.SIGINT)
            time.sleep(0.5)
            tool.send_signal(signal.SIGINT)
            out, err = tool.communicate(timeout=tap.HANG)
        assert tool.returncode == 2 and not out and "interrupt" in err, (tool.returncode, out, err)


def a_reader_may_end_early(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 3000)
    for mode in "list", "json", "table":
        done = subprocess.run(f"'{tap.KBARMAN}' query --format {mode} '{path}' 'SELECT * FROM records a, "
                              "records b' | head -n 1", shell=True, capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0 and not done.stderr and done.stdout.count("\n") == 1, done


def a_path_is_that_of_each_capture_that_has_it(tmp):
    paths = [random_capture(os.path.join(tmp, f"{seed}.cap"), 2000, seed) for seed in (1, 2)]
    task = one(paths[0], "SELECT task FROM slices WHERE tid GROUP BY task ORDER BY count(*) DESC LIMIT 1")
    done = tap.run("report", "--json", "--critical-path", task, paths[0])
    assert done.returncode == 0, done
    count = len(done.stdout.splitlines()) - 1
    asked = f"SELECT count(*) FROM critical_path('{task}') WHERE file = 1"
    assert count and one(*paths, asked) == count == one(paths[0], asked), (count, task)
    assert one(*paths, f"SELECT count(*) FROM (SELECT DISTINCT task FROM tasks WHERE task = '{task}') named "
               "JOIN critical_path ON of = named.task WHERE file = 1") == count
    assert "nobody" in refused(*paths, "SELECT * FROM critical_path('nobody')")
    assert "say which path" in refused(paths[0], "SELECT * FROM critical_path")


def mistakes_are_one_sentence(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    assert "no such table: no_table" in refused(path, "SELECT * FROM no_table")
    assert "can't open" in refused(os.path.join(tmp, "b.cap"), "SELECT 1")
    assert "can't open" in refused("SELECT", cwd=tmp)    # no blank in it: a file that is not there
    assert "no kbarman.cap" in refused("SELECT 1", cwd=tmp)
    assert "give one of list" in refused("--format", "x", path, "SELECT 1")
    with open(os.path.join(tmp, "kbarman.cap"), "wb") as file, open(path, "rb") as other:
        file.write(other.read())
    assert text("SELECT 1", cwd=tmp) == "1\n"


def damage_is_told_and_the_rest_is_asked(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 500)
    whole = one(path, "SELECT count(*) FROM records")
    os.truncate(path, os.path.getsize(path) - 300)
    done = tap.run("query", path, "SELECT count(*) FROM records")
    assert done.returncode == 1 and path in done.stderr, done
    assert whole - 20 < int(done.stdout) < whole, done


def without_sqlite_it_says_what_to_install(tmp):
    path = random_capture(os.path.join(tmp, "a.cap"), 20)
    with open(os.path.join(tmp, "libsqlite3.so.0"), "wb"):
        pass
    done = tap.run("query", path, "SELECT 1", env={**os.environ, "LD_LIBRARY_PATH": tmp})
    assert done.returncode == 2 and "install it (libsqlite3-0)" in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
