#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to chrome: JSON, and what it says is what the capture says."""
import bisect
import collections
import decimal
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
import viewers  # noqa: E402
from latency_capture import Late  # noqa: E402

CPUS, INTERRUPTS, CALLS, REQUESTS = 0, 4194305, 4194306, 4194307
MOMENTS = "migrate", "softirq_raise", "idle_miss"


def ns(time):
    """Times are microseconds, exact to the nanosecond."""
    scaled = decimal.Decimal(time) * 1000
    assert scaled == int(scaled), time
    return int(scaled)


class Trace:
    def __init__(self, tmp, path, *options):
        out = os.path.join(tmp, "out.json")
        viewers.convert(path, "chrome", out, *options)
        viewers.load_json(out)      # strict
        with open(out, encoding="utf-8") as file:
            self.document = json.load(file, parse_float=str)
        self.frames = self.document["stackFrames"]
        self.slices, self.samples, self.values, self.marks = [], [], [], []
        self.threads, self.processes = {}, {}
        self.handlers, self.arrows, self.moments, self.calls, self.requests = [], [], [], [], []
        self.profiles = {}      # by process and session: thread, time, nodes, has samples
        # Speedscope takes it for a timeline by that, and by a profile in it
        assert {"pid", "tid", "ph", "cat"} <= set(self.document["traceEvents"][0])
        assert all("ts" in event for event in self.document["traceEvents"]), "it sorts all by time"
        for event in self.document["traceEvents"]:
            self.take(event)

    def take(self, event):
        phase, category = event["ph"], event.get("cat")
        if phase == "M":
            table = self.threads if event["name"] == "thread_name" else self.processes
            table[event["pid"], event["tid"]] = event["args"]["name"]
            return
        time = ns(event["ts"])
        if phase == "X" and event["pid"] == CPUS and category in ("run", "idle", "lost"):
            self.slices.append((category, event["tid"], time, ns(event["dur"]), event["name"], event["args"]))
        elif phase == "P" and event["name"] == "Profile":
            assert event["id"] not in [session for _, session in self.profiles], "an id twice"
            assert int(event["id"], 16) > 0
            self.profiles[event["pid"], event["id"]] = [event["tid"], event["args"]["data"]["startTime"], {},
                                                        False]
        elif phase == "P":
            self.take_sample(event, time)
        elif event["pid"] == INTERRUPTS:
            assert phase == "X", event
            self.handlers.append((category, event["tid"], time, ns(event["dur"]), event["name"],
                                  event["args"]["tid"]))
        elif event["pid"] == REQUESTS:
            assert category == "block" and event["tid"] == 8 << 20 | 16, event
            self.requests.append((event["id"], phase, time, event["name"], event.get("args")))
        elif event["pid"] == CALLS:
            assert category in ("syscall", "fault") and (phase == "X" or event["s"] == "t"), event
            self.calls.append((phase, event["tid"], time, ns(event.get("dur", "0")), event["name"], event["args"]))
        elif phase in "sf":
            assert event["pid"] == CPUS and (phase == "s" or event["bp"] == "e"), event
            self.arrows.append((event["id"], phase, event["tid"], time))
        elif category in MOMENTS:
            assert (phase, event["pid"], event["s"]) == ("i", CPUS, "t"), event
            self.moments.append((category, event["tid"], time, event["args"]))
        elif phase == "C":
            self.values.append((category, time, event["name"], event["args"]["value"]))
        else:
            assert category == "mark" and phase in "Xi", event
            self.marks.append((time, event["tid"], event["name"], ns(event["dur"]) if phase == "X" else None))

    def take_sample(self, event, time):
        """As trace_processor's and Speedscope's importers of V8's profiles do."""
        profile, data = self.profiles[event["pid"], event["id"]], event["args"]["data"]
        assert event["name"] == "ProfileChunk" and event["tid"] == profile[0]
        for node in data["cpuProfile"]["nodes"]:
            assert node["id"] not in profile[2] and node.get("parent", node["id"]) in {node["id"], *profile[2]}
            profile[2][node["id"]] = node
        (number,), (delta,) = data["cpuProfile"]["samples"], data["timeDeltas"]
        assert delta > 0 or profile[3], "Speedscope fails on a profile of no length"
        profile[3] = True
        profile[1] += delta
        assert profile[1] == time // 1000
        frame, node = event["sf"], number
        while frame:
            call, shown = profile[2][node]["callFrame"], self.frames[str(frame)]
            assert call == {"functionName": shown["name"], "url": shown["category"]}
            frame, node = shown.get("parent"), profile[2][node].get("parent")
        assert node is None
        self.samples.append((event["args"]["cpu"], event["tid"], time, event["sf"], event.get("weight")))

    def stack(self, sf):
        names = []
        while sf:
            frame = self.frames[str(sf)]
            names.append((os.path.basename(frame["category"]), frame["name"]))
            sf = frame.get("parent")
        return names


