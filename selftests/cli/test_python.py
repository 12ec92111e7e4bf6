#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The package of Python has the numbers of the tool, and its columns are memory that numpy and
Arrow take as it is."""
import collections
import ctypes
import gc
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(TREE, "user", "python"))
import tap
import viewers
import test_record as recorder
from capture_writer import CaptureWriter
from latency_capture import Late
from make_capture import Maker
from test_install import command, make

LIBRARY = os.path.join(os.path.dirname(tap.KBARMAN), "libkbarman.so")
os.environ["KBARMAN_LIBRARY"] = LIBRARY
os.environ["KBARMAN"] = tap.KBARMAN
import kbarman  # noqa: E402  pylint: disable=wrong-import-position

KERNEL = 0xffffffff81000000
NOT_VALID = 2 ** 64 - 1
# Debian's own and that of $PATH, which may be another one
PYTHONS = list(dict.fromkeys(path for path in map(shutil.which, ["python3", "/usr/bin/python3"]) if path))


def run_python(python, code, *arguments, **settings):
    env = {**os.environ, "PYTHONPATH": os.path.join(TREE, "user", "python"), **settings}
    return command(python, "-W", "error", "-c", code, *map(str, arguments), env=env)


def python_with(module):
    """An interpreter that has it, or the test is skipped."""
    for python in PYTHONS:
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                          check=False).returncode == 0:
            return python
    raise tap.Skip(f"no Python here has {module}")


def lines_of(*arguments):
    """The JSON of the tool, by kind."""
    found = collections.defaultdict(list)
    for line in tap.run(*arguments).stdout.splitlines():
        row = json.loads(line)
        found[row["kind"]].append(row)
    return found


def real(directory):
    """A capture of switches with chains, samples, idling, losses and renamed tasks."""
    dice, cpus = random.Random(7), 4
    facts = {f"counter.{cpu}.{place}": name for cpu in range(cpus)
             for place, name in enumerate(["cycles", "instructions"])}
    facts.update({"tgid.3": "2", "written.0": "5000", "lost.0.full": "7", "lost.2.nested": "1",
                  "missed.task": "3", "stopped.1.throttled": "2", "overwritten.0": "0"})
    maker = Maker(cores=cpus, counters=[17, 8], series=["Lost records", "heat"], facts=facts, base=100,
                  multiplier=3, divisor=7)
    for tid in range(9):
        maker.task(tid, f"task {tid}" if tid else "swapper")
    maker.task(5, "renamed", timestamp=200_000)
    maker.map(0, KERNEL, 0x10000, 0, "[kernel.kallsyms]")
    now, running = 1000, [0] * cpus
    for step in range(6000):
        now += dice.randrange(1, 200)
        cpu, kind = dice.randrange(cpus), dice.random()
        chain = [KERNEL + 0x100 * dice.randrange(12) + 8 for _ in range(dice.randrange(5))]
        if kind < 0.4:
            running[cpu] = dice.randrange(9)
            maker.switch(cpu, now, running[cpu], blocked=bool(step % 3), state=step % 3, chain=chain,
                         kernel=len(chain))
        elif kind < 0.6:
            maker.halt(cpu, now, True, dice.randrange(3))
            maker.halt(cpu, now + 1, False)
        elif kind < 0.63:
            maker.custom(cpu, now, running[cpu], 1, dice.randrange(2 ** 40))
        elif kind < 0.635:
            maker.custom(cpu, now, running[cpu], 0, 3)
        else:
            pc = KERNEL + 0x100 * dice.randrange(12)
            maker.sample(cpu, now, running[cpu], pc, [1000 + step, 7 * step], [pc, *chain],
                         kernel=len(chain) + 1)
    path = maker.save(os.path.join(directory, "real.cap"))
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        for number in range(12):
            name = "default_idle" if number == 3 else f"function_{number}"
            file.write(f"{KERNEL + number * 0x100:x} T {name}\n")
    return path


# ---- the same numbers

def tables_have_the_numbers_of_report(tmp):
    path = real(tmp)
    assert same_times(path) > 12
    report, capture = lines_of("report", "--json", path), kbarman.open(path)
    whole, = report["report"]
    assert capture.cpus == whole["cpus"] and capture.span[1] - capture.span[0] == whole["duration_ns"]
    types = capture.table("records", "type")
    counted = collections.Counter(kind for kind, in types)
    assert sum(counted.values()) == whole["records"]
    assert counted == {"sample": whole["samples"], "switch": whole["switches"],
                       "halt": whole["halts"], "value": whole["custom_counters"]}, counted
    left = capture.table("switches", "tid", "known", "blocked")
    for row in report["task_time"]:
        mine = [blocked for tid, known, blocked in zip(left["tid"], left["known"], left["blocked"])
                if known and tid == row["tid"]]
        assert (mine.count(False), mine.count(True)) == (row["preempted"], row["blocked"]), row
    gaps = capture.table("gaps")
    assert sum(gaps["end_ns"]) - sum(gaps["at_ns"]) == sum(row["lost_ns"] for row in report["cpu"]) > 0


def same_times(path):
    """Where the time of tasks and CPUs went; the number of sums that were compared."""
    report, capture = lines_of("report", "--json", path), kbarman.open(path)
    runs, spent, busy = capture.table("runs"), collections.Counter(), collections.Counter()
    for begin, end, cpu, tid in zip(runs["at_ns"], runs["end_ns"], runs["cpu"], runs["tid"]):
        spent[tid] += end - begin
        busy[cpu, bool(tid)] += end - begin
    told = {row["tid"]: row["run_ns"] for row in report["task_time"]}
    assert {tid: ns for tid, ns in spent.items() if ns} == {t: ns for t, ns in told.items() if ns}
    for row in report["cpu"]:
        assert row["busy_ns"] == busy[row["cpu"], True] and row["awake_ns"] == busy[row["cpu"], False]
    idle = {}
    for begin, end, length, cpu, state, _ in capture.table("idle"):
        assert length == end - begin
        count, ns, longest = idle.get((cpu, state), (0, 0, 0))
        idle[cpu, state] = count + 1, ns + end - begin, max(longest, end - begin)
    assert idle == {(row["cpu"], -1 if row["idle_state"] is None else row["idle_state"]):
                    (row["count"], row["duration_ns"], row["longest_ns"]) for row in report["idle"]}
    assert capture.span[1] - capture.span[0] == report["report"][0]["duration_ns"]
    return len(told) + len(idle)


def names_from_before_work(tmp):
    capture = kbarman.open(late(tmp))
    runs = capture.table("runs", "ns", "tid")
    assert runs.columns == ("at_ns", "tid") and runs["ns"] == runs["at_ns"] and runs.about("ns") == "when it began"
    assert capture.events["name"][:] == capture.events["event"][:]
    switch = next(capture.switches())
    assert (switch.ns, switch.chain) == (switch.at_ns, switch.stack)
    try:
        assert not runs["end"]
    except KeyError:
        pass


def captures_of_vms_have_the_numbers_of_report(tmp):
    """Those that tests in a VM have left."""
    paths = sorted(viewers.real_captures(), key=os.path.getsize)[:6]
    if not paths:
        raise tap.Skip("KBARMAN_CAPTURES names no folder of captures")
    for path in paths:
        same_times(path)
        told = collections.Counter()
        for row in lines_of("report", "--json", "--percent-limit", "0", path)["symbol"]:
            told[row["task"], row["symbol"] or "", row["image"]] += row["samples"]
        capture, found = kbarman.open(path), collections.Counter()
        for sample in capture.samples():
            if sample.frames:
                place = sample.frames[0]
                found[capture.task_name(sample.tid, sample.at_ns), place.symbol, place.image] += 1
        assert found == told, (path, found - told, told - found)
        same_records(path)


def samples_have_the_weights_of_report(tmp):
    path = real(tmp)
    report, capture = lines_of("report", "--json", "--percent-limit", "0", path), kbarman.open(path)
    by_place = collections.defaultdict(lambda: [0, 0, 0])
    by_task = collections.defaultdict(lambda: [0, 0, 0])
    for sample in capture.samples():
        frame = sample.frames[0]
        assert frame.kernel and frame.address <= sample.pc and len(sample.frames) == len(sample.stack)
        idle = not sample.tid and frame.symbol == "default_idle"
        name = capture.task_name(sample.tid, sample.at_ns)
        for sums in (by_place[name, frame.symbol, frame.image, idle],
                     by_task[capture.pid(sample.tid), sample.tid, idle]):
            sums[0] += 1
            sums[1] += sample.counters[0]
            sums[2] += sample.counters[1]
    assert by_place == {
        (row["task"], row["symbol"], row["image"], row["idle"]): [row["samples"], *row["counters"]]
        for row in report["symbol"]}
    assert by_task == {
        (row["pid"], row["tid"], row["idle"]): [row["samples"], *row["counters"]]
        for row in report["task_samples"]}
    # the same from columns
    samples = capture.table("samples")
    counters = capture.table("counters", "event", "value")
    names = dict(zip(capture.events["id"], capture.events["event"]))
    for event, name in names.items():
        total = sum(value for number, value in zip(counters["event"], counters["value"])
                    if number == event)
        assert total == sum(samples["counters"].values[event::2]), name
    assert sorted(names.values()) == ["cycles", "instructions"]


def losses_are_those_of_report(tmp):
    path = real(tmp)
    report, capture = lines_of("report", "--json", path), kbarman.open(path)
    told = {(kind, cpu, what): count for kind, cpu, what, count in capture.losses}
    for row in report["lost"]:
        assert told.pop(("lost", row["cpu"], row["reason"])) == row["records"]
    for row in report["stopped"]:
        assert told.pop(("stopped", row["cpu"], row["reason"])) == row["times"]
    for row in report["missed"]:
        assert told.pop(("missed", 2 ** 32 - 1, row["what"])) == row["count"]
    assert told == {("written", 2 ** 32 - 1, ""): 5000, ("overwritten", 2 ** 32 - 1, ""): 0}, told


def each_record_is_that_of_dump(tmp):
    for path in (real(tmp), marked(tmp), late(tmp)):
        assert same_records(path) > 10


def same_records(path):
    rows, records = lines_of("dump", "--json", path)["record"], list(kbarman.open(path))
    assert len(records) == len(rows), path
    for row, record in zip(rows, records):
        assert (record.at_ns, record.cpu) == (row["at_ns"], row["cpu"]), (row, record)
        assert same(row, record), (row, record)
    return len(rows)


def same(row, record):
    """Whether the line of dump and the record say the same."""
    chain = tuple(row.get("stack", ()))
    if isinstance(record, kbarman.Sample):
        if row["type"] == "sample":
            return record.pc is None and record.counters == tuple(row["counters"])
        return (record.tid, record.pc, record.counters) == \
            (row["tid"], row["pc"], tuple(row["counters"])) and \
            record.stack in (chain, (row["pc"], *chain))
    if isinstance(record, kbarman.Switch):
        return (record.next_tid, record.blocked, record.state, record.stack) == \
            (row["tid"], row["blocked"],
             "?" if record.tid is None else row.get("prev_state_letter", "?"), chain)
    if isinstance(record, kbarman.Halt):
        return (record.entered, record.idle_state) == (bool(row["entered"]), row.get("idle_state", -1))
    if isinstance(record, kbarman.Value):
        return (record.series, record.raw) == (row["counter"], row["value"])
    if isinstance(record, kbarman.Detail):
        return (record.what, record.about_id, record.about_cpu, record.context, record.value) == \
            (row["what"], row["about_id"], row["about_cpu"], row["context"], row["value"])
    return isinstance(record, kbarman.Mark) and (record.channel, record.group_id, record.text) == \
        (row["channel"], row["group_id"], row["text"])


def marked(directory):
    """Marks, of which some are broken UTF-8, and records without a CPU."""
    writer = CaptureWriter(cores=1, counters=1)
    writer.fact("ext", 1)
    writer.task(1, b"name \xff")
    for number in range(20):
        writer.annotation(0, 5 * 10**9 + 1000 * number, 1, b"mark %d \xe2\x82" % number, kind=number % 4,
                          channel=number)
    return writer.save(os.path.join(directory, "marked.cap"))


def late(directory):
    """Wakeups, interrupts, migrations."""
    capture = Late(cores=2, facts={"irq.40": "eth0"})
    for tid in 7, 8:
        capture.task(tid, f"task {tid}")
    capture.switch(0, 500, 7)
    capture.switch(1, 600, 0)
    for at in range(1000, 20000, 1000):
        capture.waking(0, at, waker=7, woken=8, cpu=1)
        capture.softirq_entry(1, at + 100, 3)
        capture.irq(1, at + 110, at + 140, 40)
        capture.softirq_exit(1, at + 200, 3)
        capture.ipi(1, at + 210, at + 230, 2)
        capture.migrate(0, at + 240, 7, 8, 0)
        capture.switch(1, at + 300, 8)
        capture.switch(1, at + 400, 0, blocked=True)
    return capture.save(os.path.join(directory, "late.cap"))


def interrupts_have_the_times_of_report(tmp):
    path = late(tmp)
    capture = kbarman.open(path)
    report = lines_of("report", "--irq", "--json", path)["interrupt"]
    part = capture.read("interrupts", "handlers", "wakeups")
    handlers, sums = list(part["handlers"]), {}
    for row in part["interrupts"]:
        values = dict(zip(part["interrupts"].columns, row))
        kind, number, _, name = handlers[values["handler"]]
        assert (kind, number) == (values["kind"], values["id"])
        count, ns = sums.get((kind, number, name), (0, 0))
        sums[kind, number, name] = count + 1, ns + values["own_ns"]
        assert values["depth"] == (kind == "irq"), values
    assert sums == {(row["what"], row["id"], row["handler"]): (row["count"], row["own_ns"])
                    for row in report} and len(sums) == 3, (sums, report)
    assert list(part["wakeups"])[0][:7] == (1000, 0, 7, 8, 1, False, "task")
    assert part["wakeups"].about("woken_tid") == "the task that was woken"


def names_are_those_of_the_time(tmp):
    capture = kbarman.open(real(tmp))
    since = [ns for tid, _, name, ns, *_ in capture.tasks if name == "renamed"][0]
    assert capture.task_name(5, since - 1) == "task 5" and capture.task_name(5, since) == "renamed"
    assert capture.task_name(5) == "renamed" and capture.task_name(5, -2 ** 60) == "task 5"
    assert capture.task_name(4711) == ":4711" and capture.task_name(0) == "swapper"
    assert capture.pid(3) == 2 and capture.pid(4711) == 4711
    assert kbarman.open(marked(tmp)).task_name(1) == "name \ufffd"
    assert list(capture.images["image"]) == ["[kernel.kallsyms]"]
    assert capture.facts["counter.0.1"] == "instructions"
    assert [name for name, *_ in capture.series_names] == ["Lost records", "heat"]
    assert capture.wall_clock(0).isoformat() == "2020-09-13T12:26:40+00:00"


# ---- memory

def parts_are_together_what_the_whole_is(tmp):
    capture = kbarman.open(real(tmp))
    tables = "records", "switches", "samples", "idle", "runs", "switches.frames"
    whole = capture.read(*tables)
    rows = {name: list(map(plain, whole[name])) for name in whole}
    for size in 1, 100, 10 ** 6:
        found = collections.defaultdict(list)
        for part in capture.parts(*tables, records=size):
            for name in part:
                found[name] += map(plain, part[name])
        assert found == rows, size
    assert len(rows["functions"]) > 5 and max(whole["switches"]["frames"].values) < len(rows["functions"])


def plain(row):
    return tuple(tuple(value) if isinstance(value, memoryview) else value for value in row)


def columns_stay_when_their_capture_is_gone(tmp):
    reader = kbarman.open(real(tmp)).parts("records", records=100)
    kept = [(part["records"]["at_ns"], list(part["records"]["at_ns"])) for part in reader]
    middle = kept[3][0][10:20]
    del reader
    gc.collect()
    assert len(kept) > 50 and all(list(column) == values for column, values in kept)
    assert list(middle) == kept[3][1][10:20]
    assert middle.readonly and middle.format == "q" and middle.contiguous


def a_part_that_nobody_keeps_is_filled_again(tmp):
    """So a capture of any size takes the memory of a part."""
    capture, places = kbarman.open(real(tmp)), set()
    for part in capture.parts("records", records=100):
        column = part["records"]["at_ns"]
        places.add(ctypes.addressof(column.obj))
        del part, column
    assert len(places) < 4, places


def large_captures_take_little_memory(tmp):
    maker = Maker(cores=2, counters=[17])
    maker.task(1, "one")
    for at in range(0, 20000, 2):
        maker.switch(0, at, 1, blocked=True)
        maker.sample(1, at + 1, 1, 0x1000, [at], [0x1000] * 40)
    maker.records *= 40         # 150 MiB
    path = maker.save(os.path.join(tmp, "large.cap"))
    size = os.path.getsize(path)
    for python in PYTHONS:
        said = run_python(python, """if True:
            import re, sys, kbarman
            count = sum(part.records for part in kbarman.open(sys.argv[1]).parts("switches", "samples"))
            with open("/proc/self/status") as status:
                print(count, int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) >> 10)""", path)
        count, mib = map(int, said.split())
        print(f"# {python}: {mib} MiB for {size >> 20} MiB")
        assert count == 800_000 and mib < 64 < size >> 20, said


def threads_read_at_the_same_time(tmp):
    capture, sums = kbarman.open(real(tmp)), []

    def work():
        sums.append(sum(sum(part["records"]["at_ns"]) for part in capture.parts("records", records=64)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == 4 and len(set(sums)) == 1 and sums[0], sums


# ---- numpy and Arrow

def numpy_takes_columns_without_a_copy(tmp):
    path = real(tmp)
    said = run_python(python_with("numpy"), """if True:
        import sys, ctypes, numpy, kbarman
        switches = kbarman.open(sys.argv[1]).table("switches")
        for name, dtype in [("at_ns", "int64"), ("cpu", "uint32"), ("blocked", "bool"),
                            ("state", "uint8"), ("prev_state", "int32")]:
            column, array = switches[name], numpy.asarray(switches[name])
            assert array.dtype == dtype and array.tolist() == column.tolist(), (name, array.dtype)
            assert array.ctypes.data == ctypes.addressof(column.obj), name
            assert not array.flags.owndata and not array.flags.writeable
        chain = switches["stack"]
        lengths = numpy.diff(numpy.asarray(chain.offsets))
        assert lengths.tolist() == [len(row) for row in chain] and lengths.sum() == len(chain.values)
        samples = kbarman.open(sys.argv[1]).table("samples", "counters")
        matrix = numpy.asarray(samples["counters"].values).reshape(len(samples), -1)
        assert matrix.shape[1] == 2
        del switches, column
        print(array[:3].tolist(), int(matrix[:, 0].sum()))""", path)
    capture = kbarman.open(path)
    assert said == f"{capture.table('switches')['prev_state'][:3].tolist()} " \
        f"{sum(capture.table('samples')['counters'].values[::2])}\n", said


def pyarrow_takes_tables_without_a_copy(tmp):
    said = run_python(python_with("pyarrow"), """if True:
        import sys, ctypes, pyarrow, kbarman
        switches = kbarman.open(sys.argv[1]).table("switches")
        table = pyarrow.table(switches)
        assert table.column_names == list(switches.columns) and len(table) == len(switches)
        assert table["at_ns"].to_pylist() == switches["at_ns"].tolist()
        assert table["at_ns"].chunk(0).buffers()[1].address == ctypes.addressof(switches["at_ns"].obj)
        assert table["state"].to_pylist() == [row[6] for row in switches]
        assert [tuple(row) for row in table["stack"].to_pylist()] == list(map(tuple, switches["stack"]))
        batch = pyarrow.record_batch(switches)
        batch.validate(full=True)
        stream = kbarman.open(sys.argv[1]).batches("switches", records=100)
        assert pyarrow.RecordBatchReader.from_stream(stream).read_all().num_rows == batch.num_rows
        print(batch.num_rows)""", real(tmp))
    assert int(said) > 1000, said


def pandas_takes_tables_as_the_manual_says(tmp):
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../user/man/kbarman-python.7")
    with open(manual, encoding="utf-8") as file:
        text = file.read()
    for words in "DataFrame(dict(table))", "DataFrame.from_records(iter(table), columns=table.columns)":
        assert words in text, words
    said = run_python(python_with("pandas"), """if True:
        import sys, kbarman
        from pandas import DataFrame
        for name in "switches", "samples":
            table = kbarman.open(sys.argv[1]).table(name)
            frame = DataFrame(dict(table))
            assert list(frame.columns) == list(table.columns) and len(frame) == len(table)
            assert frame["at_ns"].tolist() == table["at_ns"].tolist()
            again = DataFrame.from_records(iter(table), columns=table.columns)
            assert list(again.columns) == list(table.columns) and again["at_ns"].equals(frame["at_ns"])
        switches = DataFrame(dict(kbarman.open(sys.argv[1]).table("switches")))
        print(len(switches[switches.blocked]))""", real(tmp))
    assert int(said) > 100, said


class Schema(ctypes.Structure):
    """What Arrow's text says of struct ArrowSchema."""


