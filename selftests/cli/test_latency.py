#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --latency` says of captures whose waits are known."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import IRQ, IPI_RESCHEDULE, IPI_TIMER, NET_RX, Late
from make_capture import Maker

US = 1000
PARTS = ["waking_ns", "halt_ns", "idle_ns", "queue_ns", "softirq_ns", "irq_ns", "unknown_ns"]


def new(cores=2, **facts):
    capture = Late(cores=cores, facts={"written.0": "1", "irq.40": "disk, sound", "machine": "x86_64",
                                      **facts})
    for task, name in (7, "worker"), (8, "waker"), (9, "hog"), (10, "other"):
        capture.task(task, name)
    return capture


def save(capture, tmp):
    return capture.save(os.path.join(tmp, "kbarman.cap"))


def rows(tmp, *args, status=0, option="--latency"):
    done = tap.run("report", option, "--json", *args, cwd=tmp)
    assert done.returncode == status, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_kind(table, kind, **wanted):
    return [row for row in table if row["kind"] == kind and
            all(row.get(key) == value for key, value in wanted.items())]


def only(table, kind, **wanted):
    found = of_kind(table, kind, **wanted)
    assert len(found) == 1, (kind, wanted, found)
    return found[0]


def parts(row):
    return {key: row[key] for key in PARTS if row[key]}


def through_an_idle_cpu(tmp, state=2, extra=lambda capture: None):
    """Task 8 on CPU 0 wakes 7 by write(), for which CPU 1 leaves idle state 2."""
    capture = new()
    capture.switch(0, 1 * US, 8)
    capture.switch(1, 1 * US, 7)
    capture.switch(1, 2 * US, 0, blocked=True, state=1)
    capture.halt(1, 3 * US, True, state)
    capture.waking(0, 100 * US, waker=8, woken=7, cpu=1, by=(1, 5, 0, 4, 4711))
    capture.halt(1, 150 * US, False)
    capture.ipi(1, 151 * US, 153 * US, IPI_RESCHEDULE)
    capture.switch(1, 160 * US, 7)
    capture.switch(1, 200 * US, 0, blocked=True, state=1)
    extra(capture)
    return save(capture, tmp)


def a_wait_is_split_into_leaving_idle_and_what_came_then(tmp):
    through_an_idle_cpu(tmp)
    table = rows(tmp)
    wait = only(table, "latency_wait")
    assert (wait["task"], wait["duration_ns"], wait["at_ns"], wait["cpu"]) == ("worker", 60 * US, 100 * US, 1)
    assert (wait["by"], wait["by_id"], wait["by_name"], wait["by_cpu"], wait["by_call"]) == ("task", 8, "waker", 0, "write")
    assert parts(wait) == {"halt_ns": 50 * US, "idle_ns": 8 * US, "irq_ns": 2 * US}, wait
    assert wait["idle_state"] == 2 and wait["ran"] == [["ipi", "Rescheduling interrupts", 2 * US]], wait
    idle = only(table, "latency_idle")
    assert (idle["idle_state"], idle["waits"], idle["max_ns"]) == (2, 1, 50 * US), idle


def interrupts_inside_of_a_halt_do_not_end_it(tmp):
    """As in states that are left with interrupts on: of each halt the time of its end counts."""
    capture = new()
    capture.switch(0, 0, 8)
    capture.switch(1, 0, 7)
    for now in 0, 1000 * US:
        capture.switch(1, now + 2 * US, 0, blocked=True, state=1)
        capture.halt(1, now + 3 * US, True, 2)
        capture.ipi(1, now + 90 * US, now + (101 if now else 91) * US, IPI_TIMER)
        capture.waking(0, now + 100 * US, waker=8, woken=7, cpu=1)
        capture.ipi(1, now + 110 * US, now + 112 * US, IPI_RESCHEDULE)
        # the second halt ends at once behind the interrupt
        capture.halt(1, now + (112 if now else 150) * US, False)
        if now:     # a halt behind it is another one
            capture.halt(1, now + 113 * US, True, 0)
            capture.halt(1, now + 158 * US, False)
        capture.switch(1, now + 160 * US, 7)
    capture.switch(1, 1200 * US, 0, blocked=True, state=1)
    capture.records.sort(key=lambda record: record[16:24][::-1])
    save(capture, tmp)
    table = rows(tmp)
    idle = only(table, "latency_idle")
    assert (idle["idle_state"], idle["waits"], idle["sum_ns"], idle["max_ns"]) == (
        2, 2, 62 * US, 50 * US), idle
    assert [(wait["idle_state"], parts(wait)) for wait in of_kind(table, "latency_wait")] == [
        (2, {"halt_ns": 48 * US, "idle_ns": 10 * US, "irq_ns": 2 * US}),
        (2, {"halt_ns": 54 * US, "idle_ns": 3 * US, "irq_ns": 3 * US})], table


