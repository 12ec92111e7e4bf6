#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: causes.py GUEST KBARMAN

What one command says of the slow requests of causes.c, which were recorded in a VM: for each the link of its
critical path that took most is what made it slow. Prints TAP."""
import json
import subprocess
import sys

# What the longest link has of each request.
LINKS = {
    "lock": {"what": "run", "task": "holder", "waiter": "server", "call": "futex", "object": "futex"},
    "fsync": {"what": "wait", "task": "server", "call": "fsync", "object": "device", "iowait": True},
    "page_in": {"what": "wait", "task": "server", "object": "fault", "iowait": True},
    "peer": {"what": "run", "task": "peer", "waiter": "server", "call": "read", "object": "socket"},
    "throttled": {"what": "throttled", "task": "server"},
    "timer": {"what": "wait", "task": "server", "call": "clock_nanosleep", "object": "call"},
    "contention": {"what": "preempted", "task": "server", "by_name": "hog"},
}


def main():
    results, kbarman = f"{sys.argv[1]}/results", sys.argv[2]
    with open(f"{results}/causes.out", encoding="ascii") as file:
        causes = file.read().split()
    done = subprocess.run([kbarman, "report", "--json", "--request", "syscall:read(fd)..syscall:write(fd)",
                           "--task", "server", "--slowest", "1000", f"{results}/causes.cap"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done
    paths = []
    for line in map(json.loads, done.stdout.splitlines()):
        if line["kind"] == "path":
            paths.append((line["from_ns"], []))
        elif line["kind"] == "path_link":
            paths[-1][1].append(line)
    paths.sort(key=lambda path: path[0])
    assert len(paths) == len(causes), (len(paths), causes)
    failed = 0
    print(f"TAP version 13\n1..{len(LINKS)}")
    for cause, (_, links) in zip(causes, paths):
        if cause not in LINKS:
            continue
        longest = max(links, key=lambda link: link["duration_ns"])
        good = LINKS[cause].items() <= longest.items()
        failed |= not good
        if not good:
            for link in links:
                print("#", link)
        print(f"{'ok' if good else 'not ok'} {list(LINKS).index(cause) + 1} - {cause}_is_named_first_where_it_is_the_cause")
    return failed


if __name__ == "__main__":
    sys.exit(main())
