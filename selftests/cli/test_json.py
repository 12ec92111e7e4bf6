#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The JSON of each verb has what kbarman-json(5) promises: kinds, keys, types.

The page is read here, so that the two can't differ. A section of the page is a verb, or a format that
`dump` reads; each has a test whose lines have every kind and every key of that section at least once."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_classes
import test_diff
import test_doctor
import test_critical_path
import test_dump_exports
import test_last_second
import test_latency
import test_requests
import test_rotated
import test_lines
import test_record as recorder
import test_script
import test_tptp
import test_ended_report
import test_waits
from capture_writer import CaptureWriter
from make_capture import Maker
from test_dump import full_image
from test_recover_memory import stamp
from test_top import kernel_function, waits_for

PAGE = os.path.join(TREE, "user", "man", "kbarman-json.5")
TABLES = os.path.join(TREE, "user", "include", "kbarman", "tptp_tables.h")
Key = collections.namedtuple("Key", "type may_be_absent may_be_null elements")
TYPES = {"Integers": "integer", "Numbers": "number", "Texts": "text", "Booleans": "boolean",
         "Lists": "list"}


def keys_of(text):
    """{name: Key} of "Integers: a, [b] (signed), c*. Texts: d": [b] may be absent, c null."""
    keys = {}
    for group, names in re.findall(rf"({'|'.join(TYPES)}): (.*?)\.(?= [A-Z]|$)", text):
        for part in re.findall(r"(?:[^,(]|\([^)]*\))+", names):
            found = re.fullmatch(r" ?(\[?)(\w+)(\]?)(\*?)(?: \((.*)\))?", part)
            assert found and bool(found[1]) == bool(found[3]), (part, text)
            assert found[2] not in keys, (found[2], text)
            keys[found[2]] = Key(TYPES[group], bool(found[1]), bool(found[4]),
                                 found[5] if group == "Lists" else None)
    return keys


def read_page():
    """{section: {kind: {key: Key}}}; a kind is "record" or, where a type adds keys, "record sample"."""
    sections, kinds, heads, expects_head = {}, {}, [], False
    with open(PAGE, encoding="utf-8") as file:
        text = re.sub(r"\\([-e])", r"\1", file.read())
    for line in text.splitlines() + [".SH END"]:
        if line.startswith(".SH "):
            kinds = sections.setdefault(line[4:], {})
            heads = []
        elif line == ".TP":
            expects_head = True
        elif expects_head:
            expects_head = False
            kind, _, types = line.removeprefix(".B ").partition(", type ")
            heads = [f"{kind} {name}" for name in types.split(", ")] if types else [kind]
            for head in heads:
                kinds[head] = ""
        elif not line.startswith(".") and heads:
            for head in heads:
                kinds[head] += (" " if kinds[head] else "") + line
        elif heads and line.startswith("."):
            for head in heads:
                kinds[head] += " " + " ".join(line.split()[1:])
    return {section: {kind: keys_of(text) for kind, text in kinds.items()}
            for section, kinds in sections.items() if any(map(keys_of, kinds.values()))}


def is_of(value, wanted):
    """Is that what the page calls so?"""
    if wanted == "boolean" or isinstance(value, bool):
        return wanted == "boolean" and isinstance(value, bool)
    return isinstance(value, {"integer": int, "number": (int, float), "text": str, "list": list}[wanted])


def elements_are(values, described):
    wanted = {"integers": "integer", "texts": "text", "lists": "list"}[described.split()[0]]
    length = len(re.findall(r"\w+", described.partition(" of ")[2].replace(" and ", " ").partition(";")[0]))
    return all(is_of(value, wanted) and (wanted != "list" or len(value) >= length)
               for value in values)


def check_line(kinds, line, more=()):
    """What `line` has of (kind, key); an AssertionError says which promise it breaks."""
    assert list(line)[0] == "kind", line
    kind = line["kind"]
    assert kind in kinds, ("a kind that the page does not have", line)
    typed = f"{kind} {line.get('type')}"
    keys = {**kinds[kind], **kinds.get(typed, {})}
    if any(name.startswith(f"{kind} ") for name in kinds):
        assert typed in kinds, ("a type that the page does not have", line)
    for name, key in keys.items():
        if name not in line:
            assert key.may_be_absent, ("a key is gone", kind, name, line)
        elif line[name] is None:
            assert key.may_be_null, ("a key is null", kind, name, line)
        else:
            assert is_of(line[name], key.type), ("a key has another type", kind, name, line)
            assert not key.elements or elements_are(line[name], key.elements), (kind, name, line)
    others = set(line) - set(keys) - {"kind"} - set(more)
    assert not others, ("keys that the page does not have", kind, others)
    of_type = kinds.get(typed, {})
    return {(typed if name in of_type else kind, name) for name in keys if line.get(name) is not None}


