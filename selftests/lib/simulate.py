# SPDX-License-Identifier: MIT
"""A machine that runs tasks at random: what it does becomes a capture of `record --latency`, with
interrupts, softirqs, halts and waits of all kinds. The same seed gives the same capture."""
import random

from latency_capture import IPI_RESCHEDULE, NET_RX, TASK, TIMER, Late

HANDLERS = {40: "disk", 41: "eth0-rx"}
TASKS = range(10, 22)


class Machine:
    """`skew` and `offset` (ns) are those of its clock: how its time differs from the true one."""

    def __init__(self, seed=1, cores=3, steps=3000, facts=None, end=None, **kwargs):
        self.random = random.Random(seed)
        facts = {**{f"irq.{number}": name for number, name in HANDLERS.items()},
                 **{f"idle.{state}": f"{state * 10},{state},0,C{state}" for state in range(3)},
                 "lost.0.full": "0", "written.0": "1", **(facts or {})}
        self.capture = Late(cores=cores, facts=facts, **kwargs)
        for task in TASKS:
            self.capture.task(task, f"task{task}")
        self.now = [self.random.randrange(1000) for _ in range(cores)]
        self.runs = [0] * cores
        self.queues = [[] for _ in range(cores)]
        self.asleep = list(TASKS)
        for core in range(cores):
            self.capture.switch(core, self.now[core], 0)
        for _ in range(steps):
            # the CPU that is behind goes on, so all records are nearly in order
            core = min(range(cores), key=self.now.__getitem__)
            if end and self.now[core] > end:
                break
            self.step(core)
        self.capture.records.sort(key=lambda record: int.from_bytes(record[16:24], "little"))

    def after(self, core, most):
        self.now[core] += self.random.randrange(100, most)
        return self.now[core]

    def interrupt(self, core):
        number = self.random.choice(list(HANDLERS))
        task = self.runs[core]
        self.capture.irq_entry(core, self.after(core, 500), number, task)
        if self.random.random() < 0.3:
            self.capture.raised(core, self.after(core, 500), NET_RX, task)
        if self.random.random() < 0.4:
            self.wake(core)
        self.capture.irq_exit(core, self.after(core, 3000), number, task)
        if self.random.random() < 0.3:
            kind = self.random.choice([NET_RX, TIMER])
            self.capture.softirq_entry(core, self.after(core, 200), kind, task)
            self.capture.softirq_exit(core, self.after(core, 5000), kind, task)

    def wake(self, core, where=None):
        if not self.asleep:
            return
        task = self.asleep.pop(self.random.randrange(len(self.asleep)))
        where = core if where is None else where
        self.capture.waking(core, self.after(core, 300), self.runs[core], task, where, TASK)
        self.queues[where].append(task)

    def halt(self, core):
        state = self.random.randrange(3)
        self.capture.halt(core, self.after(core, 500), True, state)
        self.after(core, 200_000)
        self.capture.halt(core, self.after(core, 500), False)
        if self.random.random() < 0.2:
            self.capture.miss(core, self.after(core, 150), state, self.random.random() < 0.5)
        self.capture.ipi(core, self.after(core, 200), self.after(core, 900), IPI_RESCHEDULE)
        self.wake(core)

    def step(self, core):
        if self.random.random() < 0.2:
            self.interrupt(core)
        if self.runs[core] and self.random.random() < 0.4:
            self.wake(core, self.random.randrange(len(self.now)))
        if not self.runs[core] and not self.queues[core]:
            self.halt(core)
        if self.queues[core]:
            before, after = self.runs[core], self.queues[core].pop(0)
            preempted = before and self.random.random() < 0.3
            self.capture.switch(core, self.after(core, 400), after, blocked=not preempted,
                                state=0 if preempted else 1)
            self.sleep(core, before, preempted)
            self.runs[core] = after
            self.after(core, 100_000)
        elif self.runs[core]:
            self.capture.switch(core, self.after(core, 50_000), 0, blocked=True, state=1)
            self.sleep(core, self.runs[core], False)
            self.runs[core] = 0

    def sleep(self, core, task, preempted):
        if task and preempted:
            self.queues[core].append(task)
        elif task:
            self.asleep.append(task)

    def save(self, path):
        return self.capture.save(path)
