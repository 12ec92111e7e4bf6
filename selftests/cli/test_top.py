#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman top`, on a device that is not there: fake_device.c."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder


def kernel_function(*names):
    """The first function of these that this kernel has, and an address in it."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if name in names and kind in "tT" and int(address, 16):
                return name, int(address, 16) + 4
    raise tap.Skip("the kernel hides its addresses")


def top(tmp, *args, names=("schedule",), **settings):
    name, address = kernel_function(*names)
    log = os.path.join(tmp, "reads")
    done = tap.run("top", "-d", "0.6", *args, cwd=tmp,
                   env=recorder.fake(FAKE_PC=hex(address), FAKE_READS=log, **settings))
    assert done.returncode == 0, done
    with open(log, encoding="utf-8") as file:
        return name, done, [line.rstrip("\n") for line in file]


def the_kernels_symbols_are_read_once_for_all_refreshes(tmp):
    name, done, reads = top(tmp, "-j", "-n", "5")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(row["kind"] == "interval" for row in rows) == 5, done
    assert sum(row["kind"] == "symbol" and row["symbol"] == name for row in rows) >= 1, rows
    # where the kernel's text is, before all, and the names
    assert reads.count("/proc/kallsyms") == 2, reads


def a_refresh_reads_no_image_anew(tmp):
    image = os.path.join(tmp, "program")
    # of whose first bytes some are a function
    subprocess.run(["cc", "-x", "c", "-", "-Wl,-z,noseparate-code", "-o", image], check=True,
                   input=b'void found(void) { asm(".skip 4096"); } int main(void) { found(); }')
    reads = {}
    for refreshes in 1, 5:
        _, done, log = top(tmp, "-j", "-n", refreshes, FAKE_IMAGES=image)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        named = [row for row in rows if row["kind"] == "symbol" and row["image"] == image]
        assert sum(row["kind"] == "interval" for row in rows) == refreshes, done
        assert any(row["symbol"] == "found" for row in named), rows
        reads[refreshes] = log.count(image)
        os.remove(os.path.join(tmp, "reads"))
    # once to look at it, and once to decode it
    assert reads[5] == reads[1] and 1 <= reads[1] <= 2, reads


def they_are_read_again_when_modules_come_or_go(tmp):
    _, _, reads = top(tmp, "-j", "-n", "5", FAKE_MODULES="other")
    assert reads.count("/proc/kallsyms") == 6, reads
    # one that is used by more or by fewer is the same
    os.remove(os.path.join(tmp, "reads"))
    _, _, reads = top(tmp, "-j", "-n", "5", FAKE_MODULES="same")
    assert reads.count("/proc/kallsyms") == 2, reads


def the_idle_loop_is_told_from_work(tmp):
    idle = {"names": ("do_idle", "call_cpuidle", "default_idle_call", "cpu_do_idle"),
            "FAKE_TASK": 0}
    name, done, _ = top(tmp, "-n", "1", **idle)
    assert "(idle loop: 100.00%)" in done.stdout and name not in done.stdout, done
    name, done, _ = top(tmp, "-n", "1", "-j", **idle)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["symbol"], row["idle"]) for row in rows if row["kind"] == "symbol"] == \
        [(name, True)], rows
    # the idle task's work is work, and a task's is
    for task in 0, 1:
        _, done, _ = top(tmp, "-n", "1", FAKE_TASK=task)
        assert "(idle loop: 0.00%)" in done.stdout and "schedule" in done.stdout, done


def shares_have_colours_for_those_who_want_them(tmp):
    for option, coloured in ("--color", True), ("--color=never", False), ("-d0.2", False):
        _, done, _ = top(tmp, "-n", "1", option)
        assert ("\033[31m 100.00%\033[m" in done.stdout) == coloured, done


# ---- what tasks wait for

FILE, IOWAIT = 3, 1
TITLE = "Task, and what it waits for"


def refreshes(tmp, *args, **settings):
    """The lines of each refresh."""
    found = []
    for line in top(tmp, "-j", *args, FAKE_OBJECTS=1, FAKE_CPUS=1, **settings)[1].stdout.splitlines():
        row = json.loads(line)
        if row["kind"] == "interval":
            found.append([])
        found[-1].append(row)
    return found


def waits_of(refresh):
    return [row for row in refresh if row["kind"] == "waits_for"]


def what_tasks_wait_for_is_shown(tmp):
    for refresh in refreshes(tmp, "-n", "3"):
        head, found = refresh[0], waits_of(refresh)
        assert {(row["object"], row["iowait"], row.get("object_value")) for row in found} > {
            ("pipe", False, 4711), ("file", True, 12)}, found
        assert all(row["task"] == "fake task" and row["tid"] == 1 and row["waits"] > 9 for row in found), found
        assert 0 < sum(row["sum_ns"] for row in found) <= head["until_ns"] - head["from_ns"], (head, found)
        assert all(0 < row["longest_ns"] <= row["sum_ns"] for row in found), found
        assert sum(row["tasks"] for row in found) <= 1, found
        assert all((row["now_ns"] > 0) == bool(row["tasks"]) for row in found), found
    _, done, _ = top(tmp, "-n", "1", FAKE_OBJECTS=1)
    shown = done.stdout.split(TITLE + "\n")[1].split("\n\n")[0].splitlines()
    assert shown and all("  fake task: " in line for line in shown), done
    assert any(line.endswith(" file 8:1 inode 12 (disk)") for line in shown), done


def is_held_up(row, head):
    """By the disk, for a time that is not small: on a busy host the fake device's own task may be so, too."""
    return row["iowait"] and row["sum_ns"] >= (head["until_ns"] - head["from_ns"]) // 100