class Array(ctypes.Structure):
    """... and of struct ArrowArray."""


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", ctypes.POINTER(Schema)),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
                  ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private", ctypes.c_void_p)]
LETTERS = {b"C": ctypes.c_uint8, b"I": ctypes.c_uint32, b"i": ctypes.c_int32, b"L": ctypes.c_uint64,
           b"l": ctypes.c_int64, b"g": ctypes.c_double}


def taken(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return kind.from_address(get(capsule, name))


def buffer(array, number, kind, length):
    return list((kind * length).from_address(array.buffers[number])) if length else []


def values_of(schema, array):
    """The values of a column, as a reader of Arrow finds them."""
    assert array.offset == array.null_count == 0 and not array.buffers[0]
    length = array.length
    if schema.format in (b"U", b"+L"):
        offsets = buffer(array, 1, ctypes.c_int64, length + 1)
        if schema.format == b"U":
            data = bytes(buffer(array, 2, ctypes.c_uint8, offsets[-1]))
            return [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]
        items = values_of(schema.children[0].contents, array.children[0].contents)
        return [tuple(items[a:b]) for a, b in zip(offsets, offsets[1:])]
    numbers = buffer(array, 1, LETTERS[schema.format], length)
    if not schema.dictionary:
        return numbers
    words = values_of(schema.dictionary.contents, array.dictionary.contents)
    return [words[number] for number in numbers]


def arrow_has_the_values_of_the_table(tmp):
    """By a reader of our own, as pyarrow may not be there."""
    for path, names in (real(tmp), ["switches", "samples", "idle", "tasks"]), (marked(tmp), ["marks"]):
        part = kbarman.open(path).read(*names, "switches.frames", "functions", "details")
        for name in part:
            table = part[name]
            capsules = table.__arrow_c_array__()
            schema, array = taken(capsules[0], b"arrow_schema", Schema), taken(capsules[1], b"arrow_array",
                                                                               Array)
            assert (schema.format, schema.n_children, array.length) == (b"+s", len(table.columns),
                                                                        len(table))
            columns = []
            for number, column in enumerate(table.columns):
                assert schema.children[number].contents.name.decode() == column
                columns.append(values_of(schema.children[number].contents,
                                         array.children[number].contents))
            assert list(zip(*columns)) == list(map(plain, table)), name
            # who takes the struct releases it, and the capsule then does nothing
            if name in ("switches", "marks"):
                release = array.release
                release(ctypes.byref(array))
                assert not array.release
            del capsules
    gc.collect()
    assert not kbarman._arrow._living


class Stream(ctypes.Structure):
    """... and of struct ArrowArrayStream."""


Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                                   ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                                 ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
                   ("private", ctypes.c_void_p)]


