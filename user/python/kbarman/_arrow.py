# SPDX-License-Identifier: MIT
"""The capsules in which Arrow's libraries take a table: "The Arrow PyCapsule Interface" of Arrow's
documentation. The library fills the structs; a capsule that nobody took releases them."""
from __future__ import annotations

import ctypes
from typing import Any

from ._library import Error, library


class _Schema(ctypes.Structure):
    """struct ArrowSchema"""
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


class _Array(ctypes.Structure):
    """struct ArrowArray"""
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream"""
    _fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p),
                ("get_last_error", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


_python = ctypes.pythonapi
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", _python))
# Of a capsule that is about to end: it must not become an object again.
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python))
# Structs in capsules, by their address.
_living: dict[int, ctypes.Structure] = {}


def _destructor(name: bytes) -> Any:
    def destroy(capsule: int, living: dict[int, Any] = _living, pointer: Any = _pointer,
                release: Any = _RELEASE) -> None:
        address = pointer(capsule, name)
        struct = living.pop(address)
        if struct.release:
            release(struct.release)(address)

    return _DESTRUCTOR(destroy)


_NAMES: dict[type[ctypes.Structure], bytes] = {
    _Schema: b"arrow_schema", _Array: b"arrow_array", _Stream: b"arrow_array_stream"}
_DESTRUCTORS = {kind: _destructor(name) for kind, name in _NAMES.items()}
# A capsule may outlive this module.
for _kept in [*_NAMES.values(), *_DESTRUCTORS.values()]:
    _python.Py_IncRef(ctypes.py_object(_kept))


def _capsule(struct: ctypes.Structure) -> object:
    address = ctypes.addressof(struct)
    _living[address] = struct
    return _new(address, _NAMES[type(struct)], _DESTRUCTORS[type(struct)])


def _check(code: int) -> None:
    if code:
        raise Error("out of memory for Arrow's structs" if code != -2 else
                    "no column of this table was asked for", -code)


def schema(part: int, table: int) -> object:
    """A capsule with the columns of a table."""
    struct = _Schema()
    _check(library.kb_arrow_part(part, table, ctypes.addressof(struct), None))
    return _capsule(struct)


def array(part: int, table: int) -> tuple[object, object]:
    """Capsules with the columns and the values of a table."""
    columns, values = _Schema(), _Array()
    _check(library.kb_arrow_part(part, table, ctypes.addressof(columns), ctypes.addressof(values)))
    return _capsule(columns), _capsule(values)


def stream(part: int, table: int) -> object:
    """A capsule with a stream of one batch."""
    struct = _Stream()
    _check(library.kb_arrow_stream(part, table, ctypes.addressof(struct)))
    return _capsule(struct)


def reader(columns: ctypes.c_void_p, trace: ctypes.c_void_p, table: int, records: int,
           size: int) -> object:
    """The same of many batches. The capsule takes over the columns and the trace."""
    struct = _Stream()
    _check(library.kb_arrow_reader(columns, trace, table, records, size, ctypes.addressof(struct)))
    return _capsule(struct)
