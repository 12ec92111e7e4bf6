#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counters that took turns: what `kbarman report` says of the whole time. What the module writes is
in selftests/vm/turns.c. The captures here are of loads whose counts are known."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

US = 1000
MS = 1000 * US
INVALID = 0xffffffffffffffff
EVENTS = ["cycles", "instructions", "branches", "cache-misses"]
TURNS = [0, 1, 1, 2]
WORKER, OTHER = 7, 8


def rate(task, event, ns):
    """What is counted in a microsecond: the worker has phases."""
    fast = ns // (61 * MS) % 2 and task == WORKER
    return [1000, 2000 if fast else 500, 400 if fast else 100, 10 if task == WORKER else 3][event]


class Run:
    """Two tasks share each CPU, for about two seconds; `true` is what each counter counted."""

    def __init__(self, seed, cores=1, turns=True):
        self.true, self.records = {}, []
        facts = {"counts": "switch,0"}
        for core in range(cores):
            facts.update((f"counter.{core}.{i}", name) for i, name in enumerate(EVENTS))
            facts.update((f"turn.{core}.{i}", str(turn)) for i, turn in enumerate(TURNS)
                         if turn and turns)
        self.capture = Maker(cores=cores, counters=[17, 8, 12, 3], facts=facts)
        self.capture.task(WORKER, "worker")
        self.capture.task(OTHER, "other")
        for core in range(cores):
            self.run(core, random.Random(seed), random.Random(seed + 1000 * (core + 1)))
        for now, core, task, values in sorted(self.records, key=lambda record: record[0]):
            if values:
                self.capture.sample(core, now, task, None, values)
            else:
                self.capture.switch(core, now, task)

    def run(self, core, turns, switches):
        now, task, counts, turn, left = 0, WORKER, [0.0] * 4, 0, []
        next_turn, next_switch = 0, switches.randrange(5 * MS)
        while now < 2000 * MS:
            then = min(next_turn, next_switch, now + 1 * MS)
            for event in range(4):
                counts[event] += rate(task, event, now) * (then - now) / US
            now = then
            if now not in (next_turn, next_switch):
                continue
            self.read(core, now, task, counts, turn)
            if now == next_turn:
                # the turn begins with a record of its own, a moment later
                self.read(core, now + 1, task, [0.0] * 4, None)
                left = left or turns.sample([1, 2], 2)
                turn = left.pop()
                next_turn = now + turns.randrange(667, 1334) * 10 * US
            if now == next_switch:
                task = OTHER if task == WORKER else WORKER
                self.records.append((now + 2, core, task, None))
                next_switch = now + switches.randrange(5 * MS) + 10

    def read(self, core, now, task, counts, turn):
        values = []
        for event, count in enumerate(counts):
            whole = int(count)
            values.append(whole if TURNS[event] in (0, turn) else INVALID)
            self.true[task, event] = self.true.get((task, event), 0) + whole
            counts[event] = count - whole
        self.records.append((now, core, task, values))


def report(tmp, run, *options):
    run.capture.save(os.path.join(tmp, "a.cap"))
    done = tap.run("report", *options, "a.cap", cwd=tmp)
    assert done.returncode == 0, done
    return done.stdout


def objects(tmp, run, kind, *options):
    return [row for row in map(json.loads, report(tmp, run, "--json", *options).splitlines())
            if row["kind"] == kind]


def a_load_of_known_phases_lies_within_the_bounds_in_95_of_100_runs(tmp):
    """Each counter of each task, and of both together."""
    good = runs = 0
    for seed in range(40):
        run = Run(seed)
        rows = {row["tid"]: row for row in objects(tmp, run, "task_counters")}
        for task in WORKER, OTHER:
            row = rows[task]
            assert row["estimates"][0] is row["errors"][0] is row["parts"][0] is None, row
            assert row["counters"][0] == run.true[task, 0], (row, run.true)
            for event in range(1, 4):
                off = abs(row["estimates"][event] - run.true[task, event])
                good += off <= row["errors"][event]
                runs += 1
                assert 0.3 < row["parts"][event] < 0.7, row
    print(f"# {good} of {runs} within the error")
    assert good >= 0.95 * runs, (good, runs)