def what_holds_a_task_up_is_in_front(tmp):
    for flags, place in (IOWAIT, 0), (0, -1):
        for refresh in refreshes(tmp, "-n", "3", FAKE_RATE=2,
                                 FAKE_WAITS=f"77.74.{FILE}.{flags}.8388609.99")[1:]:
            rows = [row for row in waits_of(refresh) if row["tid"] == 77 or not is_held_up(row, refresh[0])]
            assert len(rows) > 1 and rows[place]["tid"] == 77, (flags, refresh)


def what_is_not_recorded_has_no_table(tmp):
    for args, settings in (("--no-objects",), {"FAKE_OBJECTS": 1}), ((), {}):
        _, done, _ = top(tmp, "-n", "1", *args, **settings)
        assert TITLE not in done.stdout and "Symbol" in done.stdout, done
        _, done, _ = top(tmp, "-j", "-n", "1", *args, **settings)
        assert "waits_for" not in done.stdout, done


def who_waits_for_long_stays_when_the_buffers_are_overwritten(tmp):
    """A CPU's megabyte holds the records of some seconds."""
    now = []
    for refresh in refreshes(tmp, "-n", "14", FAKE_RATE=4, FAKE_WAITS=f"77.0.{FILE}.0.8388609.99"):
        head, (row,) = refresh[0], [row for row in waits_of(refresh) if row["tid"] == 77]
        assert (row["object"], row["object_value"], row["tasks"], row["waits"]) == ("file", 99, 1, 1), row
        assert row["longest_ns"] == row["now_ns"] and row["sum_ns"] <= head["until_ns"] - head["from_ns"], (head, row)
        # nothing happens: it is behind what does
        assert not now or waits_of(refresh)[-1]["tid"] == 77, refresh
        now.append(row["now_ns"])
    assert now == sorted(now) and now[-1] > 14 * 500_000_000, now


def waits_for(file):
    """This process waits for @file: FAKE_WAITS."""
    with open(f"/proc/self/fdinfo/{file.fileno()}", encoding="ascii") as info:
        mount = re.search(r"^mnt_id:\t(\d+)\nino:", info.read(), re.M)
    if not mount:
        raise tap.Skip("this Linux does not say which inode a descriptor has")
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        major, minor = re.search(rf"^{mount[1]} \d+ (\d+):(\d+) ", mounts.read(), re.M).groups()
    return f"{os.getpid()}.0.{FILE}.0.{int(major) << 20 | int(minor)}.{os.fstat(file.fileno()).st_ino}"


def top_says(tmp, is_it, *args, **settings):
    """
    The first line that is_it(), however many refreshes that takes: the search for names has little time in each. None
    of the lines before steers a terminal.
    """
    env = recorder.fake(FAKE_OBJECTS=1, FAKE_NAMESPACE=0, FAKE_RATE=1, **settings)
    with subprocess.Popen([tap.KBARMAN, "top", "-d", "0.6", "-n", "400", *args], cwd=tmp, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        tap.ENDINGS.append(process.kill)
        for line in process.stdout:
            assert "\033" not in line, line
            if is_it(line):
                process.terminate()
                return line
    raise AssertionError("top ended")


def what_a_task_waits_for_has_the_name_that_it_has_now(tmp):
    path = os.path.join(tmp, "\033[31mred\n")
    with open(path, "wb") as file:
        what = waits_for(file)
        top_says(tmp, re.compile(r" /\S*/\?\[31mred\?$", re.M).search, FAKE_WAITS=what)
        row = json.loads(top_says(tmp, lambda line: '"name":' in line and f'"tid":{os.getpid()},' in line, "-j",
                                  FAKE_WAITS=what))
    assert (row["kind"], row["name"]) == ("waits_for", path), row


if __name__ == "__main__":
    recorder.main(globals())
