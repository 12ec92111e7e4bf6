#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to perfetto: what the trace says is what the capture says."""
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import protobuf  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from latency_capture import IRQ, SOFTIRQ, Late  # noqa: E402

# Perfetto's numbers, for the messages that may appear
STRING = {1: ("iid", "uint"), 2: ("str", "bytes")}
WAKEUP = {1: ("comm", "text"), 2: ("pid", "uint"), 4: ("success", "uint"), 5: ("target_cpu", "uint")}
PACKET = {
    1: ("ftrace", {
        1: ("cpu", "uint"),
        2: ("event", [{
            1: ("timestamp", "uint"), 2: ("pid", "uint"),
            4: ("switch", {1: ("prev_comm", "text"), 2: ("prev_pid", "uint"),
                           4: ("prev_state", "uint"), 5: ("next_comm", "text"),
                           6: ("next_pid", "uint")}),
            11: ("cpu_frequency", {1: ("state", "uint"), 2: ("cpu_id", "uint")}),
            13: ("idle", {1: ("state", "uint"), 2: ("cpu_id", "uint")}),
            18: ("sched_blocked_reason", {1: ("pid", "uint"), 2: ("caller", "uint"), 3: ("io_wait", "uint")}),
            20: ("sched_waking", WAKEUP),
            329: ("sys_enter", {1: ("id", "uint")}), 330: ("sys_exit", {1: ("id", "uint"), 2: ("ret", "uint")}),
            235: ("task_newtask", {1: ("pid", "uint"), 2: ("comm", "text"), 3: ("clone_flags", "uint")}),
            24: ("softirq_entry", {1: ("vec", "uint")}), 25: ("softirq_exit", {1: ("vec", "uint")}),
            26: ("softirq_raise", {1: ("vec", "uint")}),
            36: ("irq_handler_entry", {1: ("irq", "uint"), 2: ("name", "text")}),
            37: ("irq_handler_exit", {1: ("irq", "uint"), 2: ("ret", "uint")}),
            491: ("sched_migrate_task", {1: ("comm", "text"), 2: ("pid", "uint"),
                                         4: ("orig_cpu", "uint"), 5: ("dest_cpu", "uint")})}]),
        3: ("lost", "uint"),
        4: ("compact", {
            1: ("switch_timestamp", ["uint"]), 2: ("switch_prev_state", ["uint"]),
            3: ("switch_next_pid", ["uint"]), 4: ("switch_next_prio", ["uint"]),
            5: ("intern_table", ["text"]), 6: ("switch_next_comm_index", ["uint"]),
            7: ("waking_timestamp", ["uint"]), 8: ("waking_pid", ["uint"]),
            9: ("waking_target_cpu", ["uint"]), 10: ("waking_prio", ["uint"]),
            11: ("waking_comm_index", ["uint"]), 12: ("waking_common_flags", ["uint"])}),
        5: ("clock", "uint")}),
    2: ("tree", {
        1: ("processes", [{1: ("pid", "uint"), 3: ("cmdline", ["text"])}]),
        2: ("threads", [{1: ("tid", "uint"), 2: ("name", "text"), 3: ("tgid", "uint")}])}),
    6: ("clocks", {1: ("clocks", [{1: ("id", "uint"), 2: ("timestamp", "uint")}]),
                   2: ("primary", "uint")}),
    8: ("timestamp", "uint"),
    10: ("sequence", "uint"),
    11: ("event", {4: ("notes", [{2: ("bool", "uint"), 3: ("uint", "uint"), 4: ("int", "sint"), 6: ("string", "text"),
                                  7: ("pointer", "uint"), 10: ("name", "text")}]),
                   9: ("type", "uint"), 11: ("track", "uint"), 22: ("categories", ["text"]),
                   23: ("name", "text"), 30: ("value", "sint"), 44: ("double", "double")}),
    12: ("interned", {
        5: ("functions", [STRING]),
        6: ("frames", [{1: ("iid", "uint"), 2: ("function", "uint"), 3: ("mapping", "uint"),
                        4: ("rel_pc", "uint"), 7: ("kind", "uint")}]),
        7: ("stacks", [{1: ("iid", "uint"), 2: ("frames", ["uint"])}]),
        16: ("build_ids", [STRING]),
        17: ("paths", [STRING]),
        19: ("mappings", [{1: ("iid", "uint"), 2: ("build_id", "uint"), 3: ("offset", "uint"),
                           4: ("start", "uint"), 5: ("end", "uint"), 7: ("path", ["uint"]),
                           8: ("exact_offset", "uint")}]),
        26: ("symbols", [STRING])}),
    13: ("flags", "uint"),
    45: ("system", {1: ("utsname", {1: ("sysname", "text"), 3: ("release", "text"),
                                    4: ("machine", "text")}),
                    8: ("cpus", "uint")}),
    58: ("clock", "uint"),
    59: ("defaults", {12: ("samples", {1: ("timebase", {4: ("counter", "uint"),
                                                        10: ("name", "text")})})}),
    60: ("track", {1: ("uuid", "uint"), 2: ("name", "text"),
                   4: ("thread", {1: ("pid", "uint"), 2: ("tid", "uint")}),
                   5: ("parent", "uint"),
                   8: ("counter", {3: ("unit", "uint"), 5: ("incremental", "uint")})}),
    66: ("sample", {1: ("cpu", "uint"), 2: ("pid", "uint"), 3: ("tid", "uint"),
                    4: ("stack", "uint"), 5: ("mode", "uint"), 6: ("count", "uint")}),
}
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
LEFT = 2**32 - 1


