#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a VM left in results/ of idling and of times is what Linux and the idle driver say.

    idle.py GUEST-DIRECTORY TOOL

selftests/vm/idler.c made the captures: leave.cap with the log of the driver of
selftests/vm/module/idle_states.c in leave.log, misses.cap and sums.cap.
"""
# pylint: disable=unused-argument
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position,import-error

RESULTS = os.path.join(sys.argv[1], "results")
TOOL = sys.argv[2]
TICK = 1_000_000_000 // 250     # Debian's kernels
CLOCK_TICK = 1_000_000_000 // 100


def path(name):
    return os.path.join(RESULTS, name)


@functools.cache
def told(verb, name, *options):
    """The tool's lines of a capture."""
    ran = subprocess.run([TOOL, verb, "--json", *options, path(name + ".cap")], check=False,
                         capture_output=True, text=True)
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def of_kind(lines, kind, **wanted):
    return [line for line in lines if line["kind"] == kind and
            all(line.get(key) == value for key, value in wanted.items())]


def words(name):
    with open(path(name), encoding="utf-8") as file:
        return [line.split() for line in file]


# ---- leaving idle

def log():
    """The driver's lines of its own states."""
    lines = words("leave.log")
    assert ["full"] not in lines
    return [[line[0], *map(int, line[1:])] for line in lines]


def waiter():
    """Its number and its CPU."""
    return next((int(line[1]), int(line[2])) for line in words("leave.out") if line[0] == "waiter")


def only(lines, what):
    assert len(lines) == 1, (what, lines)
    return lines[0]


def wakes():
    """Of each wakeup of the waiter in one of the states: its line, and that of how its CPU left. Not
    of those while the CPU came or went: nor of those in whose two times it did both, and is again
    where it was."""
    lines, (task, cpu) = log(), waiter()
    periods = [line for line in lines if line[0] in ("enter", "leave") and line[1] == cpu]
    for wake in [line for line in lines if line[0] == "wake" and line[2] == task]:
        before = [line for line in periods if line[-1] < wake[-2]]
        behind = [line for line in periods if line[-2] > wake[-1]]
        if before and behind and len(before) + len(behind) == len(periods) and \
                (before[-1][0], behind[0][0]) == ("enter", "leave"):
            yield wake, behind[0]


def record_at(records, line, **wanted):
    """The one record with a time between the two that the driver has of an event."""
    return only([record for record in records if line[-2] <= record["timestamp"] <= line[-1] and
                 all(record.get(key) == value for key, value in wanted.items())], line)


@functools.cache
def left():
    """Of each of these wakeups: state, the part of the delay behind it, the shortest and the longest
    time that leaving may have taken, all in ticks; and when it was and how long it took by the
    records, in ns."""
    records, times = of_kind(told("dump", "leave"), "record"), []
    halts = [record for record in records if record["type"] == "halt"]
    wakings = [record for record in records if record.get("what") == "waking"]
    for wake, leave in wakes():
        waking = record_at(wakings, wake, cpu=wake[1], about_id=waiter()[0])
        halt = record_at(halts, leave, cpu=leave[1], entered=0)
        times.append({"state": leave[2], "delay": leave[4] - max(leave[3], wake[-1]),
                      "least": leave[-2] - wake[-1], "most": leave[-1] - wake[-2],
                      "ticks": halt["timestamp"] - waking["timestamp"],
                      "at": waking["at_ns"], "ns": halt["at_ns"] - waking["at_ns"]})
    return times


def ns_of(ticks):
    header = only(of_kind(told("dump", "leave"), "header"), "header")
    return ticks * header["timestamp_multiplier"] // header["timestamp_divisor"]


def leaving():
    """Of the waiter, from its first wakeup in the log on."""
    since = min(time["at"] for time in left())
    return told("report", "leave", "--latency", "--tid", str(waiter()[0]), "--time",
                f"{since // 10**9}.{since % 10**9:09},")


def each_time_of_leaving_a_state_is_what_the_driver_says(tmp):
    for time in left():
        print("# state {state}: busy for {delay} ticks; leaving took {least} to {most} ticks by the "
              "driver, {ticks} by the records".format(**time))
        assert time["least"] <= time["ticks"] <= time["most"], time
    for state in range(3):
        assert sum(time["state"] == state for time in left()) >= 3, state


