#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --classes` says of captures in which each nanosecond is known: of a simulated machine, and
of cases made by hand."""
import collections
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import IRQ, SOFTIRQ, TASK, IDLE, Late
from make_capture import Maker

READ, WRITE, CLOSE, POLL, CLONE, FUTEX, EXIT_GROUP = 0, 1, 3, 7, 56, 202, 231
NAMES = {READ: "read", WRITE: "write", POLL: "poll", CLONE: "clone", FUTEX: "futex", EXIT_GROUP: "exit_group"}
CALL, NO_CALL, FILE, FUTEX_OBJECT = 1, 2, 3, 8
SLEEPS, WAITS_FOR_DISK, DEAD = 1, 2, 0x80
ALL = "syscalls,faults,irq,softirq,wake"
KTHREADS = 900      # tasks from here on are the kernel's


class Capture(Late):
    def __init__(self, cores=2, sources=ALL, **facts):
        super().__init__(cores=cores, facts={"machine": "x86_64", "sources": sources, "objects": "1",
                                             "states": "I402,D2,S1,T4,X80", **facts})

    def block_in(self, core, when, task, call, kind=CALL, value=0, number=0, state=SLEEPS):
        """The task that runs waits in a call."""
        self.switch(core, when, task, blocked=True, state=state, waits_for=(call, kind, 0, number, value))


def lines(tmp, *args):
    done = tap.run("report", "--classes", "--json", *args, cwd=tmp)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def word(row):
    """What a row is, in a word: its class, and the call, the kind of fault or what it waited for."""
    if row["class"] == "wait":
        return "wait", row.get("call"), row.get("object") or row["state"], row.get("object_value")
    return row["class"], row.get("call") or row.get("fault")


def sums(rows):
    """By task and by CPU, after a look whether they add up."""
    head = rows[0]
    tasks, cpus = collections.defaultdict(dict), collections.defaultdict(dict)
    lived = {(row["tid"], row["task"]): row["lived_ns"] for row in rows if row["kind"] == "class_task"}
    for row in rows:
        if row["kind"] == "class_of":
            assert word(row) not in tasks[row["tid"], row["task"]], row
            tasks[row["tid"], row["task"]][word(row)] = row["sum_ns"]
        elif row["kind"] == "class_cpu":
            cpus[row["cpu"]][row["class"]] = row["sum_ns"]
    for key, found in tasks.items():
        assert sum(found.values()) == lived[key], (key, lived[key], found)
    by_class = collections.Counter()
    for found in tasks.values():
        for what, ns in found.items():
            by_class[what[0]] += ns
    assert by_class == {row["class"]: row["sum_ns"] for row in rows if row["kind"] == "class_sum"}
    return head, dict(tasks), dict(cpus)


def read(tmp, capture, *args):
    capture.save(os.path.join(tmp, "kbarman.cap"))
    head, tasks, cpus = sums(lines(tmp, *args))
    if not args:
        for found in cpus.values():
            assert sum(found.values()) == head["duration_ns"], (head, found)
    return {tid: found for (tid, _), found in tasks.items()}, cpus


# ---- a simulated machine ----

class Task:
    def __init__(self, tid):
        self.tid, self.state, self.waits = tid, "blocked", ("wait", None, "S", None)
        self.call, self.begin, self.fault = None, None, None
        self.told_call, self.last_call = None, None     # where it blocked; which ended last
        self.open, self.evidence = [], None     # what is not decided; from which of these on it is in the call
        self.is_kernel, self.known, self.told, self.new = tid >= KTHREADS, False, None, False

    def truth(self):
        if self.fault:
            return "fault", self.fault[1]
        if self.call is not None:
            return "call", NAMES[self.call]
        return ("kernel", None) if self.is_kernel else ("user", None)


class Machine:
    """What it records, and what its tasks and CPUs truly did: all of it, and what can be known of it."""

    def __init__(self, seed, cores=3):
        self.random, self.cores, self.now, self.events = random.Random(seed), cores, 1000, []
        self.cpu = [None] * cores
        self.handlers = [[] for _ in range(cores)]
        self.tasks = {tid: Task(tid) for tid in [*range(10, 16), KTHREADS, KTHREADS + 1]}
        self.known = collections.defaultdict(collections.Counter)
        self.true = collections.defaultdict(collections.Counter)
        self.faults = collections.defaultdict(collections.Counter)  # in calls; by task, and by CPU, which is below 0
        self.known_cpus = [collections.Counter() for _ in range(cores)]
        self.true_cpus = [collections.Counter() for _ in range(cores)]
        self.in_handler = [[] for _ in range(cores)]    # times
        self.first = [None] * cores
        self.next_tid = 100
        for task in self.tasks.values():
            if not task.is_kernel and self.random.random() < .5:
                task.call = self.random.choice([READ, POLL])
                task.waits = ("wait", NAMES[task.call], "call", None)

    # what happens

    def pass_time(self, ns):
        self.now += ns
        for core, task in enumerate(self.cpu):
            if self.first[core] is None:
                self.known_cpus[core]["unknown"] += ns if self.events else 0
                continue
            handlers = self.handlers[core]
            if handlers:
                what = handlers[-1], None
                self.in_handler[core].append((self.now - ns, self.now))
            elif task is None:
                what = "idle", None
            else:
                what = task.truth()
            self.true_cpus[core][what[0]] += ns
            if task is not None:
                self.true[task.tid][what] += ns
            if task is not None and task.fault and task.call is not None and not handlers:
                self.faults[task.tid]["call", NAMES[task.call]] += ns
                self.faults[core - self.cores]["call"] += ns
            if task is None or handlers or what[0] == "kernel" and task.known:
                self.known_cpus[core][what[0]] += ns
                if task is not None:
                    self.known[task.tid][what] += ns
            else:
                task.open.append([what, ns, core])
        for task in self.tasks.values():
            if task.told and task.state != "on":
                what = ("runnable", None) if task.state == "runnable" else task.waits
                self.known[task.tid][what] += ns
                self.true[task.tid][what] += ns

    def event(self, core, name, *args, **kwargs):
        if self.first[core] is None:
            self.first[core] = self.now
        self.events.append((core, self.now, name, args, kwargs))

    def decide(self, task, choose):
        """@choose: what a piece is, by its truth and whether the task was surely in its call; None: still open."""
        rest = []
        for i, (truth, ns, core) in enumerate(task.open):
            what = choose(truth, task.evidence is not None and i >= task.evidence)
            if what is None:
                rest.append([truth, ns, core])
            else:
                self.known[task.tid][what] += ns
                self.known_cpus[core][what[0]] += ns
        task.open = rest

    def end(self, task):
        """The capture ends, or the task does: what is open stays so."""
        name = NAMES.get(task.told_call)
        again = task.told_call == task.last_call    # it may be what Linux does after the end of the one before
        self.decide(task, lambda truth, sure: ("call", name) if sure and not again else ("running", name))

    def runs(self, core):
        task = self.cpu[core]
        return task.tid if task else 0

    def switch(self, core, blocked, waits_for=None, state=SLEEPS):
        before = self.cpu[core]
        ready = [task for task in self.tasks.values() if task.state == "runnable"]
        after = self.random.choice(ready) if ready else None
        if before is None and after is None:
            return
        self.event(core, "switch", after.tid if after else 0, blocked=blocked, state=state if blocked else 0,
                   waits_for=waits_for)
        if before:
            before.state = "blocked" if blocked else "runnable"
            before.told = True
        if after:
            after.state, after.told = "on", True
        self.cpu[core] = after

    def block(self, core):
        task = self.cpu[core]
        if task.is_kernel:
            task.waits = ("wait", None, "S", None)
            self.switch(core, True)
            self.decide(task, lambda truth, sure: truth)
            task.known = True
        elif task.call is not None:
            kind, value = self.random.choice([(CALL, None), (FILE, 77), (FUTEX_OBJECT, 4096)])
            task.waits = ("wait", NAMES[task.call], {CALL: "call", FILE: "file", FUTEX_OBJECT: "futex"}[kind],
                          value)
            task.evidence = len(task.open) if task.evidence is None else task.evidence
            task.told_call = task.call
            self.switch(core, True, (task.call, kind, 0, 0, value or 0))
        elif task.fault:
            task.waits = ("wait", None, "no_call", None)
            task.told_call = None
            self.switch(core, True, (0, NO_CALL, 0, 0, 4096), WAITS_FOR_DISK)

    def end_call(self, core):
        task = self.cpu[core]
        name = NAMES[task.call]
        if task.begin:
            self.event(core, "syscall", task.tid, task.call, task.begin, 1)
            self.decide(task, lambda truth, sure: truth)
        else:
            self.event(core, "syscall", task.tid, task.call, 0, 0 if task.new else 1)
            self.decide(task, lambda truth, sure: ("call", name) if sure or task.new else ("running", name))
        task.last_call = task.call
        task.call, task.begin, task.evidence, task.told_call, task.new = None, None, None, None, False

    def end_fault(self, core):
        task = self.cpu[core]
        begin, kind = task.fault
        user = task.call is None
        self.event(core, "fault", task.tid, begin, int(kind == "major"), 4096, 0x401000, kernel=not user)
        kept = sum(1 for truth, _, _ in task.open[:task.evidence] if truth[0] != "fault")
        self.decide(task, lambda truth, sure: truth if user or truth[0] == "fault" else None)
        if task.evidence is not None:
            task.evidence = kept
        task.fault = None

    def act_in_program(self, core, task):
        act = self.random.random()
        if task.fault:
            (self.block if act < .3 else self.end_fault)(core)
        elif act < .2:
            task.fault = self.now, self.random.choice(["minor", "major"])
        elif task.call is not None:
            (self.block if act < .5 else self.end_call)(core)
        elif act < .23 and len(self.tasks) > 6:
            self.exit(core, task)
        else:
            task.call, task.begin = self.random.choice([READ, WRITE, POLL, FUTEX]), self.now

    def exit(self, core, task):
        task.call, task.told_call = EXIT_GROUP, EXIT_GROUP
        self.pass_time(self.random.randrange(1, 50))
        del self.tasks[task.tid]
        self.switch(core, True, (EXIT_GROUP, CALL, 0, 0, 0), DEAD)
        self.end(task)

    def wake(self, core):
        context = {"irq": IRQ, "softirq": SOFTIRQ}[self.handlers[core][-1]] if self.handlers[core] else \
            TASK if self.cpu[core] else IDLE
        asleep = [task for task in self.tasks.values() if task.state == "blocked"]
        if self.random.random() < .05 and context == TASK:
            task = self.tasks[self.next_tid] = Task(self.next_tid)
            task.call, task.new = CLONE, True
            self.next_tid += 1
            self.event(core, "waking", self.runs(core), task.tid, 0, context, new=True)
        elif asleep:
            task = self.random.choice(asleep)
            self.event(core, "waking", self.runs(core), task.tid, 0, context)
        else:
            return
        task.state, task.told = "runnable", True

    def step(self):
        self.pass_time(self.random.randrange(1, 100))
        core = self.random.randrange(self.cores)
        task, handlers, act = self.cpu[core], self.handlers[core], self.random.random()
        if handlers and (handlers[-1] == "irq" or act < .5):
            self.event(core, f"{handlers.pop()}_exit", 3, self.runs(core))
        elif act < .15 or handlers:
            handlers.append("irq")
            self.event(core, "irq_entry", 3, self.runs(core))
        elif act < .25:
            handlers.append("softirq")
            self.event(core, "softirq_entry", 3, self.runs(core))
        elif act < .4:
            self.wake(core)
        elif task is None or act < .5:
            self.switch(core, False)
        elif task.is_kernel:
            self.block(core)
        else:
            self.act_in_program(core, task)

    def run(self, steps):
        for _ in range(steps):
            self.step()
        for core, handlers in enumerate(self.handlers):
            while handlers:
                self.event(core, f"{handlers.pop()}_exit", 3, self.runs(core))
        # the capture ends with its last record
        self.event(0, "waking", self.runs(0), 0, 0, TASK)
        for task in self.tasks.values():
            self.end(task)

    # what is recorded

    def save(self, lost=None):
        """@lost: CPU, from when to when: what happened on it behind the one and in front of the other is lost."""
        capture = Capture(self.cores, **({"lost.0.full": "1"} if lost else {"written.0": "9", "lost.0.full": "0"}))
        for tid in sorted(self.true | self.known | self.tasks):
            capture.task(tid, f"task{tid}")
        told = False
        for core, when, name, args, kwargs in self.events:
            if lost and when >= lost[2] and not told:
                Maker.lost(capture, lost[0], lost[2], 1, 0, lost[1])
                told = True
            if lost and core == lost[0] and lost[1] < when < lost[2]:
                continue
            getattr(capture, name)(core, when, *args, **kwargs)
        return capture


def nonzero(counts):
    return {what: ns for what, ns in counts.items() if ns}


def all_classes_of_a_simulated_machine_are_exact(tmp):
    for seed in range(25):
        machine = Machine(seed)
        machine.run(1500)
        tasks, cpus = read(tmp, machine.save())
        for tid in machine.known:
            assert tasks.get(tid, {}) == nonzero(machine.known[tid]), (seed, tid, tasks.get(tid), machine.known[tid])
        for core in range(machine.cores):
            assert cpus[core] == nonzero(machine.known_cpus[core]), (seed, core, cpus[core],
                                                                   machine.known_cpus[core])


# ---- cases made by hand ----

def of_task(tmp, capture, tid=7, *args):
    return read(tmp, capture, *args)[0][tid]


def an_interrupt_in_a_fault_in_a_call_is_an_interrupt(tmp):
    capture = Capture(1)
    capture.task(7, "nested")
    capture.switch(0, 0, 7)
    capture.irq(0, 400, 450, 3, 7)
    capture.softirq_entry(0, 450, 3, 7)
    capture.irq(0, 460, 465, 3, 7)
    capture.softirq_exit(0, 500, 3, 7)
    capture.fault(0, 600, 7, 300, 0, 4096, 0x401000, kernel=True)
    capture.syscall(0, 1000, 7, READ, 200, 1)
    capture.switch(0, 1100, 0)
    found, cpus = read(tmp, capture)
    assert found[7] == {("user", None): 200, ("call", "read"): 500, ("fault", "minor"): 200, ("irq", None): 55,
                        ("softirq", None): 45, ("running", None): 100}, found
    assert cpus == {0: {"user": 200, "call": 500, "fault": 200, "irq": 55, "softirq": 45, "running": 100}}, cpus


def a_call_may_span_many_switches(tmp):
    capture = Capture(1)
    capture.task(7, "reader")
    capture.task(8, "other")
    capture.switch(0, 0, 7)
    capture.block_in(0, 300, 8, READ, FILE, value=77)
    capture.waking(0, 700, 8, 7)
    capture.switch(0, 900, 7)
    capture.switch(0, 1000, 8)
    capture.switch(0, 1500, 7)
    capture.syscall(0, 1600, 7, READ, 100, 1)
    capture.fault(0, 1700, 7, 1650, 0, 4096, 0x401000)
    capture.switch(0, 1700, 0)
    assert of_task(tmp, capture) == {
        ("user", None): 150, ("call", "read"): 200 + 100 + 100, ("fault", "minor"): 50,
        ("wait", "read", "file", 77): 400, ("runnable", None): 200 + 500}


def what_a_call_without_end_shares_with_user_code_is_not_told(tmp):
    capture = Capture(1)
    capture.task(7, "poller")
    capture.switch(0, 0, 7)
    capture.syscall(0, 100, 7, READ, 0, 1)          # it began before the recording
    capture.block_in(0, 300, 0, POLL)
    capture.switch(0, 500, 7)
    capture.switch(0, 600, 0)
    assert of_task(tmp, capture) == {("running", "read"): 100, ("running", "poll"): 200, ("call", "poll"): 100,
                                     ("wait", "poll", "call", None): 200}
    text = tap.run("report", "--classes", cwd=tmp).stdout
    for says in "user or poll", "in poll", "waiting: poll", "user or read":
        assert says in text, (says, text)


def what_is_left_of_a_call_after_its_end_is_no_user_code(tmp):
    """The last part of close(2), in which the task says that it is in close."""
    capture = Capture(1)
    capture.task(7, "closer")
    capture.switch(0, 0, 7)
    capture.syscall(0, 100, 7, CLOSE, 50, 0)
    capture.block_in(0, 150, 0, CLOSE)
    capture.switch(0, 200, 7)
    capture.syscall(0, 400, 7, READ, 300, 1)
    capture.switch(0, 400, 0)
    assert of_task(tmp, capture) == {("user", None): 50, ("call", "close"): 50 + 50, ("wait", "close", "call", None): 50,
                                     ("running", None): 100, ("call", "read"): 100}


def a_new_task_begins_in_the_call_that_made_it_and_ends_in_the_one_that_ends_it(tmp):
    capture = Capture(1)
    capture.task(7, "child")
    capture.waking(0, 100, 0, 7, new=True)
    capture.switch(0, 150, 7)
    capture.syscall(0, 180, 7, CLONE, 0, 0)
    capture.block_in(0, 300, 0, EXIT_GROUP, state=DEAD)
    capture.switch(0, 900, 0)
    assert of_task(tmp, capture) == {("runnable", None): 50, ("call", "clone"): 30, ("running", "exit_group"): 120}


def lost(tmp, begin=350):
    capture = Capture(2)
    for task in 7, 8:
        capture.task(task, "writer")
    capture.switch(0, 0, 7)
    capture.switch(1, 0, 8)
    capture.syscall(0, 100, 7, READ, 50, 1)
    capture.block_in(1, 200, 0, FUTEX, FUTEX_OBJECT, 4096)
    Maker.lost(capture, 0, 500, 3, 0, begin)
    capture.switch(0, 600, 7)
    capture.syscall(0, 700, 7, WRITE, 650, 1)
    capture.waking(0, 800, 7, 8, 1)
    capture.switch(1, 850, 8)
    capture.switch(0, 1000, 0)
    capture.switch(1, 1000, 0)
    return read(tmp, capture)


def time_in_which_records_were_lost_is_not_known(tmp):
    found, cpus = lost(tmp)
    # from 100 on it may have been in a call whose end is lost
    assert found[7] == {("user", None): 50 + 50, ("call", "read"): 50, ("call", "write"): 50, ("unknown", None): 250,
                        ("running", None): 250 + 300}, found
    # it may have run there
    assert found[8] == {("running", None): 200 + 150, ("wait", "futex", "futex", 4096): 450, ("unknown", None): 150,
                        ("runnable", None): 50}, found
    assert cpus[0] == {"user": 100, "call": 100, "running": 550, "unknown": 250}, cpus


def a_cpu_that_is_offline_is_offline(tmp):
    capture = Capture(2)
    capture.task(7, "burner")
    capture.switch(0, 0, 7)
    capture.switch(1, 0, 0)
    capture.custom(1, 300, 0, 1, 3)
    capture.switch(1, 800, 7)
    capture.switch(0, 800, 0)
    capture.switch(1, 900, 0)
    cpus = read(tmp, capture)[1]
    assert cpus[1] == {"idle": 300, "offline": 500, "running": 100}, cpus
    assert "Offline" in tap.run("report", "--classes", cwd=tmp).stdout


def pieces(capture, when, count):
    """The task that runs is interrupted so often, for 1 of each 10 ns."""
    for _ in range(count):
        when += 10
        capture.irq(0, when - 1, when, 3, 7)
    return when


def a_task_may_be_interrupted_very_often_before_its_call_ends(tmp):
    for long_call in False, True:
        capture = Capture(1)
        capture.task(7, "burner")
        capture.switch(0, 0, 7)
        when = pieces(capture, 0, 20_000)
        begin, when = when, pieces(capture, when, 20_000 if long_call else 100)
        capture.syscall(0, when, 7, READ, begin, 1)
        capture.switch(0, when, 0)
        found = of_task(tmp, capture)
        if not long_call:
            assert found == {("user", None): 180_000, ("call", "read"): 900, ("irq", None): 20_100}, found
            continue
        # older ones are not kept one by one, so it is not known which of them are the call's
        assert found["call", "read"] >= 2048 * 9 and found["irq", None] == 40_000, found
        assert found["call", "read"] + found["running", None] == 360_000 and len(found) == 3, found


def a_call_that_waits_may_be_interrupted_very_often(tmp):
    capture = Capture(1)
    capture.task(7, "copier")
    capture.switch(0, 0, 7)
    when = pieces(capture, 0, 100)
    begin, when = when, pieces(capture, when, 100)
    for _ in range(4):
        capture.block_in(0, when, 0, READ)
        when += 10
        capture.switch(0, when, 7)
        when = pieces(capture, when, 5000)
    capture.syscall(0, when, 7, READ, begin, 1)
    capture.switch(0, when, 0)
    found = of_task(tmp, capture)
    assert found == {("user", None): 900, ("call", "read"): 180_900, ("irq", None): 20_200,
                     ("wait", "read", "call", None): 40}, found


# ---- captures that lack something ----

def some(sources, objects="1"):
    capture = Capture(1, sources, objects=objects)
    capture.task(7, "program")
    capture.task(900, "kworker/0:1")
    capture.switch(0, 0, 7)
    capture.fault(0, 80, 7, 50, 1, 4096, 0x401000) if "faults" in sources else None
    capture.syscall(0, 200, 7, READ, 100, 1) if "syscalls" in sources else None
    capture.switch(0, 300, 900, blocked=True, state=SLEEPS, waits_for=(POLL, CALL, 0, 0, 0) if objects == "1" else None)
    capture.switch(0, 400, 7, blocked=True, state=WAITS_FOR_DISK)
    capture.switch(0, 500, 0)
    return capture


def what_a_capture_does_not_tell_is_not_guessed(tmp):
    found, cpus = read(tmp, some("sched"))
    assert found == {7: {("running", None): 400, ("wait", "poll", "call", None): 100},
                     900: {("kernel", None): 100, ("wait", None, "D", None): 100}}, found
    text = tap.run("report", "--classes", cwd=tmp).stdout
    for says in ("record --sources syscalls'", "record --sources faults'", "record --sources irq,softirq'",
                 "record --sources wake'", "user or kernel", "waiting: uninterruptible", "kernel, other"):
        assert says in text, (says, text)
    found, cpus = read(tmp, some("faults"))
    assert found[7] == {("running", None): 370, ("fault", "major"): 30, ("wait", "poll", "call", None): 100}, found
    found, cpus = read(tmp, some("syscalls", objects="0"))
    assert found[7] == {("user", None): 100, ("call", "read"): 100, ("running", None): 200,
                        ("wait", None, "S", None): 100}, found
    assert found[900] == {("running", None): 100, ("wait", None, "D", None): 100}, found


def of_tasks_that_were_not_recorded_nothing_is_said(tmp):
    capture = Capture(1, filter="command")
    for task, name in (7, "recorded"), (8, "other"):
        capture.task(task, name)
    capture.switch(0, 0, 7)
    capture.syscall(0, 200, 7, READ, 100, 1)
    capture.block_in(0, 300, 8, POLL)       # then to whom it likes
    capture.irq(0, 350, 360, 3, 8)
    capture.waking(0, 400, 8, 7)
    capture.switch(0, 500, 7, blocked=True, state=SLEEPS)
    capture.block_in(0, 600, 0, POLL)       # and from the idle task to another one
    capture.halt(0, 700, True, 1)
    capture.halt(0, 800, False)
    capture.switch(0, 900, 7)
    found, cpus = read(tmp, capture)
    assert found == {7: {("user", None): 100, ("call", "read"): 100, ("running", "poll"): 100, ("call", "poll"): 100,
                         ("wait", "poll", "call", None): 400, ("runnable", None): 100}}, found
    assert cpus == {0: {"user": 100, "call": 200, "irq": 10, "running": 100, "idle": 100, "unknown": 390}}, cpus
    assert "limited to some processes" in tap.run("report", "--classes", cwd=tmp).stdout


# ---- parts of a capture, and the tables ----

def tasks_cpus_and_times_are_chosen(tmp):
    machine = Machine(1)
    machine.run(1500)
    whole, cpus = read(tmp, machine.save())
    for tid in sorted(whole)[:3]:
        found, same = sums(lines(tmp, "--tid", str(tid)))[1:]
        assert {key[0]: value for key, value in found.items()} == {tid: whole[tid]} and same == cpus
    total = collections.defaultdict(collections.Counter)
    total_cpus = collections.defaultdict(collections.Counter)
    cuts = ["0", "0.00001", "0.000025", "1"]
    for begin, end in zip(cuts, cuts[1:]):
        _, tasks, parts = sums(lines(tmp, "--time", f"{begin},{end}"))
        for (tid, _), found in tasks.items():
            total[tid].update(found)
        for core, found in parts.items():
            total_cpus[core].update(found)
    assert total == whole and total_cpus == cpus, (total, whole)
    by_cpu, by_class = collections.Counter(), collections.Counter()
    for core in range(3):
        rows = lines(tmp, "--cpu", str(core))
        by_cpu.update({row["class"]: row["sum_ns"] for row in rows if row["kind"] == "class_sum"})
        assert {row["cpu"] for row in rows if row["kind"] == "class_cpu"} == {core}
    for found in whole.values():
        for what, ns in found.items():
            by_class[what[0]] += ns
    assert by_cpu == by_class, (by_cpu, by_class)


def tables_have_the_same(tmp):
    found, cpus = lost(tmp)
    ask = lambda query: json.loads(tap.run("query", "--json", query, cwd=tmp).stdout)
    assert ask("SELECT sum(sum_ns) AS ns FROM report_class_of WHERE tid = 7") == [{"ns": sum(found[7].values())}]
    assert ask("SELECT class, sum_ns FROM report_class_cpu WHERE cpu = 0 ORDER BY sum_ns") == [
        {"class": name, "sum_ns": ns} for name, ns in sorted(cpus[0].items(), key=lambda pair: pair[1])]
    assert ask("SELECT object, object_value FROM report_class_of WHERE class = 'wait'") == [
        {"object": "futex", "object_value": 4096}]
    assert ask("SELECT lived_ns FROM report_class_task WHERE tid = 8") == [{"lived_ns": 1000}]


def people_read_tasks_of_one_name_together(tmp):
    lost(tmp)
    text = tap.run("report", "--classes", "--percent-limit", "0", cwd=tmp).stdout
    row, = [line for line in text.splitlines() if line.split()[1:] == ["writer"]]
    assert row.split()[0] == "0.002", text
    for says in ("# recorded : 0.000001 s\n# tasks    : 0.000002 s\n", "  user\n", "    in write\n",
                 "waiting: futex 0x1000 of process", "    runnable\n", "not known\n"):
        assert says in text, (says, text)
    assert [line.split()[1] for line in text.splitlines() if "Time of" in line] == ["Time"] * 3


def another_report_is_not_given_with_it(tmp):
    lost(tmp)
    for other in "--waits", "--latency", "--syscalls":
        done = tap.run("report", "--classes", other, cwd=tmp)
        assert done.returncode == 2 and "give one of these reports alone" in done.stderr, done


def what_is_lost_is_not_known_and_nothing_is_guessed(tmp):
    losses = 0
    for seed in range(60):
        machine = Machine(seed)
        machine.run(800)
        core = seed % machine.cores
        ends = [when for on, when, *_ in machine.events if on == core]
        begin = ends[len(ends) // 3]
        end = ends[len(ends) // 3 + 1 + seed % 40] + 1
        # who looks at a CPU in the middle of a softirq does not see that it is in one
        if any(start <= end <= until for start, until in machine.in_handler[core]):
            continue
        tasks, cpus = read(tmp, machine.save((core, begin, end)))
        losses += 1
        assert cpus[core].get("unknown", 0) >= end - begin, (seed, cpus)
        for tid, found in tasks.items():
            for what, ns in found.items():
                # A fault whose end is not in the capture is time of its call.
                most = machine.true[tid][what] + machine.faults[tid][what]
                assert what[0] in ("running", "runnable", "wait", "unknown") or ns <= most, \
                    (seed, tid, what, ns, machine.true[tid])
        for number, found in cpus.items():
            for what, ns in found.items():
                most = machine.true_cpus[number][what] + machine.faults[number - machine.cores][what]
                assert what in ("running", "unknown") or ns <= most, \
                    (seed, number, what, ns, machine.true_cpus[number])
    assert losses > 20, losses


if __name__ == "__main__":
    tap.main(globals())