def a_wait_in_the_queue_says_who_ran(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.switch(0, 1 * US, 9, blocked=True, state=1)
    capture.irq_entry(0, 10 * US, 40, task=9, behind=1)
    capture.waking(0, 12 * US, waker=9, woken=7, context=IRQ)
    capture.irq_exit(0, 14 * US, 40, task=9, behind=1)
    capture.softirq_entry(0, 15 * US, NET_RX, task=9)
    capture.softirq_exit(0, 18 * US, NET_RX, task=9)
    capture.switch(0, 30 * US, 10)
    capture.switch(0, 32 * US, 7)
    save(capture, tmp)
    table = rows(tmp)
    wait = only(table, "latency_wait", preempted=False)
    assert wait["duration_ns"] == 20 * US and (wait["by"], wait["by_id"], wait["by_name"]) == (
        "irq", 40, "disk"), wait
    assert parts(wait) == {"queue_ns": 15 * US, "softirq_ns": 3 * US, "irq_ns": 2 * US}, wait
    assert wait["ran"] == [["task", "hog", 13 * US], ["softirq", "NET_RX", 3 * US],
                           ["task", "other", 2 * US], ["irq", "disk", 2 * US]], wait
    assert [(b["task"], b["ran"], b["duration_ns"]) for b in of_kind(table, "latency_behind")][:2] == [
        ("worker", "hog", 13 * US), ("worker", "NET_RX", 3 * US)], table
    waker = only(table, "latency_waker")
    assert (waker["by"], waker["name"], waker["waits"], waker["sum_ns"]) == (
        "irq", "disk", 1, 20 * US) and parts(waker) == parts(wait), waker


def preempted_and_woken_waits_are_apart(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.switch(0, 10 * US, 9)                       # 7 is preempted
    capture.switch(0, 15 * US, 7, blocked=True, state=1)
    capture.waking(0, 16 * US, waker=7, woken=9)
    capture.switch(0, 18 * US, 9, blocked=True, state=1)
    capture.switch(0, 20 * US, 0, blocked=True, state=1)
    save(capture, tmp)
    table = rows(tmp)
    assert [(s["preempted"], s["waits"], s["sum_ns"]) for s in of_kind(table, "latency_sum")] == [
        (False, 1, 2 * US), (True, 1, 5 * US)], table
    assert only(table, "latency_wait", preempted=True)["task"] == "worker"
    assert only(table, "latency_wait", preempted=False)["task"] == "hog"
    assert "by" not in only(table, "latency_wait", preempted=True)


def sleep_is_no_wait(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.switch(0, 1 * US, 0, blocked=True, state=1)
    capture.waking(0, 10**9, waker=0, woken=7, context=IRQ)
    capture.switch(0, 10**9 + 3 * US, 7)
    save(capture, tmp)
    table = rows(tmp)
    assert only(table, "latency_wait")["duration_ns"] == 3 * US
    assert only(table, "latency_wait")["by_name"] == "an interrupt"
    assert "by_id" not in only(table, "latency_wait")


def a_wakeup_before_the_task_left_counts_from_when_it_left(tmp):
    capture = new()
    capture.switch(0, 0, 8)
    capture.switch(1, 0, 7)
    capture.waking(0, 10 * US, waker=8, woken=7, cpu=1)
    capture.switch(1, 11 * US, 9, blocked=True, state=1)
    capture.switch(1, 15 * US, 7)                       # 9 is preempted
    # woken before it could sleep: it goes on, and is then preempted
    capture.waking(0, 20 * US, waker=8, woken=7, cpu=1)
    capture.switch(1, 25 * US, 9)
    capture.switch(1, 30 * US, 7, blocked=True, state=1)
    save(capture, tmp)
    table = rows(tmp)
    wait = only(table, "latency_wait", preempted=False)
    assert (wait["duration_ns"], wait["at_ns"], wait["by_name"]) == (4 * US, 11 * US, "waker"), wait
    assert sorted(w["duration_ns"] for w in of_kind(table, "latency_wait", preempted=True)) == [
        5 * US, 10 * US], table


def migrations_say_in_which_queue_a_task_waited(tmp):
    capture = new(cores=3)
    capture.switch(0, 0, 8)
    capture.switch(1, 0, 9)
    capture.switch(2, 0, 10)
    capture.waking(0, 10 * US, waker=8, woken=7, cpu=0)
    capture.migrate(0, 12 * US, 8, moved=7, cpu=1)
    capture.migrate(2, 20 * US, 10, moved=7, cpu=2)
    capture.switch(2, 25 * US, 7)
    save(capture, tmp)
    wait = only(rows(tmp), "latency_wait", preempted=False)
    assert (wait["duration_ns"], wait["moves"], wait["cpu"]) == (15 * US, 2, 2), wait
    assert parts(wait) == {"waking_ns": 2 * US, "queue_ns": 13 * US}, wait
    assert wait["ran"] == [["task", "other", 5 * US]] and wait["others_ns"] == 8 * US, wait


def a_later_move_is_no_part_of_waking(tmp):
    capture = new(cores=2)
    capture.switch(0, 0, 8)
    capture.switch(1, 0, 9)
    capture.waking(0, 10 * US, waker=8, woken=7, cpu=1)
    capture.switch(0, 20 * US, 0, blocked=True, state=1)
    capture.migrate(0, 21 * US, 0, moved=7, cpu=0)      # CPU 0 idles, and fetches it
    capture.switch(0, 22 * US, 7)
    save(capture, tmp)
    wait = only(rows(tmp), "latency_wait", preempted=False)
    assert parts(wait) == {"queue_ns": 11 * US, "idle_ns": 1 * US}, wait


def new_tasks_wait_too(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 8)
    capture.waking(0, 10 * US, waker=8, woken=7, new=True)
    capture.switch(0, 12 * US, 7)
    save(capture, tmp)
    assert only(rows(tmp), "latency_wait", new=True)["duration_ns"] == 2 * US


def many(tmp, latencies, cores=1):
    """Task 7 sleeps and waits that long, again and again."""
    capture, now = new(cores=cores), 0
    capture.switch(0, now, 7)
    for latency in latencies:
        capture.switch(0, now + 1000, 0, blocked=True, state=1)
        capture.waking(0, now + 2000, waker=0, woken=7, context=IRQ)
        capture.switch(0, now + 2000 + latency, 7)
        now += 3000 + latency
    return save(capture, tmp)


def numbers_are_what_they_say(tmp):
    latencies = [(i * 7919) % 100_003 + 40 for i in range(1000)]
    many(tmp, latencies)
    table = rows(tmp)
    task, ordered = only(table, "latency_task"), sorted(latencies)
    assert task["waits"] == 1000 and task["sum_ns"] == sum(latencies), task
    assert task["max_ns"] == ordered[-1], task
    for key, exact in ("median_ns", ordered[499]), ("p99_ns", ordered[989]):
        assert exact <= task[key] <= exact * 33 / 32, (key, exact, task)
    assert sum(task[key] for key in PARTS) == task["sum_ns"], task
    powers = only(table, "latency_sum", preempted=False)["powers"]
    assert powers == [sum(1 for ns in latencies if 1 << i <= ns < 2 << i)
                      for i in range(len(powers))], powers


def the_ten_worst_are_kept(tmp):
    latencies = [(i * 7919) % 100_003 + 40 for i in range(1000)]
    many(tmp, latencies)
    worst = [w["duration_ns"] for w in of_kind(rows(tmp), "latency_wait")]
    assert worst == sorted(latencies, reverse=True)[:10], worst


def few_nanoseconds_are_exact(tmp):
    many(tmp, [0, 1, 5, 63])
    task = only(rows(tmp), "latency_task")
    assert (task["median_ns"], task["p99_ns"], task["max_ns"]) == (1, 63, 63), task


def text_tells_each_of_the_worst_in_one_line(tmp):
    through_an_idle_cpu(tmp)
    text = tap.run("report", "--latency", cwd=tmp).stdout
    assert re.search(r"^ +60\.000 +0\.099000  worker \(7\) woken by waker \(8\) in write on CPU 0, ran on CPU 1: "
                     r"halt in state 2 50\.000, idle 8\.000, Rescheduling interrupts 2\.000$",
                     text, re.M), text
    assert re.search(r"^ +1 +60\.000 +60\.000 +60\.000 +60\.000 .* 7 +7 +worker$", text, re.M), text
    assert re.search(r"^ +32\.768 +65\.536 +1  #{48}$", text, re.M), text
    assert "3.2% too high" in text and "# lost     : 0 records" in text, text


def without_wakeups_it_says_how_to_record(tmp):
    capture = Maker()
    capture.task(7, "worker")
    capture.switch(0, 1000, 7)
    save(capture, tmp)
    for option in "--latency", "--irq":
        done = tap.run("report", option, cwd=tmp)
        assert done.returncode == 2 and not done.stdout, done
        assert "record with 'kbarman record --latency'" in done.stderr, done


def waits_without_a_wakeup_are_counted(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.switch(0, 1 * US, 9, blocked=True, state=1)
    capture.switch(0, 5 * US, 7, blocked=True, state=1)
    capture.waking(0, 6 * US, waker=7, woken=9)
    capture.switch(0, 7 * US, 9)
    save(capture, tmp)
    table = rows(tmp)
    assert only(table, "latency")["unexplained"] == 1, table
    assert only(table, "latency_sum", preempted=False)["waits"] == 1, table
    text = tap.run("report", "--latency", cwd=tmp).stdout
    assert "# 1 wait of blocked tasks ended without a record of a wakeup" in text, text


def with_a_gap(tmp, told):
    """CPU 1 lacks records from 110 us to 150 us; @told: the capture's facts say so."""
    capture = new(**({"lost.1.full": "5"} if told else {}))
    capture.switch(0, 0, 8)
    capture.switch(1, 0, 9)
    capture.waking(0, 100 * US, waker=8, woken=7)        # over before the gap
    capture.switch(0, 105 * US, 7, blocked=True, state=1)
    capture.waking(0, 106 * US, waker=7, woken=8)        # spans it
    capture.waking(1, 110 * US, waker=9, woken=10, cpu=1)
    capture.switch(0, 120 * US, 8, blocked=True, state=1)  # it may have run on CPU 1
    capture.lost(1, 150 * US, 5)
    capture.switch(1, 160 * US, 10)
    capture.waking(1, 170 * US, waker=10, woken=7)       # behind it
    capture.switch(0, 180 * US, 7, blocked=True, state=1)
    return save(capture, tmp)


def no_wait_spans_a_gap(tmp):
    with_a_gap(tmp, told=True)
    table = rows(tmp)
    head = only(table, "latency")
    assert (head["gaps"], head["cut"]) == (1, 2), head
    assert sorted(w["duration_ns"] for w in of_kind(table, "latency_wait")) == [5 * US, 10 * US], table
    text = tap.run("report", "--latency", cwd=tmp).stdout
    assert "#            in 1 gap\n" in text, text
    assert "# 2 waits go over a gap in the records: these are not in the tables.\n" in text, text


def gaps_are_found_in_a_pipe(tmp):
    with open(with_a_gap(tmp, told=True), "rb") as file:
        done = tap.run("report", "--latency", "--json", "-", cwd=tmp, stdin=file)
    assert done.returncode == 0, done
    with open(os.path.join(tmp, "kbarman.cap"), "rb") as file:
        data = file.read()
    piped = tap.run("report", "--latency", "--json", "-", cwd=tmp, input=data, text=False)
    assert piped.returncode == 0 and piped.stdout.decode() == done.stdout, piped


def time_in_front_of_a_ring_that_was_overwritten_is_a_gap(tmp):
    """Worker may have run on CPU 1 before the first record that CPU 1 still has."""
    capture = new(**{"overwritten.1": "5"})
    capture.switch(0, 0, 8)
    capture.waking(0, 10 * US, waker=8, woken=7, cpu=1)
    capture.switch(1, 500 * US, 9)
    capture.switch(0, 600 * US, 7, blocked=True, state=1)
    capture.waking(0, 700 * US, waker=7, woken=8)
    capture.switch(0, 710 * US, 8, blocked=True, state=1)
    save(capture, tmp)
    table = rows(tmp)
    assert [w["duration_ns"] for w in of_kind(table, "latency_wait")] == [10 * US], table
    assert (only(table, "latency")["gaps"], only(table, "latency")["cut"]) == (1, 1), table
    text = tap.run("report", "--latency", cwd=tmp).stdout
    assert "# lost     : 0 records\n#            5 older records were overwritten by newer ones\n" \
        "#            in 1 gap\n" in text, text
    assert "# 1 wait goes over a gap in the records: these are not in the tables.\n" in text, text


def a_capture_that_was_cut_says_so_in_all_reports(tmp):
    with_a_gap(tmp, told=True)
    path = os.path.join(tmp, "kbarman.cap")
    reports = ["--latency"], ["--critical-path", "7"]
    assert not any("damaged" in tap.run("report", *options, path).stdout for options in reports)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 3)
    for options in reports:
        done = tap.run("report", *options, path)
        assert done.returncode == 1 and "\n# damaged  : records are missing" in done.stdout, done


def what_is_left_out_is_of_what_is_chosen(tmp):
    """The waits over a gap are of a task that is not asked for."""
    with_a_gap(tmp, told=True)
    heads = [only(rows(tmp, *options), "latency") for options in ([], ["--tid", "7"], ["--tid", "8"])]
    assert [head["cut"] for head in heads] == [2, 0, 1], heads
    assert all(head["gaps"] == 1 and "gaps" in head.get("whole_capture", ["gaps"]) for head in heads), heads
    assert "over a gap" not in tap.run("report", "--latency", "--tid", "7", cwd=tmp).stdout


def a_cpu_without_records_may_have_had_some(tmp):
    capture = new(**{"overwritten.1": "5"})
    capture.switch(0, 0, 8)
    capture.waking(0, 10 * US, waker=8, woken=7, cpu=1)
    capture.switch(0, 600 * US, 7, blocked=True, state=1)
    capture.switch(0, 700 * US, 0, blocked=True, state=1)
    save(capture, tmp)
    assert not of_kind(rows(tmp), "latency_wait")


def tasks_that_were_recorded_in_part_are_left_out(tmp):
    """Only 7 is recorded: 9 has records where it follows 7 or is woken by it, and no others."""
    capture = new(cores=2, filter="command")
    capture.switch(0, 0, 7)
    capture.switch(0, 10 * US, 0, blocked=True, state=1)
    capture.waking(0, 20 * US, waker=0, woken=7, context=IRQ)
    capture.switch(0, 22 * US, 7)
    capture.waking(0, 30 * US, waker=7, woken=9)
    capture.switch(0, 40 * US, 9, blocked=True, state=1)     # an hour later in truth
    capture.irq(0, 50 * US, 51 * US, 40, task=10)
    capture.waking(0, 60 * US, waker=10, woken=7)
    capture.switch(0, 63 * US, 7)
    capture.switch(0, 70 * US, 9)                            # 7 is preempted
    capture.switch(0, 75 * US, 7)
    save(capture, tmp)
    table = rows(tmp)
    assert sorted((w["tid"], w["duration_ns"] // US, w["preempted"])
                  for w in of_kind(table, "latency_wait")) == [
        (7, 2, False), (7, 3, False), (7, 5, True)], table
    assert only(table, "latency")["unsure"] == 2, table
    assert "# 2 waits of tasks that were perhaps recorded in part" in tap.run(
        "report", "--latency", cwd=tmp).stdout


def who_wakes_itself_has_not_slept(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.waking(0, 5 * US, waker=7, woken=7)
    capture.waking(0, 6 * US, waker=7, woken=7, context=IRQ)
    capture.switch(0, 10 * US, 9, blocked=True, state=1)
    capture.switch(0, 20 * US, 7)
    save(capture, tmp)
    table = rows(tmp)
    assert only(table, "latency")["unexplained"] == 1, table
    assert not of_kind(table, "latency_wait", preempted=False), table


def filters_choose_waits(tmp):
    capture = new(cores=2)
    for core, task in (0, 7), (1, 9):
        capture.switch(core, 0, task)
        capture.switch(core, 1 * US, 0, blocked=True, state=1)
    for when in 10 * US, 30 * US:
        for core, task in (0, 7), (1, 9):
            capture.waking(core, when, waker=0, woken=task, cpu=core, context=IRQ)
            capture.switch(core, when + task * US, task)
            capture.switch(core, when + 15 * US, 0, blocked=True, state=1)
    capture.records.sort(key=lambda record: record[16:24][::-1])
    save(capture, tmp)

    def found(*args):
        return sorted((w["tid"], w["at_ns"] // US) for w in of_kind(rows(tmp, *args), "latency_wait"))

    assert found() == [(7, 10), (7, 30), (9, 10), (9, 30)]
    assert found("--task", "hog") == [(9, 10), (9, 30)]
    assert found("--tid", 7) == [(7, 10), (7, 30)]
    assert found("-C", 1) == [(9, 10), (9, 30)]
    assert found("--time", "0.00002,") == [(7, 30), (9, 30)]
    assert only(rows(tmp, "-C", 1), "latency")["filtered"] == 2
    assert "# only     : cpu 1" in tap.run("report", "--latency", "-C", "1", cwd=tmp).stdout


def full(directory):
    """A capture whose report has all keys."""
    through_an_idle_cpu(directory, extra=lambda capture: (
        capture.switch(0, 210 * US, 9), capture.raised(0, 211 * US, NET_RX, task=9),
        capture.softirq_entry(0, 212 * US, NET_RX, task=9),
        capture.softirq_exit(0, 213 * US, NET_RX, task=9),
        capture.switch(0, 220 * US, 8, blocked=True, state=1),
        capture.miss(1, 154 * US, 2, False),
        capture.records.sort(key=lambda record: record[16:24][::-1]),
        capture.string("kbarman.release=6.1.0"), capture.string("kbarman.command=./a"),
        capture.string("kbarman.idle.1=50,5,0,C1"), capture.string("kbarman.idle.2=200,10,0,C2")))


# ---- interrupts ----

def interrupts_take_time_from_tasks(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.irq(0, 10 * US, 12 * US, 40, task=7, behind=1)
    capture.irq(0, 12 * US, 13 * US, 40, task=7)
    capture.raised(0, 20 * US, NET_RX, task=7)
    capture.softirq_entry(0, 25 * US, NET_RX, task=7)
    capture.ipi(0, 27 * US, 31 * US, IPI_TIMER, task=7)    # inside of the softirq
    capture.softirq_exit(0, 35 * US, NET_RX, task=7)
    capture.switch(0, 40 * US, 9)
    capture.irq(0, 41 * US, 46 * US, 41, task=9)
    capture.switch(0, 50 * US, 0)
    save(capture, tmp)
    table = rows(tmp, option="--irq")
    assert [(i["what"], i["handler"], i["count"], i["own_ns"], i["longest_ns"])
            for i in of_kind(table, "interrupt")] == [
        ("softirq", "NET_RX", 1, 6 * US, 6 * US), ("irq", "irq 41", 1, 5 * US, 5 * US),
        ("ipi", "Local timer interrupts", 1, 4 * US, 4 * US), ("irq", "disk", 1, 2 * US, 2 * US),
        ("irq", "sound", 1, 1 * US, 1 * US)], table
    net = only(table, "interrupt", handler="NET_RX")
    assert (net["raised"], net["delays"], net["delay_ns"], net["longest_delay_ns"]) == (
        1, 1, 5 * US, 5 * US), net
    assert [(f["handler"], f["task"], f["duration_ns"]) for f in of_kind(table, "interrupt_from")] == [
        ("NET_RX", "worker", 6 * US), ("irq 41", "hog", 5 * US), ("Local timer interrupts", "worker", 4 * US),
        ("disk", "worker", 2 * US), ("sound", "worker", 1 * US)], table
    cpu = only(table, "cpu_time")
    assert cpu["task_ns"] == (50 - 6 - 5 - 4 - 3) * US and cpu["softirq_ns"] == 6 * US, cpu
    assert sum(cpu[key] for key in cpu if key.endswith("_ns")) - cpu["first_ns"] - \
        cpu["last_ns"] == cpu["last_ns"] - cpu["first_ns"] == 50 * US, cpu
    text = tap.run("report", "--irq", cwd=tmp).stdout
    assert re.search(r"^ +6\.000 +12\.00% +1 +6\.000 +6\.000 +1 +5\.000 +5\.000  NET_RX "
                     r"\(softirq\)$", text, re.M), text
    assert re.search(r"^ +2\.000 +11\.11% +1  worker +disk \(interrupt\)$", text, re.M), text
    assert [i["handler"] for i in of_kind(rows(tmp, "--task", "hog", option="--irq"), "interrupt")
            ] == ["irq 41"]


def who_asks_for_a_softirq_need_not_be_who_is_chosen(tmp):
    """The first request of worker is served in the time of hog."""
    capture = new(cores=1)
    capture.switch(0, 0, 7)
    capture.raised(0, 1 * US, NET_RX, task=7)
    capture.switch(0, 2 * US, 9)
    capture.softirq_entry(0, 3 * US, NET_RX, task=9)
    capture.softirq_exit(0, 4 * US, NET_RX, task=9)
    capture.switch(0, 900 * US, 7)
    capture.raised(0, 950 * US, NET_RX, task=7)
    capture.softirq_entry(0, 955 * US, NET_RX, task=7)
    capture.softirq_exit(0, 956 * US, NET_RX, task=7)
    save(capture, tmp)
    net = only(rows(tmp, "--task", "worker", option="--irq"), "interrupt")
    assert (net["raised"], net["count"], net["delays"], net["longest_delay_ns"]) == (
        2, 1, 1, 5 * US), net
    net = only(rows(tmp, "--time", "0.0009,", option="--irq"), "interrupt")
    assert (net["raised"], net["count"], net["delay_ns"]) == (1, 1, 5 * US), net


def halts_say_what_ended_them_and_what_would_have_paid(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 0)
    now = 0
    for state, ns, number, above, below in ((2, 10, 40, True, False), (2, 500, 41, False, False),
                                            (0, 900, None, False, True)):
        capture.halt(0, now + 1 * US, True, state)
        capture.halt(0, now + (1 + ns) * US, False)
        if above or below:
            capture.miss(0, now + (2 + ns) * US, state, below)
        if number:
            capture.irq(0, now + (3 + ns) * US, now + (4 + ns) * US, number)
        now += (10 + ns) * US
    # an interrupt inside of the halt
    capture.halt(0, now, True, 0)
    capture.irq(0, now + 5 * US, now + 6 * US, 41)
    capture.halt(0, now + 7 * US, False)
    capture.switch(0, now + 8 * US, 7)
    save(capture, tmp)
    table = rows(tmp, option="--irq")
    assert [(h["idle_state"], h["count"], h["duration_ns"], h["above"], h["above_ns"], h["below"], h["below_ns"])
            for h in of_kind(table, "halts")] == [
        (0, 2, 906 * US, 0, 0, 1, 900 * US), (2, 2, 510 * US, 1, 10 * US, 0, 0)], table
    assert sorted((e["idle_state"], e["name"], e["count"]) for e in of_kind(table, "halt_end")) == [
        (0, "irq 41", 1), (0, "unknown", 1), (2, "irq 41", 1), (2, "sound", 1)], table
    text = tap.run("report", "--irq", cwd=tmp).stdout
    assert "does not say" not in text.split("# Halts")[1], text
    assert re.search(r"^ +1  ended by no interrupt$", text, re.M), text
    assert re.search(r"^ +0 +2 +2 +255\.000 +1 +10\.000 +0 +0\.000$", text, re.M), text


STATES = {"idle.0": "0,0,0,POLL", "idle.1": "20,2,0,C1, shallow", "idle.2": "100,10,1,C2",
          "idle.3": "300,50,0,C3", "idle.3.1": "900,50,0,C3"}


def states_that_would_have_paid_are_named(tmp):
    """By the kernel's verdict, and among the states that are enabled."""
    capture, now = new(cores=2, **STATES), 0
    for core in 0, 1:
        capture.switch(core, 0, 0)
    for core, chosen, state, ns, below, paid in (
            (0, 3, 3, 299, False, 1), (0, 3, 3, 15, False, 0), (0, 1, 1, 302, True, 3),
            (0, 0, 0, 299, True, 1), (0, 0, 0, 300, True, 3), (0, 3, 3, 310, None, None),
            (1, 3, 3, 400, False, 1), (1, 0, 0, 400, True, 1),
            # the driver took another state than it was asked for
            (0, 3, 1, 500, True, 3),
            # the kernel's clock is not that of the records
            (0, 1, 1, 301, True, 3), (0, 1, 1, 21, False, 0)):
        capture.halt(core, now + 1 * US, True, chosen)
        capture.halt(core, now + (1 + ns) * US, False)
        capture.irq(core, now + (2 + ns) * US, now + (3 + ns) * US, 40)
        if below is not None:
            capture.miss(core, now + (4 + ns) * US, state, below)
        now += (10 + ns) * US
    capture.switch(0, now, 7)
    capture.switch(1, now, 9)
    save(capture, tmp)
    table = rows(tmp, option="--irq")
    assert [(p["cpu"], p["idle_state"], p["was"], p["paid"], p["count"], p["duration_ns"] // US)
            for p in of_kind(table, "halts_paid")] == [
        (0, 0, "below", 1, 1, 299), (0, 0, "below", 3, 1, 300), (0, 1, "above", 0, 1, 21),
        (0, 1, "below", 3, 3, 302 + 500 + 301), (0, 3, "above", 0, 1, 15),
        (0, 3, "above", 1, 1, 299), (1, 0, "below", 1, 1, 400), (1, 3, "above", 1, 1, 400)], table
    for row in of_kind(table, "halts"):
        for key in "above", "below":
            assert row[key] == sum(p["count"] for p in of_kind(
                table, "halts_paid", cpu=row["cpu"], idle_state=row["idle_state"], was=key)), row
            assert row[key + "_ns"] == sum(p["duration_ns"] for p in of_kind(
                table, "halts_paid", cpu=row["cpu"], idle_state=row["idle_state"], was=key)), row
    assert only(table, "halts", cpu=0, idle_state=1)["idle_state_name"] == "C1, shallow"
    deep = of_kind(table, "halt_miss", was="above")
    assert [(m["cpu"], m["idle_state"], m["paid"], m["duration_ns"] // US, m["off_ns"] // US) for m in deep] == [
        (1, 3, 1, 400, 500), (0, 3, 0, 15, 285), (0, 3, 1, 299, 1), (0, 1, 0, 21, 0)], deep
    shallow = of_kind(table, "halt_miss", was="below")
    assert [(m["duration_ns"] // US, m["chosen"], m["idle_state"]) for m in shallow][:2] == [
        (500, 3, 1), (400, 0, 0)], shallow
    text = tap.run("report", "--irq", cwd=tmp).stdout
    assert re.search(r"^ +3  too shallow: state 3 \(C3\) would have paid$", text, re.M), text
    assert re.search(r"^ +500\.000 +500\.000 +[0-9.]+  CPU 0 in state 1 \(C1, shallow\) instead of "
                     r"state 3, state 3 \(C3\) would have paid: ended by sound \(interrupt\)$", text,
                     re.M), text


def a_halt_says_who_ended_it(tmp):
    """The interrupt, the task that ran then, and who woke it."""
    through_an_idle_cpu(tmp, extra=lambda capture: None)
    capture = new(**STATES)
    capture.switch(0, 1 * US, 8)
    capture.switch(1, 1 * US, 0)
    for now, then in (0, 7), (1000 * US, 0):
        capture.halt(1, now + 3 * US, True, 3)
        if then:
            capture.waking(0, now + 100 * US, waker=8, woken=7, cpu=1)
        capture.halt(1, now + 150 * US, False)
        capture.irq_entry(1, now + 151 * US, 40)
        if then:
            capture.ipi(1, now + 151 * US, now + 153 * US, IPI_RESCHEDULE)
        capture.irq_exit(1, now + 154 * US, 40)
        capture.miss(1, now + 155 * US, 3, False)
        if then:
            capture.switch(1, now + 160 * US, 7)
            capture.switch(1, now + 200 * US, 0, blocked=True, state=1)
    save(capture, tmp)
    first, second = of_kind(rows(tmp, option="--irq"), "halt_miss")
    assert (first["at_ns"], first["ended_by"], first["ended_by_name"], first["task"], first["by_name"],
            first["by_cpu"]) == (3 * US, "ipi", "Rescheduling interrupts", "worker", "waker", 0), first
    assert (second["ended_by"], second["ended_by_id"]) == ("irq", 40) and "task" not in second, second
    assert "by" not in second, second
    text = tap.run("report", "--irq", cwd=tmp).stdout
    assert re.search(r"ended by Rescheduling interrupts for worker \(7\), woken by waker \(8\) on CPU 0$",
                     text, re.M), text


def without_states_in_the_capture_nobody_guesses(tmp):
    capture = new(cores=1, **{"idle.1": "x,2,0,C1", "idle.2": "4", "idle.300": "1,1,0,far",
                              "idle.1.": "1,1,0,none", "idle.99999999999": "1,1,0,far"})
    capture.switch(0, 0, 0)
    capture.halt(0, 1 * US, True, 1)
    capture.halt(0, 5 * US, False)
    capture.miss(0, 6 * US, 1, True)
    capture.switch(0, 9 * US, 7)
    save(capture, tmp)
    table = rows(tmp, option="--irq")
    assert "paid" not in only(table, "halts_paid") and "paid" not in only(table, "halt_miss"), table
    assert only(table, "halts_paid")["count"] == only(table, "halts")["below"] == 1, table
    assert "would have paid" not in tap.run("report", "--irq", cwd=tmp).stdout


def nobody_takes_silence_for_states_that_paid(tmp):
    """Linux before 6.1 does not say what did not pay; a later one may find nothing."""
    for sources, release, said in (
            ("irq,freq", None, "it does so from 6.1 on"), ("irq", None, "The capture does not say which states"),
            ("irq,freq", "6.1.0-56-arm64", "that it was too deep or not deep enough.\n"),
            ("irq,freq", "7.3-amd64", "that it was too deep or not deep enough.\n"),
            ("irq,freq", "6.0.1", "This kernel does not say which"), ("irq,freq", "5.10.0", "This kernel does not")):
        capture = new(cores=1, sources=sources, **({"release": release} if release else {}))
        capture.switch(0, 0, 0)
        capture.halt(0, 1 * US, True, 1)
        capture.halt(0, 5 * US, False)
        capture.irq(0, 6 * US, 7 * US, 40)
        save(capture, tmp)
        assert said in tap.run("report", "--irq", cwd=tmp).stdout, (sources, release)


def an_ipi_of_arm64_is_no_nameless_interrupt(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, 0)
    capture.halt(0, 1 * US, True, 1)
    capture.halt(0, 5 * US, False)
    capture.irq_entry(0, 6 * US, 2)
    capture.ipi(0, 6 * US, 7 * US, IPI_RESCHEDULE)
    capture.irq_exit(0, 8 * US, 2)
    capture.switch(0, 9 * US, 7)
    save(capture, tmp)
    table = rows(tmp, option="--irq")
    end = only(table, "halt_end")
    assert (end["by"], end["id"], end["count"]) == ("ipi", IPI_RESCHEDULE, 1), table


if __name__ == "__main__":
    tap.main(globals())
