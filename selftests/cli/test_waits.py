#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where tasks waited, in captures whose switches have call chains."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import IRQ, Late, SOFTIRQ, TASK
from make_capture import Maker
from test_viewers_pprof import Profile

KALLSYMS = ("ffffffff81000000 T _stext\nffffffff81000000 T schedule\n"
            "ffffffff81001000 T do_wait\nffffffff81002000 T do_poll\nffffffff81003000 T _etext\n")
K = 0xffffffff81000000
WAIT, POLL, PREEMPTED = [K + 0x10, K + 0x1020], [K + 0x10, K + 0x2020], [K + 0x10]


def make(directory, chains=True, repeat=1):
    """Task 7 waits 1000 ns in do_wait and 400 in do_poll; 8 is preempted for 5000."""
    path = os.path.join(directory, "kbarman.cap")
    capture = Maker(cores=2, counters=[17, 8], facts={
        "host": "elsewhere", "counter.0.0": "cycles", "counter.0.1": "instructions",
        "counter.1.0": "cycles", "counter.1.1": "instructions"})
    capture.task(0, "swapper")
    capture.task(7, "waiter")
    capture.task(8, "burner")
    capture.map(0, K, 0x3000, 0, "[kernel.kallsyms]")

    def go(when, task, blocked, chain):
        capture.switch(0, when, task, blocked=blocked, state=1 if blocked else 0,
                       chain=chain if chains else None, kernel=len(chain))

    now = 1000
    capture.switch(0, now, 7)
    for _ in range(repeat):
        capture.sample(0, now + 100, 7, K + 0x10, [300, 150])
        go(now + 1000, 8, True, WAIT)
        capture.sample(0, now + 1100, 8, K + 0x1010, [500, 1000])
        go(now + 2000, 7, False, PREEMPTED)
        go(now + 6600, 0, True, POLL)
        go(now + 7000, 8, False, [])
        go(now + 7100, 7, False, PREEMPTED)
        now += 10000
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(KALLSYMS)
    return path


def rows(tmp, *args):
    result = tap.run("report", "--json", *args, cwd=tmp)
    assert result.returncode == 0 and not result.stderr, result
    return [json.loads(line) for line in result.stdout.splitlines()]


def of_kind(table, kind):
    return [row for row in table if row["kind"] == kind]


def longest_waits_have_their_stacks(tmp):
    make(tmp)
    waits = of_kind(rows(tmp), "wait")
    assert [(w["tid"], w["duration_ns"], w["blocked"], w["at_ns"], w["stack"]) for w in waits] == [
        (8, 5000, False, 3000, ["schedule"]),
        (7, 1000, True, 2000, ["schedule", "do_wait"]),
        (7, 500, True, 7600, ["schedule", "do_poll"])], waits
    assert waits[0]["task"] == "burner"


def waits_without_chains_say_why(tmp):
    make(tmp, chains=False)
    table = rows(tmp, "--call-graph")
    assert [(w["duration_ns"], w["stack"]) for w in of_kind(table, "wait")] == [
        (5000, []), (1000, []), (500, [])]
    assert not of_kind(table, "wait_call")
    text = tap.run("report", cwd=tmp).stdout
    assert re.search(r"^ +0\.005 +0\.002 +preempted +8 +8 +burner$", text, re.M), text


def only_the_longest_are_kept(tmp):
    make(tmp, repeat=200)
    both = of_kind(rows(tmp), "wait")
    waits, sleeps = [w for w in both if not w["asleep"]], [w for w in both if w["asleep"]]
    assert len(waits) == 32 and {w["duration_ns"] for w in waits} == {5000}, waits
    assert len(sleeps) == 32 and {w["duration_ns"] for w in sleeps} == {1000}, sleeps
    assert [w["at_ns"] for w in waits] == [3000 + 10000 * i for i in range(32)], waits


def waiting_is_a_tree_of_callers(tmp):
    make(tmp)
    flat = [(c["depth"], c.get("task", c.get("symbol")), c["total"], c["self"])
            for c in of_kind(rows(tmp, "--call-graph"), "wait_call")]
    assert flat == [(1, "burner", 5000, 0), (2, "schedule", 5000, 5000),
                    (1, "waiter", 1500, 0), (2, "do_poll", 500, 0), (3, "schedule", 500, 500),
                    (2, "do_wait", 1000, 0), (3, "schedule", 1000, 1000)], flat
    text = tap.run("report", "-g", cwd=tmp).stdout
    assert re.search(r"^ +15\.38% +0\.00% +0\.001 +do_wait \[k\]$", text, re.M), text


