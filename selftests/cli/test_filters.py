#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--cpu, --task, --tid and --time choose the same records in script, report and every format of convert.

The records are those that `script -j` prints of the whole capture; the rules of kbarman-script(1) stand
here once more, in Python."""
import collections
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from make_capture import Maker  # noqa: E402
from simulate import Machine  # noqa: E402

CORES, TASKS = 3, 12
WAKING = 1
START = 5000        # ns, of the recording: the first record, as its facts do not say when it began
# In seconds, for the tool, and in ns.
TIMES = [("0.0005,0.0012", 500_000, 1_200_000), (",0.0003", 0, 300_000), ("0.001,", 1_000_000, 10**18),
         ("0,0", 0, 0), ("500us,1.2ms", 500_000, 1_200_000),
         (",300000ns", 0, 300_000)]
Filter = collections.namedtuple("Filter", "options cpus task tid time", defaults=[None] * 4)
FILTERS = [
    Filter(("-C", "1"), cpus={1}), Filter(("--cpu", "0,2"), cpus={0, 2}), Filter(("-C", "1,7"), cpus={1, 7}),
    Filter(("--task", "pair"), task="pair"), Filter(("--task", "task 5"), task="task 5"),
    Filter(("--tid", "4"), tid=4),
    Filter(("--tid", "2"), tid=2), Filter(("--task", "swapper"), task="swapper"),
    *(Filter(("--time", text), time=(begin, end)) for text, begin, end in TIMES),
    Filter(("-C", "0-1", "--task", "pair", "--time", "0.0005,0.0012"), {0, 1}, "pair", None,
           (500_000, 1_200_000)),
]


REFUSED = ["parquet"]       # test_parquet.py


def make(directory, seed=1, records=2500):
    """A machine on which a task is on one CPU at a time, only the idle task halts, and nothing is lost."""
    rng, capture, now = random.Random(seed), CaptureWriter(cores=CORES, counters=1), BASE + START
    capture.fact("ext", 1)
    for core in range(CORES):
        capture.fact(f"counter.{core}.0", "cycles")
    capture.task(0, b"swapper")
    for task in range(1, TASKS):
        capture.task(task, b"pair" if task < 3 else b"task %d" % task)
    capture.fact("tgid.3", 2)       # the row of task 3, which belongs to process 2
    capture.custom(b"Wakeups")
    running, halted = [None] * CORES, [False] * CORES
    for i in range(records):
        now += rng.randrange(1, 1500) if i else 0
        core = i if i < CORES else rng.randrange(CORES)
        task, what = running[core], rng.random()
        if task is None or what < 0.5:
            free = [other for other in range(TASKS) if other == 0 or other not in running]
            capture.switch(core, now, new := rng.choice([t for t in free if t != task]),
                           blocked=rng.randrange(2), state=rng.randrange(3))
            running[core], halted[core] = new, False
        elif task == 0 and what < 0.7:
            halted[core] = not halted[core]
            capture.halt(core, now, int(halted[core]), 1 if halted[core] else None)
        elif what < 0.85:
            capture.sample(core, now, task, 0x1000 + rng.randrange(4) * 16, (rng.randrange(1, 99),))
        elif what < 0.95:
            capture.about(core, now, task, 0, WAKING, rng.randrange(1, TASKS), rng.randrange(CORES))
        else:
            capture.annotation(core, now, task, b"mark %d" % i, kind=1)
    return capture.save(os.path.join(directory, "a.cap"))


def script(path, *options):
    done = tap.run("script", "-j", *options, path)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_time(chosen, ns):
    return chosen.time is None or chosen.time[0] <= ns - START <= chosen.time[1]


def is_wanted(chosen, line):
    tasks = [{key: line.get(prefix + key) for key in ("task", "pid", "tid")}
             for prefix in ("", "next_", "woken_", "moved_")]
    return (chosen.cpus is None or line["cpu"] in chosen.cpus) and is_time(chosen, line["at_ns"]) and \
        (chosen.task is None or chosen.task in [task["task"] for task in tasks]) and \
        (chosen.tid is None or any(chosen.tid in (task["pid"], task["tid"]) for task in tasks))


def script_leaves_out_what_is_not_wanted_and_nothing_else(tmp):
    path = make(tmp)
    every = script(path)
    short = ("-F", "comm,pid,tid,cpu,time,period,event,trace")
    text = tap.run("script", *short, path).stdout.splitlines()
    assert len(text) == len(every) and {line["kind"] for line in every} == {
        "sample", "switch", "idle", "wake", "annotation"}
    for chosen in FILTERS:
        wanted = [is_wanted(chosen, line) for line in every]
        assert script(path, *chosen.options) == [
            line for line, is_in in zip(every, wanted) if is_in], chosen
        done = tap.run("script", *short, *chosen.options, path)
        assert done.stdout.splitlines() == [line for line, is_in in zip(text, wanted) if is_in], chosen
    assert 0 < sum(is_wanted(FILTERS[3], line) for line in every) < len(every)


def report_counts_the_samples_that_script_prints(tmp):
    path = make(tmp)
    for chosen in FILTERS:
        done = tap.run("report", "-j", *chosen.options, path)
        head = json.loads(done.stdout.splitlines()[0])
        lines = [line for line in script(path, "-k", "sample") if is_wanted(chosen, line)]
        assert head["samples"] - head["samples_filtered"] == len(lines), (chosen, head, len(lines))


# ---- exports ----

def convert(path, to, *options):
    """The output, and the number of records that the message has."""
    out = os.path.join(os.path.dirname(path), f"out.{len(os.listdir(os.path.dirname(path)))}")
    done = tap.run("convert", path, "--to", to, "-o", out, *options)
    assert done.returncode == 0, (to, options, done)
    said = re.search(rf"wrote {re.escape(out)}: (?:(\d+) records(?:, |$))?(?:(\d+) bytes)?", done.stderr)
    assert said, done
    if os.path.isfile(out):
        assert int(said[2]) == os.path.getsize(out), done
    return out, int(said[1] or 0)


WHOLE = "barman", "heph", "annotate", "tptp", "perfetto", "html", "chrome", "ctf", "firefox"
STACKS = "folded", "flamegraph", "speedscope", "pprof"      # the first two are one but for the drawing


def every_format_is_tested(tmp):
    lines = map(json.loads, tap.run("version", "-j").stdout.splitlines())
    names = {line["name"] for line in lines if line["kind"] == "export"}
    assert names == {*WHOLE, *STACKS, *REFUSED}, (tmp, names)


def whole_formats_have_all_that_script_prints(tmp):
    path = make(tmp)
    every = script(path)
    for to in WHOLE:
        for chosen in FILTERS:
            out, records = convert(path, to, *chosen.options)
            assert records == sum(is_wanted(chosen, line) for line in every), (to, chosen, records)
            if to in ("barman", "heph", "annotate", "tptp"):
                assert tap.run("check", out).returncode == 0, (to, chosen)


def chrome_slices(path, *options):
    with open(convert(path, "chrome", *options)[0], encoding="utf-8") as file:
        events = json.load(file, parse_float=str)["traceEvents"]
    return [(event["tid"], event["cat"], event["name"], event["args"].get("tid"), ns(event["ts"]),
             ns(event["ts"]) + ns(event["dur"])) for event in events
            if event["ph"] == "X" and event["cat"] in ("run", "idle")]


def ns(microseconds):
    whole, _, rest = str(microseconds).partition(".")
    return int(whole) * 1000 + int(rest.ljust(3, "0") or 0)


def heph_slices(path, *options):
    lines = tap.run("dump", "-j", convert(path, "heph", *options)[0]).stdout.splitlines()
    found = []
    for line in map(json.loads, lines):
        if line["kind"] != "event" or line["substream"] or not line["stream"]:
            continue
        task = dict((name, value) for name, _, value in line["attributes"]).get("tid")
        found.append((line["stream"] - 1, "idle" if line["description"] == "idle" else "run",
                      line["description"], task, line["start"], line["end"]))
    return found


def annotate_slices(path, *options):
    lines = tap.run("dump", "-j", convert(path, "annotate", *options)[0]).stdout.splitlines()
    found = []
    for line in map(json.loads, lines):
        if line.get("type") == 12:
            found.append((line["track"] - 1, "idle" if line["name"] == "idle" else "run", line["name"],
                          None, line["start"], line["start"] + line["duration"]))
    return found


def cut(chosen, slices):
    """What is left of slices by the rules; slices of no length are told apart by no format."""
    left = []
    for cpu, kind, name, task, start, end in slices:
        process = 2 if task == 3 else task
        if (chosen.cpus is not None and cpu not in chosen.cpus) or \
                ((chosen.task or chosen.tid) and kind == "idle" and chosen.task != "swapper") or \
                (chosen.task and kind == "run" and name != chosen.task) or \
                (chosen.tid and chosen.tid not in (task, process)):
            continue
        if chosen.time:
            start, end = max(start, chosen.time[0] + START), min(end, chosen.time[1] + START)
        if start < end:
            left.append((cpu, kind, name, task, start, end))
    return sorted(left, key=str)


def slices_are_cut_at_the_ends_of_the_time(tmp):
    path = make(tmp)
    for of in chrome_slices, heph_slices, annotate_slices:
        every = of(path)
        assert len(every) > 500, of
        for chosen in FILTERS:
            if of is annotate_slices and chosen.tid:
                continue        # its jobs have names alone
            got = [row for row in of(path, *chosen.options) if row[4] < row[5]]
            assert sorted(got, key=str) == cut(chosen, every), (of, chosen)


def overlap(chosen, start, end):
    """How much of a time is in the one that is wanted."""
    if chosen.time:
        start, end = max(start, chosen.time[0] + START), min(end, chosen.time[1] + START)
    return max(0, end - start)


def is_task(chosen, name, tid):
    return (chosen.task is None or name == chosen.task) and \
        (chosen.tid is None or chosen.tid in (tid, 2 if tid == 3 else tid))


def times_of_the_report_are_of_what_is_chosen(tmp):
    """Those of tasks by all options; those of CPUs have all tasks. Waits are cut, too."""
    path = make(tmp)
    slices, left, waits, counts = chrome_slices(path), {}, [], script(path, "-k", "switch")
    for line in counts:
        if line.get("tid"):
            left[line["tid"]] = line
        if line["next_tid"] in left:
            waits.append((left.pop(line["next_tid"]), line["at_ns"]))
    names = {0: "swapper", 1: "pair", 2: "pair"}
    for chosen in FILTERS:
        run, busy, waited = (collections.Counter() for _ in range(3))
        for cpu, kind, _, tid, start, end in slices:
            if chosen.cpus is not None and cpu not in chosen.cpus:
                continue
            length = overlap(chosen, start, end)
            busy[cpu, kind, tid == 0] += length
            if kind == "run" and is_task(chosen, names.get(tid, f"task {tid}"), tid):
                run[tid] += length
        for begin, end in waits:
            if (chosen.cpus is None or begin["cpu"] in chosen.cpus) and \
                    is_task(chosen, begin["task"], begin["tid"]):
                waited[begin["tid"]] += overlap(chosen, begin["at_ns"], end)
        done = tap.run("report", "-j", *chosen.options, path)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        tasks = [row for row in rows if row["kind"] == "task_time"]
        assert {row["tid"]: row["run_ns"] for row in tasks if row["run_ns"]} == +run, chosen
        assert {row["tid"]: row["blocked_ns"] + row["preempted_ns"] for row in tasks
                if row["blocked_ns"] + row["preempted_ns"]} == +waited, chosen
        for row in rows:
            if row["kind"] == "cpu":
                cpu = row["cpu"]
                assert (row["busy_ns"], row["awake_ns"], row["halted_ns"]) == (
                    busy[cpu, "run", False], busy[cpu, "run", True],
                    sum(busy[cpu, "idle", idle] for idle in (False, True))), (chosen, row)
        switches = [line for line in counts if is_time(chosen, line["at_ns"]) and
                    (chosen.cpus is None or line["cpu"] in chosen.cpus) and line.get("tid") is not None]
        assert sum(row["switches"] for row in rows if row["kind"] == "cpu") == len(switches), chosen
        assert sum(row["runs"] for row in tasks) == sum(
            is_task(chosen, line["next_task"], line["next_tid"]) for line in switches), chosen
        head = rows[0]
        assert head["wanted_ns"] == overlap(chosen, START, START + head["duration_ns"]), (chosen, head)


def tables_of_the_report_say_what_they_are_of(tmp):
    counting, machine = 0, Machine(3).save(os.path.join(tmp, "irq.cap"))
    for path, task, *options in ((make(tmp), "pair"), (make(tmp), "pair", "-g"),
                                 (machine, "task15", "--latency"), (machine, "task15", "--irq")):
        chosen = f"task {task}, time ,0.0003"
        text = tap.run("report", *options, "--task", task, "--time", ",0.0003", path).stdout
        head, tables = text.split(f"# only     : {chosen}; the lines above are of the whole capture\n")
        assert "# lost     : " in head, text
        for title, line in re.findall(r"^#\n# (\S.*)\n#(.*)\n", tables, re.M):
            counting += 1
            if title.startswith("Samples: "):
                assert f"only those of {chosen} (" in title, (title, text)
            elif not title.startswith(("No ", "Median and p99")):
                of_cpus = title.startswith(("CPUs", "Idle states", "Halts", "All time of each CPU"))
                assert line == f" only {chosen}{'; here all tasks count' if of_cpus else ''}", (title, text)
        assert "# only" not in tap.run("report", *options, path).stdout
    assert counting > 15, counting


def lines_of_json_say_what_they_are_of(tmp):
    machine = Machine(3).save(os.path.join(tmp, "irq.cap"))
    for path, task, options, kind in ((make(tmp), "pair", [], "report"),
                                      (machine, "task15", ["--latency", "--irq"], "latency")):
        whole, *rest = ([json.loads(line) for line in
                         tap.run("report", "-j", *options, *chosen, path).stdout.splitlines()]
                        for chosen in ([], ["--task", task], ["--time", "0.0005,0.0012"]))
        assert not {"only", "whole_capture", "all_tasks"} & set(whole[0]), whole[0]
        for lines, only in zip(rest, (f"task {task}", "time 0.0005,0.0012")):
            head = lines[0]
            assert (head["kind"], head["only"]) == (kind, only), head
            assert {key: head[key] for key in head["whole_capture"] if key in head} == \
                {key: whole[0][key] for key in head["whole_capture"] if key in whole[0]}, head
            assert ("all_tasks" in head) == (only == f"task {task}"), head
        kinds = rest[0][0]["all_tasks"]
        of_all = [[line for line in lines if line["kind"] in kinds] for lines in (whole, rest[0], rest[1])]
        assert of_all[0] == of_all[1] != of_all[2] and len(of_all[0]) > CORES, of_all


def all_time_of_each_cpu_is_that_of_the_window(tmp):
    path = Machine(3).save(os.path.join(tmp, "irq.cap"))

    def sums(*options):
        lines = tap.run("report", "--irq", "-j", *options, path).stdout.splitlines()
        return {row["cpu"]: collections.Counter({key: value for key, value in row.items() if key.endswith(
            "_ns") and key not in ("first_ns", "last_ns")}) + collections.Counter(
                {"all": row["last_ns"] - row["first_ns"]})
                for row in map(json.loads, lines) if row["kind"] == "cpu_time"}

    whole, parts = sums(), [sums("--time", text) for text in (",0.001", "0.001,0.003", "0.003,")]
    assert len(whole) > 1
    for cpu, row in whole.items():
        assert sum((part[cpu] for part in parts), collections.Counter()) == row, (cpu, row, parts)
        assert parts[1][cpu]["all"] == 2_000_000 == sum(parts[1][cpu].values()) // 2, parts[1]


def stacks_have_the_samples_that_script_prints(tmp):
    path = make(tmp)
    for chosen in FILTERS:
        wanted = sum(is_wanted(chosen, line) for line in script(path, "-k", "sample"))
        with open(convert(path, "folded", "-f", "samples", *chosen.options)[0], encoding="utf-8") as file:
            assert sum(int(line.rsplit(" ", 1)[1]) for line in file) == wanted, chosen
        with open(convert(path, "speedscope", "-f", "samples", *chosen.options)[0],
                  encoding="utf-8") as file:
            profiles = json.load(file)["profiles"]
        assert sum(sum(profile["weights"]) for profile in profiles) == wanted, chosen
        assert convert(path, "pprof", *chosen.options)[1] == wanted, chosen


def waits_are_those_of_the_whole_capture(tmp):
    """A task that comes back on another CPU, or after the time, has waited all the same."""
    path = make(tmp)
    left, waits = {}, []
    for line in script(path, "-k", "switch"):
        if line.get("tid"):
            left[line["tid"]] = line
        if line["next_tid"] in left:
            begin = left.pop(line["next_tid"])
            waits.append((begin, line["at_ns"] - begin["at_ns"]))
    assert len(waits) > 300
    for chosen in FILTERS:
        wanted = sum(ns for begin, ns in waits if is_wanted(
            chosen, {key: value for key, value in begin.items() if not key.startswith("next_")}))
        with open(convert(path, "folded", "-f", "offcpu", *chosen.options)[0], encoding="utf-8") as file:
            assert sum(int(line.rsplit(" ", 1)[1]) for line in file) == wanted, chosen


def other_tasks_are_idle_where_one_task_is_wanted(tmp):
    """Of Annotate: the activity of a CPU."""
    path = make(tmp)
    lines = tap.run("dump", "-j", convert(path, "annotate", "--task", "task 5")[0]).stdout.splitlines()
    activities = [line for line in map(json.loads, lines) if line.get("type") == 10]
    assert {line["tid"] for line in activities} == {0, 5}, activities[:5]
    assert sum(line["tid"] == 5 for line in activities) == sum(
        line["next_tid"] == 5 for line in script(path, "-k", "switch"))


# ---- times of a clock ----

# The capture began at 22:13:20 UTC, its first record is of 5 us later.
CLOCKS = [
    ("UTC0", "22:13:20.000505,22:13:20.001205", "0.0005,0.0012"), ("UTC0", "22:13:20.001005,", "0.001,"),
    ("UTC0", "22:13,22:13:20.000305", ",0.0003"), ("UTC0", "0.0005,22:13:20.001205", "0.0005,0.0012"),
    ("UTC0", "2023-11-14 22:13:20.000505,2023-11-14T22:13:20.001205", "0.0005,0.0012"),
    ("UTC0", "2023-11-13 22:13:20.000505,2023-11-13 22:14", "5,6"), ("UTC0", "21:13,22:13", "5,6"),
    ("EST5", "17:13:20.000505,17:13:20.001205", "0.0005,0.0012"),
    ("EST5", "2023-11-14 17:13:20.000505,2023-11-14T22:13:20.001205Z", "0.0005,0.0012"),
    ("XXX-2", "00:13:20.000505,2023-11-15 00:13:20.001205", "0.0005,0.0012"),
    ("EST5", "2023-11-14T23:13:20.000505+01:00,2023-11-14 16:43:20.001205-0530", "0.0005,0.0012"),
    ("EST5", "2023-11-15T12:13:20.000505+14,@1700000000.001205", "0.0005,0.0012"),
    ("UTC0", "@1700000000.001005,", "0.001,"), ("UTC0", "@1700000005,@1700000006s", "5,6"),
    # midnight is the beginning
    ("XXX-1:46:40", "23:59:59,00:00:00.000305", ",0.0003"), ("XXX-1:46:40", "23:59,00:00:01", ","),
    # each time alone is nearest to the beginning on another day
    ("XXX-14:47", "00:00,23:59:59", ","), ("XXX-14:47", "14:00,23:59", "5,6"), ("UTC0", "09:00,22:14", ","),
    ("UTC0", "00:30,22:13:20.000305", ",0.0003"), ("XXX12", "10:13:20.000505,23:30", "0.0005,"),
    ("XXX-2", "1970-01-01 00:30,", ","),
]


def times_of_a_clock_are_those_of_the_recording(tmp):
    path = make(tmp)
    for zone, text, same in CLOCKS:
        def lines(verb, time, zone=zone):
            done = tap.run(verb, "-j", "--time", time, path, env={**os.environ, "TZ": zone})
            if same == "5,6":
                assert done.returncode == 2 and not done.stdout, done
                return done.stderr
            assert done.returncode == 0, (time, done)
            said = [json.loads(line) for line in done.stdout.splitlines()]
            return [{key: value for key, value in row.items() if key not in ("filter", "only")} for row in said]

        for verb in "script", "report":
            assert lines(verb, text) == lines(verb, same), (verb, zone, text)
    assert 0 < len(script(path, "--time", "22:13:20.000505,22:13:20.001205")) < len(script(path))


def a_capture_without_a_date_has_no_times_of_a_clock(tmp):
    capture = CaptureWriter()
    capture.unix_base = 0
    capture.switch(0, BASE + 5, 7)
    path = capture.save(os.path.join(tmp, "undated.cap"))
    for verb in ("script",), ("report",), ("report", "--critical-path", "7"), ("diff", path), \
            ("convert", "--to", "heph", "-o", os.path.join(tmp, "x")):
        done = tap.run(*verb, "--time", "10:00,", path)
        assert done.returncode == 2 and "does not say when it was recorded" in done.stderr, (verb, done)


# ---- nothing is chosen ----

NOTHING = [
    (["-C", "7"], "there are no records of the CPUs of --cpu: it has some of 0-2"),
    (["--cpu", "3,9-12"], "it has some of 0-2"),
    (["--task", "tsak 5"], "no task is named 'tsak 5': did you mean 'task 5'?"),
    (["--task", "postgres"], "no task is named 'postgres': it has 'swapper', 'pair', 'task 3', 'task 4', "
     "'task 5', 'task 6', 'task 7', 'task 8' and others"),
    (["--tid", "99"], "no task and no process has the number 99"),
    (["--time", "5,6"], "s long, from 2023-11-14 22:13:20 (local time) on"),
    # each for itself: the other one is there
    (["--task", "pair", "-C", "4"], "of --cpu"), (["--tid", "99", "-C", "1"], "the number 99"),
]


def options_that_choose_nothing_say_what_there_is(tmp):
    path, out = make(tmp), os.path.join(tmp, "out")
    for verb in (["script"], ["script", "-j"], ["report"], ["report", "-j"], ["diff", path],
                 *(["convert", "-o", out, "--to", to] for to in (*WHOLE, *STACKS))):
        for options, said in NOTHING:
            done = tap.run(*verb, *options, path, env={**os.environ, "TZ": "UTC0"})
            assert done.returncode == 2 and not done.stdout and said in done.stderr, (verb, options, done)
            assert path in done.stderr and not os.path.exists(out), (verb, options, done)
    machine = Machine(3).save(os.path.join(tmp, "irq.cap"))
    for options in ["--latency"], ["--irq"], ["--critical-path", "task15", "--time", "5,6"]:
        chosen = [] if "--time" in options else ["--task", "task155"]
        done = tap.run("report", *options, *chosen, machine)
        assert done.returncode == 2 and not done.stdout, done
        assert ("did you mean 'task15'?" if chosen else "in the time of --time") in done.stderr, done


def of_a_capture_without_records_options_choose_nothing(tmp):
    path = Maker(cores=2).save(os.path.join(tmp, "empty.cap"))
    for options, said in ((["--time", "0,"], "it has no records"), (["-C", "0"], "it has none"),
                          (["--task", "a"], "it has names of none"), (["--tid", "1"], "has the number 1")):
        done = tap.run("report", *options, path)
        assert done.returncode == 2 and not done.stdout and said in done.stderr, (options, done)
    assert tap.run("report", path).returncode == 0


def options_that_together_choose_nothing_are_an_answer(tmp):
    """No task of that name ran on that CPU: that is what was asked."""
    capture = CaptureWriter(cores=2)
    capture.task(7, b"here")
    capture.task(8, b"there")
    capture.switch(0, BASE + 5, 7)
    capture.switch(1, BASE + 6, 8)
    path = capture.save(os.path.join(tmp, "a.cap"))
    assert not script(path, "--task", "here", "-C", "1")
    assert script(path, "--task", "here", "-C", "0")


def a_task_without_a_row_is_there_if_records_have_it(tmp):
    """Rows may be lost. And a part of a capture that can't be read may have anything."""
    capture = CaptureWriter(cores=1)
    capture.task(7, b"known")
    capture.switch(0, BASE + 5, 7)
    capture.switch(0, BASE + 9, 88)
    path = capture.save(os.path.join(tmp, "a.cap"))
    assert len(script(path, "--tid", "88")) == len(script(path, "--task", ":88")) == 1
    with open(path, "rb") as file:
        whole = file.read()
    with open(cut := os.path.join(tmp, "cut.cap"), "wb") as file:
        file.write(whole[:-3])
    done = tap.run("script", "--tid", "88", cut)
    assert done.returncode == 1 and "88" not in done.stderr, done
    with open(path, "rb") as file:
        assert tap.run("script", "--tid", "99", "-", stdin=file).returncode == 2
    assert tap.run("script", "--tid", "99", "-", input=whole, text=False).returncode == 0, "a pipe"


