#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples without PC, which say what a task's counters counted: `kbarman report`. What the
module writes is in selftests/vm/counts.c."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

MS = 1_000_000
INVALID = 0xffffffffffffffff


def maker(**facts):
    capture = Maker(cores=2, counters=[17, 8], facts={
        **{f"counter.{c}.{i}": name for c in range(2)
           for i, name in enumerate(["cycles", "instructions"])}, **facts})
    capture.task(7, "worker")
    capture.task(8, "other")
    return capture


def report(tmp, capture, *options):
    capture.save(os.path.join(tmp, "a.cap"))
    done = tap.run("report", *options, "a.cap", cwd=tmp)
    assert done.returncode == 0, done
    return done.stdout


def objects(tmp, capture, kind, *options):
    return [row for row in map(json.loads, report(tmp, capture, "--json", *options).splitlines())
            if row["kind"] == kind]


def mixed(**facts):
    """Task 7 is sampled at 3 and 9 ms; counters are read in between, too, on another core as well."""
    capture = maker(**(facts or {"counts": "switch,0"}))
    capture.sample(0, 1 * MS, 8, None, [300, 30])
    capture.sample(1, 2 * MS, 8, None, [5000, 500])
    capture.sample(0, 3 * MS, 7, 0x1000, [700, 70])
    capture.sample(0, 5 * MS, 7, None, [400, 40])
    capture.sample(0, 8 * MS, 8, None, [500, INVALID])
    capture.sample(0, 9 * MS, 7, 0x2000, [100, 10])
    return capture


def a_task_has_all_that_its_counters_counted(tmp):
    rows = {row["tid"]: row for row in objects(tmp, mixed(), "task_counters")}
    assert rows[7]["counters"] == [1200, 120] and rows[7]["samples"] == 3, rows
    assert rows[8]["counters"] == [5800, 530] and rows[8]["samples"] == 3, rows
    assert rows[7]["ipc"] == 0.1 and rows[8]["partial"] == 1, rows
    text = report(tmp, mixed())
    table = text[text.index("# Counters by task"):].split("\n\n")[0].splitlines()
    shares = [line.split() for line in table if not line.startswith("#")]
    assert [(row[0], row[1], row[2], row[-1]) for row in shares] == [
        ("82.86%", "5800", "530", "other"), ("17.14%", "1200", "120", "worker")], table


def a_sample_of_code_weighs_what_passed_since_the_last_one(tmp):
    """Not only since the counters were read last; of its own core, whoever's that was."""
    rows = objects(tmp, mixed(), "symbol", "--sort", "tid")
    assert [(row["samples"], row["weight"]) for row in rows] == [(2, 1000 + 1000)], rows
    rows, = objects(tmp, mixed(), "task_samples")
    assert rows["weight"] == 2000 and rows["counters"] == [2000, 150], rows


def filters_hold_for_counters_too(tmp):
    rows = objects(tmp, mixed(), "task_counters", "--tid", "7")
    assert [row["tid"] for row in rows] == [7], rows


def captures_without_such_samples_have_no_such_table(tmp):
    capture = maker()
    capture.sample(0, 1 * MS, 7, 0x1000, [1000, 100])
    assert not objects(tmp, capture, "task_counters")
    assert "Counters by task" not in report(tmp, capture)


def captures_of_other_writers_have_it_too(tmp):
    """Barman's own agent has no fact for it: the first sample tells."""
    capture = maker()
    capture.sample(0, 1 * MS, 7, None, [1000, 100])
    capture.sample(0, 2 * MS, 7, None, [1000, 100])
    row, = objects(tmp, capture, "task_counters")
    assert row["counters"] == [2000, 200], row
    assert "No samples with an address" in report(tmp, capture)


def a_counter_that_could_not_be_read_takes_nothing_from_the_carry(tmp):
    capture = maker(counts="switch,0")
    capture.sample(0, 1 * MS, 8, None, [300, 30])
    capture.sample(0, 2 * MS, 7, 0x1000, [INVALID, 70])
    capture.sample(0, 3 * MS, 7, 0x1000, [100, 10])
    row, = objects(tmp, capture, "task_samples")
    assert row["counters"] == [400, 110], row


def metrics_capture(names, values, numbers=(17, 8, 16), **facts):
    """Task 7 ran, and its counters were read at its end; then task 8 did."""
    capture = Maker(cores=1, counters=list(numbers[:len(names)]), facts={
        "counts": "switch,0", **facts,
        **{f"counter.0.{i}": name for i, name in enumerate(names)}})
    capture.task(7, "worker")
    capture.task(8, "other")
    capture.sample(0, 3 * MS, 7, None, values)
    capture.sample(0, 4 * MS, 7, 0x1000, values)
    capture.sample(0, 5 * MS, 8, None, [0] * len(names))
    return capture


def a_task_has_the_metrics_of_its_counters(tmp):
    capture = metrics_capture(["cycles", "instructions", "branch-misses"], [1000, 2500, 5])
    head, = objects(tmp, capture, "report", "-M", "ipc,branch")
    assert head["metrics"] == ["ipc", "branch_mpki"], head
    rows = {row["tid"]: row for row in objects(tmp, capture, "task_counters", "-M", "ipc,branch")}
    assert rows[7]["metrics"] == [2.5, 2] and rows[8]["metrics"] == [None, None], rows
    text = report(tmp, capture, "-M", "ipc,branch")
    table = text[text.index("# Counters by task"):].split("\n\n")[0].splitlines()
    assert table[2].split()[-5:] == ["ipc", "branch_mpki", "PID", "TID", "Task"], table
    assert [line.split()[-5:-3] for line in table if line.endswith("worker")] == \
        [["2.500", "2.000"]], table