def text_shows_waits_with_their_stacks(tmp):
    make(tmp)
    text = tap.run("report", cwd=tmp).stdout
    assert re.search(r"^ +0\.001 +0\.001 +asleep +7 +7 +waiter\n +schedule \[k\]\n"
                     r" +do_wait \[k\]$", text, re.M), text


def waits_at_one_place_are_one_row(tmp):
    """With their number; without call chains nobody knows the place."""
    def listed(**kwargs):
        make(tmp, repeat=40, **kwargs)
        text = tap.run("report", cwd=tmp).stdout
        return text[text.index("# Longest waits"):text.index("# CPUs")]

    text = listed()
    assert len(re.findall(r"burner$", text, re.M)) == 1 == len(re.findall(r"waiter$", text, re.M)), text
    assert text.count("32 of the longest 32 were here:\n                schedule [k]\n") == 2, text
    text = listed(chains=False)
    assert len(re.findall(r"burner$", text, re.M)) == 10 and "were here" not in text, text


def who_ended_a_wait_is_said(tmp):
    """The task or what interrupted, by the name that it had then."""
    capture = Late(cores=2, facts={"irq.40": "eth0"})
    for task, name in (7, "server"), (8, "client"):
        capture.task(task, name)
    capture.task(8, "renamed", 90_000)
    capture.switch(0, 1000, 7)
    capture.switch(1, 1000, 8)
    capture.switch(0, 2000, 0, blocked=True, state=1)
    capture.waking(1, 50_000, waker=8, woken=7)
    capture.waking(1, 51_000, waker=8, woken=7, context=IRQ)     # it is woken already
    capture.switch(0, 60_000, 7)
    capture.switch(0, 70_000, 0, blocked=True, state=2)
    capture.irq_entry(1, 100_000, 40, task=8)
    capture.waking(1, 100_100, waker=8, woken=7, context=IRQ)
    capture.irq_exit(1, 100_200, 40, task=8)
    capture.switch(0, 110_000, 7)
    capture.switch(0, 120_000, 0)
    capture.switch(0, 130_000, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    waits = {w["at_ns"]: w for w in of_kind(rows(tmp), "wait")}
    assert [waits[2000].get(key) for key in ("by", "by_id", "by_name")] == ["task", 8, "client"], waits
    assert [waits[70_000].get(key) for key in ("by", "by_id")] == ["irq", 40], waits
    assert "by" not in waits[120_000] and len(waits) == 3, waits
    text = tap.run("report", cwd=tmp).stdout
    assert re.search(r"asleep +7 +7 +server\n +woken by client \(8\)\n", text), text
    assert re.search(r"blocked +7 +7 +server\n +woken by .*\(interrupt\)\n", text), text


def sleeping_daemons_are_told_from_those_who_wait(tmp):
    path = os.path.join(tmp, "kbarman.cap")
    capture = Maker()
    for task, name in (0, "swapper"), (7, "daemon"), (8, "reader"), (9, "worker"):
        capture.task(task, name)
    now = 1000
    # a daemon sleeps for a second, a reader waits for its disk, a worker for its CPU
    for when, task, blocked, state in ((0, 7, False, 0), (1000, 8, True, 1), (2000, 9, True, 2),
                                       (3000, 8, False, 0), (9000, 9, True, 16),
                                       (1000000000, 7, True, 2), (1000001000, 0, True, 1)):
        capture.switch(0, now + when, task, blocked=blocked, state=state)
    capture.save(path)
    text = tap.run("report", cwd=tmp).stdout
    waits = text[text.index("# Longest waits"):text.index("# Longest sleeps")]
    assert [line.split()[2:] for line in waits.splitlines() if line[0] == " "] == [
        ["preempted", "9", "9", "worker"], ["blocked", "8", "8", "reader"]], waits
    sleeps = text[text.index("# Longest sleeps"):text.index("# CPUs")]
    assert [line.split()[2:] for line in sleeps.splitlines() if line[0] == " "] == [
        ["asleep", "7", "7", "daemon"]], sleeps


def filters_choose_waits(tmp):
    make(tmp)
    assert {w["tid"] for w in of_kind(rows(tmp, "--task", "waiter"), "wait")} == {7}
    assert {w["tid"] for w in of_kind(rows(tmp, "--tid", 8), "wait")} == {8}
    assert [w["duration_ns"] for w in of_kind(rows(tmp, "--time", "0.000005,"), "wait")] == [500]


def convert(tmp, *args):
    result = tap.run("convert", "kbarman.cap", *args, "-o", "-", cwd=tmp)
    assert result.returncode == 0, result
    return result


def folded_off_cpu_is_in_nanoseconds(tmp):
    make(tmp)
    result = convert(tmp, "--to", "folded", "--format", "offcpu")
    assert result.stdout.splitlines() == [
        "burner;schedule_[k] 5000", "waiter;do_poll_[k];schedule_[k] 500",
        "waiter;do_wait_[k];schedule_[k] 1000"] and not result.stderr, result


def folded_off_cpu_without_chains_says_why(tmp):
    make(tmp, chains=False)
    result = convert(tmp, "--to", "folded", "--format", "offcpu")
    assert result.stdout.splitlines() == ["burner;[preempted] 5000", "waiter;[blocked] 1500"]
    assert "no call chains" in result.stderr, result


def speedscope_off_cpu_has_waits_in_nanoseconds(tmp):
    make(tmp)
    out = os.path.join(tmp, "out.json")
    assert tap.run("convert", "kbarman.cap", "--to", "speedscope", "--format", "offcpu", "-o", out,
                   cwd=tmp).returncode == 0
    with open(out, encoding="utf-8") as file:
        document = json.load(file)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {profile["name"]: list(zip([[names[frame] for frame in stack]
                                        for stack in profile["samples"]], profile["weights"]))
             for profile in document["profiles"]}
    assert found == {"burner (8)": [(["schedule"], 5000)],
                     "waiter (7)": [(["do_wait", "schedule"], 1000),
                                    (["do_poll", "schedule"], 500)]}, found
    assert {profile["unit"] for profile in document["profiles"]} == {"nanoseconds"}, document


def pprof_has_the_time_of_waits_beside_that_of_samples(tmp):
    profile = Profile(tmp, make(tmp))
    waits = {(sample["labels"]["thread"], *(frame[1] for frame in sample["stack"])):
             (sample["values"]["waits"], sample["values"]["off-cpu"])
             for sample in profile.samples if sample["values"]["waits"]}
    assert waits == {("burner", "schedule"): (1, 5000),
                     ("waiter", "schedule", "do_wait"): (1, 1000),
                     ("waiter", "schedule", "do_poll"): (1, 500)}, waits
    assert sum(sample["values"]["samples"] for sample in profile.samples) == 2
    assert not [name for name, _ in Profile(tmp, make(tmp, chains=False)).types
                if name in ("waits", "off-cpu")]


def folded_by_counter_sums_that_counter(tmp):
    make(tmp)
    for counter, want in ("instructions", [1000, 150]), ("cycles", [500, 300]):
        result = convert(tmp, "--to", "folded", "--event", counter)
        assert result.stdout.splitlines() == [
            f"burner;do_wait_[k] {want[0]}", f"waiter;schedule_[k] {want[1]}"], result
    bad = tap.run("convert", "kbarman.cap", "--to", "folded", "--event", "nothing", cwd=tmp)
    assert bad.returncode == 2 and "cycles, instructions" in bad.stderr, bad


def flame_graphs_say_what_they_weigh(tmp):
    make(tmp)
    svg = convert(tmp, "--to", "flamegraph", "--format", "offcpu").stdout
    assert "waiting" in svg and "do_poll" in svg and "5.000 us" in svg, svg[:3000]
    svg = convert(tmp, "--to", "flamegraph", "--event", "instructions").stdout
    assert "instructions" in svg and "1,150" in svg, svg[:3000]


def counters_have_columns_on_request(tmp):
    make(tmp)
    text = tap.run("report", "--counters", cwd=tmp).stdout
    assert re.search(r"Samples +cycles +instructions +IPC", text), text
    assert re.search(r"^ +62\.50% +1 +500 +1000 +2\.00 +burner .*do_wait$", text, re.M), text
    assert re.search(r"^ +62\.50% +1 +500 +1000 +2\.00 +8 +8 +burner$", text, re.M), text
    table = rows(tmp)
    task = [r for r in of_kind(table, "task_samples") if r["tid"] == 7][0]
    assert task["counters"] == [300, 150] and task["ipc"] == 0.5, task


# ---- what they were for

CALL, NO_CALL, FILE, DEVICE, PIPE, SOCKET, ANON, FUTEX, MUTEX, _, _, RWSEM_WRITE, FAULT = range(1, 14)
IOWAIT, COMPAT, OUTSIDE = 1, 2, 4
FOR = [((0, PIPE, 0, 5, 4711), 1000), ((74, FILE, IOWAIT, 8 << 20 | 1, 12), 3000),
       ((202, FUTEX, 0, 8, 0x7f001000), 2000), ((230, CALL, 0, 1, 0), 500),
       ((0, NO_CALL, IOWAIT, 0, 0x401000), 100), ((7, CALL, COMPAT, 0, 0), 50),
       ((0, 99, 0, 0, 0), 30), (None, 20), ((1, RWSEM_WRITE, 0, 8, 0xffff888001000000), 400),
       ((0, MUTEX, OUTSIDE, 9, 0), 300), ((0, FAULT, OUTSIDE | IOWAIT, 0, 0x602000), 90), ((0, FAULT, 0, 0, 0x603000), 80),
       ((0, FAULT, OUTSIDE | IOWAIT, 0, 0x604000), 70)]


def make_objects(directory, repeat=2, **facts):
    """Task 7 waits for each of FOR, @repeat times."""
    path = os.path.join(directory, "kbarman.cap")
    capture = Maker(cores=1, counters=[17], facts={"machine": "x86_64", "objects": "1",
                                                   "counter.0.0": "cycles", **facts})
    capture.task(0, "swapper")
    capture.task(7, "waiter")
    now = 1000
    capture.switch(0, now, 7)
    for _ in range(repeat):
        for waits_for, ns in FOR:
            capture.switch(0, now + 10, 0, blocked=True, state=1, waits_for=waits_for)
            capture.switch(0, now + 10 + ns, 7)
            now += 10 + ns
    capture.save(path)
    return path


def rows_say_what_tasks_waited_for(tmp):
    make_objects(tmp)
    head, *found = rows(tmp, "--waits")
    assert head["kind"] == "waits" and head["objects"] and head["sum_ns"] == 2 * sum(ns for _, ns in FOR), head
    assert [(row["object"], row.get("call"), row["iowait"], row.get("device"), row.get("object_value"), row.get("pid"),
             row["waits"], row["sum_ns"]) for row in found] == [
                 ("file", "fsync", True, 8 << 20 | 1, 12, None, 2, 6000),
                 ("futex", "futex", False, None, 0x7f001000, 7, 2, 4000),
                 ("pipe", "read", False, None, 4711, None, 2, 2000),
                 ("call", "clock_nanosleep", False, None, None, None, 2, 1000),
                 ("rwsem_write", "write", False, None, 0xffff888001000000, None, 2, 800),
                 ("mutex", None, False, None, None, None, 2, 600),
                 ("fault", None, True, None, None, None, 4, 320),
                 ("no_call", None, True, None, None, None, 2, 200),
                 ("fault", "read", False, None, None, None, 2, 160),
                 ("call", None, False, None, None, None, 2, 100),
                 ("other", "read", False, None, None, None, 2, 60),
                 ("none", None, False, None, None, None, 2, 40)], found
    assert all(row["task"] == "waiter" and (row["max_ns"] == row["sum_ns"] // 2 or row["object"] == "fault") for row in found), found


def people_read_what_tasks_waited_for(tmp):
    make_objects(tmp)
    text = tap.run("report", "--waits", "--percent-limit", "0", cwd=tmp).stdout
    for part in ("fsync file 8:1 inode 12 (disk)", "futex 0x7f001000 of process 7", "read pipe 4711",
                 "clock_nanosleep", "[in no call] (disk)", "[in no call] page fault (disk)", "read page fault\n", "[another call]",
                 "write Linux's rwsem_write 0xffff888001000000", "[in no call] Linux's mutex, the longest held by :9 (9)\n",
                 "# Left out: 2 waits of the kernel's own tasks, 0.000 ms"):
        assert part in text, (part, text)
    assert "[unknown]" not in text, text


def a_capture_without_objects_says_how_to_have_them(tmp):
    make(tmp)
    text = tap.run("report", "--waits", cwd=tmp).stdout
    assert "does not say what tasks waited for" in text and "[unknown]" in text, text


FUNCTIONS = {"futex_wait_queue": "lock", "pipe_read": "pipe", "io_schedule": "disk", "tcp_recvmsg": "net",
             "do_nanosleep": "time", "do_poll": None}
WAKERS = [(IRQ, "nvme0q1", "disk"), (IRQ, "virtio0-req.0", "disk"), (IRQ, "eth0", "net"), (IRQ, "arch_timer", "time"),
          (IRQ, "gpio", None), (SOFTIRQ, 1, "time"), (SOFTIRQ, 3, "net"), (SOFTIRQ, 4, "disk"), (SOFTIRQ, 6, None),
          (TASK, 8, None)]


def make_inferred(directory, objects=False):
    """Task 7 waits 100 ns in each of FUNCTIONS, which a task ends; then 1000 ns for each of WAKERS, in do_poll."""
    facts = {f"irq.{40 + i}": name for i, (context, name, _) in enumerate(WAKERS) if context == IRQ}
    capture = Late(cores=2, facts={**facts, "sources": "irq,softirq,wake", "states": "S1",
                                   **({"objects": "1"} if objects else {})})
    capture.task(7, "waiter")
    capture.task(8, "waker")
    capture.map(0, K, 0x10000, 0, "[kernel.kallsyms]")
    capture.switch(1, 0, 8)
    capture.switch(0, 0, 7)
    names_of = ["schedule", *FUNCTIONS]
    now = 1000

    def wait(function, ns, wake):
        nonlocal now
        pcs = [K + 0x10, K + 0x1000 * names_of.index(function) + 0x20]
        pcs += [K + 0x1010] if function != "do_poll" else []    # within futex_wait_queue: the outer one does not count
        capture.switch(0, now, 0, blocked=True, state=1, chain=pcs, kernel=len(pcs))
        wake(now + ns - 10)
        capture.switch(0, now + ns, 7)
        now += 10000

    for function in FUNCTIONS:
        wait(function, 100, lambda at: capture.waking(1, at, 8, 7))
    for i, (context, what, _) in enumerate(WAKERS):
        def wake(at, i=i, context=context, what=what):
            if context == IRQ:
                capture.irq_entry(1, at - 50, 40 + i, task=8)
            elif context == SOFTIRQ:
                capture.softirq_entry(1, at - 50, what, task=8)
            capture.waking(1, at, 8, 7, context=context)
            if context == IRQ:
                capture.irq_exit(1, at + 1, 40 + i, task=8)
            elif context == SOFTIRQ:
                capture.softirq_exit(1, at + 1, what, task=8)
        wait("do_poll", 1000, wake)
    path = os.path.join(directory, "kbarman.cap")
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(f"{K:x} T _stext\n")
        for i, name in enumerate([*names_of, "_etext"]):
            file.write(f"{K + 0x1000 * i:x} T {name}\n")


def without_objects_it_is_inferred_where_tasks_waited_and_who_woke_them(tmp):
    make_inferred(tmp)
    head, *found = rows(tmp, "--waits")
    wanted = {}
    for is_, ns in [*((is_, 100) for is_ in FUNCTIONS.values()), *((is_, 1000) for _, _, is_ in WAKERS)]:
        count, ns_before = wanted.get(is_, (0, 0))
        wanted[is_] = count + 1, ns_before + ns
    assert not head["objects"] and {
        row.get("inferred"): (row["waits"], row["sum_ns"]) for row in found} == wanted, (found, wanted)
    assert {row["object"] for row in found} == {"none"} and len(found) == len(wanted), found
    text = tap.run("report", "--waits", cwd=tmp).stdout
    for word in "disk", "net", "time", "lock", "pipe":
        assert f"  [inferred: {word}]" in text, (word, text)
    assert "\n# inferred : by who woke them, and where in Linux they waited\n" in text and "[unknown]" in text, text


def classes_of_such_a_capture_have_what_is_inferred(tmp):
    make_inferred(tmp)
    waits = [row for row in of_kind(rows(tmp, "--classes"), "class_of") if row["class"] == "wait" and row["tid"] == 7]
    found = {row.get("inferred"): row["sum_ns"] for row in waits}
    assert found["disk"] == 90 + 3 * 990 and found["net"] == 90 + 2 * 990 and found["time"] == 90 + 2 * 990, found
    assert found["lock"] == found["pipe"] == 90 and found[None] == 90 + 3 * 990 and len(waits) == 6, found
    text = tap.run("report", "--classes", "--percent-limit", "0", cwd=tmp).stdout
    assert "waiting: [inferred: disk]" in text and "waiting: asleep" in text, text


def where_objects_are_recorded_nothing_is_inferred(tmp):
    make_inferred(tmp, objects=True)
    assert not any("inferred" in row for row in rows(tmp, "--waits") + rows(tmp, "--classes"))
    assert "inferred" not in tap.run("report", "--waits", cwd=tmp).stdout


OBJECTS_MAX = 65536


def make_many(directory, more=5):
    """Task 7 waits for a pipe each time, for @more beyond those that have a row of their own."""
    capture = Maker(cores=1, counters=[17], facts={"machine": "x86_64", "objects": "1"})
    capture.task(7, "waiter")
    capture.switch(0, 1000, 7)
    for i in range(OBJECTS_MAX + more):
        now = 2000 + 100 * i
        capture.switch(0, now, 0, blocked=True, state=1, waits_for=(0, PIPE, 0, 5, i))
        capture.switch(0, now + 10, 7)
    capture.save(os.path.join(directory, "kbarman.cap"))


def objects_that_are_too_many_are_added_up(tmp):
    make_many(tmp)
    head, *found = rows(tmp, "--waits")
    others = [row for row in found if row.get("others")]
    assert len(found) == OBJECTS_MAX + 1 and len(others) == 1, len(found)
    assert (others[0]["object"], others[0]["waits"], others[0]["sum_ns"]) == ("pipe", 5, 50), others
    assert head["sum_ns"] == 10 * (OBJECTS_MAX + 5), head
    text = tap.run("report", "--waits", "--percent-limit", "0", cwd=tmp).stdout
    assert "[all others: pipe]" in text, text[-300:]


def who_holds_a_lock_is_believed_of_threads_of_the_same_process(tmp):
    capture = Maker(cores=1, counters=[17], facts={"objects": "1", "tgid.1": "7", "tgid.2": "9"})
    for tid in 7, 8, 9:
        capture.task(tid, "waiter")
    capture.switch(0, 1000, 7)
    for i, holder in enumerate((8, 9, 4711, 7, 0)):
        capture.switch(0, 2000 + 100 * i, 0, blocked=True, state=1, waits_for=(202, FUTEX, 0, holder, 0x1000))
        capture.switch(0, 2050 + 100 * i, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    result = tap.run("query", "--json", "SELECT object_id FROM switches WHERE object = 'futex'", cwd=tmp)
    found = [row["object_id"] for row in json.loads(result.stdout)]
    assert found == [8, 0, 0, 0, 0], result


HOSTILE = "/tmp/a\x1b[1m\n\udcff\u202e\",|<b>"


def named(path, facts, waits, threads=()):
    """Task 7 waits, 1 ns more each time; @threads: others of process 7."""
    capture = Maker(cores=1, counters=[17], facts={
        "machine": "x86_64", "objects": "1", **{f"tgid.{i + 1}": "7" for i in range(len(threads))},
        **{f"object.{key}": name for key, name in facts.items()}})
    capture.task(7, "waiter")
    for i, tid in enumerate(threads):
        capture.task(tid, f"thread {i}")
    capture.switch(0, 1000, 7)
    for i, waits_for in enumerate(waits):
        capture.switch(0, 2000 + 100 * i, 0, blocked=True, state=1, waits_for=waits_for)
        capture.switch(0, 2011 + 101 * i, 7)
    return capture.save(path)


def names(tmp, *args):
    return [(row["object"], row.get("name")) for row in rows(tmp, "--waits", *args)[:0:-1]]


def what_a_task_waits_for_has_the_name_that_was_noted(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {
        "3.12.8388609.0": "/var/x", "3.12.8388610.0": "/other", "5.4711.0.0": "make 12 -> cat 13",
        "6.99.0.0": "tcp 127.0.0.1:80 -> 127.0.0.1:40112", "4.5.34816.0": "/dev/pts/0"},
          [(74, FILE, IOWAIT, 8 << 20 | 1, 12), (0, PIPE, 0, 5, 4711), (45, SOCKET, 0, 6, 99),
           (0, DEVICE, 0, 136 << 20, 5), (0, DEVICE, 0, 34816, 5), (0, FILE, 0, 8 << 20 | 3, 12)])
    assert names(tmp) == [
        ("file", "/var/x"), ("pipe", "make 12 -> cat 13"), ("socket", "tcp 127.0.0.1:80 -> 127.0.0.1:40112"),
        ("device", None), ("device", "/dev/pts/0"), ("file", None)], rows(tmp, "--waits")
    text = tap.run("report", "--waits", "--percent-limit", "0", cwd=tmp).stdout
    for part in ("fsync /var/x (disk)\n", "read pipe 4711: make 12 -> cat 13\n", "read file 8:3 inode 12\n",
                 "recvfrom tcp 127.0.0.1:80 -> 127.0.0.1:40112\n", "read /dev/pts/0\n", "read device 136:0\n"):
        assert part in text, (part, text)
    result = tap.run("query", "--json", "SELECT object, object_name FROM switches WHERE object != 'none'", cwd=tmp)
    assert [(row["object"], row["object_name"]) for row in json.loads(result.stdout)] == names(tmp), result


CALLS = ["times", "ptrace", "getuid", "syslog", "getgid", "setuid"]    # from 100 on
BY = [("task", (1, PIPE, 0, 4, 4711), "write"), ("task", (231, CALL, 0, 0, 0), "exit_group"),
      ("task", (202, FUTEX, 0, 0, 0x7f001000), "futex"), ("task", (4, CALL, COMPAT, 1, 0), None),
      ("task", None, None), ("softirq", (44, SOCKET, 0, 4, 99), None)]


def woken(tmp):
    """Task 7 waits in a call of its own for each of BY, which ends it; once more, shorter, by another task."""
    capture = Late(cores=2, facts={"machine": "x86_64", "objects": "1", "object.5.4711.0.0": "waker 8 -> 7"})
    capture.task(7, "waiter")
    capture.task(8, "waker")
    capture.switch(0, 0, 7)
    capture.switch(1, 0, 8)
    now = 1000
    for shorter in 0, 1:
        for i, (context, by, _) in enumerate(BY):
            capture.switch(0, now, 0, blocked=True, state=1, waits_for=(100 + i, CALL, 0, 0, 0))
            capture.waking(1, now + 500 - shorter, 8, 7, context=TASK if shorter or context == "task" else SOFTIRQ,
                           by=(9, CALL, 0, 0, 0) if shorter else by)
            capture.switch(0, now + 600 - shorter, 7)
            now += 1000
    capture.save(os.path.join(tmp, "kbarman.cap"))


def who_ended_a_wait_says_by_which_call(tmp):
    woken(tmp)
    want = [(context, None if context == "softirq" else "waker", call) for context, _, call in BY]
    found = sorted(rows(tmp, "--waits")[1:], key=lambda row: CALLS.index(row["call"]))
    assert [(row["by"], row["by_name"] if row["by"] == "task" else None, row.get("by_call")) for row in found] == want
    assert all(row["waits"] == 2 and row.get("by_id") == (8 if row["by"] == "task" else None) for row in found), found
    text = tap.run("report", "--waits", "--percent-limit", "0", cwd=tmp).stdout
    for part in (f"{CALLS[0]}, the longest ended by waker (8) in write\n", f"{CALLS[3]}, the longest ended by waker (8)\n",
                 f"{CALLS[5]}, the longest ended by a softirq\n"):
        assert part in text, (part, text)
    late = [row for row in rows(tmp, "--latency") if row["kind"] == "latency_wait"]
    assert {(row["by"], row.get("by_call")) for row in late} >= {(context, call) for context, _, call in BY}, late
    assert "woken by waker (8) in exit_group on CPU 1" in tap.run("report", "--latency", cwd=tmp).stdout


def wakeups_say_what_the_call_is_about(tmp):
    woken(tmp)
    asked = "SELECT context, object, call, object_id, object_value, object_name FROM wakeups ORDER BY record LIMIT 6"
    rows_ = json.loads(tap.run("query", "--json", asked, cwd=tmp).stdout)
    assert [tuple(row.get(key) for key in rows_[0]) for row in rows_] == [
        ("task", "pipe", "write", 4, 4711, "waker 8 -> 7"), ("task", "call", "exit_group", 0, 0, None),
        ("task", "futex", "futex", 0, 0x7f001000, None), ("task", "call", None, 1, 0, None),
        ("task", "none", None, None, None, None), ("softirq", "socket", "sendto", 4, 99, None)], rows_
    late = json.loads(tap.run("query", "--json", "SELECT by, by_call FROM delays ORDER BY at_ns LIMIT 6", cwd=tmp).stdout)
    assert [(row["by"], row["by_call"]) for row in late] == [(context, call) for context, _, call in BY], late


def what_shares_an_inode_is_told_apart_by_its_name(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {"7.15.5.7": "eventfd", "7.15.6.7": "timerfd", "7.15.8.7": "eventfd",
                                             "7.15.9.4": "inotify"},
          [(0, ANON, 0, fd, 15) for fd in (5, 5, 5, 8, 8, 6, 6, 9)])
    assert [(row["name"] if "name" in row else None, row["waits"]) for row in rows(tmp, "--waits")[1:]] == [
        ("eventfd", 5), ("timerfd", 2), (None, 1)], rows(tmp, "--waits")
    text = tap.run("report", "--waits", "--percent-limit", "0", cwd=tmp).stdout
    assert "read eventfd\n" in text and "read timerfd\n" in text and "read anon 15\n" in text, text


def what_epoll_waits_for_has_its_name_in_any_case(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {"7.15.5.7": "eventpoll"},
          [(number, ANON, 0, fd, 15) for number, fd in ((232, 5), (232, 6), (281, 6), (0, 6))])
    assert sorted((row["call"], row.get("name"), row["waits"]) for row in rows(tmp, "--waits")[1:]) == [
        ("epoll_pwait", "eventpoll", 1), ("epoll_wait", "eventpoll", 2), ("read", None, 1)], rows(tmp, "--waits")


def names_may_have_any_bytes(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {"3.12.1.0": HOSTILE}, [(0, FILE, 0, 1, 12)])
    text = tap.run("report", "--waits", cwd=tmp).stdout
    assert 'read /tmp/a?[1m???",|<b>\n' in text, text
    shown = HOSTILE.replace("\udcff", "\ufffd")
    assert names(tmp) == [("file", shown)], names(tmp)
    result = tap.run("query", "--json", "SELECT name FROM report_waited_for", cwd=tmp)
    assert json.loads(result.stdout) == [{"name": shown}], result


def facts_that_are_no_names_are_ignored(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {
        "3.12.1": "/a", "3.12.1.0.0": "/b", "3.12.1.x": "/c", "": "/d", "3.99999999999999999999999.1.0": "/e",
        "8.4096.0.0": "lock", "1.0.1.0": "call", "3.13.1.0": "", "3.14.1.0": "/first"},
          [(0, FILE, 0, 1, 12), (202, FUTEX, 0, 0, 4096), (230, CALL, 0, 1, 0), (0, FILE, 0, 1, 13), (0, FILE, 0, 1, 14)])
    assert names(tmp) == [("file", None), ("futex", None), ("call", None), ("file", None), ("file", "/first")]


def names_stay_when_captures_are_merged(tmp):
    paths = [named(os.path.join(tmp, f"{i}.cap"), {f"3.{i}.1.0": f"/file {i}"}, [(0, FILE, 0, 1, i)] * (i + 1))
             for i in (1, 2)]
    assert tap.run("merge", "-o", "kbarman.cap", *paths, cwd=tmp).returncode == 0
    assert sorted(names(tmp)) == [("file", "/file 1"), ("file", "/file 2")], names(tmp)


def objects_without_room_for_names_are_told(tmp):
    make_objects(tmp)
    assert "more than" not in tap.run("report", "--waits", cwd=tmp).stdout
    make_objects(tmp, objects_unnamed="1")
    assert "objects are more than the recorder has names for" in tap.run("report", "--waits", cwd=tmp).stdout


def the_longest_wait_for_a_lock_says_who_held_it(tmp):
    named(os.path.join(tmp, "kbarman.cap"), {}, [(202, FUTEX, 0, holder, 0x1000) for holder in (8, 9, 8)] +
          [(202, FUTEX, 0, holder, 0x2000) for holder in (8, 4711)], threads=(8, 9))
    found = {row["object_value"]: (row.get("holder_tid"), row.get("holder")) for row in rows(tmp, "--waits")[1:]}
    assert found == {0x1000: (8, "thread 0"), 0x2000: (None, None)}, found
    text = tap.run("report", "--waits", cwd=tmp).stdout
    assert "futex 0x1000 of process 7, the longest held by thread 0 (8)\n" in text, text
    assert "futex 0x2000 of process 7\n" in text, text


def a_stack_of_waiting_ends_with_the_call(tmp):
    make_objects(tmp)
    result = convert(tmp, "--to", "folded", "--format", "offcpu")
    ends = {line.rsplit(" ", 1)[0].rsplit(";", 1)[-1] for line in result.stdout.splitlines()}
    assert {"fsync", "futex", "read", "clock_nanosleep"} <= ends, result


if __name__ == "__main__":
    tap.main(globals())
