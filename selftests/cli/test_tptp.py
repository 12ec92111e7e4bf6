#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TPTP traces of captures, from outside: the XML by Python's reader, the binary form by
`dump`, and both against what the capture says."""
import collections
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402

UNIX = 1700000000 * 10**9
DEAD = 0x80


def ns(text):
    seconds, fraction = text.split(".")
    assert len(fraction) == 9
    return int(seconds) * 10**9 + int(fraction) * (-1 if seconds[0] == "-" else 1)


def convert(tmp, capture, *options, status=0):
    """Elements of the XML, as Python reads it."""
    path = capture.save(os.path.join(tmp, "a.cap"))
    result = tap.run("convert", path, "--to", "tptp", *options, errors="replace")
    assert result.returncode == status, (result.returncode, result.stderr)
    root = ElementTree.parse(os.path.join(tmp, "a.trcxml")).getroot()
    assert root.tag == "TRACE" and all(len(element) == 0 for element in root)
    return list(root)


def dump(path, status=0):
    result = tap.run("dump", "--json", path)
    assert result.returncode == status, (result.returncode, result.stderr)
    return [json.loads(line) for line in result.stdout.splitlines()]


def of(elements, *tags):
    return [e for e in elements if e.tag in tags]


def bodies(elements, kind):
    """Custom messages as dictionaries; the text is what follows the last key."""
    found = []
    for element in of(elements, "custom"):
        body = element.get("body")
        if body.split(" ", 1)[0] != kind:
            continue
        fields, rest = {}, body.split(" ", 1)[1]
        while True:
            key, rest = rest.split("=", 1)
            if key in ("name", "text"):
                fields[key] = rest
                break
            fields[key], rest = rest.split(" ", 1)
        found.append(fields)
    return found


class Machine:
    """A random machine that counts what it does."""

    def __init__(self, seed, records=4000, cores=3, tasks=9, chains=False):
        self.random = random.Random(seed)
        self.capture = c = CaptureWriter(cores=cores, counters=2)
        c.fact("ext", 1)
        for core in range(cores):
            c.fact(f"counter.{core}.0", "cycles")
            c.fact(f"counter.{core}.1", "misses")
        c.custom(b"requests")
        c.custom(b"Lost records")
        for task in range(tasks):
            c.task(task, b"task %d" % task)
        self.count = collections.Counter()
        self.current = [None] * cores
        self.halted = [None] * cores
        now = BASE
        for core in range(cores):
            self.switch(core, now)
        for _ in range(records):
            now += self.random.randrange(1, 1000)
            core = self.random.randrange(cores)
            what = self.random.randrange(100)
            if what < 50:
                self.switch(core, now)
            elif what < 70:
                self.halt(core, now)
            elif what < 90:
                self.sample(core, now, chains)
            elif what < 95:
                value = self.random.randrange(10**6)
                c.value(core, now, 0, value, self.current[core])
                self.count["series"] += value
            else:
                kind = self.random.randrange(4)
                c.annotation(core, now, self.current[core], b"<text> & \xff", kind=kind,
                             channel=3)
                self.count["annotation", kind] += 1
        self.end = now
        for core in range(cores):
            if self.halted[core] is not None:
                self.count["idle", core] += now - self.halted[core]

    def switch(self, core, now):
        old = self.current[core]
        free = [t for t in range(9) if t == 0 or t not in self.current]
        new = self.random.choice([t for t in free if t != old or old is None])
        blocked = self.random.randrange(2)
        self.capture.switch(core, now, new, blocked)
        if self.halted[core] is not None:
            self.count["idle", core] += now - self.halted[core]
            self.halted[core] = None
        if old is not None:
            self.count["out", self.thread(core, old), blocked] += 1
        self.current[core] = new

    def halt(self, core, now):
        entered = self.halted[core] is None
        self.capture.halt(core, now, int(entered), 1 if entered else None)
        if not entered:
            self.count["idle", core] += now - self.halted[core]
        self.halted[core] = now if entered else None

    def sample(self, core, now, chains):
        values = (self.random.randrange(10**9), self.random.randrange(10**6))
        chain = [0x1000 + self.random.randrange(3) for _ in range(self.random.randrange(1, 7))]
        self.capture.sample(core, now, self.current[core], chain[0], values,
                            chain if chains else ())
        self.count["samples", self.thread(core, self.current[core])] += 1
        self.count["cycles"] += values[0]
        self.count["misses"] += values[1]

    @staticmethod
    def thread(core, task):
        return str(task) if task else str(-core - 1)


# ---- what existing readers need ----

def check_rules(elements):
    """Definitions before use, once; exits close the innermost open entry; limits."""
    threads, classes, methods = set(), set(), {}
    stacks = collections.defaultdict(list)
    tickets = set()
    for e in elements:
        if e.tag == "threadStart":
            assert e.get("threadId") not in threads
            threads.add(e.get("threadId"))
        elif e.tag == "threadEnd":
            threads.remove(e.get("threadIdRef"))
            assert not stacks[e.get("threadIdRef")]
        elif e.tag == "classDef":
            assert e.get("classId") not in classes and 0 < int(e.get("classId")) < 2**31
            assert not re.search(r"\s", e.get("name"))
            classes.add(e.get("classId"))
        elif e.tag == "methodDef":
            assert e.get("methodId") not in methods and 0 < int(e.get("methodId")) < 2**31
            assert e.get("classIdRef") in classes and not re.search(r"\s", e.get("name"))
            methods[e.get("methodId")] = e.get("classIdRef")
        else:
            for key in "threadIdRef", "threadOwnerIdRef":
                assert e.get(key) is None or e.get(key) in threads, (e.tag, e.attrib)
            assert e.get("methodIdRef") is None or e.get("methodIdRef") in methods
        if e.tag in ("methodEntry", "methodExit"):
            stack = stacks[e.get("threadIdRef")]
            assert methods[e.get("methodIdRef")] == e.get("classIdRef")
            if e.tag == "methodEntry":
                assert 0 < int(e.get("ticket")) < 2**31 and e.get("ticket") not in tickets
                tickets.add(e.get("ticket"))
                stack.append((e.get("ticket"), e.get("methodIdRef"), ns(e.get("time"))))
                assert int(e.get("stackDepth")) == len(stack)
            else:
                ticket, method, since = stack.pop()
                assert (e.get("ticket"), e.get("methodIdRef")) == (ticket, method)
                assert ns(e.get("time")) >= since
    assert not any(stacks.values())


def leaves(elements):
    """Entries by thread of which the next message is not an entry below: the samples."""
    found = collections.Counter()
    relevant = of(elements, "methodEntry", "methodExit")
    following = {}
    for e in reversed(relevant):
        thread = e.get("threadIdRef")
        if e.tag == "methodEntry":
            after = following.get(thread)
            if not (after is not None and after.tag == "methodEntry" and
                    after.get("time") == e.get("time") and
                    int(after.get("stackDepth")) == int(e.get("stackDepth")) + 1):
                found[thread] += 1
        following[thread] = e
    return found


def readers_rules_hold_for_flat_samples(tmp):
    for seed in range(3):
        check_rules(convert(tmp, Machine(seed).capture))


def readers_rules_hold_for_call_chains(tmp):
    for seed in range(3):
        check_rules(convert(tmp, Machine(seed, chains=True).capture))


def readers_rules_hold_for_aggregates(tmp):
    check_rules(convert(tmp, Machine(5).capture, "--aggregate"))


# ---- the trace says what the capture says ----

def check_truth(machine, elements):
    count = machine.count
    for thread in {k[1] for k in count if k[0] == "out"}:
        waits = [e for e in of(elements, "monWait") if e.get("threadIdRef") == thread and
                 e.get("objIdRef") == "0"]
        contended = [e for e in of(elements, "monContendedEnter")
                     if e.get("threadIdRef") == thread]
        assert len(waits) == count["out", thread, 1], thread
        assert len(contended) == count["out", thread, 0], thread
    for core in range(machine.capture.cores):
        idle, since = 0, None
        for e in of(elements, "monWait", "monWaited"):
            if e.get("threadIdRef") != str(-core - 1) or e.get("objIdRef") != str(core + 1):
                continue
            if e.tag == "monWait":
                since = ns(e.get("time"))
            else:
                idle += ns(e.get("time")) - since
                since = None
        assert since is None and idle == count["idle", core], core
    for name in "cycles", "misses":
        assert sum(int(b["value"]) for b in bodies(elements, "counter")
                   if b["name"] == name) == count[name]
    assert sum(int(b["value"]) for b in bodies(elements, "series")) == count["series"]
    for kind in range(4):
        found = [b for b in bodies(elements, "annotation") if b["type"] == str(kind)]
        assert len(found) == count["annotation", kind]
        assert all(b["text"] == "<text> & \ufffd" and b["channel"] == "3" for b in found)
    assert ns(of(elements, "traceEnd")[0].get("time")) == UNIX + machine.end - BASE


def samples_of(machine):
    return {k[1]: v for k, v in machine.count.items() if k[0] == "samples"}


def flat_traces_say_what_the_capture_says(tmp):
    machine = Machine(7)
    elements = convert(tmp, machine.capture)
    check_truth(machine, elements)
    assert leaves(elements) == samples_of(machine)
    assert not of(elements, "agMethodEntry", "agMethodExit")


def innermost_entries_count_the_samples(tmp):
    machine = Machine(8, chains=True)
    elements = convert(tmp, machine.capture)
    check_truth(machine, elements)
    assert leaves(elements) == samples_of(machine)


def aggregates_say_what_the_capture_says(tmp):
    machine = Machine(7)
    elements = convert(tmp, machine.capture, "--aggregate")
    check_truth(machine, elements)
    assert not of(elements, "methodEntry", "methodExit")
    pairs = [(e.get("threadIdRef"), e.get("methodIdRef")) for e in of(elements, "agMethodEntry")]
    assert len(pairs) == len(set(pairs))
    assert pairs == [(e.get("threadIdRef"), e.get("methodIdRef"))
                     for e in of(elements, "agMethodExit")]
    calls = collections.Counter()
    for e in of(elements, "agMethodEntry"):
        calls[e.get("threadIdRef")] += int(e.get("numCalls"))
        assert ns(e.get("minTime")) <= ns(e.get("maxTime")) <= ns(e.get("baseTime"))
    assert calls == samples_of(machine)


def aggregates_have_the_times_of_the_flat_trace(tmp):
    machine = Machine(9)
    flat, since = collections.Counter(), {}
    for e in of(convert(tmp, machine.capture), "methodEntry", "methodExit"):
        key = e.get("threadIdRef"), e.get("methodIdRef")
        if e.tag == "methodEntry":
            since[key] = ns(e.get("time"))
        else:
            flat[key] += ns(e.get("time")) - since.pop(key)
    sums = {(e.get("threadIdRef"), e.get("methodIdRef")): ns(e.get("baseTime"))
            for e in of(convert(tmp, machine.capture, "--aggregate"), "agMethodEntry")}
    assert sums == {key: flat[key] for key in sums} and set(flat) <= set(sums)


def both_forms_have_the_same_messages(tmp):
    for options in (), ("--aggregate",):
        capture = Machine(11, chains=True).capture
        convert(tmp, capture, *options)
        result = tap.run("convert", os.path.join(tmp, "a.cap"), "--to", "tptp",
                         "--format=binary", *options)
        assert result.returncode == 0, result.stderr
        binary = dump(os.path.join(tmp, "a.trcbin"))
        assert [m["id"] for m in binary[:2]] == [1, 2]
        assert binary[2:] == dump(os.path.join(tmp, "a.trcxml"))


def the_beginning_and_the_end_are_in_order(tmp):
    capture = CaptureWriter()
    for key, value in (("host", "box"), ("release", "6.1.0"), ("filter", "pid:7"),
                       ("command", "sleep 1"), ("tgid.0", "1")):
        capture.fact(key, value)
    capture.task(5, b"t")
    tags = convert(tmp, capture)
    assert [e.tag for e in tags[:5]] == ["node", "processCreate", "agentCreate", "traceStart",
                                         "filter"]
    assert [e.tag for e in tags[-2:]] == ["traceEnd", "agentDestroy"]
    assert tags[0].get("hostname") == "box" and tags[1].get("name") == "linux 6.1.0"
    assert tags[1].get("nodeIdRef") == tags[0].get("nodeId")
    assert tags[2].get("processIdRef") == tags[1].get("processId")
    assert tags[3].get("agentIdRef") == tags[2].get("agentId") == tags[-1].get("agentIdRef")
    assert tags[4].get("pattern") == "pid:7"
    options = {e.get("key"): e.get("value") for e in of(tags, "option")}
    assert options["command"] == "sleep 1" and options["host"] == "box"
    assert "tgid.0" not in options


# ---- threads ----

def raw_switch(capture, core, timestamp, task, blocked, state):
    capture.record(3, core, timestamp, struct.pack("<IBB", task, blocked, state))


def threads_end_at_their_exit_and_ids_live_again(tmp):
    c = CaptureWriter(cores=1)
    c.fact("ext", 1)
    c.task(7, b"first")
    c.task(7, b"second", BASE + 5000)
    c.task(8, b"asleep")
    c.fact("exit.0", BASE + 1500)
    c.fact("exit.2", BASE + 1200)
    raw_switch(c, 0, BASE, 8, 0, 0)
    raw_switch(c, 0, BASE + 1000, 7, 1, 1)
    c.sample(0, BASE + 1400, 7, 0x10)
    raw_switch(c, 0, BASE + 2000, 0, 1, DEAD)
    raw_switch(c, 0, BASE + 6000, 7, 0, 0)
    elements = convert(tmp, c)
    check_rules(elements)
    ends = [(e.get("threadIdRef"), ns(e.get("time")) - UNIX) for e in of(elements, "threadEnd")]
    assert ends == [("8", 1200), ("7", 2000)], ends
    names = [e.get("threadName") for e in of(elements, "threadStart") if e.get("threadId") == "7"]
    assert names == ["first", "second"]
    assert not [e for e in of(elements, "monWait") if e.get("threadIdRef") == "7"]


def a_dead_state_ends_a_thread_without_facts(tmp):
    c = CaptureWriter(cores=1)
    c.fact("ext", 1)
    c.task(7, b"t")
    raw_switch(c, 0, BASE, 7, 0, 0)
    raw_switch(c, 0, BASE + 10, 0, 1, DEAD)
    elements = convert(tmp, c)
    assert [e.get("threadIdRef") for e in of(elements, "threadEnd")] == ["7"]


def waits_end_when_the_thread_returns(tmp):
    c = CaptureWriter(cores=2)
    c.task(7, b"t")
    c.switch(0, BASE, 7)
    c.switch(0, BASE + 10, 0, blocked=1)
    c.switch(1, BASE + 20, 7)
    c.switch(1, BASE + 30, 0, blocked=0)
    c.switch(0, BASE + 40, 7)
    mon = [(e.tag, e.get("objIdRef"), e.get("threadOwnerIdRef"), ns(e.get("time")) - UNIX)
           for e in convert(tmp, c) if e.tag.startswith("mon") and e.get("threadIdRef") == "7"]
    assert mon == [("monWait", "0", None, 10), ("monWaited", "0", None, 20),
                   ("monContendedEnter", "2", "-2", 30), ("monContendedEntered", "2", None, 40)]


def a_capture_without_tasks_has_a_thread_for_each_cpu(tmp):
    c = CaptureWriter(cores=2)
    c.record(2, 0, BASE, struct.pack("<Q", 0x10))
    c.record(2, 1, BASE + 5, struct.pack("<Q", 0x10))
    c.record(2, 0, BASE + 9, struct.pack("<Q", 0x10))
    elements = convert(tmp, c)
    check_rules(elements)
    assert {e.get("threadId"): e.get("threadName") for e in of(elements, "threadStart")} == \
        {"-1": "cpu 0", "-2": "cpu 1"}
    assert leaves(elements) == {"-1": 2, "-2": 1}


def samples_hold_until_the_next_one(tmp):
    c = CaptureWriter(cores=1)
    c.task(7, b"t")
    c.task(8, b"u")
    c.switch(0, BASE, 7)
    c.sample(0, BASE + 10, 7, 0x10)
    c.sample(0, BASE + 20, 7, 0x10)
    c.sample(0, BASE + 30, 8, 0x10)  # a switch that is missing
    c.switch(0, BASE + 45, 7)
    held, since = [], None
    for e in of(convert(tmp, c), "methodEntry", "methodExit"):
        if e.tag == "methodEntry":
            since = ns(e.get("time")) - UNIX
        else:
            held.append((e.get("threadIdRef"), since, ns(e.get("time")) - UNIX))
    assert held == [("7", 10, 20), ("7", 20, 30), ("8", 30, 45)], held


def only_what_changed_of_a_stack_is_left_and_entered(tmp):
    c = CaptureWriter(cores=1)
    c.fact("ext", 1)
    c.task(7, b"t")
    for at in range(4):
        c.map(7, 0x1000 * (at + 1), 0x1000, 0, b"/nonexistent/image-%d" % at)
    c.switch(0, BASE, 7)
    for when, chain in ((10, (0x3000, 0x2010, 0x1010)), (20, (0x4000, 0x2010, 0x1010)),
                        (30, (0x2010, 0x1010)), (40, (0x4000, 0x2010, 0x1010))):
        c.sample(0, BASE + when, 7, chain[0], (), chain)
    c.switch(0, BASE + 50, 0)
    elements = convert(tmp, c)
    check_rules(elements)
    image = {e.get("classId"): e.get("name")[-1] for e in of(elements, "classDef")}
    did = [("+" if e.tag == "methodEntry" else "-") + image[e.get("classIdRef")] +
           str(ns(e.get("time")) - UNIX) for e in of(elements, "methodEntry", "methodExit")]
    assert did == ["+010", "+110", "+210", "-220", "+320", "-330", "-130", "+130", "+340",
                   "-350", "-150", "-050"], did
    assert leaves(elements) == {"7": 4}


# ---- text ----

def names_survive_as_xml_can_carry_them(tmp):
    c = CaptureWriter(cores=1, target=b"<host> & \"co\"")
    c.task(7, b"<a&b>'\"\x01\xff\xe2\x82")
    c.task(8, "日本 ]]>".encode())
    c.map(7, 0x1000, 0x1000, 0, b"/tmp/a b\xfe<c>")
    c.switch(0, BASE, 7)
    c.sample(0, BASE + 1, 7, 0x1000)
    c.switch(0, BASE + 2, 8)
    elements = convert(tmp, c)
    names = {e.get("threadId"): e.get("threadName") for e in of(elements, "threadStart")}
    assert names == {"7": "<a&b>'\"\ufffd\ufffd\ufffd", "8": "日本 ]]>"}, names
    assert of(elements, "classDef")[0].get("name") == "a_b\ufffd<c>"
    assert of(elements, "classDef")[0].get("sourceName") == "/tmp/a b\ufffd<c>"
    assert elements[0].get("hostname") == "<host> & \"co\""


def long_annotations_are_cut_and_told(tmp):
    c = CaptureWriter(cores=1)
    c.task(7, b"t")
    c.annotation(0, BASE, 7, b"x" * 100000)
    path = c.save(os.path.join(tmp, "a.cap"))
    result = tap.run("convert", path, "--to", "tptp")
    assert result.returncode == 0 and "cut" in result.stderr
    root = ElementTree.parse(os.path.join(tmp, "a.trcxml")).getroot()
    assert 60000 < len(bodies(list(root), "annotation")[0]["text"]) < 65536


# ---- damage ----

def a_damaged_capture_gives_a_whole_trace(tmp):
    machine = Machine(3, records=300)
    path = os.path.join(tmp, "a.cap")
    whole = machine.capture.bytes()
    with open(path, "wb") as file:
        file.write(whole[:-100])
    for format in "xml", "binary":
        result = tap.run("convert", path, "--to", "tptp", "--format", format)
        assert result.returncode == 1, result.stderr
    check_rules(list(ElementTree.parse(os.path.join(tmp, "a.trcxml")).getroot()))
    assert len(dump(os.path.join(tmp, "a.trcbin"))) > 300


def captures_changed_anywhere_end(tmp):
    whole = Machine(4, records=60, chains=True).capture.bytes()
    path, out = os.path.join(tmp, "a.cap"), os.path.join(tmp, "out")
    rng = random.Random(1)
    for _ in range(250):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with open(path, "wb") as file:
            file.write(data[:rng.randrange(len(data))] if rng.randrange(3) == 0 else data)
        result = tap.run("convert", path, "--to", "tptp", "-o", out, timeout=tap.HANG)
        assert result.returncode in (0, 1, 2), result.returncode
        if result.returncode < 2:
            ElementTree.parse(out)


def cut_traces_are_dumped_up_to_the_cut(tmp):
    capture = Machine(2, records=40).capture
    convert(tmp, capture)
    tap.run("convert", os.path.join(tmp, "a.cap"), "--to", "tptp", "--format=binary")
    for name in "a.trcxml", "a.trcbin":
        path = os.path.join(tmp, name)
        messages = dump(path)
        with open(path, "rb") as file:
            whole = file.read()
        with open(path, "wb") as file:
            file.write(whole[:-25])
        result = tap.run("dump", "--json", path)
        assert result.returncode == 1 and "at offset" in result.stderr, result.stderr
        got = [json.loads(line) for line in result.stdout.splitlines()]
        assert got == messages[:len(got)] and len(got) >= len(messages) - 2
        assert tap.run("check", path).returncode == 1
        with open(path, "wb") as file:
            file.write(whole[:9] if name == "a.trcbin" else b"<TRAC")
        assert tap.run("dump", "--json", path).returncode == 2


def pipes_are_read_and_written(tmp):
    capture = Machine(2, records=40).capture
    convert(tmp, capture)
    with open(os.path.join(tmp, "a.trcxml"), "rb") as file:
        want = file.read()
    result = tap.run("convert", "-", "--to", "tptp", input=capture.bytes(), text=False)
    assert result.returncode == 0 and result.stdout == want
    result = tap.run("dump", "--json", "-", input=want, text=False)
    assert result.returncode == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == \
        dump(os.path.join(tmp, "a.trcxml"))


# ---- the manual ----

def the_manual_has_all_messages_with_their_attributes(tmp):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user")
    with open(os.path.join(root, "man", "kbarman-formats.5"), encoding="utf-8") as file:
        manual = dict(re.findall(r'^\.BR (\w+) " \((\d+)\)"\n(?=\w|\[)', file.read(), re.M))
    with open(os.path.join(root, "include", "kbarman", "tptp_tables.h"), encoding="utf-8") as file:
        tables = {name: id for id, name in
                  re.findall(r"KB_TPTP_MESSAGE\(\w+, (\d{4}), (\w+)\)", file.read())}
    assert manual == tables and len(tables) == 30, set(tables) ^ set(manual)


# ---- clients ----

def served(tmp, says, *options):
    """What a client gets that says this."""
    path = Machine(2, records=400).capture.save(os.path.join(tmp, "a.cap"))
    with subprocess.Popen([tap.KBARMAN, "convert", path, "--to", "tptp", "--serve=0", *options],
                          stderr=subprocess.PIPE, text=True) as tool:
        line = tool.stderr.readline()
        assert "127.0.0.1" in line, line
        with socket.create_connection(("127.0.0.1", int(line.split()[-1])), 30) as client:
            client.sendall(says)
            data = b""
            while True:
                part = client.recv(65536)
                if not part:
                    break
                data += part
        tool.stderr.read()
        assert tool.wait(tap.HANG) == 0
    return data


def clients_get_binary_if_both_want_it(tmp):
    data = served(tmp, b"format=binary\n", "--format=binary")
    path = os.path.join(tmp, "got")
    with open(path, "wb") as file:
        file.write(data)
    assert data[:4] == b"0TBF" and len(dump(path)) > 400


def clients_that_say_nothing_get_xml(tmp):
    for says in b"", b"format=xml\n", b"hello\n":
        data = served(tmp, says, "--format=binary")
        check_rules(list(ElementTree.fromstring(data)))


def clients_get_xml_if_binary_was_not_asked_for(tmp):
    assert served(tmp, b"format=binary\n").endswith(b"</TRACE>\n")


def a_port_in_use_is_told(tmp):
    path = CaptureWriter().save(os.path.join(tmp, "a.cap"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = tap.run("convert", path, "--to", "tptp", f"--serve={port}")
    assert result.returncode == 2 and str(port) in result.stderr, result.stderr


def memory_does_not_grow_with_the_capture(tmp):
    machine = Machine(1, records=20000, chains=True)
    path = machine.capture.save(os.path.join(tmp, "a.cap"), repeat=100)
    assert os.path.getsize(path) > 64 << 20
    for options in (), ("--format=binary",), ("--aggregate",):
        peak = tap.peak_kib("convert", path, "--to", "tptp", "-o", "/dev/null", *options)
        assert peak <= 32 << 10, (options, peak)


if __name__ == "__main__":
    tap.main(globals())
