#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to pprof: what the profile says is what the capture says."""
import collections
import gzip
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import protobuf  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402

# pprof's numbers
TYPE = {1: ("type", "uint"), 2: ("unit", "uint")}
PROFILE = {
    1: ("types", [TYPE]),
    2: ("samples", [{1: ("locations", ["uint"]), 2: ("values", ["uint"]),
                     3: ("labels", [{1: ("key", "uint"), 2: ("str", "uint")}])}]),
    3: ("mappings", [{1: ("id", "uint"), 2: ("start", "uint"), 3: ("limit", "uint"),
                      4: ("offset", "uint"), 5: ("file", "uint"), 6: ("build_id", "uint"),
                      7: ("functions", "uint"), 8: ("files", "uint"), 9: ("lines", "uint")}]),
    4: ("locations", [{1: ("id", "uint"), 2: ("mapping", "uint"), 3: ("address", "uint"),
                       4: ("lines", [{1: ("function", "uint"), 2: ("line", "uint")}])}]),
    5: ("functions", [{1: ("id", "uint"), 2: ("name", "uint"), 3: ("system_name", "uint"),
                       4: ("file", "uint")}]),
    6: ("strings", ["text"]),
    9: ("time", "uint"), 10: ("duration", "uint"), 11: ("period_type", TYPE),
    13: ("comments", ["uint"]), 14: ("default", "uint"),
}
# of a location that is in no mapping
UNMAPPED = {"file": 0, "functions": 0}


class Profile:
    """A profile with everything that it refers to looked up; what is wrong is an error."""

    def __init__(self, tmp, path, *options):
        out = os.path.join(tmp, "out.pb.gz")
        viewers.convert(path, "pprof", out, *options)
        with gzip.open(out) as file:
            self.raw = file.read()
        p = self.data = protobuf.read(self.raw, PROFILE)
        self.strings = p["strings"]
        assert self.strings[0] == ""
        self.types = [(self.strings[t["type"]], self.strings[t["unit"]]) for t in p["types"]]
        self.mappings = self.table("mappings")
        self.locations = self.table("locations")
        self.functions = self.table("functions")
        assert self.strings[p["default"]] in [name for name, _ in self.types]
        self.samples = [self.sample(s) for s in p["samples"]]
        keys = [(s["labels"], s["stack"], s["lines"]) for s in self.samples]
        assert len({str(key) for key in keys}) == len(keys), "two samples of the same"

    def table(self, name):
        ids = [row["id"] for row in self.data[name]]
        assert 0 not in ids and len(set(ids)) == len(ids), name
        return {row["id"]: row for row in self.data[name]}

    def sample(self, sample):
        assert len(sample["values"]) == len(self.types)
        stack, lines = [], []
        for number in sample["locations"]:
            location = self.locations[number]
            mapping = self.mappings.get(location.get("mapping"), UNMAPPED)
            assert mapping is UNMAPPED or mapping["start"] <= location["address"] < mapping["limit"]
            names = [self.strings[self.functions[line["function"]]["name"]] for line in location["lines"]]
            assert len(names) <= 1 and (names or not mapping["functions"])
            file = self.strings[mapping["file"]]
            stack.append((file, names[0] if names else None, location["address"]))
            lines.append([line.get("line", 0) for line in location["lines"]])
        labels = {self.strings[label["key"]]: self.strings[label["str"]] for label in sample["labels"]}
        for key in "cpu", "tid", "pid":
            labels[key] = int(labels[key])
        return {"values": dict(zip([name for name, _ in self.types], sample["values"])),
                "stack": stack, "lines": lines, "labels": labels}

    def sum(self, name):
        return sum(sample["values"][name] for sample in self.samples)