def batches_are_together_the_table(tmp):
    capture = kbarman.open(real(tmp))
    batches = capture.batches("switches", "at_ns", "next_tid", records=100)
    expected = list(capture.table("switches", "at_ns", "next_tid"))
    for _ in range(2):      # each use begins again
        capsule = batches.__arrow_c_stream__()
        stream, schema, found, nr = taken(capsule, b"arrow_array_stream", Stream), Schema(), [], 0
        assert stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) == 0
        while True:
            array = Array()
            assert stream.get_next(ctypes.byref(stream), ctypes.byref(array)) == 0
            if not array.release:
                break
            found += zip(*[values_of(schema.children[at].contents, array.children[at].contents)
                           for at in range(2)])
            nr += 1
            array.release(ctypes.byref(array))
        schema.release(ctypes.byref(schema))
        assert found == expected and nr > 20
    del capsule
    gc.collect()
    assert not kbarman._arrow._living


def arrow_keeps_the_memory_and_gives_it_back(tmp):
    part = kbarman.open(real(tmp)).read("records")
    expected = list(part["records"]["at_ns"])
    capsules = part["records"].__arrow_c_array__()
    stream = part["records"].__arrow_c_stream__()
    held = part["records"]._held
    del part
    # what Python held is gone, and a new part may take its place; Python 3.14 counts one less
    nobody_else = object()
    assert sys.getrefcount(held) == sys.getrefcount(nobody_else)
    del held
    kbarman.open(real(tmp)).read("records")
    array = taken(capsules[1], b"arrow_array", Array)
    assert buffer(array.children[1].contents, 1, ctypes.c_int64, array.length) == expected
    del capsules, stream
    gc.collect()
    assert not kbarman._arrow._living


