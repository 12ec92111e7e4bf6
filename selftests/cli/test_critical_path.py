#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --critical-path` says of captures whose wait graph is known."""
import json
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import IPI_TIMER, IRQ, NET_RX, TASK, TIMER, SOFTIRQ, Late

MS = 1_000_000
FIRST, SECOND, THIRD, HOG = 7, 8, 9, 10


def new(cores=2, **facts):
    capture = Late(cores=cores, facts={"written.0": "1", "irq.40": "disk", **facts})
    for task, name in (FIRST, "first"), (SECOND, "second"), (THIRD, "third"), (HOG, "hog"):
        capture.task(task, name)
    return capture


def save(capture, tmp):
    return capture.save(os.path.join(tmp, "kbarman.cap"))


def mark(capture, core, when, task, text):
    data = text.encode() + b"\0"
    capture.record(5, core, when, struct.pack("<IQIIIB", task, len(data), 0, 0, 0, 1) + data)


def check_table(tmp, what, links):
    """The same links are the rows of a query."""
    done = tap.run("query", "--json", "kbarman.cap", f"SELECT * FROM critical_path('{what}')", cwd=tmp)
    assert done.returncode == 0, done
    rows = [{key: value for key, value in row.items() if value is not None} for row in json.loads(done.stdout or "[]")]
    assert rows == [{**{key: value for key, value in link.items() if key != "kind"}, "file": 1,
                     "gap": int(link["gap"])} for link in links], (rows, links)


def path(tmp, what, *options, status=0):
    """The head, and (what, task, from, until in ms, who) of each link."""
    done = tap.run("report", "--critical-path", what, "--json", *options, cwd=tmp)
    assert done.returncode == status, done
    head, *links = [json.loads(line) for line in done.stdout.splitlines()]
    assert head["links"] == len(links)
    at = head["from_ns"]
    for link in links:
        assert link["at_ns"] == at, (links, "a gap or an overlap")
        at += link["duration_ns"]
    assert not links or at == head["until_ns"], (head, links)
    if not status and not options:
        check_table(tmp, what, links)
    return head, [(link["what"], link["task"], link["at_ns"] / MS, (link["at_ns"] + link["duration_ns"]) / MS,
                   link.get("by_name")) for link in links]


