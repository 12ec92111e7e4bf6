#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to speedscope and --to firefox: their tables hold together, and what they say is
what the capture says."""
import collections
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
import viewers  # noqa: E402


def document(tmp, path, name, *options):
    out = os.path.join(tmp, "out.json")
    viewers.convert(path, name, out, *options)
    return viewers.load_json(out)


def label_of(image, name):
    return os.path.basename(image), "[unknown]" if name in (image, f"[{os.path.basename(image)}]") else name


# ---- Speedscope

def speedscope(tmp, path, *options):
    """(task's name, tid, unit, [(stack, weight)]) of each profile, checked."""
    doc = document(tmp, path, "speedscope", *options)
    assert doc["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames, out = doc["shared"]["frames"], []
    assert doc["profiles"] and doc["activeProfileIndex"] == 0
    for profile in doc["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] in ("none", "nanoseconds")
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        stacks = [[(frames[i]["file"], frames[i]["name"]) for i in stack] for stack in profile["samples"]]
        name, _, tid = profile["name"].rpartition(" (")
        out.append((name, tid.rstrip(")"), profile["unit"], list(zip(stacks, profile["weights"]))))
    return out


def speedscope_has_all_samples(tmp):
    for path in viewers.all_captures(tmp):
        said, tasks = viewers.Said(path), collections.Counter()
        for (_, task), count in said.samples.items():
            tasks[str(task)] += count
        got, symbols = collections.Counter(), collections.Counter()
        for _, tid, _, samples in speedscope(tmp, path, "--format", "samples"):
            if samples:
                got[tid] += sum(weight for _, weight in samples)
            for stack, _ in samples:
                symbols[label_of(*stack[-1])] += 1
        viewers.same(path, sorted(tasks.items()), sorted(got.items()))
        if "golden" not in path and "hostile" not in path:
            viewers.same(path, sorted(said.symbols.items()), sorted((k, symbols[k]) for k in said.symbols))


def speedscope_weighs_as_flame_graphs_do(tmp):
    for path in viewers.all_captures(tmp):
        folded = tap.run("convert", path, "--to", "folded", "-o", "-", text=False).stdout
        total = sum(int(line.rsplit(b" ", 1)[1]) for line in folded.splitlines())
        profiles = speedscope(tmp, path)
        assert total == sum(weight for profile in profiles for _, weight in profile[3]), path
        sums = [sum(weight for _, weight in profile[3]) for profile in profiles]
        assert sums == sorted(sums, reverse=True), "the heaviest is not the first"


def speedscope_stacks_begin_with_the_caller(tmp):
    profiles = speedscope(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    beta, = [profile for profile in profiles if profile[1] == "11"]
    assert beta == ("beta", "11", "none", [([("/gone/alpha", "[alpha]"), ("/gone/alpha", "[alpha]"),
                                             ("/gone/libbeta.so", "[libbeta.so]")], 70)])


# ---- Firefox Profiler

def check_table(table, columns, where):
    assert set(table) - {"length", "weight", "weightType"} == set(columns), (where, set(table))
    for column in columns:
        assert len(table[column]) == table["length"], (where, column)


def firefox(tmp, path):
    """The profile, its tables checked."""
    doc = document(tmp, path, "firefox")
    assert doc["meta"]["preprocessedProfileVersion"] == 49
    categories = [category["name"] for category in doc["meta"]["categories"]]
    assert doc["meta"]["categories"][categories.index("Other")]["color"] == "grey"
    for thread in doc["threads"]:
        strings, length = thread["stringArray"], {}
        for name, columns in (
                ("samples", ("stack", "time", "threadCPUDelta")),
                ("markers", ("name", "startTime", "endTime", "phase", "category", "data")),
                ("stackTable", ("frame", "prefix", "category", "subcategory")),
                ("frameTable", ("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
                                "innerWindowID", "implementation", "line", "column")),
                ("funcTable", ("name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber",
                               "columnNumber")),
                ("resourceTable", ("lib", "name", "host", "type")),
                ("nativeSymbols", ("libIndex", "address", "name", "functionSize"))):
            check_table(thread[name], columns, name)
            length[name] = thread[name]["length"]
        assert all(0 <= s < length["stackTable"] for s in thread["samples"]["stack"])
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        assert all(p is None or p < i for i, p in enumerate(thread["stackTable"]["prefix"]))
        assert all(0 <= f < length["frameTable"] for f in thread["stackTable"]["frame"])
        assert all(c < len(categories) for c in thread["stackTable"]["category"])
        assert all(0 <= f < length["funcTable"] for f in thread["frameTable"]["func"])
        assert all(0 <= n < len(strings) for n in thread["funcTable"]["name"] + thread["markers"]["name"] +
                   thread["resourceTable"]["name"])
        assert all(0 <= r < length["resourceTable"] for r in thread["funcTable"]["resource"])
        assert all(0 <= lib < len(doc["libs"]) for lib in thread["resourceTable"]["lib"])
        assert isinstance(thread["pid"], str)
    for counter in doc["counters"]:
        check_table(counter["samples"], ("time", "count"), "counter")
        assert doc["threads"][counter["mainThreadIndex"]]["pid"] == counter["pid"]
    return doc


def leaf(doc, thread, sample):
    func = thread["frameTable"]["func"][thread["stackTable"]["frame"][thread["samples"]["stack"][sample]]]
    lib = doc["libs"][thread["resourceTable"]["lib"][thread["funcTable"]["resource"][func]]]
    return lib["path"], thread["stringArray"][thread["funcTable"]["name"][func]]


def firefox_has_all_samples(tmp):
    for path in viewers.all_captures(tmp):
        said, doc, tasks = viewers.Said(path), firefox(tmp, path), collections.Counter()
        for (_, task), count in said.samples.items():
            tasks[task] += count
        got, symbols = collections.Counter(), collections.Counter()
        for thread in doc["threads"]:
            got[thread["tid"]] += thread["samples"]["length"]
            for sample in range(thread["samples"]["length"]):
                symbols[label_of(*leaf(doc, thread, sample))] += 1
        viewers.same(path, sorted(tasks.items()), sorted((+got).items()))
        if "golden" not in path and "hostile" not in path:
            viewers.same(path, sorted(said.symbols.items()), sorted((k, symbols[k]) for k in said.symbols))
            sums = collections.Counter()
            for counter in doc["counters"]:
                sums[counter["name"].split(" ", 2)[2]] += sum(counter["samples"]["count"])
            assert sorted(filter(None, sums.values())) == viewers.counter_sums(said), path


def firefox_has_the_marks(tmp):
    path = viewers.random_capture(4).save(os.path.join(tmp, "a.cap"))
    said, marks = viewers.Said(path), []
    for thread in firefox(tmp, path)["threads"]:
        table = thread["markers"]
        for i in range(table["length"]):
            assert (table["endTime"][i] is None) == (table["phase"][i] == 0)
            marks.append((round(table["startTime"][i] * 1e6), thread["tid"], thread["stringArray"][table["name"][i]]))
    want = [(ns, task, text) for ns, task, kind, text in said.marks if kind == 1 or (kind == 0 and text)]
    viewers.same("marks", sorted(want), sorted(marks))


def firefox_has_wakeups_and_interrupts(tmp):
    doc = firefox(tmp, viewers.sources().save(os.path.join(tmp, "a.cap")))
    schemas = {schema["name"]: {field["key"] for field in schema["data"]}
               for schema in doc["meta"]["markerSchema"]}
    found = []
    for thread in doc["threads"]:
        table = thread["markers"]
        for i, data in enumerate(table["data"]):
            assert set(data) == {"type", *schemas[data["type"]]}, data
            assert table["phase"][i] == 1, table
            found.append((thread["tid"], thread["stringArray"][table["name"][i]],
                          round(table["startTime"][i] * 1e6), round(table["endTime"][i] * 1e6), data))
    assert sorted(found, key=lambda mark: mark[2:4]) == [
        (10, "virtio0", 1000, 1200, {"type": "Interrupt", "what": "irq", "number": 33}),
        (10, "eth0", 1300, 1400, {"type": "Interrupt", "what": "irq", "number": 33}),
        (10, "NET_RX", 1500, 1900, {"type": "Interrupt", "what": "softirq", "number": 3}),
        (11, "woken", 1600, 2000, {"type": "Wakeup", "by": "alpha", "context": "softirq"}),
        (10, "Rescheduling interrupts", 1700, 1800, {"type": "Interrupt", "what": "ipi", "number": 2}),
        (12, "woken", 2500, 2750, {"type": "Wakeup", "by": "beta", "context": "task"})], found


def firefox_knows_threads_and_their_cpu_time(tmp):
    doc = firefox(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    alpha, = [thread for thread in doc["threads"] if thread["tid"] == 10]
    beta, = [thread for thread in doc["threads"] if thread["tid"] == 11]
    assert (alpha["isMainThread"], beta["isMainThread"], beta["pid"], beta["processName"]) == \
        (True, False, "10", "alpha")
    assert alpha["samples"]["threadCPUDelta"] == [1.0, 5.0] and alpha["samples"]["time"] == [0.001, 0.007]
    assert doc["meta"]["startTime"] == 1700000000 * 1000


def firefox_libraries_have_the_ids_of_symbol_servers(tmp):
    notes = subprocess.run(["readelf", "-n", tap.KBARMAN], capture_output=True, text=True, check=True)
    if "Build ID: " not in notes.stdout:
        raise tap.Skip("the tool was linked without a build-id")
    build_id = notes.stdout.split("Build ID: ")[1].split()[0]
    c = viewers.CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**24, 0, tap.KBARMAN.encode())
    c.sample(0, viewers.BASE + 1, 5, 0x10000 + 0x20000)
    lib, = firefox(tmp, c.save(os.path.join(tmp, "a.cap")))["libs"]
    b = bytes.fromhex(build_id)
    assert lib["codeId"] == build_id
    assert lib["breakpadId"] == (b[3::-1] + b[5:3:-1] + b[7:5:-1] + b[8:16]).hex().upper() + "0", lib


def firefox_has_the_time_that_a_clock_counted(tmp):
    c = viewers.CaptureWriter(counters=1, cores=1)
    c.fact("counter.0.0", "cpu-clock")
    c.task(5, b"five")
    c.switch(0, viewers.BASE, 5)
    for at, value in (77, 1000000), (88, 2500000), (99, viewers.INVALID):
        c.sample(0, viewers.BASE + at, 5, 0x1000, (value,))
    thread, = firefox(tmp, c.save(os.path.join(tmp, "a.cap")))["threads"]
    assert thread["samples"]["threadCPUDelta"] == [1000, 2500, 0]     # microseconds


def firefox_shows_counters_with_the_busiest_thread(tmp):
    c = viewers.CaptureWriter(counters=1, cores=1)
    c.fact("counter.0.0", "cycles")
    for task in 5, 6, 7:
        c.task(task, b"task")
    for at, (task, ran) in enumerate(((5, 10), (6, 400), (7, 20))):
        c.switch(0, viewers.BASE + 1000 * at, task)
        c.sample(0, viewers.BASE + 1000 * at + ran, task, 0x1000, (3,))
    doc = firefox(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert [(counter["pid"], counter["mainThreadIndex"]) for counter in doc["counters"]] == [("6", 1)]
    assert doc["threads"][1]["tid"] == 6


def names_come_through(tmp):
    path = viewers.hostile().save(os.path.join(tmp, "a.cap"))
    names = {thread["tid"]: thread["name"] for thread in firefox(tmp, path)["threads"]}
    profiles = {tid: name for name, tid, _, _ in speedscope(tmp, path)}
    for number, name in enumerate(viewers.HOSTILE):
        want = name.decode(errors="replace")[:256]
        assert names[100 + number] == profiles[str(100 + number)] == want


if __name__ == "__main__":
    tap.main(globals())
