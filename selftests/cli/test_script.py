#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman script` prints, as readers of perf script would take it."""
import collections
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "man",
                      "kbarman-script.1")
# comm, pid/tid, cpu, seconds, and either a period and an event, or a tracepoint
HEAD = re.compile(r"^ *(\S.*?)\s+(\d+)/(\d+) +\[(\d{3})\]\s+(\d+\.\d{6}):\s+(?:(\d+) )?([\w:-]+):")
FRAME = re.compile(r"^\t *([0-9a-f]+) (.+?)(?:\+0x([0-9a-f]+))? \((.*)\)$")


def make(directory):
    path = os.path.join(directory, "kbarman.cap")
    capture = Maker(counters=[17, 8], series=["Volts"], multiplier=1000, facts={
        "counter.0.0": "cycles", "counter.0.1": "instructions", "tgid.1": "7",
        "raw_base": "5000000000"})
    capture.task(0, "swapper")
    capture.task(8, "a thread")
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    capture.switch(0, 1000, 8)
    capture.sample(0, 2000, 8, 0xffffffff81000010, [123, 456])
    capture.sample(0, 3000, 8, 0xffffffff81000010, [124, 457],
                   [0xffffffff81000010, 0xffffffff81001000, 0x1234], 2)
    capture.custom(0, 3500, 8, 0, 42)
    capture.switch(0, 4000, 0, blocked=True, state=1)
    capture.halt(0, 5000, True, 3)
    capture.halt(0, 6000, False)
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write("ffffffff81000000 T callee\nffffffff81000800 T caller\n"
                   "ffffffff81001000 T next\n")
    return path


def script(tmp, *args):
    make(tmp)
    result = tap.run("script", *args, cwd=tmp)
    assert result.returncode == 0, result
    return result.stdout.splitlines()


def heads_are_those_of_perf(tmp):
    lines = script(tmp, "-k", "sample")
    match = HEAD.match(lines[0])
    assert match, lines[0]
    assert match.groups() == ("a thread", "7", "8", "000", "5.002000", "123", "cycles"), lines[0]
    assert lines[0].endswith("ffffffff81000010 callee+0x10 ([kernel.kallsyms])"), lines[0]


def chains_are_those_of_perf(tmp):
    lines = script(tmp, "-k", "sample")
    assert HEAD.match(lines[1]).group(6) == "124" and lines[5] == "", lines
    frames = [FRAME.match(line).groups() for line in lines[2:5]]
    assert frames == [("ffffffff81000010", "callee", "10", "[kernel.kallsyms]"),
                      ("ffffffff81001000", "caller", "800", "[kernel.kallsyms]"),
                      ("1234", "[unknown]", None, "[unknown]")], frames


def collapse(text):
    """Folded stacks, by the grammar that tools which collapse perf's text go by.

    A line that begins with no blank, but a task and its ids, begins an event, which ends with
    an empty line; what is in front of the colon that ends it is the event's name, behind an
    optional period. All others are frames: a number, a function with its offset, a file in
    parentheses.
    """
    stacks, task, weight, frames = collections.Counter(), None, 0, []
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if task is not None and frames:
                stacks[";".join([task, *reversed(frames)])] += weight
            task, frames = None, []
            continue
        event = re.match(r"(\S.*?)\s+(\d+)(?:/(\d+))?\s+\[\d+\]\s+\d+\.\d+:\s+(?:(\d+)\s+)?"
                         r"[\w\-:./]+:\s*$", line)
        frame = re.match(r"\s*(\w+)\s*(.+) \((.*)\)", line)
        if event:
            task, weight, frames = event.group(1), int(event.group(4) or 1), []
        elif frame and task is not None:
            name = re.sub(r"\+0x[0-9a-f]+$", "", frame.group(2))
            if name == "[unknown]" and frame.group(3) != "[unknown]":
                name = f"[{os.path.basename(frame.group(3)).strip('[]')}]"
            kernel = "_[k]" if frame.group(3).startswith("[kernel") else ""
            frames.append(name.replace(";", ":") + kernel)
        else:
            raise AssertionError(f"neither an event nor a frame: {line!r}")
    return stacks