def diff_names_captures_of_which_nothing_is_chosen(tmp):
    """A program that is new in B is compared with nothing; the capture of A is named."""
    one, other = (CaptureWriter(cores=1) for _ in range(2))
    for capture, name in (one, b"old"), (other, b"new"):
        capture.task(7, name)
        capture.switch(0, BASE + 5, 7)
        capture.switch(0, BASE + 9000, 0)
    paths = [capture.save(os.path.join(tmp, name)) for capture, name in ((one, "a.cap"), (other, "b.cap"))]
    done = tap.run("diff", "--task", "new", *paths)
    assert done.returncode == 0 and done.stderr.count("no task is named 'new'") == 1, done
    assert paths[0] in done.stderr and paths[1] not in done.stderr, done
    done = tap.run("diff", "--task", "neither", *paths)
    assert done.returncode == 2 and not done.stdout and "nothing is left to compare" in done.stderr, done


# ---- options ----

def wrong_values_are_refused_by_all(tmp):
    path = make(tmp, records=10)
    for verb in ("script",), ("report",), ("convert", "--to", "heph", "-o", os.path.join(tmp, "x")):
        for bad, word in (("--time=10:00,09:00", "FROM,TO"), ("--time=10:00Z,", "FROM,TO"),
                          ("--time=24:00,", "FROM,TO"), ("--time=2023-11-31T,", "FROM,TO"),
                          ("--time=2023-11-31 10:00,", "FROM,TO"), ("--time=,2023-02-29T10:00Z", "FROM,TO"),
                          ("--time=2,1", "FROM,TO"), ("--time=1x,", "FROM,TO"), ("--time=@,", "FROM,TO"), ("--time=-1s,", "FROM,TO"),
                          ("--time=2023-11-14T10:00+15:00,", "FROM,TO"), ("--time=2023-11-14T10:00+1,", "FROM,TO"), ("--time=1", "FROM,TO"), ("--time=a,b", "FROM,TO"),
                          ("--tid=x", "number"), ("--cpu=0-", "0-"), ("-Cx", "x")):
            done = tap.run(*verb, bad, path)
            assert done.returncode == 2 and word in done.stderr and not done.stdout, (verb, done)
    assert not os.path.exists(os.path.join(tmp, "x"))


