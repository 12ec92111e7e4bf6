# SPDX-License-Identifier: MIT
"""A capture: its tables, its records, its names."""
from __future__ import annotations

import bisect
import collections
import ctypes
import datetime
import errno
import os
import shutil
import sys
import tempfile
import warnings
from types import TracebackType
from typing import IO, Callable, Iterator, Sequence, Union

from . import _arrow, _records
from ._library import (ColumnsOptions, DamageWarning, Error, ErrorStruct, SymbolOptions,
                       TraceOptions, error_of, library, path_bytes)
from ._records import Frame, Record, Sample, Switch
from ._tables import SCHEMAS, Part, Table, find_column

# What the first part has of every capture.
_FIXED = ("header", "facts", "tasks", "images", "series_names", "events", "losses")
_ALL = 2 ** 64 - 1

# How many records, and how many bytes of their rows, are in memory at a time.
RECORDS = 1 << 16
BYTES = 8 << 20

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


def _level_of_caller() -> int:
    """Where a warning belongs: to who called this package."""
    level, frame = 1, sys._getframe(1)      # pylint: disable=protected-access
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


class _Reader:
    """One walk over a capture. Iteration gives its parts."""

    def __init__(self, capture: Capture, columns: str, records: int, size: int) -> None:
        self._trace, self._columns = ctypes.c_void_p(), ctypes.c_void_p()
        self._spare: list[int] = []
        self._capture, self._limits = capture, (records, size)
        self._names = list(dict.fromkeys(word.partition(".")[0] for word in columns.split()))
        self._error = ErrorStruct()
        capture._open_trace(self._trace, self._error)
        options = ColumnsOptions(ctypes.sizeof(ColumnsOptions), columns.encode())
        code = library.kb_columns_create(ctypes.byref(self._columns), self._trace,
                                         ctypes.byref(options), ctypes.byref(self._error))
        if code:
            self.close()
            raise error_of(self._error, code)

    def close(self) -> None:
        """Stop reading. Parts stay what they are."""
        library.kb_columns_destroy(self._columns)
        library.kb_trace_close(self._trace)
        self._columns, self._trace = ctypes.c_void_p(), ctypes.c_void_p()
        while self._spare:
            library.kb_columns_part_free(self._spare.pop())
        self._spare.append(0)       # takes none any more

    __del__ = close

    def give_away(self, table: str) -> object:
        """A capsule with a stream of that table, which goes on where this reader is."""
        capsule = _arrow.reader(self._columns, self._trace, SCHEMAS[table].number, *self._limits)
        self._columns, self._trace = ctypes.c_void_p(), ctypes.c_void_p()
        return capsule

    def __iter__(self) -> _Reader:
        return self

    def __next__(self) -> Part:
        if not self._columns:
            raise StopIteration
        part = ctypes.c_void_p(self._spare.pop() if self._spare else None)
        code = library.kb_columns_next(self._columns, *self._limits, ctypes.byref(part),
                                       ctypes.byref(self._error))
        if code > 0 and part.value:
            return Part(part.value, self._names, self._spare)
        self._finish(code)
        raise StopIteration

    def _finish(self, code: int) -> None:
        self._capture._span = (library.kb_trace_first(self._trace),
                               library.kb_trace_last(self._trace))
        why = error_of(self._error, code) if code else None
        self.close()
        if why and why.code == errno.ENOMEM:
            raise why
        if why:
            warnings.warn(DamageWarning(str(why)), stacklevel=_level_of_caller())


class Batches:
    """A table for who reads Arrow, batch by batch: see Capture.batches()."""

    def __init__(self, reader: Callable[[], _Reader], table: str) -> None:
        self._reader, self._table = reader, table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader().give_away(self._table)


class _Names:
    """Names and processes that had one number of a task, one after the other."""

    def __init__(self) -> None:
        self._since: list[int] = []
        self._had: list[tuple[str, int]] = []

    def add(self, ns: int, name: str, pid: int) -> None:
        """The next one."""
        self._since.append(ns)
        self._had.append((name, pid))

    def at(self, ns: int) -> tuple[str, int]:
        """The newest one that is not newer than @ns; else the oldest."""
        return self._had[max(bisect.bisect_right(self._since, ns) - 1, 0)]


