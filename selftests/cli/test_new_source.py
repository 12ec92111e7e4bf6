#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a new event source makes is in every output before anybody has taught the outputs its kind: the
walk of the exports (user/lib/export/sink.h), SQL, Parquet, text and JSON show its series."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
import viewers  # noqa: E402  pylint: disable=wrong-import-position
from capture_writer import BASE  # noqa: E402  pylint: disable=wrong-import-position

KIND = 200                      # no release has so many
SERIES = b"made_up_source"
VALUES = [7654321, 7654322, 7654323]

# Formats of samples, waits and call chains have no values of series.
WITHOUT_VALUES = {"folded", "flamegraph", "pprof", "speedscope", "firefox"}


def capture(folder):
    c = viewers.begin()
    number = len(c.series)
    c.custom(SERIES)
    c.switch(0, BASE, 10)
    for i, value in enumerate(VALUES):
        c.about(0, BASE + 1000 * (i + 1), 10, number, KIND, about=11, cpu=1, value=value)
    c.switch(0, BASE + 9000, 11)
    path = os.path.join(folder, "new.cap")
    c.save(path)
    return path


def run(*args):
    result = tap.run(*args)
    assert result.returncode == 0, result
    return result.stdout


def convert(path, folder, name, *options):
    out = os.path.join(folder, "out." + name)
    run("convert", path, "--to", name, *options, "-o", out)
    files = [out] if os.path.isfile(out) else \
        [os.path.join(below, file) for below, _, names in os.walk(out) for file in names]
    content = b""
    for file in files:
        with open(file, "rb") as opened:
            content += opened.read()
    return out, content


def numbers(value):
    """All numbers in what JSON made, also those that it has as texts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    if isinstance(value, str) and value.isdigit():
        return [int(value)]
    return [value] if isinstance(value, int) else []


def lines_of_json(text):
    return [number for line in text.splitlines() for number in numbers(json.loads(line))]


def every_export_shows_its_series(tmp):
    path = capture(tmp)
    formats = run("convert", "--help").partition("formats:")[2]
    names = set(re.findall(r"^  (\w+) ", formats, re.MULTILINE))
    assert WITHOUT_VALUES < names and len(names) >= 14, names
    for name in sorted(names - WITHOUT_VALUES):
        options = ("--format", "none") if name == "parquet" else ()
        _, content = convert(path, tmp, name, *options)
        assert SERIES in content, name


def text_and_json_have_its_values(tmp):
    path = capture(tmp)
    text = run("script", path)
    for value in VALUES:
        assert f"{SERIES.decode()}={value}" in text, text
    for output in (run("script", "--json", path), run("dump", "--json", path)):
        assert [n for n in lines_of_json(output) if n in VALUES] == VALUES, output


def formats_that_are_read_back_have_its_values(tmp):
    path = capture(tmp)
    for name in ("heph", "annotate", "barman"):
        out, _ = convert(path, tmp, name)
        found = [n for n in lines_of_json(run("dump", "--json", out)) if n in VALUES]
        assert sorted(found) == VALUES, (name, found)
    _, chrome = convert(path, tmp, "chrome")
    assert [n for n in numbers(json.loads(chrome)) if n in VALUES] == VALUES
    _, tptp = convert(path, tmp, "tptp")
    for value in VALUES:
        assert b"value=%d" % value in tptp, tptp


def sql_has_it_as_details_and_as_values(tmp):
    path = capture(tmp)
    rows = run("query", path, "select what, about_id, about_cpu, value from details order by value")
    for value in VALUES:
        assert str(value) in rows, rows
    rows = run("query", path, "select sum(value) from series where series = '%s'" % SERIES.decode())
    assert rows.split()[-1] == str(sum(VALUES)), rows


if __name__ == "__main__":
    tap.main(globals())