# ---- what is wrong

def damage_is_a_warning_and_what_is_whole_is_there(tmp):
    path = real(tmp)
    complete = len(kbarman.open(path).table("records"))
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 100)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = kbarman.open(path).table("records")
    assert complete - 10 < len(table) < complete
    assert [w.category for w in said] == [kbarman.DamageWarning], said
    assert "100 bytes of records are missing" in str(said[0].message), str(said[0].message)
    assert os.path.basename(said[0].filename) == "test_python.py", said[0].filename
    done = tap.run("report", path)
    assert done.returncode == 1 and str(said[0].message).split(": ")[-1] in done.stderr, done.stderr


def what_cannot_be_read_is_an_error(tmp):
    for path, what in (("/nonexistent.cap", "nonexistent"), (__file__, "Barman"), (b"nothing", "")):
        try:
            kbarman.open(path)
        except kbarman.Error as error:
            assert what in str(error) and error.code, error
        else:
            raise AssertionError(path)
    capture = kbarman.open(real(tmp))
    for wrong in "nothing", "records.nothing":
        try:
            capture.read(wrong)
        except KeyError as error:
            assert "nothing" in str(error)
        else:
            raise AssertionError(wrong)
    try:
        kbarman.open(real(tmp), kallsyms="/nonexistent").read("samples.frames")
    except kbarman.Error as error:
        assert "/nonexistent" in str(error), error
    else:
        raise AssertionError("kallsyms")


