#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kbarman info: what it says of a capture is what the capture holds."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap  # noqa: E402
from barman_image import Image  # noqa: E402
from make_capture import Maker  # noqa: E402


def capture(tmp, **kwargs):
    image = Image(**kwargs)
    for i in range(30):
        image.record(3, i % 2, 1000 + i, "IB", 1, 0)
    for i in range(4):
        image.record(6, 0, 2000 + i, "B", i % 2)
    return image.save(os.path.join(tmp, "a.cap"))


def objects(path, **kwargs):
    done = tap.run("info", "-j", path, **kwargs)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done, {line["kind"]: line for line in lines if line["kind"] != "cpu"}, \
        {line["cpu"]: line for line in lines if line["kind"] == "cpu"}


def counts_are_those_of_dump(tmp):
    for kwargs in [{}, {"word": 4}, {"order": ">"}, {"word": 4, "order": ">"}]:
        path = capture(tmp, **kwargs)
        done, kinds, cores = objects(path)
        assert done.returncode == 0, done
        dumped = [json.loads(line) for line in tap.run("dump", "-j", path).stdout.splitlines()]
        records = [line for line in dumped if line["kind"] == "record"]
        assert kinds["records"]["records"] == len(records) == 34
        assert kinds["records"]["task_switches"] == 30 and kinds["records"]["halts"] == 4
        assert {n: core["records"] for n, core in cores.items()} == {0: 19, 1: 15}
        assert kinds["capture"]["word_size"] == kwargs.get("word", 8)
        assert kinds["capture"]["endian"] == ("big" if "order" in kwargs else "little")


def damage_is_told_and_the_rest_counted(tmp):
    path = capture(tmp)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 30)
    done, kinds, _ = objects(path)
    assert done.returncode == 1 and done.stderr.startswith("kbarman info: "), done
    assert 0 < kinds["records"]["records"] < 34 and kinds["losses"]["damage"] > 0


def people_get_lines_and_no_control_characters(tmp):
    image = Image()
    image.target = image.string("evil\x1b[31mname")
    image.record(3, 0, 1000, "IB", 1, 0)
    path = image.save(os.path.join(tmp, "a.cap"))
    done = tap.run("info", path)
    assert done.returncode == 0 and "evil?[31mname" in done.stdout and "\x1b" not in done.stdout


def what_is_no_capture_is_refused(tmp):
    for content in [b"", b"no capture at all"]:
        path = os.path.join(tmp, "x")
        with open(path, "wb") as file:
            file.write(content)
        done = tap.run("info", path)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert tap.run("info", cwd=tmp).returncode == 2
    assert tap.run("info", "a", "b", cwd=tmp).returncode == 2


def standard_input_works(tmp):
    with open(capture(tmp), "rb") as file:
        done, kinds, _ = objects("-", stdin=file)
    assert done.returncode == 0 and kinds["records"]["records"] == 34


def times_of_an_unstable_counter_are_doubted(tmp):
    for facts, doubted in ({}, False), ({"clock_unsteady": "1"}, True):
        maker = Maker(facts=facts)
        maker.switch(0, 1000, 0)
        path = maker.save(os.path.join(tmp, "kbarman.cap"))
        for verb in "info", "report":
            text = tap.run(verb, path).stdout
            assert ("unstable" in text) == doubted, text
            said = json.loads(tap.run(verb, "--json", path).stdout.splitlines()[0])
            assert said.get("clock_unsteady") == ("1" if doubted else None), said


def a_recording_begins_at_its_base(tmp):
    """An early module set the base before its sources were there, and said when they were."""
    for facts, first in ({}, 0), ({"begin": "700"}, 700):
        maker = Maker(facts={"raw_base": "5000", **facts})
        maker.switch(0, 1000, 7)
        maker.switch(0, 3000, 0)
        path = maker.save(os.path.join(tmp, "a.cap"))
        assert objects(path)[1]["capture"]["first_ns"] == first, facts
        told = tap.run("script", "--json", "--time", f"0,{(1000 - first) / 1e9:.9f}", path).stdout
        assert [json.loads(line)["at_ns"] for line in told.splitlines()] == [1000], told


if __name__ == "__main__":
    tap.main(globals())
