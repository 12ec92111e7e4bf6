#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to ctf, as babeltrace2 reads it; and what becomes of the directory."""
import collections
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
import viewers  # noqa: E402
from latency_capture import Late  # noqa: E402

LEFT = 2**32 - 1
LINE = re.compile(r"^\[(\d+)\] \(\+[^)]*\) (?:\S+ )?([\w:]+): \{ cpu_id = (\d+) \}, \{ (.*) \}$")
# what a value of kbarman's own series is about
DETAIL = re.compile("irq_|sched_(waking|wakeup_new|migrate_task)$|power_cpu_frequency$|"
                    "kbarman:(ipi_|idle_miss$)")


def trace_of(tmp, path, name="trace.ctf"):
    out = os.path.join(tmp, name)
    shutil.rmtree(out, ignore_errors=True)
    viewers.convert(path, "ctf", out)
    return out


def fields(text):
    """The fields of an event, numbers as they are; strings have no escapes here."""
    found = {}
    for name, string, number in re.findall(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(-?[\w.]+(?:[+-]\d+)?))', text):
        found[name] = string if not number else float(number) if "." in number else int(number, 0)
    return found


class Trace:
    """What babeltrace2 says of a trace: (time, event, CPU, fields)."""

    def __init__(self, path):
        viewers.need("babeltrace2")
        result = subprocess.run(["babeltrace2", "--clock-cycles", path], capture_output=True, text=True,
                                errors="replace", check=False)
        assert result.returncode == 0, result.stderr[-2000:]
        self.events, self.warnings = [], result.stderr
        for line in result.stdout.split("\n")[:-1]:
            match = LINE.match(line)
            assert match, line
            self.events.append((int(match[1]), match[2], int(match[3]), fields(match[4])))

    def of(self, name):
        return [(time, cpu, f) for time, event, cpu, f in self.events if event == name]


def clamped(path, records):
    """Times as the trace has them: not below 0, and on each CPU never before the one before."""
    base = int(viewers.facts(path).get("raw_base", 0))
    return sorted((max(0, base + record[0]), *record[1:]) for record in records)


def switches_are_there(path, want, trace):
    """Those of the capture. What is more says who runs: nobody knows, where records are missing; or the
    task of the first sample. It is in no capture that has neither."""
    got = collections.Counter((time, cpu, f["next_tid"]) for time, cpu, f in trace.of("sched_switch"))
    got.subtract(want)
    assert min(got.values(), default=0) >= 0, (path, got)
    sampled = {(time, cpu) for time, cpu, _ in trace.of("kbarman:sample") + trace.of("kbarman:counter")}
    for time, cpu, task in got.elements():
        assert (time, cpu) in sampled if task else "discarded" in trace.warnings, (path, time, cpu, task)


def babeltrace_reads_what_the_capture_says(tmp):
    for path in viewers.all_captures(tmp):
        if "golden" in path or "hostile" in path:
            continue    # times out of order are moved
        said, trace = viewers.Said(path), Trace(trace_of(tmp, path))
        switches_are_there(path, clamped(path, said.switches), trace)
        want = [(ns, core, LEFT if not entered else state or 0) for ns, core, entered, state in said.halts]
        viewers.same(path, clamped(path, want),
                     sorted((time, cpu, f["state"]) for time, cpu, f in trace.of("power_cpu_idle")))
        got = collections.Counter((cpu, f["tid"]) for _, cpu, f in trace.of("kbarman:sample"))
        viewers.same(path, sorted(said.samples.items()), sorted(got.items()))
        viewers.same(path, clamped(path, said.values),
                     sorted((time, cpu, f["name"], f["value"]) for time, cpu, f in trace.of("kbarman:series")))
        viewers.same(path, clamped(path, [value[:2] for _, value in said.details]),
                     sorted((time, cpu) for time, event, cpu, _ in trace.events if DETAIL.match(event)))
        marks = [(*mark[:3], mark[3] or "-") for mark in said.marks]
        viewers.same(path, clamped(path, marks),
                     sorted((time, f["tid"], f["type"], f["text"]) for time, _, f in trace.of("kbarman:mark")))
        sums, symbols = collections.Counter(), collections.Counter()
        for _, _, f in trace.of("kbarman:counter"):
            sums[f["name"]] += f["value"]
        assert sorted(filter(None, sums.values())) == viewers.counter_sums(said)
        for _, _, f in trace.of("kbarman:sample"):
            symbols[os.path.basename(f["image"]), f["symbol"]] += 1
        viewers.same(path, sorted(said.symbols.items()), sorted((k, symbols[k]) for k in said.symbols))


