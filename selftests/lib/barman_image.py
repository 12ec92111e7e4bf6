# SPDX-License-Identifier: MIT
"""Barman captures of any layout, byte by byte, for tests of what reads them.

Written from the protocol's text; shares nothing with the library.
"""
import struct


class Image:
    """Word size 4 or 8, byte order "<" or ">"; tables first, then records, then bytes()."""

    def __init__(self, word=8, order="<", version=2, store=1, cores=2, counters=2,
                 max_tasks=4, max_maps=3, clock=(1000, 3, 2, 123), strings=()):
        self.word, self.order, self.version, self.store = word, order, version, store
        self.cores, self.counters = cores, counters
        self.max_tasks, self.max_maps, self.clock = max_tasks, max_maps, clock
        self.strings, self.tasks, self.maps = b"", [], []
        self.charts, self.series, self.data = [], [], b""
        self.target = self.string("target")
        for text in strings:
            self.string(text)
        self.last_timestamp, self.rate, self.offsets = 77, 1000, None

    def pack(self, layout, *values):
        return struct.pack(self.order + layout.replace("W", "Q" if self.word == 8 else "I"),
                           *values)

    def string(self, text):
        """The offset of `text`, str or bytes; a number is taken as it is."""
        if isinstance(text, int):
            return text
        raw = (text.encode() if isinstance(text, str) else text) + b"\0"
        at = self.strings.find(raw)
        if at < 0:
            at = len(self.strings)
            self.strings += raw
        return at

    def task(self, timestamp, task_id, name):
        self.tasks.append(self.pack("QII", timestamp, task_id, self.string(name)))

    def map(self, timestamp, task_id, base, length, offset, image):
        head = self.pack("QI", timestamp, task_id) if self.max_tasks else b""
        self.maps.append(head + self.pack("WWWI", base, length, offset, self.string(image)))

    def chart(self, name, composition=1, rendering=2, flags=3):
        self.charts.append(self.pack("IBBB", self.string(name), composition, rendering, flags))

    def add_series(self, chart, name, units, description, colour=0x112233, multiplier=0.5,
                   kind=1, display=1, flags=0):
        self.series.append(self.pack("IIIIIdBBB", chart, self.string(name), self.string(units),
                                     self.string(description), colour, multiplier, kind,
                                     display, flags))

    def block(self, body):
        body += b"\0" * (-len(body) % self.word)
        self.data += self.pack("W", len(body)) + body

    def record(self, kind, core, timestamp, layout="", *values, tail=b""):
        self.block(self.pack("IIQ" + layout, kind, core, timestamp, *values) + tail)

    def padding(self, length):
        self.data += self.pack("W", length | 1 << (8 * self.word - 1)) + b"\xee" * length

    def bytes(self):
        table = self.strings + b"\0" * (-len(self.strings) % 4)
        pmus = b"".join(
            self.pack("QIWII", 50 + core, 60 + core, 70 + core, 80 + core, self.counters)
            + self.pack(f"{self.counters}I", *(90 + core + i for i in range(self.counters)))
            for core in range(self.cores))
        body = table + pmus
        if self.max_tasks:
            body += self.pack("I", len(self.tasks))
            body += b"".join(self.tasks).ljust(16 * self.max_tasks, b"\0")
        if self.max_maps:
            row = (12 if self.max_tasks else 0) + 3 * self.word + 4
            body += self.pack("I", len(self.maps))
            body += b"".join(self.maps).ljust(row * self.max_maps, b"\0")
        if self.series:
            body += self.pack("I", len(self.charts)) + b"".join(self.charts + self.series)
        body += b"\0" * (-(len(body) + 96) % 8)
        length = len(self.data)
        offsets = self.offsets or (length, length, 0, length)
        body += self.pack("QQQQQ", *offsets, 0)
        magic = 0x4241524d414e3634 if self.word == 8 else 0x4241524d414e3332
        start = self.pack("QIIIIQI", magic, self.version, 96 + len(body), self.store,
                          self.target, self.last_timestamp, self.rate)
        start += self.pack("IIIIII", self.cores, self.max_tasks, self.max_maps, self.counters,
                           len(table), len(self.series))
        start += self.pack("QQQQI", *self.clock, len(self.strings))
        assert len(start) == 96
        return start + body + self.data

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.bytes())
        return path