def check(section, lines):
    """All lines keep the promise, and together they have all of it."""
    kinds = read_page()[section]
    found = set().union(*(check_line(kinds, line) for line in lines))
    wanted = {(kind, name) for kind, keys in kinds.items() for name in keys}
    assert found == wanted, ("kinds and keys that no line had", sorted(wanted - found))


def objects(*args, stream="stdout", status=(0,), **kwargs):
    done = tap.run(*args, **kwargs)
    assert done.returncode in status, done
    return [json.loads(line) for line in getattr(done, stream).splitlines() if line.startswith("{")]


# ---- a test for each section ----

def dump_of_captures_has_what_is_promised(tmp):
    path = os.path.join(tmp, "a.cap")
    full_image(8, "<").save(path)
    lines = objects("dump", "-j", path)
    capture = Maker(series=["Wakeups"])
    capture.lost(0, 500, 1, reason=0, begin=400)
    capture.task(7, "a")
    capture.map(7, 0x1000, 0x1000, 0, "/bin/a", file="1:2:3:4")
    capture.sample(0, 1000, 7, 0x1000, [], [0x1000])
    capture.switch(0, 2000, 7, state=1, chain=[0x1000], waits_for=test_waits.FOR[0][0])
    capture.halt(0, 3000, True, 1)
    capture.about(0, 4000, 7, "waking", 8, cpu=0, context=2)
    capture.about(0, 4000, 7, 99, 8, context=9)
    capture.syscall(0, 5000, 7, 0, 4500, -2, (3, 2**64 - 1, 4096))
    capture.fault(0, 5001, 7, 5000, 1, 4096, 8)
    capture.block(0, 5002, 7, 5000, 0, 8, 8 << 20, 512)
    capture.save(path)
    check("DUMP OF A BARMAN CAPTURE", lines + objects("dump", "-j", path))


def dump_of_annotate_streams_has_what_is_promised(tmp):
    lines = []
    for name in "all-messages", "versions":
        lines += objects("dump", "-j", os.path.join(HERE, "..", "fuzz", "corpus", "annotate",
                                                    f"{name}.annotate"))
    check("DUMP OF AN ANNOTATE STREAM", lines)


def dump_of_heph_traces_has_what_is_promised(tmp):
    made = test_dump_exports
    data = made.heph_option() + made.heph_event((b"a", made.U64, bytes(8))) + \
        made.heph_option(b"other", b"123")
    check("DUMP OF A HEPH TRACE", made.dump(tmp, data, status=1))


def tptp_tables():
    """{id: {field: type on the page}}"""
    types = {"BYTE": "integer", "INTEGER": "integer", "LONG": "integer", "TIME": "integer",
             "STRING": "text", "STRINGS": "list", "LONGS": "list"}
    tables = {}
    with open(TABLES, encoding="utf-8") as file:
        for which, args in re.findall(r"^KB_TPTP_(MESSAGE|FIELD)\((.*)\)$", file.read(), re.M):
            args = args.split(", ")
            if which == "MESSAGE":
                fields = tables.setdefault(int(args[1]), {})
            else:
                fields[args[3]] = types[args[2]]
    return tables


def dump_of_tptp_traces_has_what_is_promised(tmp):
    tables = tptp_tables()
    kinds = read_page()["DUMP OF A TPTP TRACE"]
    machine = test_tptp.Machine(2, records=400)
    path = machine.capture.save(os.path.join(tmp, "a.cap"))
    found = set()
    for form in (), ("--aggregate",):
        done = tap.run("convert", path, "--to", "tptp", "--format=binary", *form, "-o",
                       os.path.join(tmp, "a.trcbin"))
        assert done.returncode == 0, done
        for line in objects("dump", "-j", os.path.join(tmp, "a.trcbin")):
            fields = tables[line["id"]]
            check_line(kinds, line, fields)
            for name, wanted in fields.items():
                assert is_of(line[name], wanted), (name, line)
            found.add(line["name"])
    assert len(found) > 10, found


# The facts of a capture that triggers wrote.
TRIGGERED = {"trigger": "3", "trigger.suppressed": "4", "trigger.unwatched": "5",
             "trigger.0": "1000,0,7,5100000,latency>5ms", "trigger.0.reason": "'a' (7) waited 5.1 ms",
             "trigger.1": "2000,,0,0,signal:USR1", "trigger.1.reason": "the signal USR1 came"}


