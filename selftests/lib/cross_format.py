# SPDX-License-Identifier: MIT
"""What a capture says, counted from its raw records, against what its exports say.

`python3 cross_format.py CAPTURE…` compares captures of any origin; nothing of the
library's own analysis is used on the capture's side, only the raw dump.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

KBARMAN = os.path.abspath(os.environ.get("KBARMAN", "build/kbarman"))
INVALID = 2**64 - 1
COUNTERS, IDLE_TASK = 2147483646, 2147483647


def dump(path):
    """Objects of the raw dump; a damaged file gives what is whole."""
    with subprocess.Popen([KBARMAN, "dump", "--json", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as tool:
        for line in tool.stdout:
            yield json.loads(line)


class Truth:
    """Counts and sums, each a dictionary, so that differences can be named."""

    def __init__(self):
        self.arrivals = collections.Counter()     # task: put on a CPU
        self.left = collections.Counter()         # task, reason
        self.run = collections.Counter()          # task: ns
        self.idle = collections.Counter()         # CPU: ns
        self.pcs = collections.Counter()          # task, pc: samples
        self.symbols = collections.Counter()      # image, symbol: samples
        self.totals = collections.Counter()       # counter: sum
        self.series = collections.Counter()       # series name: sum
        self.notes = collections.Counter()        # CPU, type
        self.lost = 0


class Cpu:
    def __init__(self):
        self.task, self.state, self.since, self.last = None, "unknown", 0, None
        self.lost = 0


def leave(truth, core, cpu, now):
    if cpu.state == "halts":
        truth.idle[core] += now - cpu.since
    elif cpu.state == "runs":
        truth.run[cpu.task] += now - cpu.since
    cpu.since = now


def count_scheduling(truth, record, cpu, now):
    kind, core = record["type"], record["core"]
    if kind == "task_switch":
        leave(truth, core, cpu, now)
        if cpu.state == "runs":
            truth.left[cpu.task, record["reason"]] += 1
        cpu.task, cpu.state = record["task_id"], "runs"
        truth.arrivals[cpu.task] += 1
    elif kind == "halt" and record["entered"]:
        leave(truth, core, cpu, now)
        cpu.state = "halts"
    elif kind == "halt" and cpu.state == "halts":
        leave(truth, core, cpu, now)
        cpu.state = "unknown" if cpu.task is None else "runs"
        if cpu.task is not None:
            truth.arrivals[cpu.task] += 1
    elif kind == "sample_pc" and cpu.state == "unknown":
        cpu.task, cpu.state, cpu.since = record["task_id"], "runs", now


def losses_stated(path):
    """CPU: records lost in all, as the facts in the string table say."""
    lost = collections.Counter()
    with open(path, "rb") as file:
        start = file.read(16 << 20)
    if b"kbarman.overwritten." not in start:
        for core, count in re.findall(rb"kbarman\.lost\.(\d+)\.\w+=(\d+)\0", start):
            lost[int(core)] += int(count)
    return lost


def of_capture(path):
    truth, cpus, series, types = Truth(), collections.defaultdict(Cpu), [], {}
    header, last, latest = None, None, 0
    for line in dump(path):
        if line["kind"] == "header":
            header = line
        elif line["kind"] == "series":
            series.append(line["name"])
        elif line["kind"] == "pmu":
            types[line["core"]] = line["counter_types"]
        if line["kind"] != "record":
            continue
        cpu, kind, core = cpus[line["core"]], line["type"], line["core"]
        now = line["ns"] if cpu.last is None else max(cpu.last, line["ns"])
        last = line["ns"] if last is None else max(last, line["ns"])
        latest = max(latest, line["timestamp"])
        count_scheduling(truth, line, cpu, now)
        if kind == "sample_pc":
            truth.pcs[line["task_id"], line["pc"]] += 1
        for index, value in enumerate(line.get("counters", [])):
            truth.totals[types[core][index]] += value if value != INVALID else 0
        values = list(line.get("custom", []))
        if kind == "custom_counter":
            values.append((line["counter"], line["value"]))
            if series[line["counter"]] == "Lost records" and line["value"]:
                truth.lost += line["value"]
                cpu.lost += line["value"]
                leave(truth, core, cpu, now if cpu.last is None else cpu.last)
                cpu.state, cpu.task = "unknown", None
        for index, value in values:
            truth.series[series[index]] += value
        if kind == "annotation":
            truth.notes[core, line["annotation_type"]] += 1
        cpu.last = now
    if header["last_timestamp"] > latest and latest:
        last += (header["last_timestamp"] - latest) * header["timestamp_multiplier"] // \
            header["timestamp_divisor"]
    stated = losses_stated(path)
    for core, cpu in cpus.items():
        behind = max(0, stated[core] - cpu.lost)
        truth.lost += behind
        leave(truth, core, cpu, cpu.last if behind else last)
    return truth


def of_heph(path):
    truth = Truth()
    kinds = {"end": 0, "bookmark": 1, "channel": 2, "group": 3}
    for event in dump(path):
        if event["kind"] != "event" or not event["stream"]:
            continue
        core, attributes = event["stream"] - 1, {a[0]: a[2] for a in event["attributes"]}
        task = 0 if event["substream"] == IDLE_TASK else event["substream"]
        length = event["end"] - event["start"]
        if "tid" in attributes:
            truth.run[attributes["tid"]] += length
            if "switched out" in attributes:
                truth.left[attributes["tid"], int(attributes["switched out"] == "blocked")] += 1
        elif "pc" in attributes:
            truth.pcs[task, attributes["pc"]] += 1
            truth.symbols[attributes["image"], event["description"]] += 1
        elif "lost" in attributes:
            truth.lost += attributes["lost"]
        elif "value" in attributes:
            truth.totals[event["description"]] += attributes["value"]
        elif "channel" in attributes:
            truth.notes[core, kinds.get(attributes.get("annotation"), 0)] += 1
        else:
            assert event["description"] == "idle", event
            truth.idle[core] += length
    return truth


def of_annotate(path):
    truth, names = Truth(), {}
    notes = {1: 0, 2: 0, 6: 1, 7: 1, 3: 2, 4: 3}
    for message in dump(path):
        kind = message.get("type")
        if kind == 8:
            names[message["key"]] = message["name"]
        elif kind == 9:
            truth.totals[names[message["key"]]] += message["value"]
        elif kind == 10 and message["activity"]:
            truth.arrivals[message["tid"]] += 1
        elif kind == 12 and message["name"] == "idle":
            truth.idle[message["track"] - 1] += message["duration"]
        elif kind == 12 and message["name"].endswith(" records lost"):
            truth.lost += int(message["name"].split()[0])
        elif kind == 12:
            truth.run[message["name"]] += message["duration"]
        elif kind in notes:
            truth.notes[0, notes[kind]] += 1
    return truth


def same(what, want, got):
    want, got = +collections.Counter(want), +collections.Counter(got)
    different = [k for k in want.keys() | got.keys() if want[k] != got[k]]
    assert not different, (what, [(k, want[k], got[k]) for k in different[:5]])


def samples_by_symbol(capture):
    """(image, symbol): samples, as the report has it; only names that fit a Heph packet."""
    result = subprocess.run([KBARMAN, "report", "--json", "--sort", "image,symbol",
                             "--percent-limit", "0", capture], capture_output=True, check=False)
    found = collections.Counter()
    for line in result.stdout.splitlines():
        row = json.loads(line)
        if row["kind"] == "symbol":
            image, symbol = os.path.basename(row["image"]), row["symbol"] or "[unknown]"
            if len(image) + len(symbol) < 60:
                found[image, symbol] += row["samples"]
    return found


def compare(capture, directory):
    """AssertionError with what differs, if anything does."""
    want, paths = of_capture(capture), {}
    for name in "heph", "annotate":
        paths[name] = os.path.join(directory, "export." + name)
        subprocess.run([KBARMAN, "convert", capture, "--to", name, "-o", paths[name]],
                       check=False, capture_output=True)
    got = of_heph(paths["heph"])
    for what in "left", "run", "idle", "pcs", "notes":
        same("heph " + what, getattr(want, what), getattr(got, what))
    assert got.lost == want.lost, (got.lost, want.lost)
    symbols = samples_by_symbol(capture)
    same("heph symbols", symbols, {key: got.symbols[key] for key in symbols})
    values = {name: got.totals.pop(name, 0) for name in want.series}
    same("heph series", want.series, values)
    assert sorted(filter(None, want.totals.values())) == sorted(filter(None, got.totals.values()))
    got = of_annotate(paths["annotate"])
    same("annotate arrivals", want.arrivals, got.arrivals)
    same("annotate idle", want.idle, got.idle)
    assert sum(got.run.values()) == sum(want.run.values())
    assert got.lost == want.lost, (got.lost, want.lost)
    assert got.totals.pop("samples", 0) == sum(want.pcs.values())
    values = {name: got.totals.pop(name, 0) for name in want.series}
    same("annotate series", want.series, values)
    assert sorted(filter(None, want.totals.values())) == sorted(filter(None, got.totals.values()))
    by_type = collections.Counter()
    for (_, kind), count in want.notes.items():
        by_type[0, kind] += count
    same("annotate notes", by_type, got.notes)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            compare(argument, scratch)
        print(f"{argument}: its exports say the same")