def trace_has_what_the_capture_has(tmp):
    for path in viewers.all_captures(tmp):
        said, trace = viewers.Said(path), Trace(tmp, path)
        idle, run, left, lost = (collections.Counter() for _ in range(4))
        for category, cpu, _, length, _, args in trace.slices:
            if category == "idle":
                idle[cpu] += length
            elif category == "lost":
                lost[0] += args["lost"]
            else:
                run[args["tid"]] += length
                if "then" in args:
                    left[args["tid"], int(args["then"] == "blocked")] += 1
        if "golden" not in path:
            viewers.same(path, sorted((+said.truth.idle).items()), sorted((+idle).items()))
            viewers.same(path, sorted((+said.truth.run).items()), sorted((+run).items()))
            viewers.same(path, sorted((+said.truth.left).items()), sorted(left.items()))
        assert lost[0] == said.truth.lost, path
        got = collections.Counter((cpu, tid) for cpu, tid, *_ in trace.samples)
        want = collections.Counter()
        for (cpu, task), count in said.samples.items():
            want[cpu, task or cpu] += count
        viewers.same(path, sorted(want.items()), sorted(got.items()))
        assert len([v for v in trace.values if v[0] == "series"]) == len(said.values_and("frequency")), path
        if "golden" not in path:
            sums = collections.Counter()
            for category, _, name, value in trace.values:
                if category == "counter":
                    sums[name.split(" ", 2)[2]] += value
            assert sorted(filter(None, sums.values())) == viewers.counter_sums(said), path


