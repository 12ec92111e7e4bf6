# SPDX-License-Identifier: MIT
"""Tables and their columns: views of memory that the library has filled. Nothing is copied.

A column of numbers is a memoryview with the type of its values, so it has a length, an index, slices
and tolist(). numpy.asarray(column) and pyarrow.py_buffer(column) take it as it is.
"""
from __future__ import annotations

import ctypes
from typing import Any, Iterator, Mapping, NamedTuple, Sequence, Tuple, Union, overload

from . import _arrow
from ._library import ColumnValues, library

# Letters of enum kb_column_type that are no letters of the module struct.
_TEXT, _LISTS = "s", {"l": "I", "L": "Q"}
# Bytes of a value of the others.
_SIZES = {"?": 1, "B": 1, "I": 4, "i": 4, "Q": 8, "q": 8, "d": 8}


class Column(NamedTuple):
    """A column as the library describes it. `type` is a letter of the module struct, "s" for texts,
    "l" and "L" for lists of 32 and 64 bits."""
    name: str
    about: str
    type: str
    words: Tuple[str, ...]


class Schema(NamedTuple):
    """A table as the library describes it."""
    number: int
    name: str
    about: str
    columns: Tuple[Column, ...]


def _schemas() -> dict[str, Schema]:
    found, count = {}, ctypes.c_uint32()
    tables = library.kb_columns_tables(ctypes.byref(count))
    for index in range(count.value):
        table = tables[index]
        columns = tuple(
            Column(column.name.decode(), column.about.decode(), chr(column.type),
                   tuple(column.words[word].decode() for word in range(column.nr_words)))
            for column in table.columns[:table.nr_columns])
        name = table.name.decode()
        found[name] = Schema(index, name, table.about.decode(), columns)
    return found


SCHEMAS: dict[str, Schema] = _schemas()


def find_column(table: str, name: str) -> int | None:
    """The number of a column by its name, or by the one that it had before: until 1.0."""
    at = ctypes.c_uint32()
    library.kb_columns_find(table.encode(), ctypes.byref(at), name.encode())
    return at.value if at.value < len(SCHEMAS[table].columns) else None


class Held:
    """Holds a part of the library as long as anything refers to its memory."""

    def __init__(self, part: int, spare: list[int] | None = None) -> None:
        self.part, self.spare = part, spare

    def __del__(self) -> None:
        if self.spare is not None and not self.spare:
            self.spare.append(self.part)    # its reader will fill it again
        else:
            library.kb_columns_part_free(self.part)


# Types of arrays by their length, a power of two.
_ROOMS: dict[int, Any] = {}


def _cast(view: memoryview, letter: str) -> memoryview:
    """Values of a type that is not known before: newer stubs of Python want it literally."""
    cast: Any = view.cast
    values: memoryview = cast(letter)
    return values


def _view(held: Held, address: int | None, room: int, count: int, letter: str) -> memoryview:
    """@count values at @address, which has @room bytes."""
    if not count or not address:
        return _cast(memoryview(b""), letter)
    if room not in _ROOMS:
        _ROOMS[room] = ctypes.c_ubyte * room
    memory = _ROOMS[room].from_address(address)
    memory.held = held      # a view keeps the array, and so the part
    whole = memoryview(memory).toreadonly().cast("B")
    return _cast(whole[:count * _SIZES[letter]], letter)


class Texts(Sequence[str]):
    """A column of texts. `data` has the bytes of all of them, in UTF-8, and `offsets` where each
    begins, and where the last one ends."""

    def __init__(self, offsets: memoryview, data: memoryview) -> None:
        self.offsets, self.data = offsets, data

    def __len__(self) -> int:
        return max(len(self.offsets) - 1, 0)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[str, list[str]]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return str(self.data[self.offsets[at]:self.offsets[at + 1]], "utf-8")


class Lists(Sequence[memoryview]):
    """A column of lists of numbers. `values` has the numbers of all rows, and `offsets` where each row
    begins, and where the last one ends."""

    def __init__(self, offsets: memoryview, values: memoryview) -> None:
        self.offsets, self.values = offsets, values

    def __len__(self) -> int:
        return max(len(self.offsets) - 1, 0)

    @overload
    def __getitem__(self, index: int) -> memoryview: ...
    @overload
    def __getitem__(self, index: slice) -> list[memoryview]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[memoryview, list[memoryview]]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return self.values[self.offsets[at]:self.offsets[at + 1]]