def collapsed_text_is_the_folded_stacks(tmp):
    """With names that look like something else."""
    path, root = os.path.join(tmp, "kbarman.cap"), os.path.join(tmp, "root")
    capture = Maker(counters=[17], facts={"counter.0.0": "cycles"})
    names = {7: "two words", 8: "9/9 [000] 1.0:", 9: "(paren) x"}
    functions = ["std::f<int, (char)40>::operator()(int) const", "a+0x10", "Lcom/x/Y;::z(I)V",
                 "operator()", "LazyCompile:*f /srv/a b.js:1:2"]
    os.makedirs(os.path.join(root, "tmp"))
    for task, name in names.items():
        capture.task(task, name)
        capture.map(task, 0x1000, 0x10000, 0, "//anon")
        capture.map(task, 0x100000, 0x1000, 0, "/opt/a b/gone.so")
        with open(os.path.join(root, "tmp", f"perf-{task}.map"), "w", encoding="ascii") as file:
            for i, function in enumerate(functions):
                file.write(f"{0x1000 + 0x100 * i:x} 100 {function}\n")
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    rng = random.Random(4)
    for i in range(200):
        chain = [0x1000 + 0x100 * rng.randrange(5) + rng.randrange(1, 0x100)
                 for _ in range(rng.randrange(1, 6))] + [0x100010, 0x100020]
        kernel = [0xffffffff81000010, 0xffffffff81001010][:rng.randrange(3)]
        chain = kernel + chain
        capture.sample(0, 1000 + i, rng.choice(list(names)), chain[0], [rng.randrange(1, 9)],
                       chain, len(kernel))
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write("ffffffff81000000 T callee\nffffffff81001000 T next\n")
    text = tap.run("script", "--symfs", root, cwd=tmp).stdout
    folded = tap.run("convert", path, "--to", "folded", "--symfs", root, "-o", "-").stdout
    expected = collections.Counter({stack: int(weight) for stack, weight in
                                    (line.rsplit(" ", 1) for line in folded.splitlines())})
    assert len(expected) > 100 and collapse(text) == expected, (
        [(key, value) for key, value in expected.items() if collapse(text)[key] != value][:3],
        [key for key in collapse(text) if key not in expected][:3])


def switches_and_idling_are_tracepoints(tmp):
    lines = script(tmp, "-k", "switch,idle")
    assert [HEAD.match(line).group(7) for line in lines] == [
        "sched:sched_switch"] * 2 + ["power:cpu_idle"] * 2, lines
    assert "prev_comm=a thread prev_pid=8 prev_state=S ==> next_comm=swapper next_pid=0" \
        in lines[1], lines
    first, second = map(json.loads, script(tmp, "-j", "-k", "switch"))
    assert not {"task", "state", "blocked"} & first.keys() and first["next_tid"] == 8, first
    assert second["state"] == "S" and second["blocked"], second
    assert lines[2].endswith("state=3 cpu_id=0") and "state=4294967295" in lines[3], lines


def make_sources(path):
    """One record of each source, in the order in which they are printed."""
    capture = Maker(cores=4, series=["Wakeups"], facts={
        "irq.33": "virtio0, eth0", "irq.34": "old", "machine": "x86_64",
        "sources": "wake,migrate,irq,softirq,freq,syscalls,faults,block", f"disk.{8 << 20 | 17}": "sdb"})
    capture.string("kbarman.irq.34=new")
    for task, name in (0, "swapper"), (7, "waker"), (8, "a sleeper"):
        capture.task(task, name)
    capture.switch(0, 1000, 7)
    capture.about(0, 2000, 7, "waking", 8, cpu=2)
    capture.about(0, 3000, 7, "waking_new", 9, cpu=3)
    capture.about(0, 4000, 7, "migrate", 8, cpu=1)
    for irq, behind in (33, 1), (33, 0), (34, 0), (35, 0):
        capture.about(0, 5000, 7, "irq_entry", irq, cpu=behind, context=2)
    capture.about(0, 6000, 7, "irq_exit", 33, context=2, value=0)
    capture.about(0, 7000, 7, "ipi_entry", 2, context=2)
    capture.about(0, 8000, 7, "ipi_exit", 2, context=2, value=0)
    for number, what in enumerate(("softirq_raise", "softirq_entry", "softirq_exit")):
        capture.about(0, 9000 + number, 7, what, 3, context=number and 1, value=number == 1)
    capture.about(0, 10000, 7, "softirq_entry", 77)
    capture.about(0, 11000, 7, "frequency", cpu=3, value=1200000)
    capture.about(0, 12000, 0, "idle_miss", 2, cpu=1, context=0)
    capture.about(0, 13000, 0, "idle_miss", 1, cpu=1, context=1)
    capture.syscall(0, 13100, 7, 0, 12400, 4096, (3, 0x7ffd12345678, 4096))
    capture.syscall(0, 13200, 7, 257, 0, -2, (2**64 - 100, 0, 2**32))
    capture.syscall(0, 13300, 7, 3, 13300, 0, compat=True)
    capture.syscall(0, 13400, 7, 99999, 13399, -2**63)
    capture.fault(0, 13500, 7, 13000, 0, 0x7ffd12345678, 0x401000)
    capture.fault(0, 13501, 7, 13000, -14, 3, 0xffffffff81000010, kernel=True)
    capture.block(0, 13600, 8, 13000, 0, 2048, 8 << 20 | 17, 4096, 0x301)
    capture.block(0, 13601, 0, 0, -5, 0, 8 << 20 | 17, 0, 0x1902)
    capture.about(0, 14000, 7, 99, 5)
    return capture.save(path)


