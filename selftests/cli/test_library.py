#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples of the library, built against the installed one, as a program of others is. What
they print is what the tool prints."""
import json
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder
from make_capture import Maker
from test_install import STRICT, TREE, command, installed, pkg_config

KERNEL = 0xffffffff81000000


def built(tmp, name):
    """The example as a program, and the environment in which it finds the library."""
    root, program = installed(tmp), os.path.join(tmp, name)
    source = os.path.join(TREE, "user", "examples", name + ".c")
    command("cc", *STRICT, "-O2", source, *pkg_config(root, "--cflags", "--libs"), "-o", program)
    return program, {**os.environ, "LD_LIBRARY_PATH": os.path.join(root, "usr/local/lib")}


def capture(directory, counters=1, weights=True):
    """Samples of many tasks, most of them rare, in the idle loop and in other functions."""
    path = os.path.join(directory, f"kbarman-{counters}-{weights}.cap")
    names = ["cycles", "instructions"][:counters]
    maker = Maker(cores=4, counters=[17] * counters,
                  facts={f"counter.{cpu}.{i}": name for cpu in range(4)
                         for i, name in enumerate(names)})
    maker.task(0, "swapper")
    for task in range(1, 40):
        maker.task(task, f"task {task % 30}")
    maker.map(0, KERNEL, 0x10000, 0, "[kernel.kallsyms]")
    time, dice = 1000, random.Random(1)
    for i in range(4000):
        cpu, time = i % 4, time + 100
        task = dice.randrange(8) if dice.randrange(50) else dice.randrange(8, 40)
        if i % 9 == 0:
            maker.switch(cpu, time, dice.randrange(12), blocked=bool(i % 3))
        else:
            maker.sample(cpu, time, task, KERNEL + dice.randrange(12) * 0x100,
                         [1000 + i if weights else 1, 500 + i * 2][:counters])
    maker.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        for i in range(11):
            name = "default_idle" if i == 3 else f"function_{i}"
            file.write(f"{KERNEL + i * 0x100:x} T {name}\n")
    return path


def a_page_of_c_prints_what_report_prints_by_task(tmp):
    program, env = built(tmp, "report_tasks")
    for path in (capture(tmp), capture(tmp, counters=2), capture(tmp, weights=False)):
        report = tap.run("report", "--sort", "task", path)
        said = command(program, path, env=env)
        assert said == report.stdout, (said, report.stdout)
        assert all(f"# {title}" in said for title in (
            "capture  : ", "lost     : ", "Samples: ", "Samples by task", "Scheduling by task",
            "CPUs (times in ms)", "No idling")), said
        assert "task 7\n" in said and "more rows" in said, said
    assert "counted" in said and "IPC" not in said, said


def the_page_says_what_is_damaged(tmp):
    program, env = built(tmp, "report_tasks")
    path = capture(tmp)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 100)
    done = subprocess.run([program, path], env=env, capture_output=True, text=True, timeout=300,
                          check=False)
    report = tap.run("report", "--sort", "task", path)
    assert done.returncode == report.returncode == 1, (done, report)
    assert done.stdout == report.stdout, done
    assert done.stderr.split(": ", 1)[1] in report.stderr, (done, report)


def top_symbols_are_those_of_the_report(tmp):
    program, env = built(tmp, "top_symbols")
    path = capture(tmp)
    report = tap.run("report", "-n", "--sort", "image,symbol", "--percent-limit", "0", path).stdout
    rows = re.findall(r"^ +[0-9.]+% +(\d+)  (\S+) +\[k\] (\S+)$", report, re.M)
    wanted = "".join(f"{int(samples):8}  {image}  {symbol}\n" for samples, image, symbol in rows[:10])
    assert command(program, path, env=env) == wanted and len(rows) >= 10, (wanted, report)


def who_ran_prints_the_time_of_each_task(tmp):
    program, env = built(tmp, "who_ran")
    path = capture(tmp)
    for cpu in 3, 0:
        sums = {}
        for line in command(program, path, str(cpu), env=env).splitlines():
            took, task = re.fullmatch(r" *[0-9.]+ s +([0-9.]+) us +(\d+)  .*", line).groups()
            sums[int(task)] = sums.get(int(task), 0) + round(float(took) * 1000)
        rows = [json.loads(line) for line in
                tap.run("report", "-C", cpu, "-j", path).stdout.splitlines()]
        wanted = {row["tid"]: row["run_ns"] for row in rows if row.get("run_ns")}
        assert sums == wanted and len(sums) > 3, (sums, wanted)


def the_tail_goes_on_where_it_was(tmp):
    program, env = built(tmp, "live_tail")
    settings = recorder.fake(FAKE_RUNNING=1, FAKE_PC=hex(KERNEL))
    done = subprocess.run([program, "2"], env={**settings, **env, "LD_PRELOAD": settings["LD_PRELOAD"]},
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and not done.stderr, done
    seen = {}
    for line in done.stdout.splitlines():
        time, cpu = re.match(r" *([0-9.]+) s  CPU (\d+) ", line).groups()
        # in order on each CPU, so none came twice
        assert float(time) >= seen.get(cpu, 0), line
        seen[cpu] = float(time)
    assert len(seen) == 2 and max(seen.values()) > 1, (seen, done.stdout[:500])


if __name__ == "__main__":
    recorder.main(globals())
