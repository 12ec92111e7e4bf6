# SPDX-License-Identifier: MIT
"""Barman v2 captures for tests, little endian and 64 bits, written from the protocol's
text: names may be any bytes, and nothing is checked."""
import struct

BASE = 1000


class CaptureWriter:
    """Fill the lists, then save(). `counters`: how many each core has, or the numbers of the events of
    each core."""

    def __init__(self, cores=2, counters=0, target=b"target"):
        self.cores = cores
        self.types = [[0x11 + i for i in range(counters)]] * cores \
            if isinstance(counters, int) else counters
        self.counters = max(map(len, self.types), default=0)
        self.strings = bytearray()
        self.target = self.string(target)
        self.tasks, self.maps, self.charts, self.series = [], [], [], []
        self.records = bytearray()
        self.last = BASE
        self.unix_base = 1700000000 * 10**9
        self.multiplier, self.divisor = 1, 1

    def string(self, text):
        at = len(self.strings)
        self.strings += text + b"\0"
        return at

    def fact(self, key, value):
        self.string(f"kbarman.{key}={value}".encode())

    def task(self, task_id, name, timestamp=BASE):
        self.tasks.append(struct.pack("<QII", timestamp, task_id, self.string(name)))

    def map(self, task_id, base, length, offset, image, timestamp=BASE):
        self.maps.append(struct.pack("<QIQQQI", timestamp, task_id, base, length, offset,
                                     self.string(image)))

    def custom(self, name, multiplier=1.0, series_class=1, display=1, units=b"", flags=0):
        if not self.charts:
            self.charts.append(struct.pack("<IBBB", self.string(b"chart"), 1, 2, 8))
        self.series.append(struct.pack("<IIIIIdBBB", 0, self.string(name), self.string(units),
                                       self.string(b""), 0xffffffff, multiplier, series_class,
                                       display, flags))

    def record(self, kind, core, timestamp, payload):
        data = struct.pack("<IIQ", kind, core, timestamp) + payload
        data += bytes(-len(data) % 8)
        self.records += struct.pack("<Q", len(data)) + data
        self.last = max(self.last, timestamp)

    def switch(self, core, timestamp, task_id, blocked=0, state=0, waits_for=None):
        """@waits_for: call, kind, flags, id and value of struct bm_kbarman_object."""
        self.record(3, core, timestamp, struct.pack("<IBB", task_id, blocked, state) +
                    (struct.pack("<BBIIHBBIQ", 0, 2, 0, 0, *waits_for) if waits_for else b""))

    def halt(self, core, timestamp, entered, idle_state=None):
        self.record(6, core, timestamp, bytes([entered, 0 if idle_state is None
                                               else idle_state + 1]))

    def sample(self, core, timestamp, task_id, pc, counters=(), chain=(), kernel=0):
        fields = struct.pack("<I", task_id)
        if self.series:
            fields += struct.pack("<I", 0)
        fields += struct.pack("<Q", pc) + b"".join(struct.pack("<Q", c) for c in counters)
        if chain:
            fields += struct.pack("<II", len(chain), kernel)
            fields += b"".join(struct.pack("<Q", address) for address in chain)
        self.record(2, core, timestamp, fields)

    def value(self, core, timestamp, series, value, task_id=0):
        self.record(4, core, timestamp, struct.pack("<IIQ", task_id, series, value))

    def about(self, core, timestamp, task_id, series, what, about=0, cpu=0, context=0, value=1):
        """A value that says what it is about: enum bm_kbarman_what."""
        self.record(4, core, timestamp, struct.pack("<IIQIHBB", task_id, series, value, about, cpu,
                                                    what, context))

    def fault(self, core, end, task_id, series, begin, result, address, pc, kernel=False):
        """A page fault that ends. @begin 0: not known."""
        self.record(4, core, end, struct.pack("<IIQIHBBQqQQ", task_id, series, 1, 0, kernel, 15, 0, begin, result,
                                              address, pc))

    def block(self, core, end, task_id, series, begin, result, sector, device, size, flags):
        """A request of task @task_id to a block device that ends. @begin 0: not known."""
        self.record(4, core, end, struct.pack("<IIQIHBBQqQII", 0, series, 1, task_id, flags, 16, 2, begin, result,
                                              sector, device, size))

    def syscall(self, core, end, task_id, series, number, begin, result, arguments=(0, 0, 0)):
        """A system call that ends. @begin 0: not known."""
        self.record(4, core, end, struct.pack("<IIQIHBBQq3Q", task_id, series, 1, number, 0, 14, 0, begin, result,
                                              *arguments))

    def annotation(self, core, timestamp, task_id, text, kind=0, channel=0, group=0, colour=0):
        text = text + b"\0" if text else b""
        self.record(5, core, timestamp, struct.pack("<IQIIIB", task_id, len(text), channel, group,
                                                    colour, kind) + text)

    def header(self, data_length):
        strings = bytes(self.strings) + bytes(-len(self.strings) % 4)
        body = strings
        for types in self.types:
            body += struct.pack(f"<QIQII{self.counters}I", BASE, 0x410fd034, 0, 0, len(types),
                                *types, *[0] * (self.counters - len(types)))
        for rows in (self.tasks, self.maps):
            body += struct.pack("<I", len(rows)) if rows else b""
            body += b"".join(rows)
        if self.series:
            body += struct.pack("<I", len(self.charts)) + b"".join(self.charts + self.series)
        body += bytes(-(96 + len(body)) % 8)
        length = 96 + len(body) + 40
        start = struct.pack("<QIIIIQI", 0x4241524d414e3634, 2, length, 1, self.target, self.last,
                            1000)
        start += struct.pack("<IIIIII", self.cores, len(self.tasks), len(self.maps),
                             self.counters, len(strings), len(self.series))
        start += struct.pack("<QQQQ", BASE, self.multiplier, self.divisor, self.unix_base)
        start += struct.pack("<I", len(strings))
        store = struct.pack("<QQQQQ", data_length, data_length, 0, data_length, 0)
        return start + body + store

    def bytes(self):
        return self.header(len(self.records)) + bytes(self.records)

    def save(self, path, repeat=1):
        """With @repeat the records stand in the file so many times."""
        with open(path, "wb") as file:
            file.write(self.header(len(self.records) * repeat))
            for _ in range(repeat):
                file.write(self.records)
        return path
