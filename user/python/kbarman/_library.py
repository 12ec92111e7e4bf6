# SPDX-License-Identifier: MIT
"""libkbarman as ctypes sees it: where it is, its structs and functions, its errors.

ctypes needs no compiler, so one package serves every version of Python. What is done for each
record is done in the library; Python sees whole columns.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any

SONAME = "libkbarman.so.0"
NO_OFFSET = 2 ** 64 - 1


class Error(Exception):
    """What the library says is wrong. `code` is a positive errno, or 0; `offset` a byte in the file, or
    None."""

    def __init__(self, text: str, code: int = 0, offset: int | None = None) -> None:
        super().__init__(text)
        self.code, self.offset = code, offset


class DamageWarning(UserWarning):
    """Records of a capture are damaged. All that are whole were read."""


class ErrorStruct(ctypes.Structure):
    """struct kb_error"""
    _fields_ = [("code", ctypes.c_int), ("whole", ctypes.c_uint32), ("offset", ctypes.c_uint64),
                ("text", ctypes.c_char * 256)]


class SymbolOptions(ctypes.Structure):
    """struct kb_symbol_options"""
    _fields_ = [("size", ctypes.c_size_t), ("kallsyms", ctypes.c_char_p),
                ("symfs", ctypes.c_char_p), ("raw_names", ctypes.c_bool),
                ("vmlinux", ctypes.c_char_p), ("lines", ctypes.c_bool),
                ("inlined", ctypes.c_bool), ("cache", ctypes.c_void_p)]


class TraceOptions(ctypes.Structure):
    """struct kb_trace_options"""
    _fields_ = [("size", ctypes.c_size_t), ("symbols", ctypes.POINTER(SymbolOptions)),
                ("counters", ctypes.c_int)]


class ColumnsOptions(ctypes.Structure):
    """struct kb_columns_options"""
    _fields_ = [("size", ctypes.c_size_t), ("tables", ctypes.c_char_p)]


class Column(ctypes.Structure):
    """struct kb_column"""
    _fields_ = [("name", ctypes.c_char_p), ("about", ctypes.c_char_p), ("type", ctypes.c_int),
                ("words", ctypes.POINTER(ctypes.c_char_p)), ("nr_words", ctypes.c_uint32)]


class ColumnTable(ctypes.Structure):
    """struct kb_column_table"""
    _fields_ = [("name", ctypes.c_char_p), ("about", ctypes.c_char_p),
                ("columns", ctypes.POINTER(Column)), ("nr_columns", ctypes.c_uint32)]


class ColumnValues(ctypes.Structure):
    """struct kb_column_values"""
    _fields_ = [("values", ctypes.c_void_p), ("nr_values", ctypes.c_uint64),
                ("room", ctypes.c_uint64), ("offsets", ctypes.c_void_p),
                ("offsets_room", ctypes.c_uint64)]


def _open() -> ctypes.CDLL:
    """That of $KBARMAN_LIBRARY; else that of the same installation; else the system's."""
    chosen = os.environ.get("KBARMAN_LIBRARY")
    # PREFIX/lib/python3/dist-packages/kbarman
    beside = os.path.join(os.path.abspath(__file__), *[os.pardir] * 4, SONAME)
    for name in [chosen] if chosen else [os.path.normpath(beside), SONAME]:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = error
    raise ImportError(f"{why}: install libkbarman, or set KBARMAN_LIBRARY to its path") from None


_POINTER, _OUT = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_ERROR = ctypes.POINTER(ErrorStruct)
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "kb_version": (ctypes.c_char_p, []),
    "kb_error_text": (ctypes.c_char_p, [_ERROR]),
    "kb_trace_open": (ctypes.c_int,
                      [_OUT, ctypes.c_char_p, ctypes.POINTER(TraceOptions), _ERROR]),
    "kb_trace_open_memory": (ctypes.c_int, [_OUT, ctypes.c_void_p, ctypes.c_size_t,
                                            ctypes.POINTER(TraceOptions), _ERROR]),
    "kb_trace_close": (None, [_POINTER]),
    "kb_trace_barman": (_POINTER, [_POINTER]),
    "kb_trace_first": (ctypes.c_int64, [_POINTER]),
    "kb_trace_last": (ctypes.c_int64, [_POINTER]),
    "kb_barman_finding": (_ERROR, [_POINTER, ctypes.c_uint]),
    "kb_columns_tables": (ctypes.POINTER(ColumnTable), [ctypes.POINTER(ctypes.c_uint32)]),
    "kb_columns_find": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32),
                                       ctypes.c_char_p]),
    "kb_columns_create": (ctypes.c_int, [_OUT, _POINTER, ctypes.POINTER(ColumnsOptions), _ERROR]),
    "kb_columns_destroy": (None, [_POINTER]),
    "kb_columns_next": (ctypes.c_int,
                        [_POINTER, ctypes.c_uint64, ctypes.c_uint64, _OUT, _ERROR]),
    "kb_columns_records": (ctypes.c_uint64, [_POINTER]),
    "kb_columns_rows": (ctypes.c_uint64, [_POINTER, ctypes.c_uint32]),
    "kb_columns_values": (ctypes.c_bool, [_POINTER, ctypes.c_uint32, ctypes.c_uint32,
                                          ctypes.POINTER(ColumnValues)]),
    "kb_columns_part_free": (None, [_POINTER]),
    "kb_arrow_part": (ctypes.c_int, [_POINTER, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]),
    "kb_arrow_reader": (ctypes.c_int, [_POINTER, _POINTER, ctypes.c_uint32, ctypes.c_uint64,
                                       ctypes.c_uint64, ctypes.c_void_p]),
    "kb_arrow_stream": (ctypes.c_int, [_POINTER, ctypes.c_uint32, ctypes.c_void_p]),
}

library = _open()
for _name, (_result, _arguments) in _PROTOTYPES.items():
    try:
        _function = getattr(library, _name)
    except AttributeError:
        raise ImportError(f"this libkbarman has no {_name}(): it is older than the package "
                          "kbarman of Python; install both of one version") from None
    _function.restype, _function.argtypes = _result, _arguments

version: str = library.kb_version().decode()


def error_of(struct: ErrorStruct, code: int = 0) -> Error:
    """What stands in @struct, after a function has returned @code."""
    text = library.kb_error_text(ctypes.byref(struct)).decode(errors="replace")
    offset = None if struct.offset == NO_OFFSET else struct.offset
    return Error(text or os.strerror(-code), -(struct.code or code), offset)


def path_bytes(path: str | os.PathLike[str] | None) -> bytes | None:
    """As the library takes it."""
    return None if path is None else os.fsencode(path)
