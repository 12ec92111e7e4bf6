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

READ, WRITE, POLL, CLONE, FUTEX, EXIT_GROUP = 0, 1, 7, 56, 202, 231
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
        name = NAMES[task.told_call] if getattr(task, "told_call", None) is not None else None
        self.decide(task, lambda truth, sure: ("call", name) if sure else ("running", name))

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
