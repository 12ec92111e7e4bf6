# SPDX-License-Identifier: MIT
"""What the tests of the viewers' formats share: captures of all kinds, and what they say,
taken from the raw dump alone."""
import collections
import glob
import json
import os
import random
import subprocess

import cross_format
import tap
from capture_writer import BASE, CaptureWriter

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "../fuzz/corpus/barman")
INVALID = 2**64 - 1
RAW_BASE = 5_000_000_000

# what somebody could call a task, an image or a mark to break who reads it
HOSTILE = [b"</script><script>alert(1)</script>", b"\"quoted\" and \\", b"\xff\xfe\xc0\xaf\xed\xa0\x80",
           b"line\nend\ttab\x01\x1b[31m\x7f", b"<!--", b"' onload=x;", "\u2028\u00e9\u5b57".encode(),
           b"]]>", b"a" * 5000, b"%s%n", b"&amp;&#0;"]


def begin(cores=2):
    """Two counters, a series of values and the one of losses, three tasks, two images."""
    c = CaptureWriter(cores=cores, counters=2)
    c.fact("ext", 1)
    c.fact("raw_base", RAW_BASE)
    c.fact("release", "6.1.0-viewers")
    c.fact("machine", "x86_64")
    for core in range(cores):
        c.fact(f"counter.{core}.0", "cycles")
        c.fact(f"counter.{core}.1", "misses")
    for task, name in (0, b"swapper"), (10, b"alpha"), (11, b"beta"):
        c.task(task, name)
    c.fact("tgid.2", 10)
    c.custom(b"temperature", multiplier=0.001, series_class=3)
    c.custom(b"Lost records")
    c.map(10, 0x10000, 0x1000, 0x2000, b"/gone/alpha")
    c.map(11, 0x10000, 0x1000, 0x2000, b"/gone/alpha")
    c.map(11, 0x20000, 0x1000, 0, b"/gone/libbeta.so")
    return c


def small():
    """All kinds of records, a gap, a mark of each kind."""
    c, t = begin(), BASE
    c.switch(0, t, 10)
    c.switch(1, t, 0)
    c.halt(1, t + 100, 1, 2)
    c.sample(0, t + 1000, 10, 0x10234, (50, 5), (0x10234, 0x10678))
    c.switch(0, t + 2000, 11, blocked=1)
    c.annotation(0, t + 2400, 11, b"the channel", kind=2, channel=3)
    c.annotation(0, t + 2500, 11, b"hello", channel=3)
    c.annotation(0, t + 2550, 11, b"a bookmark", kind=1)
    c.value(0, t + 2600, 0, 36500, 11)
    c.sample(0, t + 2700, 11, 0x20010, (70, 7), (0x20010, 0x10678, 0x10234))
    c.annotation(0, t + 2800, 11, b"", channel=3)
    c.halt(1, t + 3000, 0)
    c.switch(1, t + 3000, 10)
    c.switch(0, t + 4000, 10, blocked=0)
    c.value(0, t + 6000, 1, 99)
    c.annotation(0, t + 6000, 0, b"99 records lost", kind=1, colour=0x1bff0000)
    c.switch(0, t + 6000, 11)
    c.sample(1, t + 7000, 10, 0x10234, (60, INVALID))
    c.annotation(1, t + 7500, 10, b"open", channel=0)
    c.switch(0, t + 8000, 0)
    return c


def random_capture(seed=1, records=3000, cores=3):
    rng, c, now = random.Random(seed), begin(cores), BASE
    for task in range(20, 60):
        c.task(task, b"task%d" % task)
        c.map(task, 0x10000, 0x8000, 0, b"/gone/program%d" % (task % 3))
    for _ in range(records):
        now += rng.randrange(1, 5000)
        core, what, task = rng.randrange(cores), rng.random(), rng.randrange(20, 60)
        if what < 0.55:
            c.switch(core, now, rng.choice((0, task)), blocked=rng.randrange(2))
        elif what < 0.75:
            c.halt(core, now, rng.randrange(2), rng.choice((None, 0, 1, 2)))
        elif what < 0.92:
            chain = [0x10000 + rng.randrange(0x9000) for _ in range(rng.randrange(8))]
            c.sample(core, now, task, chain[0] if chain else 0x10010,
                     (rng.randrange(10**6), rng.choice((rng.randrange(100), INVALID))), chain)
        elif what < 0.96:
            c.value(core, now, 0, rng.randrange(50000), task)
        elif what < 0.99:
            c.annotation(core, now, task, b"mark %d" % now, kind=rng.randrange(4),
                         channel=rng.randrange(3))
        else:
            c.value(core, now, 1, rng.randrange(1, 100))
    return c