def a_metric_leaves_out_what_its_own_counters_lack(tmp):
    """Not what the counters of another one lack."""
    names = ["cycles", "instructions", "branches", "branch-misses"]
    capture = metrics_capture(names, [1000, 2500, 100, 5], (17, 8, 12, 16))
    capture.sample(0, 6 * MS, 7, None, [1000, 7500, 100, INVALID])
    capture.sample(0, 7 * MS, 7, None, [INVALID, 100000, 100, 15])
    capture.sample(0, 8 * MS, 7, None, [1000, 5000, INVALID, INVALID])
    rows = {row["tid"]: row["metrics"] for row in
            objects(tmp, capture, "task_counters", "-M", "ipc,branch_miss_rate")}
    assert rows[7] == [(2 * 2500 + 7500 + 5000) / 4000, (5 + 5 + 15) / 300], rows


def an_image_has_metrics_as_well(tmp):
    capture = metrics_capture(["cycles", "instructions"], [1000, 2500])
    row, = objects(tmp, capture, "symbol", "-M", "ipc,cpi", "--sort", "image")
    assert row["metrics"] == [2.5, 0.4], row
    text = report(tmp, capture, "-M", "ipc", "--sort", "image")
    assert "    ipc  Image" in text and "  2.500  " in text and "IPC" not in text, text


def metrics_of_kinds_of_cores_and_of_modes_are_apart(tmp):
    capture = metrics_capture(["cpu_core/cycles/u", "cpu_core/instructions/u", "cycles"],
                              [1000, 2500, 9000])
    head, = objects(tmp, capture, "report", "-M", "ipc")
    assert head["metrics"] == ["cpu_core/ipc:u"], head
    capture = metrics_capture(["cycles:u", "instructions"], [1000, 2500])
    assert objects(tmp, capture, "report", "-M", "all")[0]["metrics"] == []


def intels_topdown_of_another_writer_is_shown(tmp):
    capture = metrics_capture(["slots", "topdown-retiring"], [1000, 250])
    row = objects(tmp, capture, "task_counters", "-M", "topdown")[0]
    assert row["metrics"] == [0.25], row


def arms_topdown_can_be_recorded_with_its_slots(tmp):
    names = ["cycles", "stall_slot_frontend", "stall_slot_backend"]
    capture = metrics_capture(names, [100, 80, 120])
    assert objects(tmp, capture, "report", "-M", "topdown")[0]["metrics"] == []
    capture = metrics_capture(names, [100, 80, 120], slots="8")
    assert objects(tmp, capture, "task_counters", "-M", "topdown")[0]["metrics"] == [0.1, 0.15]
    capture = metrics_capture([f"armv8_a/{name}/" for name in names], [100, 80, 120],
                              **{"slots.armv8_a": "4"})
    head = objects(tmp, capture, "report", "-M", "topdown")[0]
    assert head["metrics"] == ["armv8_a/frontend_bound", "armv8_a/backend_bound"], head
    assert objects(tmp, capture, "task_counters", "-M", "topdown")[0]["metrics"] == [0.2, 0.3]


def times_of_all_are_not_those_of_some(tmp):
    capture = metrics_capture(["cpu-clock"], [1000000])
    assert objects(tmp, capture, "report", "-M", "cpus")[0]["metrics"] == ["cpus"]
    assert objects(tmp, capture, "report", "-M", "cpus", "--tid", "7")[0]["metrics"] == []


def what_a_capture_lacks_for_a_metric_is_told(tmp):
    metrics_capture(["cycles", "instructions"], [1, 2]).save(os.path.join(tmp, "a.cap"))
    done = tap.run("report", "-M", "ipc,branch_miss_rate", "a.cap", cwd=tmp)
    assert done.returncode == 0 and "branch-misses / branches" in done.stderr, done
    assert "ipc'" not in done.stderr, done
    done = tap.run("report", "-M", "retiring", "a.cap", cwd=tmp)
    assert "record them, for op_retired" in done.stderr, done
    assert "'retiring' of an Intel PMU (topdown-retiring / slots) can't be recorded" in done.stderr, done
    assert "'kbarman stat -M retiring'" in done.stderr and done.stderr.count("'retiring'") == 2, done
    done = tap.run("report", "-M", "ipc,nonsense", "a.cap", cwd=tmp)
    assert done.returncode == 2 and "'nonsense' is no metric" in done.stderr, done


def why_counters_make_no_metric_is_told(tmp):
    for names, options, metric, why in (
            (["cycles:u", "instructions"], [], "ipc", "different cores or modes"),
            (["cycles", "stall_slot_backend"], [], "backend_bound", "how many slots a cycle has"),
            (["a/cycles/", "a/stall_slot_backend/"], [], "backend_bound", "how many slots a cycle has"),
            (["task-clock"], ["--tid", "7"], "cpus", "options leave some out")):
        metrics_capture(names, [1, 2]).save(os.path.join(tmp, "a.cap"))
        done = tap.run("report", "-M", metric, *options, "a.cap", cwd=tmp)
        assert f"no '{metric}': " in done.stderr and why in done.stderr, done
        assert "record them" not in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