def each_state_has_its_delays_in_the_report(tmp):
    """Sums and maxima are those of the records to the nanosecond, and not below the delays."""
    unsure = len([line for line in log() if line[0] == "wake"]) - len(left())
    for state in range(3):
        mine = [time for time in left() if time["state"] == state]
        row = only(of_kind(leaving(), "latency_idle", idle_state=state), state)
        delays = [ns_of(time["delay"]) for time in mine]
        print(f"# state {state}: {row['waits']} waits, {row['sum_ns']} ns, of these {sum(delays)} ns "
              "busy")
        assert len(mine) <= row["waits"] <= len(mine) + unsure, (row, mine)
        assert row["sum_ns"] >= sum(time["ns"] for time in mine) >= sum(delays), (row, mine)
        assert row["max_ns"] >= max(time["ns"] for time in mine), (row, mine)
        if row["waits"] > len(mine):
            print(f"# {unsure} wakeups while the CPU came or went")
            continue
        assert row["sum_ns"] == sum(time["ns"] for time in mine), (row, mine)
        assert row["max_ns"] == max(time["ns"] for time in mine), (row, mine)


def halted_again(time, wait):
    """The CPU may leave its state by itself just before the interrupt for the waiter, and halt once
    more: ns of such halts behind the first one."""
    halts = [record for record in of_kind(told("dump", "leave"), "record")
             if record["type"] == "halt" and record["cpu"] == wait["cpu"] and
             time["at"] + time["ns"] < record["at_ns"] <= time["at"] + wait["duration_ns"]]
    return sum(record["at_ns"] * (-1 if record["entered"] else 1) for record in halts)


def each_wait_has_its_delay_in_the_report(tmp):
    waits = of_kind(leaving(), "latency_wait", preempted=False)
    for time in left():
        mine = [wait for wait in waits if wait["at_ns"] == time["at"]]
        if not mine and len(waits) == 10 and time["ns"] <= min(wait["duration_ns"] for wait in waits):
            continue            # it has the ten longest
        wait = only(mine, time)
        assert wait["idle_state"] == time["state"], (wait, time)
        assert ns_of(time["delay"]) - 1 <= wait["halt_ns"] <= \
            time["ns"] + halted_again(time, wait), (wait, time)


# ---- states that do not pay

def readings(name):
    """What was read around and in a recording: {reading: {(what, cpu or task, ...): numbers}}."""
    found = {}
    for reading, *rest in words(name + ".out"):
        if rest[0].isdigit():
            key, values = ("state", int(rest[0]), int(rest[1])), rest[2:]
        else:
            key, values = (rest[0], int(rest[1])), rest[2:]
        found.setdefault(reading, {})[key] = {
            one: int(number) for one, number in (value.split("=") for value in values)}
    assert sorted(found) == ["A", "B", "C", "D"], sorted(found)
    return found


def differences(name, what):
    """From A to D: nothing happens between A and B, and between C and D."""
    got = readings(name)
    for one, other in "AB", "CD":
        for key in got[one]:
            if key[0] == what:
                assert got[one][key] == got[other][key], (key, got[one][key], got[other][key])
    return {key[1:]: {one: got["D"][key][one] - number for one, number in numbers.items()}
            for key, numbers in got["A"].items() if key[0] == what}


def above_and_below_are_those_of_sysfs(tmp):
    lines = told("report", "misses", "--irq")
    for (cpu, state), counted in sorted(differences("misses", "state").items()):
        rows = of_kind(lines, "halts", cpu=cpu, idle_state=state)
        mine = {key: sum(row[key] for row in rows) for key in ("above", "below", "count")}
        print(f"# CPU {cpu}, state {state}: {counted}, the report: {mine}")
        assert mine["above"] == counted["above"], (cpu, state)
        assert mine["below"] == counted["below"], (cpu, state)
    # On a fast machine no halt is longer than its state asks for.
    assert sum(row["above"] + row["below"] for row in of_kind(lines, "halts"))


def each_halt_is_one_that_linux_counts(tmp):
    """Which of them a state has is not compared: the driver took others than it was asked for."""
    lines, usage = told("report", "misses", "--irq"), {}
    for (cpu, _), counted in differences("misses", "state").items():
        usage[cpu] = usage.get(cpu, 0) + counted["usage"]
    for cpu, counted in usage.items():
        mine = sum(row["count"] for row in of_kind(lines, "halts", cpu=cpu))
        print(f"# CPU {cpu}: {counted} by Linux, {mine} halts")
        assert mine == counted and mine > 50, (cpu, mine, counted)


