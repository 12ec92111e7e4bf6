# SPDX-License-Identifier: MIT
"""Records one by one, as named tuples. For sums over many, columns are a hundred times as fast."""
from __future__ import annotations

from typing import Any, Callable, Iterator, NamedTuple, Tuple, Union

from ._tables import Part, Table


class Frame(NamedTuple):
    """A function in a call chain. `symbol` is "" where it is unknown, `file` and `line` if they were
    not asked for (open(lines=True))."""
    symbol: str
    image: str
    kernel: bool
    inlined: bool
    address: int
    file: str
    line: int


class Sample(NamedTuple):
    """What the counters counted, and where the code was. `pc` is None if the sample has no address."""
    ns: int
    core: int
    task: int
    pc: int | None
    counters: Tuple[int, ...]
    chain: Tuple[int, ...]
    frames: Tuple[Frame, ...] = ()


class Switch(NamedTuple):
    """Task `next` runs from now on. `prev` is None if it is not known who ran before; chain and frames
    are where prev stopped."""
    ns: int
    core: int
    prev: int | None
    next: int
    reason: str
    state: int
    chain: Tuple[int, ...]
    frames: Tuple[Frame, ...] = ()


class Halt(NamedTuple):
    """A CPU begins to halt (`entered`), or leaves its halt. `state` is -1 where it is unknown."""
    ns: int
    core: int
    entered: bool
    state: int


class Value(NamedTuple):
    """A value of a series; `scaled` is in its units."""
    ns: int
    core: int
    task: int
    series: int
    value: int
    scaled: float


class Detail(NamedTuple):
    """A wakeup, a migration, an interrupt …: see the table `details`."""
    ns: int
    core: int
    task: int
    what: str
    context: str
    id: int
    cpu: int
    value: int


class Mark(NamedTuple):
    """An annotation or a bookmark."""
    ns: int
    core: int
    task: int
    type: str
    channel: int
    group: int
    colour: int
    text: str


class Unknown(NamedTuple):
    """A record of a type that the library does not know."""
    ns: int
    core: int


Record = Union[Sample, Switch, Halt, Value, Detail, Mark, Unknown]

TABLES = ("records", "samples", "switches", "halts", "counters", "details", "marks")


def samples(table: Table, frames: list[Frame]) -> Iterator[Sample]:
    """The rows of the table of samples; @frames: all frames so far."""
    named: Any = table["frames"] if "frames" in table.columns else None
    columns = [table[name] for name in ("ns", "core", "task", "has_pc", "pc", "counters", "chain")]
    for at, (ns, core, task, has_pc, pc, counters, chain) in enumerate(zip(*columns)):
        yield Sample(ns, core, task, pc if has_pc else None, tuple(counters), tuple(chain),
                     tuple(frames[number] for number in named[at]) if named else ())


def switches(table: Table, frames: list[Frame]) -> Iterator[Switch]:
    """The same for switches."""
    named: Any = table["frames"] if "frames" in table.columns else None
    words = table.words("reason")
    columns = [table[name] for name in ("ns", "core", "known", "prev", "next", "reason", "state",
                                        "chain")]
    for at, (ns, core, known, prev, after, reason, state, chain) in enumerate(zip(*columns)):
        yield Switch(ns, core, prev if known else None, after, words[reason], state, tuple(chain),
                     tuple(frames[number] for number in named[at]) if named else ())


def _values(table: Table) -> Iterator[Value]:
    for ns, core, task, series, value, sampled, scaled in table:
        if not sampled:     # else it belongs to a sample
            yield Value(ns, core, task, series, value, scaled)


def records(part: Part, frames: list[Frame]) -> Iterator[Record]:
    """The records of a part in their order."""
    table = part["records"]
    each: dict[str, Callable[[], Record]] = {
        "sample": samples(part["samples"], frames).__next__,
        "task_switch": switches(part["switches"], frames).__next__,
        "halt": (Halt(*row) for row in part["halts"]).__next__,
        "value": _values(part["counters"]).__next__,
        "detail": (Detail(*row) for row in part["details"]).__next__,
        "annotation": (Mark(*row) for row in part["marks"]).__next__,
    }
    for ns, core, kind in zip(table["ns"], table["core"],
                              map(table.words("type").__getitem__, table.numbers("type"))):
        yield each[kind]() if kind in each else Unknown(ns, core)
