# SPDX-License-Identifier: MIT
"""Captures of kbarman as tables and records: who ran where and why it stopped, samples, idling.

    import kbarman

    capture = kbarman.open("kbarman.cap")
    switches = capture.table("switches")            # columns: memory of the library, not copied
    print(len(switches), sum(switches["blocked"]))
    array = numpy.asarray(switches["at_ns"])           # or pyarrow.table(switches)

    for part in capture.parts("samples", "idle"):   # of any size, in little memory
        count += len(part["samples"])

    for sample in capture.samples():                # one by one, with names
        print(sample.at_ns, capture.task_name(sample.tid, sample.at_ns), sample.frames[0].symbol)

    capture = kbarman.record("make", options=["-a"])

tables() tells which tables and columns there are; kbarman-python(7) is the manual.
"""
from ._capture import BYTES, RECORDS, Batches, Capture, open  # pylint: disable=redefined-builtin
from ._library import DamageWarning, Error, version as __version__
from ._records import Detail, Frame, Halt, Mark, Record, Sample, Switch, Unknown, Value
from ._tables import SCHEMAS, Column, Lists, Part, Schema, Table, Texts
from ._tool import ToolError, record, snapshot, tool


def tables() -> "dict[str, Schema]":
    """All tables that captures have, with their columns and what these say."""
    return dict(SCHEMAS)


__all__ = [
    "BYTES", "Batches", "Capture", "Column", "DamageWarning", "Detail", "Error", "Frame", "Halt",
    "Lists", "Mark", "Part", "RECORDS", "Record", "Sample", "Schema", "Switch", "Table", "Texts",
    "ToolError", "Unknown", "Value", "open", "record", "snapshot", "tables", "tool", "__version__",
]
