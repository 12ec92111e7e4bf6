#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report` says about captures whose content is known."""
import gzip
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "man",
                      "kbarman-report.1")

SOURCE = """
__attribute__((noinline)) int burn_sixty(int x) { return x * 6 + 1; }
__attribute__((noinline)) int burn_thirty(int x) { return x * 3 + 2; }
__attribute__((noinline)) int burn_ten(int x) { return x / 10 + 3; }
int main(int c, char **v) { return burn_sixty(c) + burn_thirty(c) + burn_ten(c); }
"""
KALLSYMS = ("ffffffff81000000 T _stext\nffffffff81000000 T schedule\n"
            "ffffffff81001000 t do_idle\nffffffff81002000 T _etext\n"
            "ffffffffc0000000 t mod_work\t[mymod]\n")
HOST = os.uname().nodename
BASE = 0x555555554000


def build(tmp, *flags):
    source, program = os.path.join(tmp, "truth.c"), os.path.join(tmp, "truth")
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", program, source, *flags], check=True)
    nm = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    symbols = {line.split()[2]: int(line.split()[0], 16)
               for line in nm.splitlines() if len(line.split()) == 3}
    headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True,
                             text=True).stdout
    load = [line.split() for line in headers.splitlines()
            if line.strip().startswith("LOAD") and " E " in line]
    offset, vaddr, size = (int(load[0][i], 16) for i in (1, 2, 4))
    return program, symbols, offset, vaddr, (size + 4095) // 4096 * 4096


def make(tmp, path, weights=((60, 1000), (30, 1000), (10, 1000)), **facts):
    """60/30/10 samples of a PIE in task 7, kernel samples in task 8 and idle."""
    program, symbols, offset, vaddr, size = build(tmp, "-pie", "-fPIE")
    capture = Maker(cores=2, counters=[17, 8], facts={
        "host": HOST, "release": "6.1.0-test", "command": "./truth", "filter": "none",
        "counter.0.0": "cycles", "counter.0.1": "instructions",
        "counter.1.0": "cycles", "counter.1.1": "instructions",
        "written.0": "1000", "written.1": "10", "tgid.1": "7", "tgid.2": "7", **facts})
    capture.task(0, "swapper")
    capture.task(7, "truth")
    capture.task(8, "thread")
    text = BASE + 0x1000
    capture.map(7, text, size, offset, program)
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    capture.map(0, 0xffffffffc0000000, 0x1000, 0, "[mymod]")

    def pc(name):
        return text + symbols[name] - vaddr

    now = 1_000_000
    capture.switch(0, now, 7)
    capture.switch(1, now, 0)
    capture.halt(1, now, True, 2)
    for (count, weight), name in zip(weights, ["burn_sixty", "burn_thirty", "burn_ten"]):
        for _ in range(count):
            now += 1000
            capture.sample(0, now, 7, pc(name), [weight, 7])
    capture.switch(0, now + 1000, 8, blocked=True)
    for pc_ in 0xffffffff81000010, 0xffffffffc0000020:
        now += 1000
        capture.sample(0, now + 1000, 8, pc_, [1000, 5])
    capture.sample(0, now + 1500, 8, pc("burn_ten") + 1, [0xffffffffffffffff, 5])
    capture.switch(0, now + 2000, 7, blocked=False)
    capture.halt(1, now + 3000, False)
    capture.switch(1, now + 4000, 8, blocked=False)
    capture.switch(0, now + 5000, 0, blocked=True)
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(KALLSYMS)
    return program


