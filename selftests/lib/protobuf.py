# SPDX-License-Identifier: MIT
"""A reader of protocol buffers by a schema, which refuses what the schema has not.

A schema is {field number: (name, type)}; a type is "uint", "sint" (two's complement),
"double", "fixed" (64 bits), "bytes", "text" (UTF-8), a schema, or one of these in a list: repeated.
"""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        assert shift <= 70, "a varint of more than ten bytes"
        if byte < 0x80:
            return value & (2**64 - 1), at


def read(data, schema, where="message"):
    """{name: value}; repeated fields are lists, and always there."""
    out = {name: [] for name, kind in schema.values() if isinstance(kind, list)}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        assert field in schema, (where, field, "is not in the schema")
        name, kind = schema[field]
        repeated = isinstance(kind, list)
        if repeated:
            kind = kind[0]
        if wire == 0:
            value, at = varint(data, at)
            assert kind in ("uint", "sint"), (where, name)
            if kind == "sint" and value >= 2**63:
                value -= 2**64
            values = [value]
        elif wire == 1:
            assert kind in ("double", "fixed"), (where, name)
            values, at = list(struct.unpack_from("<d" if kind == "double" else "<Q", data, at)), at + 8
        else:
            assert wire == 2, (where, name, wire)
            length, at = varint(data, at)
            assert at + length <= len(data), (where, name, "runs over the end")
            part, at = data[at:at + length], at + length
            values = packed(part, kind) if kind in ("uint", "sint") else [
                part if kind == "bytes" else part.decode() if kind == "text" else
                read(part, kind, f"{where}.{name}")]
        if repeated:
            out[name] += values
        else:
            assert name not in out, (where, name, "stands twice")
            out[name] = values[0]
    return out


def packed(data, kind):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value - 2**64 if kind == "sint" and value >= 2**63 else value)
    return values