class Trace:
    """A trace, with what its packets refer to looked up."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.packets = protobuf.read(file.read(), {1: ("packet", [PACKET])})["packet"]
        self.switches, self.halts, self.samples, self.events = [], [], [], []
        self.sources, self.gaps, self.ends, self.mismatched = [], [], [], 0
        self.running, self.comms = {}, {0: "swapper"}     # by CPU; by task
        self.tracks, self.threads, self.processes, self.lost = {}, {}, {}, set()
        self.interned = collections.defaultdict(dict)
        assert self.packets[0]["flags"] == 1 and "clocks" in self.packets[0]
        for packet in self.packets:
            assert packet["sequence"] == 1 and packet["clock" if "timestamp" in packet else
                                                      "sequence"] in (1, 5)
            self.take(packet)

    def take(self, packet):
        for kind, entries in packet.get("interned", {}).items():
            for entry in entries:
                assert entry["iid"] not in self.interned[kind], "an entry twice"
                self.interned[kind][entry["iid"]] = entry
        for thread in packet.get("tree", {}).get("threads", []):
            self.threads[thread["tid"]] = thread
        for process in packet.get("tree", {}).get("processes", []):
            self.processes[process["pid"]] = process["cmdline"]
        bundle = packet.get("ftrace", {"event": []})
        for event in sorted(self.compact(bundle) + bundle["event"], key=lambda e: e["timestamp"]):
            if "switch" in event:
                self.switch(event, bundle["cpu"])
            elif "idle" not in event:
                name, = set(event) - {"timestamp", "pid"}
                pid = event["pid"] if "pid" in event else self.running[bundle["cpu"]]
                self.sources.append((bundle["cpu"], event["timestamp"], pid, name, event[name]))
            else:
                assert event["idle"]["cpu_id"] == bundle["cpu"]
                self.halts.append((event["timestamp"], bundle["cpu"], event["idle"]["state"]))
        if bundle.get("lost"):
            self.lost.add(bundle["cpu"])
        if "ftrace" in packet:
            assert bundle["clock"] == 4     # CLOCK_MONOTONIC_RAW
        if "sample" in packet:
            self.samples.append((packet["timestamp"], packet["sample"]))
            assert packet["sample"]["stack"] in self.interned["stacks"]
        if "track" in packet:
            self.tracks.setdefault(packet["track"]["uuid"], {}).update(packet["track"])
        if "event" in packet:
            assert packet["event"]["track"] in self.tracks, "a track is used before it is described"
            self.events.append((packet["timestamp"], packet["event"]))

    @staticmethod
    def compact(bundle):
        """The switches and wakeups of the compact form, as events without what it leaves out."""
        compact, events = bundle.get("compact"), []
        if not compact:
            return events
        names, time = compact["intern_table"], 0
        for delta, state, pid, prio, comm in zip(*(compact["switch_" + key] for key in (
                "timestamp", "prev_state", "next_pid", "next_prio", "next_comm_index")), strict=True):
            time = (time + delta) % 2**64
            assert prio == 0
            events.append({"timestamp": time, "switch": {"prev_state": state, "next_pid": pid,
                                                         "next_comm": names[comm]}})
        time = 0
        for delta, pid, cpu, prio, comm, flags in zip(*(compact["waking_" + key] for key in (
                "timestamp", "pid", "target_cpu", "prio", "comm_index", "common_flags")), strict=True):
            time = (time + delta) % 2**64
            assert prio == 0
            events.append({"timestamp": time, "sched_waking": {
                "comm": names[comm], "pid": pid, "target_cpu": cpu, "common_flags": flags}})
        return events

    def switch(self, event, cpu):
        switch, running = event["switch"], self.running.get(cpu)
        if "prev_pid" not in switch:
            switch["prev_pid"] = running    # trace_processor would skip the first one of a CPU
            switch["prev_comm"] = self.comms[running]
            self.switches.append((event["timestamp"], cpu, switch))
        elif running is None:
            self.switches.append((event["timestamp"], cpu, switch))
        else:   # to idle, where records are missing, or to the task that a sample showed then
            self.mismatched += switch["prev_pid"] != running
            kind = switch["prev_state"], switch["next_pid"]
            assert kind in ((0, 0), (1, 0)) or (switch["prev_state"], running) == (0, 0)
            (self.ends if running and kind == (0, 0) else self.gaps).append((event["timestamp"], cpu, switch))
        self.running[cpu] = switch["next_pid"]
        self.comms[switch["next_pid"]] = switch["next_comm"]

    def stack(self, iid):
        """(image, name, address) of its frames, innermost first."""
        out = []
        for frame in reversed(self.interned["stacks"][iid]["frames"]):
            frame = self.interned["frames"][frame]
            path = self.interned["mappings"][frame["mapping"]]["path"][0]
            out.append((self.interned["paths"][path]["str"].decode(),
                        self.interned["functions"][frame["function"]]["str"].decode(),
                        frame["rel_pc"]))
        return out


def trace_of(tmp, path):
    out = os.path.join(tmp, "trace.perfetto")
    viewers.convert(path, "perfetto", out)
    return Trace(out)


def base_of(path):
    return int(viewers.facts(path).get("raw_base", 0))


def scheduling_is_that_of_the_capture(tmp):
    for path in viewers.all_captures(tmp):
        said, trace, base = viewers.Said(path), trace_of(tmp, path), base_of(path)
        want = sorted((max(0, base + ns), core, task) for ns, core, task in said.switches)
        got = collections.Counter((time, core, switch["next_pid"]) for time, core, switch in trace.switches)
        got.subtract(want)
        assert min(got.values(), default=0) >= 0, (path, got)
        # or trace_processor has an error; in golden captures times go back
        assert not trace.mismatched or "golden" in path, path
        more = collections.Counter(core for _, core, _ in got.elements())
        assert max(more.values(), default=1) == 1, (path, more)     # the first sample shows who runs
        want = sorted((max(0, base + ns), core, LEFT if not entered else state or 0)
                      for ns, core, entered, state in said.halts)
        viewers.same(path, want, sorted(trace.halts))


def who_was_on_the_cpu_is_said_with_every_switch(tmp):
    trace = trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    shown = [(cpu, s["prev_comm"], s["prev_pid"], s["prev_state"], s["next_comm"])
             for _, cpu, s in sorted(trace.switches, key=lambda s: s[:2])]
    assert shown == [
        (0, "swapper", 0, 0, "alpha"), (1, "swapper", 0, 0, "swapper"),
        (0, "alpha", 10, 1, "beta"), (1, "swapper", 0, 0, "alpha"),
        (0, "beta", 11, 0x100, "alpha"), (0, "swapper", 0, 0, "beta"),   # behind the gap
        (0, "beta", 11, 0x100, "swapper")], shown
    assert trace.lost == {0}
    assert [(time - viewers.RAW_BASE, s["prev_pid"]) for time, _, s in trace.gaps] == [(4000, 10)]


def samples_have_their_stacks(tmp):
    for path in viewers.all_captures(tmp):
        said, trace = viewers.Said(path), trace_of(tmp, path)
        got = collections.Counter((s["cpu"], s["tid"]) for _, s in trace.samples)
        viewers.same(path, sorted(said.samples.items()), sorted(got.items()))
        symbols = collections.Counter()
        for _, sample in trace.samples:
            image, name, _ = trace.stack(sample["stack"])[0]
            image = "[kernel.kallsyms]" if image == "/kernel" else os.path.basename(image)
            unknown = name == image or name == f"[{image}]"
            symbols[image, "[unknown]" if unknown else name] += 1
        if "hostile" not in path and "golden" not in path:  # the report counts those without a PC
            viewers.same(path, sorted(said.symbols.items()),
                         sorted((k, symbols[k]) for k in said.symbols))
    trace = trace_of(tmp, os.path.join(tmp, "small.cap"))
    assert trace.stack(trace.samples[1][1]["stack"]) == [
        ("/gone/libbeta.so", "[libbeta.so]", 0x10), ("/gone/alpha", "[alpha]", 0x2677),
        ("/gone/alpha", "[alpha]", 0x2233)]
    assert trace.samples[0][1]["pid"] == 10 and trace.samples[1][1] == {
        "cpu": 0, "pid": 10, "tid": 11, "stack": 2, "mode": 2, "count": 120}


def addresses_are_of_the_file_or_else_whole(tmp):
    trace = trace_of(tmp, viewers.save_kernel(tmp))
    got = [trace.stack(sample["stack"])[0] for _, sample in trace.samples]
    assert got == [
        ("/kernel", "start_kernel", viewers.START_KERNEL),
        ("/kernel", "first", viewers.KERNEL + 0x40),
        ("[module]", "probe", 0xffffffffc0000010), ("/gone/alpha", "[alpha]", 0x3010),
        ("/gone/alpha", "[alpha]", 0x3010), ("/gone/alpha", "[alpha]", 0xaff8),
        ("[anon]", "[anon]", 0x710020), ("[anon]", "[anon]", 0x750020),
        ("[unknown]", "[unknown]", 0x999990)], got
    kinds = {trace.interned["functions"][f["function"]]["str"]: f["kind"]
             for f in trace.interned["frames"].values()}
    native, kernel = 1, 2
    assert kinds == {b"start_kernel": kernel, b"first": kernel, b"probe": kernel,
                     b"[alpha]": native, b"[anon]": native, b"[unknown]": native}, kinds


# trace_processor has what has limits once a process; the kernel, which it knows by its name, no
# limits and no build-id, it has once
def what_is_of_all_processes_has_no_limits(tmp):
    trace = trace_of(tmp, viewers.save_kernel(tmp))
    got = set()
    for mapping in trace.interned["mappings"].values():
        path = trace.interned["paths"][mapping["path"][0]]["str"].decode()
        assert mapping["offset"] == 0 and "build_id" not in mapping
        got.add((path, mapping["start"], mapping["end"], mapping["exact_offset"]))
    assert got == {
        ("/kernel", 0, 0, 0), ("[module]", 0, 0, 0), ("[unknown]", 0, 0, 0),
        ("/gone/alpha", 0x10000, 0x11000, 0x3000), ("/gone/alpha", 0x58000, 0x5a000, 0x9000),
        ("[anon]", 0x710000, 0x711000, 0x710000), ("[anon]", 0x750000, 0x751000, 0x750000)}, got


def counters_add_up(tmp):
    for path in viewers.all_captures(tmp):
        said, trace = viewers.Said(path), trace_of(tmp, path)
        sums, shown = collections.Counter(), []
        for time, event in trace.events:
            if event["type"] != COUNTER:
                continue
            track = trace.tracks[event["track"]]
            name = track["name"].split(" ", 2)[2] if track["name"].startswith("CPU ") \
                else track["name"]
            if name in ("cycles", "misses") or name.startswith("PMU"):
                assert track["counter"]["incremental"]
                sums[name] += event["value"] % 2**64
            else:
                shown.append((time, name))
        if "golden" not in path and "demo" not in path:
            assert sorted(filter(None, sums.values())) == viewers.counter_sums(said), path
            assert len(shown) == len(said.values), path
    trace = trace_of(tmp, os.path.join(tmp, "small.cap"))
    assert [e["double"] for _, e in trace.events if "double" in e] == [36.5]


def marks_are_slices_and_instants(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    trace, marks = trace_of(tmp, path), []
    for time, event in trace.events:
        if event["type"] != COUNTER and event.get("name") != "99 records lost" or \
                event["type"] == INSTANT:
            track = trace.tracks[event["track"]]
            thread = trace.tracks[track["parent"]] if "parent" in track else track
            marks.append((time - viewers.RAW_BASE, event["type"], event.get("name"),
                          track.get("name"), thread.get("thread", {}).get("tid")))
    lost = [m for m in marks if m[3] == "CPU 0 lost"]
    assert [m for m in marks if m not in lost] == [
        (2500, BEGIN, "hello", "the channel", 11), (2550, INSTANT, "a bookmark", None, 11),
        (2800, END, None, "the channel", 11), (6000, INSTANT, "99 records lost", None, 0),
        (7500, BEGIN, "open", None, 10)], marks
    texts = [(time - viewers.RAW_BASE, event.get("name")) for time, event in trace.events
             if trace.tracks[event["track"]].get("name") == "CPU 0 lost"]
    assert texts == [(4000, "99 records lost"), (6000, None)], texts


def all_marks_are_there(tmp):
    path = viewers.random_capture(7).save(os.path.join(tmp, "a.cap"))
    said, trace = viewers.Said(path), trace_of(tmp, path)
    want = sorted((ns + viewers.RAW_BASE, text) for ns, _, kind, text in said.marks
                  if kind != 2 and (text or kind))
    got = sorted((time, event["name"]) for time, event in trace.events
                 if event["categories"] == ["mark"])
    viewers.same("marks", want, got)
    depth = collections.Counter()
    for _, event in trace.events:
        depth[event["track"]] += {BEGIN: 1, END: -1}.get(event["type"], 0)
        assert 0 <= depth[event["track"]] <= 1


def tasks_belong_to_their_processes(tmp):
    trace = trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    assert trace.threads == {10: {"tid": 10, "name": "alpha", "tgid": 10},
                             11: {"tid": 11, "name": "beta", "tgid": 10}}, trace.threads


def a_task_has_the_name_that_it_had_last(tmp):
    c = CaptureWriter(cores=1)
    c.task(10, b"sh")
    c.fact("tgid.1", 10)
    c.task(11, b"helper")
    c.switch(0, BASE, 10)
    c.switch(0, BASE + 10, 11)
    c.switch(0, BASE + 20, 10)
    c.task(10, b"xz", BASE + 25)        # and it does not come to a CPU again
    c.switch(0, BASE + 30, 0)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert trace.threads[10]["name"] == "xz" and trace.threads[11]["name"] == "helper", trace.threads
    assert trace.processes[10] == ["xz"], trace.processes
    c.switch(0, BASE + 40, 11)
    trees = [packet["tree"] for packet in trace_of(tmp, c.save(os.path.join(tmp, "a.cap"))).packets
             if "tree" in packet]
    names = [(tree["threads"][0]["name"], tree["processes"][0]["cmdline"]) for tree in trees]
    assert names == [("sh", ["sh"]), ("helper", ["sh"]), ("xz", ["xz"]), ("helper", ["xz"])], names


def states_of(tmp, release, states):
    """What is written for a task of each state, a preempted one, and a dead main thread."""
    c = CaptureWriter(cores=1)
    c.fact("ext", 1)
    if release:
        c.fact("release", release)
    for task in 10, 11:
        c.task(task, b"task")
    c.fact("tgid.1", 10)
    now = BASE
    for state in states:
        c.switch(0, now, 11)
        c.switch(0, now + 1, 0, blocked=1, state=state)
        now += 10
    c.switch(0, now, 11)
    c.switch(0, now + 1, 10)
    c.switch(0, now + 2, 0, blocked=1, state=0x80)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    return [s["prev_state"] for _, _, s in sorted(trace.switches, key=lambda s: s[0])
            if s["prev_pid"]]


def states_are_those_of_the_kernels_trace_event(tmp):
    # a thread that ends is dead (0x10), a process is a zombie (0x20); 0x100 is preempted
    got = states_of(tmp, "6.1.0-viewers", [0, 1, 2, 4, 8, 0x40, 0x80])
    assert got == [1, 1, 2, 4, 8, 0x40, 0x10, 0x100, 0x20], got


def states_are_those_of_linux_4_4_where_no_release_is_told(tmp):
    # so trace_processor reads them then: parked is 0x200 and preempted 0x800
    for release in None, "unknown":
        got = states_of(tmp, release, [0, 1, 2, 4, 8, 0x40, 0x80])
        assert got == [1, 1, 2, 4, 8, 0x200, 0x10, 0x800, 0x20], (release, got)


def metrics_are_tracks_of_each_cpu(tmp):
    """A value holds from when its counters began to count; short spans are put together."""
    ms = 10**6
    c = CaptureWriter(cores=2, counters=2)
    for core in range(2):
        c.fact(f"counter.{core}.0", "cycles")
        c.fact(f"counter.{core}.1", "instructions")
    c.task(5, b"five")
    for at, instructions in (0, 77), (4, 100), (11, 300), (21, 500), (26, viewers.INVALID), \
            (40, 0), (55, 4000):
        c.sample(0, BASE + at * ms, 5, 0x1000, (100 if at else 7, instructions))
    c.sample(1, BASE + 60 * ms, 5, 0x1000, (1, 1))
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    got = {}
    for time, event in trace.events:
        if event["type"] == COUNTER and "double" in event:
            got.setdefault(trace.tracks[event["track"]]["name"], []).append((time, event["double"]))
    first = min(time for time, _ in trace.samples)
    assert [(time - first, value) for time, value in got["CPU 0 ipc"]] == [
        (0, 2), (11 * ms, 5), (40 * ms, 40)], got
    assert [round(value, 3) for _, value in got["CPU 0 cpi"]] == [0.5, 0.2, 0.025], got
    assert set(got) == {"CPU 0 ipc", "CPU 0 cpi"}, got


def a_cpu_has_metrics_of_its_own_counters(tmp):
    ms = 10**6
    c = CaptureWriter(cores=2, counters=[[1, 2], [1]])
    for key, name in ("0.0", "task-clock"), ("0.1", "big/cycles/"), ("1.0", "task-clock"):
        c.fact(f"counter.{key}", name)
    for at in 0, 20, 40, 60:
        for core, values in enumerate(((10 * ms, 20 * ms), (10 * ms,))):
            c.sample(core, BASE + at * ms, 5, 0x1000, values)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    got = [(trace.tracks[event["track"]]["name"], event["double"]) for _, event in trace.events
           if event["type"] == COUNTER and "double" in event]
    assert got == [("CPU 0 big/ghz", 2)] * 3, got


def metrics_of_many_cores_cost_little_memory(tmp):
    """Of hostile captures, too: 8000 cores, each with counters of its own."""
    c = CaptureWriter(cores=8000, counters=[[core + i for i in range(30)] for core in range(8000)])
    c.fact("counter.0.0", "cycles")
    c.fact("counter.0.1", "instructions")
    for core in range(8000):
        c.sample(core, BASE + core, 5, 0x1000, [1] * 30)
    path = c.save(os.path.join(tmp, "a.cap"))
    peak = tap.peak_kib("convert", "--to", "perfetto", "-o", os.path.join(tmp, "out"), path)
    assert peak < 40000, peak


def samples_say_what_they_come_by(tmp):
    clock, cycles = 1, 10       # in Perfetto's numbers
    for name, want in ("cpu-clock", {"counter": clock, "name": "cpu-clock"}), \
            ("cycles", {"counter": cycles, "name": "cycles"}), ("L1-misses", {"name": "L1-misses"}):
        c = CaptureWriter(cores=2, counters=1)
        c.fact("counter.0.0", name)
        c.fact("counter.1.0", name)
        c.task(5, b"five")
        for at, count in enumerate((7, 8, viewers.INVALID, 9)):
            c.sample(0, BASE + at, 5, 0x1000, (count,))
        c.sample(1, BASE + 9, 5, 0x1000, (100,))
        trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
        assert trace.packets[0]["defaults"]["samples"]["timebase"] == want
        assert [(s["cpu"], s.get("count")) for _, s in trace.samples] == [
            (0, 7), (0, 15), (0, None), (0, 24), (1, 100)]


def samples_without_counters_count_themselves(tmp):
    c = CaptureWriter(cores=1)
    for at in range(3):
        c.sample(0, BASE + at, 5, 0x1000)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert trace.packets[0]["defaults"]["samples"]["timebase"] == {"name": "samples"}
    assert [s["count"] for _, s in trace.samples] == [1, 2, 3]


def clocks_and_kernel_are_told(tmp):
    trace = trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    clocks = {c["id"]: c["timestamp"] for c in trace.packets[0]["clocks"]["clocks"]}
    # trace_processor wants to relate all clocks to CLOCK_BOOTTIME (6)
    assert clocks == {5: viewers.RAW_BASE, 6: viewers.RAW_BASE, 1: 1700000000 * 10**9}
    assert trace.packets[0]["clocks"]["primary"] == 5
    assert trace.packets[1]["system"] == {
        "utsname": {"sysname": "Linux", "release": "6.1.0-viewers", "machine": "x86_64"}, "cpus": 2}


def images_have_the_build_ids_of_their_files(tmp):
    program = tap.KBARMAN
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    if "Build ID: " not in notes.stdout:
        raise tap.Skip("the tool was linked without a build-id")
    c = CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**24, 0, program.encode())
    c.sample(0, BASE + 1, 5, 0x10000 + 0x20000)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    ids = [entry["str"].hex() for entry in trace.interned["build_ids"].values()]
    assert ids == [notes.stdout.split("Build ID: ")[1].split()[0]], ids


def cpus_that_perfetto_has_not_are_told(tmp):
    c = viewers.begin(cores=1030)
    c.switch(1023, BASE, 10)
    c.switch(1024, BASE, 10)
    c.switch(1024, BASE + 5, 11)
    path = c.save(os.path.join(tmp, "a.cap"))
    result = viewers.convert(path, "perfetto", os.path.join(tmp, "out"))
    assert "2 trace events of CPUs from 1024 on" in result.stderr, result.stderr
    assert [cpu for _, cpu, _ in trace_of(tmp, path).switches] == [1023]


def sources_are_events_of_the_kernel(tmp):
    trace = trace_of(tmp, viewers.sources().save(os.path.join(tmp, "a.cap")))
    got = sorted((source for source in trace.sources if source[3][:4] != "sys_"), key=lambda source: source[1])
    assert [(core, time - viewers.RAW_BASE, task) for core, time, task, _, _ in got] == [
        source[:3] for source in viewers.LIKE_TRACEPOINTS], got
    assert [(name, fields) for *_, name, fields in got] == [
        ("irq_handler_entry", {"irq": 33, "name": "virtio0"}), ("softirq_raise", {"vec": 3}),
        ("irq_handler_exit", {"irq": 33, "ret": 1}),
        ("irq_handler_entry", {"irq": 33, "name": "eth0"}),
        ("irq_handler_exit", {"irq": 33, "ret": 1}), ("softirq_entry", {"vec": 3}),
        ("sched_waking", {"comm": "beta", "pid": 11, "target_cpu": 1, "common_flags": 16}),
        ("sched_migrate_task", {"comm": "beta", "pid": 11, "orig_cpu": 1, "dest_cpu": 0}),
        ("irq_handler_entry", {"name": "Rescheduling interrupts"}),   # only these make slices
        ("irq_handler_exit", {"ret": 1}), ("softirq_exit", {"vec": 3}),
        ("task_newtask", {"comm": "task 12", "pid": 12, "clone_flags": 0}),
        ("cpu_frequency", {"state": 1200000, "cpu_id": 1}),
        ("irq_handler_exit", {"irq": 40, "ret": 1}),
        ("irq_handler_entry", {"irq": 41, "name": "irq 41"})], got
    assert {11, 12} <= set(trace.threads), trace.threads
    # what Perfetto has no event for is a value, and nothing is both
    names = [trace.tracks[event["track"]]["name"] for _, event in trace.events]
    assert sorted(names) == ["8:16"] * 4 + ["CPU 0 System calls", "CPU 1 Idle misses", "CPU 1 Wakeups"] + \
        ["Page faults"] * 5, names


def slices_of(trace, base):
    """(track, begin, end, name, notes) of slices and instants, as Perfetto pairs them: by time, then in order."""
    found, open_ones = [], collections.defaultdict(list)
    for when, event in sorted(trace.events, key=lambda one: one[0]):
        row = [event["track"], when - base, when - base, event.get("name"),
               {note.pop("name"): note for note in map(dict, event.get("notes", []))}]
        if event["type"] == BEGIN:
            open_ones[event["track"]].append(row)
            found.append(row)
        elif event["type"] == END:
            open_ones[event["track"]].pop()[2] = when - base
        elif event["type"] == INSTANT:
            found.append(row)
    assert not any(open_ones.values())
    return found


def faults_and_block_requests_are_slices(tmp):
    sda, sdb = 8 << 20, 8 << 20 | 16
    c = Late(cores=2, facts={"sources": "faults,block", "tgid.1": "9"})
    c.task(10, "task10")
    c.fault(0, 3000, 10, 2000, 0, 0x602000, 0x401000)
    c.fault(1, 5000, 10, 3000, 1, 0x603000, 0xffffffff81000010, kernel=True)
    c.fault(0, 6000, 10, 5500, -14, 3, 0x401004)    # it has no end
    c.block(0, 3000, 10, 1000, 0, 2048, sda, 4096, 0x101)
    c.block(0, 4000, 10, 2000, -5, 4096, sda, 8192)
    c.block(0, 4500, 0, 2500, 0, 8, sdb, 512)
    c.block(0, 5000, 10, 3000, 0, 8192, sda, 4096)  # where the first one was
    c.block(0, 6000, 10, 0, 0, 1, sda, 512)         # begun before the recording
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    slices = slices_of(trace, base_of(os.path.join(tmp, "a.cap")))
    names = {track: described.get("name") for track, described in trace.tracks.items()}
    faults = [row for row in slices if names[row[0]] == "Page faults"]
    assert [row[1:4] for row in faults] == [[2000, 3000, "minor"], [3000, 5000, "major"],
                                            [6000, 6000, "failed"]], faults
    assert faults[1][4] == {"cpu": {"uint": 1}, "kernel": {"bool": 1}, "address": {"pointer": 0x603000},
                            "pc": {"pointer": 0xffffffff81000010}}, faults
    thread = trace.tracks[trace.tracks[faults[0][0]]["parent"]]["thread"]
    assert thread == {"pid": 9, "tid": 10}, thread
    requests = [row for row in slices if row not in faults]
    assert [(names[row[0]], *row[1:4]) for row in requests] == [
        ("8:0", 1000, 3000, "write"), ("8:0", 2000, 4000, "read"), ("8:16", 2500, 4500, "read"),
        ("8:0", 3000, 5000, "read"), ("8:0", 6000, 6000, "read")], requests
    assert requests[0][0] == requests[3][0] != requests[1][0], requests
    assert requests[0][4] == {"cpu": {"uint": 0}, "tid": {"uint": 10}, "sector": {"uint": 2048},
                              "bytes": {"uint": 4096}, "flags": {"string": "sync"}, "result": {"int": 0}}, requests
    assert requests[1][4]["result"] == {"int": -5}, requests


def requests_that_are_too_many_at_a_time_are_instants(tmp):
    c = Late(cores=1, facts={"sources": "block"})
    for i in range(300):
        c.block(0, 5000 + i, 10, 1000, 0, i, 8 << 20, 512)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    kinds = collections.Counter(event["type"] for _, event in trace.events)
    assert kinds == {BEGIN: 256, END: 256, INSTANT: 44}, kinds
    assert len({event["track"] for _, event in trace.events}) == 256


def calls_are_from_their_begin_to_their_end(tmp):
    c = Late(cores=2, facts={"machine": "x86_64"})
    c.task(10, "task10")
    c.switch(0, 1000, 10)
    c.syscall(1, 5000, 10, 0, 2000, 4096)       # it began on the other CPU
    c.syscall(1, 6000, 10, 1, 5500, -11)
    c.syscall(1, 7000, 10, 1, 0, 1)             # begun before the recording
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    base = base_of(os.path.join(tmp, "a.cap"))
    assert sorted((time - base, task, name, fields) for _, time, task, name, fields in trace.sources) == [
        (2000, 10, "sys_enter", {"id": 0}), (5000, 10, "sys_exit", {"id": 0, "ret": 4096}),
        (5500, 10, "sys_enter", {"id": 1}), (6000, 10, "sys_exit", {"id": 1, "ret": 2**64 - 11})], trace.sources


WAITS = [((74, 3, 0, 8 << 20 | 1, 12), b"fsync /srv/log"), ((0, 5, 0, 4, 99), b"read pipe"), ((202, 8, 0, 0, 4096), b"futex"),
         ((0, 13, 5, 0, 4096), b"page fault"), ((17, 13, 1, 0, 4096), b"pread64 page fault"), ((0, 2, 0, 0, 4096), b"no call"),
         ((230, 1, 0, 0, 0), b"clock_nanosleep"), ((74, 3, 0, 8 << 20 | 1, 12), b"fsync /srv/log"), (None, None)]


def a_state_says_what_the_task_waits_for(tmp):
    """As ThreadStateTracker takes it: the last state of the task, which is blocked by then."""
    c = Late(cores=1, facts={"machine": "x86_64", "objects": "1", f"object.3.12.{8 << 20 | 1}.0": "/srv/log"})
    c.task(10, "task10")
    c.switch(0, 0, 10)
    for i, (waits_for, _) in enumerate(WAITS):
        c.switch(0, i * 100 + 50, 0, blocked=True, state=2, waits_for=waits_for)
        c.switch(0, i * 100 + 100, 10)
    trace = trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))
    base = base_of(os.path.join(tmp, "a.cap"))
    got = [(time - base, fields["pid"], fields["io_wait"], trace.interned["symbols"][fields["caller"]]["str"])
           for _, time, _, name, fields in trace.sources if name == "sched_blocked_reason"]
    assert got == [(i * 100 + 50, 10, waits_for[2] & 1, text)
                   for i, (waits_for, text) in enumerate(WAITS) if waits_for], got
    assert len(trace.interned["symbols"]) == 7
    blocked = {time for time, _, switch in trace.switches if switch["prev_pid"] == 10 and switch["prev_state"] == 2}
    assert {time + base for time, *_ in got} <= blocked


def thread_states(trace):
    """What trace_processor makes of scheduling (its ThreadStateTracker): task: [(state, ns, waker)].
    The waker is None where the wakeup was an interrupt's."""
    events = [(time, cpu, "switch", switch["prev_pid"], switch) for time, cpu, switch in
              trace.switches + trace.gaps + trace.ends]
    events += [(time, cpu, name, pid, fields) for cpu, time, pid, name, fields in trace.sources
               if name in ("sched_waking", "task_newtask")]
    rows, opened = collections.defaultdict(list), {}

    def change(time, task, state, waker=None):
        if task in opened:
            begin, *row = opened[task]
            rows[task].append((row[0], time - begin, row[1]))
        if task:
            opened[task] = time, state, waker

    for time, _, kind, pid, fields in sorted(events, key=lambda event: event[0]):
        if kind == "switch":
            state = fields["prev_state"]
            change(time, pid, "R+" if state & 0x100 else "S" if state else "R")
            change(time, fields["next_pid"], "Running")
        elif opened.get(fields["pid"], (0, "S", 0))[1] not in ("R", "R+", "Running"):
            interrupt = fields.get("common_flags", 0) & (8 | 16)
            change(time, fields["pid"], "R", None if interrupt else pid)
    return rows