Values = Union[memoryview, Texts, Lists]


class Table:
    """The rows of a table. table["at_ns"] is a column; iteration gives the rows as tuples, in the order of
    `columns`, with words as text. Arrow's libraries take it as it is: pyarrow.table(table),
    polars.DataFrame(table)."""

    def __init__(self, schema: Schema, held: Held) -> None:
        self._schema, self._held = schema, held
        self._values: dict[str, Values] = {}
        self._rows = library.kb_columns_rows(held.part, schema.number)
        described = ColumnValues()
        self._columns = {
            column.name: (number, column) for number, column in enumerate(schema.columns)
            if library.kb_columns_values(held.part, schema.number, number, ctypes.byref(described))}

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._schema.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that were asked for."""
        return tuple(self._columns)

    def _find(self, name: str) -> tuple[int, Column]:
        if name not in self._columns and find_column(self.name, name) is not None:
            name = self._schema.columns[find_column(self.name, name) or 0].name
        return self._columns[name]

    def __getitem__(self, name: str) -> Values:
        if name not in self._values:
            self._values[name] = self._look(*self._find(name))
        return self._values[name]

    def _look(self, number: int, column: Column) -> Values:
        at, held = ColumnValues(), self._held
        library.kb_columns_values(held.part, self._schema.number, number, ctypes.byref(at))
        letter = "B" if column.type == _TEXT else _LISTS.get(column.type, column.type)
        values = _view(held, at.values, at.room, at.nr_values, letter)
        if letter == column.type:
            return values
        offsets = _view(held, at.offsets, at.offsets_room, self._rows + 1, "q")
        return Texts(offsets, values) if column.type == _TEXT else Lists(offsets, values)

    def numbers(self, name: str) -> memoryview:
        """A column of numbers, for programs that are checked for types."""
        values = self[name]
        if not isinstance(values, memoryview):
            raise TypeError(f"'{name}' of table '{self.name}' is no column of numbers")
        return values

    def texts(self, name: str) -> Texts:
        """The same for a column of texts."""
        values = self[name]
        if not isinstance(values, Texts):
            raise TypeError(f"'{name}' of table '{self.name}' is no column of texts")
        return values

    def lists(self, name: str) -> Lists:
        """The same for a column of lists."""
        values = self[name]
        if not isinstance(values, Lists):
            raise TypeError(f"'{name}' of table '{self.name}' is no column of lists")
        return values

    def keys(self) -> tuple[str, ...]:
        """The same as `columns`; so dict(table) has them all."""
        return self.columns

    def __len__(self) -> int:
        return int(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        each: list[Any] = []
        for name, (_, column) in self._columns.items():
            words: Any = column.words
            each.append(map(words.__getitem__, self.numbers(name)) if words else self[name])
        return zip(*each)

    def __repr__(self) -> str:
        return f"<kbarman.Table {self.name}: {len(self)} rows of {', '.join(self._columns)}>"

    def words(self, name: str) -> tuple[str, ...]:
        """The words of a column that has numbers of words; else ()."""
        return self._find(name)[1].words

    def about(self, name: str | None = None) -> str:
        """What the table has, or one of its columns."""
        return self._find(name)[1].about if name else self._schema.about

    def __arrow_c_schema__(self) -> object:
        return _arrow.schema(self._held.part, self._schema.number)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _arrow.array(self._held.part, self._schema.number)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _arrow.stream(self._held.part, self._schema.number)


class Part(Mapping[str, Table]):
    """Records of a capture that were read together: a mapping from names of tables to tables."""

    def __init__(self, part: int, names: Sequence[str], spare: list[int] | None = None) -> None:
        held = Held(part, spare)
        self.records = int(library.kb_columns_records(part))
        self._tables = {name: Table(SCHEMAS[name], held) for name in names}

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<kbarman.Part of {self.records} records: {', '.join(self._tables)}>"
