#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman diff: what differs between captures is found and measured, what does not is not, and what
can't be compared is refused."""
import base64
import collections
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
import protobuf  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from latency_capture import Late  # noqa: E402

KERNEL = 0xffffffff81000000
FUNCTIONS = ["quick", "slow", "rare"]
MS = 1_000_000


def kallsyms(folder):
    path = os.path.join(folder, "kallsyms")
    with open(path, "w", encoding="utf-8") as file:
        for i, name in enumerate(FUNCTIONS):
            print(f"{KERNEL + 0x1000 * i:x} T {name}", file=file)
        print(f"{KERNEL + 0x1000 * len(FUNCTIONS):x} T end", file=file)
    return path


def make(path, seed, slower=0.0, facts=None, events=("cycles", "instructions"), cores=1, ipc=2.0, late=0.0):
    """A worker that runs `quick` and `slow` in turns of a few ms, and another task that it wakes and waits
    for. `slow` takes 1 + `slower` times as long, a woken task waits 1 + `late` times as long."""
    rng = random.Random(seed)
    names = {f"counter.{core}.{i}": event for core in range(cores) for i, event in enumerate(events)}
    c = Late(cores=cores, counters=list(range(8, 8 + len(events))),
             facts={"states": "D2,S1", **names, **(facts or {})})
    for task, name in (7, "worker"), (8, "helper"):
        c.task(task, name)
    now = MS
    c.switch(0, now, 7)
    for turn in range(150):
        for function in 0, 1, 1, 1:
            length = rng.gauss(1, 0.02) * (1 + slower * function)
            now += int(length * MS)
            chain = [KERNEL + 0x1010 * function, KERNEL + 0x2010]
            c.sample(0, now, 7, chain[0], [int(1000 * length), int(1000 * length * ipc)][:len(events)],
                     chain, 2)
        c.waking(0, now, 7, 8, 0)
        now += int(rng.gauss(1, 0.05) * 0.1 * MS * (1 + late))
        c.switch(0, now, 8, blocked=True, state=1, chain=[KERNEL + 0x2010], kernel=1)
        if turn % 2:
            c.irq(0, now + 1000, now + 1000 + int(rng.gauss(10, 1) * 1000), 40, 8)
        now += int(rng.gauss(0.5, 0.02) * MS)
        c.switch(0, now, 0, blocked=True, state=1, chain=[KERNEL + 0x2010], kernel=1)
        c.halt(0, now, True, 1)
        now += int(rng.gauss(0.2, 0.01) * MS)
        c.halt(0, now, False)
        c.waking(0, now, 0, 7, 0, context=2)
        now += int(rng.gauss(1, 0.05) * 0.1 * MS * (1 + late))
        c.switch(0, now, 7)
    return c.save(path)


def sides(tmp, runs, **of_b):
    """The arguments for `runs` captures a side; those of B are made with `of_b`."""
    a = [make(os.path.join(tmp, f"a{i}.cap"), 2 * i) for i in range(runs)]
    b = [make(os.path.join(tmp, f"b{i}.cap"), 2 * i + 1, **of_b) for i in range(runs)]
    return ["--kallsyms", kallsyms(tmp), *a, "--", *b]


def diff(*args, status=0):
    done = tap.run("diff", *args)
    assert done.returncode == status, done
    return done


def lines_of(*args, status=0):
    return [json.loads(line) for line in diff("-j", *args, status=status).stdout.splitlines()]


def rows_of(*args):
    """{(measure, by, name): row}; chains by their whole text."""
    rows = {}
    for line in lines_of(*args):
        if line["kind"] == "diff_row":
            name = line.get("name", ";".join(line.get("stack", [])))
            rows[line.get("counter", line["measure"]), line["by"], name] = line
    return rows


# ---- what differs

def a_slower_function_is_found_and_measured(tmp):
    rows = rows_of(*sides(tmp, 5, slower=0.05))
    row = rows["cpu", "symbol", "slow"]
    assert row["certain"] and 0.045 < row["change"] < 0.055, row
    assert row["low"] < 0.05 < row["high"] and row["high"] - row["low"] < 0.02, row
    assert row["p"] <= row["q"] < 0.05
    assert not rows["cpu", "symbol", "quick"]["certain"]
    chain = rows["cpu", "chain", "worker;rare;slow"]
    assert chain["certain"] and 0.045 < chain["change"] < 0.055, chain
    assert rows["cpu", "task", "worker"]["certain"] and not rows["cpu", "task", "helper"]["certain"]
    total = rows["cpu", "total", ""]
    assert total["certain"] and 0.02 < total["change"] < 0.05, total


def same(path, what, values, rows):
    """The rows (by name) have these values; what is 0 may have none."""
    values = {name: value for name, value in values.items() if value}
    got = {name: a for name, a in rows.items() if a}
    assert set(values) == set(got), (path, what, set(values) ^ set(got))
    for name, value in values.items():
        assert abs(got[name] - value) <= 1e-5 * value + 1, (path, what, name, got[name], value)


