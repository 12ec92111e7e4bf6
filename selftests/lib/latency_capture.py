# SPDX-License-Identifier: MIT
"""Captures with wakeups, interrupts and softirqs, for tests of what says why a task was late.

    capture = Late(cores=2)
    capture.waking(0, 1000, waker=7, woken=8, cpu=1)
    capture.irq(1, 1100, 1200, 40)
"""
import struct

from make_capture import Maker

SERIES = ["Lost records", "Counters stopped", "Wakeups", "Migrations", "Interrupts", "Softirqs",
          "Frequency", "Idle states missed", "System calls", "Page faults", "Block requests"]
WAKEUPS, MIGRATIONS, INTERRUPTS, SOFTIRQS, FREQUENCY, MISSES, CALLS, FAULTS, BLOCK = range(2, 11)
WAKING, WAKING_NEW, MIGRATE, IRQ_ENTRY, IRQ_EXIT, IPI_ENTRY, IPI_EXIT, RAISE, SOFTIRQ_ENTRY, \
    SOFTIRQ_EXIT, FREQ, MISS = range(1, 13)
TASK, SOFTIRQ, IRQ, IDLE = range(4)
TIMER, NET_RX = 1, 3        # softirqs
IPI_TIMER, IPI_RESCHEDULE = 1, 2


class Late(Maker):
    """A capture of `record --latency`."""

    def __init__(self, cores=2, facts=None, **kwargs):
        super().__init__(cores=cores, series=SERIES, facts={
            "host": "elsewhere", "sources": "wake,migrate,irq,softirq,freq", **(facts or {})},
            **kwargs)
        self.task(0, "swapper")

    def detail(self, core, when, task, series, what, number, cpu=0, context=TASK, value=1, by=None):
        self.about(core, when, task, what, number, cpu, context, series, value, by)

    def lost(self, core, when, records):
        self.custom(core, when, 0, 0, records)

    def waking(self, core, when, waker, woken, cpu=0, context=TASK, new=False, by=None):
        """@waker: the task that ran, which is the waker only if the context is a task's. @by: its call."""
        self.detail(core, when, waker, WAKEUPS, WAKING_NEW if new else WAKING, woken, cpu, context, by=by)

    def migrate(self, core, when, task, moved, cpu):
        self.detail(core, when, task, MIGRATIONS, MIGRATE, moved, cpu)

    def irq_entry(self, core, when, number, task=0, behind=0):
        self.detail(core, when, task, INTERRUPTS, IRQ_ENTRY, number, behind, IRQ)

    def irq_exit(self, core, when, number, task=0, behind=0):
        self.detail(core, when, task, INTERRUPTS, IRQ_EXIT, number, behind, IRQ, 0)

    def irq(self, core, begin, end, number, task=0, behind=0):
        self.irq_entry(core, begin, number, task, behind)
        self.irq_exit(core, end, number, task, behind)

    def ipi(self, core, begin, end, number, task=0):
        self.detail(core, begin, task, INTERRUPTS, IPI_ENTRY, number, 0, IRQ)
        self.detail(core, end, task, INTERRUPTS, IPI_EXIT, number, 0, IRQ, 0)

    def fault(self, core, end, task, begin, result, address, pc, kernel=False, counter=FAULTS):
        super().fault(core, end, task, begin, result, address, pc, kernel, counter)

    def block(self, core, end, task, begin, result, sector, device, size, flags=0, counter=BLOCK):
        super().block(core, end, task, begin, result, sector, device, size, flags, counter)

    def syscall(self, core, end, task, number, begin, result, arguments=(0, 0, 0), compat=False, counter=CALLS):
        super().syscall(core, end, task, number, begin, result, arguments, compat, counter)

    def raised(self, core, when, number, task=0, context=IRQ):
        self.detail(core, when, task, SOFTIRQS, RAISE, number, 0, context)

    def softirq_entry(self, core, when, number, task=0):
        self.detail(core, when, task, SOFTIRQS, SOFTIRQ_ENTRY, number, 0, SOFTIRQ)

    def softirq_exit(self, core, when, number, task=0):
        self.detail(core, when, task, SOFTIRQS, SOFTIRQ_EXIT, number, 0, SOFTIRQ, 0)

    def miss(self, core, when, state, too_shallow):
        self.detail(core, when, 0, MISSES, MISS, state, core, int(too_shallow))
