#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Code made at run time that a jitdump describes: names by address and time, lines, bundles."""
import collections
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker
from test_viewers_pprof import Profile

# Ticks are ns. Both clocks began long before, and CLOCK_MONOTONIC runs 100 millionths faster.
RAW, MONOTONIC = 5_000_000_000_000, 5_300_000_000_000
CLOCKS = {"raw_base": RAW, "monotonic_base": f"{RAW},{MONOTONIC}",
          "monotonic_end": f"{RAW + 10**10},{MONOTONIC + 10**10 + 10**6}"}


def monotonic(tick):
    return MONOTONIC + tick + tick // 10000


class Dump:
    def __init__(self, order="<", flags=0):
        self.order = order
        self.bytes = struct.pack(order + "6IQQ", 0x4a695444, 1, 40, 62, 0, 7, 0, flags)

    def record(self, kind, time, payload):
        self.bytes += struct.pack(self.order + "IIQ", kind, 16 + len(payload), time) + payload

    def load(self, tick, start, size, index, name):
        self.record(0, monotonic(tick), struct.pack(self.order + "IIQQQQ", 7, 7, start, start, size,
                                                    index) + name.encode() + b"\0" + bytes(size))

    def move(self, tick, old, new, size, index):
        self.record(1, monotonic(tick), struct.pack(self.order + "IIQQQQQ", 7, 7, new, old, new,
                                                    size, index))

    def lines(self, start, *rows):
        payload = struct.pack(self.order + "QQ", start, len(rows))
        for offset, line, file in rows:
            payload += struct.pack(self.order + "QII", start + offset, line, 0)
            payload += file.encode() + b"\0"
        self.record(2, 0, payload)

    def save(self, tmp, name="tmp/jit-7.dump"):
        path = os.path.join(tmp, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(self.bytes)
        return path


def example(order="<"):
    dump = Dump(order)
    dump.load(1000, 0x10000, 0x100, 1, "first")
    dump.lines(0x10200, (0, 10, "a.js"), (0x10, 12, "a.js"))
    dump.load(2000, 0x10200, 0x100, 2, "with lines")
    dump.load(5 * 10**9, 0x10000, 0x80, 3, "second")
    dump.move(6 * 10**9, 0x10200, 0x10400, 0x100, 2)
    return dump


def capture(tmp, samples, facts=None, image="/tmp/jit-7.dump", file=None):
    """@samples: (tick, pc) of task 8, a thread of process 7."""
    maker = Maker(facts={"tgid.1": "7", **(CLOCKS if facts is None else facts)})
    maker.task(7, "node")
    maker.task(8, "worker")
    maker.map(7, 0x10000, 0x1000, 0, "//anon")
    maker.map(7, 0x70000, 0x1000, 0, image, file=file)
    for tick, pc in samples:
        maker.sample(0, tick, 8, pc)
    return maker.save(os.path.join(tmp, "jit.cap"))


def symbols(tmp, *args):
    result = tap.run("report", "--json", *args, cwd=tmp)
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {row["symbol"]: row["samples"] for row in rows if row["kind"] == "symbol"}, result.stderr


EXAMPLE = [(100, 0x10010),			# before all code: the oldest
           (3000, 0x10010), (3100, 0x10010),	# first
           (5 * 10**9 - 1000, 0x10010),		# first, still
           (5 * 10**9 + 1000, 0x10010),		# second
           (5 * 10**9 + 2000, 0x10090),		# first, behind the second one
           (5 * 10**9 + 3000, 0x10210),		# with lines
           (7 * 10**9, 0x10410),		# the same, moved
           (7 * 10**9 + 1000, 0x10210)]		# nothing there any more
NAMED = {"first": 5, "second": 1, "with lines": 2, None: 1}


def an_address_that_is_used_twice_has_the_name_of_its_time(tmp):
    for order in "<>":
        example(order).save(tmp)
        path = capture(tmp, EXAMPLE)
        found, errors = symbols(tmp, path, "--symfs", tmp)
        assert found == NAMED, found
        assert not errors, errors


def each_sample_has_its_own_name(tmp):
    example().save(tmp)
    path = capture(tmp, EXAMPLE)
    result = tap.run("script", path, "--symfs", tmp)
    names = [next((name for name in ("first", "second", "with lines") if name in line), None)
             for line in result.stdout.splitlines()]
    assert names == ["first"] * 4 + ["second", "first", "with lines", "with lines", None], result


def without_times_the_last_code_counts(tmp):
    """Captures of recorders that did not know of jitdumps, and dumps with times of their own."""
    example().save(tmp)
    path = capture(tmp, EXAMPLE[:-1], facts={"raw_base": RAW})
    found, errors = symbols(tmp, path, "--symfs", tmp)
    assert found == {"second": 5, "first": 1, None: 1, "with lines": 1}, found
    assert not errors, errors


def code_has_its_source_lines(tmp):
    example().save(tmp)
    path = capture(tmp, [(3000, 0x10204), (3001, 0x10211), (7 * 10**9, 0x10411), (3000, 0x10010)])
    result = tap.run("report", "--json", "--sort", "symbol,line", path, "--symfs", tmp, cwd=tmp)
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {(row["symbol"], row.get("source"), row.get("line")): row["samples"]
             for row in rows if row["kind"] == "symbol"}
    assert found == {("with lines", "a.js", 10): 1, ("with lines", "a.js", 12): 2,
                     ("first", None, 0): 1}, found


def code_that_was_compiled_anew_has_its_own_lines(tmp):
    """A method that is compiled again at its place is the same function; its lines are others."""
    dump = Dump()
    dump.lines(0x10000, (0, 10, "a.js"))
    dump.load(1000, 0x10000, 0x100, 1, "method")
    dump.lines(0x10000, (0, 20, "a.js"))
    dump.load(5 * 10**9, 0x10000, 0x100, 2, "method")
    dump.save(tmp)
    path = capture(tmp, [(3000, 0x10010), (6 * 10**9, 0x10010), (6 * 10**9 + 1, 0x10010)])
    profile = Profile(tmp, path, "--lines", "--symfs", tmp)
    found = collections.Counter()
    for sample in profile.samples:
        found[sample["stack"][0][1], *sample["lines"][0]] += sample["values"]["samples"]
    assert found == {("method", 10): 1, ("method", 20): 2}, found


def a_bundle_has_the_code(tmp):
    dump = example().save(tmp)
    path = capture(tmp, EXAMPLE)
    assert tap.run("bundle", path, "--symfs", tmp).returncode == 0
    os.remove(dump)
    found, errors = symbols(tmp, path)
    assert found == NAMED, found
    assert not errors, errors


def a_bundle_has_the_lines(tmp):
    dump = example().save(tmp)
    path = capture(tmp, [(3000, 0x10204), (3001, 0x10211)])
    args = ["report", "--json", "--sort", "symbol,line", path]
    before = tap.run(*args, "--symfs", tmp, cwd=tmp)
    assert "a.js" in before.stdout, before
    assert tap.run("bundle", path, "--symfs", tmp).returncode == 0
    os.remove(dump)
    after = tap.run(*args, cwd=tmp)
    assert after.stdout == before.stdout, (after, before)


def a_dump_is_found_by_its_path_on_this_machine(tmp):
    dump = example().save(tmp, "dumps/jit-123.dump")
    path = capture(tmp, EXAMPLE, image=dump)
    assert symbols(tmp, path)[0] == NAMED


def another_file_at_the_path_is_not_read(tmp):
    dump = example().save(tmp, "dumps/jit-123.dump")
    path = capture(tmp, EXAMPLE, image=dump, file="1:2:3:4:5")
    found, errors = symbols(tmp, path)
    assert found == {None: len(EXAMPLE)}, found
    assert "is not the jitdump that was recorded" in errors, errors


def a_missing_dump_is_told(tmp):
    path = capture(tmp, EXAMPLE, image=os.path.join(tmp, "jit-7.dump"))
    found, errors = symbols(tmp, path)
    assert found == {None: len(EXAMPLE)}, found
    assert "names of code that was made at run time are missing" in errors, errors


def what_is_no_dump_is_told(tmp):
    with open(os.path.join(tmp, "jit-7.dump"), "w", encoding="ascii") as file:
        file.write("this is text that is as long as the header of a jitdump is\n")
    path = capture(tmp, EXAMPLE, image=os.path.join(tmp, "jit-7.dump"))
    _, errors = symbols(tmp, path)
    assert "is no jitdump" in errors, errors


def a_dump_is_of_its_process_only(tmp):
    example().save(tmp)
    maker = Maker(facts=CLOCKS)
    maker.task(7, "node")
    maker.task(9, "other")
    for task in 7, 9:
        maker.map(task, 0x10000, 0x1000, 0, "//anon")
    maker.map(7, 0x70000, 0x1000, 0, "/tmp/jit-7.dump")
    for tick, task in enumerate([7, 9, 7, 9, 9]):
        maker.sample(0, 3000 + tick, task, 0x10010)
    found, _ = symbols(tmp, maker.save(os.path.join(tmp, "jit.cap")), "--symfs", tmp)
    assert found == {"first": 2, None: 3}, found


def a_perf_map_has_what_the_dump_has_not(tmp):
    example().save(tmp)
    with open(os.path.join(tmp, "tmp", "perf-7.map"), "w", encoding="ascii") as file:
        file.write("10000 80 in both\n10800 80 in the map\n")
    path = capture(tmp, [(3000, 0x10010), (3001, 0x10810), (3002, 0x10011), (3003, 0x10900)])
    found, _ = symbols(tmp, path, "--symfs", tmp)
    assert found == {"first": 2, "in the map": 1, None: 1}, found


def functions_of_python_have_their_source_file(tmp):
    dump = Dump()
    dump.load(1000, 0x10000, 0x100, 1, "py::run:/usr/lib/python3/app.py")
    dump.save(tmp)
    with open(os.path.join(tmp, "tmp", "perf-7.map"), "w", encoding="ascii") as file:
        file.write("10800 80 py::<module>:/srv/main.py\n10900 80 py::\n")
    path = capture(tmp, [(3000, 0x10010), (3001, 0x10810), (3002, 0x10910)])
    whole = {"py::run:/usr/lib/python3/app.py", "py::<module>:/srv/main.py", "py::"}
    assert set(symbols(tmp, path, "--symfs", tmp)[0]) == whole
    result = tap.run("report", "--json", "--sort", "symbol,line", path, "--symfs", tmp, cwd=tmp)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {(row["symbol"], row.get("source")) for row in rows if row["kind"] == "symbol"}
    assert found == {("py::run", "/usr/lib/python3/app.py"), ("py::<module>", "/srv/main.py"),
                     ("py::", None)}, found


if __name__ == "__main__":
    tap.main(globals())
