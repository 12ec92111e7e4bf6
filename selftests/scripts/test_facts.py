#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Facts of a capture: who reads the device's header alone knows all of them."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests", "lib"))
import tap


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def written():
    """The first word of each key that the module writes."""
    source = "".join(read(path) for path in glob.glob(os.path.join(ROOT, "kmod", "**", "*.c"), recursive=True))
    keys = re.findall(r'kbarman_header_fact\([^;"]*?, "([a-z_]+)"', source)
    return set(keys) | set(re.findall(r'snprintf\(key, [^;"]*"([a-z]+)\.%', source))


def described():
    header = read("kmod/uapi/kbarman.h")
    section = re.search(r"^ \* Facts\n \* -+\n(.*?)^ \* [A-Z][^\n]*\n \* -+$", header,
                        re.M | re.S).group(1)
    listed = re.findall(r"^ \*\t((?:[a-z_]+(?:=1)?(?:, )?)+)\t", section, re.M)
    names = {name.removesuffix("=1") for line in listed for name in line.split(", ")}
    return names | set(re.findall(r"\bkbarman\.([a-z]+(?:_[a-z]+)*)[.=]", header))


def every_fact_that_the_module_writes_is_described(tmp):  # pylint: disable=unused-argument
    assert len(written()) >= 15, written()
    assert written() <= described(), written() - described()


def every_fact_that_is_listed_is_written(tmp):  # pylint: disable=unused-argument
    # "file" stands in front of a path: kmod/maps/spaces_*.c write it without kbarman_header_fact()
    assert described() - {"file"} <= written(), described() - written()


if __name__ == "__main__":
    tap.main(globals())