def sources_are_slices_arrows_and_moments(tmp):
    trace = Trace(tmp, viewers.sources().save(os.path.join(tmp, "a.cap")))
    # those without their begin or their end are not there
    assert sorted(trace.handlers) == sorted([
        ("irq", 0, 1000, 200, "virtio0", 10), ("irq", 0, 1300, 100, "eth0", 10),
        ("ipi", 0, 1700, 100, "Rescheduling interrupts", 10),
        ("softirq", 0, 1500, 400, "NET_RX", 10)]), trace.handlers
    assert trace.processes[INTERRUPTS, 0] == "Interrupts" and trace.threads[INTERRUPTS, 0] == "CPU 0"
    assert (INTERRUPTS, 1) not in trace.threads, trace.threads
    assert sorted(trace.arrows) == [
        (1, "f", 0, 2001), (1, "s", 0, 1600), (2, "f", 1, 2751), (2, "s", 0, 2500)], trace.arrows
    assert sorted(trace.moments, key=lambda moment: moment[2]) == [
        ("softirq_raise", 0, 1100, {"id": 3, "cpu": 0}), ("migrate", 0, 1650, {"id": 11, "cpu": 0}),
        ("idle_miss", 1, 2700, {"id": 2, "cpu": 1})], trace.moments
    assert trace.processes[CALLS, 11] == "System calls and faults" and trace.threads[CALLS, 11] == "beta"
    assert sorted(trace.calls, key=str) == [
        ("X", 11, 2100, 860, "read", {"number": 0, "cpu": 0, "result": -4, "arguments": [3, -100, 5]}),
        ("X", 11, 2971, 1, "minor", {"cpu": 0, "kernel": False, "address": 0x7f0000001000, "pc": 0x401000}),
        ("X", 11, 2972, 2, "major", {"cpu": 0, "kernel": True, "address": 0x7f0000002008, "pc": 0xffffffff81000010}),
        ("i", 11, 2970, 0, "syscall", {"number": 9999, "cpu": 0, "result": 7, "arguments": [0, 0, 0]}),
        ("i", 11, 2976, 0, "failed", {"cpu": 0, "kernel": False, "address": 3, "pc": 0x401004})], trace.calls
    assert trace.processes[REQUESTS, 0] == "Block requests"
    assert sorted(trace.requests) == [
        (1, "b", 2100, "8:16 write", {"tid": 11, "sector": 2048, "bytes": 4096, "flags": "sync", "result": 0}),
        (1, "e", 2980, "8:16 write", None),
        (2, "b", 2200, "8:16 read", {"tid": 10, "sector": 4096, "bytes": 8192, "flags": "", "result": -5}),
        (2, "e", 2984, "8:16 read", None)], trace.requests
    # a kind of a later release is a value, and nothing is both
    assert [value[:3] for value in trace.values] == [
        ("series", 2600, "CPU 1 kHz"), ("series", 2800, "CPU 1 Wakeups")], trace.values


def slices_at_arrows(trace):
    """As trace_processor finds them: of those that stand before, the one on the CPU that began last."""
    begins = collections.defaultdict(list)
    for row in sorted(trace.slices, key=lambda row: row[2]):
        begins[row[1]].append((row[2], row[4]))
    for _, phase, cpu, time in trace.arrows:
        at = bisect.bisect_left(begins[cpu], (time,))
        yield phase, cpu, begins[cpu][at - 1][1] if at else None


def arrows_have_a_slice_at_both_ends(tmp):
    c = Late(cores=2)
    for task in 7, 8, 9:
        c.task(task, f"task{task}")
    c.switch(0, 1000, 7)
    c.waking(1, 1100, 9, 8, cpu=0)      # nobody knows yet what CPU 1 runs
    c.waking(0, 1200, 7, 9, cpu=1)
    c.switch(1, 1300, 9)
    c.switch(0, 1400, 8, blocked=True, state=1)
    c.waking(1, 1500, 9, 7, cpu=0)
    c.switch(0, 1600, 7, blocked=True, state=1)
    c.switch(1, 1700, 0, blocked=True, state=1)
    path = c.save(os.path.join(tmp, "a.cap"))
    trace = Trace(tmp, path)
    assert list(slices_at_arrows(trace)) == [
        ("s", 0, "task7"), ("f", 1, "task9"), ("s", 1, "task9"), ("f", 0, "task7")], trace.arrows
    for path in path, viewers.sources().save(os.path.join(tmp, "b.cap")), *viewers.real_captures():
        tids = {row["tid"] for row in map(json.loads, tap.run("script", "-j", path).stdout.splitlines())
                if "tid" in row}
        for options in [], *(["--tid", tid] for tid in (7, 11) if tid in tids), ["--cpu", "0"], \
                ["--time", "0.0000001,"]:
            trace = Trace(tmp, path, *options)
            assert all(found for _, _, found in slices_at_arrows(trace)), (path, options)


