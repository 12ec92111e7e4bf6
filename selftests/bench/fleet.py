#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: fleet.py [--hosts N] [--hours N] [--keep DIRECTORY] CAPTURE…

Makes the captures of a fleet of these, each shifted in time and given to another machine, converts
them to Parquet, and asks DuckDB the queries of docs/fleet.md. Totals are compared with the sums of
`kbarman report`. Prints how large an hour of a machine is, and how long each query takes."""
import argparse
import collections
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import fleet  # noqa: E402
import parquet  # noqa: E402
import tap  # noqa: E402

UNIX_BASE = 84          # where it stands in a capture of 64 bits, little endian
START = 1795636800 * 10**9
HOUR = 3600 * 10**9


def shifted(path, to, unix):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    assert data[:8] == struct.pack("<Q", 0x4241524d414e3634), f"{path}: not 64 bits, little endian"
    struct.pack_into("<Q", data, UNIX_BASE, unix)
    with open(to, "wb") as file:
        file.write(data)


def totals_of(path):
    """What the totals of the folder are compared with."""
    found = collections.Counter()
    for line in tap.run("report", "--json", "--percent-limit", "0", path).stdout.splitlines():
        row = json.loads(line)
        if row["kind"] == "report":
            found.update({key: row[key] for key in ("records", "switches", "samples")})
        elif row["kind"] == "task_time":
            found["run_ns"] += row["run_ns"]
        elif row["kind"] == "idle":
            found["idle_ns"] += row["duration_ns"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=1)
    parser.add_argument("--keep", metavar="DIRECTORY")
    options = parser.parse_args()
    tmp = tempfile.mkdtemp(prefix="kbarman-fleet-")
    folder = options.keep or os.path.join(tmp, "fleet")
    dice, want, each = random.Random(1), collections.Counter(), {}
    for path in options.captures:
        each[path] = totals_of(path)
    begun, size = time.monotonic(), 0
    for host in range(options.hosts):
        for hour in range(options.hours):
            path = dice.choice(options.captures)
            capture = os.path.join(tmp, "kbarman.cap")
            shifted(path, capture, START + hour * HOUR + dice.randrange(HOUR - 10**12))
            size += os.path.getsize(capture)
            result = tap.run("convert", capture, "--to", "parquet", "-o", folder, "--host", f"web{host:04}",
                             "--symfs", tmp, timeout=600)
            assert result.returncode == 0, result
            want.update(each[path])
    took = time.monotonic() - begun
    files = parquet.files_of(folder)
    bytes_of = sum(map(os.path.getsize, files))
    nr = options.hosts * options.hours
    print(f"{nr} captures of {size / nr / 1e6:.2f} MB, {want['records'] / nr:.0f} records: {took / nr:.3f} s each;"
          f" {len(files)} files, {bytes_of / nr / 1e6:.3f} MB for each, {bytes_of / want['records']:.2f} bytes a record")
    got = fleet.answers(folder, [
        "select sum(records)::bigint as n from captures", "select count(*) as n from switches",
        "select count(*) as n from samples", "select sum(duration_ns)::bigint as n from runs",
        "select sum(duration_ns)::bigint as n from idle"])
    got = [int(rows[0]["n"] or 0) for _, rows in got]
    assert got == [want[key] for key in ("records", "switches", "samples", "run_ns", "idle_ns")], (got, want)
    print("totals are those of the reports:", dict(want))
    for (title, _), (ms, rows) in zip(fleet.queries(), fleet.answers(folder, [q for _, q in fleet.queries()])):
        print(f"{ms / 1000:8.2f} s  {len(rows):3} rows  {title}")
    shutil.rmtree(tmp)


if __name__ == "__main__":
    main()
