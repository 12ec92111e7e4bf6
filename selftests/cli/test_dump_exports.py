#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman dump and check of Heph traces and Annotate streams, made here byte by byte."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402

U64, I64, F64, STRING, ARRAY = 1, 2, 3, 4, 0x80
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus")


def text(data):
    return struct.pack(">H", len(data)) + data


def heph_event(*attributes, description=b"event", start=1, end=2):
    body = struct.pack(">IIQQQ", 2**32 - 1, 7, 2**64 - 1, start, end) + text(description)
    for name, kind, value in attributes:
        body += text(name) + bytes([kind]) + value
    return struct.pack(">II", 0xc1fc1fb7, len(body) + 8) + body


def heph_option(name=b"epoch", value=struct.pack(">Q", 2**64 - 1)):
    body = text(name) + value
    return struct.pack(">II", 0x75d11d4d, len(body) + 8) + body


def message(kind, body):
    return bytes([kind]) + struct.pack("<i", len(body)) + body


SETUP = b"ANNOTATE 3\n" + struct.pack("<iib", 1, -2, 1)


def dump(tmp, data, status=0):
    path = os.path.join(tmp, "file")
    with open(path, "wb") as file:
        file.write(data)
    result = tap.run("dump", "--json", path)
    assert result.returncode == status, (result.returncode, result.stderr)
    assert bool(result.stderr) == bool(status), result.stderr
    assert tap.run("check", path).returncode == status
    assert tap.run("dump", path).returncode == status
    return [json.loads(line) for line in result.stdout.splitlines()]


def heph_events_have_the_documented_keys(tmp):
    lines = dump(tmp, heph_option() + heph_event())
    assert lines == [
        {"kind": "metadata", "option": "epoch", "value": 2**64 - 1},
        {"kind": "event", "stream": 2**32 - 1, "counter": 7, "substream": 2**64 - 1, "start": 1,
         "end": 2, "description": "event", "attributes": []}], lines


def heph_attributes_of_all_types_are_printed(tmp):
    big = struct.pack(">Q", 2**64 - 1)
    lines = dump(tmp, heph_event(
        (b"a", U64, big), (b"b", I64, big), (b"c", F64, struct.pack(">d", 123.456)),
        (b"d", STRING, text("\u00fc".encode())), (b"e", U64 | ARRAY, struct.pack(">H", 1) + big),
        (b"f", I64 | ARRAY, struct.pack(">H", 2) + big + big), (b"g", F64 | ARRAY, bytes(2)),
        (b"h", STRING | ARRAY, struct.pack(">H", 2) + text(b"x") + text(b""))))
    assert lines[0]["attributes"] == [
        ["a", "u64", 2**64 - 1], ["b", "i64", -1], ["c", "f64", 123.456], ["d", "string", "\u00fc"],
        ["e", "u64[]", [2**64 - 1]], ["f", "i64[]", [-1, -1]], ["g", "f64[]", []],
        ["h", "string[]", ["x", ""]]], lines[0]


def heph_floats_that_are_no_numbers_are_null(tmp):
    lines = dump(tmp, heph_event((b"a", F64, struct.pack(">d", float("nan")))))
    assert lines[0]["attributes"] == [["a", "f64", None]]


def heph_findings_are_damage_and_all_is_printed(tmp):
    assert len(dump(tmp, heph_event(start=3) + heph_event(), status=1)) == 2
    assert dump(tmp, heph_event(description=b"a\xffb"), status=1)[0]["description"] == "a\ufffdb"
    assert dump(tmp, heph_option(b"other", b"123"), status=1)[0]["option"] == "other"


def annotate_messages_have_the_documented_keys(tmp):
    with open(os.path.join(CORPUS, "annotate", "all-messages.annotate"), "rb") as file:
        lines = dump(tmp, file.read())
    assert [line.get("type") for line in lines] == [None] + list(range(1, 14))
    assert [line.get("index") for line in lines[1:]] == list(range(13))
    by_type = {line.get("type"): {k: v for k, v in line.items()
                                  if k not in ("kind", "index", "type")} for line in lines}
    assert by_type[None] == {"version": 3, "tid": 1, "pid": 2, "dont_mangle": 1}
    assert by_type[1] == {"timestamp": 64, "channel": -1, "text": "hi"}
    assert by_type[2] == {"timestamp": 1, "channel": 2, "color": "aabbcc1b", "text": "x"}
    assert by_type[3] == {"timestamp": 1, "channel": 2, "group": 3, "text": "c"}
    assert by_type[4] == {"timestamp": 1, "group": 3, "text": "g"}
    assert by_type[5] == {"timestamp": 1, "text": "v", "image_bytes": 4}
    assert by_type[6] == {"timestamp": 1, "text": "m"}
    assert by_type[7] == {"timestamp": 1, "color": "01020304", "text": "m"}
    assert by_type[8] == {
        "key": 1, "per_cpu": 1, "class": 3, "display": 2, "modifier": 1000,
        "series_composition": 1, "rendering_type": 2, "average_selection": 0, "average_cores": 1,
        "percentage": 0, "cores": 4, "color": "11223344",
        "activities": [["on", "01020304"], ["off", "05060708"]], "title": "t", "name": "n",
        "units": "", "description": "d"}
    assert by_type[9] == {"timestamp": 1, "core": 2, "key": 3, "value": -4758616141418899142}
    assert by_type[10] == {"timestamp": 1, "core": 2, "key": 3, "activity": 0, "tid": -1}
    assert by_type[11] == {"view": 1, "track": 2, "parent": -1, "name": "CPU"}
    assert by_type[12] == {"view": 1, "job": 2, "track": 3, "start": 4, "duration": 5,
                           "color": "01020304", "primary": -1, "deps": [1, 64], "name": "j"}
    assert by_type[13] == {"view": 1, "name": "view"}