def sums_are_those_of_the_capture(tmp):
    for path in viewers.all_captures(tmp):
        said, profile = viewers.Said(path), Profile(tmp, path)
        got = collections.Counter()
        for sample in profile.samples:
            got[sample["labels"]["cpu"], sample["labels"]["tid"]] += sample["values"]["samples"]
        viewers.same(path, sorted(said.samples.items()), sorted(got.items()))
        counters = [name for name, _ in profile.types[2:]]
        if "golden" not in path and "hostile" not in path:
            sums = sorted(filter(None, (profile.sum(name) for name in counters)))
            assert sums == viewers.counter_sums(said), (path, sums)


def samples_have_their_symbols(tmp):
    for path in viewers.all_captures(tmp):
        if "golden" in path or "hostile" in path:
            continue
        said, profile, symbols = viewers.Said(path), Profile(tmp, path), collections.Counter()
        for sample in profile.samples:
            image, name, _ = sample["stack"][0]
            symbols[os.path.basename(image), name or "[unknown]"] += sample["values"]["samples"]
        unmapped = collections.Counter({name: nr for (image, name), nr in symbols.items() if not image})
        missing = collections.Counter()
        for (image, name), samples in said.symbols.items():
            missing[name] += samples - symbols[image, name]
        viewers.same(path, sorted((+missing).items()), sorted(unmapped.items()))