def make_report_capture(directory):
    """One that has everything; its program has a function in another one."""
    program = test_lines.build(directory, test_lines.C_SOURCE, "gcc")
    addresses = test_lines.code(program, "outer", "main")
    host, kernel, ms = os.uname().nodename, 0xffffffff81000000, 1_000_000
    capture = Maker(cores=2, counters=[17, 8], series=["Lost records", "Counters stopped"], facts={
        "host": host, "release": "6.1.0", "command": "./a", "filter": "command", "asleep": "1,1000",
        "fallback": "cpu-clock", "clock_unsteady": "1", "counts": "switch,0",
        **{f"counter.{core}.{i}": name for core in (0, 1)
           for i, name in enumerate(["cycles", "instructions"])},
        "uncounted.1.2": "misses", "unsampled.1.0": "misses", "written.0": "10", "lost.0.full": "2", "missed.map": "1", "stopped.0.throttled": "1",
        "cgroup.0": "/a.slice", "cgroup_of.1": "0", "command.1": "./lines --all", **TRIGGERED})
    capture.task(0, "swapper")
    capture.task(7, "lines")
    capture.map(7, test_lines.BASE, 0x10000, 0, program)
    capture.map(0, kernel, 0x3000, 0, "[kernel.kallsyms]")
    now = ms
    capture.switch(0, now, 7)
    for address in addresses:
        now += ms
        address += test_lines.BASE
        capture.sample(0, now, 7, address, [1000, 500], [address, address])
    capture.sample(0, now, 7, None, [10, 5])
    capture.sample(0, now + ms, 7, kernel + 8, [1000, 500], [kernel + 8], kernel=1)
    capture.sample(0, now + 2 * ms, 7, 0x10, [1000, 500])
    capture.custom(0, now + 2 * ms, 7, 1, 1)
    capture.custom(0, now + 3 * ms, 7, 1, 0)
    capture.switch(0, now + 4 * ms, 0, blocked=True, state=1, kernel=1,
                   chain=[kernel + 8, *(test_lines.BASE + address for address in addresses)])
    capture.halt(0, now + 5 * ms, True, 1)
    capture.halt(0, now + 6 * ms, False)
    capture.switch(0, now + 7 * ms, 7)
    capture.save(os.path.join(directory, "kbarman.cap"))
    with open(os.path.join(directory, "kbarman.cap.kallsyms"), "w", encoding="ascii") as file:
        file.write(f"{kernel:x} T _stext\n{kernel:x} T schedule\n{kernel + 0x2000:x} T _etext\n")


def report_has_what_is_promised(tmp):
    for program in "gcc", "objdump":
        if not shutil.which(program):
            raise tap.Skip(f"there is no {program} here")
    make_report_capture(tmp)
    sort = "task,pid,tid,cgroup,cpu,mode,image,symbol,line"
    lines = objects("report", "-j", "-g", "--children", "--inline", "--sort", sort, cwd=tmp)
    lines += objects("report", "-j", "-M", "all", "--tid", "7", cwd=tmp)
    if not any("inlined" in line for line in lines if line["kind"] == "call"):
        raise tap.Skip("this tool or this machine has no libdw")
    os.mkdir(last := os.path.join(tmp, "last"))
    test_last_second.make(last, test_last_second.ENDED)
    lines += objects("report", "-j", cwd=last)
    os.mkdir(late := os.path.join(tmp, "late"))
    test_latency.full(late)
    lines += objects("report", "-j", "--latency", "--irq", "--tid", "7", cwd=late)
    lines += objects("report", "-j", "--latency", "--irq", cwd=late) + objects("report", "-j", cwd=late)
    os.mkdir(waits := os.path.join(tmp, "waits"))
    test_waits.make_objects(waits)
    lines += objects("report", "-j", "--waits", cwd=waits)
    test_waits.named(os.path.join(waits, "kbarman.cap"), {"3.12.1.0": "/x"},
                     [(0, test_waits.FILE, 0, 1, 12), (202, test_waits.FUTEX, 0, 8, 4096)], threads=(8,))
    lines += objects("report", "-j", "--waits", cwd=waits) + objects("report", "-j", "--classes", cwd=waits)
    test_waits.woken(waits)
    lines += objects("report", "-j", "--waits", cwd=waits)
    test_waits.make_many(waits, more=1)
    lines += objects("report", "-j", "--waits", cwd=waits) + objects("report", "-j", "--classes", cwd=waits)
    test_waits.make_inferred(waits)
    lines += objects("report", "-j", "--waits", cwd=waits) + objects("report", "-j", "--classes", cwd=waits)
    test_classes.some("syscalls,faults").save(os.path.join(waits, "kbarman.cap"))
    lines += objects("report", "-j", "--classes", cwd=waits)
    test_ended_report.make(waits)
    lines += objects("report", "-j", "--syscalls", cwd=waits)
    test_ended_report.make_faults_and_requests(waits)
    lines += objects("report", "-j", "--faults", cwd=waits) + objects("report", "-j", "--block", cwd=waits)
    test_critical_path.full(late)
    lines += objects("report", "-j", "--critical-path", "first", cwd=late)
    test_requests.full(late)
    lines += objects("report", "-j", "--request", "begin..end", cwd=late)
    os.mkdir(rotated := os.path.join(tmp, "rotated"))
    test_rotated.Run(1).capture.save(os.path.join(rotated, "kbarman.cap"))
    lines += objects("report", "-j", "-M", "ipc", cwd=rotated)
    check("REPORT", lines)


