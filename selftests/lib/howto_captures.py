# SPDX-License-Identifier: MIT
"""The captures that kbarman-howto(7) asks its questions about.

A server `web` answers requests: an interrupt of eth0 wakes it, it parses, asks `db` on the other CPU and
waits for the answer. While `backup` has that CPU, every tenth request is slow. All times are known, so the
answers are the same on each machine."""
import os
import struct

from latency_capture import IRQ, NET_RX, Late
from make_capture import Maker

MS, US = 1_000_000, 1000
WEB, DB, BACKUP = 7, 8, 9
REQUESTS, LOST = 40, 12
KERNEL, CODE = 0xffffffff81000000, 0x10000
KERNEL_NAMES = "schedule", "futex_wait", "sock_recv", "do_read", "copy_page"
CODE_NAMES = "main", "handle", "parse", "answer"
SCHEDULE, FUTEX, RECV, READ, COPY = (KERNEL + 0x1000 * i + 0x10 for i in range(5))
MAIN, HANDLE, PARSE, ANSWER = (CODE + 0x100 * i + 0x10 for i in range(4))


class Story(Late):
    """@slower: how many times as long parse() takes; @host: the name of the machine."""

    def __init__(self, slower=1.0, host="elsewhere", **kwargs):
        names = {f"counter.{cpu}.{i}": event for cpu in range(2) for i, event in enumerate(("cycles", "instructions"))}
        super().__init__(cores=2, counters=[8, 9], facts={
            "host": host, "command": "./web", "states": "D2,S1",
            "irq.40": "nvme0q1", "irq.41": "eth0", **names}, **kwargs)
        for task, name in (WEB, "web"), (DB, "db"), (BACKUP, "backup"):
            self.task(task, name)
            self.map(task, CODE, 0x1000, 0, "//anon")
        self.map(0, KERNEL, 0x100000, 0, "[kernel.kallsyms]")
        self.slower, self.written = slower, [0, 0]
        self.switch(0, 0, 0)
        self.switch(1, 0, BACKUP)
        for number in range(REQUESTS):
            self.request(number, 10 * MS * number + MS)
        Maker.lost(self, 1, 10 * MS * REQUESTS + MS, LOST, 0, 10 * MS * REQUESTS)

    def record(self, kind, core, timestamp, payload):
        super().record(kind, core, timestamp, payload)
        self.written[core] += 1

    def mark(self, cpu, when, task, text):
        data = text.encode() + b"\0"
        self.record(5, cpu, when, struct.pack("<IQIIIB", task, len(data), 0, 0, 0, 1) + data)

    def samples(self, cpu, begin, end, task, chain, kernel=0):
        for when in range(begin + 100 * US, end, 250 * US):
            self.sample(cpu, when, task, chain[0], [250_000, 400_000], chain, kernel)

    def leave(self, cpu, when, task, chain):
        """The task that runs waits, and @task comes."""
        self.switch(cpu, when, task, blocked=True, state=1, chain=chain, kernel=2)

    def request(self, number, begin):
        slow = number % 10 == 7
        self.irq_entry(0, begin, 41)
        self.raised(0, begin + 2 * US, NET_RX)
        self.waking(0, begin + 5 * US, waker=0, woken=WEB, context=IRQ)
        self.irq_exit(0, begin + 10 * US, 41)
        self.softirq_entry(0, begin + 12 * US, NET_RX)
        self.softirq_exit(0, begin + 40 * US, NET_RX)
        now = begin + 50 * US
        self.switch(0, now, WEB)
        self.mark(0, now + US, WEB, f"request {number}")
        parsed = now + int(1.5 * MS * self.slower)
        self.samples(0, now, parsed, WEB, [PARSE, HANDLE, MAIN])
        self.samples(1, now, parsed, BACKUP, [COPY, READ, MAIN], 2)
        self.waking(0, parsed, waker=WEB, woken=DB, cpu=1)
        self.leave(0, parsed + 10 * US, 0, [SCHEDULE, FUTEX, HANDLE, MAIN])
        self.halt(0, parsed + 20 * US, True, 1)
        runs = parsed + (4 * MS if slow else 30 * US)
        self.switch(1, runs, DB)
        answered = runs + MS
        self.samples(1, runs, answered, DB, [READ, ANSWER, MAIN], 1)
        self.waking(1, answered, waker=DB, woken=WEB, cpu=0)
        self.leave(1, answered + 10 * US, BACKUP, [SCHEDULE, RECV, MAIN])
        self.halt(0, answered + 30 * US, False)
        self.switch(0, answered + 50 * US, WEB)
        done = answered + 300 * US
        self.samples(0, answered + 50 * US, done, WEB, [ANSWER, HANDLE, MAIN])
        self.mark(0, done - US, WEB, f"answer {number}")
        self.leave(0, done, 0, [SCHEDULE, RECV, HANDLE, MAIN])
        self.halt(0, done + 10 * US, True, 1)
        self.irq(1, done + 20 * US, done + 80 * US, 40, task=BACKUP)
        self.halt(0, begin + 10 * MS - US, False)

    def save(self, path, jit=True):
        """With what names its addresses: the functions of the server only if @jit."""
        for cpu in range(2):
            self.string(f"kbarman.written.{cpu}={self.written[cpu]}")
        self.string(f"kbarman.lost.1.full={LOST}")
        super().save(path)
        with open(path + ".kallsyms", "w", encoding="ascii") as file:
            for i, name in enumerate([*KERNEL_NAMES, "_etext"]):
                print(f"{KERNEL + 0x1000 * i:x} T {name}", file=file)
        folder = os.path.join(os.path.dirname(path), "tmp")
        os.makedirs(folder, exist_ok=True)
        for task in (WEB, DB, BACKUP) if jit else ():
            with open(os.path.join(folder, f"perf-{task}.map"), "w", encoding="ascii") as file:
                for i, name in enumerate(CODE_NAMES):
                    print(f"{CODE + 0x100 * i:x} 100 {name}", file=file)
        return path
