#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The state in which a task left its CPU, wherever it is told: as the recorded kernel meant it."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from make_capture import Maker  # noqa: E402
import test_viewers_ctf as ctf  # noqa: E402
import test_viewers_perfetto as perfetto  # noqa: E402

# as Linux 6.1 has them, and what ftrace calls and shows them: the first thread of a process that
# has ended is a zombie
LINUX_6_1 = "I402,D2,S1,T4,t8,P40,Z20,X10,X80,D8000"
STATES = [(0x402, "I", 0x80), (0x2402, "I", 0x80), (0x2, "D", 2), (0x102, "D", 2), (0x8000, "D", 2),
          (0x1, "S", 1), (0x2001, "S", 1), (0x104, "T", 4), (0x8, "t", 8), (0x40, "P", 0x40),
          (0x80, "X", 0x20), (0x20, "Z", 0x20), (0x0, "R", 0)]
# A kernel where the bits are others.
ELSEWHERE = "D200,I8,S80,X1"
MOVED = [(0x200, "D", 2), (0x8, "I", 0x80), (0x80, "S", 1), (0x1, "X", 0x20)]
# Captures of before: the lowest byte only, of Linux from 4.14 on.
OLD = [(0x2, "D", 2), (0x1, "S", 1), (0x4, "T", 4), (0x8, "t", 8), (0x40, "P", 0x40),
       (0x80, "X", 0x20), (0x0, "R", 0)]
PREEMPTED = 0x100
KINDS = [(LINUX_6_1, STATES), (ELSEWHERE, MOVED), (None, OLD)]


def save(tmp, facts, states):
    """Task 7 goes in each state in turn, and the idle task in between."""
    capture = Maker(facts={"release": "6.1.0", **({"states": facts} if facts else {})})
    capture.task(0, "swapper")
    capture.task(7, "seven")
    for i, (state, _, _) in enumerate(states):
        capture.switch(0, 2000 * i + 1000, 7)
        capture.switch(0, 2000 * i + 2000, 0, blocked=state != 0, state=state)
    return capture.save(os.path.join(tmp, "kbarman.cap"))


def script_has_the_letters_of_the_kernel(tmp):
    for facts, states in KINDS:
        text = tap.run("script", "-k", "switch", save(tmp, facts, states)).stdout
        shown = re.findall(r"prev_pid=7 prev_state=(\S+)", text)
        assert shown == [letter for _, letter, _ in states], (facts, shown)


def a_dump_has_the_bits_and_the_letter(tmp):
    for facts, states in KINDS:
        lines = tap.run("dump", "--json", save(tmp, facts, states)).stdout.splitlines()
        shown = [(r["prev_state"], r["prev_state_letter"]) for r in map(json.loads, lines)
                 if r.get("type") == "task_switch" and r["tid"] == 0]
        assert shown == [(state, letter) for state, letter, _ in states], (facts, shown)


def a_state_nobody_told_of_is_none_that_is_known(tmp):
    text = tap.run("script", "-k", "switch", save(tmp, ELSEWHERE, [(0x400, "?", 1)])).stdout
    assert re.findall(r"prev_pid=7 prev_state=(\S+)", text) == ["?"], text


def damaged_facts_leave_the_rest_readable(tmp):
    for facts in ("", ",", "I", "I402", "D2,", "Dffffffffffffffffff,S1", "0,1,2", "S0", "S1" * 500,
                  ",".join(f"S{1 << i % 16:x}" for i in range(500))):
        for verb in (["script"], ["dump"], ["check"], ["report"]):
            path = save(tmp, facts, [(1, "S", 1)]) if facts else save(tmp, ",", [(1, "S", 1)])
            result = tap.run(*verb, path)
            assert result.returncode in (0, 1) and not result.stderr.count("runtime error"), result


def perfetto_has_the_bits_of_ftrace(tmp):
    for facts, states in KINDS:
        trace = perfetto.trace_of(tmp, save(tmp, facts, states))
        shown = [s["prev_state"] for _, _, s in sorted(trace.switches, key=lambda s: s[0])
                 if s["prev_pid"] == 7]
        assert shown == [bits or PREEMPTED for _, _, bits in states], (facts, shown)


def ctf_has_the_bits_of_ftrace(tmp):
    for facts, states in KINDS:
        trace = ctf.Trace(ctf.trace_of(tmp, save(tmp, facts, states)))
        shown = [f["prev_state"] for _, _, f in trace.of("sched_switch") if f["prev_tid"] == 7]
        assert shown == [bits for _, _, bits in states], (facts, shown)


def tptp_ends_the_threads_that_died(tmp):
    for facts, states in KINDS:
        path = save(tmp, facts, states)
        out = os.path.join(tmp, "trace.trcxml")
        assert not tap.run("convert", path, "--to", "tptp", "-o", out).returncode
        with open(out, encoding="utf-8", errors="replace") as file:
            ends = len(re.findall(r"<threadEnd ", file.read()))
        assert ends >= [letter for _, letter, _ in states].count("X") > 0, (facts, ends)


if __name__ == "__main__":
    tap.main(globals())