def bytes_and_pipes_are_captures_as_well(tmp):
    path = real(tmp)
    with open(path, "rb") as file:
        data = file.read()
    expected = list(kbarman.open(path).table("records"))
    assert list(kbarman.open(data).table("records")) == expected
    assert list(kbarman.open(memoryview(data)).table("records")) == expected
    env = {**os.environ, "PYTHONPATH": os.path.join(TREE, "user", "python")}
    for python in PYTHONS:
        done = subprocess.run([python, "-c", "import kbarman; c = kbarman.open('-'); "
                               "print(len(c.table('records')), sum(1 for _ in c))"],
                              input=data, capture_output=True, env=env, check=True)
        assert done.stdout.split() == [b"%d" % len(expected)] * 2, done


def an_empty_capture_has_empty_tables(tmp):
    path = Maker().save(os.path.join(tmp, "empty.cap"))
    capture = kbarman.open(path)
    everything = capture.read(*kbarman.tables(), "samples.frames")
    for name in everything:
        rows = list(everything[name])
        assert len(rows) == len(everything[name]) and (not rows or name in ("facts", "header")), name
        assert all(len(everything[name][column]) == len(rows) for column in everything[name].columns)
        everything[name].__arrow_c_array__()
    assert not list(capture) and capture.span[0] <= capture.span[1]


