#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman convert, from outside: files, pipes, sockets, damage; Heph by the limits of its
existing reader; Annotate by its text."""
import gzip
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cross_format  # noqa: E402
import heph_model  # noqa: E402
import parquet  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from make_capture import Maker  # noqa: E402

ROW, COUNTERS, IDLE_TASK = 0, 2147483646, 2147483647


def small():
    """Two CPUs, three tasks, all kinds of records."""
    c = CaptureWriter(cores=2, counters=2)
    c.fact("ext", 1)
    c.fact("raw_base", 5000)
    c.fact("counter.0.0", "cycles")
    c.fact("counter.0.1", "misses")
    c.fact("counter.1.0", "cycles")
    c.fact("counter.1.1", "misses")
    c.task(0, b"swapper")
    c.task(10, b"alpha")
    c.task(11, b"beta")
    c.fact("tgid.2", 10)
    c.custom(b"requests", multiplier=0.001)
    c.custom(b"Lost records")
    t = BASE
    c.switch(0, t, 10)
    c.switch(1, t, 0)
    c.halt(1, t + 100, 1, 2)
    c.sample(0, t + 1000, 10, 0x1234, (50, 5), (0x1234, 0x5678))
    c.switch(0, t + 2000, 11, blocked=1)
    c.annotation(0, t + 2500, 11, b"hello", channel=3)
    c.value(0, t + 2600, 0, 7, 11)
    c.halt(1, t + 3000, 0)
    c.switch(1, t + 3000, 10)
    c.switch(0, t + 4000, 10, blocked=0)
    c.value(0, t + 6000, 1, 99)
    c.annotation(0, t + 6000, 0, b"99 records lost", kind=1, colour=0x1bff0000)
    c.switch(0, t + 6000, 11)
    c.sample(1, t + 7000, 10, 0x5678, (60, 2**64 - 1))
    c.switch(0, t + 8000, 0)
    return c


def convert(tmp, capture, *options, status=0, name="a.cap"):
    path = capture.save(os.path.join(tmp, name))
    result = tap.run("convert", path, *options)
    assert result.returncode == status, (result.returncode, result.stderr)
    return result


def heph(tmp, capture, *options):
    convert(tmp, capture, "--to", "heph", *options)
    with open(os.path.join(tmp, "a.heph"), "rb") as file:
        return file.read()


def dump(path):
    result = tap.run("dump", "--json", path)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


# ---- files ----

def output_has_the_name_of_the_capture(tmp):
    convert(tmp, small(), "--to", "heph")
    convert(tmp, small(), "--to", "annotate")
    assert sorted(os.listdir(tmp)) == ["a.annotate", "a.cap", "a.heph"]


def output_name_keeps_dots_of_directories(tmp):
    os.mkdir(os.path.join(tmp, "x.y"))
    convert(tmp, small(), "--to", "heph", name="x.y/plain")
    assert sorted(os.listdir(os.path.join(tmp, "x.y"))) == ["plain", "plain.heph"]


def output_goes_where_it_is_told(tmp):
    convert(tmp, small(), "--to", "heph", "-o", os.path.join(tmp, "b"))
    assert sorted(os.listdir(tmp)) == ["a.cap", "b"]


def pipes_give_the_same_as_files(tmp):
    for name in "heph", "annotate":
        convert(tmp, small(), "--to", name)
        with open(os.path.join(tmp, "a." + name), "rb") as file:
            want = file.read()
        got = tap.run("convert", "-", "--to", name, input=small().bytes(), text=False)
        assert got.returncode == 0, got.stderr
        assert got.stdout == want


def the_capture_is_never_overwritten(tmp):
    convert(tmp, small(), "--to", "heph", name="a.heph", status=2)
    with open(os.path.join(tmp, "a.heph"), "rb") as file:
        assert file.read() == small().bytes()


def wrong_usage_says_what_to_do(tmp):
    path = small().save(os.path.join(tmp, "a.cap"))
    for options, says in ((("--to", "nonsense"), "heph, annotate"), ((), "--to"),
                          (("--to", "heph", "--format", "x"), "variant"),
                          (("--to", "heph", "--connect"), "tcp:HOST:PORT"),
                          (("--to", "heph", "--counter-values", "x"), "cumulative")):
        result = tap.run("convert", path, *options)
        assert result.returncode == 2 and says in result.stderr, result.stderr
    assert os.listdir(tmp) == ["a.cap"]


def what_is_no_capture_leaves_nothing(tmp):
    path = os.path.join(tmp, "a.cap")
    for content in (b"", b"nonsense" * 100):
        with open(path, "wb") as file:
            file.write(content)
        result = tap.run("convert", path, "--to", "heph")
        assert result.returncode == 2 and "a.cap" in result.stderr, result.stderr
        assert os.listdir(tmp) == ["a.cap"]


def unwritable_output_is_told(tmp):
    result = convert(tmp, small(), "--to", "heph", "-o", "/nonexistent/x", status=2)
    assert "/nonexistent/x" in result.stderr


def a_full_disk_is_told(tmp):
    result = convert(tmp, small(), "--to", "annotate", "-o", "/dev/full", status=2)
    assert "No space left" in result.stderr, result.stderr


def a_damaged_capture_is_exported_up_to_the_damage(tmp):
    whole = small().bytes()
    path = os.path.join(tmp, "a.cap")
    with open(path, "wb") as file:
        file.write(whole[:-50])
    for name in "heph", "annotate":
        result = tap.run("convert", path, "--to", name)
        assert result.returncode == 1 and len(result.stderr.splitlines()) >= 1, result.stderr
        assert len(dump(os.path.join(tmp, "a." + name))) > 10


def captures_cut_or_flipped_anywhere_end(tmp):
    whole = bytearray(small().bytes())
    path = os.path.join(tmp, "a.cap")
    for at in range(0, len(whole), 7):
        for damage in "cut", "flip":
            data = whole[:at] if damage == "cut" else bytearray(whole)
            if damage == "flip":
                data[at] ^= 0xff
            with open(path, "wb") as file:
                file.write(data)
            for name in "heph", "annotate":
                result = tap.run("convert", path, "--to", name, "-o", os.path.join(tmp, "out"),
                                 timeout=tap.HANG)
                assert result.returncode in (0, 1, 2), (at, damage, result)
            if os.path.exists(os.path.join(tmp, "out")):
                os.unlink(os.path.join(tmp, "out"))


class Later(Maker):
    """A capture of a module that knows more: records have more bytes at their end."""
    more = b""

    def record(self, kind, core, timestamp, payload):
        super().record(kind, core, timestamp, payload + bytes(-len(payload) % 8) + self.more)


def later(tmp, more):
    capture = Later(cores=2, counters=[8], series=["Lost records"] + list("abcdefg"), facts={"states": "S=1,D=2"})
    capture.more = more
    capture.task(5, "five")
    capture.map(5, 0x1000, 0x1000, 0, "/bin/x")
    for at in range(1000, 3000, 100):
        capture.switch(0, at, 5, True, 1, chain=[0x1100, 0x1200])
        capture.sample(0, at + 10, 5, 0x1100, [7], chain=[0x1100, 0x1300])
        capture.about(0, at + 20, 5, "waking", 6, 1, 1, 2)
        capture.about(0, at + 30, 5, 77, 6, 1, 1, 3)  # enum bm_kbarman_what has no such number
        capture.lost(0, at + 40, 3, 0, at + 35)
        capture.lost(0, at + 50, 3, 9, at + 45)  # nor enum kbarman_loss
        capture.switch(0, at + 60, 0, True, 1, chain=[])
        capture.halt(0, at + 70, 1, 2)
        capture.halt(0, at + 90, 0, 2)
    return capture.save(os.path.join(tmp, "a.cap"))


def records_of_a_later_module_are_read_as_before(tmp):
    said = {}
    for more in b"", b"\xa5" * 16:
        path = later(tmp, more)
        for args in (["check"], ["report", "--json"], ["report", "--latency", "--json"], ["script", "--json"],
                     *(["convert", "-o", "-", "--to", to] for to in
                       "annotate chrome firefox folded heph html perfetto pprof speedscope tptp".split())):
            done = subprocess.run([tap.KBARMAN, *args, path], capture_output=True, check=False)
            assert done.returncode == 0 and done.stdout, (args, done)
            assert said.setdefault(str(args), (done.stdout, done.stderr)) == (done.stdout, done.stderr), args


def an_empty_capture_is_exported(tmp):
    _, events = heph_model.read(heph(tmp, CaptureWriter()))
    assert [e[5] for e in events] == ["target"]


def all_bytes(path):
    """What an export wrote: a file, maybe packed by gzip, or the files of a directory; packed tables
    as Python shows them."""
    if path.endswith(".parquet"):
        return "".join(str(list(group.values())) for file in parquet.files_of(path)
                       for group in parquet.File(file).groups).encode()
    names = [path] if os.path.isfile(path) else \
        sorted(os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
    data = b""
    for name in names:
        with open(name, "rb") as file:
            data += file.read()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def broken_text_becomes_u_fffd_in_every_export(tmp):
    c = CaptureWriter(cores=1, counters=1)
    c.fact("ext", 1)
    c.task(0, b"swapper")
    c.task(10, b"bro\xffken")
    c.map(10, 0x1000, 0x1000, 0, b"[im\xffage]")
    for i in range(4):
        c.switch(0, BASE + 1000 * i, 10 if i % 2 else 0)
        c.annotation(0, BASE + 1000 * i + 200, 10, b"no\xffte")
        c.sample(0, BASE + 1000 * i + 500, 10, 0x1100, (50,))
    exports = [line.split()[0] for line in
               tap.run("convert", "--help").stdout.split("formats:\n")[1].splitlines()
               if line.startswith("  ") and line[2] != " "]
    assert len(exports) >= 5, exports
    exports.remove("barman")        # the capture as it is
    for export in exports:
        out = os.path.join(tmp, "out." + export)
        convert(tmp, c, "--to", export, "-o", out)
        data = all_bytes(out)
        for broken in b"bro\xffken", b"im\xffage", b"no\xffte":
            assert broken not in data, (export, broken)
        text = data.decode("utf-8", "replace").replace("\\ufffd", "\ufffd")
        assert "bro\ufffdken" in text or "im\ufffdage" in text, export


def exports_say_what_the_capture_says(tmp):
    cross_format.compare(small().save(os.path.join(tmp, "a.cap")), tmp)


def exports_say_what_a_random_capture_says(tmp):
    seed = int(os.environ.get("SEED", 1))
    print(f"# SEED={seed}")
    rng = random.Random(seed)
    c, now = CaptureWriter(cores=3, counters=2), BASE
    c.fact("ext", 1)
    c.custom(b"requests")
    c.custom(b"Lost records")
    for task in range(20):
        c.task(task, f"task{task}".encode())
    for _ in range(20000):
        now += rng.choice((0, 1, 30, 700, 5000))
        core, task, what = rng.randrange(3), rng.randrange(20), rng.random()
        if what < 0.5:
            c.switch(core, now, task, rng.randrange(2))
        elif what < 0.75:
            c.halt(core, now, rng.randrange(2), rng.randrange(4))
        elif what < 0.9:
            c.sample(core, now, task, rng.randrange(2**48), (rng.randrange(10**6), 2**64 - 1))
        elif what < 0.95:
            c.value(core, now, 0, rng.randrange(1000), task)
        elif what < 0.999:
            c.annotation(core, now, task, b"text", kind=rng.randrange(4), channel=rng.randrange(3))
        else:
            c.value(core, now, 1, rng.randrange(1, 100))
    cross_format.compare(c.save(os.path.join(tmp, "a.cap")), tmp)


def exports_say_what_real_captures_say(tmp):
    captures = viewers.real_captures()
    if not captures:
        raise tap.Skip("KBARMAN_CAPTURES names no folder of captures")
    for capture in captures:
        cross_format.compare(capture, tmp)


# ---- Heph ----

def heph_is_taken_by_the_existing_reader(tmp):
    epoch, events = heph_model.read(heph(tmp, small()))
    assert epoch == 1700000000 * 10**9
    row = [(e[3], e[4], e[5]) for e in events if e[0] == 1 and e[2] == ROW]
    # alpha came back at 4000, which was the last record before the gap
    assert row == [(0, 2000, "alpha"), (2000, 4000, "beta"), (4000, 6000, "99 records lost"),
                   (6000, 8000, "beta")], row
    idle = [e for e in events if e[0] == 2 and e[5] == "idle"]
    assert [(e[3], e[4], e[6]) for e in idle] == [(100, 3000, [("state", 2)])], idle


def losses_behind_the_last_record_are_told(tmp):
    c = small()
    c.fact("lost.0.full", 99 + 5)   # 99 are told of in the records
    c.fact("lost.1.nested", 0)
    c.last += 1000
    _, events = heph_model.read(heph(tmp, c))
    row = [(e[3], e[4], e[5]) for e in events if e[0] == 1 and e[2] == ROW]
    assert row[-1] == (8000, 9000, "5 records lost"), row
    cross_format.compare(c.save(os.path.join(tmp, "a.cap")), tmp)


def heph_slices_say_how_they_ended(tmp):
    _, events = heph_model.read(heph(tmp, small()))
    first = next(e for e in events if e[5] == "alpha")
    assert first[6] == [("tid", 10), ("tgid", 10), ("switched out", "blocked")], first
    second = next(e for e in events if e[5] == "beta")
    assert second[6] == [("tid", 11), ("tgid", 10), ("switched out", "preempted")], second


def heph_tasks_have_their_own_events(tmp):
    _, events = heph_model.read(heph(tmp, small()))
    own = [(e[0], e[2], e[5], e[6]) for e in events if e[2] in (10, 11)]
    assert (1, 11, "hello", [("channel", 3)]) in own, own
    samples = [e for e in own if e[3] and e[3][-1][0] == "pc"]
    assert [(e[0], e[1], e[3][-1]) for e in samples] == [(1, 10, ("pc", 0x1234)),
                                                        (2, 10, ("pc", 0x5678))], samples


def tasks_have_the_name_of_their_time(tmp):
    c = CaptureWriter(cores=1)
    c.task(10, b"before")
    c.task(10, b"after", timestamp=BASE + 1500)
    c.task(11, b"late", timestamp=BASE + 9000)
    for at, task in ((0, 10), (1000, 11), (1200, 10), (2000, 77), (3000, 10)):
        c.switch(0, BASE + at, task)
    _, events = heph_model.read(heph(tmp, c))
    names = [e[5] for e in events if e[0] == 1 and e[2] == ROW]
    assert names == ["before", "late", "after", "task 77"], names
    convert(tmp, c, "--to", "annotate")
    jobs = [m["name"] for m in dump(os.path.join(tmp, "a.annotate")) if m.get("type") == 12]
    assert jobs == ["before", "late", "after", "task 77", "after"], jobs


def heph_counters_are_events_of_their_own(tmp):
    _, events = heph_model.read(heph(tmp, small()))
    values = [(e[0], e[5], e[6]) for e in events if e[2] == COUNTERS]
    assert values == [(1, "cycles", [("value", 50)]), (1, "misses", [("value", 5)]),
                      (1, "requests", [("value", 7), ("scaled", 7 * 0.001)]),
                      (1, "Lost records", [("value", 99)]), (2, "cycles", [("value", 60)])], values


def heph_event_counters_have_no_gaps(tmp):
    _, events = heph_model.read(heph(tmp, small()))
    for stream in {e[0] for e in events}:
        counters = [e[1] for e in events if e[0] == stream]
        assert counters == list(range(len(counters)))


def heph_cuts_what_is_too_long_and_replaces_what_breaks_json(tmp):
    c = CaptureWriter(cores=1)
    c.task(1, ("\u00e4" * 200).encode())
    c.task(2, b'quote " back \\ tab \t bell \x07 del \x7f')
    c.task(3, b"broken \xff\xc3 end")
    for i, task in enumerate((1, 2, 3, 1)):
        c.switch(0, BASE + 1000 * i, task)
    c.annotation(0, BASE + 5000, 2, b"x" * 5000)
    _, events = heph_model.read(heph(tmp, c))
    names = [e[5] for e in events if e[2] == ROW and e[0]]
    assert names[0] and set(names[0]) == {"\u00e4"}
    assert names[1].startswith("quote ' back / tab   bell   del")
    assert names[2] == "broken \ufffd\ufffd end"
    assert any(e[5].startswith("xxxx") for e in events)


def heph_orders_many_events_of_one_microsecond(tmp):
    c = CaptureWriter(cores=1, counters=2)
    for task in range(1, 5):
        c.task(task, b"t%d" % task)
    for i in range(2000):
        c.switch(0, BASE + i * 7 // 3 * 50, 1 + i % 4)
        c.sample(0, BASE + i * 7 // 3 * 50, 1 + i % 4, 0x1000 + i, (1, 2))
    _, events = heph_model.read(heph(tmp, c))
    row = [e for e in events if e[2] == ROW and e[0]]
    assert all(a[4] <= b[3] for a, b in zip(row, row[1:])) and all(e[3] < e[4] for e in row)
    switched = [e for e in events if dict(e[6]).get("switched out")]
    assert len(switched) == 1999


def heph_keeps_times_before_the_base(tmp):
    c = CaptureWriter(cores=1)
    c.task(1, b"one")
    c.switch(0, BASE - 500, 1)
    c.switch(0, BASE - 300, 1)
    c.switch(0, BASE + 500, 1)
    path = c.save(os.path.join(tmp, "a.cap"))
    result = tap.run("convert", path, "--to", "heph")
    assert "before the capture's base" in result.stderr, result.stderr
    with open(os.path.join(tmp, "a.heph"), "rb") as file:
        _, events = heph_model.read(file.read())
    slices = [(e[2], e[3], e[4]) for e in events if e[0] == 1]
    assert slices == [(1, 0, 0), (ROW, 0, 500), (1, 500, 500)], slices


def heph_model_rejects_what_the_reader_rejects(tmp):  # pylint: disable=unused-argument
    epoch = struct.pack(">IIH5sQ", 0x75d11d4d, 23, 5, b"epoch", 10**18)

    def event(start=1, end=2, text=b"x", rest=b""):
        body = struct.pack(">IIQQQH", 0, 0, 0, start, end, len(text)) + text + rest
        return struct.pack(">II", 0xc1fc1fb7, 8 + len(body)) + body

    heph_model.read(epoch + event())
    array = struct.pack(">H1sBH", 1, b"a", 0x81, 0)
    option = struct.pack(">IIH1sQ", 0x75d11d4d, 19, 1, b"x", 1)
    for bad in (epoch, epoch + event(end=0), epoch + event(text=b"\xff"), option + event(),
                epoch + event(rest=array), epoch + event() + b"pad", epoch + event(text=b'"'),
                epoch + event(text=b"x" * 5000), epoch + event(1, 10**6) + event(2, 2),
                epoch + 40 * event(text=b"x" * 200)):
        try:
            heph_model.read(bad)
        except heph_model.Rejected:
            continue
        raise AssertionError(bad)


def heph_arrays_are_only_for_who_asks(tmp):
    data = heph(tmp, small(), "--arrays")
    try:
        heph_model.read(data)
    except heph_model.Rejected:
        pass
    else:
        raise AssertionError("the existing reader takes arrays")
    sample = next(e for e in dump(os.path.join(tmp, "a.heph"))
                  if ["pc", "u64", 0x1234] in e.get("attributes", []))
    attributes = {a[0]: a[1:] for a in sample["attributes"]}
    assert attributes["chain"] == ["u64[]", [0x1234, 0x5678]], attributes
    assert attributes["stack"][0] == "string[]" and len(attributes["stack"][1]) == 2


# ---- Annotate ----

def annotate_says_what_the_capture_says(tmp):
    convert(tmp, small(), "--to", "annotate")
    lines = dump(os.path.join(tmp, "a.annotate"))
    assert lines[0] == {"kind": "setup", "version": 3, "tid": 0, "pid": 0, "dont_mangle": 0}
    counters = {m["name"]: m for m in lines if m.get("type") == 8}
    assert counters["requests"]["modifier"] == 1000
    assert counters["cycles"]["class"] == 1 and counters["cycles"]["per_cpu"] == 1
    for m in counters.values():
        assert m["class"] and m["display"] and m["series_composition"] and m["rendering_type"]
    activity = next(m for m in counters.values() if m["class"] == 3)
    switches = [(m["core"], m["timestamp"], m["activity"], m["tid"]) for m in lines
                if m.get("type") == 10]
    assert all(m["key"] == activity["key"] for m in lines if m.get("type") == 10)
    raw = 5000
    assert switches == [(0, raw, 1, 10), (1, raw, 1, 0), (1, raw + 100, 0, -1),
                        (0, raw + 2000, 1, 11), (1, raw + 3000, 1, 0), (1, raw + 3000, 1, 10),
                        (0, raw + 4000, 1, 10), (0, raw + 6000, 1, 11),
                        (0, raw + 8000, 1, 0)], switches


def annotate_has_a_job_for_each_slice(tmp):
    convert(tmp, small(), "--to", "annotate")
    lines = dump(os.path.join(tmp, "a.annotate"))
    view = next(m for m in lines if m.get("type") == 13)
    assert view["name"] == "Scheduling"
    tracks = {m["track"]: m["name"] for m in lines if m.get("type") == 11}
    assert tracks == {1: "CPU 0", 2: "CPU 1"}
    jobs = [m for m in lines if m.get("type") == 12]
    assert len({m["job"] for m in jobs}) == len(jobs)
    first = [(m["start"], m["duration"], m["name"]) for m in jobs if m["track"] == 1][:2]
    assert first == [(5000, 2000, "alpha"), (7000, 2000, "beta")], first


def annotate_notes_keep_channel_colour_and_text(tmp):
    convert(tmp, small(), "--to", "annotate")
    lines = dump(os.path.join(tmp, "a.annotate"))
    note = next(m for m in lines if m.get("type") == 1)
    assert (note["channel"], note["text"]) == (3, "hello")
    marker = next(m for m in lines if m.get("type") == 7)
    assert (marker["color"], marker["text"]) == ("ff00001b", "99 records lost")


def annotate_says_samples_only_when_asked(tmp):
    convert(tmp, small(), "--to", "annotate")
    before = dump(os.path.join(tmp, "a.annotate"))
    convert(tmp, small(), "--to", "annotate", "--sample-text")
    after = dump(os.path.join(tmp, "a.annotate"))
    assert len(after) == len(before) + 2
    assert any(m.get("text", "").startswith("0x1234 ") for m in after)


def annotate_takes_a_picture_along(tmp):
    picture = os.path.join(tmp, "p.png")
    content = b"\x89PNG\r\n\x1a\n" + os.urandom(300000)
    with open(picture, "wb") as file:
        file.write(content)
    convert(tmp, small(), "--to", "annotate", "--picture", picture, "--picture-text", "graph")
    visual = next(m for m in dump(os.path.join(tmp, "a.annotate")) if m.get("type") == 5)
    assert (visual["text"], visual["image_bytes"]) == ("graph", len(content))
    with open(os.path.join(tmp, "a.annotate"), "rb") as file:
        assert b"graph\0" + content in file.read()


# ---- sockets ----

def received(server, result):
    """What comes over one connection to @server, into the list @result."""
    connection, _ = server.accept()
    with connection:
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    result.append(b"".join(parts))


def through(server, tmp, *options):
    server.settimeout(tap.HANG)
    result = []
    thread = threading.Thread(target=received, args=(server, result), daemon=True)
    thread.start()
    convert(tmp, small(), *options)
    thread.join(tap.HANG)
    return result[0]


def annotate_speaks_to_a_daemon(tmp):
    convert(tmp, small(), "--to", "annotate")
    with open(os.path.join(tmp, "a.annotate"), "rb") as file:
        want = file.read()
    name = f"kbarman-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        got = through(server, tmp, "--to", "annotate", f"--connect=unix:@{name}")
    assert got[:11] == b"ANNOTATE 3\n" and got[20:] == want[20:]
    tid, pid = struct.unpack("<ii", got[11:19])
    assert tid > 0 and tid == pid


def annotate_finds_the_daemon_by_itself(tmp):
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.bind("\0streamline-annotate")
        except OSError as why:
            raise tap.Skip("a daemon runs here") from why
        server.listen()
        assert through(server, tmp, "--to", "annotate", "--connect")[:11] == b"ANNOTATE 3\n"


def tcp_gets_the_whole_file(tmp):
    want = heph(tmp, small())
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        where = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        assert through(server, tmp, "--to", "heph", f"--connect={where}") == want
        assert through(server, tmp, "--to", "heph", "-o", where) == want


def what_was_sent_is_told(tmp):
    path = small().save(os.path.join(tmp, "a.cap"))
    for options, want in ([], 1), (["-q"], 0):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            where, result = f"tcp:127.0.0.1:{server.getsockname()[1]}", []
            thread = threading.Thread(target=received, args=(server, result), daemon=True)
            thread.start()
            done = tap.run("convert", *options, path, "--to", "heph", f"--connect={where}")
            assert done.returncode == 0, done
            thread.join(tap.HANG)
        assert len(re.findall(rf"sent [1-9]\d* records to {re.escape(where)}$", done.stderr, re.M)) == want, done


def ipv6_addresses_stand_in_brackets(tmp):
    want = heph(tmp, small())
    with socket.socket(socket.AF_INET6) as server:
        try:
            server.bind(("::1", 0))
        except OSError as why:
            raise tap.Skip("no IPv6 here") from why
        server.listen()
        where = f"tcp://[::1]:{server.getsockname()[1]}"
        assert through(server, tmp, "--to", "heph", "-o", where) == want


def udp_gets_a_packet_a_datagram(tmp):
    want = heph(tmp, small())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(tap.HANG)
        convert(tmp, small(), "--to", "heph",
                f"--connect=udp:127.0.0.1:{server.getsockname()[1]}")
        got = b""
        while len(got) < len(want):
            packet = server.recv(65536)
            assert struct.unpack_from(">I", packet, 4)[0] == len(packet)
            got += packet
    assert got == want


def nobody_listening_is_told(tmp):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for options in (("--to", "heph", f"--connect=tcp:127.0.0.1:{port}"),
                    ("--to", "annotate", "--connect=unix:@kbarman-nobody"),
                    ("--to", "annotate", "--connect=unix:/nonexistent/socket"),
                    ("--to", "heph", f"--connect=udp:127.0.0.1:{port}")):
        result = convert(tmp, small(), *options, status=2)
        assert "nobody listens" in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1, result.stderr


def places_that_are_none_are_told(tmp):
    for where in "nowhere", "tcp:host", "tcp::80", "unix:", "udp:localhost:nosuchport":
        result = convert(tmp, small(), "--to", "heph", f"--connect={where}", status=2)
        assert where in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr


def a_listener_that_goes_away_is_told(tmp):
    capture = small()
    path = capture.save(os.path.join(tmp, "a.cap"), repeat=20000)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        tool = subprocess.Popen([tap.KBARMAN, "convert", path, "--to", "heph",
                                 f"--connect=tcp:127.0.0.1:{server.getsockname()[1]}"],
                                stderr=subprocess.PIPE, text=True)
        connection, _ = server.accept()
        connection.recv(10)
        connection.close()
        assert tool.wait(tap.HANG) == 2
        assert "closed the connection" in tool.stderr.read()


# ---- memory ----

def memory_does_not_grow_with_the_capture(tmp):
    capture = small()
    path = os.path.join(tmp, "big.cap")
    capture.save(path, repeat=(64 << 20) // len(capture.records))
    for name in "heph", "annotate":
        peak = tap.peak_kib("convert", path, "--to", name, "-o", "/dev/null")
        assert peak <= 32 << 10, (name, peak)


if __name__ == "__main__":
    tap.main(globals())