def chains_are_innermost_first_with_addresses_of_their_images(tmp):
    profile = Profile(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    chain = [sample["stack"] for sample in profile.samples if sample["labels"]["tid"] == 11]
    assert chain == [[("/gone/libbeta.so", None, 0x20010), ("/gone/alpha", None, 0x10677),
                      ("/gone/alpha", None, 0x10233)]], chain
    labels = [sample["labels"] for sample in profile.samples if sample["labels"]["tid"] == 11]
    assert labels == [{"thread": "beta", "tid": 11, "pid": 10, "cpu": 0}], labels


def addresses_are_those_of_the_kernel_and_of_the_first_mapping_of_a_file(tmp):
    profile = Profile(tmp, viewers.save_kernel(tmp))
    got = sorted((s["stack"][0][2], s["stack"][0][0], s["stack"][0][1], s["values"]["samples"],
                  s["labels"]["tid"]) for s in profile.samples)
    assert got == [
        (0x10010, "/gone/alpha", None, 1, 10), (0x10010, "/gone/alpha", None, 1, 11),
        (0x59ff8, "/gone/alpha", None, 1, 11),
        (0x710020, "[anon]", None, 1, 10), (0x750020, "[anon]", None, 1, 11),
        (0x999990, "", None, 1, 11),
        (viewers.KERNEL + 0x40, "[kernel.kallsyms]", "first", 1, 10),
        (viewers.START_KERNEL, "", "start_kernel", 1, 10),
        (0xffffffffc0000010, "[module]", "probe", 1, 10)], got


def the_first_mapping_is_the_program(tmp):
    """pprof takes it for the main binary: the one with the most samples, also in what it called."""
    c = CaptureWriter(cores=1, counters=1)
    c.fact("ext", 1)
    for task, name in (10, b"alpha"), (11, b"beta"):
        c.task(task, name)
        c.map(task, 0x10000, 0x1000, 0, b"/gone/" + name)
        c.map(task, 0x20000, 0x1000, 0, b"/gone/libgamma.so.1")
    c.map(0, viewers.KERNEL, 0x1000000, 0, b"[kernel.kallsyms]")
    c.sample(0, BASE, 10, viewers.KERNEL + 0x40, (1,), (viewers.KERNEL + 0x40, 0x10010), 1)
    for at, (pc, chain) in enumerate(((0x20010, (0x20010, 0x10010)), (0x20020, (0x20020, 0x10020)),
                                      (viewers.KERNEL + 0x50, (viewers.KERNEL + 0x50,)))):
        c.sample(0, BASE + 1 + at, 11, pc, (1,), chain, int(pc >= viewers.KERNEL))
    profile = Profile(tmp, c.save(os.path.join(tmp, "a.cap")))
    files = [profile.strings[mapping["file"]] for mapping in profile.data["mappings"]]
    assert files[0] == "/gone/beta" and sorted(files[1:]) == [
        "/gone/alpha", "/gone/libgamma.so.1", "[kernel.kallsyms]"], files
    only = CaptureWriter(cores=1, counters=1)       # without a program they are as they come
    only.task(10, b"alpha")
    only.map(0, viewers.KERNEL, 0x1000000, 0, b"[kernel.kallsyms]")
    only.sample(0, BASE, 10, viewers.KERNEL + 0x40, (1,))
    profile = Profile(tmp, only.save(os.path.join(tmp, "b.cap")))
    assert [profile.strings[mapping["file"]] for mapping in profile.data["mappings"]] == ["[kernel.kallsyms]"]


def mappings_are_those_of_the_capture(tmp):
    profile = Profile(tmp, viewers.save_kernel(tmp))
    got = sorted((m["start"], m["limit"], m["offset"], profile.strings[m["file"]])
                 for m in profile.mappings.values())
    assert got == [
        (0x10000, 0x11000, 0x3000, "/gone/alpha"), (0x58000, 0x5a000, 0x9000, "/gone/alpha"),
        (0x710000, 0x711000, 0x710000, "[anon]"), (0x750000, 0x751000, 0x750000, "[anon]"),
        (viewers.KERNEL, viewers.KERNEL + 0x1000000, 0, "[kernel.kallsyms]"),
        (0xffffffffc0000000, 0xffffffffc0002000, 0, "[module]")], got


def cpu_time_is_what_the_scheduler_gave(tmp):
    profile = Profile(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    # alpha: 1000 to its sample on CPU 0; then 1000 more to its switch, and on CPU 1 the 4000
    # from 3000 on; back on CPU 0 nobody knows how long it ran, records are lost there
    times = {(s["labels"]["tid"], s["labels"]["cpu"]): s["values"]["cpu"] for s in profile.samples}
    assert times[11, 0] == 700, times
    assert times[10, 0] == 1000, times
    assert times[10, 1] == 1000 + 4000, times


def clocks_count_the_time_themselves(tmp):
    c = CaptureWriter(counters=1, cores=1)
    c.fact("ext", 1)
    c.fact("counter.0.0", "cpu-clock")
    c.task(5, b"five")
    c.switch(0, BASE, 5)
    c.sample(0, BASE + 77, 5, 0x1000, (1000000,))
    profile = Profile(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert profile.types == [("samples", "count"), ("cpu", "nanoseconds"), ("cpu-clock", "nanoseconds")]
    assert profile.samples[0]["values"] == {"samples": 1, "cpu": 1000000, "cpu-clock": 1000000}


def times_and_facts_are_there(tmp):
    profile = Profile(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    assert profile.data["time"] == 1700000000 * 10**9 and profile.data["duration"] == 8000
    assert [profile.strings[i] for i in profile.data["comments"]] == ["release: 6.1.0-viewers"]
    assert profile.types == [("samples", "count"), ("cpu", "nanoseconds"), ("cycles", "count"),
                             ("misses", "count")]


def readable_names_have_their_mangled_ones_beside_them(tmp):
    """pprof shortens a name that has none, and takes two functions of one name for one."""
    path = viewers.save_mangled(tmp)
    for options, name in (((), "alfa::next"), (("--no-demangle",), None)):
        profile = Profile(tmp, path, *options)
        found = sorted((profile.strings[f["system_name"]], profile.strings[f["name"]])
                       for f in profile.functions.values())
        assert found == [(mangled, name or mangled) for mangled in viewers.MANGLED], found


def images_have_their_build_ids_and_functions(tmp):
    notes = subprocess.run(["readelf", "-n", tap.KBARMAN], capture_output=True, text=True, check=True)
    symbols = subprocess.run(["readelf", "-sW", tap.KBARMAN], capture_output=True, text=True, check=True)
    main = [line.split() for line in symbols.stdout.splitlines() if line.endswith(" main")]
    c = CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**24, 0, tap.KBARMAN.encode())
    c.sample(0, BASE + 1, 5, 0x10000 + int(main[0][1], 16) + 1)
    profile = Profile(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert profile.samples[0]["stack"][0][1] == "main", profile.samples
    mapping, = profile.mappings.values()
    assert mapping["functions"] == 1
    if "Build ID: " in notes.stdout:
        assert profile.strings[mapping["build_id"]] == notes.stdout.split("Build ID: ")[1].split()[0]


def lines_and_inlined_functions_are_there_on_demand(tmp):
    source, program = os.path.join(tmp, "lines.c"), os.path.join(tmp, "lines")
    with open(source, "w", encoding="ascii") as file:
        file.write("volatile int n;\n"
                   "static inline __attribute__((always_inline)) void inner(void)\n{\n\tn++;\n}\n"
                   "int main(void)\n{\n\tinner();\n\treturn 0;\n}\n")
    if subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=False).returncode:
        raise tap.Skip("no gcc here")
    symbols = subprocess.run(["readelf", "-sW", program], capture_output=True, text=True, check=True)
    main = [line.split() for line in symbols.stdout.splitlines() if line.endswith(" main")][0]
    c = CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**20, 0, program.encode())
    for at in range(int(main[2])):
        c.sample(0, BASE + 1 + at, 5, 0x10000 + int(main[1], 16) + at)
    path = c.save(os.path.join(tmp, "a.cap"))
    found = set()
    profile = Profile(tmp, path, "--lines", "--inline")
    for location in profile.locations.values():
        for line in location["lines"]:
            function = profile.functions[line["function"]]
            found.add((profile.strings[function["name"]],
                       os.path.basename(profile.strings[function["file"]]), line["line"]))
    assert ("inner", "lines.c", 4) in found and ("main", "lines.c", 8) in found, found
    assert [len(s["stack"]) for s in profile.samples].count(2) > 0
    assert all("line" not in line for location in Profile(tmp, path).locations.values()
               for line in location["lines"])


def names_come_through(tmp):
    profile = Profile(tmp, viewers.hostile().save(os.path.join(tmp, "a.cap")))
    names = {sample["labels"]["tid"]: sample["labels"]["thread"] for sample in profile.samples}
    for number, name in enumerate(viewers.HOSTILE):
        assert names[100 + number] == name.decode(errors="replace")[:256]


def protoc_takes_every_profile(tmp):
    viewers.need("protoc")
    for path in viewers.all_captures(tmp):
        profile = Profile(tmp, path)
        result = subprocess.run(["protoc", "--decode_raw"], input=profile.raw, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr
        found = [line for line in result.stdout.splitlines() if line == b"2 {"]
        assert len(found) == len(profile.samples), path


def pprof_itself_reads_every_profile(tmp):
    if not shutil.which("go"):
        raise tap.Skip("no go here: golang-go, which has pprof, is too large for scripts/setup")
    for path in viewers.all_captures(tmp):
        profile = Profile(tmp, path)
        result = subprocess.run(["go", "tool", "pprof", "-raw", os.path.join(tmp, "out.pb.gz")], text=True,
                                errors="replace", capture_output=True, check=False, timeout=300,
                                env={**os.environ, "PPROF_TMPDIR": tmp})
        assert result.returncode == 0, result.stderr[-2000:]
        _, _, tables = result.stdout.partition("\nLocations\n")
        locations, _, mappings = tables.partition("Mappings\n")
        got = sorted(int(line.split()[1], 16) for line in locations.splitlines() if re.match(r" *\d+: 0x", line))
        viewers.same(path, sorted(location["address"] for location in profile.locations.values()), got)
        want = sorted((m["start"], m["limit"], m["offset"]) for m in profile.mappings.values())
        got = sorted(tuple(int(number, 16) for number in line.split()[1].split("/"))
                     for line in mappings.splitlines() if re.match(r"\d+: 0x", line))
        if want:    # pprof makes one up where there is none
            viewers.same(path, want, got)


if __name__ == "__main__":
    tap.main(globals())
