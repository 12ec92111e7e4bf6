#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman record` says and leaves behind without a module."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "man",
                      "kbarman-record.1")


def record(tmp, *args, **kwargs):
    return tap.run("record", *args, cwd=tmp, **kwargs)


def refused(tmp, *args, says=""):
    """Exit 2, a line on stderr that begins with our name, and no file."""
    result = record(tmp, *args)
    lines = result.stderr.splitlines()
    assert result.returncode == 2, (args, result)
    assert not result.stdout, (args, result)
    assert 1 <= len(lines) <= 2 and lines[0].startswith("kbarman record: "), (args, lines)
    assert says in result.stderr, (args, lines)
    assert not os.listdir(tmp), os.listdir(tmp)


def no_module():
    if os.path.exists("/dev/kbarman"):
        raise tap.Skip("the module is loaded")


def help_is_on_stdout(tmp):
    for option in "-h", "--help":
        result = record(tmp, option)
        assert result.returncode == 0 and not result.stderr, result
        assert result.stdout.startswith("usage: kbarman record"), result.stdout


def manual_has_every_option(tmp):
    text = record(tmp, "--help").stdout
    with open(MANUAL, encoding="utf-8") as manual:
        described = manual.read().replace("\\-", "-")
    options = re.findall(r"^ +(?:(-\w), |)(?: *)(--[\w-]+)", text, re.M)
    assert len(options) >= 10, text
    for short, long in options:
        assert long in described, long
        assert short in described, short


def missing_module_is_one_line_with_the_remedy(tmp):
    no_module()
    for args in ["true"], ["-a"], ["-p", str(os.getpid())], ["-o", "x.cap", "--", "true"]:
        refused(tmp, *args, says="insmod kbarman.ko")


def command_does_not_run_if_recording_is_impossible(tmp):
    no_module()
    refused(tmp, "touch", os.path.join(tmp, "ran"))


def unknown_options_are_refused(tmp):
    refused(tmp, "--nonsense")
    refused(tmp, "-Z")
    refused(tmp, "-F")


def wrong_values_are_named(tmp):
    for option, values in {
            "-F": ["-1", "1k", "abc", "", "99999999999999999999"],
            "-c": ["0", "x", "-5"],
            "-m": ["0", "x", "-1", "4Q", "99999999999G"],
            "--mode": ["", "fast"],
            "--read-counters": ["", "0", "x", "switch,", "switches", "switch,0", "10001", "10,switch"],
            "--rotate": ["", "0", "x", "9", "9ms", "60001", "61s", "1m1s"],
            "--call-graph": ["", "dwarf", "lbr"],
            "--max-stack": ["", "0", "x", "1025"],
            "--max-tasks": ["", "0", "x", "262145"],
            "-p": ["", "0", "1,", "a", "1;2", "99999999999"],
            "-e": ["", "cycles,", "nonsense", "cycles:x", "nopmu/x/"],
    }.items():
        for value in values:
            refused(tmp, option, value, says=value)


def contradictions_are_refused(tmp):
    refused(tmp, "-F", "10", "-c", "10", says="not both")
    refused(tmp, "--max-stack", "5", says="-g")
    refused(tmp, "-F", "0", "-e", "page-faults", says="--read-counters")
    refused(tmp, "-F", "0", "-g", says="leave out -g")
    refused(tmp, "-F", "0", "-c", "10", "--read-counters", "switch", says="-F 0")
    refused(tmp, "-gstack", says="-gkernel")
    refused(tmp, "-p", "1", "-a", says="-p or -a, not both")
    refused(tmp, "-p", "1", "true", says="-p or a command, not both")


def several_lists_of_events_are_one(tmp):
    refused(tmp, "-e", "cycles", "-e", "nonsense", says="'nonsense'")
    refused(tmp, "-e", "nonsense", "-e", "cycles", says="'nonsense'")
    refused(tmp, "-e", ",".join(["cycles"] * 20), "-e", ",".join(["cycles"] * 13), says="too many")
    no_module()
    refused(tmp, "-e", "cycles", "-e", "{instructions,branches}:u", says="/dev/kbarman")


def processes_that_do_not_exist_are_named(tmp):
    refused(tmp, "-p", "2147483646", says="2147483646")


def options_of_the_command_are_its_own(tmp):
    no_module()
    refused(tmp, "ls", "--help", says="/dev/kbarman")
    refused(tmp, "--", "--help", says="/dev/kbarman")


if __name__ == "__main__":
    tap.main(globals())
