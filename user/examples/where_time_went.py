#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where the time of a recording went: a tour of the package kbarman, with nothing else installed.

    python3 where_time_went.py kbarman.cap

Each part between two lines "# %%" is a cell for editors that know notebooks.
"""
# %% Open a capture. What it says of itself is read at once, its records when they are asked for.
import collections
import sys

import kbarman

capture = kbarman.open(sys.argv[1] if len(sys.argv) > 1 else "kbarman.cap")
first, last = capture.span
print(f"{(last - first) / 1e9:.6f} s of {capture.facts.get('host', 'an unknown host')}, "
      f"{capture.cpus} CPUs, since {capture.wall_clock(first):%F %T}")

# %% A table has columns of numbers. Nothing is copied: they are the memory of the library. So are
# arrays of numpy, numpy.asarray(runs["at_ns"]), and tables of Arrow, pyarrow.table(runs).
runs = capture.table("runs", "duration_ns", "tid")
ran = collections.Counter()
for duration, tid in runs:
    ran[tid] += duration
print("\nran longest:")
for tid, ns in ran.most_common(10):
    print(f"{ns / 1e6:12.3f} ms  {capture.task_name(tid)} ({tid})")

# %% In parts a capture of any size takes the memory of a part. Columns with words are numbers, too:
# their words come with the table.
stopped = collections.Counter()
for part in capture.parts("switches.tid", "switches.state", "switches.blocked"):
    switches = part["switches"]
    states = switches.words("state")
    for tid, blocked, state in zip(switches["tid"], switches["blocked"], switches["state"]):
        stopped[tid, states[state] if blocked else "preempted"] += 1
print("\nstopped most often:")
for (tid, why), count in stopped.most_common(10):
    print(f"{count:12}     {capture.task_name(tid)} ({tid}): {why}")

# %% Samples with the functions of their call chains, one by one.
functions = collections.Counter()
for sample in capture.samples():
    if sample.frames:
        functions[sample.frames[0].symbol or "[unknown]", sample.frames[0].image] += 1
print("\nsampled most often:")
for (symbol, image), count in functions.most_common(10):
    print(f"{count:12}     {symbol} ({image})")

# %% The same from columns: a sample has numbers of frames, and `functions` says what they are.
part = capture.read("samples.frames", "functions")
frames, symbols = part["samples"].lists("frames"), part["functions"].texts("symbol")
inside = collections.Counter()
for chain in frames:
    inside.update(set(chain))
print("\nin the call chains of most samples:")
for number, count in inside.most_common(10):
    print(f"{count:12}     {symbols[number] or '[unknown]'}")

# %% What is missing is told, too.
for kind, cpu, what, count in capture.losses:
    if kind == "lost":
        print(f"\nCPU {cpu} lost {count} records: {what}")