def a_chain_of_pipes_leads_through_all_writers(tmp):
    capture = new(cores=3)
    for core, task in enumerate((FIRST, SECOND, THIRD)):
        capture.switch(core, 0, task)
    capture.switch(1, 1 * MS, 0, blocked=True, state=1)
    capture.switch(2, 1 * MS, 0, blocked=True, state=1)
    capture.waking(0, 10 * MS, waker=FIRST, woken=SECOND, cpu=1)
    capture.switch(1, 11 * MS, SECOND)
    capture.waking(1, 20 * MS, waker=SECOND, woken=THIRD, cpu=2)
    capture.switch(2, 22 * MS, THIRD)
    capture.switch(2, 30 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    head, links = path(tmp, "third")
    assert (head["task"], head["until_ns"], head["cut"]) == ("third", 30 * MS, False), head
    assert links == [
        ("run", "first", 0, 10, None), ("queue", "second", 10, 11, None),
        ("run", "second", 11, 20, None), ("queue", "third", 20, 22, None),
        ("run", "third", 22, 30, None)], links
    assert path(tmp, str(THIRD)) == (head, links)


def peers(tmp, name, softirq=NET_RX, raised=(), call=(44, 6, 0, 3, 99)):
    """First sends to second over a connection that is @name, in which a softirq wakes second on CPU 1.
    @raised: who asked for NET_RX before, and in what context."""
    capture = new(cores=2, machine="x86_64", objects="1", **({"object.6.99.0.0": name} if name else {}))
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    capture.switch(1, 1 * MS, 0, blocked=True, state=1, waits_for=(45, 6, 0, 4, 98))
    capture.waking(0, MS // 2, waker=FIRST, woken=THIRD, cpu=1)     # waits follow softirqs from there on
    for at, (task, context) in enumerate(raised, 1):
        capture.raised(0, at * MS, NET_RX, task, context)
    capture.softirq_entry(0, 9 * MS, softirq, task=FIRST)
    capture.waking(0, 10 * MS, waker=FIRST, woken=SECOND, cpu=1, context=SOFTIRQ, by=call)
    capture.softirq_exit(0, 11 * MS, softirq, task=FIRST)
    capture.switch(1, 11 * MS, SECOND)
    capture.switch(1, 20 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    return path(tmp, "second")[1]


SENT = [("run", "first", 0, 10, None), ("queue", "second", 10, 11, None), ("run", "second", 11, 20, None)]


def who_sends_to_a_task_of_its_machine_is_waited_for(tmp):
    for name in ("tcp 127.0.0.1:80 -> 127.0.0.1:40112", "tcp 127.0.0.1:80 -> 127.0.0.2:80", "tcp [::1]:80 -> [::1]:1",
                 "udp 10.0.0.5:53 -> 10.0.0.5:4000"):
        assert peers(tmp, name) == SENT, name


def who_asked_for_the_softirq_sends_whatever_its_call_and_its_socket(tmp):
    own = (FIRST, TASK)
    for name, call in (None, (44, 6, 0, 3, 99)), (None, (54, 1, 0, 3, 6)), ("tcp 10.0.0.5:80 -> 10.0.0.6:80", (1, 6, 0, 3, 99)):
        assert peers(tmp, name, raised=[own], call=call) == SENT, (name, call)
        assert peers(tmp, name, raised=[own, own], call=call) == SENT, (name, call)
        waits = [json.loads(line) for line in tap.run("report", "--waits", "--json", cwd=tmp).stdout.splitlines()[1:]]
        assert [(row["by"], row.get("by_id"), row.get("by_call")) for row in waits if row["task"] == "second"] == [
            ("task", FIRST, {44: "sendto", 54: "setsockopt", 1: "write"}[call[0]])], waits


def who_sends_while_a_packet_comes_is_not_known_to_be_waited_for(tmp):
    name = "tcp 127.0.0.1:80 -> 127.0.0.1:40112"
    for raised in [(FIRST, IRQ)], [(FIRST, TASK), (FIRST, IRQ)], [(FIRST, IRQ), (FIRST, TASK)], [(SECOND, TASK)], \
            [(FIRST, SOFTIRQ)]:
        assert peers(tmp, name, raised=raised)[1][:2] == ("wait", "second"), raised


def a_softirq_that_is_over_was_asked_for_by_nobody_any_more(tmp):
    """First asked for one that is done when the next one begins, for which a card asked while it ran."""
    capture = new(cores=2, machine="x86_64", objects="1")
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    capture.switch(1, 1 * MS, 0, blocked=True, state=1)
    capture.raised(0, 2 * MS, NET_RX, FIRST, TASK)
    capture.softirq_entry(0, 3 * MS, NET_RX, FIRST)
    capture.raised(0, 4 * MS, NET_RX, FIRST, IRQ)
    capture.softirq_exit(0, 5 * MS, NET_RX, FIRST)
    capture.softirq_entry(0, 6 * MS, NET_RX, FIRST)
    capture.waking(0, 7 * MS, waker=FIRST, woken=SECOND, cpu=1, context=SOFTIRQ, by=(44, 6, 0, 3, 99))
    capture.softirq_exit(0, 8 * MS, NET_RX, FIRST)
    capture.switch(1, 9 * MS, SECOND)
    capture.switch(1, 20 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "second")[1][1] == ("wait", "second", 1, 7, "NET_RX")


def what_came_from_elsewhere_is_waited_for_as_a_softirq(tmp):
    for name, softirq in [(None, 3), ("tcp 10.0.0.5:80 -> 10.0.0.6:80", 3), ("tcp 127.0.0.1:80", 3), ("tcp  -> ", 3),
                          ("-> 127.0.0.1:80", 3), ("tcp 127.0.0.1:80 -> 10.0.0.6:80", 3), ("tcp : -> :", 3),
                          ("tcp 127.0.0.1:80 -> 127.0.0.1:40112", 1)]:
        assert [(what, task) for what, task, *_ in peers(tmp, name, softirq)] == [
            ("run", "second"), ("wait", "second"), ("queue", "second"), ("run", "second")], (name, softirq)


def who_holds_a_lock_is_waited_for(tmp):
    """A convoy: second and third wait for the lock that first holds, and get it in turn."""
    capture = new(cores=3)
    for core, task in enumerate((FIRST, SECOND, THIRD)):
        capture.switch(core, 0, task)
    capture.switch(1, 2 * MS, 0, blocked=True, state=1)
    capture.switch(2, 3 * MS, 0, blocked=True, state=1)
    for core, task, woken in (0, FIRST, SECOND), (1, SECOND, THIRD):
        capture.waking(core, (core + 1) * 10 * MS, waker=task, woken=woken, cpu=core + 1)
        capture.switch(core + 1, (core + 1) * 10 * MS, woken)
    capture.switch(2, 25 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "third")[1] == [("run", "first", 0, 10, None), ("run", "second", 10, 20, None),
                                     ("run", "third", 20, 25, None)]


def priority_inversion_shows_who_ran_instead(tmp):
    """First waits for a lock of second, which hog keeps from running."""
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    capture.switch(0, 1 * MS, 0, blocked=True, state=2)
    capture.switch(1, 5 * MS, HOG)
    capture.switch(1, 50 * MS, SECOND)
    capture.waking(1, 55 * MS, waker=SECOND, woken=FIRST)
    capture.switch(0, 56 * MS, FIRST)
    capture.switch(0, 60 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "second", 0, 5, None), ("preempted", "second", 5, 50, "hog"),
        ("run", "second", 50, 55, None), ("queue", "first", 55, 56, None),
        ("run", "first", 56, 60, None)]


def a_task_whose_cpu_idles_though_it_could_run_is_throttled(tmp):
    """Its group is out of time: twice the CPU idles at once, and once after another task."""
    capture = new()
    capture.switch(0, 0, FIRST)
    capture.switch(0, 10 * MS, 0)
    capture.switch(0, 30 * MS, FIRST)
    capture.switch(0, 40 * MS, SECOND)
    capture.switch(0, 42 * MS, 0, blocked=True, state=1)
    capture.switch(0, 50 * MS, FIRST)
    capture.switch(0, 60 * MS, SECOND)
    capture.switch(0, 66 * MS, 0, blocked=True, state=1)
    capture.switch(0, 70 * MS, FIRST)
    capture.switch(0, 80 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "first", 0, 10, None), ("throttled", "first", 10, 30, None), ("run", "first", 30, 40, None),
        ("throttled", "first", 40, 50, None), ("run", "first", 50, 60, None), ("preempted", "first", 60, 70, "second"),
        ("run", "first", 70, 80, None)]
    text = tap.run("report", "--critical-path", "first", cwd=tmp).stdout
    assert "first (7) throttled: could have run, and its CPU idled\n" in text, text


def a_task_that_another_cpu_takes_is_not_throttled(tmp):
    """That one idled, but the task was in the queue of the first CPU, which was busy."""
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, 0)
    capture.switch(0, 10 * MS, HOG)
    capture.switch(1, 30 * MS, FIRST)
    capture.switch(1, 40 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert [what for what, *_ in path(tmp, "first")[1]] == ["run", "preempted", "run"]


def a_timer_ends_a_wait_of_the_task_itself(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, FIRST)
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    capture.softirq_entry(0, 105 * MS, TIMER)
    capture.waking(0, 105 * MS, waker=0, woken=FIRST, context=SOFTIRQ)
    capture.softirq_exit(0, 105 * MS, TIMER)
    capture.switch(0, 106 * MS, FIRST)
    capture.switch(0, 110 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "first", 0, 5, None), ("wait", "first", 5, 105, "TIMER"),
        ("queue", "first", 105, 106, None), ("run", "first", 106, 110, None)]