def fields_are_printed_alone(tmp):
    capture = Maker(counters=[17], facts={"counter.0.0": "cycles", "tgid.0": "6"})
    capture.task(7, "worker")
    capture.map(7, 0x1000, 0x1000, 0, "/bin/worker")
    capture.sample(0, 1_500_000_000, 7, 0x1010, [123])
    capture.sample(0, 1_600_000_000, 7, 0x1010, [5], [0x1010, 0x1020])
    path = capture.save(os.path.join(tmp, "a.cap"))
    fields = ["comm", "pid", "tid", "cpu", "time", "period", "event", "trace", "ip", "sym", "symoff", "dso"]
    whole = tap.run("script", path).stdout
    assert tap.run("script", "-F", ",".join(reversed(fields)), path).stdout == whole
    for names, wanted in (("comm", "          worker "), ("pid", "    6 "), ("tid", "7     "),
                          ("pid,tid", "    6/7     "), ("cpu", "[000] "), ("time", "    1.500000: "),
                          ("period", "       123 "), ("event", "cycles: "), ("trace", ""),
                          ("ip", "             1010"), ("sym", "  [unknown]"),
                          ("dso", "  (/bin/worker)"), ("event,dso", "cycles:   (/bin/worker)")):
        assert tap.run("script", "--fields", names, path).stdout.splitlines()[0] == wanted, names
    chain = tap.run("script", "-F", "comm,ip", path).stdout.splitlines()[1:]
    assert chain == ["worker ", "\t            1010", "\t            1020", ""], chain
    assert script(path, "-F", "comm,time,ip")[0] == {
        "kind": "sample", "at_ns": 1_500_000_000, "task": "worker", "pc": 0x1010}


def unknown_fields_are_refused_with_the_list(tmp):
    path = make(tmp, records=10)
    for bad in "", "x", "comm,,pid", "commm", "+comm":
        done = tap.run("script", "-F", bad, path)
        assert done.returncode == 2 and not done.stdout, (bad, done)
        assert "comm, pid, tid, cpu, time, period, event, trace, ip, sym, symoff, dso, srcline" in \
            done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