def check_beside_report(path, *options, renamed=False):
    """What diff says of a capture is what the reports say of it. @renamed: tasks change their names."""
    report = [json.loads(line) for line in
              tap.run("report", "-j", "--sort", "image,symbol", *options, path).stdout.splitlines()]
    late = [json.loads(line) for line in tap.run("report", "-j", "--latency", "--irq", path).stdout.splitlines()]
    lines = [line for line in lines_of("--percent-limit", "0", *options, path, path) if line["kind"] == "diff_row"]
    rows = {(line.get("counter", line["measure"]), line["by"], line.get("name", "")): line for line in lines}

    def of(measure, by):
        """Functions of one name may be in several files."""
        found = collections.Counter()
        for line in lines:
            if (line.get("counter", line["measure"]), line["by"]) == (measure, by):
                found[line.get("name", "")] += line["a"]
        return found

    def sums(lines, kind, name, value):
        found = collections.Counter()
        for line in lines:
            if line["kind"] == kind and line.get("tid") != 0:
                found[line[name] or ""] += value(line)
        return found
    # a task that changes its name has its last one in a report, here that of each time
    for measure, value in (("cpu", lambda line: line["run_ns"]),
                           ("wait", lambda line: line["blocked_ns"] + line["preempted_ns"])):
        named = sums(report, "task_time", "task", value)
        if renamed:
            same(path, measure, {"": sum(named.values())}, of(measure, "total"))
        else:
            same(path, measure, named, of(measure, "task"))
    head, = [line for line in report if line["kind"] == "report"]
    assert rows["time", "total", ""]["a"] == head["duration_ns"]
    for i, name in enumerate(head["counters"]):
        if "-clock" not in name:
            same(path, name, sums([line for line in report if not line.get("idle")], "symbol", "symbol",
                                  lambda line, i=i: line["counters"][i]), of(name, "symbol"))
    waits = sum(line["waits"] for line in late if line["kind"] == "latency_sum")
    if waits and "wake" in head.get("sources", "wake") and ("latency", "total", "") in rows:
        total = sum(line["sum_ns"] for line in late if line["kind"] == "latency_sum")
        assert abs(rows["latency", "total", ""]["a"] - total / waits) <= 1e-6 * total / waits, path
    return rows


def values_are_those_of_the_reports(tmp):
    rows = check_beside_report(make(os.path.join(tmp, "a.cap"), 7), "--kallsyms", kallsyms(tmp))
    assert ("latency", "total", "") in rows and ("cycles", "symbol", "slow") in rows
    for path in viewers.real_captures():
        check_beside_report(path, renamed=True)


def waits_before_the_first_wakeup_count(tmp):
    c = Late(cores=1)
    c.task(7, "worker")
    c.task(8, "helper")
    for when, task in (0, 7), (100, 8), (400, 7):
        c.switch(0, MS + 1000 * when, task)
    c.waking(0, MS + 500_000, 7, 9)
    c.switch(0, MS + 600_000, 8)
    assert check_beside_report(c.save(os.path.join(tmp, "a.cap")))["latency", "total", ""]["a"] == 250_000


# ---- what tasks waited for

CALL, NO_CALL, FILE, PIPE, SOCKET, ANON, FUTEX, MUTEX, FAULT = 1, 2, 3, 5, 6, 7, 8, 9, 13
DISK = 8 << 20 | 1
# What the calls of amd64 wait for, and what of it is the same in another run. Behind run @run.
OBJECTS = (
    (lambda run: (74, FILE, 1, DISK, 100 + run), "/srv/log", "fsync /srv/log (disk)"),
    (lambda run: (0, FILE, 0, DISK, 200 + run), "/tmp/{run}.tmp (deleted)", "read a deleted file of /tmp"),
    (lambda run: (17, FILE, 0, DISK, 300 + run), None, "pread64 file"),
    (lambda run: (0, PIPE, 0, 0, 400 + run), "sh 1{run}, a 2{run} -> cat 3{run}", "read pipe sh, a -> cat"),
    (lambda run: (45, SOCKET, 0, 0, 500 + run), "tcp 127.0.0.1:80 -> 127.0.0.1:4000{run}",
     "recvfrom tcp 127.0.0.1:80 -> 127.0.0.1"),
    (lambda run: (47, SOCKET, 0, 0, 600 + run), "tcp [::1]:5000{run} -> [::1]:5432", "recvmsg tcp [::1] -> [::1]:5432"),
    (lambda run: (44, SOCKET, 0, 0, 700 + run), None, "sendto socket"),
    (lambda run: (232, ANON, 0, 5, 800), "eventpoll", "epoll_wait eventpoll"),
    (lambda run: (202, FUTEX, 0, 0, 0x7f0000001000 * run), None, "futex"),
    (lambda run: (1, MUTEX, 0, 0, 0xffff888000000000 + 0x1000 * run), None, "write Linux's mutex"),
    (lambda run: (230, CALL, 0, 0, 0), None, "clock_nanosleep"),
    (lambda run: (0, FAULT, 5, 0, 0x1000 * run), None, "[in no call] page fault (disk)"),
    (lambda run: (0, NO_CALL, 4, 0, 0), None, "[in no call]"),
    (lambda run: (9999, CALL, 0, 0, 0), None, "[another call]"),
)


