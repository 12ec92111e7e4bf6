#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual as a whole: it renders, its references lead somewhere, and it quotes what the tool says."""
import glob
import os
import re
import shutil
import subprocess
import sys

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "selftests", "lib"))
import tap

PAGES = sorted(glob.glob(os.path.join(TREE, "user", "man", "*.[1578]")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pages_have_no_warnings(tmp):
    if not shutil.which("groff"):
        raise tap.Skip("there is no groff here")
    assert len(PAGES) > 20, PAGES
    for page in PAGES:
        done = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-ww", "-rLL=78n", page],
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and not done.stderr, (page, done.stderr)


def references_lead_to_pages_that_are_there(tmp):
    there = {os.path.basename(page) for page in PAGES}
    markdown = glob.glob(os.path.join(TREE, "docs", "**", "*.md"), recursive=True)
    for page in [*PAGES, os.path.join(TREE, "README.md"), *markdown]:
        text = read(page).replace("\\-", "-")
        named = {f"{name}.{section}" for name, section in
                 re.findall(r"\b(kbarman(?:-\w+|d(?:\.conf)?)?)[ \"]*\((\d)\)", text)}
        assert named <= there, (page, named - there)


def every_page_is_named_by_the_first_one(tmp):
    first = read(os.path.join(TREE, "user", "man", "kbarman.1"))
    named = set(re.findall(r"^\.BR (kbarman(?:-\w+|d(?:\.conf)?)) \((\d)\)", first, re.M))
    there = {tuple(os.path.basename(page).rsplit(".", 1)) for page in PAGES} - {("kbarman", "1")}
    assert named == there, named ^ there


def literals():
    """All text in C strings of the library and the tool, each joined with those behind it."""
    found = []
    for path in glob.glob(os.path.join(TREE, "user", "**", "*.c"), recursive=True):
        for run in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:KB_\w+\s*)?)+', read(path)):
            found.append("".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run)))
    return "\n".join(found)


def quoted_sentences(page):
    """Headings of entries that are what the tool prints, as plain text."""
    lines = read(page).splitlines()
    for before, line in zip(lines, lines[1:]):
        if before != ".TP" or not line.startswith("."):
            continue
        text = re.sub(r"\\f.|^\.[A-Z]+ |\"", "", line).replace("\\-", "-")
        if len(re.findall(r"\b[a-z']{2,}\b", text)) > 4:
            yield text


def says(page):
    """How many parts of the sentences that this page quotes were looked for. The tool says them all."""
    said, checked = literals(), 0
    for sentence in quoted_sentences(os.path.join(TREE, "user", "man", page)):
        # what is filled in stands in capitals, and parts of a sentence may be made in several places
        for part in re.split(r"\b[A-Z]+\b(?!-)|\.\.\.|[(),:;]", sentence):
            part = part.strip()
            if len(part.split()) > 2:
                assert part in said, (sentence, part)
                checked += 1
    return checked


def messages_about_unknown_names_are_those_of_the_tool(tmp):
    checked = says("kbarman-unknown.7")
    assert checked > 20, checked


def messages_about_signatures_are_those_of_doctor(tmp):
    checked = says("kbarman-secureboot.7")
    assert checked >= 5, checked


if __name__ == "__main__":
    tap.main(globals())