def trace_processor_adds_up_what_the_report_does(tmp):
    c = Late(cores=2, facts={"release": "6.1.0"})
    for task in 10, 11, 12:
        c.task(task, f"task{task}")
    c.switch(0, 1000, 10)
    c.switch(1, 1000, 0)
    c.waking(1, 1500, 0, 12, cpu=1, context=IRQ)    # its first one
    c.switch(1, 1600, 12)
    c.switch(1, 1700, 0, blocked=1, state=1)
    c.waking(0, 2000, 10, 11, cpu=0, new=True)
    c.switch(0, 2300, 11)                           # 10 is preempted
    c.waking(0, 2400, 11, 12, cpu=1, context=SOFTIRQ)
    c.switch(1, 2450, 12)
    c.switch(0, 2600, 10, blocked=1, state=1)
    c.waking(1, 2700, 12, 11, cpu=1)
    c.switch(1, 2900, 11, blocked=1, state=2)
    c.switch(0, 3000, 0, blocked=1, state=1)
    c.waking(0, 3100, 0, 12, cpu=0, context=IRQ)
    c.switch(0, 3300, 12)
    c.switch(0, 3600, 0, blocked=1, state=1)
    c.switch(1, 3600, 10, blocked=False)            # and it runs on until the end
    c.halt(0, 3900, True, 1)
    for path in *viewers.real_captures(), c.save(os.path.join(tmp, "a.cap")):
        rows = thread_states(trace_of(tmp, path))
        said = [json.loads(line) for options in ([], ["--latency"]) for line in
                tap.run("report", "--json", *options, path).stdout.splitlines()]
        for state, kind, key in ("Running", "task_time", "run_ns"), ("R+", "task_time", "preempted_ns"), \
                ("R", "latency_task", "sum_ns"):
            if state == "R" and not path.startswith(tmp):
                continue    # it does not see wakeups of tasks that are still on their CPU
            want = {line["tid"]: line[key] for line in said if line["kind"] == kind and line["tid"]
                    and not line.get("preempted") is True}
            got = {task: sum(ns for what, ns, _ in rows[task] if what == state) for task in want}
            viewers.same((path, state), want, got)
    wakers = {task: [waker for state, _, waker in rows[task] if state == "R"] for task in (11, 12)}
    assert wakers == {11: [10, 12], 12: [None, None, None]}, wakers


def protoc_takes_every_trace(tmp):
    viewers.need("protoc")
    sources = viewers.sources().save(os.path.join(tmp, "sources.cap"))
    for path in [sources, *viewers.all_captures(tmp)]:
        trace = trace_of(tmp, path)
        with open(os.path.join(tmp, "trace.perfetto"), "rb") as file:
            result = subprocess.run(["protoc", "--decode_raw"], stdin=file, capture_output=True,
                                    text=True, check=False)
        assert result.returncode == 0, result.stderr
        packets = [line for line in result.stdout.splitlines() if line.startswith("1 {")]
        assert len(packets) == len(trace.packets), (path, len(packets), len(trace.packets))


def names_are_utf8_and_whole_otherwise(tmp):
    trace = trace_of(tmp, viewers.hostile().save(os.path.join(tmp, "a.cap")))
    for number, name in enumerate(viewers.HOSTILE):
        want = name.decode(errors="replace")[:256]
        assert trace.threads[100 + number]["name"] == want, (name, trace.threads[100 + number])


if __name__ == "__main__":
    tap.main(globals())