class Capture:
    """A capture, opened by open(). Each method that reads records begins with the first one, and several
    may read at the same time, in several threads."""

    def __init__(self, source: Source, *, kallsyms: str | os.PathLike[str] | None = None,
                 symfs: str | os.PathLike[str] | None = None, raw_names: bool = False,
                 vmlinux: str | os.PathLike[str] | None = None, lines: bool = False,
                 inlined: bool = False) -> None:
        self._file: IO[bytes] | None = None
        self._data: bytes | None = None
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._data = bytes(source)
        elif os.fspath(source) == "-":
            self._file = tempfile.TemporaryFile()
            shutil.copyfileobj(sys.stdin.buffer, self._file)
            self._file.flush()
            source = f"/proc/self/fd/{self._file.fileno()}"
        self._path = None if self._data is not None else os.fsencode(source)
        self._symbols = SymbolOptions(
            ctypes.sizeof(SymbolOptions), path_bytes(kallsyms), path_bytes(symfs), raw_names,
            path_bytes(vmlinux), lines, inlined, None)
        self._options = TraceOptions(ctypes.sizeof(TraceOptions), ctypes.pointer(self._symbols), 0)
        self._span: tuple[int, int] | None = None
        self.said = ""      # by who recorded it: see record()
        self._fixed = next(_Reader(self, " ".join(_FIXED), 1, 1))
        self._names: dict[int, _Names] = collections.defaultdict(_Names)
        for tid, pid, name, ns, *_ in sorted(self._fixed["tasks"], key=lambda row: int(row[4])):
            self._names[tid].add(ns, name, pid)

    def _open_trace(self, trace: ctypes.c_void_p, error: ErrorStruct) -> None:
        if self._data is not None:
            code = library.kb_trace_open_memory(
                ctypes.byref(trace), ctypes.cast(ctypes.c_char_p(self._data), ctypes.c_void_p),
                len(self._data), ctypes.byref(self._options), ctypes.byref(error))
        else:
            code = library.kb_trace_open(ctypes.byref(trace), self._path,
                                         ctypes.byref(self._options), ctypes.byref(error))
        if code:
            raise error_of(error, code)

    def close(self) -> None:
        """Give back the copy of what came from a pipe. Tables stay what they are."""
        if self._file:
            self._file.close()

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        name = "bytes" if self._path is None else os.fsdecode(self._path)
        return f"<kbarman.Capture {name}>"

    # ---- what the header says

    @property
    def header(self) -> dict[str, object]:
        """The table `header`: names and values."""
        return dict(zip(self._fixed["header"].columns, next(iter(self._fixed["header"]))))

    @property
    def facts(self) -> dict[str, str]:
        """The strings kbarman.KEY=VALUE of the capture."""
        return {key: value for key, value in self._fixed["facts"]}

    @property
    def cpus(self) -> int:
        """The number of CPUs that the capture has room for."""
        return self._fixed["header"].numbers("cpus")[0]

    @property
    def tasks(self) -> Table:
        """The names of tasks over time."""
        return self._fixed["tasks"]

    @property
    def images(self) -> Table:
        """The mappings of code."""
        return self._fixed["images"]

    @property
    def series_names(self) -> Table:
        """What the values of the table `series` are."""
        return self._fixed["series_names"]

    @property
    def events(self) -> Table:
        """What the counters of samples count."""
        return self._fixed["events"]

    @property
    def losses(self) -> Table:
        """What is missing, as the capture tells."""
        return self._fixed["losses"]

    def task_name(self, tid: int, ns: int = 2 ** 63 - 1) -> str:
        """The name of a task at a time; ":TID" if the capture has none."""
        if tid not in self._names:
            return f":{tid}" if tid else "idle"
        return self._names[tid].at(ns)[0]

    def pid(self, tid: int, ns: int = 2 ** 63 - 1) -> int:
        """The process of a task at a time; the task itself if the capture does not say."""
        return self._names[tid].at(ns)[1] if tid in self._names else tid

    def wall_clock(self, ns: int) -> datetime.datetime:
        """The time of day of a time in the capture, to the microsecond."""
        base = self._fixed["header"].numbers("unix_base_ns")[0]
        begin = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return begin + datetime.timedelta(microseconds=(base + ns) // 1000)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last moment of the recording, ns. Reads the capture if nobody has yet."""
        if self._span is None:
            for _ in self.parts(records=_ALL, size=_ALL):
                pass
        assert self._span
        return self._span

    # ---- tables

    def parts(self, *columns: str, records: int = RECORDS, size: int = BYTES) -> Iterator[Part]:
        """Read tables in parts of at most @records records, and not many more bytes than @size.

        Each of @columns is "TABLE", or "TABLE.COLUMN" for this column alone. TABLE is all its columns
        but `frames`, which takes the symbols of the capture: parts("samples", "samples.frames").
        The tables `functions` and `handlers` have in each part those that are new: what refers to
        them counts from the first part on. A part that is not kept is filled again.
        """
        return _Reader(self, self._wanted(columns), records, size)

    @staticmethod
    def _wanted(columns: Sequence[str]) -> str:
        """As the library takes it. Raises KeyError."""
        wanted = list(columns)
        if any(column.endswith(".frames") for column in wanted) and "functions" not in wanted:
            wanted.append("functions")
        for column in wanted:
            table, _, name = column.partition(".")
            if table not in SCHEMAS:
                raise KeyError(f"there is no table '{table}'")
            if name and find_column(table, name) is None:
                raise KeyError(f"table '{table}' has no column '{name}'")
        return " ".join(wanted)

    def read(self, *columns: str) -> Part:
        """The same as one part: everything."""
        first, *_ = self.parts(*columns, records=_ALL, size=_ALL)
        return first

    def table(self, name: str, *columns: str) -> Table:
        """A whole table, or those columns of it."""
        return self.read(*[f"{name}.{column}" for column in columns] or [name])[name]

    def batches(self, name: str, *columns: str, records: int = RECORDS, size: int = BYTES) -> Batches:
        """A table, or those columns of it, for Arrow's libraries that read batch by batch, such as
        pyarrow.RecordBatchReader.from_stream(...) and DuckDB. A capture of any size takes the memory
        of a batch. Each use reads the capture again. Damage is an error behind the last batch."""
        if self._data is not None:
            raise TypeError("a capture of bytes can't be read in batches: read its tables")
        wanted = self._wanted([f"{name}.{column}" for column in columns] or [name])
        return Batches(lambda: _Reader(self, wanted, records, size), name)

    # ---- records

    def _with_frames(self, tables: tuple[str, ...], resolve: bool) -> \
            Iterator[tuple[Part, list[Frame]]]:
        frames: list[Frame] = []
        columns = [f"{table}.frames" for table in tables if table in ("samples", "switches")]
        for part in self.parts(*tables, *columns if resolve else ()):
            if resolve:
                frames += (Frame(*row) for row in part["functions"])
            yield part, frames

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, resolve: bool = False) -> Iterator[Record]:
        """Every record, in the order of the capture. @resolve: with the names of call chains."""
        for part, frames in self._with_frames(_records.TABLES, resolve):
            yield from _records.records(part, frames)

    def samples(self, resolve: bool = True) -> Iterator[Sample]:
        """The samples, with the functions of their call chains: sample.frames[0] is where it fell."""
        for part, frames in self._with_frames(("samples",), resolve):
            yield from _records.samples(part["samples"], frames)

    def switches(self, resolve: bool = False) -> Iterator[Switch]:
        """The task switches."""
        for part, frames in self._with_frames(("switches",), resolve):
            yield from _records.switches(part["switches"], frames)


def open(source: Source, *,    # pylint: disable=redefined-builtin
         kallsyms: str | os.PathLike[str] | None = None,
         symfs: str | os.PathLike[str] | None = None, raw_names: bool = False,
         vmlinux: str | os.PathLike[str] | None = None, lines: bool = False,
         inlined: bool = False) -> Capture:
    """Open a capture: a path, "-" for the standard input, or the bytes of one.

    Options say where names come from, as those of `kbarman report`: kallsyms=, symfs= and vmlinux= are
    paths; raw_names=True leaves names of C++ and Rust as they are; lines=True adds source lines and
    inlined=True inlined functions. Raises Error.
    """
    return Capture(source, kallsyms=kallsyms, symfs=symfs, raw_names=raw_names, vmlinux=vmlinux,
                   lines=lines, inlined=inlined)


__all__ = ["Capture", "Error", "open"]