def script_has_what_is_promised(tmp):
    for program in "gcc", "objdump":
        if not shutil.which(program):
            raise tap.Skip(f"there is no {program} here")
    make_report_capture(tmp)
    lines = objects("script", "-j", "--counters", "--lines", cwd=tmp)
    lines += objects("script", "-j", test_script.make_sources(os.path.join(tmp, "sources.cap")))
    capture = CaptureWriter()
    capture.task(7, b"marker")
    capture.annotation(0, 1000, 7, b"phase", channel=3)
    path = os.path.join(tmp, "marks.cap")
    capture.save(path)
    lines += objects("script", "-j", path)
    capture = Maker(series=["Lost records"])
    capture.lost(0, 500, 1, reason=0, begin=400)
    lines += objects("script", "-j", capture.save(path))
    if not any("file" in line for line in lines):
        raise tap.Skip("this tool or this machine has no libdw")
    check("SCRIPT", lines)


def diff_has_what_is_promised(tmp):
    paths = test_diff.sides(tmp, 1, slower=0.3)
    short = Maker(counters=[8, 9], facts={"counter.0.0": "cycles", "counter.0.1": "instructions"})
    short.task(7, "a")
    short.switch(0, 1000, 7)
    lines = objects("diff", "-j", "--one-run", "--fail-if", "cpu:+1%", *paths, status=(3,))
    check("DIFF", lines + objects("diff", "-j", "--force", "--cpu", "0", paths[2], short.save(os.path.join(tmp, "short.cap"))))


