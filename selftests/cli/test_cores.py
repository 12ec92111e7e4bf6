#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures of machines with cores of several kinds: core 0 and core 1 have different counters. What
the module writes is in selftests/vm/cores.c."""
import json
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

MS = 1_000_000
INVALID = 0xffffffffffffffff
NAMES = [["big/cycles/", "instructions", "big/wide/"], ["little/cycles/", "instructions"], []]


def maker(names=None, **facts):
    """Of three cores; the last one counts nothing."""
    names = names or NAMES
    capture = Maker(cores=len(names), counters=[[0x11 + i for i in range(len(core))] for core in names],
                    facts={"raw_base": "0", **{f"counter.{c}.{i}": name for c, core in enumerate(names)
                                               for i, name in enumerate(core)},
                           **{key.replace("_", "."): value for key, value in facts.items()}})
    capture.task(7, "worker")
    capture.task(8, "other")
    capture.map(7, 0x1000, 0x1000, 0, "/gone/worker")
    capture.map(8, 0x1000, 0x1000, 0, "/gone/other")
    return capture


def mixed(names=None, **facts):
    capture = maker(names, **facts)
    capture.switch(0, 0, 7)
    capture.switch(1, 0, 8)
    capture.switch(2, 0, 0)
    capture.sample(0, 1 * MS, 7, 0x1010, [1000, 2000, 30], [0x1010, 0x1500])
    capture.sample(1, 2 * MS, 8, 0x1020, [70, 35], [0x1020, 0x1600])
    capture.sample(0, 3 * MS, 7, 0x1010, [1000, 2000, 12], [0x1010, 0x1500])
    capture.sample(1, 4 * MS, 8, 0x1020, [30, INVALID], [0x1020, 0x1600])
    capture.sample(1, 5 * MS, 7, 0x1010, [100, 50], [0x1010, 0x1500])
    capture.switch(2, 6 * MS, 7)
    capture.switch(0, 7 * MS, 0, blocked=True)
    capture.switch(1, 7 * MS, 0, blocked=True)
    return capture


def run(tmp, capture, *arguments, status=0):
    capture.save(os.path.join(tmp, "a.cap"))
    done = tap.run(*arguments, "a.cap", cwd=tmp)
    assert done.returncode == status, done
    return done.stdout


def objects(tmp, capture, kind, verb, *options):
    return [row for row in map(json.loads, run(tmp, capture, verb, "--json", *options).splitlines())
            if row["kind"] == kind]


def each_value_belongs_to_the_counter_of_its_core(tmp):
    head, = objects(tmp, mixed(), "report", "report")
    names = head["counters"]
    assert names == ["big/cycles/", "instructions", "big/wide/", "little/cycles/"], names
    rows = {row["tid"]: dict(zip(names, row["counters"]))
            for row in objects(tmp, mixed(), "symbol", "report", "--sort", "tid")}
    assert rows == {
        7: {"big/cycles/": 2000, "instructions": 4050, "big/wide/": 42, "little/cycles/": 100},
        8: {"big/cycles/": 0, "instructions": 35, "big/wide/": 0, "little/cycles/": 100}}, rows


def different_counters_are_not_added_up_to_weights(tmp):
    head, = objects(tmp, mixed(), "report", "report")
    assert (head["weight_of"], head["weight"]) == ("samples", 5), head
    rows = objects(tmp, mixed(), "symbol", "report", "--sort", "tid")
    assert [(row["tid"], row["weight"]) for row in rows] == [(7, 3), (8, 2)], rows
    folded = run(tmp, mixed(), "convert", "--to", "folded", "-o", "-")
    assert sorted(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == [2, 3], folded


def one_counter_on_all_cores_weighs(tmp):
    names = [["cycles", "instructions", "wide"], ["cycles", "instructions"], []]
    head, = objects(tmp, mixed(names), "report", "report")
    assert (head["weight_of"], head["weight"]) == ("cycles", 2200), head


def a_chosen_counter_weighs_on_the_cores_that_have_it(tmp):
    folded = run(tmp, mixed(), "convert", "--to", "folded", "--event", "little/cycles/", "-o", "-")
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == 200, folded


def instructions_of_cores_without_cycles_make_no_rate(tmp):
    names = [["cycles", "instructions", "x"], ["clock", "instructions"], []]
    rows = objects(tmp, mixed(names), "symbol", "report", "--sort", "tid")
    worker, = [row for row in rows if row["tid"] == 7]
    assert worker["ipc"] == 2 and worker["partial"] == 1, worker


def a_metric_is_one_of_cores_that_count_all_of_it(tmp):
    """The time that the other cores ran is not in it."""
    capture = maker([["task-clock", "big/cycles/"], ["task-clock"], []])
    capture.switch(0, 0, 7)
    for core, values in (0, [10**6, 4 * 10**6]), (1, [9 * 10**6]), (0, [10**6, 2 * 10**6]):
        capture.sample(core, 1 * MS, 7, 0x1010, values)
    row, = objects(tmp, capture, "task_samples", "report", "-M", "ghz,cpi")
    assert row["metrics"] == [3], row


def script_and_dump_name_them_by_core(tmp):
    said = run(tmp, mixed(), "script", "-k", "sample")
    first = [line for line in said.splitlines() if "cycles" in line]
    assert any("little/cycles/" in line and "[001]" in line for line in first), said
    assert not any("little/cycles/" in line and "[000]" in line for line in first), said
    pmus = objects(tmp, mixed(), "pmu", "dump")
    assert [(pmu["cpu"], len(pmu["counter_types"])) for pmu in pmus] == [(0, 3), (1, 2)], pmus


def values_of_viewers(tmp, form, options=()):
    mixed().save(os.path.join(tmp, "a.cap"))
    done = tap.run("convert", "--to", form, *options, "-o", "out", "a.cap", cwd=tmp)
    assert done.returncode == 0, done


def chrome_has_tracks_of_each_core(tmp):
    values_of_viewers(tmp, "chrome")
    with open(os.path.join(tmp, "out"), encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "C"}
    for core, counters in enumerate(NAMES):
        for name in counters:
            assert any(name in track and str(core) in track for track in names), (name, names)
    assert not any("little" in track and track.endswith("0") for track in names), names


def annotate_has_each_value_of_its_counter(tmp):
    values_of_viewers(tmp, "annotate")
    done = tap.run("dump", "--json", "out", cwd=tmp)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    keys = {line["key"]: line["name"] for line in lines if line.get("type") == 8}
    sums = {}
    for line in lines:
        if line.get("key") in keys and "value" in line:
            place = keys[line["key"]], line.get("core")
            sums[place] = sums.get(place, 0) + line["value"]
    of = {name: sum(value for (counter, _), value in sums.items() if counter == name)
          for name in ("big/cycles/", "little/cycles/", "instructions", "big/wide/")}
    assert of == {"big/cycles/": 2000, "little/cycles/": 200, "instructions": 4085, "big/wide/": 42}, of


def every_format_can_be_written(tmp):
    for form in ("perfetto", "html", "ctf", "heph", "tptp", "pprof", "firefox", "speedscope", "flamegraph"):
        mixed().save(os.path.join(tmp, "a.cap"))
        done = tap.run("convert", "--to", form, "-o", f"out.{form}", "a.cap", cwd=tmp)
        assert done.returncode == 0, (form, done)


def speedscope_counts_samples(tmp):
    values_of_viewers(tmp, "speedscope")
    with open(os.path.join(tmp, "out"), encoding="utf-8") as file:
        profiles = json.load(file)["profiles"]
    assert {weight for profile in profiles for weight in profile["weights"]} == {1}, profiles


def what_a_core_does_not_count_is_said(tmp):
    facts = {"uncounted_0_1": "little/cycles/", "uncounted_1_0": "big/cycles/",
             "uncounted_1_2": "big/wide/", "uncounted_2_0": "big/cycles/",
             "uncounted_2_1": "little/cycles/", "uncounted_9_0": "nowhere"}
    for verb in "report", "info":
        rows = [(row["event"], row["cpus"]) for row in objects(tmp, mixed(**facts), "uncounted", verb)]
        assert rows == [("little/cycles/", "0,2"), ("big/cycles/", "1-2"), ("big/wide/", "1")], rows
        said = run(tmp, mixed(**facts), verb)
        assert "big/cycles/ on CPU 1-2" in said, said


def what_takes_no_samples_on_a_core_is_said(tmp):
    facts = {"unsampled_1_0": "big/cycles/", "unsampled_2_0": "big/cycles/", "unsampled_9_0": "nowhere"}
    for verb in "report", "info":
        rows = [(row["event"], row["cpus"]) for row in objects(tmp, mixed(**facts), "unsampled", verb)]
        assert rows == [("big/cycles/", "1-2")], rows
        assert not objects(tmp, mixed(**facts), "uncounted", verb)
        assert "unsampled" in run(tmp, mixed(**facts), verb)


def check_compares_sums_with_what_was_counted(tmp):
    right = {"counted_0_0": "2500,500", "counted_0_1": "4000,0", "counted_0_2": "42,0",
             "counted_1_0": "200,0", "counted_1_1": "85,0"}
    run(tmp, mixed(**right), "check")
    for key, value in ("counted_0_0", "2500,499"), ("counted_1_1", "86,0"), ("counted_0_2", "41,0"):
        said = run(tmp, mixed(**{**right, key: value}), "check", status=1)
        core, index = key.split("_")[1:]
        assert f"counter {index} of CPU {core}" in said, said
    run(tmp, mixed(**{**right, "counted_1_1": "86,0", "overwritten_1": "3"}), "check")


def check_finds_many_differences_in_one_pass(tmp):
    cores, counters = 4000, 32
    capture = maker([["a"] * counters] * cores, **{f"counted_{core}_{i}": "1,0" for core in range(cores)
                                                   for i in range(counters)})
    for core in range(cores):
        capture.sample(core, core, 7, 0x1010, [3] * counters)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    said = run(tmp, capture, "check", status=1).splitlines()
    # with a pass for each of them: ten seconds
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 4
    said = [line for line in said if "add up to 3, but the counter counted 1" in line]
    assert len(said) == cores * counters, len(said)


def the_copy_of_one_cpus_map_lacks_the_others(tmp):
    capture = maker(counted_0_0="1000,0", counted_1_0="77,0")
    capture.sample(0, 1 * MS, 7, 0x1010, [1000, 2000, 30])
    run(tmp, capture, "check")


def hostile_facts_say_nothing(tmp):
    run(tmp, mixed(counted_0_9="1,0", counted_9_0="1,0", counted_0_0="x", counted_1="1,0"), "check")
    run(tmp, mixed(**{"uncounted_0": "x", "uncounted_0_0": "", "uncounted_x_1": "y"}), "info")
    assert not objects(tmp, mixed(uncounted_0="x", uncounted_0_0=""), "uncounted", "info")


if __name__ == "__main__":
    tap.main(globals())