def annotate_streams_of_all_versions_are_read(tmp):
    """Version 5 as Arm's client sends it, behind that the 19 bytes of version 1."""
    with open(os.path.join(CORPUS, "annotate", "versions.annotate"), "rb") as file:
        data = file.read()
    lines = [{k: v for k, v in line.items() if k not in ("kind", "index")}
             for line in dump(tmp, data)]
    assert lines == [
        {"version": 5, "tid": 3, "pid": 4, "dont_mangle": 0},
        {"type": 14, "timestamp": 64, "view": 1, "job": 2, "track": 3, "color": "01020304",
         "name": "j"},
        {"type": 15, "timestamp": 65, "view": 1, "job": 2, "primary": -1, "deps": [1, 64]},
        {"type": 16, "timestamp": 66, "view": 1, "job": 2},
        {"type": 9, "timestamp": 67, "core": 0, "key": 1, "value": 1 << 40},
        {"version": 1, "tid": 5, "pid": 6, "dont_mangle": 0},
        {"type": 8, "key": 1, "per_cpu": 0, "class": 3, "display": 1, "modifier": 1,
         "series_composition": 1, "rendering_type": 1, "average_selection": 0,
         "average_cores": 0, "percentage": 0, "cores": 1, "color": "00000000",
         "activities": [["on", "0102031b"]], "title": "t", "name": "n", "units": "",
         "description": ""},
        {"version": 4, "tid": 7, "pid": 8, "dont_mangle": 1},
        {"type": 1, "timestamp": 1, "channel": 0, "text": "hi"}], lines
    path = os.path.join(tmp, "stream")
    with open(path, "wb") as file:
        file.write(data)
    result = tap.run("check", path)
    assert result.returncode == 0, result


def annotate_findings_are_damage_and_all_is_printed(tmp):
    lines = dump(tmp, SETUP + message(6, b"\1\xff") + message(6, b"\1ok"), status=1)
    assert [line["text"] for line in lines[1:]] == ["\ufffd", "ok"]
    assert len(dump(tmp, SETUP + message(6, b"\x81\0late"), status=1)) == 2


def other_versions_of_annotate_are_named(tmp):
    path = os.path.join(tmp, "file")
    with open(path, "wb") as file:
        file.write(b"ANNOTATE 6\n" + bytes(9))
    for verb in "dump", "check":
        result = tap.run(verb, path)
        assert result.returncode == 2, result
        assert "v6: v1 to v5 can be read" in result.stderr + result.stdout, result


def files_cut_anywhere_give_what_is_whole(tmp):
    files = {
        "heph": (heph_option() + heph_event() + heph_event((b"a", U64, bytes(8))), 4),
        "annotate": (SETUP + message(1, b"\1\2hi") + message(5, b"\1v\0image"), 20),
    }
    for name, (whole, least) in files.items():
        before = 0
        for length in range(len(whole) + 1):
            path = os.path.join(tmp, name)
            with open(path, "wb") as file:
                file.write(whole[:length])
            result = tap.run("dump", "--json", path)
            lines = result.stdout.splitlines()
            assert result.returncode == (2 if length < least else
                                         0 if not result.stderr else 1), (name, length, result)
            assert len(lines) >= before, (name, length)
            before = len(lines)
            for line in lines:
                json.loads(line)
        assert result.returncode == 0 and before == 3, (name, before)


def files_with_a_flipped_byte_end_with_a_status(tmp):
    for name in ("annotate/all-messages.annotate", "heph/arrays.heph"):
        with open(os.path.join(CORPUS, name), "rb") as file:
            whole = file.read()
        path = os.path.join(tmp, "file")
        for at in range(0, len(whole), 1 if len(whole) < 400 else 11):
            data = bytearray(whole)
            data[at] ^= 0xff
            with open(path, "wb") as file:
                file.write(data)
            result = tap.run("dump", "--json", path, timeout=tap.HANG)
            assert result.returncode in (0, 1, 2), (name, at, result)
            assert bool(result.returncode) == bool(result.stderr), (name, at, result)
            for line in result.stdout.splitlines():
                json.loads(line)


if __name__ == "__main__":
    tap.main(globals())