def samples_of_the_idle_task_are_in_the_threads_of_the_cpus(tmp):
    c = viewers.begin()
    for cpu in 1, 0, 1:
        c.sample(cpu, viewers.BASE + 1000 * cpu, 0, 0x999000, (1, 1), (0x999000,))
    c.sample(1, viewers.BASE + 9000, 1, 0x999000, (1, 1), (0x999000,))     # thread 1 is another one
    trace = Trace(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert [sample[:2] for sample in trace.samples] == [(1, 1), (0, 0), (1, 1), (1, 1)], trace.samples
    assert sorted((pid, profile[0]) for (pid, _), profile in trace.profiles.items()) == [
        (CPUS, 0), (CPUS, 1), (1, 1)]


def a_profile_may_begin_at_the_beginning_of_time(tmp):
    c = viewers.begin()
    c.multiplier = 1 << 62      # a time before the capture's base is the least one then
    c.sample(0, 1, 10, 0x999000, (1, 1), (0x999000,))
    path, out = c.save(os.path.join(tmp, "a.cap")), os.path.join(tmp, "out.json")
    viewers.convert(path, "chrome", out)
    with open(out, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    (begin,) = [event for event in events if event["name"] == "Profile"]
    assert begin["ts"] == begin["args"]["data"]["startTime"] == -9223372036854777, begin


def samples_have_their_symbols(tmp):
    for path in viewers.all_captures(tmp):
        if "golden" in path or "hostile" in path:
            continue
        said, trace, symbols = viewers.Said(path), Trace(tmp, path), collections.Counter()
        for _, _, _, sf, _ in trace.samples:
            image, name = trace.stack(sf)[0]
            symbols[image, "[unknown]" if name in (image, f"[{image}]") else name] += 1
        viewers.same(path, sorted(said.symbols.items()), sorted((k, symbols[k]) for k in said.symbols))
    trace = Trace(tmp, os.path.join(tmp, "small.cap"))
    assert trace.stack(trace.samples[1][3]) == [
        ("libbeta.so", "[libbeta.so]"), ("alpha", "[alpha]"), ("alpha", "[alpha]")]


def bookmarks_of_the_idle_task_are_in_the_threads_of_the_cpus(tmp):
    c = viewers.begin()
    for cpu in 1, 0:
        c.annotation(cpu, viewers.BASE + cpu, 0, b"lost", kind=1)
    assert [mark[:2] for mark in Trace(tmp, c.save(os.path.join(tmp, "a.cap"))).marks] == [(1, 1), (0, 0)]


def marks_have_their_times(tmp):
    trace = Trace(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    assert sorted(trace.marks) == [(2500, 11, "hello", 300), (2550, 11, "a bookmark", None),
                                   (6000, 0, "99 records lost", None), (7500, 10, "open", 500)]
    path = viewers.random_capture(9).save(os.path.join(tmp, "b.cap"))
    want = sorted((time, task, text) for time, task, kind, text in viewers.Said(path).marks
                  if kind == 1 or (kind == 0 and text))
    viewers.same("marks", want, sorted(mark[:3] for mark in Trace(tmp, path).marks))


def values_are_scaled_and_named(tmp):
    trace = Trace(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    assert ("series", 2600, "temperature", "36.5") in trace.values or \
        ("series", 2600, "CPU 0 temperature", "36.5") in trace.values, trace.values
    assert ("counter", 1000, "CPU 0 cycles", 50) in trace.values


def threads_and_cpus_are_named(tmp):
    trace = Trace(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    assert trace.threads == {(CPUS, 0): "CPU 0", (CPUS, 1): "CPU 1", (10, 10): "alpha", (10, 11): "beta"}
    assert trace.processes == {(CPUS, 0): "CPUs", (10, 10): "alpha"}
    assert trace.document["otherData"]["release"] == "6.1.0-viewers"


def names_come_through(tmp):
    trace = Trace(tmp, viewers.hostile().save(os.path.join(tmp, "a.cap")))
    for number, name in enumerate(viewers.HOSTILE):
        assert trace.threads[100 + number, 100 + number] == name.decode(errors="replace")[:256]


if __name__ == "__main__":
    tap.main(globals())
