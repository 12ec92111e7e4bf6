#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman record --poll` and `--chart`: numbers that are read while it records."""
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import test_record as recorder


def recorded(tmp, *args, command=("sleep", "0.5"), status=0):
    """What `record` said; the capture, and (series' name, core, value shown, time) of each value."""
    done = recorder.record(tmp, *args, *command, env=recorder.fake(FAKE_RATE=1))
    assert done.returncode == status, done
    capture, records = recorder.check(os.path.join(tmp, "kbarman.cap"))
    values = []
    for kind, core, when, data in records:
        if kind == "custom_counter":
            _, series, value = struct.unpack_from("=IIq", data, 16)
            row = capture.series[series]
            values.append((capture.string(row[1]), core, value * row[5], when))
    return done, capture, values


def series(capture):
    return {(capture.string(capture.charts[row[0]][0]), capture.string(row[1]),
             capture.string(row[2])) for row in capture.series if capture.string(row[1])} - {("Losses", "Lost records", "fake")}


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def a_files_number_is_followed(tmp):
    path = write(os.path.join(tmp, "number"), "17 apples\n")
    _, capture, values = recorded(
        tmp, "--poll", f"pond:frogs={path}@50",
        command=("sh", "-c", f"sleep 0.3; echo 23 >{path}.new; mv {path}.new {path}.x; "
                             f"echo 23 >{path}; sleep 0.3"))
    numbers = [value for _, _, value, _ in values]
    assert set(numbers) == {17, 23} and numbers == sorted(numbers), numbers
    times = [when for _, _, _, when in values]
    assert times == sorted(times) and times[-1] - times[0] > 300e6, times
    assert ("pond", "frogs", "") in {(c, n, "") for c, n, _ in series(capture)}, series(capture)


def fractions_and_signs_are_kept(tmp):
    one = write(os.path.join(tmp, "one"), " 3.25\n")
    two = write(os.path.join(tmp, "two"), "-4.5")
    values = recorded(tmp, "--poll", f"one={one}", "--poll", f"two={two}@20")[2]
    assert {(name, round(value, 6)) for name, _, value, _ in values} == {("one", 3.25),
                                                                       ("two", -4.5)}, values


def an_at_sign_in_a_path_is_no_rate(tmp):
    os.makedirs(os.path.join(tmp, "soc@0"))
    path = write(os.path.join(tmp, "soc@0", "temp"), "41")
    last = write(os.path.join(tmp, "bus@x"), "42")
    number = write(os.path.join(tmp, "cpu@5"), "43")
    values = recorded(tmp, "--poll", f"heat={path}", "--poll", f"fast={path}@20", "--poll",
                      f"bus={last}", "--poll", f"cpu={number}@10")[2]
    assert {(name, value) for name, _, value, _ in values} == \
        {("heat", 41), ("fast", 41), ("bus", 42), ("cpu", 43)}, values


def the_rate_is_as_asked(tmp):
    path = write(os.path.join(tmp, "number"), "1")
    _, capture, values = recorded(tmp, "--poll", f"slow={path}@2", "--poll", f"fast={path}@20",
                                  command=("sleep", "1.2"))
    seconds = (capture.last_timestamp - capture.base) / 1e9
    slow = sum(name == "slow" for name, _, _, _ in values)
    fast = sum(name == "fast" for name, _, _, _ in values)
    # at once, then by the rate, and at the end; never more often, less on a busy machine
    assert 2 <= slow <= 2 * seconds + 3 and slow <= fast <= 20 * seconds + 3, (slow, fast, seconds)


def charts_tell_of_the_machine(tmp):
    def meminfo():
        with open("/proc/meminfo", encoding="ascii") as file:
            return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}

    def interrupts():
        with open("/proc/interrupts", encoding="ascii") as file:
            cpus = len(file.readline().split())
            rows = [line.split()[1:1 + cpus] for line in file]
        return sum(int(n) for row in rows if len(row) == cpus and
                   all(text.isdigit() for text in row) for n in row)

    before, first = interrupts(), meminfo()
    _, capture, values = recorded(tmp, "--chart", "runnable@20,memory,irq@50",
                                  command=("sh", "-c", "sleep 0.6"))
    after, last = interrupts(), meminfo()
    assert {(chart, name) for chart, name, _ in series(capture)} == {
        ("Runnable tasks", "runnable"), ("Memory", "used"), ("Memory", "free"),
        ("Memory", "cached"), ("Memory", "swapped"), ("Interrupts", "interrupts")}
    by_name = {name: [entry for entry in values if entry[0] == name]
               for name in {entry[0] for entry in values}}
    assert 0 < sum(entry[2] for entry in by_name["interrupts"]) <= after - before
    assert all(0 <= entry[2] < 100000 for entry in by_name["runnable"])
    total, slack = last["MemTotal"], 4 << 30
    low = min(m["MemTotal"] - m["MemAvailable"] for m in (first, last))
    high = max(m["MemTotal"] - m["MemAvailable"] for m in (first, last))
    assert all(low - slack <= entry[2] <= high + slack for entry in by_name["used"]), (low, high)
    assert all(0 < entry[2] < total for entry in by_name["free"] + by_name["cached"])
    assert len([row for row in capture.series if capture.string(row[1])]) == 7


def what_this_machine_cannot_tell_is_named(tmp):
    for chart, path, says in (("freq", "cpufreq/scaling_cur_freq", "cpufreq"),
                              ("idle", "cpuidle/state0/time", "cpuidle")):
        done = recorder.record(tmp, "--chart", chart, "sleep", "0.2")
        if os.path.exists(f"/sys/devices/system/cpu/cpu0/{path}"):
            assert done.returncode == 0, done
        else:
            assert done.returncode == 2 and says in done.stderr, done


def what_is_wrong_is_named_before_anything_runs(tmp):
    text = write(os.path.join(tmp, "text"), "no number\n")
    good = write(os.path.join(tmp, "good"), "1\n")
    for args, says in (
            (["--poll", "x=/no/such/file"], "/no/such/file"),
            (["--poll", f"x={text}"], "number"),
            (["--poll", "x"], "as in"), (["--poll", "=x"], "as in"), (["--poll", "x="], "as in"),
            (["--poll", f":x={good}"], "name"), (["--poll", f"{'x' * 64}={good}"], "63"),
            (["--poll", f"x={good}@0"], "1 to 1000"), (["--poll", f"x={good}@1001"], "1 to 1000"),
            (["--chart", ""], "list"), (["--chart", "weather"], "freq"),
            (["--chart", "irq@x"], "1 to 1000"), (["--chart", "irq,irq"], "once")):
        done = recorder.record(tmp, *args, "touch", "ran")
        assert done.returncode == 2 and says in done.stderr, (args, done)
    assert sorted(os.listdir(tmp)) == ["good", "text"], os.listdir(tmp)


def a_file_that_goes_is_told_of(tmp):
    path = write(os.path.join(tmp, "number"), "1")
    done, _, values = recorded(tmp, "--poll", f"x={path}@20",
                               command=("sh", "-c", f"sleep 0.3; : >{path}; sleep 0.3"))
    assert values and "could not be read" in done.stderr, done


if __name__ == "__main__":
    recorder.main(globals())
