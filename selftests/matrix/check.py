#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py GUEST-DIRECTORY TOOL FORMAT: what a kernel of any word size and byte order left in
GUEST-DIRECTORY/results is read by TOOL, on this machine, as what it was there: see
selftests/matrix/capture.c. FORMAT is what it must be, as "BARMAN32 little". Prints TAP."""
import collections
import glob
import json
import os
import subprocess
import sys

GUEST, TOOL, FORMAT = sys.argv[1:4]
KINDS = {"switches": "task_switch", "halts": "halt", "samples": "sample_pc"}


def run(*arguments):
    return subprocess.run([TOOL, *arguments], check=False, capture_output=True, text=True)


def read_truth(path):
    with open(path, encoding="utf-8") as file:
        return {key: int(value) for key, value in (line.split() for line in file)}


class Capture:
    def __init__(self, path):
        self.path = path
        self.truth = read_truth(path.removesuffix("cap") + "truth")
        self.dump = collections.defaultdict(list)
        ran = run("dump", "--json", path)
        assert ran.returncode == 0, (path, ran.returncode, ran.stderr)
        for line in map(json.loads, ran.stdout.splitlines()):
            self.dump[line["kind"]].append(line)


# ---- promises, of all captures

def captures_are_whole(captures):
    for capture in captures:
        ran = run("check", capture.path)
        assert ran.returncode == 0, (capture.path, ran.stdout, ran.stderr)


def word_and_byte_order_are_those_of_the_machine(captures):
    for capture in captures:
        header = capture.dump["header"][0]
        assert f"{header['magic']} {header['endian']}" == FORMAT, header
        assert int(header["magic"].removeprefix("BARMAN")) == 8 * capture.truth["word"]


def every_record_is_read(captures):
    for capture in captures:
        records, truth = capture.dump["record"], capture.truth
        assert len(records) == truth["records"], (capture.path, len(records), truth)
        assert truth["written"] == truth["overwritten"] + truth["records"], truth
        for key, kind in KINDS.items():
            got = sum(record["type"] == kind for record in records)
            assert got == truth[key], (capture.path, kind, got, truth)


def records_are_of_their_core_and_in_order(captures):
    for capture in captures:
        records = capture.dump["record"]
        assert {record["cpu"] for record in records} <= {capture.truth["core"]}
        times = [record["timestamp"] for record in records]
        assert times == sorted(times), capture.path


def the_known_switches_are_there(captures):
    for capture in captures:
        truth = capture.truth
        to_echo = sum(record["type"] == "task_switch" and record["tid"] == truth["echo"]
                      for record in capture.dump["record"])
        assert to_echo >= truth["rounds"], (capture.path, to_echo, truth)


def tasks_and_images_have_names(captures):
    for capture in captures:
        names = {task["task"] for task in capture.dump["task"]}
        images = {os.path.basename(row["image"]) for row in capture.dump["image"]}
        assert {"swapper", "capture"} <= names, names
        assert "capture" in images, images
        assert capture.dump["header"][0]["target_name"] == "matrix"


def main():
    paths = sorted(glob.glob(os.path.join(GUEST, "results", "*.cap")))
    promises = [captures_are_whole, word_and_byte_order_are_those_of_the_machine,
                every_record_is_read, records_are_of_their_core_and_in_order,
                the_known_switches_are_there, tasks_and_images_have_names]
    print(f"1..{len(promises)}")
    captures = failed = 0
    for number, promise in enumerate(promises, 1):
        try:
            captures = captures or [Capture(path) for path in paths]
            assert captures, "no captures in " + GUEST
            promise(captures)
            print(f"ok {number} - {promise.__name__}")
        except (AssertionError, KeyError, OSError, ValueError) as error:
            failed = 1
            print(f"# {type(error).__name__}: {str(error)[:1000]}".replace("\n", "\n# "))
            print(f"not ok {number} - {promise.__name__}")
    if captures:
        print("# records", sum(len(capture.dump["record"]) for capture in captures))
    sys.exit(failed)


main()
