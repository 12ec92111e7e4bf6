#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to parquet: what the files say is what the capture says, and what becomes of the folder."""
import collections
import json
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import fleet  # noqa: E402
import npm  # noqa: E402
import parquet  # noqa: E402
import preload  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from latency_capture import Late  # noqa: E402

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../user/man/kbarman-parquet.5")
UNIX = 1700000000 * 10**9
HOUR = 3600 * 10**9
INVALID = 2**64 - 1


def convert(tmp, path, *options, status=0, out="out"):
    out = os.path.join(tmp, out)
    result = tap.run("convert", path, "--to", "parquet", "-o", out, *options, errors="replace")
    assert result.returncode == status, result
    return out


def report_of(path):
    found = collections.defaultdict(list)
    for line in tap.run("report", "--json", "--percent-limit", "0", path).stdout.splitlines():
        row = json.loads(line)
        found[row["kind"]].append(row)
    return found


def late(folder):
    """Wakeups, handlers and idling, with known waits."""
    c = Late(cores=2, unix_base=UNIX)
    for task in 7, 8, 9:
        c.task(task, f"task {task}")
    c.switch(0, 1000, 7)
    c.switch(1, 1000, 0)
    c.halt(1, 1100, True, 1)
    c.waking(0, 2000, 7, 8, cpu=1)
    c.halt(1, 2100, False)
    c.switch(1, 2500, 8)                    # waited 500
    c.irq(0, 3000, 3400, 33, task=7)
    c.waking(0, 4000, 7, 9, cpu=0)
    c.switch(0, 5000, 9, blocked=False)     # waited 1000; 7 was preempted
    c.switch(1, 6000, 0, blocked=True)
    c.switch(0, 7500, 7, blocked=True)      # waited 2500
    c.switch(0, 8000, 9, blocked=True)      # nobody says since when
    return c.save(os.path.join(folder, "late.cap"))


# ---- what the files say

def files_say_what_the_capture_says(tmp):
    for number, path in enumerate(viewers.all_captures(tmp)):
        if path.startswith(viewers.GOLDEN):
            continue        # hostile ones, of which reports see other parts
        said, out = viewers.Said(path), convert(tmp, path, out=f"out{number}")
        switches, samples = parquet.rows(out, "switches"), parquet.rows(out, "samples")
        base = said.header["unix_base_ns"]
        viewers.same(path, sorted((ns + base, core, tid) for ns, core, tid in said.switches),
                     sorted((row["unix_ns"], row["cpu"], row["next_tid"]) for row in switches))
        counted = collections.Counter((row["cpu"], row["tid"]) for row in samples if row["pc"] is not None)
        viewers.same(path, sorted(said.samples.items()), sorted(counted.items()))
        sums = collections.Counter()
        for row in parquet.rows(out, "counters"):
            if row["value"] is not None:
                sums[row["event"]] += row["value"]
        if "hostile" not in path:       # which has values that no counter has
            viewers.same(path, viewers.counter_sums(said), sorted(filter(None, sums.values())))
        marks = parquet.rows(out, "marks")
        kinds = ["string", "bookmark", "channel", "group"]
        viewers.same(path, sorted((ns + base, tid, kinds[kind], text) for ns, tid, kind, text in said.marks),
                     sorted((row["unix_ns"], row["tid"], row["type"], row["text"]) for row in marks))
        symbols = collections.Counter((os.path.basename(row["image"] or "[unknown]"),
                                       row["symbol"] or "[unknown]") for row in samples)
        viewers.same(path, sorted(said.symbols.items()), sorted((key, symbols[key]) for key in said.symbols))