def hostile():
    """Every name there is, as bad as can be; and times before the base."""
    c, now = begin(), BASE
    for number, name in enumerate(HOSTILE):
        task = 100 + number
        c.task(task, name)
        c.map(task, 0x10000, 0x1000, 0, b"/gone/" + name)
        c.custom(name)
        c.switch(0, now + 10, task)
        c.sample(0, now + 20, task, 0x10010, (1, 1), (0x10010, 0x10020))
        c.annotation(0, now + 30, task, name, kind=number % 3, channel=number)
        c.value(0, now + 40, 2 + number, number, task)
        now += 100
    c.switch(1, BASE - 500, 10)
    c.switch(1, now, 2**32 - 1)
    c.sample(1, now, 2**32 - 1, 2**64 - 1, (2**63, 2**64 - 2))
    return c


WAKING, WAKING_NEW, MIGRATE, IRQ_ENTRY, IRQ_EXIT, IPI_ENTRY, IPI_EXIT, SOFTIRQ_RAISE, SOFTIRQ_ENTRY, \
    SOFTIRQ_EXIT, FREQUENCY, IDLE_MISS = range(1, 13)
LATER_KIND = 99
# CPU, ns, task, what, id, CPU it is about, in what, value
SOURCES = [
    (0, 1000, 10, IRQ_ENTRY, 33, 1, 2, 1), (0, 1100, 10, SOFTIRQ_RAISE, 3, 0, 2, 0),
    (0, 1200, 10, IRQ_EXIT, 33, 0, 2, 0), (0, 1300, 10, IRQ_ENTRY, 33, 0, 2, 1),
    (0, 1400, 10, IRQ_EXIT, 33, 0, 2, 0), (0, 1500, 10, SOFTIRQ_ENTRY, 3, 0, 1, 1),
    (0, 1600, 10, WAKING, 11, 1, 1, 1), (0, 1650, 10, MIGRATE, 11, 0, 1, 1),
    (0, 1700, 10, IPI_ENTRY, 2, 0, 2, 1), (0, 1800, 10, IPI_EXIT, 2, 0, 2, 0),
    (0, 1900, 10, SOFTIRQ_EXIT, 3, 0, 1, 0), (0, 2500, 11, WAKING_NEW, 12, 1, 0, 1),
    (1, 2600, 0, FREQUENCY, 0, 1, 3, 1200000), (1, 2700, 0, IDLE_MISS, 2, 1, 0, 1),
    (1, 2800, 12, LATER_KIND, 7, 0, 0, 5), (0, 2900, 11, IRQ_EXIT, 40, 0, 2, 0),
    (0, 2950, 11, IRQ_ENTRY, 41, 0, 2, 1)]
SERIES_OF = {WAKING: 2, WAKING_NEW: 2, MIGRATE: 3, FREQUENCY: 6, IDLE_MISS: 7, LATER_KIND: 2,
             **{what: 4 for what in (IRQ_ENTRY, IRQ_EXIT, IPI_ENTRY, IPI_EXIT)},
             **{what: 5 for what in (SOFTIRQ_RAISE, SOFTIRQ_ENTRY, SOFTIRQ_EXIT)}}
LIKE_TRACEPOINTS = [source for source in SOURCES if source[3] not in (IDLE_MISS, LATER_KIND)]


def sources():
    """All kinds of values of kbarman's own series: a handler of two interrupts its task and wakes
    another one, which runs 400 ns later; an entry and an exit without their partners; a system call, and
    one of which neither begin nor name are known; two faults, and one that brings no page; and two requests to a
    disk, which are under way at the same time."""
    c = begin()
    c.fact("sources", "wake,migrate,irq,softirq,freq")
    c.fact("irq.33", "virtio0, eth0")
    for name in b"Wakeups", b"Migrations", b"Interrupts", b"Softirqs", b"Frequency", b"Idle misses", b"System calls", b"Page faults", \
            b"Block requests":
        c.custom(name, series_class=3 if name == b"Frequency" else 2)
    c.switch(0, BASE, 10)
    c.switch(1, BASE, 0)
    c.halt(1, BASE + 100, 1, 2)
    done = set()
    for core, ns, task, what, about, cpu, context, value in SOURCES:
        for when, switch in (2000, (0, 11)), (2750, (1, 12)):
            if ns > when and when not in done:
                done.add(when)
                c.switch(switch[0], BASE + when, switch[1], blocked=switch[0] == 0)
        if ns == 2600:
            c.halt(1, BASE + 2550, 0)
        c.about(core, BASE + ns, task, SERIES_OF[what], what, about, cpu, context, value)
    c.syscall(0, BASE + 2960, 11, 8, 0, BASE + 2100, -4, (3, 2**64 - 100, 5))
    c.syscall(0, BASE + 2970, 11, 8, 9999, 0, 7)
    c.fault(0, BASE + 2972, 11, 9, BASE + 2971, 0, 0x7f0000001000, 0x401000)
    c.fault(0, BASE + 2974, 11, 9, BASE + 2972, 1, 0x7f0000002008, 0xffffffff81000010, True)
    c.fault(0, BASE + 2976, 11, 9, BASE + 2975, -14, 3, 0x401004)
    c.block(1, BASE + 2980, 11, 10, BASE + 2100, 0, 2048, 8 << 20 | 16, 4096, 0x101)
    c.block(1, BASE + 2984, 10, 10, BASE + 2200, -5, 4096, 8 << 20 | 16, 8192, 0)
    c.switch(0, BASE + 3000, 0, blocked=1)
    return c