# ---- recording

def a_recording_is_a_capture(tmp):
    settings = recorder.fake()
    said = run_python(sys.executable, """if True:
        import kbarman, sys
        capture = kbarman.record("sh", "-c", "sleep 0.3; exit 3", output=sys.argv[1] + "/x.cap",
                                 options=["-F", "100"])
        assert capture.facts["command"].startswith("sh -c"), capture.facts
        assert "nothing lost" in capture.said, capture.said
        print(len(capture.table("records")))""", tmp, **settings)
    _, records = recorder.whole(tmp, "x.cap")
    assert int(said) == len(records)


def a_snapshot_is_a_capture(tmp):
    said = run_python(sys.executable, """if True:
        import kbarman, sys
        print(len(kbarman.snapshot(sys.argv[1] + "/x.cap").table("records")))""", tmp,
                      **recorder.fake(FAKE_RUNNING=1))
    assert int(said) == len(recorder.check(os.path.join(tmp, "x.cap"))[1]) > 0


def a_recording_that_fails_is_an_error_and_leaves_the_old_file(tmp):
    path = os.path.join(tmp, "x.cap")
    shutil.copy(real(tmp), path)
    try:
        kbarman.record("true", output=path, options=["--no-such-option"])
    except kbarman.ToolError as error:
        assert "no-such-option" in str(error) and error.status, error
    else:
        raise AssertionError("no error")
    assert len(kbarman.open(path).table("records")) > 1000
    try:
        kbarman.snapshot(path)
    except kbarman.ToolError as error:
        assert error.status == 2 and str(error), error
    else:
        raise AssertionError("no error")


