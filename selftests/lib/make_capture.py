# SPDX-License-Identifier: MIT
"""Barman v2 captures of known content, for tests of what reads them.

Written from the protocol's text; shares nothing with the library.

    capture = Maker(cores=2, counters=[8], facts={"host": "here"})
    capture.task(7, "worker")
    capture.map(7, 0x400000, 0x1000, 0, "/bin/true")
    capture.switch(0, 1000, 7)
    capture.sample(0, 2000, 7, 0x400010, [12345])
    capture.save(path)
"""
import struct


# enum bm_kbarman_what of kmod/uapi/barman_v2.h
WHATS = ["value", "waking", "waking_new", "migrate", "irq_entry", "irq_exit", "ipi_entry", "ipi_exit",
         "softirq_raise", "softirq_entry", "softirq_exit", "frequency", "idle_miss", "lost", "syscall",
         "fault", "block"]


class Maker:
    """A linear capture of 64 bits, little endian; records in the order given. `counters`: the numbers
    of the events of all cores, or a list of these for each core."""

    def __init__(self, cores=1, counters=(), facts=None, series=(), base=0, multiplier=1,
                 divisor=1, unix_base=1_600_000_000_000_000_000):
        self.cores, self.counters, self.series = cores, list(counters), list(series)
        self.clock = (base, multiplier, divisor, unix_base)
        self.strings, self.offsets = bytearray(), {}
        self.tasks, self.maps, self.records, self.last = [], [], [], 0
        self.string("target")
        for key, value in {"ext": "1", **(facts or {})}.items():
            self.string(f"kbarman.{key}={value}")

    def string(self, text):
        if text not in self.offsets:
            self.offsets[text] = len(self.strings)
            self.strings += text.encode(errors="surrogateescape") + b"\0"
        return self.offsets[text]

    def task(self, task_id, name, timestamp=0):
        self.tasks.append(struct.pack("<QII", timestamp, task_id, self.string(name)))

    def map(self, task_id, base, length, offset, image, timestamp=0, file=None):
        front = f"kbarman.file={file}:" if file else ""
        name = self.string(front + image) + len(front)
        self.maps.append(struct.pack("<QIQQQI", timestamp, task_id, base, length, offset, name))

    def record(self, kind, core, timestamp, payload):
        record = struct.pack("<IIQ", kind, core, timestamp) + payload
        record += bytes(-len(record) % 8)
        self.records.append(struct.pack("<Q", len(record)) + record)
        self.last = max(self.last, timestamp)

    def sample(self, core, timestamp, task_id, pc, values=(), chain=None, kernel=0):
        """@pc None: there is none."""
        payload = struct.pack("<I", task_id)
        if self.series:
            payload += struct.pack("<I", 0)
        if pc is not None:
            payload += struct.pack("<Q", pc)
        payload += struct.pack(f"<{len(values)}Q", *values)
        if chain is not None:
            payload += struct.pack(f"<II{len(chain)}Q", len(chain), kernel, *chain)
        self.record(1 if pc is None else 2, core, timestamp, payload)

    def switch(self, core, timestamp, task_id, blocked=False, state=0, chain=None, kernel=0, waits_for=None):
        """@waits_for: call, kind, flags, id and value of struct bm_kbarman_object."""
        payload = struct.pack("<IBH", task_id, blocked, state)
        if chain is not None or waits_for:
            chain = chain or []
            payload += struct.pack(f"<BII{len(chain)}Q", 2 if waits_for else 0, len(chain), kernel, *chain)
        if waits_for:
            payload += struct.pack("<HBBIQ", *waits_for)
        self.record(3, core, timestamp, payload)

    def custom(self, core, timestamp, task_id, counter, value):
        self.record(4, core, timestamp, struct.pack("<IIQ", task_id, counter, value))

    def lost(self, core, timestamp, count, reason=None, begin=0, counter=0):
        """Lost records, @reason: a number; None: as an early module tells."""
        loss = b"" if reason is None else struct.pack("<IHBBQ", reason, core, 13, 0, begin)
        self.record(4, core, timestamp, struct.pack("<IIQ", 0, counter, count) + loss)

    def about(self, core, timestamp, task_id, what, about=0, cpu=0, context=0, counter=0, value=1, by=None):
        """A value that says what it is about: a number, or a word of WHATS. @by: as waits_for of switch()."""
        self.record(4, core, timestamp, struct.pack(
            "<IIQIHBB", task_id, counter, value, about, cpu,
            WHATS.index(what) if what in WHATS else what, context) +
            (struct.pack("<HBBIQ", *by) if by else b""))

    def fault(self, core, end, task, begin, result, address, pc, kernel=False, counter=0):
        """A page fault that ends. @begin 0: not known."""
        self.record(4, core, end, struct.pack("<IIQIHBBQqQQ", task, counter, 1, 0, kernel, WHATS.index("fault"), 0,
                                              begin, result, address, pc))

    def block(self, core, end, task, begin, result, sector, device, size, flags=0, counter=0):
        """A request of @task that ends. @begin 0: not known. @flags: the operation, and others."""
        self.record(4, core, end, struct.pack("<IIQIHBBQqQII", 0, counter, 1, task, flags, WHATS.index("block"), 2,
                                              begin, result, sector, device, size))

    def syscall(self, core, end, task, number, begin, result, arguments=(0, 0, 0), compat=False, counter=0):
        """A system call that ends. @begin 0: not known."""
        self.record(4, core, end, struct.pack("<IIQIHBBQq3Q", task, counter, 1, number, compat,
                                              WHATS.index("syscall"), 0, begin, result, *arguments))

    def halt(self, core, timestamp, entered, state=None):
        self.record(6, core, timestamp,
                    struct.pack("<BB", entered, 0 if state is None else state + 1))

    def header(self, data_length):
        series = []
        for name in self.series:
            series.append(struct.pack("<IIIIIdBBB", 0, self.string(name), self.string("u"),
                                      self.string("d"), 0xffffffff, 1.0, 1, 1, 0))
        chart = struct.pack("<IBBB", self.string("chart"), 1, 1, 0) if series else b""
        strings = bytes(self.strings) + bytes(-len(self.strings) % 4)
        each = self.counters
        if not any(isinstance(counters, list) for counters in each):
            each = [each] * self.cores
        slots = max(1, *map(len, each))
        body = bytearray(strings)
        for counters in each:
            types = counters + [0] * (slots - len(counters))
            body += struct.pack(f"<QIQII{slots}I", 0, 0, 0, 0, len(counters), *types)
        body += struct.pack("<I", len(self.tasks)) + b"".join(self.tasks) + bytes(16 * (not self.tasks))
        body += struct.pack("<I", len(self.maps)) + b"".join(self.maps) + bytes(40 * (not self.maps))
        if series:
            body += struct.pack("<I", 1) + chart + b"".join(series)
        length = (96 + len(body) + 7) // 8 * 8 + 40
        start = struct.pack("<QIIIIQI", 0x4241524d414e3634, 2, length, 1, 0, self.last, 1000)
        start += struct.pack("<6I", self.cores, max(1, len(self.tasks)), max(1, len(self.maps)),
                             slots, len(strings), len(series))
        start += struct.pack("<QQQQI", *self.clock, len(self.strings))
        header = start + body
        header += bytes(length - 40 - len(header))
        return header + struct.pack("<QQQQQ", data_length, data_length, 0, data_length, 0)

    def save(self, path):
        data = b"".join(self.records)
        with open(path, "wb") as file:
            file.write(self.header(len(data)) + data)
        return path
