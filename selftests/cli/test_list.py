#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman list: what it lists is what -e takes, and what this machine can count."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402


def events(*args):
    done = tap.run("list", "-j", *args)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def generic_names_are_perfs_numbers(tmp):
    by_name = {e["name"]: e for e in events("--all")}
    for name, kind, config in [("cycles", 0, 0), ("instructions", 0, 1), ("cpu-clock", 1, 0),
                               ("context-switches", 1, 3), ("LLC-load-misses", 3, 0x10002),
                               ("branch-loads", 3, 5)]:
        assert (by_name[name]["type"], by_name[name]["config"]) == (kind, config), by_name[name]


def every_event_of_sysfs_is_listed(tmp):
    names = {e["name"] for e in events("--all")}
    base = "/sys/bus/event_source/devices"
    for pmu in os.listdir(base) if os.path.isdir(base) else []:
        folder = os.path.join(base, pmu, "events")
        for event in os.listdir(folder) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, event), encoding="utf-8") as file:
                if "." not in event and "?" not in file.read():
                    assert f"{pmu}/{event}/" in names, (pmu, event)


def what_cannot_be_counted_is_left_out_but_for_all(tmp):
    everything, some = events("--all"), events()
    refused = {e["name"] for e in everything if e["refused"] and "root" not in e["refused"]}
    assert {e["name"] for e in some} == {e["name"] for e in everything} - refused


def patterns_match_names_and_groups(tmp):
    assert {e["name"] for e in events("--all", "L1-icache-*")} == {
        f"L1-icache-{op}{miss}" for op in ("load", "store", "prefetch")
        for miss in ("-misses", "s" if op != "prefetch" else "es")}
    assert all(e["group"] == "cache" for e in events("--all", "cache"))
    done = tap.run("list", "--all", "xyzzy*")
    assert done.returncode == 2 and done.stdout == "" and "no event matches" in done.stderr


def people_get_a_heading_for_each_group_once(tmp):
    text = tap.run("list", "--all").stdout
    headings = re.findall(r"^(\S+):$", text, re.M)
    assert headings[:3] == ["hardware", "software", "cache"], headings
    assert len(headings) == len(set(headings)), headings


if __name__ == "__main__":
    tap.main(globals())
