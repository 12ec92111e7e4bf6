# SPDX-License-Identifier: MIT
"""A small reader of Parquet for tests, written from the format's text: flat columns and lists of
values, the encodings that kbarman writes. Whatever breaks a rule is an AssertionError."""
import ctypes
import os
import struct
import zlib

BOOL, INT64, DOUBLE, BYTE_ARRAY = 0, 2, 5, 6
PLAIN, RLE, DELTA, DICTIONARY = 0, 3, 5, 8
CODECS = {0: "none", 2: "gzip", 6: "zstd"}


def unzstd(data, size):
    library, room = ctypes.CDLL("libzstd.so.1"), ctypes.create_string_buffer(size + 1)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    got = library.ZSTD_decompress(room, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    assert got == size, (got, size)
    return room.raw[:size]


class Bytes:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        part = self.data[self.at:self.at + size]
        assert len(part) == size, "cut off"
        self.at += size
        return part

    def varint(self):
        value = shift = 0
        while True:
            byte, = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    # ---- Thrift's compact protocol

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.take(1)[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            return self.take(self.varint())
        if kind == 9:
            head, = self.take(1)
            return [self.value(head & 15) for _ in range(self.varint() if head >> 4 == 15 else head >> 4)]
        assert kind == 12, kind
        return self.struct()

    def struct(self):
        """Values by field."""
        found, field = {}, 0
        while head := self.take(1)[0]:
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            found[field] = self.value(head & 15)
        return found

    # ---- encodings

    def hybrid(self, width, nr):
        values = []
        while len(values) < nr:
            head = self.varint()
            if head & 1:
                bits = int.from_bytes(self.take((head >> 1) * width), "little")
                values += [bits >> i * width & (1 << width) - 1 for i in range((head >> 1) * 8)]
            else:
                values += [int.from_bytes(self.take((width + 7) // 8), "little")] * (head >> 1)
        return values[:nr]

    def delta(self, nr):
        block, minis, total, value = self.varint(), self.varint(), self.varint(), self.zigzag()
        assert total == nr and block % 128 == 0, (total, nr, block)
        values = [value] if nr else []
        while len(values) < nr:
            least, widths = self.zigzag(), self.take(minis)
            for width in widths:
                if len(values) == nr:
                    break
                bits, each = int.from_bytes(self.take(block // minis * width // 8), "little"), block // minis
                for i in range(min(each, nr - len(values))):
                    value += least + (bits >> i * width & (1 << width) - 1)
                    value = (value + 2**63) % 2**64 - 2**63
                    values.append(value)
        return values

    def levels(self, nr):
        size, = struct.unpack("<I", self.take(4))
        return Bytes(self.take(size)).hybrid(1, nr)

    def plain(self, kind, nr):
        if kind == BOOL:
            bits = self.take((nr + 7) // 8)
            return [bool(bits[i // 8] >> i % 8 & 1) for i in range(nr)]
        if kind == BYTE_ARRAY:
            return [self.take(struct.unpack("<I", self.take(4))[0]).decode() for _ in range(nr)]
        return list(struct.unpack(f"<{nr}{'q' if kind == INT64 else 'd'}", self.take(8 * nr)))


class Column:
    def __init__(self, element, optional, is_list):
        self.name, self.kind = element[4].decode(), element.get(1)
        self.optional, self.is_list = optional, is_list
        self.unsigned = element.get(6) == 14

    def type(self):
        name = {BOOL: "BOOLEAN", INT64: "UINT64" if self.unsigned else "INT64", DOUBLE: "DOUBLE",
                BYTE_ARRAY: "STRING"}[self.kind]
        return f"LIST<{name}>" if self.is_list else name

    def value(self, value):
        return value % 2**64 if self.unsigned else value


class File:
    """`columns`: what they are; `groups`: each the values by column; `rows`; `meta`."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        assert self.data[:4] == self.data[-4:] == b"PAR1", path
        size, = struct.unpack("<I", self.data[-8:-4])
        self.meta = Bytes(self.data, len(self.data) - 8 - size).struct()
        self.columns = self.schema(self.meta[2])
        self.codecs, self.sorted = set(), True
        self.groups = [self.group(group) for group in self.meta[4]]
        self.rows = sum(group[3] for group in self.meta[4])
        assert self.rows == self.meta[3]
        assert len(self.meta[7]) == len(self.columns)

    @staticmethod
    def schema(elements):
        assert elements[0][5] == sum(3 != e.get(6) or 5 in e for e in elements[1:]) \
            - 2 * sum(e.get(6) == 3 for e in elements[1:]), elements[0]
        columns, at = [], 1
        while at < len(elements):
            element = elements[at]
            if element.get(6) == 3:
                assert elements[at + 1][3] == 2 and elements[at + 2][4] == b"element"
                inner = dict(elements[at + 2])
                inner[4] = element[4]
                columns.append(Column(inner, False, True))
                at += 3
            else:
                columns.append(Column(element, element[3] == 1, False))
                at += 1
        return columns

    def page(self, at, codec):
        data = Bytes(self.data, at)
        header = data.struct()
        packed = data.take(header[3])
        assert header[4] % 2**32 == zlib.crc32(packed)
        self.codecs.add(CODECS[codec])
        content = {"none": lambda: packed, "gzip": lambda: zlib.decompress(packed, 31),
                   "zstd": lambda: unzstd(packed, header[2])}[CODECS[codec]]()
        assert len(content) == header[2]
        return header, Bytes(content), data.at

    def group(self, group):
        values, packed = {}, 0
        for column, chunk in zip(self.columns, group[1]):
            meta = chunk[3]
            assert meta[3] == [column.name.encode()] + [b"list", b"element"] * column.is_list
            values[column.name] = self.chunk(column, meta, group[3])
            packed += meta[7]
        assert packed == group[6], (packed, group[6])
        if 4 in group:
            key = values[self.columns[group[4][0][1]].name]
            assert key == sorted(key), "not sorted as it says"
        else:
            self.sorted = False
        return values

    def chunk(self, column, meta, rows):
        entries, at = None, meta[9]
        if 11 in meta:
            header, page, end = self.page(meta[11], meta[4])
            assert header[1] == 2 and end == meta[9]
            entries = page.plain(column.kind, header[7][1])
        header, page, end = self.page(at, meta[4])
        assert header[1] == 0 and header[5][1] == meta[5] and header[5][2] in meta[2]
        assert end - meta.get(11, at) == meta[7]
        nr = meta[5]
        repeats = page.levels(nr) if column.is_list else None
        defined = page.levels(nr) if column.is_list or column.optional else [1] * nr
        there = sum(defined)
        if header[5][2] == DICTIONARY:
            width, = page.take(1)
            values = [entries[i] for i in page.hybrid(width, there)]
        elif header[5][2] == DELTA:
            values = page.delta(there)
        else:
            values = page.plain(column.kind, there)
        values = [column.value(value) for value in values]
        assert page.at == len(page.data), "bytes behind the values"
        if column.is_list:
            return self.lists(values, repeats, defined, rows)
        self.statistics(column, meta[12], values, nr - there)
        rest = iter(values)
        found = [next(rest) if level else None for level in defined]
        assert len(found) == rows
        return found

    @staticmethod
    def lists(values, repeats, defined, rows):
        found, rest = [], iter(values)
        for repeat, level in zip(repeats, defined):
            if not repeat:
                found.append([])
            if level:
                found[-1].append(next(rest))
        assert len(found) == rows
        return found

    @staticmethod
    def statistics(column, said, values, missing):
        assert said[3] == missing, (column.name, said, missing)
        if 5 not in said:
            assert not values or max(map(lambda v: len(str(v)), values)) > 64 or column.kind == DOUBLE
            return
        one = struct.Struct({BOOL: "<?", INT64: "<Q" if column.unsigned else "<q", DOUBLE: "<d"}
                            .get(column.kind, "<?"))
        least, most = (bound.decode() if column.kind == BYTE_ARRAY else one.unpack(bound)[0]
                       for bound in (said[6], said[5]))
        key = (lambda v: v.encode()) if column.kind == BYTE_ARRAY else None
        assert (least, most) == (min(values, key=key), max(values, key=key)), (column.name, least, most)


def files_of(folder, table=None):
    """Paths of all files, without hidden ones."""
    found = []
    for path, _, names in os.walk(os.path.join(folder, table) if table else folder):
        found += [os.path.join(path, name) for name in names if not name.startswith(".")]
    return sorted(found)


def partition(path):
    """HOST and HOUR of a path, undone what is encoded."""
    parts = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    return parts["host"], parts["hour"]


def rows(folder, table):
    """All rows of a table, as dictionaries, ordered by time."""
    found = []
    for path in files_of(folder, table):
        for group in File(path).groups:
            names = list(group)
            found += [dict(zip(names, values)) for values in zip(*group.values())]
    return sorted(found, key=lambda row: row["unix_ns"])
