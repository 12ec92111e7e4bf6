#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman stat on machines with PMUs, which fake_pmu.c stands for: kinds of cores, groups, events
that are counted in turns, and metrics."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402

BUILT = tempfile.mkdtemp(prefix="kbarman-fake-")
FAKE = os.path.join(BUILT, "fake_pmu.so")
DEVICE = os.path.join(BUILT, "fake_device.so")
CORE, ATOM = 4 << 32, 10 << 32
CYCLES, INSTRUCTIONS, BRANCHES, BRANCH_MISSES = 0, 1, 4, 5


class Machine:
    """A sysfs, and events with their counts."""

    def __init__(self, tmp, **settings):
        self.root, self.events = os.path.join(tmp, "sys"), os.path.join(tmp, "events")
        self.settings = settings
        os.makedirs(os.path.join(self.root, "bus/event_source/devices"))

    def pmu(self, name, **files):
        for file, text in files.items():
            path = os.path.join(self.root, "bus/event_source/devices", name, file.replace("__", "/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(f"{text}\n")

    def event(self, kind, config, value, percent=100, cpus=(0, 999)):
        with open(self.events, "a", encoding="utf-8") as out:
            out.write(f"{kind} {config:#x} {cpus[0]} {cpus[1]} {value} {percent}\n")

    def run(self, *args, status=0):
        if not os.path.exists(FAKE):
            raise tap.Skip("fake_pmu.c could not be built for this tool")
        env = {**os.environ, "LD_PRELOAD": FAKE, "FAKE_SYSFS": self.root,
               "FAKE_EVENTS": self.events, **{k: str(v) for k, v in self.settings.items()}}
        done = tap.run(*args, env=env)
        assert done.returncode == status, done
        return done

    def lines(self, *args):
        text = self.run("stat", "-j", *args, "true").stderr
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def counters(self, *args):
        return {line["event"]: line for line in self.lines(*args) if line["kind"] == "counter"}

    def metrics(self, *args):
        return {line["metric"]: line for line in self.lines(*args) if line["kind"] == "metric"}


def plain(tmp, percent=100, **settings):
    machine = Machine(tmp, **settings)
    machine.pmu("cpu", type=4, format__event="config:0-7", format__umask="config:8-15",
                events__slots="event=0x00,umask=0x4")
    for part, umask in ("retiring", 0x80), ("bad-spec", 0x81), ("fe-bound", 0x82), ("be-bound", 0x83):
        machine.pmu("cpu", **{f"events__topdown-{part}": f"event=0x00,umask={umask:#x}"})
    for config, value in (CYCLES, 2000), (INSTRUCTIONS, 3000), (BRANCHES, 400), (BRANCH_MISSES, 10):
        machine.event(0, config, value, percent)
    for config, value in (0x400, 8000), (0x8000, 4000), (0x8100, 800), (0x8200, 1200), (0x8300, 2000):
        machine.event(4, config, value)
    machine.event(1, 1, 1000000)
    return machine


def hybrid(folder):
    machine = Machine(folder)
    machine.pmu("cpu_core", type=4, cpus="0", format__event="config:0-7")
    machine.pmu("cpu_atom", type=10, cpus="1-7", format__event="config:0-7")
    for pmu, cycles, cpus in (CORE, 100, (0, 0)), (ATOM, 50, (1, 7)):
        machine.event(0, pmu | CYCLES, cycles, cpus=cpus)
        machine.event(0, pmu | INSTRUCTIONS, 200, cpus=cpus)
    return machine


def arm(tmp, slots="0x00000008"):
    machine = Machine(tmp)
    machine.pmu("armv8_pmuv3_0", type=8, cpus="0-7", format__event="config:0-15", caps__slots=slots)
    for name, number, value in (("stall_slot_backend", 0x3d, 120), ("stall_slot_frontend", 0x3e, 80),
                                ("stall_slot", 0x3f, 200), ("op_retired", 0x3a, 500),
                                ("op_spec", 0x3b, 600)):
        machine.pmu("armv8_pmuv3_0", **{f"events__{name}": f"event={number:#x}"})
        machine.event(8, number, value)
    machine.event(0, CYCLES, 100)
    return machine


def each_kind_of_cores_has_lines(tmp):
    machine = hybrid(tmp)
    got = machine.counters("-e", "cycles:u,cpu_core/instructions/")
    assert {name: line["value"] for name, line in got.items()} == {
        "cpu_core/cycles/u": 100, "cpu_atom/cycles/u": 50, "cpu_core/instructions/": 200}, got
    assert got["cpu_core/cycles/u"]["user_only"] and not got["cpu_core/instructions/"]["user_only"]


def a_cpu_has_lines_of_its_kind_only(tmp):
    if os.sysconf("SC_NPROCESSORS_ONLN") < 2:
        raise tap.Skip("this machine has one CPU")
    lines = hybrid(tmp).lines("-C", "0,1", "-A", "-e", "cycles")
    assert {(line["cpu"], line["event"], line["value"]) for line in lines
            if line["kind"] == "counter"} == {(0, "cpu_core/cycles/", 100), (1, "cpu_atom/cycles/", 50)}


def parted(folder, core, atom):
    """A task that was counted on each kind of cores for a part of the time."""
    machine = Machine(folder)
    machine.pmu("cpu_core", type=4, cpus="0", format__event="config:0-7")
    machine.pmu("cpu_atom", type=10, cpus="1-7", format__event="config:0-7")
    machine.event(0, CORE | CYCLES, 4 * 10**9, core)
    machine.event(0, ATOM | CYCLES, 2 * 10**9, atom)
    machine.event(1, 1, 10**9)
    return machine


def what_ran_on_other_cores_is_not_extrapolated(tmp):
    """At 4 GHz for 300 ms and at 2 GHz for 700 ms, of one second."""
    text = parted(tmp, 30, 70).run("stat", "-e", "task-clock,cycles", "true").stderr
    lines = {line.split()[1]: line for line in text.splitlines() if "cycles" in line}
    assert "1,200,000,000" in lines["cpu_core/cycles/"] and "4.000 GHz" in lines["cpu_core/cycles/"], text
    assert "1,400,000,000" in lines["cpu_atom/cycles/"] and "2.000 GHz" in lines["cpu_atom/cycles/"], text
    assert "extrapolated" not in text, text


def kinds_of_cores_share_what_was_not_counted(tmp):
    machine = parted(tmp, 15, 35)
    got = machine.counters("-e", "cycles:u")
    assert [line["value"] for line in got.values()] == [1400000000, 1200000000], got
    text = machine.run("stat", "-e", "cycles", "true").stderr
    assert text.count("(counted 50% of the time, extrapolated)") == 2, text
    ghz = {name: line["value"] for name, line in machine.metrics("-M", "ghz").items()}
    assert abs(ghz["cpu_core/ghz"] - 4) < 1e-6 and abs(ghz["cpu_atom/ghz"] - 2) < 1e-6, ghz


def one_kind_of_cores_alone_is_not_extrapolated(tmp):
    text = parted(tmp, 30, 70).run("stat", "-e", "cpu_core/cycles/", "true").stderr
    assert "1,200,000,000" in text and "(counted 30% of the time, not on other cores)" in text, text


def all_metrics_can_be_asked_for(tmp):
    assert "cpu_atom/ipc" in hybrid(tmp).metrics("-M", "all")


def each_kind_of_cores_has_metrics(tmp):
    got = hybrid(tmp).metrics("-M", "ipc")
    assert {name: line["value"] for name, line in got.items()} == {
        "cpu_core/ipc": 2, "cpu_atom/ipc": 4}, got


def a_group_is_counted_together(tmp):
    machine = Machine(tmp)
    machine.event(0, CYCLES, 1000, 40)
    machine.event(0, INSTRUCTIONS, 3000, 70)
    got = machine.counters("-e", "{cycles,instructions}")
    assert [(line["value"], line["running_ns"]) for line in got.values()] == \
        [(1000, 400000000), (3000, 400000000)], got
    got = machine.counters("-e", "cycles,instructions")
    assert [line["running_ns"] for line in got.values()] == [400000000, 700000000], got
    text = machine.run("stat", "-e", "{cycles,instructions}", "true").stderr
    assert text.count("(counted 40% of the time, extrapolated)") == 2, text


def several_lists_are_one(tmp):
    got = plain(tmp).counters("-e", "cycles", "-e", "{branches,branch-misses}")
    assert list(got) == ["cycles", "branches", "branch-misses"], got


def a_group_that_is_too_large_is_told(tmp):
    got = plain(tmp, FAKE_GROUP=2).counters("-e", "{cycles,instructions,branches}")
    assert got["cycles"]["value"] == 2000 and got["branches"]["value"] is None, got
    assert "with its group" in got["branches"]["why"], got


def a_metric_needs_no_group(tmp):
    """It is counted as one if that is possible, but anyway."""
    got = plain(tmp, FAKE_GROUP=2).metrics("-M", "topdown")
    assert {name: line["value"] for name, line in got.items()} == {
        "retiring": 0.5, "bad_speculation": 0.1, "frontend_bound": 0.15, "backend_bound": 0.25}, got


def a_group_that_one_cpu_cannot_count_is_one_on_others(tmp):
    """CPU 1 counts one event at once, and CPU 0 does not have the first of them."""
    if os.sysconf("SC_NPROCESSORS_ONLN") < 2:
        raise tap.Skip("this machine has one CPU")
    machine = Machine(tmp, FAKE_GROUP=1, FAKE_GROUP_CPU=1)
    machine.event(0, BRANCH_MISSES, 10, cpus=(1, 1))
    machine.event(0, BRANCHES, 400)
    machine.event(0, INSTRUCTIONS, 3000)
    lines = machine.lines("-C", "0,1", "-A", "-M", "branch")
    assert {(line["cpu"], line["event"]): line["value"] for line in lines if line["kind"] == "counter"} == {
        (0, "branches"): 400, (0, "instructions"): 3000, (1, "branch-misses"): 10, (1, "branches"): 400,
        (1, "instructions"): 3000}, lines


def who_may_not_count_is_told_so(tmp):
    machine = plain(tmp, FAKE_PARANOID=3, FAKE_TOPDOWN=1)
    lines = machine.lines("-e", "task-clock,cycles", "-M", "topdown")
    refused = [line for line in lines if line["kind"] != "elapsed" and line["value"] is None]
    assert len(refused) == 10 and {line["why"] for line in refused} == {"not allowed: run as root"}, lines
    assert [line["event"] for line in lines if line.get("user_only")] == ["task-clock"], lines


def parts_of_slots_need_their_group(tmp):
    machine = plain(tmp, FAKE_TOPDOWN=1)
    done = machine.run("stat", "-e", "topdown-retiring", "true", status=2)
    assert "topdown-retiring: is counted only beside slots" in done.stderr, done
    got = machine.counters("-e", "{slots,topdown-retiring}")
    assert got["topdown-retiring"]["value"] == 4000, got


def without_rights_user_space_is_counted(tmp):
    machine = plain(tmp, FAKE_PARANOID=2, FAKE_TOPDOWN=1)
    lines = machine.lines("-e", "cycles", "-M", "topdown")
    assert all(line["user_only"] for line in lines if line["kind"] == "counter"), lines
    assert [line["value"] for line in lines if line["kind"] == "metric"] == [0.5, 0.1, 0.15, 0.25], lines


def a_chosen_cpu_may_be_no_such_core(tmp):
    machine = hybrid(tmp)
    got = machine.counters("-C", "0", "-e", "cycles")
    assert got["cpu_core/cycles/"]["value"] == 100, got
    assert got["cpu_atom/cycles/"]["why"] == "no chosen CPU is a core of this kind", got
    done = machine.run("stat", "-C", "0", "-e", "cpu_atom/cycles/", "true", status=2)
    assert "cpu_atom/cycles/: no chosen CPU is a core of this kind" in done.stderr, done
    got = machine.counters("-C", "0", "-e", "cpu_core/cycles/,cpu_core/branches/")
    assert got["cpu_core/branches/"]["why"] == "not on this machine", got


def topdown_is_what_intel_counts(tmp):
    machine = plain(tmp)
    lines = machine.lines("-M", "topdown,ipc")
    events = [line["event"] for line in lines if line["kind"] == "counter"]
    assert sorted(events)[:2] == ["cycles", "instructions"] and len(events) == 7, events
    assert events[2] == "slots", events       # it has to lead the others
    got = {line["metric"]: line["value"] for line in lines if line["kind"] == "metric"}
    assert got == {"ipc": 1.5, "retiring": 0.5, "bad_speculation": 0.1, "frontend_bound": 0.15,
                   "backend_bound": 0.25}, got
    text = machine.run("stat", "-M", "topdown", "true").stderr
    assert "50.00%  retiring" in text and "slots that waited for instructions" in text, text


def topdown_is_what_arm_published(tmp):
    got = {name: line["value"] for name, line in arm(tmp).metrics("-M", "topdown").items()}
    assert abs(got["retiring"] - 5 / 6 * 0.75) < 1e-9 and got["frontend_bound"] == 0.1, got
    assert abs(sum(got.values()) - 1) < 1e-9, got


def without_slots_a_cycle_there_is_no_topdown(tmp):
    got = arm(tmp, slots="0x00000000").metrics("-M", "topdown")
    assert all(line["value"] is None and "slots a cycle" in line["why"] for line in got.values()), got


def what_was_counted_in_turns_has_bounds(tmp):
    machine = plain(tmp, percent=50)
    ipc = machine.metrics("-M", "ipc")["ipc"]
    assert (ipc["value"], ipc["low"], ipc["high"], ipc["counted_part"]) == (1.5, 1.5, 1.5, 0.5), ipc
    machine.settings["FAKE_GROUP"] = 1
    ipc = machine.metrics("-M", "ipc")["ipc"]
    assert ipc["value"] == 1.5 and abs(ipc["low"] - 0.5) < 1e-9 and abs(ipc["high"] - 4.5) < 1e-9, ipc
    text = machine.run("stat", "-M", "ipc", "true").stderr
    assert "1.500  ipc" in text and "(0.500 to 4.500) (counted 50% of the time)" in text, text


def a_metric_whose_events_no_core_has_together_is_told(tmp):
    machine = hybrid(tmp)
    machine.pmu("cpu_core", events__l2d_cache="event=0x16")
    machine.pmu("cpu_atom", events__l2d_cache_refill="event=0x17")
    done = machine.run("stat", "-I", "10", "-M", "l2d_miss_rate,ipc", "sleep", "0.05")
    assert done.stderr.count("no core has all events of 'l2d_miss_rate' (l2d_cache_refill / l2d_cache)") == 1, done
    assert "cpu_core/ipc" in done.stderr and "cpu_core/l2d" not in done.stderr, done


def a_cpu_may_come_between_runs(tmp):
    """Of many CPUs, so that what is written beyond the room for one is noticed."""
    machine = plain(tmp)
    online = os.path.join(machine.root, "devices/system/cpu/online")
    os.makedirs(os.path.dirname(online))
    with open(online, "w", encoding="utf-8") as file:
        file.write("0\n")
    done = machine.run("stat", "-j", "-r", "3", "-a", "-A", "-e", "cycles", "sh", "-c",
                       f"echo 0-63 > {online}")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["cpu"]: line["value"] for line in lines if line["kind"] == "counter"} == {
        cpu: 2000 for cpu in range(64)}, lines


def metrics_of_events_that_are_not_here_are_told(tmp):
    done = hybrid(tmp).run("stat", "-M", "ipc,topdown", "true")
    assert done.stderr.count("the PMU has no events for 'retiring'") == 1, done
    assert "cpu_core/ipc" in done.stderr, done


def counts_are_related_as_in_perf(tmp):
    text = plain(tmp).run("stat", "-x,", "true").stderr
    lines = [line.split(",") for line in text.splitlines()]
    got = {line[2]: line[-2:] for line in lines}
    assert got["cycles"] == ["0.002", "GHz"] and got["instructions"] == ["1.50", "insn per cycle"]
    assert got["branch-misses"] == ["2.50", "of all branches"], got
    assert got["branches"] == ["400.000", "K/sec"], got


def relations_are_of_one_kind_of_cores(tmp):
    text = hybrid(tmp).run("stat", "-e", "cycles,instructions", "true").stderr
    assert "2.00 a cycle" in text and "4.00 a cycle" in text, text


def a_recording_says_how_many_slots_a_cycle_has(tmp):
    machine = arm(tmp)
    if not os.path.exists(FAKE) or not os.path.exists(DEVICE):
        raise tap.Skip("a fake could not be built for this tool")
    env = {**os.environ, "LD_PRELOAD": f"{DEVICE} {FAKE}", "FAKE_SYSFS": machine.root}
    done = tap.run("record", "-o", "a.cap", "sleep", "0.1", env=env, cwd=tmp)
    assert done.returncode == 0, done
    with open(os.path.join(tmp, "a.cap"), "rb") as file:
        data = file.read()
    assert b"kbarman.slots=8\0" in data and b"kbarman.slots.armv8_pmuv3_0=8\0" in data


def list_has_the_metrics_of_this_machine(tmp):
    def names(machine):
        text = machine.run("list", "-j", "--metrics").stdout
        return {(line["name"], line["source"]) for line in map(json.loads, text.splitlines())}
    assert ("retiring", "Arm SBSA") in names(arm(os.path.join(tmp, "a")))
    assert ("retiring", "Intel TMA") in names(plain(os.path.join(tmp, "b")))
    # which only a group of the slots can count
    assert ("retiring", "Intel TMA") in names(plain(os.path.join(tmp, "c"), FAKE_TOPDOWN=1))
    events = plain(os.path.join(tmp, "d"), FAKE_TOPDOWN=1).run("list", "-j", "--all", "cpu/topdown-retiring/").stdout
    assert "only beside slots" in json.loads(events)["refused"], events


def build(name, *libraries):
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-fPIC",
                    "-shared", "-I" + os.path.join(HERE, "..", "..", "kmod"),
                    os.path.join(HERE, f"{name}.c"), "-o", os.path.join(BUILT, f"{name}.so"),
                    *libraries], check=False)


def main():
    build("fake_pmu", "-ldl")
    build("fake_device", "-ldl", "-pthread")
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(BUILT)


if __name__ == "__main__":
    main()