SOURCES = [
    ("wake", "sched:sched_waking: comm=a sleeper pid=8 target_cpu=002"),
    ("wake", "sched:sched_wakeup_new: comm=:9 pid=9 target_cpu=003"),
    ("migrate", "sched:sched_migrate_task: comm=a sleeper pid=8 orig_cpu=2 dest_cpu=1"),
    ("irq", "irq:irq_handler_entry: irq=33 name=virtio0"),
    ("irq", "irq:irq_handler_entry: irq=33 name=eth0"),
    ("irq", "irq:irq_handler_entry: irq=34 name=new"),
    ("irq", "irq:irq_handler_entry: irq=35 name=?"),
    ("irq", "irq:irq_handler_exit: irq=33"),
    ("irq", "ipi:ipi_entry: (Rescheduling interrupts)"),
    ("irq", "ipi:ipi_exit: (Rescheduling interrupts)"),
    ("softirq", "irq:softirq_raise: vec=3 [action=NET_RX]"),
    ("softirq", "irq:softirq_entry: vec=3 [action=NET_RX]"),
    ("softirq", "irq:softirq_exit: vec=3 [action=NET_RX]"),
    ("softirq", "irq:softirq_entry: vec=77 [action=?]"),
    ("freq", "power:cpu_frequency: state=1200000 cpu_id=3"),
    ("freq", "power:cpu_idle_miss: cpu_id=1 state=2 type=above"),
    ("freq", "power:cpu_idle_miss: cpu_id=1 state=1 type=below"),
    ("syscalls", "raw_syscalls:sys_exit: read(0x3, 0x7ffd12345678, 0x1000) = 4096 (0.700 us)"),
    ("syscalls", "raw_syscalls:sys_exit: openat(0xffffffffffffff9c, 0x0, 0x100000000) = -2 ENOENT"),
    ("syscalls", "raw_syscalls:sys_exit: syscall_3(0x0, 0x0, 0x0) = 0 (0.000 us)"),	# of 32 bits
    ("syscalls", f"raw_syscalls:sys_exit: syscall_99999(0x0, 0x0, 0x0) = {-2**63} (0.001 us)"),
    ("faults", "kbarman:fault: minor address=0x7ffd12345678 ip=0x401000 user (0.500 us)"),
    ("faults", "kbarman:fault: failed address=0x3 ip=0xffffffff81000010 kernel"),
    ("block", "block:block_rq_complete: 8,17 WSM () 2048 + 8 [0] tid=8 (0.600 us)"),
    ("block", "block:block_rq_complete: 8,17 FFFS () 0 + 0 [-5]"),
    ("counter", "kbarman:counter: Wakeups=1"),	# a kind of a later release
]


def sources_are_tracepoints(tmp):
    path = make_sources(os.path.join(tmp, "a.cap"))
    lines = tap.run("script", path).stdout.splitlines()[1:]
    assert [line.partition(": ")[2] for line in lines] == [text for _, text in SOURCES], lines
    assert {HEAD.match(line).group(1) for line in lines[:15]} == {"waker"}, lines
    assert HEAD.match(lines[15]).group(1) == "swapper", lines
    for wanted in "wake", "migrate", "irq", "softirq", "freq", "syscalls", "faults", "block", "counter", "wake,freq":
        lines = tap.run("script", "-e", wanted, path).stdout.splitlines()
        assert [line.partition(": ")[2] for line in lines] == [
            text for source, text in SOURCES if source in wanted.split(",")], (wanted, lines)
    lines = tap.run("script", "-j", "-e", "faults,block", path).stdout.splitlines()
    common = {"cpu": 0, "task": "waker", "pid": 7, "tid": 7}
    assert [json.loads(line) for line in lines[1:3]] == [
        {"kind": "faults", "at_ns": 13501, **common, "what": "fault", "fault": "failed", "kernel": True, "address": 3,
         "pc": 0xffffffff81000010, "result": -14},
        {"kind": "block", "at_ns": 13600, **common, "tid": 0, "pid": 0, "task": "swapper", "what": "block",
         "request_tid": 8, "disk": "sdb", "device": 8 << 20 | 17, "operation": "write", "flags": "sync,meta",
         "sector": 2048, "bytes": 4096, "duration_ns": 600, "result": 0}], lines
    lines = tap.run("script", "-j", "-e", "syscalls", path).stdout.splitlines()
    known, unknown = json.loads(lines[0]), json.loads(lines[1])
    assert known == {
        "kind": "syscalls", "at_ns": 13100, "cpu": 0, "task": "waker", "pid": 7, "tid": 7, "what": "syscall",
        "call": "read", "number": 0, "compat": False, "duration_ns": 700, "result": 4096,
        "arguments": [3, 0x7ffd12345678, 4096]}, known
    assert "duration_ns" not in unknown and unknown["result"] == -2 and unknown["arguments"][0] == -100, unknown
    assert json.loads(lines[3])["call"] is None and json.loads(lines[2])["compat"], lines


