#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples of README.md, docs/ and the manual, as they are written there.

Those of docs/testing/ are of programs that are not here.

Usage: examples.py device      those that need /dev/kbarman, a line each: PLACE<tab>COMMAND

An example is a line of a code block (in README.md also a word in backticks) with a `kbarman VERB`
in it. What only sets the machine up (make, insmod) is none."""
import glob
import os
import re
import sys

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# A command begins here: at the start of a line or behind what ends another one.
COMMAND = re.compile(r"(?:^|[|;&]\s*)(?:build/)?kbarman ([a-z]+)\b(?!:)")
# A mention of a command in the text, up to what ends it.
MENTIONED = re.compile(r"(?:^|[\s(;|&'`])(?:build/)?kbarman ([a-z]+)((?: [^|;&<>`#\n]*)?)", re.M)
# Verbs that speak to the module; the others read files.
DEVICE = {"record", "annotate", "snapshot", "flight", "top", "stat", "list", "doctor"}
# Its commands are those of several machines: selftests/cli/test_fleet_page.py
FLEET = "docs/fleet.md:"
# Its commands are about memory that survives a reset: selftests/cli/test_previous.py
BLACKBOX = "user/man/kbarman-blackbox.7:"
# What its commands read, and say: selftests/cli/test_howto.py
HOWTO = "user/man/kbarman-howto.7:"


def of_readme(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for match in re.finditer(r"^ {4}(\S.*)$|(?<!`)`(kbarman\s[^`]*)`(?!`)", text, re.M):
        line = text.count("\n", 0, match.start()) + 1
        yield line, " ".join((match.group(1) or match.group(2)).split())


def of_manual(path):
    within, begun = False, ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            word = line.split()[0] if line.split() else ""
            if word in (".nf", ".EX"):
                within = True
            elif word in (".fi", ".EE"):
                within = False
            elif within:
                # a question in double quotes goes on in the next lines
                begun += ("\n" if begun else "") + unroffed(line.strip())
                if not begun.startswith("kbarman query") or begun.count('"') % 2 == 0:
                    yield number, begun
                    begun = ""


def pages(tree, *patterns):
    """The paths of these pages, and of the manual."""
    return [path for pattern in (*patterns, "user/man/*") for path in sorted(glob.glob(os.path.join(tree, pattern), recursive=True))]


def mentions(tree=TREE):
    """(place, verb, options) of each command on any page, also in the middle of a sentence."""
    for path in pages(tree, "*.md", "NEWS", "docs/**/*.md"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "/man/" in path:
            # fonts and quotes of roff are none of the command
            text = re.sub(r'^\.(?:[BI]|[BRI]{2}) ', "", "\n".join(map(unroffed, text.splitlines())), flags=re.M)
            text = text.replace('" "', "").replace('"', "")
        for match in MENTIONED.finditer(text):
            verb, rest = match.groups()
            place = f"{os.path.relpath(path, tree)}:{text.count(chr(10), 0, match.start(1)) + 1}"
            # what stands behind -- are those of another program
            yield place, verb, re.findall(r"(?<=\s)--[a-z][a-z-]*", re.split(r"\s--(?:\s|$)", rest)[0])


def unroffed(line):
    for escape, character in (r"\-", "-"), (r"\(aq", "'"), (r"\&", ""), (r"\(bq", "`"), (r"\e", "\\"):
        line = line.replace(escape, character)
    return line


def examples(tree=TREE):
    """(place, command) of each; the same command may be in several places."""
    for path in pages(tree, "README.md", "docs/*.md", "docs/adding/*.md", "docs/design/*.md"):
        reader = of_readme if path.endswith(".md") else of_manual
        for line, command in reader(path):
            # what stands behind it is said to people
            command = re.sub(r"\s+# .*$", "", command)
            if COMMAND.search(command):
                yield f"{os.path.relpath(path, tree)}:{line}", command.replace("build/kbarman", "kbarman")


def needs_device(command):
    # without a file, a session that runs
    return bool(set(COMMAND.findall(command)) & DEVICE) or \
        ("push --openmetrics" in command and ".cap" not in command)


if __name__ == "__main__":
    assert sys.argv[1:] == ["device"], __doc__
    for where, what in examples():
        if needs_device(what) and not where.startswith((FLEET, BLACKBOX)):
            print(f"{where}\t{what}")
