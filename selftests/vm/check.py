#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a VM left in results/ is what the programs in it did.

    check.py GUEST-DIRECTORY TOOL

all.* is a recording of the whole system, command.* of the program alone; *.out is what
selftests/truth says it did, *.json what `kbarman report` says.
"""
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import cross_format  # noqa: E402  pylint: disable=wrong-import-position,import-error

GUEST, TOOL = sys.argv[1:3]
RESULTS = os.path.join(GUEST, "results")
NAMES = ("all", "command")


def path(name):
    return os.path.join(RESULTS, name)


def lines(name):
    """The report's lines of one kind, or all."""
    with open(path(name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def did(name):
    """What the program says it did."""
    with open(path(name + ".out"), encoding="utf-8") as file:
        return dict(pair.split("=", 1) for line in file for pair in [line.rstrip("\n")])


def tid(text):
    return int(text.split(",")[0])


_dumped = {}


def dump(name):
    """The capture's records, from this machine's tool."""
    if name not in _dumped:
        ran = subprocess.run([TOOL, "dump", "--json", path(name + ".cap")], check=False,
                             capture_output=True, text=True)
        assert ran.returncode == 0, (ran.returncode, ran.stderr)
        _dumped[name] = [json.loads(line) for line in ran.stdout.splitlines()]
    return _dumped[name]


def records(name):
    return [line for line in dump(name) if line["kind"] == "record"]


def fact_sum(name, key):
    with open(path(name + ".cap"), "rb") as file:
        data = file.read()
    return sum(int(value) for value in
               re.findall(rb"(?<=\0)kbarman\." + key + rb"[.0-9]*=(\d+)\0", data))


def rows(name):
    return [line for line in lines(name + ".json") if line["kind"] == "symbol"]


# ---- promises, each of both recordings
#
# How many samples there are depends on what else the machine that emulates this one does.

def points(samples):
    """How much a share of so many samples may differ, in parts of a hundred: four standard deviations."""
    return max(3, 400 * (0.25 / samples) ** 0.5)


def parts_are_reported_within_3_points(name):
    """By samples: an emulated cycle counter goes on while the host has other things to do
    than to emulate, and then one sample weighs as much as hundreds."""
    parts = dict(part.split(":") for part in did(name)["parts"].split(","))
    samples = {part: sum(row["samples"] for row in rows(name) if row["symbol"] == part)
               for part in parts}
    whole = sum(samples.values())
    print("#", whole, "samples,",
          ", ".join(f"{part} {100 * count / whole:.2f} (true: {parts[part]})"
                    for part, count in samples.items()))
    assert whole >= 500, whole
    for part, count in samples.items():
        assert abs(100 * count / whole - int(parts[part])) <= points(whole), part


def a_ping_pong_is_two_switches(name):
    truth = did(name)
    rounds = int(truth["ping_pongs"])
    ping, pong = int(truth["ping"]), int(truth["pong"])
    to = [r["tid"] for r in records(name) if r["type"] == "task_switch"]
    assert to.count(ping) >= rounds, to.count(ping)
    assert to.count(pong) >= rounds, to.count(pong)
    turns = [t for t in to if t in (ping, pong)]
    changes = sum(a != b for a, b in zip(turns, turns[1:]))
    assert changes >= 2 * rounds - 1, changes


def told(*args):
    ran = subprocess.run([TOOL, *args], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, (args, ran.returncode, ran.stderr)
    return ran.stdout


def all_times_count_from_the_moment_at_which_the_recording_began(name):
    """In all verbs, as numbers, in text and in --time."""
    capture = path(name + ".cap")
    base = next(line for line in dump(name) if line["kind"] == "header")["timestamp_base"]
    switches = [r for r in records(name) if r["type"] == "task_switch"]
    times = [r["at_ns"] for r in switches]
    assert switches[0]["timestamp"] >= base and times == sorted(times) and times[0] >= 0, times[0]
    assert json.loads(told("info", "--json", capture).splitlines()[0])["first_ns"] == 0
    # each time as often as it is there: of several at one moment, too
    middle = times[len(times) // 2]
    wanted = [ns for ns in times if ns <= middle]
    by_script = told("script", "--json", "-e", "switch", "--time", f"0,{middle / 1e9:.9f}", capture)
    assert [json.loads(line)["at_ns"] for line in by_script.splitlines()] == wanted
    by_query = told("query", "--json", capture,
                    f"SELECT at_ns FROM switches WHERE at_ns <= {middle} ORDER BY at_ns")
    assert [row["at_ns"] for row in json.loads(by_query)] == wanted
    waits = [line for line in map(json.loads, told("report", "--json", capture).splitlines())
             if line["kind"] == "wait"]
    assert waits and all(wait["at_ns"] in times for wait in waits), waits[:3]
    text = told("report", capture).partition("Longest waits (times in ms since")[2]
    assert f" {waits[0]['at_ns'] / 1e6:.3f} " in text, (waits[0], text[:300])


def the_kernels_count_of_switches_is_recorded(name):
    """The thread that sleeps asked the kernel how often it was taken off its CPU; each
    time, it was switched to again."""
    sleeper = did(name)["sleeper"]
    switches = int(sleeper.split("switches=")[1])
    to = sum(r["type"] == "task_switch" and r["tid"] == tid(sleeper) for r in records(name))
    assert switches > 10, switches
    assert switches <= to <= switches + 20, (to, switches)


def threads_are_called_what_they_called_themselves(name):
    names = {(line["tid"], line["task"]) for line in dump(name) if line["kind"] == "task"}
    for key, value in did(name).items():
        if key.startswith("burner."):
            assert (tid(value), key.replace(".", "-")) in names, key
    assert (tid(did(name)["sleeper"]), "sleeper") in names
    assert (int(did(name)["pong"]), "pong") in names


def burners_and_no_others_run_the_parts(name):
    tasks = {row["task"] for row in rows(name) if (row["symbol"] or "").startswith("truth_")}
    assert tasks == {"burner-0", "burner-1"}, tasks


def records_are_as_many_as_the_module_wrote(name):
    assert fact_sum(name, b"written") == len(records(name)), \
        (fact_sum(name, b"written"), len(records(name)))


def nothing_is_lost(name):
    assert fact_sum(name, b"lost") == 0
    assert lines(name + ".json")[0]["lost"] == 0
    assert not lines(name + ".json")[0]["damaged"]


def records_are_in_the_order_of_time(name):
    times = [r["timestamp"] for r in records(name)]
    assert times == sorted(times)


def every_sampled_task_has_a_name(name):
    named = {line["tid"] for line in dump(name) if line["kind"] == "task"}
    for r in records(name):
        if r["type"] == "sample_pc":
            assert r["tid"] in named, r


def samples_in_the_program_have_names(name):
    """All but those in the procedure linkage table, which no symbol table names."""
    own = [row for row in rows(name) if row["image"].endswith("/truth")]
    nameless = sum(row["samples"] for row in own if not row["symbol"])
    assert nameless <= 0.01 * sum(row["samples"] for row in own), nameless


def kernel_functions_are_named(name):
    named = [row for row in rows(name) if row["kernel"] and row["symbol"]]
    nameless = [row for row in rows(name) if row["kernel"] and not row["symbol"]]
    assert len(named) >= 5, len(named)
    assert len(nameless) <= len(named) / 10, nameless


def tool_says_it_is_a_valid_capture(name):
    ran = subprocess.run([TOOL, "check", path(name + ".cap")], check=False,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def converts_to_valid_files(name):
    for to in ("heph", "annotate"):
        with tempfile.NamedTemporaryFile(suffix="." + to) as out:
            ran = subprocess.run([TOOL, "convert", path(name + ".cap"), "--to", to, "-o",
                                  out.name], check=False, capture_output=True, text=True)
            assert ran.returncode == 0, (to, ran.stderr)
            ran = subprocess.run([TOOL, "dump", "--json", out.name], check=False,
                                 capture_output=True, text=True)
            assert ran.returncode == 0, (to, ran.stderr)
            assert ran.stdout.count("\n") > len(records(name)) / 2, to


def every_export_says_what_the_capture_says(name):
    """Switches by task, samples by symbol, idle time by CPU, totals of counters: counted
    from the raw records, and from Heph, Annotate, TPTP as XML and TPTP in binary."""
    cross_format.KBARMAN = os.path.abspath(TOOL)
    with tempfile.TemporaryDirectory() as scratch:
        cross_format.compare(path(name + ".cap"), scratch)


# ---- promises of names.cap: selftests/truth/names says what its names and chains are

class Sample:
    """A sample as `script` tells it."""

    def __init__(self, comm):
        self.comm = comm
        self.frames = []        # (address, symbol, image), the innermost first

    def user(self):
        return [f for f in self.frames if f[0] < 1 << 63]

    def in_user(self):
        return bool(self.frames) and self.frames[0][0] < 1 << 63


SAMPLE = re.compile(r" *(.*?) +\d+/\d+ +\[\d+\] ")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$")


def parse_script(text):
    samples = []
    for line in text.splitlines():
        if line.startswith("\t"):
            frame = FRAME.match(line)
            assert frame, line
            samples[-1].frames.append((int(frame[1], 16), frame[2], frame[3]))
        elif line:
            head = SAMPLE.match(line)
            assert head, line
            samples.append(Sample(head[1]))
    return samples


_scripts = {}


def script(name="names"):
    if name not in _scripts:
        with open(path(name + ".script"), encoding="utf-8") as file:
            _scripts[name] = parse_script(file.read())
    return _scripts[name]


def phases():
    """Each phase's chain of functions."""
    return {name: chain.split(" <- ") for name, chain in did("names").items()
            if name != "children"}


def is_nameless(frame):
    """A name that was made of the file's, as FILE+0xADDRESS, is none."""
    return frame[1] == "[unknown]" or frame[1].startswith(os.path.basename(frame[2]) + "+0x")


def each_phase_is_in_its_function():
    """99 of 100 samples of user code have a name, and no other phase's."""
    functions = {function for chain in phases().values() for function in chain}
    for name, chain in phases().items():
        # A phase asks for the time. Where another CPU is about to set the clock, that takes as long as it takes.
        user = [s.frames[0] for s in script() if s.comm == name and s.in_user() and s.frames[0][2] != "[vdso]"]
        own = sum(f[1] in chain for f in user)
        others = sum(f[1] not in chain and f[1] in functions for f in user)
        # Debian's own libraries are stripped: nobody can name all that is in them
        nameless = sum(is_nameless(f) and ("/names/" in f[2] or f[2] == "[unknown]")
                       for f in user)
        print(f"# {name}: {own} of {len(user)} in its functions, {others} in those of others, "
              f"{nameless} without a name")
        assert others + nameless <= max(1, 0.01 * len(user)), name
        # which does little but begin and end
        if name != "part-child":
            assert own >= 5 and own >= 0.9 * len(user) - 1, name


def each_short_lived_program_is_named():
    """1,000 of a few milliseconds, linked statically: all code is their own."""
    user = [s.frames[0] for s in script() if s.comm == "part-child" and s.in_user()]
    own = sum(f[2].endswith("/part-child") for f in user)
    print(f"# {own} of {len(user)}")
    assert len(user) >= 20, len(user)
    assert own >= 0.99 * len(user)


def each_chain_is_the_truth():
    whole = right = 0
    for name, chain in phases().items():
        mine = [[f[1] for f in s.frames] for s in script()
                if s.comm == name and s.in_user() and s.frames[0][1] == chain[0]]
        same = sum(frames[:len(chain)] == chain for frames in mine)
        print(f"# {name}: {same} of {len(mine)}")
        for frames in [f for f in mine if f[:len(chain)] != chain][:2]:
            print("#   ", " <- ".join(frames))
        assert len(mine) >= 5, name
        whole += len(mine)
        right += same
    assert right >= 0.99 * whole, (right, whole)


def the_kernel_is_called_from_the_users_code():
    """Chains that begin in the kernel go on in the program."""
    both = [s for s in script() if s.frames and not s.in_user() and s.user() and
            s.comm in phases()]
    of_main = sum(any(f[1] == "main" for f in s.user()) for s in both if s.comm != "part-child")
    print(f"# {len(both)} chains of both, {of_main} from main")
    assert of_main >= 5


def the_bundle_alone_gives_the_same_names():
    """On another machine, or at least without those programs; JIT code has its map there."""
    ran = subprocess.run([TOOL, "script", "-e", "sample", path("names.cap")], check=False,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    here = parse_script(ran.stdout)
    assert len(here) == len(script())
    differ = [(s.comm, f, g) for s, t in zip(script(), here) for f, g in zip(s.frames, t.frames)
              if f != g]
    print(f"# {len(differ)} frames differ", *differ[:3])
    assert not differ


# ---- promises of stripped.cap

def chains_of_stripped_programs_reach_their_start():
    """99 of 100, by the tables of Debian's own files: at _start, or where the loader begins."""
    for comm in "xz", "openssl", "sqlite3":
        chains = [s.user() for s in script("stripped") if s.comm == comm and s.user()]
        cut = [frames for frames in chains
               if frames[-1][1] != "_start" and "/ld-linux" not in frames[-1][2]]
        print(f"# {comm}: {len(cut)} of {len(chains)} are cut")
        for frames in cut[:2]:
            print("#   ", " <- ".join(frame[1] for frame in frames))
        assert len(chains) >= 30 and len(cut) <= max(1, 0.01 * len(chains)), comm


# ---- promises of one of them

def shares(counts):
    """Percent by symbol, of the commands that both looked at."""
    counts = {key: value for key, value in counts.items() if key[0] not in ("kbarman", "perf")}
    whole = sum(counts.values())
    return {key: 100 * value / whole for key, value in counts.items()}, whole


def perf_samples():
    """By command, image and symbol, as perf report says; what has no name together."""
    counts = {}
    with open(path("perf.txt"), encoding="utf-8") as file:
        for line in file:
            fields = [field.strip() for field in line.split("|")]
            if len(fields) < 5:
                continue
            symbol = re.sub(r"^\[.\] ", "", fields[4])
            key = fields[2], fields[3], "" if re.match(r"0x[0-9a-f]+$", symbol) else symbol
            counts[key] = counts.get(key, 0) + int(fields[1])
    return shares(counts)


def our_samples():
    """The same; perf makes no names of functions that have none, as IMAGE+0xADDRESS."""
    counts = {}
    for row in lines("perf.json"):
        if row["kind"] == "symbol":
            image, symbol = os.path.basename(row["image"]), row["symbol"] or ""
            key = row["task"], image, "" if symbol.startswith(image + "+0x") else symbol
            counts[key] = counts.get(key, 0) + row["samples"]
    return shares(counts)


def agrees_with_perf_within_3_points():
    """Of the 20 symbols that either has most samples of."""
    (theirs, their_number), (ours, our_number) = perf_samples(), our_samples()
    assert their_number > 200 and our_number > 200, (their_number, our_number)
    most = points(min(their_number, our_number) / 2)
    for one in theirs, ours:
        for key in sorted(one, key=one.get, reverse=True)[:20]:
            assert abs(theirs.get(key, 0) - ours.get(key, 0)) <= most, (
                key, theirs.get(key), ours.get(key))


def a_bundle_gives_the_same_names_on_this_machine():
    ran = subprocess.run([TOOL, "report", "--json", "--samples", "--sort", "task,image,symbol",
                          path("perf.cap")], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran
    here = [row for row in map(json.loads, ran.stdout.splitlines()) if row["kind"] == "symbol"]
    there = [row for row in lines("perf.json") if row["kind"] == "symbol"]
    assert here == there and len(there) > 20, [(h, t) for h, t in zip(here, there) if h != t][:2]
    named = sum(row["samples"] for row in here if row["symbol"] and not row["kernel"])
    assert named > 20, named


def only_the_command_is_sampled():
    allowed = {"truth", "burner-0", "burner-1", "sleeper", "pong", "kbarman"}
    assert {row["task"] for row in rows("command")} <= allowed


def whole_system_has_other_tasks():
    assert {row["task"] for row in rows("all")} - {"truth", "burner-0", "burner-1", "pong"}


def report_for_people_names_the_parts():
    with open(path("all.txt"), encoding="utf-8") as file:
        text = file.read()
    for word in ("truth_sixty", "truth_thirty", "truth_ten", "burner-0"):
        assert word in text, word


def main():
    own = [(n, f) for n, f in globals().items()
           if inspect.isfunction(f) and inspect.getmodule(f) is sys.modules[__name__]]
    tests = [(f"{name}.{n}", f, (name,)) for name in NAMES for n, f in own
             if list(inspect.signature(f).parameters) == ["name"] and
             n not in ("path", "lines", "did", "dump", "records", "rows", "tid",
                       "parse_script", "script", "points", "told")]
    tests += [(n, f, ()) for n, f in own
              if not inspect.signature(f).parameters and
              n not in ("main", "perf_samples", "our_samples", "phases")]
    failed = 0
    for number, (n, test, arguments) in enumerate(tests, 1):
        try:
            test(*arguments)
            print(f"ok {number} - {n}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"# {type(error).__name__}: {str(error)[:500]}")
            print(f"not ok {number} - {n}", flush=True)
    print(f"1..{len(tests)}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
