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
        self.handed = collections.Counter()       # task, reason: left it for another, halted or not
        self.ended = collections.Counter()        # task: said to have ended
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
    kind, core = record["type"], record["cpu"]
    if kind == "task_switch":
        leave(truth, core, cpu, now)
        if cpu.state == "runs":
            truth.left[cpu.task, record["blocked"]] += 1
        if cpu.state != "unknown" and cpu.task not in (None, record["tid"]):
            truth.handed[cpu.task, record["blocked"]] += 1
        cpu.task, cpu.state = record["tid"], "runs"
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
        cpu.task, cpu.state, cpu.since = record["tid"], "runs", now


def losses_stated(path):
    """CPU: records lost in all, as the facts in the string table say."""
    lost = collections.Counter()
    with open(path, "rb") as file:
        start = file.read(16 << 20)
    if b"kbarman.overwritten." not in start:
        for core, count in re.findall(rb"kbarman\.lost\.(\d+)\.\w+=(\d+)\0", start):
            lost[int(core)] += int(count)
    return lost


def clock_of(path, header):
    """Ticks to nanoseconds, by what two looks at the clocks gave if the capture has that."""
    base, multiplier, divisor = (header["timestamp_" + key]
                                 for key in ("base", "multiplier", "divisor"))
    with open(path, "rb") as file:
        start = file.read(16 << 20)
    looks = re.search(rb"kbarman\.raw_base=(\d+)\0", start), \
        re.search(rb"kbarman\.raw_end=(\d+),(\d+)\0", start)
    if all(looks):
        ticks, ns = int(looks[1][1]) - base, int(looks[1][2]) - int(looks[0][1])
        if ticks > 0 and ns > 0 and abs(ns - ticks * multiplier // divisor) <= ns // 1000 + 1:
            multiplier, divisor = ns, ticks
    return lambda timestamp: (timestamp - base) * multiplier // divisor


def of_capture(path):
    truth, cpus, series, types = Truth(), collections.defaultdict(Cpu), [], {}
    header, last, latest = None, None, 0
    for line in dump(path):
        if line["kind"] == "header":
            header = line
        elif line["kind"] == "series":
            series.append(line["name"])
        elif line["kind"] == "pmu":
            types[line["cpu"]] = line["counter_types"]
        if line["kind"] != "record":
            continue
        cpu, kind, core = cpus[line["cpu"]], line["type"], line["cpu"]
        now = line["at_ns"] if cpu.last is None else max(cpu.last, line["at_ns"])
        last = line["at_ns"] if last is None else max(last, line["at_ns"])
        latest = max(latest, line["timestamp"])
        count_scheduling(truth, line, cpu, now)
        if kind == "sample_pc":
            truth.pcs[line["tid"], line["pc"]] += 1
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
        last = max(last, clock_of(path, header)(header["last_timestamp"]))
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


class Tptp:
    """A TPTP trace, in either form, as it is read message by message."""

    def __init__(self):
        self.truth = Truth()
        self.classes, self.methods = {}, {}
        self.halted = {}                          # idle thread: since when
        self.entries = {}                         # thread: its last message, if an entry

    def sampled(self, thread):
        """The innermost entry of a thread, which no deeper one followed, was a sample's."""
        entry = self.entries.pop(thread, None)
        if entry:
            task = max(thread, 0)
            self.truth.pcs[task] += 1
            self.truth.symbols[self.methods[entry["methodId"]]] += 1

    def enter(self, entry):
        before = self.entries.get(entry["threadId"])
        if not before or before["timestamp"] != entry["timestamp"] or \
                before["stackDepth"] + 1 != entry["stackDepth"]:
            self.sampled(entry["threadId"])
        self.entries[entry["threadId"]] = entry

    def wait(self, message, reason):
        thread = message["threadId"]
        if thread < 0 and reason == 1 and message["objectId"] == -thread:
            self.halted[thread] = message["timestamp"]
        else:
            self.truth.left[max(thread, 0), reason] += 1

    def waited(self, message):
        thread = message["threadId"]
        if thread in self.halted and message["objectId"] == -thread:
            self.truth.idle[-thread - 1] += message["timestamp"] - self.halted.pop(thread)

    def custom(self, body):
        words, _, text = body.partition(" name=")
        kind, *pairs = words.partition(" text=")[0].split(" ")
        values = dict(pair.split("=", 1) for pair in pairs)
        if kind == "annotation":
            self.truth.notes[int(values["cpu"]), int(values["type"])] += 1
        elif kind == "counter":
            self.truth.totals[text] += int(values["value"]) % 2**64
        else:
            assert kind == "series", body
            self.truth.series[text] += int(values["value"]) % 2**64

    def read(self, path):
        for m in dump(path):
            if m["kind"] != "message":
                continue
            if m["id"] == 1011:
                self.classes[m["classId"]] = m["name"]
            elif m["id"] == 1012:
                self.methods[m["methodId"]] = self.classes[m["classId"]], m["name"]
            elif m["id"] == 1015:
                self.enter(m)
            elif m["id"] == 1016:
                self.sampled(m["threadId"])
            elif m["id"] == 1010:
                self.truth.ended[m["threadId"]] += 1
            elif m["id"] in (1032, 1034):
                self.wait(m, int(m["id"] == 1032))
            elif m["id"] in (1033, 1035):
                self.waited(m)
            elif m["id"] == 1041:
                self.custom(m["customBody"])
        assert not self.entries and not self.halted, (self.entries, self.halted)
        return self.truth


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


def without_blanks(name):
    return "".join("_" if c <= " " or c == "\x7f" else c for c in name)


def compare_tptp(form, want, got, symbols):
    """A thread that ends is not said to wait: then there is one switch less."""
    for task in {task for task, _ in want.handed} | {task for task, _ in got.left}:
        missing = [want.handed[task, reason] - got.left[task, reason] for reason in (0, 1)]
        assert min(missing) >= 0 and sum(missing) <= got.ended[task], \
            (form, task, missing, got.ended[task])
    samples = collections.Counter()
    for (task, _), count in want.pcs.items():
        samples[task] += count
    same(form + " samples", samples, got.pcs)
    same(form + " idle", want.idle, got.idle)
    same(form + " notes", want.notes, got.notes)
    same(form + " series", want.series, got.series)
    assert sorted(filter(None, want.totals.values())) == sorted(filter(None, got.totals.values()))
    named = collections.Counter()
    for (image, symbol), count in symbols.items():
        named[without_blanks(image), without_blanks(symbol)] += count
    same(form + " symbols", named, {key: got.symbols[key] for key in named})


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
    for form in "xml", "binary":
        path = os.path.join(directory, "export.trc")
        subprocess.run([KBARMAN, "convert", capture, "--to", "tptp", "--format", form, "-o", path],
                       check=False, capture_output=True)
        compare_tptp(form, want, Tptp().read(path), symbols)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            compare(argument, scratch)
        print(f"{argument}: its exports say the same")
