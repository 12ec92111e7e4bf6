#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one command says of the slow requests of causes.c, which were recorded in a VM: of each, the link of
its critical path that took most is what made it slow.

    causes.py GUEST-DIRECTORY TOOL
"""
# pylint: disable=unused-argument
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

RESULTS = os.path.join(sys.argv[1], "results")
TOOL = os.path.abspath(sys.argv[2])


@functools.cache
def requests():
    """The links of each request, in order, with its cause."""
    with open(os.path.join(RESULTS, "causes.out"), encoding="ascii") as file:
        causes = file.read().split()
    done = subprocess.run([TOOL, "report", "--json", "--request", "syscall:read(fd)..syscall:write(fd)", "--task",
                           "server", "--slowest", "1000", os.path.join(RESULTS, "causes.cap")],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0, done
    paths = []
    for line in map(json.loads, done.stdout.splitlines()):
        if line["kind"] == "requests":
            said = line
        elif line["kind"] == "path":
            paths.append((line["from_ns"], []))
        elif line["kind"] == "path_link":
            paths[-1][1].append(line)
    assert len(paths) == len(causes), (len(paths), causes, said)
    return [(cause, links) for cause, (_, links) in zip(causes, sorted(paths, key=lambda path: path[0]))]


def comes_first(cause, **wanted):
    links, = [links for its, links in requests() if its == cause]
    longest = max(links, key=lambda link: link["duration_ns"])
    assert wanted.items() <= longest.items(), links


def a_lock_is_named_first_with_its_holder(tmp):
    comes_first("lock", what="run", task="holder", waiter="server", call="futex", object="futex")


def an_fsync_is_named_first(tmp):
    comes_first("fsync", what="wait", task="server", call="fsync", object="device", iowait=True)


def a_page_that_is_read_from_disk_is_named_first(tmp):
    comes_first("page_in", what="wait", task="server", object="fault", iowait=True)


def a_peer_is_named_first(tmp):
    comes_first("peer", what="run", task="peer", waiter="server", call="read", object="socket")


def a_cgroup_that_is_out_of_time_is_named_first(tmp):
    comes_first("throttled", what="throttled", task="server")


def a_timer_is_named_first(tmp):
    comes_first("timer", what="wait", task="server", call="clock_nanosleep", object="call")


def who_has_the_cpu_is_named_first(tmp):
    comes_first("contention", what="preempted", task="server", by_name="hog")


if __name__ == "__main__":
    tap.main(globals())