KERNEL = 0xffffffff81000000     # its text is 16 MiB long
START_KERNEL = 0xffffffff8307a540       # behind it, where no row is


def kernel():
    """A program in two tasks, one of which has it elsewhere, code without a file twice; and the
    kernel, whose first sample is where no mapping is."""
    c = CaptureWriter(cores=1, counters=1)
    for task, name in (0, b"swapper"), (10, b"alpha"), (11, b"beta"):
        c.task(task, name)
    c.map(0, KERNEL, 0x1000000, 0, b"[kernel.kallsyms]")
    c.map(0, 0xffffffffc0000000, 0x2000, 0, b"[module]")
    for task, base in (10, 0x10000), (11, 0x50000):
        c.map(task, base, 0x1000, 0x3000, b"/gone/alpha")
        c.map(task, base + 0x8000, 0x2000, 0x9000, b"/gone/alpha")
        c.map(task, 0x700000 + base, 0x1000, 0, b"[anon]")
    pcs = [(10, START_KERNEL), (10, KERNEL + 0x40), (10, 0xffffffffc0000010), (10, 0x10010),
           (11, 0x50010), (11, 0x59ff8), (10, 0x710020), (11, 0x750020), (11, 0x999990)]
    for at, (task, pc) in enumerate(pcs):
        c.sample(0, BASE + at, task, pc, (1,))
    return c


def save_kernel(tmp):
    path = kernel().save(os.path.join(tmp, "kernel.cap"))
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(f"{KERNEL:x} T _stext\n{KERNEL + 0x20:x} t first\n{KERNEL + 0x1000000:x} T _etext\n"
                   f"{START_KERNEL:x} T start_kernel\n"
                   "ffffffffc0000000 t probe\t[module]\n")
    return path


def kinds():
    """Cores of two kinds: the second one has no cycles, and so samples come by another counter there."""
    c = CaptureWriter(cores=3, counters=[[0x11, 0x12], [0x12], []])
    c.fact("ext", 1)
    c.fact("raw_base", RAW_BASE)
    for place, name in (("0.0", "cycles"), ("0.1", "misses"), ("1.0", "misses")):
        c.fact(f"counter.{place}", name)
    for task, name in (0, b"swapper"), (10, b"alpha"), (11, b"beta"):
        c.task(task, name)
    c.custom(b"temperature")
    c.map(10, 0x10000, 0x1000, 0x2000, b"/gone/alpha")
    c.map(11, 0x10000, 0x1000, 0x2000, b"/gone/alpha")
    for core, task in (0, 10), (1, 11), (2, 0):
        c.switch(core, BASE, task)
    for i in range(1, 50):
        c.sample(0, BASE + 1000 * i, 10, 0x10234, (5000 + i, i), (0x10234, 0x10678))
        c.sample(1, BASE + 1000 * i + 500, 11, 0x10234, (INVALID if i == 7 else 3 * i,), (0x10234, 0x10678))
    for core in range(3):
        c.switch(core, BASE + 60000, 0, blocked=1)
    return c


def real_captures():
    """Those in the folder $KBARMAN_CAPTURES. What other commands left in the tree is not looked at."""
    folder = os.path.abspath(os.environ.get("KBARMAN_CAPTURES", "/nowhere"))
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*.cap")))


def all_captures(tmp):
    """Paths of captures of every kind: small ones, hostile ones, all layouts, real ones."""
    made = {"small": small(), "random": random_capture(), "hostile": hostile(), "kinds": kinds(),
            "empty": CaptureWriter(), "only-tables": begin()}
    yield save_kernel(tmp)
    for name, capture in made.items():
        yield capture.save(os.path.join(tmp, name + ".cap"))
    for name in sorted(os.listdir(GOLDEN)):
        yield os.path.join(GOLDEN, name)
    yield from real_captures()


