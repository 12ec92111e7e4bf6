#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a VM recorded of programs that others wrote (servers.sh) is what Linux and bpftrace say.

    servers.py GUEST-DIRECTORY TOOL
"""
import bisect
import collections
import functools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

RESULTS = os.path.join(sys.argv[1], "results")
TOOL = os.path.abspath(sys.argv[2])
PROGRAMS = "redis", "nginx", "go", "postgres", "fio", "make", "python"
PAIRS = (("redis", "redis-benchmark", "redis-server"), ("nginx", "ab", "nginx"),
         ("postgres", "pgbench", "postgres"))
# Linux's own tasks, which may have ended when the others were listed
KERNEL = re.compile(r"(swapper|kworker/.*|kbarman)$")


def tool(*args):
    ran = subprocess.run([TOOL, *args], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, (args, ran.returncode, ran.stderr)
    return ran.stdout


def of(name, kind):
    return os.path.join(RESULTS, f"{name}.{kind}")


def lines(name, kind):
    with open(of(name, kind), encoding="utf-8") as file:
        return file.read().splitlines()


@functools.cache
def query(name, sql):
    return json.loads(tool("query", "--json", of(name, "cap"), sql) or "[]")


def switches(name):
    return query(name, "SELECT at_ns, tid, task, next_tid, blocked, state, object, call "
                       "FROM switches")


@functools.cache
def kernels_tasks(name):
    return frozenset(int(line) for line in lines(name, "kernel"))


def is_kernels(name, switch):
    return switch["tid"] in kernels_tasks(name) or (
        switch["call"] is None and switch["task"] and KERNEL.match(switch["task"]))


def what_tasks_wait_for_is_known(tmp):
    for name in PROGRAMS:
        waits = [switch for switch in switches(name) if switch["blocked"] and switch["tid"] and
                 switch["state"] not in "XZ" and not is_kernels(name, switch)]
        known = sum(switch["object"] != "none" for switch in waits)
        print(f"# {name}: {known} of {len(waits)} waits have an object")
        assert len(waits) > 100 and known >= 0.999 * len(waits), [
            switch for switch in waits if switch["object"] == "none"][:5]


def the_runtime_of_go_has_no_locks_whose_holder_is_known(tmp):
    waits = [row["object_id"] for row in query(
        "go", "SELECT object_id FROM switches WHERE object = 'futex' AND task = 'hey'")]
    assert len(waits) > 100 and not any(waits), (len(waits), [holder for holder in waits if holder][:5])


@functools.cache
def call_names():
    """Of the machine: by number, as far as a call has ended. Outside of calls there is -1."""
    rows = [row for name in PROGRAMS
            for row in query(name, "SELECT DISTINCT number, call FROM syscalls")]
    return {-1: None, **{row["number"]: row["call"] for row in rows}}


def samples(name):
    """Of each sample of a task that waits: its call's number, and the capture's switch."""
    base = int(query(name, "SELECT value FROM facts WHERE key = 'raw_base'")[0]["value"])
    events = collections.defaultdict(list)
    for switch in switches(name):
        events[switch["next_tid"]].append((switch["at_ns"], None))
        events[switch["tid"]].append((switch["at_ns"], switch))
    end = max(switch["at_ns"] for switch in switches(name))
    for line in lines(name, "samples"):
        begin, until, task, call = (int(word) for word in line.split())
        its = events.get(task, [])
        at = bisect.bisect_right(its, begin - base, key=lambda event: event[0]) - 1
        # it ran or was about to, or the recording had not begun or was over
        if at < 0 or until - base > end or (at + 1 < len(its) and its[at + 1][0] <= until - base):
            continue
        switch = its[at][1]
        if switch and switch["blocked"] and not is_kernels(name, switch):
            yield call, switch


def linux_says_the_same(tmp):
    agree = others = 0
    for name in PROGRAMS:
        of_it = [(call_names()[call], switch) for call, switch in samples(name)
                 if call in call_names()]
        wrong = [(call, switch) for call, switch in of_it if call != switch["call"]]
        print(f"# {name}: {len(of_it) - len(wrong)} of {len(of_it)} samples agree", *wrong[:3])
        agree += len(of_it) - len(wrong)
        others += len(wrong)
    assert agree > 500 and agree >= 0.995 * (agree + others), (agree, others)


@functools.cache
def counted(name):
    """What bpftrace counted: {("ab", "nginx"): 291, ("requests",): 42}"""
    found = (re.match(r"@(?:\[(.*)\]|(\w+)): (\d+)$", line) for line in lines(name, "counts"))
    return {tuple((match[1] or match[2]).split(", ")): int(match[3]) for match in found if match}


def wakeups_are_as_many_as_bpftrace_counts(tmp):
    for name, client, server in PAIRS:
        for waker, woken in (client, server), (server, client):
            rows = query(name, "SELECT count(*) AS n FROM wakeups "
                               f"WHERE task = '{waker}' AND woken_task = '{woken}'")
            print(f"# {waker} wakes {woken} {rows[0]['n']} times")
            assert rows[0]["n"] == counted(name)[waker, woken] > 50, counted(name)


def the_critical_path_alternates_between_client_and_server(tmp):
    """But where one of them was not asleep when it was woken, or a timer woke it."""
    for name, client, server in PAIRS:
        said = tool("report", "--json", "--critical-path", client, of(name, "cap"))
        links = [json.loads(line) for line in said.splitlines()[1:]]
        runs = [link["task"] for link in links
                if link["what"] == "run" and link["task"] in (client, server)]
        turns = collections.Counter(zip(runs, runs[1:]))
        there, back = turns[client, server], turns[server, client]
        wakes = min(counted(name)[client, server], counted(name)[server, client])
        print(f"# {name}: {there} times to {server} and {back} times to {client}, of {wakes}")
        assert wakes / 2 <= there <= wakes and abs(there - back) <= 1, name


def requests_to_disks_are_as_many_as_bpftrace_counts(tmp):
    row = query("fio", "SELECT count(*) AS n, sum(bytes) AS bytes FROM block "
                       "WHERE disk = 'loop0'")[0]
    print(f"# {row['n']} requests, {row['bytes']} bytes")
    assert row["n"] == counted("fio")["requests",] > 0, counted("fio")
    assert row["bytes"] == 512 * counted("fio")["sectors",], counted("fio")


if __name__ == "__main__":
    tap.main(globals())
