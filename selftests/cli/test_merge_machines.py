#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman merge --machines`: captures of several machines are on one clock, as exactly as it says.

Machines of known clocks record the same moments. Their counters have other rates and begin
elsewhere, and their clocks are wrong by up to what their kernels say."""
import json
import os
import random
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import protobuf
import tap
import test_viewers_perfetto as perfetto
from latency_capture import Late
from make_capture import Maker
from simulate import Machine

S, MS = 10**9, 10**6
START = 1_700_000_000 * S       # true time
FIRST = 1000                    # the task that runs at the first moment

PACKET = {**perfetto.PACKET, 98: ("machine", "uint"),
          45: ("system", {1: ("utsname", {1: ("sysname", "text"), 2: ("version", "text"),
                                          3: ("release", "text")}), 8: ("cpus", "uint"),
                        17: ("machine_name", "text")})}


class World:
    """True moments, which all machines see, and a random clock for each of them."""

    def __init__(self, seed, machines=2, seconds=60, moments=20):
        self.random = random.Random(seed)
        self.length = seconds * S
        self.moments = sorted(self.random.randrange(self.length // 10, self.length * 9 // 10)
                              for _ in range(moments))
        self.claims = []
        self.seed, self.nr = seed, machines

    def save(self, tmp, lies=1.0, readings=2, claims=True, synchronized=1, step=0, base_claim=True):
        """Writes the captures. A clock is wrong by `lies` times what is said."""
        paths = []
        self.claims = []
        for number in range(self.nr):
            claim = self.random.randrange(10_000, 20 * MS)
            self.claims.append(claim)
            wrong = [int(self.random.choice((-1, 1)) * self.random.uniform(0.5, 1) * claim * lies)
                     for _ in range(2)]
            if lies > 1:            # in opposite directions
                wrong = [(claim if number else -claim) * lies] * 2
            paths.append(self.machine(tmp, number, claim, wrong, readings, claims, synchronized, step,
                                      base_claim))
        return paths

    def machine(self, tmp, number, claim, wrong, readings, claims, synchronized, step, base_claim):
        hz = self.random.choice((1_000_000_000, 2_893_202_000, 24_000_000))
        faster = self.random.uniform(-300e-6, 300e-6)       # than its nominal rate
        zero = self.random.randrange(10**12)
        begin = self.random.randrange(self.length // 20)    # it starts a little later than the others

        def ticks(moment):
            return zero + round((moment - begin) * (1 + faster) * hz / S)

        facts = {"host": f"web{number}", "release": "6.1.0", "written.0": "1"}
        if claims and base_claim:
            facts["realtime_error_base"] = f"{synchronized},{claim},{claim // 10}"
        if readings == 2:
            facts["realtime_end"] = f"{ticks(self.length)},{START + self.length + int(wrong[1]) + step}"
            if claims:
                facts["realtime_error_end"] = f"{synchronized},{claim},{claim // 10}"
        capture = Maker(cores=1, facts=facts, base=zero, multiplier=S, divisor=hz,
                        unix_base=START + begin + int(wrong[0]))
        capture.task(0, "swapper")
        capture.switch(0, zero, 0)
        for i, moment in enumerate(self.moments):
            capture.switch(0, ticks(moment), FIRST + i, blocked=True, state=1)
        capture.switch(0, ticks(self.length), 0, blocked=True, state=1)
        return capture.save(os.path.join(tmp, f"{self.seed}-{number}.cap"))


def merge(tmp, *paths, name="all.perfetto", status=0, args=()):
    out = os.path.join(tmp, name)
    done = tap.run("merge", "--machines", "-j", *args, "-o", out, *paths)
    assert done.returncode == status, done
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return out, [row for row in rows if row["kind"] == "machine"], rows[-1]["error_ns"], done.stderr


def packets(path):
    with open(path, "rb") as file:
        return protobuf.read(file.read(), {1: ("packet", [PACKET])})["packet"]


def trace_events(packet):
    bundle = packet.get("ftrace", {"event": []})
    return perfetto.Trace.compact(bundle) + bundle["event"]


def perfetto_times(path):
    """{machine: {moment: ns since 1970}}"""
    times = {}
    for packet in packets(path):
        for event in trace_events(packet):
            task = event.get("switch", {}).get("next_pid", 0)
            if task >= FIRST:
                times.setdefault(packet.get("machine", 0), {})[task - FIRST] = event["timestamp"]
    return times


def chrome_times(path, since):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    times = {}
    for event in events:
        if event["ph"] == "X" and event["args"].get("tid", 0) >= FIRST:
            times.setdefault(event["pid"] // 10_000_000, {})[event["args"]["tid"] - FIRST] = \
                since + round(event["ts"] * 1000)
    return times


def check(world, times, rows, error, slack=1000):
    """Each machine is within what is said of it, and each two within what is said of all."""
    for machine, moments in times.items():
        assert len(moments) == len(world.moments), machine
        for i, got in moments.items():
            apart = abs(got - (START + world.moments[i]))
            assert apart <= rows[machine]["error_ns"] + slack, (machine, i, apart, rows[machine])
            for other in times.values():
                assert abs(other[i] - got) <= error + slack, (i, other[i] - got, error)


def moments_are_within_the_stated_error(tmp):
    for seed in range(25):
        world = World(seed, machines=2 + seed % 3)
        path, rows, error, said = merge(tmp, *world.save(tmp))
        times = perfetto_times(path)
        check(world, times, rows, error)
        # what is said is not much more than what the kernels said
        for row, claim in zip(rows, world.claims):
            assert claim <= row["error_ns"] <= claim + 100_000, (row, claim)
        assert error == sum(sorted(row["error_ns"] for row in rows)[-2:]), (rows, error)
        assert said.count("times are right to") == len(rows) and "more than" in said, said


def the_other_format_has_the_same_times(tmp):
    world = World(3, machines=3)
    paths = world.save(tmp)
    path, rows, error, _ = merge(tmp, *paths)
    times = perfetto_times(path)
    chrome, again, _, _ = merge(tmp, *paths, name="all.json")
    assert again == rows
    other = chrome_times(chrome, min(row["from_unix_ns"] for row in rows))
    check(world, other, rows, error)
    for machine, moments in times.items():
        assert moments.keys() == other[machine].keys()
        assert all(abs(moments[i] - other[machine][i]) <= 1000 for i in moments)   # a double's digits
    with open(merge(tmp, *paths, name="x", args=("--to", "chrome"))[0], "rb") as one, open(chrome, "rb") as two:
        assert one.read() == two.read()


def a_false_claim_is_found(tmp):
    """The check above finds clocks that are more wrong than their kernels say."""
    for seed in range(5):
        world = World(seed)
        path, rows, error, _ = merge(tmp, *world.save(tmp, lies=1.5))
        times = perfetto_times(path)
        assert times.keys() == {0, 1} and error, times
        try:
            check(world, times, rows, error)
        except AssertionError as found:
            assert "0, 0" in str(found) or str(error) in str(found), found
            continue
        raise AssertionError("nobody saw it")


def drift_does_not_add_up(tmp):
    """An hour, in which counters of +-300 ppm go wrong by two seconds."""
    world = World(9, seconds=3600)
    path, rows, error, _ = merge(tmp, *world.save(tmp))
    check(world, perfetto_times(path), rows, error)
    assert any(abs(row["rate_ppm"]) > 50 for row in rows), rows
    assert error < sum(world.claims) + 10 * MS, (error, world.claims)


def with_one_reading_the_error_grows_with_time(tmp):
    for seconds in 10, 1000:
        world = World(4, seconds=seconds)
        path, rows, error, said = merge(tmp, *world.save(tmp, readings=1))
        check(world, perfetto_times(path), rows, error)
        for row, claim in zip(rows, world.claims):
            assert row["readings"] == 1 and 450_000 * seconds * 0.9 < row["error_ns"] - claim < \
                510_000 * seconds, row
        assert "read only once" in said


def a_copy_of_a_session_that_runs_is_measured_from_its_end(tmp):
    world = World(5)
    path, rows, error, _ = merge(tmp, *world.save(tmp, base_claim=False))
    check(world, perfetto_times(path), rows, error)
    assert all(25 * MS < row["between_ns"] < 31 * MS for row in rows), rows


def a_clock_that_was_set_is_said(tmp):
    world = World(6)
    path, rows, error, said = merge(tmp, *world.save(tmp, step=2 * S))
    assert all(row["was_set"] and row["error_ns"] > 1.9 * S for row in rows), rows
    assert said.count("the clock was set") == 2
    check(world, perfetto_times(path), rows, error)


def what_is_not_known_is_not_claimed(tmp):
    world = World(7)
    for kwargs, why in ({"claims": False}, "does not say how exact"), ({"synchronized": 0}, "not synchronized"):
        path, rows, error, said = merge(tmp, *world.save(tmp, **kwargs))
        assert error is None and all(row["error_ns"] is None and why in row["why"] for row in rows), rows
        assert said.count("it is not known how wrong") == 2 and why in said and "not known for sure" in said
        assert len(perfetto_times(path)) == 2
    # one is enough
    known, unknown = World(8).save(tmp)[0], World(9).save(tmp, claims=False)[1]
    _, rows, error, _ = merge(tmp, known, unknown)
    assert error is None and rows[0]["error_ns"] and rows[1]["error_ns"] is None


def an_unsteady_counter_is_no_clock(tmp):
    capture = Machine(1, facts={"realtime_error_base": "1,5,5", "clock_unsteady": "1"}, steps=50)
    _, rows, error, _ = merge(tmp, *World(1).save(tmp)[:1], capture.save(os.path.join(tmp, "unsteady.cap")))
    assert error is None and "unstable" in rows[1]["why"]


def everything_of_each_machine_is_there_once(tmp):
    paths = []
    for number in range(3):
        machine = Machine(number, cores=2, steps=400, unix_base=START + number * MS,
                          facts={"host": f"web{number}", "release": "6.1.0"})
        paths.append(machine.save(os.path.join(tmp, f"{number}.cap")))
    path = merge(tmp, *paths)[0]
    alone = []
    for source in paths:
        out = source + ".perfetto"
        assert tap.run("convert", source, "--to", "perfetto", "-o", out).returncode == 0
        alone.append(packets(out))
    merged = packets(path)
    for number, want in enumerate(alone):
        got = [packet for packet in merged if packet.get("machine", 0) == number]
        # other times, in numbers of more bytes
        events = [[(packet["ftrace"]["cpu"], {**event, "timestamp": event["timestamp"] - base})
                   for packet in part for event in trace_events(packet)]
                  for part, base in ((got, START + number * MS), (want, 0))]
        halves = [[sorted((event["timestamp"], str(event)) for cpu, event in part if cpu == core)
                   for core in range(2)] for part in events]
        assert halves[0] == halves[1] and len(events[0]) > 100, number
        assert {packet["sequence"] for packet in got} == {1 + number}
        system, = [packet["system"] for packet in got if "system" in packet]
        assert system["machine_name"] == system["utsname"]["version"] == f"web{number}"
        assert system["utsname"]["release"] == "6.1.0"
        clocks = {clock["timestamp"] for packet in got for clock in packet.get("clocks", {}).get("clocks", [])}
        assert clocks == {START + number * MS}, clocks
    uuids = [packet["track"]["uuid"] for packet in merged if "track" in packet]
    assert len(uuids) == len(set(uuids))


def processes_of_machines_are_apart_in_json(tmp):
    paths = []
    for number in range(2):
        capture = Late(cores=1, facts={"host": f"web{number}", "written.0": "1"}, unix_base=START)
        capture.task(7, "worker")
        capture.switch(0, 1000, 7)
        capture.sample(0, 1500, 7, 0x1000)
        capture.waking(0, 2000, 7, 7)
        capture.irq(0, 2100, 2200, 5, 7)
        capture.switch(0, 3000, 0, blocked=True, state=1)
        paths.append(capture.save(os.path.join(tmp, f"{number}.cap")))
    path = merge(tmp, *paths, name="all.json")[0]
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "process_name"}
    assert names[0] == "web0: CPUs" and names[10_000_000] == "web1: CPUs", names
    assert names[7] == "web0: worker" and names[10_000_007] == "web1: worker", names
    assert names[4_194_305] == "web0: Interrupts" and names[14_194_305] == "web1: Interrupts", names
    halves = [[{**event, "pid": event["pid"] % 10_000_000} for event in events
               if event["pid"] // 10_000_000 == number and event["ph"] in "XiC"] for number in range(2)]
    assert halves[0] == halves[1] and halves[0]
    profiles = {event["id"] for event in events if event["ph"] == "P"}
    assert len(profiles) == 2, profiles


def a_damaged_capture_is_merged_up_to_the_damage(tmp):
    paths = World(2).save(tmp)
    os.truncate(paths[1], os.path.getsize(paths[1]) - 100)
    path, _, _, said = merge(tmp, *paths, status=1)
    times = perfetto_times(path)
    assert len(times[0]) == 20 and 10 < len(times[1]) < 20 and paths[1] in said, said


def wrong_uses_are_refused(tmp):
    one, two = World(1).save(tmp)
    timeless = Maker(unix_base=0)
    timeless.switch(0, 1, 1)
    timeless.save(os.path.join(tmp, "timeless.cap"))
    out = os.path.join(tmp, "out")
    for args, why in (
            (["--machines", "-o", out, one], "two machines"),
            (["--machines", "--to", "ctf", "-o", out, one, two], "give perfetto or chrome"),
            (["--machines", "-j", one, two], "give -o FILE"), (["-j", "-o", out, one], "for --machines"),
            (["--to", "chrome", "-o", out, one], "for --machines"),
            (["--machines", "-o", out, one, os.path.join(tmp, "none")], "none"),
            (["--machines", "-o", out, *[one] * 201], "at most 200"),
            (["--machines", "-o", out, one, os.path.join(tmp, "timeless.cap")], "when it was recorded")):
        result = tap.run("merge", *args)
        assert result.returncode == 2 and why in result.stderr, (args, result)
        assert not os.path.exists(out)


def a_recording_is_one_machine(tmp):
    one, two = World(1).save(tmp)
    copy, out = os.path.join(tmp, "copy.cap"), os.path.join(tmp, "out")
    shutil.copy(one, copy)
    parts = []
    for number in range(2):
        part = Maker(facts={"host": "web", "raw_base": "5"}, unix_base=START)
        part.switch(0, 1000 + number, 7)
        parts.append(part.save(os.path.join(tmp, f"part{number}.cap")))
    for paths, why in ((one, two, one), "the same capture"), ((one, two, copy), "the same capture"), \
            (parts, "of one recording of web"):
        result = tap.run("merge", "--machines", "-o", out, *paths)
        assert result.returncode == 2 and why in result.stderr and not os.path.exists(out), result
    again = Maker(facts={"host": "web", "raw_base": "7"}, unix_base=START + 60 * S)
    again.switch(0, 1000, 7)
    said = merge(tmp, parts[0], again.save(os.path.join(tmp, "again.cap")))[3]
    assert "both of 'web'" in said, said


def no_machine_ends_before_it_begins(tmp):
    """A damaged one may say that it was recorded for three hundred years."""
    paths = []
    for number, last in enumerate((2000, 2**63 - 1)):
        machine = Maker(facts={"host": f"web{number}"}, unix_base=START + number)
        machine.switch(0, 1000, 7)
        machine.switch(0, last, 0)
        paths.append(machine.save(os.path.join(tmp, f"{number}.cap")))
    result = tap.run("merge", "--machines", "--json", "-o", os.path.join(tmp, "out"), *paths)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    rows = [row for row in rows if row["kind"] == "machine"]
    assert len(rows) == 2 and all(row["from_unix_ns"] <= row["until_unix_ns"] for row in rows), (rows, result.stderr)


def a_hundred_machines_are_merged(tmp):
    paths = []
    for number in range(100):
        machine = Maker(facts={"host": f"web{number}"}, unix_base=START + number)
        machine.switch(0, 1000, FIRST + number)
        machine.switch(0, 2000, 0)
        paths.append(machine.save(os.path.join(tmp, f"{number}.cap")))
    out, rows, _, _ = merge(tmp, *paths)
    assert len(rows) == 100 and {machine: set(moments) for machine, moments in perfetto_times(out).items()} == {
        number: {number} for number in range(100)}


def hostile_facts_are_no_crash(tmp):
    good = World(1).save(tmp)[0]
    rng = random.Random(1)
    numbers = ["0", "1", "-1", "18446744073709551615", "9223372036854775807", "9999999999999999999999", "x", ""]
    for round_ in range(60):
        facts = {key: ",".join(rng.choice(numbers) for _ in range(rng.randrange(4)))
                 for key in ("realtime_end", "realtime_error_base", "realtime_error_end", "raw_base", "raw_end")}
        capture = Maker(facts=facts, base=rng.choice((0, 5, 2**63)), multiplier=rng.choice((1, 2**63)),
                        unix_base=rng.choice((1, START, 2**62)))
        for when in 0, 5, 2**40, 2**63 + 9:
            capture.switch(0, when, 1)
        path = capture.save(os.path.join(tmp, f"hostile{round_}.cap"))
        done = tap.run("merge", "--machines", "-o", os.path.join(tmp, "o.json"), good, path)
        assert done.returncode in (0, 1, 2), (facts, done)


if __name__ == "__main__":
    tap.main(globals())
