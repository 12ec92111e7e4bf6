# SPDX-License-Identifier: MIT
"""Records one by one, as named tuples. For sums over many, columns are a hundred times as fast."""
from __future__ import annotations

import operator
from typing import Any, Callable, Iterator, NamedTuple, Tuple, Union

from ._tables import Part, Table


class Frame(NamedTuple):
    """A function in a call chain. `symbol` is "" where it is unknown, `source` and `line` if they were
    not asked for (open(lines=True))."""
    symbol: str
    image: str
    kernel: bool
    inlined: bool
    address: int
    source: str
    line: int


class Sample(NamedTuple):
    """What the counters counted, and where the code was. `pc` is None if the sample has no address."""
    at_ns: int
    cpu: int
    tid: int
    pc: int | None
    counters: Tuple[int, ...]
    stack: Tuple[int, ...]
    frames: Tuple[Frame, ...] = ()


class Switch(NamedTuple):
    """Task `tid` left the CPU, and `next_tid` runs. `tid` is None if it is not known who left; state is a
    letter of ps(1); stack and frames are where the task stopped."""
    at_ns: int
    cpu: int
    tid: int | None
    next_tid: int
    blocked: bool
    state: str
    stack: Tuple[int, ...]
    frames: Tuple[Frame, ...] = ()


class Halt(NamedTuple):
    """A CPU begins to halt (`entered`), or leaves its halt. `idle_state` is -1 where it is unknown."""
    at_ns: int
    cpu: int
    entered: bool
    idle_state: int


class Value(NamedTuple):
    """A value of a series, a row of capture.series_names; `raw` is without its multiplier."""
    at_ns: int
    cpu: int
    tid: int
    series: int
    value: float
    raw: int


class Detail(NamedTuple):
    """A wakeup, a migration, an interrupt …: see the table `details`."""
    at_ns: int
    cpu: int
    tid: int
    what: str
    about_id: int
    about_cpu: int
    context: str
    value: int


class Mark(NamedTuple):
    """An annotation or a bookmark."""
    at_ns: int
    cpu: int
    tid: int
    type: str
    channel: int
    group_id: int
    colour: int
    text: str


class Unknown(NamedTuple):
    """A record of a type that the library does not know."""
    at_ns: int
    cpu: int


# Names that work until 1.0.
for _old, _name, _classes in (("ns", "at_ns", (Sample, Switch, Halt, Value, Detail, Mark, Unknown)),
                              ("chain", "stack", (Sample, Switch)), ("file", "source", (Frame,))):
    for _class in _classes:
        setattr(_class, _old, property(operator.attrgetter(_name)))

Record = Union[Sample, Switch, Halt, Value, Detail, Mark, Unknown]

TABLES = ("records", "samples", "switches", "halts", "series", "details", "marks")


def samples(table: Table, frames: list[Frame]) -> Iterator[Sample]:
    """The rows of the table of samples; @frames: all frames so far."""
    named: Any = table["frames"] if "frames" in table.columns else None
    columns = [table[name] for name in ("at_ns", "cpu", "tid", "has_pc", "pc", "counters", "stack")]
    for at, (at_ns, cpu, tid, has_pc, pc, counters, stack) in enumerate(zip(*columns)):
        yield Sample(at_ns, cpu, tid, pc if has_pc else None, tuple(counters), tuple(stack),
                     tuple(frames[number] for number in named[at]) if named else ())


def switches(table: Table, frames: list[Frame]) -> Iterator[Switch]:
    """The same for switches."""
    named: Any = table["frames"] if "frames" in table.columns else None
    words = table.words("state")
    columns = [table[name] for name in ("at_ns", "cpu", "known", "tid", "next_tid", "blocked", "state",
                                        "stack")]
    for at, (at_ns, cpu, known, tid, after, blocked, state, stack) in enumerate(zip(*columns)):
        yield Switch(at_ns, cpu, tid if known else None, after, blocked, words[state], tuple(stack),
                     tuple(frames[number] for number in named[at]) if named else ())


def _values(table: Table) -> Iterator[Value]:
    for at_ns, cpu, tid, series, value, raw, sampled in table:
        if not sampled:     # else it belongs to a sample
            yield Value(at_ns, cpu, tid, series, value, raw)


def records(part: Part, frames: list[Frame]) -> Iterator[Record]:
    """The records of a part in their order."""
    table = part["records"]
    each: dict[str, Callable[[], Record]] = {
        "sample": samples(part["samples"], frames).__next__,
        "switch": switches(part["switches"], frames).__next__,
        "halt": (Halt(*row) for row in part["halts"]).__next__,
        "value": _values(part["series"]).__next__,
        "detail": (Detail(*row) for row in part["details"]).__next__,
        "mark": (Mark(*row) for row in part["marks"]).__next__,
    }
    for at_ns, cpu, kind in zip(table.numbers("at_ns"), table.numbers("cpu"),
                              map(table.words("type").__getitem__, table.numbers("type"))):
        yield each[kind]() if kind in each else Unknown(at_ns, cpu)