def a_switch_has_the_chain_of_the_task_that_goes(tmp):
    path = os.path.join(tmp, "off.cap")
    capture = Maker(counters=[17])
    capture.task(0, "swapper")
    capture.task(8, "a thread")
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    capture.switch(0, 1000, 8)
    capture.switch(0, 2000, 0, blocked=True, state=1,
                   chain=[0xffffffff81000010, 0xffffffff81001000], kernel=2)
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write("ffffffff81000000 T callee\nffffffff81000800 T caller\n")
    lines = tap.run("script", path).stdout.splitlines()
    assert len(lines) == 5 and HEAD.match(lines[1]).group(1) == "a thread", lines
    names = [FRAME.match(line).group(2) for line in lines[2:4]]
    assert names == ["callee", "caller"] and lines[4] == "", lines


def counters_are_printed_on_request(tmp):
    lines = script(tmp, "-k", "sample", "--counters")
    heads = [HEAD.match(line).groups()[5:] for line in lines if HEAD.match(line)]
    assert heads == [("123", "cycles"), ("456", "instructions"), ("124", "cycles"),
                     ("457", "instructions")], heads
    assert script(tmp, "-k", "counter")[0].endswith("kbarman:counter: Volts=42")


def everything_is_printed_in_order(tmp):
    times = [float(HEAD.match(line).group(5)) for line in script(tmp) if HEAD.match(line)]
    assert len(times) == 7 and times == sorted(times), times


def wrong_types_are_refused(tmp):
    for bad in "", "x", "sample,,idle":
        assert tap.run("script", "-e", bad, cwd=tmp).returncode == 2, bad
    assert tap.run("script", cwd=tmp).returncode == 2


def a_closed_pipe_is_no_error(tmp):
    path = os.path.join(tmp, "long.cap")
    capture = Maker()
    for number in range(20000):
        capture.switch(0, number, number % 50)
    capture.save(path)
    shell = f"{tap.KBARMAN} script {path} | head -1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "0" and not result.stderr, result


def endless_names_are_cut(tmp):
    path = os.path.join(tmp, "endless.cap")
    capture = Maker(facts={"x": "y" * 50000})
    capture.task(7, "n" * 60000 + "\n\033")
    capture.map(7, 0x1000, 0x1000, 0, "/" + "i" * 60000)
    capture.switch(0, 10, 7)
    capture.sample(0, 20, 7, 0x1010)
    capture.save(path)
    lines = tap.run("script", path).stdout.split("\n")
    assert len(lines) == 3 and all(len(line) < 20000 for line in lines), [len(x) for x in lines]


def a_file_that_was_written_is_told(tmp):
    path, out = make(tmp), os.path.join(tmp, "out.txt")
    for options in (), ("-j",), ("-q",):
        with open(out, "w", encoding="utf-8") as file:
            done = subprocess.run([tap.KBARMAN, "script", *options, path], stdout=file,
                                  stderr=subprocess.PIPE, text=True, check=True)
        said = "" if options == ("-q",) else \
            f"kbarman script: wrote standard output: 7 records, {os.path.getsize(out)} bytes\n"
        assert done.stderr.splitlines(keepends=True)[1:] == [said] * bool(said), done
    assert "wrote" not in tap.run("script", path).stderr


def manual_has_every_option(tmp):
    text = tap.run("script", "--help", cwd=tmp).stdout
    with open(MANUAL, encoding="utf-8") as manual:
        described = manual.read().replace("\\-", "-")
    options = re.findall(r"^ +(?:(-\w), |)(?: *)(--[\w-]+)", text, re.M)
    assert len(options) >= 6, text
    for short, long in options:
        assert long in described and short in described, (short, long)


if __name__ == "__main__":
    tap.main(globals())
