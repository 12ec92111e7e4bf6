#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py TREE GCDA GCOV: which lines of the module ran. TREE is where it was built, GCDA
what its kernel counted (guest.sh's "coverage"), GCOV the program. Prints a line a file, the
lines that never ran, and TAP: nine lines of ten have run."""
import collections
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

TREE, GCDA, GCOV = sys.argv[1:4]
WANTED = 0.9


def ranges(numbers):
    """1 2 3 7 -> "1-3 7" """
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def objects():
    for directory, _, files in os.walk(os.path.join(TREE, "kmod")):
        for file in files:
            if file.endswith(".gcno"):
                yield os.path.join(directory, file)


def main():
    lines = collections.defaultdict(dict)       # source -> line -> count
    with tempfile.TemporaryDirectory() as work:
        for notes in objects():
            name = os.path.basename(notes).removesuffix(".gcno")
            counts = os.path.join(GCDA, name + ".gcda")
            if name.startswith("probe_") or name == "kbarman.mod":
                continue
            shutil.copy(notes, work)
            if os.path.exists(counts):
                shutil.copy(counts, work)
            subprocess.run([GCOV, "--json-format", name + ".gcda"], cwd=work, check=True,
                           capture_output=True)
            with gzip.open(os.path.join(work, name + ".gcov.json.gz")) as file:
                report = json.load(file)
            for source in report["files"]:
                if "/kmod/" not in source["file"]:
                    continue
                of = lines["kmod/" + source["file"].split("/kmod/")[-1]]
                for line in source["lines"]:
                    number = line["line_number"]
                    of[number] = of.get(number, 0) + line["count"]
    all_lines = all_run = 0
    for source in sorted(lines):
        never = [number for number, count in lines[source].items() if not count]
        total = len(lines[source])
        all_lines += total
        all_run += total - len(never)
        print(f"# {source:28} {100 * (total - len(never)) / total:5.1f} % of {total:4}"
              + (f"   never: {ranges(never)}" if never else ""))
    print(f"# in all {100 * all_run / max(all_lines, 1):.1f} % of {all_lines} lines")
    good = all_lines and all_run >= WANTED * all_lines
    print("ok 1" if good else "not ok 1", "- nine_lines_of_ten_have_run")
    print("1..1")
    sys.exit(not good)


main()
