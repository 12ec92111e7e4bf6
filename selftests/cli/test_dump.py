#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman dump, check and merge of Barman captures, from outside."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import tap  # noqa: E402
from barman_image import Image  # noqa: E402
from make_capture import Maker  # noqa: E402

LAYOUTS = [(4, "<"), (4, ">"), (8, "<"), (8, ">")]


def dump(path, want=0, **kwargs):
    """The lines of dump --json as objects, and what was said on standard error."""
    done = tap.run("dump", "--json", path, **kwargs)
    assert done.returncode == want, (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def full_image(word, order):
    """One of everything."""
    image = Image(word, order)
    image.task(5, 7, "worker")
    image.task(6, 8, "idle")
    image.map(9, 7, 0x1000, 0x2000, 0x3000, "/bin/worker")
    image.chart("Chart")
    image.add_series(0, "Series", "units", "what it is", multiplier=0.5)
    image.add_series(0, "Other", "", "", colour=0xffffffff, multiplier=1.0)
    image.record(1, 0, 1000, "IIQQ", 7, 0, 1, 2**64 - 1)
    image.record(2, 1, 1003, "IIWQQIQ", 7, 1, 0x1234, 3, 4, 1, 2**63)
    image.padding(word)
    image.record(3, 0, 999, "IB", 8, 1)
    image.record(4, 1, 1010, "IIQ", 8, 1, 99)
    image.record(5, 0, 1020, "IWIIIB", 7, 6, 1, 2, 0x1b112233, 2, tail=b"hello\0")
    image.record(6, 1, 1030, "B", 1)
    image.record(9, 0, 1040, "Q", 5)
    return image


def json_is_as_documented(tmp):
    """Every line of every kind, keys in their order."""
    for word, order in LAYOUTS:
        image = full_image(word, order)
        path = image.save(os.path.join(tmp, "full.cap"))
        lines, said = dump(path)
        assert said == ""
        size = os.path.getsize(path) - len(image.data)
        data = len(image.data)
        want = [
            {"kind": "header", "magic": "BARMAN64" if word == 8 else "BARMAN32",
             "endian": "little" if order == "<" else "big", "version": 2,
             "header_length": size, "data_store_type": 1, "target_name": "target",
             "last_timestamp": 77, "timer_sample_rate": 1000, "max_cores": 2,
             "max_task_infos": 4, "max_mmap_layout": 3, "max_pmu_counters": 2,
             "max_string_table_length": (len(image.strings) + 3) & ~3,
             "num_custom_counters": 2, "timestamp_base": 1000, "timestamp_multiplier": 3,
             "timestamp_divisor": 2, "unix_base_ns": 123},
            {"kind": "pmu", "cpu": 0, "configuration_timestamp": 50, "midr": 60, "mpidr": 70,
             "cluster_id": 80, "counter_types": [90, 91]},
            {"kind": "pmu", "cpu": 1, "configuration_timestamp": 51, "midr": 61, "mpidr": 71,
             "cluster_id": 81, "counter_types": [91, 92]},
            {"kind": "task", "index": 0, "timestamp": 5, "tid": 7, "task": "worker"},
            {"kind": "task", "index": 1, "timestamp": 6, "tid": 8, "task": "idle"},
            {"kind": "image", "index": 0, "timestamp": 9, "tid": 7, "address": 0x1000,
             "length": 0x2000, "offset": 0x3000, "image": "/bin/worker"},
            {"kind": "chart", "index": 0, "name": "Chart", "series_composition": 1,
             "rendering_type": 2, "boolean_flags": 3},
            {"kind": "series", "index": 0, "chart_index": 0, "name": "Series", "units": "units",
             "description": "what it is", "colour": 0x112233, "multiplier": 0.5, "class": 1,
             "display": 1, "boolean_flags": 0},
            {"kind": "series", "index": 1, "chart_index": 0, "name": "Other", "units": "",
             "description": "", "colour": 0xffffffff, "multiplier": 1.0, "class": 1,
             "display": 1, "boolean_flags": 0},
            {"kind": "store", "buffer_length": data, "write_offset": data, "read_offset": 0,
             "total_written": data},
            {"kind": "record", "index": 0, "type": "sample", "cpu": 0, "timestamp": 1000,
             "at_ns": 0, "tid": 7, "counters": [1, 2**64 - 1], "custom": []},
            {"kind": "record", "index": 1, "type": "sample_pc", "cpu": 1, "timestamp": 1003,
             "at_ns": 4, "tid": 7, "pc": 0x1234, "counters": [3, 4], "custom": [[1, 2**63]]},
            {"kind": "record", "index": 2, "type": "task_switch", "cpu": 0, "timestamp": 999,
             "at_ns": -2, "tid": 8, "blocked": True},
            {"kind": "record", "index": 3, "type": "custom_counter", "cpu": 1,
             "timestamp": 1010, "at_ns": 15, "tid": 8, "counter": 1, "value": 99},
            {"kind": "record", "index": 4, "type": "annotation", "cpu": 0, "timestamp": 1020,
             "at_ns": 30, "tid": 7, "annotation_type": 2, "channel": 1, "group_id": 2,
             "colour": 0x1b112233, "data_length": 6, "text": "hello"},
            {"kind": "record", "index": 5, "type": "halt", "cpu": 1, "timestamp": 1030,
             "at_ns": 45, "entered": True},
            {"kind": "record", "index": 6, "type": "unknown", "cpu": 0, "timestamp": 1040,
             "at_ns": 60, "record_type": 9, "length": 24},
        ]
        for got, expected in zip(lines, want):
            if got.get("type") == "unknown":
                expected["length"] = 24
            assert list(got.items()) == list(expected.items()), (word, order, got, expected)
        assert len(lines) == len(want)


def absent_tables_have_no_lines(tmp):
    """Without tasks there is no task_id, in maps neither; without custom no custom."""
    image = Image(max_tasks=0, counters=0)
    image.map(0, 0, 1, 2, 3, "image")
    image.record(2, 0, 1000, "W", 5)
    lines, _ = dump(image.save(os.path.join(tmp, "small.cap")))
    assert [line["kind"] for line in lines] == ["header", "image", "store", "record"]
    assert list(lines[1]) == ["kind", "index", "address", "length", "offset", "image"]
    assert lines[3] == {"kind": "record", "index": 0, "type": "sample_pc", "cpu": 0,
                        "timestamp": 1000, "at_ns": 0, "pc": 5, "counters": []}


def extension_is_shown_where_announced(tmp):
    for strings in [["kbarman.ext=1"], []]:
        image = Image(strings=strings)
        image.record(3, 0, 1000, "IBB", 7, 0, 2)
        image.record(6, 0, 1000, "BB", 1, 3)
        image.record(2, 0, 1000, "IWQQIIWW", 7, 1, 2, 3, 2, 1, 0x10, 0x20)
        lines, _ = dump(image.save(os.path.join(tmp, "ext.cap")))
        records = lines[-3:]
        if strings:
            assert records[0]["prev_state"] == 2 and records[1]["idle_state"] == 2
            assert records[2]["stack"] == [0x10, 0x20]
        else:
            assert not any({"prev_state", "idle_state", "stack"} & set(r) for r in records)


def text_is_utf8_whatever_it_was(tmp):
    image = Image()
    image.task(0, 1, b"caf\xe9 \xf0\x9f\x90\xa7 \xed\xa0\x80 \"\\\n\x01\x7f")
    image.record(5, 0, 1000, "IWIIIB", 7, 3, 1, 2, 3, 0, tail=b"\xff\xfe\xfd")
    lines, _ = dump(image.save(os.path.join(tmp, "text.cap")))
    names = [line["task"] for line in lines if line["kind"] == "task"]
    assert names == ["caf\ufffd \U0001f427 \ufffd\ufffd\ufffd \"\\\n\x01\x7f"], names
    assert lines[-1]["text"] == "\ufffd" * 3


def strings_outside_are_null_and_damage(tmp):
    image = Image()
    image.task(0, 1, 100000)
    image.task(0, 2, "good")
    image.record(3, 0, 1000, "IB", 2, 0)
    lines, said = dump(image.save(os.path.join(tmp, "outside.cap")), want=1)
    assert [line["task"] for line in lines if line["kind"] == "task"] == [None, "good"]
    assert lines[-1]["kind"] == "record" and "string 100000" in said, said


def multipliers_that_are_no_numbers_are_null(tmp):
    image = Image()
    image.chart("c")
    for value in [float("nan"), float("inf"), -float("inf"), 0.1, 1e300, 3.0, 1 / 3]:
        image.add_series(0, "s", "u", "d", multiplier=value)
    lines, _ = dump(image.save(os.path.join(tmp, "nan.cap")))
    got = [line["multiplier"] for line in lines if line["kind"] == "series"]
    assert got == [None, None, None, 0.1, 1e300, 3.0, 1 / 3], got


def rings_are_in_the_order_of_time(tmp):
    for word, order in LAYOUTS:
        image = Image(word, order, store=2)
        for timestamp in [4000, 1000, 2000, 3000]:
            image.record(3, 0, timestamp, "IB", 7, 0)
        size = len(image.data)
        image.offsets = (size, size + size // 4, size // 4, size + size // 4)
        path = image.save(os.path.join(tmp, "ring.cap"))
        for source in ["file", "pipe"]:
            if source == "file":
                lines, _ = dump(path)
            else:
                with open(path, "rb") as file:
                    data = file.read()
                done = subprocess.run([tap.KBARMAN, "dump", "--json", "-"], input=data,
                                      capture_output=True, check=True)
                lines = [json.loads(line) for line in done.stdout.splitlines()]
            times = [line["timestamp"] for line in lines if line["kind"] == "record"]
            assert times == [1000, 2000, 3000, 4000], (word, order, source, times)


def damage_is_told_and_the_rest_is_there(tmp):
    image = full_image(8, "<")
    data = image.bytes()
    path = os.path.join(tmp, "cut.cap")
    with open(path, "wb") as file:
        file.write(data[:-20])
    lines, said = dump(path, want=1)
    assert lines[-1]["type"] == "halt"
    assert f"at byte {len(data) - 20}" in said and "20 bytes" in said, said

    image.block(b"short")
    image.record(3, 0, 2000, "IB", 7, 0)
    lines, said = dump(image.save(path), want=1)
    assert lines[-1]["timestamp"] == 2000 and "at byte" in said


def same_facts_for_people(tmp):
    path = full_image(8, "<").save(os.path.join(tmp, "full.cap"))
    done = tap.run("dump", path)
    assert done.returncode == 0
    lines, _ = dump(path)
    text = done.stdout.splitlines()
    assert len(text) == len(lines)
    for line, facts in zip(text, lines):
        assert line.startswith(facts["kind"]), line
        for key, value in facts.items():
            if key != "kind" and not isinstance(value, (list, str)):
                shown = json.dumps(value) if isinstance(value, bool) else value
                assert f"{key} {shown}" in line, (key, value, line)


def standard_input_is_a_file_too(tmp):
    path = full_image(8, "<").save(os.path.join(tmp, "full.cap"))
    want = tap.run("dump", path).stdout
    with open(path, "rb") as file:
        assert tap.run("dump", "-", stdin=file).stdout == want
    with open(path, "rb") as file:
        data = file.read()
    done = subprocess.run([tap.KBARMAN, "dump", "-"], input=data, capture_output=True, check=True)
    assert done.stdout.decode() == want
    fifo = os.path.join(tmp, "fifo")
    os.mkfifo(fifo)
    with subprocess.Popen(["cp", path, fifo]) as feeder:
        assert tap.run("dump", fifo).stdout == want
        feeder.wait()


def impossible_is_2_with_a_sentence(tmp):
    def sentence(*args, **kwargs):
        done = tap.run(*args, **kwargs)
        assert done.returncode == 2, (args, done)
        assert done.stderr.count("\n") <= 2 and done.stderr.startswith("kbarman dump:"), done
        assert done.stdout == ""
        return done.stderr

    assert "No such file" in sentence("dump", os.path.join(tmp, "nothing"))
    assert "directory" in sentence("dump", tmp)
    path = os.path.join(tmp, "text")
    with open(path, "w", encoding="utf-8") as file:
        file.write("this is no capture")
    assert "a format that kbarman does not know" in sentence("dump", path)
    with open(path, "w", encoding="utf-8"):
        pass
    assert "empty" in sentence("dump", path)
    sentence("dump")
    sentence("dump", "a", "b")
    sentence("dump", "--nothing")
    image = Image(store=5)
    assert "ITM" in sentence("dump", image.save(path))
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = tap.run("dump", Image().save(path), stdout=full, capture_output=False,
                       stderr=subprocess.PIPE)
        assert done.returncode == 2 and "No space" in done.stderr, done


def check_says_valid_or_what_is_wrong(tmp):
    image = full_image(8, "<")
    path = image.save(os.path.join(tmp, "full.cap"))
    done = tap.run("check", path)
    assert done.returncode == 0 and "valid Barman capture" in done.stdout, done
    image.record(3, 0, 2000, "IB", 7, 9)
    done = tap.run("check", image.save(path))
    assert done.returncode == 1 and "9 is not a reason" in done.stdout, done
    assert f"at byte {len(image.bytes()) - 24}" in done.stdout, done
    done = tap.run("check", path, os.path.join(tmp, "nothing"))
    assert done.returncode == 2


def what_takes_time_ends_behind_its_begin(tmp):
    """And may have flags of a later release."""
    path = os.path.join(tmp, "calls.cap")
    for begin, says in (0, "valid"), (5000, "valid"), (5001, "that ends before it begins, at 5001"):
        for what in "syscall", "fault", "block":
            capture = Maker(series=["What takes time"])
            capture.task(7, "caller")
            if what == "syscall":
                capture.syscall(0, 5000, 7, 9999, begin, -2**63, (2**64 - 1,) * 3, compat=0xffff)
            elif what == "fault":
                capture.fault(0, 5000, 7, begin, -2**63, 2**64 - 1, 0, kernel=0xffff)
            else:
                capture.block(0, 5000, 7, begin, 2**63 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1, 0xffff)
            done = tap.run("check", capture.save(path))
            wrong = says != "valid"
            assert done.returncode == wrong and (f"a {what} {says}" if wrong else says) in done.stdout, done


def merge_orders_records_by_time(tmp):
    paths = []
    for word, order in LAYOUTS:
        paths.clear()
        for cpu in range(3):
            image = Image(word, order, cores=3, strings=["kbarman.ext=1"], store=1 + cpu % 2)
            image.task(0, 1, "shared")
            image.task(5 + cpu, 10 + cpu, "one of mine")
            image.map(0, 1, 0x1000, 0x1000, 0, "/shared")
            for turn in range(5):
                image.record(3, cpu, 1000 + 10 * turn + cpu, "IBB", 1, 0, cpu)
            paths.append(image.save(os.path.join(tmp, f"cpu{cpu}.cap")))
        out = os.path.join(tmp, "out.cap")
        done = tap.run("merge", "-o", out, *paths)
        assert done.returncode == 0, done
        assert done.stderr == (f"kbarman merge: wrote {out}: 15 records, "
                               f"{os.path.getsize(out)} bytes\n"), done
        lines, _ = dump(out)
        records = [line for line in lines if line["kind"] == "record"]
        assert [r["timestamp"] for r in records] == [1000 + 10 * t + c
                                                    for t in range(5) for c in range(3)]
        assert all(r["prev_state"] == r["cpu"] for r in records)
        assert [line["tid"] for line in lines if line["kind"] == "task"] == [1, 10, 11, 12]
        assert sum(line["kind"] == "image" for line in lines) == 1
        assert lines[0]["data_store_type"] == 1 and lines[0]["endian"][0] == \
            ("l" if order == "<" else "b")
        assert tap.run("check", out).returncode == 0


def merge_refuses_what_does_not_belong_together(tmp):
    def refused(word, *images):
        paths = [image.save(os.path.join(tmp, f"{i}.cap")) for i, image in enumerate(images)]
        out = os.path.join(tmp, "out.cap")
        done = tap.run("merge", "-o", out, *paths)
        assert done.returncode == 2 and word in done.stderr, done
        assert not os.path.exists(out) and len(os.listdir(tmp)) == len(images)

    refused("machines", Image(8), Image(4))
    refused("machines", Image(8, "<"), Image(8, ">"))
    refused("clocks", Image(clock=(0, 1, 1, 0)), Image(clock=(1, 1, 1, 0)))
    refused("tasks", Image(max_tasks=0), Image())
    refused("ext", Image(strings=["kbarman.ext=1"]), Image())
    charts = Image()
    charts.chart("c")
    charts.add_series(0, "s", "u", "d")
    refused("charts", charts, Image())
    refused("counters", Image(counters=1), Image(counters=2))
    images = []
    for timestamp in 1000, 1001, 1000:
        images.append(Image())
        images[-1].record(3, 0, timestamp, "IB", 1, 0)
    refused("the same capture", *images)


def merge_keeps_what_is_whole(tmp):
    image = Image()
    for timestamp in range(1000, 1010):
        image.record(3, 0, timestamp, "IB", 1, 0)
    whole = image.save(os.path.join(tmp, "whole.cap"))
    with open(whole, "rb") as file:
        data = file.read()
    cut = os.path.join(tmp, "cut.cap")
    with open(cut, "wb") as file:
        file.write(data[:-70])
    out = os.path.join(tmp, "out.cap")
    done = tap.run("merge", "-o", out, whole, cut)
    assert done.returncode == 1 and "cut.cap" in done.stderr, done
    lines, _ = dump(out)
    assert sum(line["kind"] == "record" for line in lines) == 17


if __name__ == "__main__":
    tap.main(globals())