def babeltrace_takes_every_capture(tmp):
    for path in viewers.all_captures(tmp):
        said, trace = viewers.Said(path), Trace(trace_of(tmp, path))
        assert len(trace.of("sched_switch")) >= len(said.switches), path
        assert len(trace.of("power_cpu_idle")) == len(said.halts), path
        assert len(trace.of("kbarman:sample")) == sum(said.samples.values()), path
        assert len(trace.of("kbarman:mark")) == len(said.marks), path
        times = [event[0] for event in trace.events]
        assert times == sorted(times)


def who_was_on_the_cpu_is_said_with_every_switch(tmp):
    trace = Trace(trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap"))))
    shown = [(cpu, f["prev_comm"], f["prev_tid"], f["prev_state"], f["next_comm"], f["next_prio"])
             for _, cpu, f in sorted(trace.of("sched_switch"), key=lambda s: s[:2])]
    assert shown == [
        (0, "swapper", 0, 0, "alpha", 20), (1, "swapper", 0, 0, "swapper", 20),
        (0, "alpha", 10, 1, "beta", 20), (1, "swapper", 0, 0, "alpha", 20),
        (0, "beta", 11, 0, "alpha", 20), (0, "alpha", 10, 1, "swapper", 20),    # the gap begins
        (0, "swapper", 0, 0, "beta", 20),
        (0, "beta", 11, 0, "swapper", 20)], shown
    tasks = {(f["tid"], f["pid"], f["name"]) for _, _, f in trace.of("kbarman:task")}
    assert tasks == {(0, 0, "swapper"), (10, 10, "alpha"), (11, 10, "beta")}, tasks


def states_are_those_of_lttng(tmp):
    c = viewers.begin(cores=1)
    now = viewers.BASE
    for task, state in (11, 1), (11, 2), (11, 0x40), (11, 0x80), (10, 0x80):
        c.switch(0, now, task)
        c.switch(0, now + 1, 0, blocked=1, state=state)
        now += 10
    trace = Trace(trace_of(tmp, c.save(os.path.join(tmp, "a.cap"))))
    shown = [f["prev_state"] for _, _, f in trace.of("sched_switch") if f["prev_tid"]]
    # a thread that ends is dead (0x10), a process is a zombie (0x20)
    assert shown == [1, 2, 0x40, 0x10, 0x20], shown


def sources_are_events_of_lttng(tmp):
    trace = Trace(trace_of(tmp, viewers.sources().save(os.path.join(tmp, "a.cap"))))
    assert not trace.warnings, trace.warnings
    others = {"sched_switch", "power_cpu_idle", "kbarman:task"}
    got = [event for event in trace.events if event[1] not in others]
    assert [(cpu, time - viewers.RAW_BASE) for time, _, cpu, _ in got] == [
        *(source[:2] for source in viewers.SOURCES), (0, 2960), (0, 2970), (0, 2972), (0, 2974), (0, 2976), (1, 2980), (1, 2984)], got
    woken = {"comm": "beta", "tid": 11, "prio": 20}
    assert [(name, f) for _, name, _, f in got] == [
        ("irq_handler_entry", {"irq": 33, "name": "virtio0"}), ("irq_softirq_raise", {"vec": 3}),
        ("irq_handler_exit", {"irq": 33, "ret": 1}),
        ("irq_handler_entry", {"irq": 33, "name": "eth0"}),
        ("irq_handler_exit", {"irq": 33, "ret": 1}), ("irq_softirq_entry", {"vec": 3}),
        ("sched_waking", {**woken, "target_cpu": 1}),
        ("sched_migrate_task", {**woken, "orig_cpu": 1, "dest_cpu": 0}),
        ("kbarman:ipi_entry", {"reason": "Rescheduling interrupts"}),
        ("kbarman:ipi_exit", {"reason": "Rescheduling interrupts"}), ("irq_softirq_exit", {"vec": 3}),
        ("sched_wakeup_new", {"comm": "task 12", "tid": 12, "prio": 20, "target_cpu": 1}),
        ("power_cpu_frequency", {"state": 1200000, "cpu_id": 1}),
        ("kbarman:idle_miss", {"state": 2, "cpu_id": 1, "below": 0}),
        # a kind of a later release
        ("kbarman:series", {"name": "Wakeups", "value": 5, "scaled": 5.0}),
        ("irq_handler_exit", {"irq": 40, "ret": 1}), ("irq_handler_entry", {"irq": 41, "name": "-"}),
        ("kbarman:syscall", {"tid": 11, "name": "read", "number": 0, "duration": 860, "ret": -4, "arg0": 3,
                             "arg1": 2**64 - 100, "arg2": 5}),
        ("kbarman:syscall", {"tid": 11, "name": "-", "number": 9999, "duration": 0, "ret": 7, "arg0": 0, "arg1": 0,
                             "arg2": 0}),
        ("kbarman:fault", {"tid": 11, "kind": "minor", "kernel": 0, "duration": 1, "address": 0x7f0000001000, "ip": 0x401000}),
        ("kbarman:fault", {"tid": 11, "kind": "major", "kernel": 1, "duration": 2, "address": 0x7f0000002008,
                           "ip": 0xffffffff81000010}),
        ("kbarman:fault", {"tid": 11, "kind": "failed", "kernel": 0, "duration": 0, "address": 3, "ip": 0x401004}),
        ("kbarman:block", {"tid": 11, "disk": "8:16", "dev": 8 << 20 | 16, "operation": "write", "flags": "sync",
                           "duration": 880, "error": 0, "sector": 2048, "bytes": 4096}),
        ("kbarman:block", {"tid": 10, "disk": "8:16", "dev": 8 << 20 | 16, "operation": "read", "flags": "-",
                           "duration": 784, "error": -5, "sector": 4096, "bytes": 8192})], got


def packets_of(data):
    """Begin, end and CPU of each."""
    at = 0
    while at < len(data):
        magic, stream, first, last, bits, _, _, cpu = struct.unpack_from("<IIQQQQQI", data, at)
        assert (magic, stream) == (0xc1fc1fc1, 0) and first <= last and bits % 8 == 0
        yield first, last, cpu
        at += bits // 8
    assert at == len(data)


def running_ns(path):
    """task: ns, by the switches and by when the packets of each CPU end."""
    trace, running, sums = Trace(path), {}, collections.Counter()
    events = trace.of("sched_switch")
    for name in os.listdir(os.path.join(path, "kernel")):
        if name != "metadata":
            with open(os.path.join(path, "kernel", name), "rb") as file:
                *_, (_, end, cpu) = packets_of(file.read())
            events.append((end, cpu, {"next_tid": 0}))
    for time, cpu, f in events:
        task, since = running.get(cpu, (0, time))
        sums[task] += time - since
        running[cpu] = f["next_tid"], time
    return {task: ns for task, ns in sums.items() if task and ns}


def readers_add_up_what_the_report_does(tmp):
    c = Late(cores=2, facts={"release": "6.1.0"})
    c.task(10, "first")
    c.task(11, "last")
    c.sample(0, 500, 10, 0x1000)            # the first that is known
    c.switch(1, 1000, 10)
    c.switch(0, 1500, 0, blocked=True, state=1)
    c.lost(1, 2300, 5)
    c.switch(1, 2500, 10)
    c.switch(0, 2600, 11)
    c.switch(1, 3000, 0, blocked=True, state=1)
    c.halt(1, 9000, True, 1)                # the last record; and 11 runs on
    for path in [c.save(os.path.join(tmp, "a.cap")), *viewers.real_captures()]:
        want = {line["tid"]: line["run_ns"] for line in map(json.loads, tap.run(
            "report", "--json", path).stdout.splitlines()) if line["kind"] == "task_time"}
        want = {task: ns for task, ns in want.items() if task and ns}
        viewers.same(path, sorted(want.items()), sorted(running_ns(trace_of(tmp, path)).items()))


def tools_for_lttngs_traces_find_it(tmp):
    """lttng-analyses look for a folder of that name and for numbers; Trace Compass for the tracer's name."""
    out = trace_of(tmp, viewers.sources().save(os.path.join(tmp, "a.cap")))
    assert os.listdir(out) == ["kernel"]
    with open(os.path.join(out, "kernel", "metadata"), encoding="utf-8") as file:
        text = file.read()
    for words in ('domain = "kernel"', 'tracer_name = "lttng-modules"', "tracer_major = 2", "tracer_minor = 13",
                  "tracer_patchlevel = 0"):
        assert f"\t{words};\n" in text, (words, text)
    for tool in ("cputop", "irqstats", "schedtop") if shutil.which("lttng-cputop") else ():
        result = subprocess.run(["lttng-" + tool, "--no-progress", out], capture_output=True, text=True, check=False)
        assert result.returncode == 0 and "Timerange" in result.stdout, (tool, result)


def losses_are_discarded_events(tmp):
    trace = Trace(trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap"))))
    assert "discarded 99 events" in trace.warnings, trace.warnings
    c = viewers.begin()
    c.fact("lost.1.full", 7)    # behind the last record
    c.fact("written", 2)
    c.switch(1, viewers.BASE + 5, 10)
    trace = Trace(trace_of(tmp, c.save(os.path.join(tmp, "b.cap"))))
    assert "discarded 7 events" in trace.warnings, trace.warnings


def wall_clock_is_that_of_the_capture(tmp):
    out = trace_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    result = subprocess.run(["babeltrace2", "--clock-seconds", out], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("[1700000000.000000000]"), result.stdout[:200]


def metadata_survives_any_fact(tmp):
    c = viewers.small()
    c.string(b"kbarman.command=" + b"".join(viewers.HOSTILE) + b" \\\" \n };")
    c.string(b"kbarman.host=\"};env{")
    assert len(Trace(trace_of(tmp, c.save(os.path.join(tmp, "a.cap")))).events) > 10


def long_captures_have_many_packets(tmp):
    path = viewers.random_capture(6, 30000).save(os.path.join(tmp, "a.cap"))
    out = trace_of(tmp, path)
    for name in os.listdir(os.path.join(out, "kernel")):
        if name == "metadata":
            continue
        with open(os.path.join(out, "kernel", name), "rb") as file:
            packets = len(list(packets_of(file.read())))
        assert packets > 3, (name, packets)
    switches_are_there(path, clamped(path, viewers.Said(path).switches), Trace(out))


def a_directory_is_made_whole_or_not_at_all(tmp):
    path = viewers.random_capture().save(os.path.join(tmp, "a.cap"))
    result = tap.run("convert", path, "--to", "ctf")
    assert result.returncode == 0 and sorted(os.listdir(tmp)) == ["a.cap", "a.ctf"]
    mask = os.umask(0)
    os.umask(mask)
    assert os.stat(os.path.join(tmp, "a.ctf")).st_mode & 0o777 == 0o777 & ~mask
    again = tap.run("convert", path, "--to", "ctf")
    assert again.returncode == 2 and "exists already" in again.stderr, again
    os.makedirs(os.path.join(tmp, "empty"))
    assert tap.run("convert", path, "--to", "ctf", "-o", os.path.join(tmp, "empty/")).returncode == 0
    for out, why in ("-", "a directory"), ("tcp:127.0.0.1:1", "can't be sent"), ("/nonexistent/x", "can't make"):
        result = tap.run("convert", path, "--to", "ctf", "-o", out)
        assert result.returncode == 2 and why in result.stderr, result

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    before = sorted(os.listdir(tmp))
    result = subprocess.run([tap.KBARMAN, "convert", path, "--to", "ctf", "-o", os.path.join(tmp, "full")],
                            capture_output=True, text=True, check=False, preexec_fn=limit)
    assert result.returncode == 2 and "cpu_" in result.stderr and "too large" in result.stderr, result
    assert sorted(os.listdir(tmp)) == before


def what_is_before_the_damage_is_written(tmp):
    whole = viewers.random_capture().bytes()
    path, out = os.path.join(tmp, "a.cap"), os.path.join(tmp, "out")
    with open(path, "wb") as file:
        file.write(whole[:-len(whole) // 3])
    result = tap.run("convert", path, "--to", "ctf", "-o", out)
    assert result.returncode == 1 and result.stderr, result
    assert len(Trace(out).events) > 1000


def captures_cut_or_flipped_anywhere_end(tmp):
    whole = viewers.small().bytes()
    path, out = os.path.join(tmp, "a.cap"), os.path.join(tmp, "out")
    for at in range(0, len(whole), 23):
        data = bytearray(whole)
        data[at] ^= 0xff
        for content in whole[:at], data:
            with open(path, "wb") as file:
                file.write(content)
            result = tap.run("convert", path, "--to", "ctf", "-o", out, timeout=tap.HANG, errors="replace")
            assert result.returncode in (0, 1, 2) and os.path.isdir(out) == (result.returncode < 2), (at, result)
            shutil.rmtree(out, ignore_errors=True)


def memory_does_not_grow_with_the_capture(tmp):
    c, peaks = viewers.random_capture(records=1000), []
    for repeat in 1, 200:
        path = c.save(os.path.join(tmp, "a.cap"), repeat)
        peaks.append(tap.peak_kib("convert", path, "--to", "ctf", "-o", os.path.join(tmp, f"{repeat}.ctf")))
    assert peaks[1] < peaks[0] + 12000, peaks


if __name__ == "__main__":
    tap.main(globals())