def states_that_would_have_paid_are_those_of_the_driver(tmp):
    """Names and residencies are the driver's, and the worst halts are far from any limit."""
    lines, residencies = told("report", "misses", "--irq"), [1_000, 3_000_000, 20_000_000]
    for row in of_kind(lines, "halts"):
        assert row["idle_state_name"] == f"T{row['idle_state']}", row
        for key in "above", "below":
            paid = of_kind(lines, "halts_paid", cpu=row["cpu"], idle_state=row["idle_state"], was=key)
            print(f"# CPU {row['cpu']}, state {row['idle_state']}, {key}:",
                  *(f"{line['count']} times state {line['paid']}" for line in paid))
            assert sum(line["count"] for line in paid) == row[key], (row, paid)
    worst = of_kind(lines, "halt_miss")
    assert len(worst) >= 10, len(worst)
    for halt in worst:
        fits = [state for state, residency in enumerate(residencies) if residency <= halt["duration_ns"]]
        assert halt["paid"] == max(fits), halt
        assert (halt["paid"] < halt["idle_state"]) == (halt["was"] == "above"), halt


def each_halt_has_one_end(tmp):
    """But for the last one of a CPU, which may go on."""
    for name in "leave", "misses", "random":
        lines = told("report", name, "--irq")
        for cpu in {row["cpu"] for row in of_kind(lines, "halts")}:
            halts, ends = (sum(row["count"] for row in of_kind(lines, kind, cpu=cpu))
                           for kind in ("halts", "halt_end"))
            assert halts - 1 <= ends <= halts, (name, cpu, halts, ends)


# ---- sums

def tasks_ran_and_waited_as_long_as_linux_says(tmp):
    """Within one tick; and as often, exactly."""
    ran = of_kind(told("report", "sums"), "task_time")
    for (task,), counted in sorted(differences("sums", "worker").items()):
        row = only([line for line in ran if line["tid"] == task], task)
        waits = [line for line in of_kind(told("report", "sums", "--latency"), "latency_task")
                 if line["tid"] == task]
        waited, times = (sum(line[key] for line in waits) for key in ("sum_ns", "waits"))
        print(f"# {task}: ran {row['run_ns']} ns ({row['run_ns'] - counted['ran']:+}), waited {waited} "
              f"ns ({waited - counted['waited']:+}), {times} times ({times - counted['times']:+})")
        assert abs(row["run_ns"] - counted["ran"]) <= TICK, (row, counted)
        assert abs(waited - counted["waited"]) <= TICK, (waits, counted)
        assert times == counted["times"] == row["runs"], (times, row, counted)


def cpus_idled_as_long_as_linux_says(tmp):
    """Within one tick. /proc/stat has that time in larger units."""
    stat = differences("sums", "stat")
    for (cpu,), counted in sorted(differences("sums", "timers").items()):
        row = only(of_kind(told("report", "sums", "--irq"), "cpu_time", cpu=cpu), cpu)
        mine, theirs = row["halt_ns"] + row["idle_ns"], stat[(cpu,)]["ticks"] * CLOCK_TICK
        print(f"# CPU {cpu}: idle {mine} ns ({mine - counted['ns']:+}), {theirs} ns by /proc/stat")
        assert abs(mine - counted["ns"]) <= TICK, (row, counted)
        assert abs(mine - theirs) <= CLOCK_TICK + TICK, (row, counted)


def all_time_of_a_cpu_is_accounted_for(tmp):
    for name in "leave", "misses", "random", "random-gaps", "sums":
        for row in of_kind(told("report", name, "--irq"), "cpu_time"):
            parts = sum(row[kind + "_ns"] for kind in ("unknown", "lost", "task", "idle", "halt",
                                                       "softirq", "irq", "ipi"))
            assert parts == row["last_ns"] - row["first_ns"], (name, row)
            assert name == "random-gaps" or not row["lost_ns"], (name, row)
    assert only(of_kind(told("report", "random-gaps", "--irq"), "latency"), "head")["gaps"]


if __name__ == "__main__":
    tap.main(globals())