def lines(tmp, *args, status=0):
    result = tap.run("report", "--json", *args, cwd=tmp)
    assert result.returncode == status, result
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def only(rows, **wanted):
    found = [row for row in rows if all(row.get(k) == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]


def with_idle(folder):
    """Six samples in the idle loop of two CPUs, two of an interrupt there, two of a task."""
    path = os.path.join(folder, "kbarman.cap")
    capture = Maker(cores=2, counters=[17], facts={"counter.0.0": "cycles"})
    capture.task(0, "swapper")
    capture.task(7, "truth")
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    capture.switch(0, 1000, 7)
    chain = [0xffffffff81000000]
    for number in range(6):
        capture.sample(number % 2, 2000 + number, 0, 0xffffffff81001004, [1000], chain, 1)
    for number in range(2):
        capture.sample(1, 3000 + number, 0, 0xffffffff81000004, [1000], [], 0)
        capture.sample(0, 4000 + number, 7, 0xffffffff81000004, [1000], [], 0)
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(KALLSYMS)


def the_idle_loop_is_told_from_work(tmp):
    with_idle(tmp)
    text = tap.run("report", "-g", cwd=tmp).stdout
    assert "# Idle loop: 60.00%, 6 samples" in text, text
    table = text[text.index("#  Overhead"):]
    assert "do_idle" not in table and "20.00%" in table, text
    assert re.search(r"60\.00% +60\.00% +\[idle\]$", table, re.M), text
    rows = [line for line in table.splitlines() if not line.startswith("#")]
    assert [line.split()[2:] for line in rows[:2]] == [
        ["swapper", "[kernel.kallsyms]", "[k]", "schedule"],
        ["truth", "[kernel.kallsyms]", "[k]", "schedule"]], rows
    # interrupts of an idle CPU are work, and nothing is lost of the sums
    listed = tap.run("report", "--idle", cwd=tmp).stdout
    assert "do_idle" in listed and "Idle loop" not in listed, listed


def the_idle_loop_is_marked_for_firefox(tmp):
    with_idle(tmp)
    out = os.path.join(tmp, "out.json")
    assert tap.run("convert", "--to", "firefox", "-o", out, "kbarman.cap", cwd=tmp).returncode == 0
    with open(out, "rb") as file:
        profile = file.read()
    profile = json.loads(gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile)
    categories = [category["name"] for category in profile["meta"]["categories"]]
    found = {}
    for thread in profile["threads"]:
        frames, stacks = thread["frameTable"], thread["stackTable"]
        for stack in thread["samples"]["stack"]:
            func = frames["func"][stacks["frame"][stack]]
            name = thread["stringArray"][thread["funcTable"]["name"][func]]
            found.setdefault(name, set()).add(categories[stacks["category"][stack]])
    assert found == {"do_idle": {"Idle"}, "schedule": {"Kernel"}}, found


def the_idle_loop_is_marked_for_programs(tmp):
    with_idle(tmp)
    for sort in "task,image,symbol", "cpu", "image":
        rows, _ = lines(tmp, "--sort", sort)
        head = only(rows, kind="report")
        for kind in "symbol", "task_samples":
            rest = [row for row in rows if row["kind"] == kind]
            assert sum(row["weight"] for row in rest) == head["weight"] == 10000, rest
            assert sum(row["samples"] for row in rest if row["idle"]) == 6, rest
        assert head["idle_samples"] == 6 and head["idle_weight"] == 6000, head
    assert not any(row.get("idle") for row in lines(tmp, "--idle")[0])


def shares_have_colours_for_those_who_want_them(tmp):
    with_idle(tmp)
    text = tap.run("report", "-g", cwd=tmp).stdout
    coloured = tap.run("report", "-g", "--color=always", cwd=tmp).stdout
    assert "\033" not in text and "\033[31m     20.00%\033[m" in coloured, coloured
    assert re.sub("\033\\[[0-9]*m", "", coloured) == text, coloured


def only_the_cpus_that_were_asked_for_are_in_any_table(tmp):
    capture = Maker(cores=2)
    capture.task(0, "swapper")
    for task in 7, 8:
        capture.task(task, f"on cpu {task - 7}")
    for cpu in 0, 1:
        capture.switch(cpu, 1000 + cpu, 7 + cpu)
        capture.switch(cpu, 5000 + cpu, 0, blocked=True, state=1)
        capture.halt(cpu, 6000 + cpu, True, 1)
        capture.halt(cpu, 7000 + cpu, False)
        capture.switch(cpu, 8000 + cpu, 7 + cpu)
        capture.switch(cpu, 9000 + cpu, 0, blocked=True, state=1)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    for cpu in 0, 1:
        rows, _ = lines(tmp, "-C", cpu)
        assert {row["cpu"] for row in rows if row["kind"] in ("cpu", "idle")} == {cpu}, rows
        assert {row["tid"] for row in rows if row["kind"] in ("task_time", "wait")} == \
            {0, 7 + cpu}, rows
        text = tap.run("report", "-C", cpu, cwd=tmp).stdout
        assert f"on cpu {1 - cpu}" not in text and f"on cpu {cpu}" in text, text
        tables = text[text.index("# CPUs"):]
        assert {line.split()[0] for line in tables.splitlines() if line[0] == " "} == {str(cpu)}, text
    rows, _ = lines(tmp, "-C", "0-1")
    assert rows[0].pop("only") == "cpu 0-1" and "records" in rows[0].pop("whole_capture"), rows[0]
    assert rows == [{**row} for row in lines(tmp)[0]], rows


def a_migrated_tasks_waits_are_those_that_began_on_the_cpus(tmp):
    capture = Maker(cores=2)
    capture.task(7, "mover")
    capture.switch(0, 1000, 7)
    capture.switch(0, 2000, 0)              # preempted, until it runs on the other one
    capture.switch(1, 2500, 7)
    capture.switch(1, 4000, 0)
    capture.switch(0, 7000, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    for cpu, ran, waited in (0, 1000, 500), (1, 1500, 3000):
        task = only(lines(tmp, "-C", cpu)[0], kind="task_time", tid=7)
        assert (task["run_ns"], task["preempted_ns"]) == (ran, waited), task


def names_and_shares_are_the_true_ones(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    rows, errors = lines(tmp)
    head = only(rows, kind="report")
    assert head["samples"] == 103 and head["weight"] == 103000 and head["cpus"] == 2, head
    assert head["host"] == HOST and head["weight_of"] == "cycles", head
    for symbol, samples in ("burn_sixty", 60), ("burn_thirty", 30), ("burn_ten", 10):
        row = only(rows, kind="symbol", symbol=symbol, task="truth")
        assert row["samples"] == samples and row["weight"] == samples * 1000, row
        assert row["counters"] == [samples * 1000, samples * 7], row
        assert row["image"] == program and not row["kernel"], row
        assert abs(row["percent"] - 100 * samples / 103) < 1e-9, row
    row = only(rows, kind="symbol", symbol="schedule")
    assert row["image"] == "[kernel.kallsyms]" and row["kernel"] and row["samples"] == 1, row
    row = only(rows, kind="symbol", symbol="mod_work")
    assert row["image"] == "[mymod]" and row["kernel"], row
    assert not errors, errors


def kernel_functions_of_one_name_have_their_addresses(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    with open(os.path.join(tmp, "kbarman.cap.kallsyms"), "w", encoding="ascii") as file:
        file.write("ffffffff81000000 T _stext\nffffffff81000008 t show\nffffffffc0000010 t show\t[mymod]\n")
    rows, _ = lines(tmp, "--sort", "symbol")
    found = [row["address"] for row in rows if row.get("symbol") == "show"]
    assert sorted(found) == ["0xffffffff81000008", "0xffffffffc0000010"], rows
    assert not any("address" in row for row in rows if row.get("image") == program)
    assert not any("address" in row for row in lines(tmp, "--sort", "image")[0])


def threads_use_the_maps_of_their_group(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    rows, _ = lines(tmp)
    row = only(rows, kind="symbol", symbol="burn_ten", task="thread")
    assert row["samples"] == 1 and row["weight"] == 1000, row  # no value: the mean
    row = only(rows, kind="task_samples", tid=8)
    assert row["pid"] == 7 and row["samples"] == 3, row


def weights_are_periods_unless_counting(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"), ((1, 90000), (2, 4500), (1, 1000)))
    rows, _ = lines(tmp)
    assert only(rows, kind="symbol", symbol="burn_sixty")["weight"] == 90000
    assert only(rows, kind="symbol", symbol="burn_thirty")["weight"] == 9000
    rows, _ = lines(tmp, "--samples")
    assert only(rows, kind="symbol", symbol="burn_thirty")["weight"] == 2
    assert only(rows, kind="report")["weight_of"] == "samples"


def scheduling_adds_up(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    rows, _ = lines(tmp)
    seven, eight = only(rows, kind="task_time", tid=7), only(rows, kind="task_time", tid=8)
    assert seven["run_ns"] == 101_000 + 3000, seven
    assert seven["blocked"] == 2 and seven["preempted"] == 0 and seven["runs"] == 1, seven
    assert seven["blocked_ns"] == seven["longest_wait_ns"] == 3000, seven
    assert seven["longest_wait_blocked"], seven
    assert eight["run_ns"] == 3000 + 1000 and eight["runs"] == 2, eight
    assert eight["preempted"] == 1 and eight["migrations"] == 1, eight
    cpu = only(rows, kind="cpu", cpu=1)
    assert cpu["halted_ns"] == 105_000 and cpu["awake_ns"] == 1000, cpu
    idle = only(rows, kind="idle", cpu=1)
    assert idle["idle_state"] == 2 and idle["count"] == 1 and idle["duration_ns"] == 105_000, idle
    assert abs(idle["per_second"] * only(rows, kind="report")["duration_ns"] - 1e9) < 1e6, idle


def text_has_it_all(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    result = tap.run("report", cwd=tmp)
    text = result.stdout
    assert result.returncode == 0 and not result.stderr, result
    assert re.search(r"^# lost +: 0 records$", text, re.M), text
    assert re.search(rf"^# host +: {re.escape(HOST)}$", text, re.M), text
    assert re.search(r"^ +58\.25% +60 +0\.01 +truth +truth +\[\.\] burn_sixty$", text, re.M), text
    assert re.search(r"^ +0\.97% +1 +0\.01 +thread +\[mymod\] +\[k\] mod_work$", text, re.M), text
    assert all(line == line.rstrip() for line in text.splitlines()), text


def sort_keys_sum_up(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    rows, _ = lines(tmp, "--sort", "task")
    assert {(r["task"], r["samples"]) for r in rows if r["kind"] == "symbol"} == {
        ("truth", 100), ("thread", 3)}, rows
    rows, _ = lines(tmp, "-s", "cpu,image")
    shares = {(r["cpu"], os.path.basename(r["image"]), r["samples"])
              for r in rows if r["kind"] == "symbol"}
    assert shares == {(0, "truth", 101), (0, "[kernel.kallsyms]", 1), (0, "[mymod]", 1)}, shares
    rows, _ = lines(tmp, "--sort", "mode")
    assert {(r["mode"], r["samples"]) for r in rows if r["kind"] == "symbol"} == {("user", 101), ("kernel", 2)}, rows
    text = tap.run("report", "--sort", "mode", cwd=tmp).stdout
    assert re.search(r"^#  Overhead   Samples.*  Mode$", text, re.M) and re.search(r"  kernel$", text, re.M), text
    for bad in "", "nothing", "task,,cpu", "task;cpu":
        assert tap.run("report", "--sort", bad, cwd=tmp).returncode == 2, bad


def samples_are_added_up_by_process(tmp):
    """Threads have rows of their own; a process is what its threads are together."""
    capture = Maker(counters=[17], facts={"counter.0.0": "cycles", "tgid.1": "7"})   # row 1 is task 8
    for task, name in (7, "server"), (8, "worker"), (9, "server"):
        capture.task(task, name)
    for task, weight in (7, 100), (8, 200), (9, 400), (8, 50):
        capture.sample(0, 1000 + task + weight, task, 0x1000, [weight])
    path = capture.save(os.path.join(tmp, "a.cap"))
    def sums(sort):
        rows = [json.loads(line) for line in tap.run("report", "-j", "--sort", sort, path).stdout.splitlines()]
        return {(row["pid"], row.get("tid"), row["weight"]) for row in rows if row["kind"] == "symbol"}
    assert sums("pid") == {(7, None, 350), (9, None, 400)}, sums("pid")
    assert sums("pid,tid") == {(7, 7, 100), (7, 8, 250), (9, 9, 400)}, sums("pid,tid")
    text = tap.run("report", "--sort", "pid,mode,image", path).stdout
    assert re.search(r"^#  Overhead   Samples      PID  Mode    Task    Image$", text, re.M), text
    assert re.search(r"^ +46\.67% +3 +7  user    server  \[unknown\]$", text, re.M), text


def cgroups_are_a_sort_key_and_command_lines_stand_beside_names(tmp):
    shop = "/a.slice/shop.service"
    notes = {"cgroup.0": shop, "cgroup.1": shop, "cgroup.2": "/b\033[1m", "cgroup_of.0": "0", "cgroup_of.2": "1",
             "cgroup_of.3": "2", "command.0": "python3 shop.py \033[1m", "command.2": "/usr/bin/worker",
             "command.3": "x" * 80}
    for has_notes in True, False:
        capture = Maker(counters=[17], facts={"counter.0.0": "cycles", "tgid.1": "10", **(notes if has_notes else {})})
        for number, task in enumerate(((10, "python3"), (11, "thread"), (20, "worker"), (30, "other"), (40, "none"))):
            capture.task(*task)
            for i in range(number + 1):
                capture.sample(0, 1000 + 10 * number + i, task[0], 0x1000, [1])
        path = capture.save(os.path.join(tmp, "a.cap"))
        rows = [json.loads(line) for line in tap.run("report", "-j", "--sort", "cgroup", path).stdout.splitlines()]
        sums = sorted((row["cgroup"] or "", row["samples"]) for row in rows if row["kind"] == "symbol")
        assert sums == ([("", 5), (shop, 6), ("/b\033[1m", 4)] if has_notes else [("", 15)]), sums
        commands = {row["tid"]: row.get("command") for row in rows if row["kind"] == "task_samples"}
        assert commands == {10: notes["command.0"], 11: notes["command.0"], 20: "/usr/bin/worker", 30: "x" * 80,
                            40: None} if has_notes else not any(commands.values()), commands
        text = tap.run("report", "--sort", "cgroup,pid", path).stdout
        assert ("has no cgroups: 'kbarman record' notes them" in text) != has_notes, text
        assert re.search(r"^ +33\.33% +5 +40  \[unknown\] +none$", text, re.M), text
        if not has_notes:
            continue
        assert re.search(rf"^ +20\.00% +3 +20  {shop}  worker$", text, re.M) and "\033" not in text, text
        for line in (" 10       10  python3  python3 shop.py ?[1m", " 10       11  thread  python3 shop.py ?[1m",
                     " 20       20  worker", f" 30       30  other  {'x' * 57}..."):
            assert f"{line}\n" in text, (line, text)


def children_include_what_was_called(tmp):
    program, symbols, offset, vaddr, size = build(tmp, "-no-pie")
    capture = Maker(counters=[17])
    capture.task(7, "truth")
    capture.map(7, vaddr, size, offset, program)
    ten, thirty, main = symbols["burn_ten"], symbols["burn_thirty"], symbols["main"]
    chains = [[ten, thirty + 5, main + 9], [ten, ten + 3, ten + 3, main + 9],
              [thirty, main + 9], [main + 1], None]
    for number, chain in enumerate(chains):
        pc = chain[0] if chain else ten
        capture.sample(0, 1000 + number, 7, pc, [100], chain)
    # a return address behind the last byte of the caller belongs to the caller
    capture.sample(0, 2000, 7, symbols["burn_sixty"], [100], [symbols["burn_sixty"], thirty])
    path = capture.save(os.path.join(tmp, "chains.cap"))
    rows, _ = lines(tmp, "--children", "--sort", "symbol", path)
    got = {r["symbol"]: (r["children"], r["weight"]) for r in rows if r["kind"] == "symbol"}
    before = [name for name in symbols if symbols[name] < thirty and name.startswith("burn")]
    caller = max(before, key=symbols.get)
    want = {"burn_ten": (300, 300), "burn_thirty": (200, 100), "main": (400, 100),
            "burn_sixty": (100, 100)}
    assert caller == "burn_sixty" and got == want, (caller, got)
    text = tap.run("report", "--children", path).stdout
    assert re.search(r"^ +66\.67% +16\.67% +1 +truth +truth +\[\.\] main$", text, re.M), text
    rows, _ = lines(tmp, "--sort", "symbol", path)
    assert only(rows, kind="symbol", symbol="main")["weight"] == 100, rows


def the_tree_of_calls_is_the_true_one(tmp):
    program, symbols, offset, vaddr, size = build(tmp, "-no-pie")
    capture = Maker(counters=[17])
    capture.task(7, "truth")
    capture.map(7, vaddr, size, offset, program)
    ten, main = symbols["burn_ten"] + 1, symbols["main"] + 9
    for number, chain in enumerate([[ten, main], [ten, main], [main], [ten, ten, main]]):
        capture.sample(0, number, 7, chain[0], [100], chain)
    path = capture.save(os.path.join(tmp, "tree.cap"))
    rows, _ = lines(tmp, "--call-graph", path)
    got = [(r["depth"], r.get("task") or r["symbol"], r["total"], r["self"])
           for r in rows if r["kind"] == "call"]
    assert got == [(1, "truth", 400, 0), (2, "main", 400, 100), (3, "burn_ten", 300, 200),
                   (4, "burn_ten", 100, 100)], got
    text = tap.run("report", "-g", path).stdout
    assert re.search(r"^ +75\.00% +50\.00% {6}burn_ten$", text, re.M), text


def stripped_images_are_told_in_one_line(tmp):
    stripped, symbols, offset, vaddr, size = build(tmp, "-pie", "-fPIE")
    subprocess.run(["strip", stripped], check=True)
    capture = Maker()
    capture.task(7, "x")
    for number in range(40):
        program = os.path.join(tmp, f"program-{number:02}")
        subprocess.run(["cp", stripped, program], check=True)
        capture.map(7, number << 20, size, offset, program)
        capture.sample(0, number, 7, (number << 20) + symbols["burn_ten"] - vaddr)
    _, errors = lines(tmp, capture.save(os.path.join(tmp, "stripped.cap")))
    assert len(errors.splitlines()) == 1 and "program-00, " in errors, errors
    assert re.search(r" and \d+ more$", errors.strip()), errors


def stripped_libraries_are_told_where_names_are_missing(tmp):
    """What a library exports has names when it is stripped, its other functions have places."""
    source = ("static __attribute__((noinline)) int inner(int x) { return x * 7 + 1; }\n"
              "__attribute__((aligned(64))) int outer(int x) { return inner(x) + 3; }\n")
    places = {}
    for name, flags in ("libwhole.so", []), ("libexports.so", ["-s"]), ("libinner.so", ["-s"]):
        path = os.path.join(tmp, name)
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-xc", "-", "-o", path], check=True,
                       text=True, input=source)
        nm = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
        places[path] = {line.split()[2]: int(line.split()[0], 16)
                        for line in nm.splitlines() if len(line.split()) == 3}
        if flags:
            subprocess.run(["strip", path], check=True)
    capture = Maker()
    capture.task(7, "x")
    for number, (path, symbols) in enumerate(places.items(), 1):
        # as it is in the file: one segment of all of it will do
        capture.map(7, number << 20, 0x10000, 0, path)
        for function in ["outer"] if "exports" in path else ["outer", "inner"]:
            capture.sample(0, number, 7, (number << 20) + symbols[function])
    rows, errors = lines(tmp, capture.save(os.path.join(tmp, "stripped.cap")))
    symbols = {(row["image"], row["symbol"]) for row in rows if row["kind"] == "symbol"}
    whole, inner = os.path.join(tmp, "libwhole.so"), os.path.join(tmp, "libinner.so")
    assert symbols == {(path, "outer") for path in places} | {
        (whole, "inner"), (inner, f"libinner.so+{places[inner]['inner']:#x}")}, symbols
    assert "libinner.so" in errors and "stripped" in errors, errors
    assert "libexports.so" not in errors and "libwhole.so" not in errors, errors


def filters_choose_samples(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    for args, want in [(["--task", "thread"], 3), (["--tid", "8"], 3), (["--tid", "7"], 103),
                       (["-C", "0"], 103), (["-C", "1-3"], 0), (["--time", ",0.00006"], 60),
                       (["--time", "0.00006,"], 44), (["--time", "0.00006,0.000061"], 2),
                       (["--task", "truth", "--time", ",0.00006", "-C", "0"], 60)]:
        rows, _ = lines(tmp, *args)
        assert sum(r["samples"] for r in rows if r["kind"] == "symbol") == want, (args, want)
        assert only(rows, kind="report")["samples_filtered"] == 103 - want, args
    text = tap.run("report", "--task", "thread", cwd=tmp).stdout
    assert "# Samples: 3, only those of task thread (100 others), " in text, text
    for bad in (["--tid", "x"], ["--tid", "-1"], ["--time", "3"], ["--time", "2,1"],
                ["--time", "a,b"], ["--cpu", "z"]):
        assert tap.run("report", *bad, cwd=tmp).returncode == 2, bad


def percent_limit_says_what_it_hides(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    text = tap.run("report", "--percent-limit", "5", cwd=tmp).stdout
    assert "burn_sixty" in text and "schedule" not in text, text
    assert re.search(r"2\.91%  in 3 more rows below 5%", text), text
    for bad in "x", "-1", "101", "1x", "nan":
        assert tap.run("report", "--percent-limit", bad, cwd=tmp).returncode == 2, bad


def tasks_of_one_name_are_told(tmp):
    """The first table is by name."""
    capture = Maker(counters=[17], facts={"counter.0.0": "cycles"})
    for task, name in (7, "server"), (8, "server"), (9, "server"), (10, "client"):
        capture.task(task, name)
        capture.sample(0, 1000 + task, task, 0x1000, [100])
    path = capture.save(os.path.join(tmp, "a.cap"))
    text = tap.run("report", path).stdout
    assert text.count("'server' is 3 tasks: --sort tid,image,symbol lists each") == 1, text
    assert "'client' is" not in text
    for sort in "tid,image", "image,symbol":
        assert " tasks: --sort" not in tap.run("report", "--sort", sort, path).stdout, sort


def losses_are_always_said(tmp):
    path = os.path.join(tmp, "lossy.cap")
    capture = Maker(cores=4, facts={"written.0": "5", "lost.3.full": "42", "lost.0.nested": "1",
                                    "missed.map": "7"})
    capture.switch(0, 10, 7)
    capture.save(path)
    text = tap.run("report", path).stdout
    assert re.search(r"^# lost +: 43 records$", text, re.M), text
    assert re.search(r"CPU 3: 42 \(full\): record with larger rings \(-m\)", text), text
    assert re.search(r"missed 7 \(map\)", text), text
    rows, _ = lines(tmp, path)
    assert only(rows, kind="lost", cpu=3, reason="full")["records"] == 42


def missing_images_are_complained_about_once(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    os.remove(program)
    rows, errors = lines(tmp)
    assert only(rows, kind="symbol", task="truth")["symbol"] is None
    assert only(rows, kind="symbol", task="truth")["image"] == program
    complaints = errors.splitlines()
    assert len(complaints) == 1 and program in complaints[0] and "--symfs" in complaints[0], errors


def images_of_other_hosts_are_not_looked_for_here(tmp):
    path = os.path.join(tmp, "far.cap")
    capture = Maker(facts={"host": HOST + "-far-away"})
    capture.task(7, "sh")
    capture.map(7, 0x1000, 0x100000, 0, "/bin/sh")
    capture.map(7, 0x200000, 0x100000, 0, "/bin/true")
    capture.sample(0, 1, 7, 0x2000)
    capture.sample(0, 2, 7, 0x210000)
    capture.save(path)
    _, errors = lines(tmp, path)
    assert len(errors.splitlines()) == 1 and "far-away" in errors and "bundle" in errors, errors
    assert "far-away" not in lines(tmp, "--symfs", "/", path)[1]


def symfs_finds_images_elsewhere(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    for place in program, "/truth":
        tree = os.path.join(tmp, "tree" + str(len(place)))
        os.makedirs(os.path.dirname(tree + place), exist_ok=True)
        subprocess.run(["cp", program, tree + place], check=True)
        rows, errors = lines(tmp, "--symfs", tree + "/")
        assert only(rows, kind="symbol", symbol="burn_sixty")["samples"] == 60
        assert not errors, errors


def memory_is_small_for_each_task_and_each_image(tmp):
    """A task has a sample in code without a mapping; an image is a file that is not there."""
    for kind in "tasks", "images":
        peaks = []
        for number in 1000, 41000:
            capture = Maker(facts={"host": HOST})
            for i in range(number if kind == "tasks" else 100):
                capture.task(1000 + i, f"task{i % 50}")
            for i in range(number):
                task = 1000 + (i if kind == "tasks" else i % 100)
                if kind == "images":
                    capture.map(task, 0x10000 * (1 + i // 100), 0x1000, 0, f"/nowhere/lib{i}.so")
                capture.sample(0, 1000 * i, task, 0x10000 * (1 + i // 100) + 16)
            peaks.append(tap.peak_kib("report", capture.save(os.path.join(tmp, "many.cap"))))
        each = (peaks[1] - peaks[0]) * 1024 / 40000
        assert each < 800, (kind, each, peaks)


def tasks_have_the_names_that_they_had_in_the_time_that_counts(tmp):
    capture = Maker()
    capture.task(7, "before")
    capture.task(7, "after", timestamp=600_000_000)
    capture.task(8, "other")
    for ns, task in (0, 7), (100, 8), (200, 7), (900, 8), (1000, 7), (1100, 8):
        capture.switch(0, ns * 1_000_000, task)
        if ns == 200:		# it runs until 900
            capture.sample(0, 300_000_000, 7, 0x1000)
            capture.sample(0, 700_000_000, 7, 0x1000)
    path = capture.save(os.path.join(tmp, "names.cap"))
    for time, name in ("0,0.4", "before"), ("0.65,", "after"), ("0,", "after"):
        rows = lines(tmp, path, "--time", time)[0]
        for kind in "task_time", "task_samples":
            assert only(rows, kind=kind, tid=7)["task"] == name, (time, kind, rows)


def records_out_of_order_are_told(tmp):
    capture = Maker(cores=2)
    capture.task(7, "x")
    for core, ns in (0, 3000), (1, 1000), (0, 2000), (0, 4000):	# not those of another CPU
        capture.sample(core, ns, 7, 0x1000)
    path = capture.save(os.path.join(tmp, "order.cap"))
    assert only(lines(tmp, path)[0], kind="report")["backwards"] == 1
    assert "# order    : 1 records are older" in tap.run("report", path).stdout
    done = tap.run("check", path)
    assert done.returncode == 0 and "1 records are older" in done.stdout, done


def only_versions_are_left_out_of_names(tmp):
    """An '@' may be part of a name; a library's version of it is not."""
    source, library = os.path.join(tmp, "v.c"), os.path.join(tmp, "libv.so")
    with open(source, "w", encoding="ascii") as file:
        file.write("int older(void) { return 1; }\nint newer(void) { return 2; }\n"
                   "int third(void) { return 3; }\n"
                   "__asm__(\".symver older,shown@VERS_1.0\\n.symver newer,shown@@VERS_2.0\");\n")
    with open(os.path.join(tmp, "v.map"), "w", encoding="ascii") as file:
        file.write("VERS_1.0 { global: shown; third; local: *; };\nVERS_2.0 { } VERS_1.0;\n")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-Wl,--version-script=v.map", "-o", library, source],
                   check=True, cwd=tmp)
    subprocess.run(["objcopy", "--redefine-sym", "third@@VERS_1.0=co@route", library], check=True)
    subprocess.run(["objcopy", "--redefine-sym", "third=co@route", library], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", library, library + ".debug"], check=True)
    symbols = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines() if " T " in line}
    assert {"co@route", "shown@VERS_1.0", "shown@@VERS_2.0"} <= set(places), places
    capture = Maker(facts={"host": HOST})
    capture.task(7, "x")
    headers = subprocess.run(["readelf", "-lW", library], check=True, capture_output=True, text=True).stdout
    (load,) = [line.split() for line in headers.splitlines() if "LOAD" in line and " E " in line]
    offset, vaddr = int(load[1], 16), int(load[2], 16)
    capture.map(7, 0x100000, 0x1000, offset, library)
    for number, name in enumerate(["co@route", "shown@VERS_1.0", "shown@@VERS_2.0"]):
        capture.sample(0, number, 7, 0x100000 + places[name] - vaddr)
    path = capture.save(os.path.join(tmp, "v.cap"))
    for stripped in False, True:
        if stripped:
            subprocess.run(["strip", library], check=True)
            subprocess.run(["objcopy", "--add-gnu-debuglink", library + ".debug", library], check=True)
        rows = lines(tmp, path)[0]
        assert {row["symbol"] for row in rows if row["kind"] == "symbol"} == {"co@route", "shown"}, rows


def code_made_at_run_time_has_names(tmp):
    os.mkdir(os.path.join(tmp, "tmp"))
    with open(os.path.join(tmp, "tmp", "perf-7.map"), "w", encoding="ascii") as file:
        file.write("10000 80 jit function\n10100 10 other\n")
    capture = Maker(facts={"tgid.1": "7"})
    capture.task(7, "java")
    capture.task(8, "worker")
    capture.map(7, 0x10000, 0x1000, 0, "//anon")
    for number, pc in enumerate([0x10010, 0x10090, 0x10108, 0x10011]):
        capture.sample(0, number, 8, pc)
    path = capture.save(os.path.join(tmp, "jit.cap"))
    rows, errors = lines(tmp, path, "--symfs", tmp)
    got = {(r["symbol"], r["image"]): r["samples"] for r in rows if r["kind"] == "symbol"}
    assert got == {("jit function", "/tmp/perf-7.map"): 2, ("other", "/tmp/perf-7.map"): 1,
                   (None, "//anon"): 1}, got
    assert not errors, errors
    assert tap.run("bundle", path, "--symfs", tmp).returncode == 0
    os.remove(os.path.join(tmp, "tmp", "perf-7.map"))
    assert lines(tmp, path)[0] == rows
    os.remove(path + ".symbols")
    with open(os.path.join(tmp, "tmp", "perf-7.map"), "wb") as file:
        file.truncate(257 << 20)
    rows, errors = lines(tmp, path, "--symfs", tmp)
    assert "perf-7.map is too large" in errors, errors


def kernel_addresses_without_a_mapping_are_not_taken_for_unknown_ones(tmp):
    """Nor unknown ones for the kernel's, whichever comes first."""
    for order in (0, 1), (1, 0):
        capture = Maker()
        capture.task(7, "app")
        capture.map(7, 0x400000, 0x1000, 0, "[anon]")
        for number, which in enumerate(order):
            capture.sample(0, 1000 + number, 7, (0x7ffff000, 0xffffffff81000010)[which])
        path = capture.save(os.path.join(tmp, "kbarman.cap"))
        for symbols in None, KALLSYMS:
            if symbols:
                with open(path + ".kallsyms", "w", encoding="ascii") as file:
                    file.write(symbols)
            rows, _ = lines(tmp, "--sort", "image,symbol")
            found = {(row["image"], row["symbol"]) for row in rows if row["kind"] == "symbol"}
            assert found == {("[unknown]", None),
                             ("[kernel.kallsyms]", "schedule" if symbols else None)}, (order, found)
        os.remove(path + ".kallsyms")


def kernel_without_symbols_says_what_to_do(tmp):
    path = os.path.join(tmp, "kbarman.cap")
    make(tmp, path)
    os.rename(path + ".kallsyms", os.path.join(tmp, "symbols"))
    rows, errors = lines(tmp)
    assert not [r for r in rows if r.get("symbol") == "schedule"]
    assert "--kallsyms" in errors, errors
    rows, errors = lines(tmp, "--kallsyms", "symbols")
    only(rows, kind="symbol", symbol="schedule")
    assert not errors, errors
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write("0000000000000000 T schedule\n")
    _, errors = lines(tmp)
    assert "kptr_restrict" in errors, errors


def no_file_is_one_line(tmp):
    for args in [], ["nothing.cap"], ["-i", "nothing.cap"], ["--kallsyms", "x", "nothing.cap"]:
        result = tap.run("report", *args, cwd=tmp)
        assert result.returncode == 2 and not result.stdout, result
        assert len(result.stderr.splitlines()) == 1, result
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    result = tap.run("report", "--kallsyms", "missing", cwd=tmp)
    assert result.returncode == 2 and "missing" in result.stderr, result
    result = tap.run("report", "a", "b", cwd=tmp)
    assert result.returncode == 2, result


def standard_input_is_read(tmp):
    path = os.path.join(tmp, "kbarman.cap")
    make(tmp, path)
    with open(path, "rb") as file:
        result = tap.run("report", "--json", "-", "--kallsyms", path + ".kallsyms", stdin=file)
    assert result.returncode == 0, result
    assert '"symbol":"burn_sixty"' in result.stdout, result


def damage_is_reported_and_the_rest_too(tmp):
    path = os.path.join(tmp, "kbarman.cap")
    make(tmp, path)
    assert "# damaged" not in tap.run("report", cwd=tmp).stdout
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 100)
    rows, errors = lines(tmp, status=1)
    assert only(rows, kind="symbol", symbol="burn_sixty")["samples"] == 60
    assert only(rows, kind="report")["damaged"] and errors, (rows, errors)
    # also where a text goes on without what was said on standard error
    text = tap.run("report", cwd=tmp).stdout
    assert "\n# damaged  : records are missing, those behind the damage" in text, text


def control_characters_do_not_reach_the_terminal(tmp):
    path = os.path.join(tmp, "evil.cap")
    capture = Maker(facts={"host": "a\033[2Jb", "raw_base": "1\033[2J"})
    capture.task(7, "evil\033]0;x\007\n")
    capture.map(7, 0x1000, 0x1000, 0, "/tmp/\033[31m\nimage")
    capture.switch(0, 10, 7)
    capture.sample(0, 20, 7, 0x1010)
    capture.save(path)
    text = tap.run("report", path).stdout
    assert not [c for c in text if ord(c) < 32 and c != "\n"], text
    for line in tap.run("report", "--json", path).stdout.splitlines():
        json.loads(line)


def full_disk_is_told(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    with open("/dev/full", "w", encoding="ascii") as full:
        for args in [], ["--json"]:
            result = tap.run("report", *args, cwd=tmp, stdout=full, stderr=subprocess.PIPE,
                             capture_output=False)
            assert result.returncode == 2 and "No space left" in result.stderr, result


def output_is_the_same_every_time(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    for args in [], ["--json"], ["--sort", "tid,cpu,symbol"]:
        assert len({tap.run("report", *args, cwd=tmp).stdout for _ in range(4)}) == 1, args


def a_sleep_of_the_machine_is_told(tmp):
    for fact, said in (("2,3500000000", "2 times; CLOCK_MONOTONIC_RAW stood still for 3.500000 s"),
                       ("1,0", "1 time;"), ("none", None), (None, None)):
        path = Maker(facts={"asleep": fact} if fact else {}).save(os.path.join(tmp, "x.cap"))
        text = tap.run("report", path).stdout
        assert (said in text) if said else ("asleep" not in text), (fact, text)
        head = json.loads(tap.run("report", "--json", path).stdout.splitlines()[0])
        assert head.get("asleep") == fact, head


def an_empty_capture_is_reported(tmp):
    path = Maker().save(os.path.join(tmp, "empty.cap"))
    result = tap.run("report", path)
    assert result.returncode == 0 and "No samples" in result.stdout, result


def manual_has_every_option(tmp):
    text = tap.run("report", "--help", cwd=tmp).stdout
    with open(MANUAL, encoding="utf-8") as manual:
        described = manual.read().replace("\\-", "-")
    options = re.findall(r"^ +(?:(-\w), |)(?: *)(--[\w-]+)", text, re.M)
    assert len(options) >= 8, text
    for short, long in options:
        assert long in described, long
        assert short in described, short


if __name__ == "__main__":
    tap.main(globals())