def waits_for_objects(path, run, longer=0.0, facts=None):
    """Task 7 waits for each of OBJECTS, longer for the first one; a task of the kernel waits for none."""
    rng = random.Random(run)
    names = {}
    for make_object, name, _ in OBJECTS:
        _, kind, _, number, value = make_object(run)
        if name:
            names[f"object.{kind}.{value}.{number if kind in (FILE, ANON) else 0}.{7 if kind == ANON else 0}"] = \
                name.format(run=run)
    c = Late(cores=1, facts={"machine": "x86_64", "objects": "1", "host": "here", **names, **(facts or {})})
    c.task(7, "worker")
    c.task(8, "kworker")
    now = MS
    c.switch(0, now, 7)
    for _ in range(20):
        for number, (make_object, _, _) in enumerate(OBJECTS):
            c.switch(0, now + 10_000, 8, blocked=True, state=1, waits_for=make_object(run))
            c.switch(0, now + 20_000, 0, blocked=True, state=1)
            now += int(rng.gauss(1, 0.02) * MS * (1 if number else 1 + longer))
            c.switch(0, now, 7)
    return c.save(path)


def what_tasks_waited_for_is_compared_by_what_stays(tmp):
    paths = [waits_for_objects(os.path.join(tmp, f"{run}.cap"), run, longer=run > 3) for run in range(1, 7)]
    rows = rows_of("--percent-limit", "0", *paths[:3], "--", *paths[3:])
    objects = {name: row for (_, by, name), row in rows.items() if by == "object"}
    assert set(objects) == {f"worker: {text}" for _, _, text in OBJECTS}, set(objects)
    assert all(row["measure"] == "wait" for row in objects.values())
    assert [name for name, row in objects.items() if row["certain"]] == ["worker: fsync /srv/log (disk)"], objects
    change = objects["worker: fsync /srv/log (disk)"]["change"]
    assert 0.95 < change < 1.08, change
    # all of the task's waits are for something
    assert abs(sum(row["a"] for row in objects.values()) - rows["wait", "task", "worker"]["a"]) < 10
    text = diff(*paths[:3], "--", *paths[3:]).stdout
    assert "\n# Time off the CPU by what tasks waited for\n" in text, text
    assert re.search(r"^\* .* worker: fsync /srv/log \(disk\)$", text, re.M), text
    diff("--fail-if", "wait/worker: fsync /srv/log (disk):+50%", *paths[:3], "--", *paths[3:], status=3)
    diff("--fail-if", "wait/worker: futex:+50%", *paths[:3], "--", *paths[3:])


def a_side_that_does_not_say_what_tasks_waited_for_is_told(tmp):
    said = [waits_for_objects(os.path.join(tmp, f"a{run}.cap"), run) for run in (1, 2)]
    without = make(os.path.join(tmp, "b.cap"), 1, events=(), facts={"machine": "x86_64", "host": "here"})
    for paths in (said[0], without), (without, said[0]), (without, without):
        head, *_ = lines_of("--force", *paths)
        assert head["objects"] is False, head
        assert not any(by == "object" for _, by, _ in rows_of("--force", *paths)), paths
        text = diff("--force", "--all", *paths).stdout
        assert "not each capture says what tasks waited for" in text and "by what tasks" not in text, text
    head, *_ = lines_of(*said)
    text = diff("--all", *said).stdout
    assert head["objects"] and "not each capture" not in text and "by what tasks waited for" in text, (head, text)


def names_of_what_tasks_wait_for_do_not_steer_the_terminal(tmp):
    hostile = {f"object.{FILE}.10{run}.{DISK}.0": "/\033[31m\n\u202e" for run in (1, 2)}
    paths = [waits_for_objects(os.path.join(tmp, f"{run}.cap"), run, facts=hostile) for run in (1, 2)]
    text = diff("--all", *paths).stdout
    assert "worker: fsync /?[31m??" in text and "\033" not in text, text


# ---- a part of the captures

def amounts(path, *options):
    """{(measure, by, name): value} of what adds up. Functions of one name may be in several files."""
    found = collections.Counter()
    for line in lines_of("--percent-limit", "0", *options, path, path):
        if line["kind"] == "diff_row" and line["by"] != "chain" and \
                line["measure"] not in ("latency", "latency-p99", "ipc"):
            found[line.get("counter", line["measure"]), line["by"], line.get("name", "")] += line["a"]
    return found


def check_sum(path, whole, *parts):
    """What parts of a capture have, together, is what all of it has."""
    got = collections.Counter()
    for part in parts:
        got.update(amounts(path, *part))
    for key, value in whole.items():
        if key[0] != "time":
            assert abs(got[key] - value) <= 1e-6 * value + 2, (path, key, got[key], value)
    assert set(got) <= set(whole), set(got) - set(whole)