# ---- the package

def an_installed_package_finds_its_library(tmp):
    root = os.path.join(tmp, "root")
    path = real(tmp)
    make("install", root, "prefix=/opt/k")
    where, = {os.path.dirname(directory) for directory, _, names in os.walk(root)
              if os.path.basename(directory) == "kbarman" and "__init__.py" in names}
    env = {key: value for key, value in os.environ.items() if key != "KBARMAN_LIBRARY"}
    for python in PYTHONS:
        said = command(python, "-c", "import sys, kbarman; from kbarman._library import library; "
                       "print(library._name, len(kbarman.open(sys.argv[1]).table('records')))", path,
                       env={**env, "PYTHONPATH": where, "PYTHONDONTWRITEBYTECODE": "1"}).split()
        assert said[0].startswith(root) and int(said[1]) > 1000, said


def all_pythons_import_it_without_a_warning(tmp):
    for python in PYTHONS:
        said = run_python(python, """if True:
            import sys, kbarman
            sample = next(iter(kbarman.open(sys.argv[1]).samples()))
            print(kbarman.__version__, sample.frames[0].symbol)""", real(tmp))
        print(f"# {python}: {said.strip()}")
        assert "function_" in said or "default_idle" in said


def examples_run_as_they_are(tmp):
    path = real(tmp)
    folder = os.path.join(TREE, "user", "examples")
    scripts = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    assert scripts
    env = {**os.environ, "PYTHONPATH": os.path.join(TREE, "user", "python")}
    for name in scripts:
        for python in PYTHONS:
            said = command(python, "-W", "error", os.path.join(folder, name), path, env=env, cwd=tmp)
            assert "task 3" in said and "function_" in said, (name, said)


def everything_has_a_docstring_and_types(tmp):
    for name in kbarman.__all__:
        thing = getattr(kbarman, name)
        if callable(thing) and not isinstance(thing, type) or isinstance(thing, type):
            assert name in ("Record",) or (thing.__doc__ or "").strip(), name
    assert os.path.exists(os.path.join(TREE, "user", "python", "kbarman", "py.typed"))
    if not shutil.which("mypy"):
        raise tap.Skip("mypy is not installed: types are not checked")
    command("mypy", "--strict", "--cache-dir", tmp, os.path.join(TREE, "user", "python", "kbarman"))


def the_manual_has_all_tables_and_columns(tmp):
    with open(os.path.join(TREE, "user", "man", "kbarman-python.7"), encoding="utf-8") as file:
        page = file.read().split(".SH TABLES\n", 1)[1].split("\n.SH ", 1)[0]
    found = {}
    for block in re.split(r"^\.SS ", page, flags=re.M)[1:]:
        found[block.split()[0]] = re.findall(r"^\.TP\n\.B (\w+)$", block, re.M)
    assert found == {name: [column.name for column in schema.columns]
                     for name, schema in kbarman.tables().items()}


if __name__ == "__main__":
    recorder.main(globals())