def a_device_is_known_by_its_interrupt(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, FIRST)
    capture.switch(0, 5 * MS, HOG, blocked=True, state=2)
    capture.irq_entry(0, 20 * MS, 40, task=HOG)
    capture.waking(0, 20 * MS, waker=HOG, woken=FIRST, context=IRQ)
    capture.irq_exit(0, 21 * MS, 40, task=HOG)
    capture.switch(0, 30 * MS, FIRST)
    capture.switch(0, 32 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "first", 0, 5, None), ("wait", "first", 5, 20, "disk"),
        ("queue", "first", 20, 30, "hog"), ("run", "first", 30, 32, None)]
    text = tap.run("report", "--critical-path", "first", cwd=tmp).stdout
    assert "back from first (7), from 0.000000 ms to 32.000000 ms: 32.000000 ms, 4 links" in text, text
    assert re.search(r"^ +15\.000000 +46\.88% +1  first \(7\) waited for disk \(interrupt\)$", text,
                     re.M), text
    assert re.search(r"^ +20\.000000 +10\.000000  first \(7\) woken, waited for its CPU behind hog "
                     r"\(10\)$", text, re.M), text


def who_ran_most_of_a_long_wait_is_named_whatever_ran_at_its_end(tmp):
    """Hog has the CPU for most of the time, but the last of the many pieces are those of a slow interrupt; in the
    second wait, those of another task."""
    capture = new(cores=1)
    capture.switch(0, 0, FIRST)
    capture.switch(0, 10 * MS, HOG)
    for at in range(350, 450):
        capture.ipi(0, at * MS, at * MS + MS * 9 // 10, IPI_TIMER, task=HOG)
    capture.switch(0, 450 * MS, FIRST)
    for at in range(450, 550):                  # short runs: for these waits, little is to be looked at
        capture.switch(0, at * MS + MS // 4, SECOND)
        capture.switch(0, at * MS + MS // 2, FIRST)
    capture.switch(0, 600 * MS, HOG)
    capture.switch(0, 900 * MS, SECOND)
    for at in range(900, 1000):
        capture.irq(0, at * MS, at * MS + 1000, 40, task=SECOND)
    capture.switch(0, 1000 * MS, FIRST)
    capture.switch(0, 1010 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    _, links = path(tmp, "first")
    assert [link for link in links if link[3] - link[2] > 99 and link[0] != "run"] == [
        ("preempted", "first", 10, 450, "hog"), ("preempted", "first", 600, 1000, "hog")], links


def a_workqueue_leads_to_its_worker_and_on_to_who_asked(tmp):
    capture = new(cores=2)
    capture.task(20, "kworker/1:0")
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, 20)
    capture.switch(1, 1 * MS, 0, blocked=True, state=0x402)
    capture.waking(0, 5 * MS, waker=FIRST, woken=20, cpu=1)
    capture.switch(0, 6 * MS, 0, blocked=True, state=2)      # waits until the work is done
    capture.switch(1, 7 * MS, 20)
    capture.waking(1, 15 * MS, waker=20, woken=FIRST)
    capture.switch(0, 15 * MS, FIRST)
    capture.switch(0, 20 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "first", 0, 5, None), ("queue", "kworker/1:0", 5, 7, None),
        ("run", "kworker/1:0", 7, 15, None), ("run", "first", 15, 20, None)]


def a_path_goes_back_from_the_end_of_the_time_that_is_wanted_to_its_begin(tmp):
    a_chain_of_pipes_leads_through_all_writers(tmp)
    for task, window, want in [
            ("third", "0.012,0.025", [("run", "second", 12, 20, None), ("queue", "third", 20, 22, None),
                                      ("run", "third", 22, 25, None)]),
            # it was woken there, and ran later
            ("third", "0.002,0.021", [("run", "first", 2, 10, None), ("queue", "second", 10, 11, None),
                                      ("run", "second", 11, 20, None), ("queue", "third", 20, 21, None)]),
            # it waited all the time, for what shows itself later
            ("third", "0.002,0.008", [("run", "first", 2, 8, None)]),
            ("second", ",0.005", [("run", "second", 0, 1, None), ("run", "first", 1, 5, None)]),
            # its end is in that time
            ("third", "0.025,0.5", [("run", "third", 25, 30, None)])]:
        head, links = path(tmp, task, "--time", window)
        assert links == want and (head["from_ns"], head["until_ns"]) == (want[0][2] * MS, want[-1][3] * MS), (head, links)
    text = tap.run("report", "--critical-path", "third", "--time", "0.002,0.008", cwd=tmp).stdout
    assert "back from third (9), from 2.000000 ms to 8.000000 ms: 6.000000 ms, 1 link\n" in text, text
    done = tap.run("report", "--critical-path", "a..b", "--time", "0,1", cwd=tmp)
    assert done.returncode == 2 and "two marks are the time" in done.stderr, done
    done = tap.run("report", "--critical-path", "third", "--time", "5,6", cwd=tmp)
    assert done.returncode == 2 and "nothing is in the time of --time: it is 0.030000000 s long" in done.stderr, done


def a_wait_that_does_not_end_goes_to_the_end_of_the_time(tmp):
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 2 * MS, SECOND)
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    capture.switch(1, 90 * MS, 0, blocked=True, state=1)
    save(capture, tmp)
    assert path(tmp, "first", "--time", "0.004,0.05")[1] == [("run", "first", 4, 5, None), ("unknown", "first", 5, 50, None)]
    assert path(tmp, "first", "--time", "0.010,")[1] == [("unknown", "first", 10, 90, None)]
    assert path(tmp, "second", "--time", "0.001,0.050")[1] == [("unseen", "second", 1, 2, None), ("run", "second", 2, 50, None)]


def in_a_time_a_wait_leads_no_further_than_it_lasts(tmp):
    """What second did before first waited for it made the end late, and is not what first waited for in that time."""
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    capture.switch(1, 1 * MS, 0, blocked=True, state=1)
    capture.irq_entry(1, 48 * MS, 40)
    capture.waking(1, 48 * MS, waker=0, woken=SECOND, context=IRQ)
    capture.irq_exit(1, 48 * MS, 40)
    capture.switch(1, 48 * MS, SECOND)
    capture.switch(0, 49 * MS, 0, blocked=True, state=1)
    capture.waking(1, 50 * MS, waker=SECOND, woken=FIRST)
    capture.switch(0, 50 * MS, FIRST)
    capture.switch(0, 60 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [("run", "second", 0, 1, None), ("wait", "second", 1, 48, "disk"),
                                     ("run", "second", 48, 50, None), ("run", "first", 50, 60, None)]
    assert path(tmp, "first", "--time", "0.010,0.060")[1] == [
        ("run", "first", 10, 49, None), ("run", "second", 49, 50, None), ("run", "first", 50, 60, None)]


def waits_lead_through_all_tasks_as_long_as_they_last(tmp):
    """First waits for second, which waits for third meanwhile; before and behind that it ran."""
    capture = new(cores=3)
    for core, task in enumerate((FIRST, SECOND, THIRD)):
        capture.switch(core, 0, task)
    capture.switch(0, 10 * MS, 0, blocked=True, state=1)
    capture.switch(1, 20 * MS, 0, blocked=True, state=1)
    capture.waking(2, 40 * MS, waker=THIRD, woken=SECOND)
    capture.switch(1, 45 * MS, SECOND)
    capture.waking(1, 50 * MS, waker=SECOND, woken=FIRST)
    capture.switch(0, 50 * MS, FIRST)
    capture.switch(0, 60 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    whole = [("run", "first", 0, 10, None), ("run", "second", 10, 20, None), ("run", "third", 20, 40, None),
             ("queue", "second", 40, 45, None), ("run", "second", 45, 50, None), ("run", "first", 50, 60, None)]
    assert path(tmp, "first", "--time", "0,0.060")[1] == whole
    for begin in range(0, 60, 3):
        for end in range(begin + 1, 60, 5):
            want = [(*link[:2], max(link[2], begin), min(link[3], end), None) for link in whole
                    if link[2] < end and begin < link[3]]
            assert path(tmp, "first", "--time", f"{begin}ms,{end}ms")[1] == want, (begin, end)


class Model:
    """Five tasks on three CPUs that block, wake each other and are preempted at random, and what each did when."""

    def __init__(self, seed):
        self.random, self.now, self.end = random.Random(seed), 0, 0
        self.tasks = range(7, 12)
        self.capture = Late(cores=3, facts={"written.0": "1", "irq.40": "disk"})
        self.did = {task: [] for task in self.tasks}       # since, until, what, the task that woke
        self.what = dict.fromkeys(self.tasks, "unknown")   # it does now; unknown: it is blocked
        self.since = dict.fromkeys(self.tasks, 0)
        self.runs = list(self.tasks)[:3]
        self.idle = {core: [] for core in range(3)}        # since, until
        self.left = {}                                     # the core of a task that was preempted, and whether it idled then
        for core, task in enumerate(self.runs):
            self.capture.switch(core, 0, task)
            self.what[task] = "run"
        for _ in range(200):
            self.now += self.random.randint(1, 5) * 1000
            self.random.choice([self.switch, self.wake])(self.random.randrange(3))
        self.end = self.now
        for task in self.tasks:
            what = self.what[task]
            self.ends(task, "throttled" if what == "preempted" and self.throttled(task) else what)

    def ends(self, task, what, then="", waker=0):
        self.did[task].append((self.since[task], self.now, what, waker))
        self.since[task], self.what[task] = self.now, then

    def switch(self, core):
        ready = [task for task in self.tasks if self.what[task] in ("queue", "preempted")]
        old, new = self.runs[core], self.random.choice([*ready, 0])
        blocked = self.random.random() < 0.6
        if old:
            self.ends(old, "run", "unknown" if blocked else "preempted")
            self.left[old] = core, not new
        else:
            self.idle[core][-1][1] = self.now
        if not new:
            self.idle[core].append([self.now, self.now])
        if new:
            self.ends(new, "throttled" if self.what[new] == "preempted" and self.throttled(new, core) else self.what[new], "run")
        self.capture.switch(core, self.now, new, blocked=blocked, state=int(blocked))
        self.runs[core] = new

    def throttled(self, task, core=None):
        left, idled = self.left[task]
        begin = self.since[task]
        idle = sum(max(until - max(since, begin), 0) for since, until in self.idle[left])
        return idled or (left == core and idle > (self.now - begin) // 2)

    def wake(self, core):
        asleep = [task for task in self.tasks if self.what[task] == "unknown"]
        if not asleep:
            return
        task, waker = self.random.choice(asleep), self.runs[core]
        if waker and self.random.random() < 0.8:
            self.capture.waking(core, self.now, waker=waker, woken=task)
            self.ends(task, "through", "queue", waker)
        else:
            self.capture.irq_entry(core, self.now, 40, task=waker)
            self.capture.waking(core, self.now, waker=waker, woken=task, context=IRQ)
            self.capture.irq_exit(core, self.now, 40, task=waker)
            self.ends(task, "wait", "queue")

    def path(self, task, begin, end):
        for since, until, what, waker in self.did[task]:
            since, until = max(since, begin), min(until, end)
            if since < until and what == "through":
                yield from self.path(waker, since, until)
            elif since < until:
                yield task, what, since, until


def joined(links):
    """Those of one kind that follow each other."""
    found = []
    for task, what, since, until in links:
        if found and found[-1][:2] == (task, what):
            since = found.pop()[2]
        found.append((task, what, since, until))
    return found


def random_waits_are_followed_as_a_model_does(tmp):
    for seed in range(10):
        model = Model(seed)
        save(model.capture, tmp)
        for task in model.tasks:
            begin, end = sorted(model.random.sample(range(model.end), 2))
            done = tap.run("report", "--json", "--critical-path", task, "--time", f"{begin}ns,{end}ns", cwd=tmp)
            assert done.returncode == 0, done
            links = [json.loads(line) for line in done.stdout.splitlines()][1:]
            got = joined((link["tid"], link["what"], link["at_ns"], link["end_ns"]) for link in links)
            assert got == joined(model.path(task, begin, end)), (seed, task, begin, end, got)


def a_task_that_ended_before_the_time_is_not_there(tmp):
    a_chain_of_pipes_leads_through_all_writers(tmp)
    capture = new(cores=1)
    capture.switch(0, 0, FIRST)
    capture.switch(0, 5 * MS, SECOND, blocked=True, state=16)
    capture.switch(0, 50 * MS, 0, blocked=True, state=1)
    save(capture, tmp)
    for window in "0.010,0.020", "0.010,":
        done = tap.run("report", "--critical-path", "first", "--time", window, cwd=tmp)
        assert done.returncode == 2 and "no task 'first' ran in the time that is wanted" in done.stderr, done


def a_capture_without_wakeups_has_no_path(tmp):
    capture = new(cores=1, sources="sched")
    capture.switch(0, 0, FIRST)
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    save(capture, tmp)
    done = tap.run("report", "--critical-path", "first", cwd=tmp)
    assert done.returncode == 2 and "kbarman.cap has no wakeups: record with 'kbarman record --latency'" in done.stderr, done


def marks_choose_a_time(tmp):
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    mark(capture, 1, 3 * MS, SECOND, "begin")
    capture.switch(1, 4 * MS, 0, blocked=True, state=1)
    capture.waking(0, 10 * MS, waker=FIRST, woken=SECOND, cpu=1)
    capture.switch(1, 12 * MS, SECOND)
    mark(capture, 1, 20 * MS, SECOND, "end")
    capture.switch(1, 90 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    head, links = path(tmp, "begin..end")
    assert (head["from_ns"], head["until_ns"], head["task"]) == (3 * MS, 20 * MS, "second"), head
    assert links == [("run", "second", 3, 4, None), ("run", "first", 4, 10, None), ("queue", "second", 10, 12, None),
                     ("run", "second", 12, 20, None)], links


def a_mark_of_another_task_is_the_begin_of_what_led_to_the_second_one(tmp):
    """Second ran meanwhile, until it waited for first."""
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    mark(capture, 0, 3 * MS, FIRST, "begin")
    capture.switch(1, 8 * MS, 0, blocked=True, state=1)
    capture.waking(0, 10 * MS, waker=FIRST, woken=SECOND, cpu=1)
    capture.switch(1, 12 * MS, SECOND)
    mark(capture, 1, 20 * MS, SECOND, "end")
    save(capture, tmp)
    assert path(tmp, "begin..end")[1] == [("run", "first", 3, 10, None), ("queue", "second", 10, 12, None),
                                          ("run", "second", 12, 20, None)]


def what_is_not_there_is_said(tmp):
    capture = new()
    capture.switch(0, 0, FIRST)
    mark(capture, 0, 1, FIRST, "begin")
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    save(capture, tmp)
    for what, said in (("nobody", "no task 'nobody' ran"), ("4711", "no task 4711 ran"),
                       ("begin..end", "no mark 'end' behind the first one"),
                       ("start..end", "no mark 'start'")):
        done = tap.run("report", "--critical-path", what, cwd=tmp)
        assert done.returncode == 2 and said in done.stderr and not done.stdout, done


def options_that_choose_are_refused(tmp):
    what_a_task_waits_for_at_the_end_is_no_part(tmp)
    for option in ["--latency"], ["--irq"], ["--task", "first"], ["--tid", "7"], ["-C", "0"]:
        done = tap.run("report", "--critical-path", "first", *option, cwd=tmp)
        assert done.returncode == 2 and "a report of its own" in done.stderr, done


def a_wait_without_a_wakeup_is_said(tmp):
    capture = new(cores=1)
    capture.switch(0, 0, FIRST)
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    capture.switch(0, 9 * MS, FIRST)
    capture.switch(0, 10 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [
        ("run", "first", 0, 5, None), ("unknown", "first", 5, 9, None), ("run", "first", 9, 10, None)]


def links_in_a_gap_are_marked(tmp):
    capture = new(cores=2, **{"lost.1.full": "3"})
    capture.switch(0, 0, FIRST)
    capture.switch(1, 1 * MS, HOG)
    capture.switch(0, 2 * MS, 0, blocked=True, state=1)
    capture.lost(1, 4 * MS, 3)
    capture.irq_entry(0, 5 * MS, 40)
    capture.waking(0, 5 * MS, waker=0, woken=FIRST, context=IRQ)
    capture.irq_exit(0, 5 * MS, 40)
    capture.switch(0, 6 * MS, FIRST)
    capture.switch(0, 7 * MS, 0, blocked=True, state=16)
    save(capture, tmp)
    done = tap.run("report", "--critical-path", "first", "--json", cwd=tmp)
    links = [json.loads(line) for line in done.stdout.splitlines()][1:]
    assert [(link["what"], link["gap"]) for link in links] == [
        ("run", True), ("wait", True), ("queue", False), ("run", False)], links


def what_a_task_waits_for_at_the_end_is_no_part(tmp):
    capture = new(cores=2)
    capture.switch(0, 0, FIRST)
    capture.switch(1, 0, SECOND)
    capture.switch(0, 5 * MS, 0, blocked=True, state=1)
    capture.waking(1, 8 * MS, waker=SECOND, woken=FIRST)
    capture.switch(1, 9 * MS, 0, blocked=True, state=1)
    save(capture, tmp)
    assert path(tmp, "first")[1] == [("run", "first", 0, 5, None)]


def full(directory):
    """A capture whose path has all keys."""
    a_device_is_known_by_its_interrupt(directory)


if __name__ == "__main__":
    tap.main(globals())
