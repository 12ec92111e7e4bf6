# SPDX-License-Identifier: MIT
"""A second, independent opinion on Barman v2 captures of this machine's layout.

Written from the protocol's text, for tests: it shares nothing with the library, is
slow, and fails by an exception on whatever it does not expect.
"""
import struct
import sys

WORD = struct.calcsize("P")
ORDER = "<" if sys.byteorder == "little" else ">"
PADDING = 1 << (WORD * 8 - 1)
RECORD_TYPES = {1: "sample", 2: "sample_pc", 3: "task_switch", 4: "custom_counter",
                5: "annotation", 6: "halt"}


class Capture:
    """magic, tables and records of a linear capture."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        assert self.take("Q") == (0x4241524d414e3634 if WORD == 8 else 0x4241524d414e3332)
        self.version, self.header_length, self.store_type, target = self.take("IIII")
        self.last_timestamp, self.sample_rate = self.take("QI")
        cores, tasks, maps, counters, strings, series = self.take("IIIIII")
        self.base, self.multiplier, self.divisor, self.unix_base = self.take("QQQQ")
        length = self.take("I")
        assert length <= strings, (length, strings)
        self.strings = self.data[self.at:self.at + length]
        self.at += strings
        self.target = self.string(target)
        word = "Q" if WORD == 8 else "I"
        self.pmus = [self.take(f"QI{word}II{counters}I") for _ in range(cores)]
        self.tasks = self.table(tasks, "QII")
        self.maps = self.table(maps, f"QI{word}{word}{word}I")
        if series:
            charts = self.take("I")
            self.charts = [self.take("IBBB") for _ in range(charts)]
            self.series = [self.take("IIIIIdBBB") for _ in range(series)]
        self.at = (self.at + 7) // 8 * 8
        size, self.write, self.read, self.total = self.take("QQQQ")
        self.at = (self.at + WORD + 7) // 8 * 8
        assert self.at == self.header_length, (self.at, self.header_length)
        assert self.store_type == 1 and self.read <= self.write <= size
        assert len(self.data) >= self.at + self.write, "shorter than its header says"
        assert all(count[4] <= counters for count in self.pmus)

    def take(self, fields):
        values = struct.unpack_from(ORDER + fields, self.data, self.at)
        self.at += struct.calcsize(ORDER + fields)
        return values[0] if len(values) == 1 else values

    def table(self, rows, fields):
        used = self.take("I") if rows else 0
        assert used <= rows
        table = [self.take(fields) for _ in range(rows)]
        return table[:used]

    def string(self, offset):
        return self.strings[offset:self.strings.index(b"\0", offset)].decode()

    def task_names(self):
        return {task: self.string(name) for _, task, name in self.tasks}

    def images(self):
        return [self.string(row[5]) for row in self.maps]

    def facts(self):
        texts = [s.decode() for s in self.strings.split(b"\0") if s.startswith(b"kbarman.")]
        return dict(text[len("kbarman."):].split("=", 1) for text in texts)

    def records(self):
        """(type, core, timestamp, payload) of every record."""
        at, end = self.header_length + self.read, self.header_length + self.write
        found = []
        while at < end:
            length = struct.unpack_from(ORDER + ("Q" if WORD == 8 else "I"), self.data, at)[0]
            size = length & ~PADDING
            assert size % WORD == 0 and at + WORD + size <= end, (at, length)
            if not length & PADDING:
                kind, core, when = struct.unpack_from(ORDER + "IIQ", self.data, at + WORD)
                found.append((RECORD_TYPES[kind], core, when,
                              self.data[at + WORD:at + WORD + size]))
            at += WORD + size
        assert at == end
        return found