def sums_are_those_of_report(tmp):
    for path in (viewers.small().save(os.path.join(tmp, "small.cap")),
                 viewers.random_capture().save(os.path.join(tmp, "random.cap")), late(tmp)):
        out, report = convert(tmp, path, out=path[:-4] + ".out"), report_of(path)
        whole, = report["report"]
        capture, = parquet.rows(out, "captures")
        assert capture["records"] == whole["records"] and capture["cpus"] == whole["cpus"]
        assert capture["duration_ns"] == whole["duration_ns"], (capture, whole)
        assert len(parquet.rows(out, "switches")) == whole["switches"]
        assert len(parquet.rows(out, "samples")) == whole["samples"]
        ran = collections.Counter()
        for row in parquet.rows(out, "runs"):
            ran[row["tid"]] += row["duration_ns"]
        assert {tid: ns for tid, ns in ran.items() if ns} == \
            {row["tid"]: row["run_ns"] for row in report["task_time"] if row["run_ns"]}
        idle = collections.Counter()
        for row in parquet.rows(out, "idle"):
            idle[row["cpu"], row["idle_state"]] += row["duration_ns"]
        assert idle == {(row["cpu"], None if row["idle_state"] < 0 else row["idle_state"]): row["duration_ns"] for row in report["idle"]}
        lost = sum(row["duration_ns"] for row in parquet.rows(out, "gaps"))
        assert lost == sum(row["lost_ns"] for row in report["cpu"])
        weights, told = collections.Counter(), collections.Counter()
        for row in parquet.rows(out, "samples"):
            weights[row["task"]] += row["weight"] or 0
        for row in report["task"]:
            told[row["name"]] += row["weights"][0] if row["weights"] else 0
        assert weights == told or not report["task"], (weights, told)


def waits_are_those_of_the_tasks(tmp):
    out = convert(tmp, late(tmp))
    waits = [(row["unix_ns"] - UNIX, row["next_tid"], row["next_delay_ns"]) for row in parquet.rows(out, "switches")]
    assert waits == [(1000, 7, None), (1000, 0, None), (2500, 8, 500), (5000, 9, 1000), (6000, 0, None),
                     (7500, 7, 2500), (8000, 9, None)], waits
    wakeups = [(row["unix_ns"] - UNIX, row["task"], row["woken_task"], row["woken_cpu"], row["context"])
               for row in parquet.rows(out, "wakeups")]
    assert wakeups == [(2000, "task 7", "task 8", 1, "task"), (4000, "task 7", "task 9", 0, "task")]
    handler, = parquet.rows(out, "interrupts")
    assert (handler["unix_ns"] - UNIX, handler["duration_ns"], handler["kind"], handler["id"], handler["task"]) == \
        (3000, 400, "irq", 33, "task 7"), handler
    idle, = parquet.rows(out, "idle")
    assert (idle["duration_ns"], idle["cpu"], idle["idle_state"], idle["ended"]) == (1000, 1, 1, "resume"), idle


def a_task_that_is_woken_on_its_cpu_waits_from_when_it_leaves(tmp):
    c = Late(cores=2, unix_base=UNIX)
    for task in 7, 8, 9:
        c.task(task, f"task {task}")
    c.switch(0, 1000, 7)
    c.switch(1, 1000, 9)
    c.waking(1, 1500, 9, 7, cpu=0)
    c.switch(0, 1600, 8, blocked=True, state=1)
    c.switch(0, 1900, 7, blocked=True, state=1)     # waited 300
    c.waking(1, 2000, 9, 7, cpu=0)                  # before it could sleep
    c.switch(0, 2100, 0, blocked=False)
    c.switch(0, 2200, 7, blocked=False)             # waited 100
    c.switch(0, 2300, 0, blocked=True, state=1)
    c.waking(1, 2400, 9, 7, cpu=0)
    c.switch(0, 2450, 7, blocked=False)             # waited 50, and the wakeup before is over
    c.waking(1, 2500, 9, 8, cpu=1)
    c.switch(1, 2700, 8, blocked=True, state=1)     # waited 200
    c.switch(1, 2800, 0, blocked=True, state=1)
    c.switch(0, 2900, 8, blocked=True, state=1)     # nobody woke it
    for path in [c.save(os.path.join(tmp, "early.cap")), late(tmp), *viewers.real_captures()]:
        waits = [(row["next_tid"], row["next_delay_ns"]) for row in parquet.rows(convert(tmp, path, out=path[:-4]),
                                                                              "switches")]
        told = [json.loads(line) for line in tap.run("report", "--json", "--latency", path).stdout.splitlines()]
        sums = [row for row in told if row["kind"] == "latency_sum"]
        got = [ns for _, ns in waits if ns is not None]
        assert (len(got), sum(got)) == (sum(row["waits"] for row in sums), sum(row["sum_ns"] for row in sums)), \
            (path, waits[:20], sums)