def the_error_says_something(tmp):
    """It is no larger than a tenth where a load does not change."""
    row = {row["tid"]: row for row in objects(tmp, Run(1), "task_counters")}[OTHER]
    for event in range(1, 4):
        assert row["errors"][event] < 0.1 * row["estimates"][event], row


def all_tasks_together_have_a_count_too(tmp):
    run = Run(2)
    row, = objects(tmp, run, "all_counters")
    for event in range(1, 4):
        true = run.true[WORKER, event] + run.true[OTHER, event]
        assert abs(row["estimates"][event] - true) <= row["errors"][event] < true / 4, (row, true)
    assert not objects(tmp, Run(2, turns=False), "all_counters")


def cores_take_their_turns_at_about_the_same_time(tmp):
    run = Run(4, cores=2)
    rows = {row["tid"]: row for row in objects(tmp, run, "task_counters")}
    for task in WORKER, OTHER:
        for event in range(1, 4):
            assert 0.8 < rows[task]["estimates"][event] / run.true[task, event] < 1.25, rows


def people_see_value_error_and_time(tmp):
    text = report(tmp, Run(5))
    table = text[text.index("# Counters by task"):text.index("#\n# Scheduling by task")].splitlines()
    head = next(line for line in table if "Share" in line).split()
    assert head[:13] == ["#", "Share", "cycles", "instructions", "error", "time", "branches", "error",
                         "time", "cache-misses", "error", "time", "PID"], head
    rows = [line.split() for line in table if not line.startswith("#")]
    assert len(rows) == 2 and all(row[3].endswith("%") and row[4].endswith("%") for row in rows), table
    assert table[-1].startswith("#  100.00%") and table[-1].endswith("all tasks"), table


def metrics_have_bounds(tmp):
    run = Run(6)
    rows = {row["tid"]: row for row in objects(tmp, run, "task_counters", "--metrics", "ipc")}
    for task in WORKER, OTHER:
        row = rows[task]
        true = run.true[task, 1] / run.true[task, 0]
        assert row["metrics_low"][0] <= true <= row["metrics_high"][0], (row, true)
        assert row["metrics_low"][0] < row["metrics"][0] < row["metrics_high"][0], row
    text = report(tmp, run, "--metrics", "ipc")
    assert " from " in text and "inf" not in text, text


def too_few_turns_have_no_error(tmp):
    run = Run(7)
    run.capture = Maker(cores=1, counters=[17, 8], facts={
        "counts": "switch,0", "counter.0.0": "cycles", "counter.0.1": "instructions", "turn.0.1": "1"})
    run.capture.task(WORKER, "worker")
    for at in range(1, 5):
        run.capture.sample(0, at * MS, WORKER, None, [1000, 500 if at > 2 else INVALID])
    row, = objects(tmp, run, "task_counters")
    assert row["estimates"][1] == 1500 and row["errors"][1] is None, row
    assert " 67%" in report(tmp, run), row
    run.capture.sample(0, 5 * MS, OTHER, None, [1000, INVALID])
    row = {row["tid"]: row for row in objects(tmp, run, "task_counters")}[OTHER]
    assert row["estimates"][1] is None and row["counters"][1] == 0, row


def a_report_says_since_when_no_turn_was_given(tmp):
    for turned, said in (("90,500000000", "none after 0.500000 s"), ("150,1999000000", None)):
        run = Run(9)
        run.capture.string("kbarman.rotate=10")
        run.capture.string(f"kbarman.turned={turned}")
        text = report(tmp, run)
        assert ("# turns" in text) == bool(said) and (said or "") in text, (turned, text)


def columns_of_samples_leave_out_what_took_turns(tmp):
    run = Run(8)
    run.capture.sample(0, 2001 * MS, WORKER, 0x1000, [1000, 500, 100, INVALID])
    row, = objects(tmp, run, "task_samples")
    assert "ipc" not in row, row
    text = report(tmp, run, "--counters")
    table = text[text.index("# Samples by task"):text.index("# Counters by task")]
    assert "cycles" in table and "instructions" not in table, table


if __name__ == "__main__":
    tap.main(globals())