def info_has_what_is_promised(tmp):
    capture = Maker(counters=[17], series=["Counters stopped"], facts={
        "host": "here", "release": "6.1.0", "command": "./a", "filter": "none",
        "fallback": "cpu-clock", "clock_unsteady": "1", "counter.0.0": "cycles", "written.0": "5",
        "missed.map": "1", "stopped.0.throttled": "1", "sources": "wake", "uncounted.0.1": "misses",
        "unsampled.0.0": "misses", "end": "panic", "end_ticks": "1100", "end_cpu": "0", "end_task": "7,a",
        "end_text": "why", "end_chain": "0xffffffff81000010,0xffffffff81000020", **TRIGGERED})
    capture.about(0, 500, 0, "waking", 7)
    capture.switch(0, 1000, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    check("INFO", objects("info", "-j", cwd=tmp))


def list_has_what_is_promised(tmp):
    lines = objects("list", "-j", "--all")
    if not any(line["refused"] for line in lines):
        raise tap.Skip("this machine can count all events")
    former = os.path.join(tmp, "former")
    with open(former, "wb") as file:
        file.write(stamp(1))
    lines += objects("list", "-j", "--sessions", env=recorder.fake(FAKE_RUNNING=1, FAKE_OTHERS=1, FAKE_FORMER=former))
    check("LIST", lines + objects("list", "-j", "--all", "--metrics"))


def stat_has_what_is_promised(tmp):
    where = {"stream": "stderr", "cwd": tmp}
    lines = objects("stat", "-j", "-e", "task-clock", "true", **where)
    if lines[0]["value"] is None:
        raise tap.Skip("this machine counts nothing")
    lines += objects("stat", "-j", "-I", "50", "-e", "task-clock", "sleep", "0.2", **where)
    lines += objects("stat", "-j", "-r", "2", "-e", "task-clock", "true", **where)
    lines += objects("stat", "-j", "-M", "cpus,ipc", "-I", "50", "sleep", "0.1", **where)
    for seconds in "0.2", "2", "20", "60":  # on a busy machine, each group has its second turn later
        turns = objects("stat", "-j", "-a", "--rotate", "2", "-e", "{page-faults,minor-faults},"
                        "{context-switches,cpu-migrations}", "sleep", seconds, **where, status=(0, 2))
        if not turns or any("error" in line for line in turns):
            break
    lines += turns
    for share in "-A", "--per-core", "--per-socket":
        lines += objects("stat", "-j", "-a", share, "-M", "cpus", "true", **where, status=(0, 2))
    refused = [line["name"] for line in objects("list", "-j", "--all")
               if (line["refused"] or "").startswith("this machine has no")]
    if refused:
        lines += objects("stat", "-j", "-e", f"task-clock,{refused[0]}", "true", **where)
    if not (refused and any("cpu" in line for line in lines)):
        raise tap.Skip("each CPU can be counted by root alone, or this machine can count all events")
    check("STAT", lines)


def merge_has_what_is_promised(tmp):
    good = {"realtime_end": "2000000,1600000000002000000", "realtime_error_base": "1,5000,50",
            "realtime_error_end": "1,5000,50", "host": "here"}
    lines = []
    for facts in good, {}:
        for number, name in enumerate(("one.cap", "two.cap")):
            capture = Maker(facts={**facts, "raw_base": str(number + 1)})
            capture.switch(0, 1000, 1)
            capture.save(os.path.join(tmp, name))
        lines += objects("merge", "--machines", "-j", "-o", "out", "one.cap", "two.cap", cwd=tmp)
    check("MERGE", lines)


def top_has_what_is_promised(tmp):
    _, address = kernel_function("schedule")
    lines = []

    def shows(waits, key, **settings):
        said = objects("top", "-j", "-n", "3", "-d", "0.2", "--latency", cwd=tmp, env=recorder.fake(
            FAKE_PC=hex(address), FAKE_OBJECTS=1, FAKE_NAMESPACE=0, FAKE_WAITS=waits, **settings))
        lines.extend(said)
        return any(line["kind"] == "waits_for" and key in line for line in said)

    with open(os.path.join(tmp, "file"), "wb") as file:
        shows(waits_for(file), "name")
        # with few records, none of which is overwritten, as often as the search for names needs
        tap.until(lambda: shows(waits_for(file), "name", FAKE_RATE=1), "a file's name")
        # the first thread of the process holds it
        tap.until(lambda: shows("1.202.8.0.7.4096", "holder", FAKE_RATE=1), "a lock's holder")
    check("TOP", lines)


def flight_has_what_is_promised(tmp):
    env = {**recorder.fake(), "KBARMAN_RUNTIME_DIR": tmp}
    with subprocess.Popen([tap.KBARMAN, "flight", "run"], cwd=tmp, env=env,
                          stderr=subprocess.DEVNULL) as runs:
        try:
            lines = []
            while not lines:
                assert runs.poll() is None, runs
                lines = objects("flight", "status", "-j", env=env, cwd=tmp, status=(0, 1, 2))
                time.sleep(0.05)
            check("FLIGHT", lines)
        finally:
            runs.terminate()


def doctor_has_what_is_promised(tmp):
    lines = objects("doctor", "-j", "--root", test_doctor.machine(tmp), cwd=tmp, status=(0, 1))
    check("DOCTOR", lines)
    assert {line["verdict"] for line in lines} <= {"ok", "warn", "fail"}, lines


def version_has_what_is_promised(tmp):
    check("VERSION", objects("version", "-j"))


# ---- the page, and this test ----

def every_verb_with_json_has_a_section(tmp):
    verbs = objects("version", "-j")[1]["names"]
    # what a query prints is as its question
    with_json = {verb.upper() for verb in set(verbs) - {"query"}
                 if "--json" in tap.run(verb, "--list-options").stdout.split()}
    assert len(with_json) > 5, with_json
    assert {section.split()[0] for section in read_page()} == with_json
    tests = {name.split("_")[0].upper() for name in globals() if name.endswith("has_what_is_promised")}
    assert tests == with_json, tests ^ with_json


def a_broken_promise_is_found(tmp):
    section = "VERSION"
    good = objects("version", "-j")
    check(section, good)

    def changed(**keys):
        line = {key: value for key, value in {**good[0], **keys}.items() if value is not Ellipsis}
        return [line, *good[1:]]

    for what, lines in (("a key is gone", changed(abi=...)), ("another type", changed(abi="1")),
                        ("another type", changed(abi=1.5)), ("is null", changed(version=None)),
                        ("a kind that", changed(kind="release")), ("keys that", changed(added=1)),
                        ("no line had", good[1:])):
        try:
            check(section, lines)
        except AssertionError as error:
            assert what in str(error), (what, error)
        else:
            raise AssertionError(what)


if __name__ == "__main__":
    recorder.main(globals())