def two_cpus(path, seed):
    """Two CPUs, with a task each that runs and sleeps, and interrupts."""
    rng, c = random.Random(seed), Late(cores=2, counters=[8], facts={"counter.0.0": "cycles", "counter.1.0": "cycles"})
    events = []
    for core, task in (0, 7), (1, 8):
        c.task(task, f"on{core}")
        now = MS + core
        for _ in range(50):
            run, nap = (int(rng.uniform(1, 2) * MS) for _ in range(2))
            events += [(now, c.switch, (core, now, task)),
                       (now + run // 2, c.sample, (core, now + run // 2, task, KERNEL, [run])),
                       (now + run, c.switch, (core, now + run, 0, True))]
            now += run + nap
    for _, put, args in sorted(events, key=lambda event: event[0]):
        put(*args)
    return c.save(path)


def parts_of_a_capture_add_up_to_all_of_it(tmp):
    """Times that something began in are cut at the middle of the run of a task."""
    path, cut = make(os.path.join(tmp, "a.cap"), 3), 0.2005
    whole = amounts(path, "--kallsyms", kallsyms(tmp))
    assert whole["cpu", "task", "worker"] and whole["idle", "total", ""] and whole["irq", "total", ""]
    check_sum(path, whole, *(["--kallsyms", kallsyms(tmp), *part] for part in
                             (["--time", f",{cut}"], ["--time", f"{cut + 1e-9:.9f},"])))
    check_sum(path, collections.Counter({key: value for key, value in whole.items() if key[0] != "idle"}),
              *(["--kallsyms", kallsyms(tmp), *part] for part in
                (["--task", "worker"], ["--tid", "8"])))
    path = two_cpus(os.path.join(tmp, "two.cap"), 5)
    check_sum(path, amounts(path), ["--cpu", "0"], ["--cpu", "1"])
    for path in viewers.real_captures():
        records = map(json.loads, tap.run("script", "--json", path).stdout.splitlines())
        cpus = sorted({record["cpu"] for record in records if "cpu" in record})
        check_sum(path, amounts(path), *(["--cpu", str(cpu)] for cpu in cpus))


def a_part_is_as_long_as_it_is_and_is_what_the_report_has_of_it(tmp):
    path, of = make(os.path.join(tmp, "a.cap"), 3), ["--kallsyms", kallsyms(tmp)]
    part = ["--time", "0.1,0.3", "--task", "worker"]
    rows = rows_of(*of, "--percent-limit", "0", *part, path, path)
    assert abs(rows["time", "total", ""]["a"] - 0.2e9) < 1, rows["time", "total", ""]
    assert not [key for key in rows if "helper" in key[2] or key[0] == "idle"], rows.keys()
    done = tap.run("report", "-j", "--sort", "symbol", *of, *part, path)
    for line in map(json.loads, done.stdout.splitlines()):
        if line["kind"] == "symbol":
            assert rows["cycles", "symbol", line["symbol"]]["a"] == line["counters"][0], line
    late = [line for line in map(json.loads, tap.run("report", "-j", "--latency", *part, path).stdout.splitlines())
            if line["kind"] == "latency_sum"]
    mean = sum(line["sum_ns"] for line in late) / sum(line["waits"] for line in late)
    assert abs(rows["latency", "total", ""]["a"] - mean) < 1, (rows["latency", "total", ""], mean)
    head, = [line for line in lines_of(*of, *part, path, path) if line["kind"] == "diff"]
    assert head["only"] == "time 0.1,0.3, task worker", head
    assert "# only     : time 0.1,0.3, task worker" in diff(*of, *part, path, path).stdout


def what_is_slower_in_one_part_is_found_there_alone(tmp):
    """B is slow in all of its time, but only CPU 0 has it."""
    args = sides(tmp, 4, slower=0.05)
    assert rows_of("--task", "worker", *args)["cpu", "symbol", "slow"]["certain"]
    assert not any(row["certain"] for row in rows_of("--task", "helper", *args).values() if row["by"] == "symbol")
    assert "no records of the CPUs" in diff("--cpu", "1", *args, status=2).stderr
    done = diff("--time", "x", *args, status=2)
    assert "give FROM,TO, in seconds" in done.stderr


# ---- nothing

def the_same_runs_do_not_differ(tmp):
    args = sides(tmp, 4)
    assert not any(row["certain"] for row in rows_of(*args).values())
    a = args[2]
    assert all(abs(row["change"] or 0) < 1e-9 for row in rows_of(a, a).values())
    text = diff(a, a).stdout
    assert "differs  : 0 of" in text and "one run each" not in text


def one_capture_a_side_tells_what_is_large(tmp):
    args = sides(tmp, 1, slower=0.2)
    row = rows_of(*args)["cpu", "symbol", "slow"]
    assert row["certain"] and 0.18 < row["change"] < 0.22 and row["low"] < 0.2 < row["high"], row
    assert "give several captures" in diff(*args).stdout


def one_capture_is_compared_with_several(tmp):
    args = sides(tmp, 5, slower=0.05)
    row = rows_of(*args[:args.index("--") + 2])["cpu", "symbol", "slow"]
    assert row["certain"] and 0.03 < row["change"] < 0.07, row
    row = rows_of(*args[:2], args[2], *args[args.index("--"):])["cpu", "symbol", "slow"]
    assert row["certain"] and 0.03 < row["change"] < 0.07, row


def delays_instructions_and_interrupts_are_compared(tmp):
    rows = rows_of(*sides(tmp, 5, ipc=1.8, late=0.3))
    row = rows["latency", "total", ""]
    assert row["certain"] and 0.27 < row["change"] < 0.33, row
    assert abs(row["a"] - 0.1 * MS) < 0.005 * MS, row
    assert rows["latency", "task", "helper"]["certain"] and rows["latency-p99", "total", ""]["certain"]
    row = rows["ipc", "total", ""]
    assert row["certain"] and abs(row["a"] - 2) < 0.01 and abs(row["b"] - 1.8) < 0.01, row
    assert rows["ipc", "symbol", "slow"]["certain"]
    assert not rows["cycles", "total", ""]["certain"] and rows["instructions", "total", ""]["certain"]
    idle = rows["idle", "total", ""]
    assert not idle["certain"] and abs(idle["a"] - 150 * 0.2 * MS) < MS, idle
    assert rows["idle", "state", "state 1"]["a"] == idle["a"]
    irq = rows["irq", "total", ""]
    assert not irq["certain"] and abs(irq["a"] - 75 * 10_000) < 20_000, irq
    wait = rows["wait", "task", "worker"]
    assert wait["compared"] and 0.02 < wait["change"] < 0.2, wait


def what_happens_in_a_second_can_be_compared(tmp):
    a = make(os.path.join(tmp, "a.cap"), 1)
    whole, second = rows_of(a, a), rows_of("--per-second", a, a)
    seconds = whole["time", "total", ""]["a"] / 1e9
    for key in ("cpu", "total", ""), ("cpu", "symbol", "slow"), ("wait", "task", "worker"):
        if key in whole:
            assert abs(whole[key]["a"] / seconds / second[key]["a"] - 1) < 1e-6, key
    assert whole["latency", "total", ""]["a"] == second["latency", "total", ""]["a"]


def rows_that_are_new_or_gone_are_told(tmp):
    a = [make(os.path.join(tmp, f"a{i}.cap"), i) for i in range(3)]
    b = []
    for i in range(3):
        c = Late(cores=1, counters=[8, 9], facts={"states": "D2,S1", "counter.0.0": "cycles",
                                                  "counter.0.1": "instructions"})
        c.task(9, "other")
        c.switch(0, MS, 9)
        for j in range(1, 600):
            c.sample(0, MS + j * MS, 9, KERNEL + 0x10, [1000, 2000 + i])
        c.switch(0, 600 * MS, 0, blocked=True, state=1)
        b.append(c.save(os.path.join(tmp, f"b{i}.cap")))
    rows = rows_of("--kallsyms", kallsyms(tmp), *a, "--", *b)
    new, gone = rows["cpu", "task", "other"], rows["cpu", "symbol", "slow"]
    assert new["certain"] and new["a"] == 0 and new["change"] is None, new
    assert gone["certain"] and gone["b"] == 0 and gone["change"] == -1, gone
    assert " new " in diff("--kallsyms", kallsyms(tmp), *a, "--", *b).stdout


def small_rows_are_not_compared(tmp):
    args = sides(tmp, 2)
    everything = rows_of("--percent-limit", "0", *args)
    some = rows_of("--percent-limit", "30", *args)
    assert sum(row["compared"] for row in everything.values()) > \
        sum(row["compared"] for row in some.values()) > 0
    assert not some["cpu", "task", "helper"]["compared"] and some["cpu", "task", "worker"]["compared"]


# ---- conditions

def conditions_give_an_exit_status(tmp):
    args = sides(tmp, 5, slower=0.05)
    for condition, status in (
            ("cpu/slow:+4%@95", 3), ("cpu/slow:+6%@95", 0), ("cpu/slow:+0%", 3), ("cpu/quick:+2%", 0),
            ("cpu:+1%", 3), ("cpu:-1%", 0), ("time:+1%@99", 3), ("cycles:+2.5%", 3), ("ipc:-1%", 0),
            ("latency:+5%", 0), ("wait/worker:+20%", 0), ("nothing:+1%", 2), ("cpu/nobody:+1%", 2),
            ("cpu", 2), ("cpu:2%", 2), ("cpu:+2", 2), ("cpu:+2%@", 2), ("cpu:+2%@200", 2), (":+2%", 2)):
        done = diff("--fail-if", condition, *args, status=status)
        assert (condition in done.stderr) == (status != 0), (condition, done)
    odd = [make(os.path.join(tmp, f"odd{i}.cap"), i, events=("cpu_core/cycles/u", "instructions:u"))
           for i in range(4)]
    for condition in "cpu_core/cycles/u:+5%", "cpu_core/cycles/u/worker:+5%", "instructions:u:-3%", "ipc/slow:+5%":
        done = tap.run("diff", "--kallsyms", args[1], "--fail-if", condition, *odd[:2], "--", *odd[2:])
        assert done.returncode == (2 if condition.startswith("ipc") else 0), (condition, done)
    diff("--fail-if", "cpu/quick:+2%", "--fail-if", "cpu:+1%", *args, status=3)
    said = [line for line in lines_of("--fail-if", "cpu:+1%", *args, status=3)
            if line["kind"] == "diff_condition"]
    assert len(said) == 1 and said[0]["holds"] and said[0]["condition"] == "cpu:+1%", said
    one = sides(tmp, 1)
    assert "one capture a side" in diff("--one-run", "--fail-if", "time:+1%", *one, status=2).stderr


def one_run_a_side_fails_no_condition_unless_asked_for(tmp):
    """Unchanged work, whose runs differ by some percent: no pair of single captures says more than that."""
    names = kallsyms(tmp)
    noise = random.Random(7)
    paths = [make(os.path.join(tmp, f"{i}.cap"), i, slower=noise.uniform(0, 0.2)) for i in range(6)]
    for a in paths:
        for b in paths:
            done = diff("--kallsyms", names, "--fail-if", "cpu:+2%", a, b, status=2)
            assert "several captures" in done.stderr and "--one-run" in done.stderr, done
    slower = make(os.path.join(tmp, "slower.cap"), 8, slower=0.5)
    diff("--kallsyms", names, "--one-run", "--fail-if", "cpu:+2%", paths[0], slower, status=3)
    said = diff("--kallsyms", names, paths[0], slower).stdout
    assert "# differs  : " in said and "certain" not in said, said


# ---- what can't be compared

def captures_that_mean_different_things_are_refused(tmp):
    base = {"machine": "x86_64"}
    a = make(os.path.join(tmp, "a.cap"), 1, facts=base)
    for what, kwargs in (("events", {"facts": base, "events": ("cycles", "misses")}),
                         ("machines", {"facts": {"machine": "aarch64"}}),
                         ("CPUs", {"facts": base, "cores": 2}),
                         ("what was recorded", {"facts": {"filter": "command", **base}})):
        b = make(os.path.join(tmp, "b.cap"), 2, **kwargs)
        done = diff(a, b, status=2)
        assert what in done.stderr and "can't be compared" in done.stderr and not done.stdout, done
        done = diff("--force", a, b)
        assert "can't be compared" in done.stdout and what in done.stdout, done
    for path, processes in (a, "pid:7"), (b, "pid:8,9"):
        make(path, 1, facts={"filter": processes, **base})
    diff(a, b)
    for path, rate, period in (a, 0, 1000), (b, 0, 2000):
        c = Late(cores=1, counters=[8], facts={"counter.0.0": "cycles"})
        c.switch(0, MS, 7)
        for i in range(1, 50):
            c.sample(0, MS + i * MS, 7, KERNEL, [period])
        c.save(path)
        with open(path, "r+b") as file:
            file.seek(32)       # timer_sample_rate
            file.write(rate.to_bytes(4, "little"))
    assert "different periods: 1000 and 2000" in diff(a, b, status=2).stderr


def what_asks_for_care_is_told(tmp):
    a = make(os.path.join(tmp, "a.cap"), 1, facts={"release": "6.1", "host": "one"})
    b = make(os.path.join(tmp, "b.cap"), 2, facts={"release": "6.12", "host": "two", "lost.0.full": "7",
                                                   "written.0": "100"})
    text = diff(a, b).stdout
    for words in "kernels: '6.1' and '6.12'", "hosts: 'one' and 'two'", "lost: 0 of A, 7 of B":
        assert words in text, text
    doubts = [line for line in lines_of(a, b) if line["kind"] == "diff_doubt"]
    assert doubts and not any(doubt["grave"] for doubt in doubts), doubts
    short = Late(cores=1, counters=[8, 9], facts={"counter.0.0": "cycles", "counter.0.1": "instructions"})
    short.switch(0, MS, 7)
    short.switch(0, 90 * MS, 0)
    short = short.save(os.path.join(tmp, "short.cap"))
    assert "lasted" in diff(a, short).stdout and "lasted" not in diff("--per-second", a, short).stdout


def a_damaged_capture_is_compared_up_to_there(tmp):
    a = make(os.path.join(tmp, "a.cap"), 1)
    b = make(os.path.join(tmp, "b.cap"), 2)
    with open(b, "r+b") as file:
        file.truncate(os.path.getsize(b) - 100)
    done = diff(a, b, status=1)
    assert "b.cap" in done.stderr and "1 of them are damaged" in done.stdout, done
    with open(b, "wb") as file:
        file.write(b"no capture")
    assert "b.cap" in diff(a, b, status=2).stderr


def the_sides_are_told_apart(tmp):
    a, b = make(os.path.join(tmp, "a.cap"), 1), make(os.path.join(tmp, "b.cap"), 2)

    def captures(*args):
        return [line["captures"] for line in lines_of(*args) if line["kind"] == "diff_side"]
    assert captures(a, b) == [1, 1] == captures("--", a, b) == captures(a, "--", b)
    assert captures(a, b, "--", a) == [2, 1] and captures(a, "--", a, b) == [1, 2]
    c, copy = make(os.path.join(tmp, "c.cap"), 3), os.path.join(tmp, "copy.cap")
    assert captures(a, "--all", "--", b, c) == [1, 2] and captures(a, a) == [1, 1]
    shutil.copy(b, copy)
    for args in (a, "--", b, b), (a, "--", b, copy), (b, copy, "--", a):
        assert "the same capture" in diff(*args, status=2).stderr
    for args in (a,), (a, b, a), (a, b, "--"), (), ("--", a), (a, b, "--to", "folded"), (a, b, "-o", "x"), \
            (a, b, "--to", "nothing", "-o", "x"), (a, b, "--confidence", "101"), (a, b, "--rows", "0"):
        diff(*args, status=2)


# ---- text and files

def the_text_lists_what_is_certain(tmp):
    args = sides(tmp, 5, slower=0.05)
    text = diff(*args).stdout
    assert "# Totals" in text and "# CPU time by function" in text and "slow [k]" in text, text
    assert "quick [k]" not in text and "no certain difference" in text, text
    assert "quick [k]" in diff("--all", *args).stdout
    marked = [line for line in text.splitlines() if line.startswith("*")]
    assert marked and all("%" in line for line in marked), text
    assert "\033[31m" in diff("--color=always", *args).stdout and "\033" not in text


def names_do_not_steer_the_terminal(tmp):
    paths = []
    for i in range(2):
        c = Late(cores=1, counters=[8])
        c.task(7, "\033[31mred\nline")
        c.switch(0, MS, 7)
        for j in range(1, 100):
            c.sample(0, MS + j * MS, 7, KERNEL, [1])
        c.switch(0, 100 * MS, 0)
        paths.append(c.save(os.path.join(tmp, f"{i}.cap")))
    out = os.path.join(tmp, "out")
    assert "\033" not in diff("--all", *paths).stdout
    for form in "html", "flamegraph", "folded", "speedscope":
        diff("--to", form, "-o", out, *paths)
        with open(out, encoding="utf-8") as file:
            assert "\033" not in file.read(), form


def written(tmp, form, args, *more):
    out = os.path.join(tmp, f"out.{form}")
    diff("--to", form, "-o", out, *more, *args)
    return out


def folded_stacks_have_both_sides(tmp):
    args = sides(tmp, 3, slower=0.05)
    rows = rows_of(*args)
    with open(written(tmp, "folded", args), encoding="utf-8") as file:
        found = {stack.replace("_[k]", ""): (int(a), int(b)) for stack, a, b in
                 (line.rsplit(" ", 2) for line in file)}
    chains = {key[2]: row for key, row in rows.items() if key[:2] == ("cpu", "chain")}
    assert set(found) == set(chains)
    for stack, (a, b) in found.items():
        assert abs(a - chains[stack]["a"]) < 1 and abs(b - chains[stack]["b"]) < 1, stack
    with open(written(tmp, "folded", args, "--waits"), encoding="utf-8") as file:
        assert "worker;rare_[k] " in file.read()


def the_flame_graph_is_a_picture(tmp):
    root = xml.etree.ElementTree.parse(written(tmp, "flamegraph", sides(tmp, 3, slower=0.05))).getroot()
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    slow, = [title for title in titles if title.startswith("slow\n")]
    assert "certain" in slow and "+5" in slow.replace("+4.9", "+5"), slow
    assert any(title.startswith("worker\n") for title in titles)
    fills = {rect.get("fill") for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("fill")}
    assert any(fill.startswith("hsl(4,") for fill in fills), fills


def the_page_has_tables_and_pictures(tmp):
    args = sides(tmp, 3, slower=0.05)
    path = written(tmp, "html", args)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    assert '<span class="sure">*' in page and "CPU time by function" in page and "slow [k]" in page
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(pictures) == 3, len(pictures)
    for picture in pictures:
        root = xml.etree.ElementTree.fromstring(base64.b64decode(picture))
        assert any(title.text.startswith("slow\n") for title in root.iter("{http://www.w3.org/2000/svg}title"))
    shot = browser.screenshot(path, os.path.join(tmp, "shot.png"))
    assert os.path.getsize(shot) > 10_000


PROFILE = {
    1: ("types", [{1: ("type", "uint"), 2: ("unit", "uint")}]),
    2: ("samples", [{1: ("locations", ["uint"]), 2: ("values", ["uint"]),
                     3: ("labels", [{1: ("key", "uint"), 2: ("str", "uint")}])}]),
    4: ("locations", [{1: ("id", "uint"), 4: ("lines", [{1: ("function", "uint")}])}]),
    5: ("functions", [{1: ("id", "uint"), 2: ("name", "uint"), 3: ("system", "uint"), 4: ("file", "uint")}]),
    6: ("strings", ["text"]),
    11: ("period_type", {1: ("type", "uint"), 2: ("unit", "uint")}),
}


def the_profile_has_a_as_its_base(tmp):
    args = sides(tmp, 3, slower=0.05)
    rows = rows_of(*args)
    with gzip.open(written(tmp, "pprof", args)) as file:
        profile = protobuf.read(file.read(), PROFILE)
    strings = profile["strings"]
    assert [(strings[t["type"]], strings[t["unit"]]) for t in profile["types"]] == [("cpu", "nanoseconds")]
    names = {f["id"]: strings[f["name"]] for f in profile["functions"]}
    leaf = {}
    for sample in profile["samples"]:
        labels = {strings[label["key"]]: strings[label["str"]] for label in sample["labels"]}
        value, = sample["values"]
        value -= (value >> 63) << 64
        assert (value < 0) == (labels.get("pprof::base") == "true"), sample
        key = names[sample["locations"][0]] if sample.get("locations") else "", value < 0
        leaf[key] = leaf.get(key, 0) + value
    row = rows["cpu", "symbol", "slow"]
    assert abs(leaf["slow", True] + row["a"]) < 4 and abs(leaf["slow", False] - row["b"]) < 4, (leaf, row)


def go_reads_the_profiles(tmp):
    go = shutil.which("go")
    if not go:
        raise tap.Skip("go is not installed")
    env = {**os.environ, "HOME": tmp, "PPROF_TMPDIR": tmp}

    def top(*args):
        done = subprocess.run([go, "tool", "pprof", "-top", *args], capture_output=True, text=True,
                              env=env, timeout=300, check=False)
        assert done.returncode == 0, done
        return done.stdout
    args = sides(tmp, 3, slower=0.05)
    assert "slow" in top(written(tmp, "pprof", args))
    profiles = []
    for path in args[2], args[-1]:
        assert tap.run("convert", path, "--to", "pprof", "-o", path + ".pb.gz", *args[:2]).returncode == 0
        profiles.append(path + ".pb.gz")
    assert "slow" in top("-sample_index=cpu", f"-diff_base={profiles[0]}", profiles[1])


def speedscope_has_four_profiles(tmp):
    args = sides(tmp, 3, slower=0.05)
    rows = rows_of(*args)
    with open(written(tmp, "speedscope", args), encoding="utf-8") as file:
        doc = json.load(file)
    assert doc["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert [profile["name"] for profile in doc["profiles"]] == ["A", "B", "more in B", "less in B"]
    for profile in doc["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(frame < len(doc["shared"]["frames"]) for stack in profile["samples"] for frame in stack)
    sums = [sum(profile["weights"]) for profile in doc["profiles"]]
    chains = [row for key, row in rows.items() if key[:2] == ("cpu", "chain")]
    assert abs(sums[0] - sum(row["a"] for row in chains)) < 10, sums
    assert abs(sums[1] - sums[0] - sums[2] + sums[3]) < 10, sums


def opened_in_speedscope(tmp, path, page):
    """What Speedscope's page is with the file loaded, as its command `speedscope FILE` does it."""
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    script = os.path.join(tmp, "load.js")
    with open(script, "w", encoding="ascii") as file:
        file.write(f'speedscope.loadFileFromBase64("it.json", "{content}")')
    start = os.path.join(tmp, "start.html")
    with open(start, "w", encoding="ascii") as file:
        file.write(f'<script>window.location="file://{page}#localProfilePath={script}"</script>')
    result, said = browser.run(start, "--dump-dom", "--virtual-time-budget=8000", "--use-gl=angle",
                               "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
    browser.need(result, "<html" in result.stdout)
    return result.stdout, said


def speedscope_opens_what_is_written(tmp):
    """Of npm, in the folder $SPEEDSCOPE: `npm install speedscope` makes node_modules/speedscope."""
    page = os.path.join(os.environ.get("SPEEDSCOPE", "/nowhere"), "dist/release/index.html")
    if not os.path.exists(page):
        raise tap.Skip("SPEEDSCOPE does not name the folder of the package speedscope of npm")
    args = sides(tmp, 3, slower=0.05)
    one = os.path.join(tmp, "one.json")
    assert tap.run("convert", args[2], "--to", "speedscope", "-o", one, *args[:2]).returncode == 0
    for path, words in (written(tmp, "speedscope", args), "more in B"), (one, "worker"):
        shown, said = opened_in_speedscope(tmp, path, os.path.abspath(page))
        assert words in shown and "Something went wrong" not in shown, (path, said, shown[-2000:])


if __name__ == "__main__":
    tap.main(globals())
