#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py TREE COUNTS GCOV: which lines of the module ran. TREE is where it was built,
COUNTS has a directory for each boot that counted (guest.sh's "coverage"), GCOV is the program.
Prints a line a file, the lines that never ran by function, and TAP: nine lines of ten have run.

What can't run there has its reason in REASONS; that nothing is left to have one is told, too."""
import collections
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

WANTED = 0.9

# (file, function) -> why what is left of it does not run here.
STEPPED = "takes writers nested as chance does not nest them: selftests/ring single-steps it"
PRESENT = "a CPU that was not present at configure: these machines have all there can be"
STEADY = "these kernels set no frequency, and know one idle state"
REASONS = {
    ("kmod/stacks/callchain.c", "frames_add_user"): "frames of 32-bit programs, which are known on x86 only",
    ("kmod/stacks/frames_arm64.c", "kbarman_user_place"): "32-bit programs, which this kernel runs none",
    ("kmod/sessions/rings.c", "kbarman_rings_close_short"): "where a counter restarts in a suspend: x86's alone",
    ("kmod/sources/freq.c", "freq_cpu_start"): STEADY,
    ("kmod/sources/freq.c", "freq_record"): STEADY,
    ("kmod/sources/freq.c", "freq_record_first"): STEADY,
    ("kmod/sources/freq.c", "on_cpu_frequency"): STEADY,
    ("kmod/sources/freq.c", "on_cpu_idle_miss"): STEADY,
    ("kmod/ring/ring.c", "evict_target"): STEPPED,
    ("kmod/ring/ring.c", "make_room"): STEPPED,
    ("kmod/ring/ring.c", "ring_reserve"): "configure refuses what would not fit: selftests/ring tries it",
    ("kmod/sessions/look.c", "kbarman_session_stats"): PRESENT,
    ("kmod/sessions/cpus.c", "cpu_take_in"): PRESENT,
    ("kmod/marks/marks.c", "marks_begin"): "a number that comes again after 2^32 sessions",
}


def ranges(numbers):
    """1 2 3 7 -> "1-3 7" """
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def stamp(path):
    """What GCOV's notes and counts of one build have in common."""
    with open(path, "rb") as file:
        magic, _, number = struct.unpack("<4s4sI", file.read(12))
    if magic not in (b"oncg", b"adcg"):
        sys.exit(f"{path}: neither GCOV's notes nor its counts")
    return number


def objects(tree):
    for directory, _, files in os.walk(os.path.join(tree, "kmod")):
        for file in sorted(files):
            if file.endswith(".gcno") and not file.startswith("probe_"):
                yield os.path.join(directory, file)


def report(notes, counts, gcov):
    """GCOV's report on one object; without counts all is 0."""
    name = os.path.basename(notes).removesuffix(".gcno")
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(notes, work)
        if counts:
            if stamp(notes) != stamp(counts):
                sys.exit(f"{counts}: of another build than {notes}: run those parts again")
            shutil.copy(counts, work)
        subprocess.run([gcov, "--json-format", name + ".gcda"], cwd=work, check=True,
                       capture_output=True)
        with gzip.open(os.path.join(work, name + ".gcov.json.gz")) as file:
            return json.load(file)["files"]


class Source:
    """A source of the module, added up over objects (for headers) and boots."""
    def __init__(self):
        self.lines = collections.Counter()
        self.functions = {}     # name -> first and last line

    def add(self, part):
        for line in part["lines"]:
            self.lines[line["line_number"]] += line["count"]
        for function in part["functions"]:
            self.functions[function["name"]] = function["start_line"], function["end_line"]

    def function_of(self, number):
        # of those that were inlined into each other, the one that is the shortest
        around = [(last - first, name) for name, (first, last) in self.functions.items()
                  if first <= number <= last]
        return min(around)[1] if around else "?"

    def never(self):
        found = collections.defaultdict(list)
        for number, count in self.lines.items():
            if not count:
                found[self.function_of(number)].append(number)
        return found


def collect(tree, boots, gcov):
    sources = collections.defaultdict(Source)
    for notes in objects(tree):
        name = os.path.basename(notes).removesuffix(".gcno") + ".gcda"
        counts = [os.path.join(boot, name) for boot in boots]
        for path in [path for path in counts if os.path.exists(path)] or [None]:
            for part in report(notes, path, gcov):
                if "/kmod/" in part["file"]:
                    sources["kmod/" + part["file"].split("/kmod/")[-1]].add(part)
    return sources


def tell(sources):
    """Prints it all; returns how many lines there are, and how many ran."""
    lines = run = excused = 0
    for name, source in sorted(sources.items()):
        never = source.never()
        total, missing = len(source.lines), sum(map(len, never.values()))
        lines += total
        run += total - missing
        print(f"# {name:28} {100 * (total - missing) / total:5.1f} % of {total:4}")
        for function, numbers in sorted(never.items(), key=lambda item: min(item[1])):
            reason = REASONS.get((name, function))
            excused += len(numbers) if reason else 0
            print(f"#     {function}: {ranges(numbers)}" + (f" ({reason})" if reason else ""))
        for function in [function for file, function in REASONS
                         if file == name and function not in never]:
            print(f"#     {function}: all of it has run, no reason is needed")
    print(f"# in all {100 * run / max(lines, 1):.1f} % of {lines} lines; {lines - run} never ran, "
          f"{excused} of them for a reason that is known")
    return lines, run


def main():
    tree, counts, gcov = sys.argv[1:4]
    boots = [entry.path for entry in os.scandir(counts) if entry.is_dir()]
    print(f"# counted by {', '.join(sorted(map(os.path.basename, boots)))}")
    lines, run = tell(collect(tree, boots, gcov))
    good = lines and run >= WANTED * lines
    print("ok 1" if good else "not ok 1", "- nine_lines_of_ten_have_run")
    print("1..1")
    sys.exit(not good)


if __name__ == "__main__":
    main()