def what_is_not_known_is_missing(tmp):
    out = convert(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    switches = parquet.rows(out, "switches")
    assert [row["task"] for row in switches[:2]] == [None, None]
    assert [(row["tid"], row["task"], row["next_task"]) for row in switches if row["unix_ns"] == UNIX + 2000] == \
        [(10, "alpha", "beta")]
    counters = [(row["event"], row["value"]) for row in parquet.rows(out, "counters")]
    assert ("misses", None) in counters and ("cycles", 50) in counters, counters
    sample = parquet.rows(out, "samples")[0]
    assert sample["symbol"] is None and sample["image"] == "/gone/alpha" and sample["weight"] == 50, sample
    assert sample["stack"] == ["[alpha]", "[unknown]"] or sample["stack"] == ["[alpha]", "[alpha]"], sample


def engines_can_skip(tmp):
    path = viewers.random_capture(records=40000).save(os.path.join(tmp, "a.cap"))
    for file in map(parquet.File, parquet.files_of(convert(tmp, path))):
        assert file.sorted, "each group says by what it is sorted"
        for group in file.meta[4]:
            assert all(5 in column[3][12] for column in group[1][:1]), "bounds of the time"
    switches = parquet.File(parquet.files_of(os.path.join(tmp, "out"), "switches")[0])
    encodings = {column.name: chunk[3][2][0] for column, chunk in zip(switches.columns, switches.meta[4][0][1])}
    assert encodings["unix_ns"] == parquet.DELTA and encodings["task"] == parquet.DICTIONARY, encodings
    assert os.path.getsize(parquet.files_of(os.path.join(tmp, "out"), "switches")[0]) < switches.rows * 10


# ---- readers that others wrote

def rows_by_reader(script, packages, paths):
    return list(map(json.loads, npm.run(os.path.join(os.path.dirname(parquet.__file__), script), packages,
                                        *paths).split("\n")[:-1]))


def shown(value):
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def captures_to_read(folder):
    for name, capture in ("random", viewers.random_capture(records=2000)), ("hostile", viewers.hostile()), \
            ("sources", viewers.sources()), ("kernel", viewers.kernel()), ("small", viewers.small()):
        for form in "zstd", "gzip", "none":
            convert(folder, capture.save(os.path.join(folder, f"{name}-{form}.cap")), "--format", form)
    return parquet.files_of(os.path.join(folder, "out"))


def compare_with(paths, found):
    assert len(found) == len(paths)
    for path, rows in zip(paths, found):
        mine = []
        for group in parquet.File(path).groups:
            mine += [{name: shown(value) for name, value in zip(group, values)} for values in zip(*group.values())]
        rows = [{name: row.get(name) for name in mine[0]} for row in rows]
        assert mine == rows, (path, mine[:2], rows[:2])


def hyparquet_reads_the_same(tmp):
    paths = captures_to_read(tmp)
    compare_with(paths, rows_by_reader("parquet_hyparquet.mjs", ("hyparquet", "hyparquet-compressors"), paths))


def apache_arrow_reads_the_same(tmp):
    paths = captures_to_read(tmp)
    compare_with(paths, rows_by_reader("parquet_arrow.mjs", ("parquet-wasm", "apache-arrow"), paths))


def duckdb_reads_the_same(tmp):
    paths = captures_to_read(tmp)
    query = "select * from read_parquet('{}', hive_partitioning = false)"
    answers = rows_by_reader("parquet_duckdb.mjs", ("@duckdb/node-api",), [query.format(path) for path in paths])
    compare_with(paths, [answer["rows"] for answer in answers])


def duckdb_reads_folders_with_old_and_new_names(tmp):
    out = convert(tmp, late(tmp))
    with open(MANUAL, encoding="utf-8") as file:
        views = [text.replace("/srv/fleet", out).replace("\\-", "-").strip().rstrip(";")
                 for text in re.findall(r"^create view [^;]*;$", file.read(), re.M)]
    assert len(views) == 2, views
    olds = {"runs": "unix_ns AS ns, * EXCLUDE (unix_ns)",
            "switches": "unix_ns AS ns, next_delay_ns AS next_wait_ns, * EXCLUDE (unix_ns, next_delay_ns)"}
    host, = os.listdir(os.path.join(out, "runs"))
    for table in olds:
        os.makedirs(os.path.join(out, table, "host=old", "hour=2023-11-14T22"))
    copies = [f"COPY (SELECT {columns} FROM '{out}/{table}/{host}/*/*.parquet') TO "
              f"'{out}/{table}/host=old/hour=2023-11-14T22/old.parquet'" for table, columns in olds.items()]
    sums = [f"SELECT count(*), sum(unix_ns), sum({column}) FROM {table} GROUP BY host ORDER BY host"
            for table, column in (("runs", "duration_ns"), ("switches", "next_delay_ns"))]
    for answer in rows_by_reader("parquet_duckdb.mjs", ("@duckdb/node-api",), [*copies, *views, *sums])[-2:]:
        new, old = answer["rows"]
        assert new == old and None not in new.values(), answer


def duckdb_sees_the_partitions(tmp):
    for host in "one", "2":
        convert(tmp, viewers.small().save(os.path.join(tmp, "a.cap")), "--host", host)
    answer, = rows_by_reader("parquet_duckdb.mjs", ("@duckdb/node-api",), [
        f"select host, hour, count(*) as nr from read_parquet('{tmp}/out/switches/*/*/*.parquet') "
        "group by all order by host"])
    assert answer["rows"] == [{"host": host, "hour": "2023-11-14T22", "nr": "7"} for host in ("2", "one")], answer


def the_queries_for_a_fleet_run(tmp):
    folder = os.path.join(tmp, "out")
    convert(tmp, viewers.small().save(os.path.join(tmp, "a.cap")), "--host", "one")
    lost = CaptureWriter()
    lost.fact("lost.0.full", 7)
    convert(tmp, lost.save(os.path.join(tmp, "b.cap")), "--host", "one")
    convert(tmp, late(tmp), "--host", "two")
    queries = fleet.queries()
    assert len(queries) == 10, queries
    answers = {title.split(".")[0]: rows for (title, _), (_, rows) in
               zip(queries, fleet.answers(folder, [query for _, query in queries]))}
    assert {row["task"]: row["hosts"] for row in answers["1"]}["task 7"] == "1", answers["1"]
    assert {row["host"] for row in answers["2"]} == {"one", "two"}
    two, = [row for row in answers["3"] if row["host"] == "two"]
    assert (two["waits"], two["median_us"], two["longest_ms"]) == ("3", 1.0, 0.0025), two
    assert [row["next_task"] for row in answers["4"] if row["host"] == "two"] == ["task 7", "task 9", "task 8"]
    assert answers["5"] and not answers["6"]
    handler, = answers["7"]
    assert (handler["kind"], handler["times"], handler["where_longest"]) == ("irq", "1", "two"), handler
    assert answers["8"] and answers["9"]
    assert answers["10"] == [{"host": "one", "kind": "lost", "what": "full", "missing": "7"}], answers["10"]


# ---- the folder

def rows_are_in_the_folder_of_their_hour(tmp):
    c = viewers.begin()
    for step in range(3000):
        c.switch(0, BASE + step * HOUR // 1000, 10 + step % 2)
    out = convert(tmp, c.save(os.path.join(tmp, "a.cap")), "--host", "here")
    hours = collections.Counter()
    for path in parquet.files_of(out, "switches"):
        host, hour = parquet.partition(path)
        assert host == "here"
        file = parquet.File(path)
        for group in file.groups:
            for ns in group["unix_ns"]:
                hours[hour] += 1
                assert hour == f"2023-11-1{4 + (ns // HOUR - 472222 + 22) // 24}T{(ns // HOUR - 472222 + 22) % 24:02}"
    assert sum(hours.values()) == 3000 and len(hours) == 4, hours
    assert [parquet.partition(path)[1] for path in parquet.files_of(out, "tasks")] == ["2023-11-14T22"]


def times_may_go_back_any_number_of_hours(tmp):
    c = viewers.begin()
    for step in range(200):
        c.annotation(0, BASE + step * 7 % 12 * HOUR, 10, b"mark %d" % step)
    out = convert(tmp, c.save(os.path.join(tmp, "a.cap")))
    assert sorted(row["text"] for row in parquet.rows(out, "marks")) == sorted(f"mark {i}" for i in range(200))
    assert any(path.endswith(".1.parquet") for path in parquet.files_of(out, "marks"))


def captures_are_added_and_none_is_there_twice(tmp):
    one, other = viewers.small(), viewers.random_capture()
    paths = [one.save(os.path.join(tmp, "a.cap"))]
    out = convert(tmp, paths[0])
    first = parquet.files_of(out)
    convert(tmp, paths[0])
    assert parquet.files_of(out) == first, "the same capture has the same files"
    copy = one.save(os.path.join(tmp, "copy.cap"))
    convert(tmp, copy)
    assert parquet.files_of(out) == first, "a copy of another name is the same capture"
    assert {row["capture"] for row in parquet.rows(out, "captures")} == {"copy"}
    with open(copy, "rb") as file:              # nor has a pipe another one
        subprocess.run([tap.KBARMAN, "convert", "-", "--to", "parquet", "-o", out], stdin=file, check=True,
                       capture_output=True)
    assert parquet.files_of(out) == first
    other.save(os.path.join(tmp, "a.cap"))      # of the same name
    convert(tmp, paths[0])
    assert set(first) < set(parquet.files_of(out))
    assert len(parquet.rows(out, "captures")) == 2


def a_capture_that_differs_anywhere_is_another(tmp):
    """Nobody can write one that replaces the files of a capture that it only looks like."""
    def make(last, base):
        c = viewers.begin()
        c.map(10, base, 0x1000, 0, b"/image")
        for step in range(20000):
            c.sample(0, BASE + step, 10, 0x10000, (1, 1))
        c.sample(0, BASE + 20000, 10, last, (1, 1))
        return c.save(os.path.join(tmp, "a.cap"))

    for number, values in enumerate(((0x1000, 0x5000), (0x2000, 0x5000), (0x1000, 0x6000))):
        out = convert(tmp, make(*values))
        assert len(parquet.rows(out, "captures")) == number + 1, values


def names_of_hosts_are_safe_in_paths(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    for number, host in enumerate(("../up", "a b=c:d", ".", "..", "", "\u00e9", "x" * 400)):
        out = convert(tmp, path, "--host", host, out=f"out{number}")
        name, = os.listdir(os.path.join(out, "switches"))
        assert re.fullmatch(r"host=[\w%-][\w%.-]*", name) and len(name) < 256, name


def the_host_is_that_of_the_recording(tmp):
    out = convert(tmp, late(tmp))
    assert {parquet.partition(path)[0] for path in parquet.files_of(out)} == {"elsewhere"}


def a_failure_leaves_no_file(tmp):
    path = viewers.random_capture(records=60000).save(os.path.join(tmp, "a.cap"))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))

    out = os.path.join(tmp, "out")
    result = subprocess.run([tap.KBARMAN, "convert", path, "--to", "parquet", "-o", out], capture_output=True,
                            text=True, check=False, preexec_fn=limit)
    assert result.returncode == 2 and "File too large" in result.stderr, result
    assert not [name for _, _, names in os.walk(out) for name in names]
    result = tap.run("convert", path, "--to", "parquet", "-o", os.path.join(tmp, "no", "such"))
    assert result.returncode == 2 and "can't make" in result.stderr, result
    result = tap.run("convert", path, "--to", "parquet", "-o", "-")
    assert result.returncode == 2 and "directory" in result.stderr, result


def what_is_before_the_damage_is_written(tmp):
    whole = viewers.random_capture().bytes()
    path = os.path.join(tmp, "a.cap")
    with open(path, "wb") as file:
        file.write(whole[:-len(whole) // 3])
    out = convert(tmp, path, status=1)
    assert len(parquet.rows(out, "switches")) > 500


def parts_of_captures_are_refused(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    result = tap.run("convert", path, "--to", "parquet", "-o", os.path.join(tmp, "out"), "--cpu", "0")
    assert result.returncode == 2 and "whole captures" in result.stderr, result
    assert not os.path.exists(os.path.join(tmp, "out"))


def captures_cut_or_flipped_anywhere_end(tmp):
    whole = viewers.small().bytes()
    path = os.path.join(tmp, "a.cap")
    for at in range(0, len(whole), 31):
        data = bytearray(whole)
        data[at] ^= 0xff
        for content in whole[:at], data:
            with open(path, "wb") as file:
                file.write(content)
            result = tap.run("convert", path, "--to", "parquet", "-o", os.path.join(tmp, "out"), timeout=tap.HANG,
                             errors="replace")
            assert result.returncode in (0, 1, 2), (at, result)
    for path in parquet.files_of(os.path.join(tmp, "out")):
        parquet.File(path)
    hidden = [name for _, _, names in os.walk(os.path.join(tmp, "out")) for name in names if name[0] == "."]
    assert not hidden, hidden


def memory_does_not_grow_with_the_capture(tmp):
    c = viewers.begin()
    for at in range(0, 4000, 8):
        c.switch(0, BASE + at, 10 + at // 8 % 2)
        c.sample(1, BASE + at, 10, 0x10010, (at, 1), (0x10010, 0x10020))
        c.annotation(1, BASE + at, 10, b"a text of some length, which differs %d" % at)
    for repeat in 1, 800:
        path = c.save(os.path.join(tmp, "a.cap"), repeat)
        peak = tap.peak_kib("convert", path, "--to", "parquet", "-o", os.path.join(tmp, "out"))
        assert peak < 64 << 10, (repeat, peak)
    rows = sum(parquet.File(path).meta[3] for path in parquet.files_of(os.path.join(tmp, "out"), "captures"))
    assert rows == 2, "it is another capture"


def without_libzstd_it_is_gzip(tmp):
    env = {**os.environ, "LD_PRELOAD": preload.build(tmp, "without", preload.NO_LIBZSTD)}
    path, out = viewers.small().save(os.path.join(tmp, "a.cap")), os.path.join(tmp, "out")
    result = tap.run("convert", path, "--to", "parquet", "-o", out, env=env)
    assert result.returncode == 0 and "libzstd.so.1 is not installed" in result.stderr, result
    assert {codec for path in parquet.files_of(out) for codec in parquet.File(path).codecs} == {"gzip"}
    result = tap.run("convert", path, "--to", "parquet", "--format", "zstd", "-o", out, env=env)
    assert result.returncode == 2 and "--format gzip" in result.stderr, result


def compressed_as_asked(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    for form in "zstd", "gzip", "none":
        out = convert(tmp, path, "--format", form, out=form)
        assert {c for path in parquet.files_of(out) for c in parquet.File(path).codecs} == {form}


def the_manual_has_every_column(tmp):
    with open(MANUAL, encoding="utf-8") as file:
        sections = re.split(r"^\.SS (\w+)\n", file.read().split(".SH TABLES\n")[1], flags=re.M)[1:]
    told = {table: re.findall(r'^\.BR (\w+) " \((.*)\)"$', text, re.M)
            for table, text in zip(sections[::2], sections[1::2])}
    known = {}
    calls = Late()
    calls.syscall(0, 2000, 7, 0, 1000, 0)
    calls.fault(0, 2001, 7, 1000, 1, 4096, 8)
    calls.block(0, 2002, 7, 1000, 0, 8, 8 << 20, 512)
    for name, capture in ("a", viewers.small()), ("b", viewers.sources()), ("d", calls):
        convert(tmp, capture.save(os.path.join(tmp, name + ".cap")))
    c = CaptureWriter()
    c.fact("lost.0.full", 7)
    convert(tmp, c.save(os.path.join(tmp, "c.cap")))
    for path in parquet.files_of(os.path.join(tmp, "out")):
        table = os.path.relpath(path, os.path.join(tmp, "out")).split("/")[0]
        known[table] = [(column.name, column.type() + "?" * column.optional) for column in parquet.File(path).columns]
    assert told == known, [(t, told.get(t), known.get(t)) for t in set(told) | set(known) if told.get(t) != known.get(t)]


if __name__ == "__main__":
    tap.main(globals())
