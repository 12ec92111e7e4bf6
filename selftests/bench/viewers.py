#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What viewers' formats cost: a capture of a million records (60 % switches, 20 % idling,
20 % samples with two counters and a chain of 4 to 23 of 3000), converted to each; seconds of
the processor and of the clock (gzip uses several CPUs), the best of three, and MiB; and how long
the page, as it is and thinned, takes to open in Chromium.
Prints members of a JSON object. Usage: viewers.py DIRECTORY [RECORDS]"""
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
import tap  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402

FORMATS = "perfetto", "html", "chrome", "pprof", "speedscope", "firefox", "ctf"
CPUS, TASKS, ROUNDS = 4, 60, 3


def make_capture(path, records):
    rng, c = random.Random(1), CaptureWriter(cores=CPUS, counters=2)
    c.fact("ext", 1)
    c.fact("raw_base", 5 * 10**9)
    for core in range(CPUS):
        c.fact(f"counter.{core}.0", "cycles")
        c.fact(f"counter.{core}.1", "instructions")
    c.task(0, b"swapper")
    for task in range(1000, 1000 + TASKS):
        c.task(task, b"worker/%d" % (task % 20))
        c.map(task, 0x400000, 0x100000, 0, b"/gone/program%d" % (task % 5))
    chains = [tuple(0x400000 + rng.randrange(0, 0x100000, 16) for _ in range(rng.randrange(4, 24)))
              for _ in range(3000)]
    now, running, halted = BASE, [0] * CPUS, [False] * CPUS
    for _ in range(records):
        now += rng.randrange(200, 4000)
        core, kind = rng.randrange(CPUS), rng.random()
        if halted[core] or (kind < 0.1 and not running[core]):
            halted[core] = not halted[core]
            c.halt(core, now, halted[core], 1)
        elif kind < 0.75:
            running[core] = 0 if kind < 0.15 else 1000 + rng.randrange(TASKS)
            c.switch(core, now, running[core], rng.randrange(2))
        elif kind < 0.999:
            chain = rng.choice(chains)
            c.sample(core, now, running[core] or 1000, chain[0],
                     (rng.randrange(10**6), rng.randrange(10**6)), chain)
        else:
            c.annotation(core, now, running[core], b"a mark", kind=1)
    return c.save(path)


def convert(path, name, out, *options):
    """(seconds of the processor, of the clock, MiB)"""
    subprocess.run(["rm", "-rf", out], check=True)
    begun = time.monotonic()
    with subprocess.Popen([tap.KBARMAN, "convert", path, "--to", name, "-o", out, *options],
                          stderr=subprocess.DEVNULL) as tool:
        _, status, usage = os.wait4(tool.pid, 0)
    assert status == 0, name
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss / 1024


def main():
    directory, records = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10**6
    path, seconds, elapsed, mib = os.path.join(directory, "viewers.cap"), {}, {}, {}
    maker = multiprocessing.Process(target=make_capture, args=(path, records))
    maker.start()       # what it needs would count for the processes that are begun below
    maker.join()
    for name in (*FORMATS, "html_thinned"):
        to, *options = ("html", "--format", "thinned") if name == "html_thinned" else (name,)
        rounds = [convert(path, to, os.path.join(directory, f"out.{name}"), *options) for _ in range(ROUNDS)]
        seconds[name] = round(min(took for took, _, _ in rounds), 3)
        elapsed[name] = round(min(took for _, took, _ in rounds), 3)
        mib[name] = round(max(used for _, _, used in rounds), 1)
    try:
        for name in "html", "html_thinned":
            os.rename(os.path.join(directory, f"out.{name}"), os.path.join(directory, "page.html"))
            dom = browser.dom(os.path.join(directory, "page.html"))
            seconds[f"{name}_opens"] = round(int(re.search(r'data-ready="(\d+)"', dom)[1]) / 1000, 3)
    except tap.Skip as why:
        print(why, file=sys.stderr)
    print(f'"convert_million_s":{json.dumps(seconds)},\n"convert_million_elapsed_s":{json.dumps(elapsed)},\n'
          f'"convert_million_mib":{json.dumps(mib)}')


if __name__ == "__main__":
    main()