def convert(path, to, out, *options, status=0):
    result = tap.run("convert", path, "--to", to, "-o", out, *options, errors="replace")
    assert result.returncode == status, result
    return result


class Said:
    """What a capture says, record by record. Times are ns since its base."""

    def __init__(self, path):
        self.switches, self.halts, self.marks, self.values = [], [], [], []
        self.details = []                         # values of kbarman's own series: what, value
        self.samples = collections.Counter()      # CPU, task
        self.totals = collections.Counter()       # counter's name: sum
        self.series, self.names, self.header = [], {}, None
        counters = {}
        for line in cross_format.dump(path):
            kind = line["kind"]
            if kind == "header":
                self.header = line
            elif kind == "series":
                self.series.append(line)
            elif kind == "task":
                self.names.setdefault(line["tid"], line["task"])
            elif kind == "pmu":
                counters[line["cpu"]] = line["counter_types"]
            elif kind == "record":
                self.record(line, counters)
        self.truth = cross_format.of_capture(path)
        self.symbols = cross_format.samples_by_symbol(path)

    def record(self, line, counters):
        kind, core, ns = line["type"], line["cpu"], line["at_ns"]
        if kind == "task_switch":
            self.switches.append((ns, core, line["tid"]))
        elif kind == "halt":
            self.halts.append((ns, core, line["entered"], line.get("idle_state")))
        elif kind == "annotation":
            self.marks.append((ns, line["tid"], line["annotation_type"], line["text"]))
        elif kind == "sample_pc":
            self.samples[core, line.get("tid", 0)] += 1
        if kind in ("sample", "sample_pc"):
            for index, value in enumerate(line["counters"]):
                if value != INVALID:
                    self.totals[counters[core][index]] += value
        values = list(line.get("custom", []))
        if kind == "custom_counter":
            values.append((line["counter"], line["value"]))
        for index, value in values:
            value = ns, core, self.series[index]["name"], value
            if "what" in line:
                self.details.append((line["what"], value))
            else:
                self.values.append(value)

    def values_and(self, *whats):
        """The values, and those details that an export shows as values, too."""
        return self.values + [value for what, value in self.details if what in whats]


def counter_sums(said):
    """The sums of all counters without their names, which are not in the dump."""
    return sorted(filter(None, said.totals.values()))


def facts(path):
    """The capture's facts, KEY: VALUE."""
    with open(path, "rb") as file:
        start = file.read(4 << 20)
    found = {}
    for string in start.split(b"\0"):
        if string.startswith(b"kbarman.") and b"=" in string:
            key, value = string[8:].split(b"=", 1)
            found[key.decode()] = value.decode(errors="replace")
    return found


def need(*programs):
    """Skip where a reader that others wrote is not installed."""
    for program in programs:
        try:
            subprocess.run([program, "--version"], capture_output=True, check=False, timeout=300)
        except FileNotFoundError:
            raise tap.Skip(f"no {program} here: scripts/setup installs it") from None


def same(what, want, got):
    assert want == got, (what, [(w, g) for w, g in zip(want, got) if w != g][:3], len(want), len(got))


def load_json(path):
    """Strict: numbers that JSON has not are refused, and so is a key that stands twice."""
    def refuse(constant):
        raise ValueError(constant)

    def pairs(items):
        assert len(dict(items)) == len(items), ("a key twice", items)
        return dict(items)

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse, object_pairs_hook=pairs)


# Two functions of one name in source form: the hashes that end them are left out.
MANGLED = ["_ZN4alfa4next17h0123456789abcdefE", "_ZN4alfa4next17hfedcba9876543210E"]


def save_mangled(tmp):
    """A capture with a sample in each of these functions."""
    library = os.path.join(tmp, "mangled.so")
    source = "".join(f".globl {name}\n.type {name},%function\n{name}:\n.zero 64\n.size {name},64\n"
                     for name in MANGLED)
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "assembler", "-o", library, "-"],
                   input=".text\n" + source + '.section .note.GNU-stack,"",%progbits\n', text=True, check=True)
    found = subprocess.run(["readelf", "-sW", library], capture_output=True, text=True, check=True).stdout
    c = CaptureWriter()
    c.task(5, b"t")
    c.map(5, 0x10000, 2**24, 0, library.encode())
    for i, name in enumerate(MANGLED):
        at, = {int(line.split()[1], 16) for line in found.splitlines() if line.endswith(" " + name)}
        c.sample(0, BASE + 1 + i, 5, 0x10000 + at + 4)
    return c.save(os.path.join(tmp, "mangled.cap"))
