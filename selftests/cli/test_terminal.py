#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names that others chose never steer the terminal of who reads them, wherever they stand.

KBARMAN_SEED is the chance's seed."""
import os
import random
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap
from make_capture import Maker

SEED = int(os.environ.get("KBARMAN_SEED", "1"))
# What no name may bring to a terminal; line ends are the tool's own.
STEERS = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = ["\x1b[2J", "\x9b2J", "\x9d0;title\x9c", "\x07", "\r", "\n", "\x7f", "\u202e", "\u2066",
        "\u2069", "\u2028", "\u061c", "\udc9b2J", "\udcc2", "\udce2\udc80", "\udcff", "\udcc0\udc9b"]
KERNEL = 0xffffffff81000000


def bad(chance, front):
    """A name with some of EVIL; those of half a character are bytes, as surrogateescape has them."""
    return front + "".join(chance.choice(["x", "é", chance.choice(EVIL), chance.choice(EVIL)])
                           for _ in range(chance.randrange(1, 7)))


def shared_object(tmp, chance):
    """A library whose functions have such names; None: they can't be made here."""
    plain, renamed = os.path.join(tmp, "plain.o"), os.path.join(tmp, "renamed.o")
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        return None
    subprocess.run(["gcc", "-xc", "-", "-c", "-fPIC", "-o", plain], check=True, text=True,
                   input="int callee(int i) { return i * i; }")
    name = os.fsencode(bad(chance, "callee")).replace(b"\0", b"").replace(b"\n", b"\x9b")
    subprocess.run([b"objcopy", b"--redefine-sym", b"callee=" + name, plain, renamed], check=True)
    library = os.path.join(os.fsencode(tmp), os.fsencode(bad(chance, "lib").replace("/", "")))
    subprocess.run([b"gcc", b"-shared", b"-o", library, renamed], check=True)
    return os.fsdecode(library)


def make(tmp, chance):
    """A capture in which each text is bad; its file's own name, too."""
    facts = {key: bad(chance, key) for key in
             ["host", "release", "command", "filter", "fallback", "counter.0.0"]}
    facts.update({f"lost.0.{bad(chance, 'why').replace('=', '')}": "3",
                  f"missed.{bad(chance, 'row').replace('=', '')}": "4", "tgid.1": "7"})
    capture = Maker(counters=[17], series=[bad(chance, "series")], facts=facts)
    capture.task(0, "swapper")
    capture.task(8, bad(chance, "task"))
    capture.map(0, KERNEL, 0x2000, 0, "[kernel.kallsyms]")
    library = shared_object(tmp, chance)
    capture.map(8, 0x400000, 0x2000, 0, library or bad(chance, "/image"))
    capture.map(8, 0x600000, 0x2000, 0, bad(chance, "/gone"))
    capture.switch(0, 1000, 8)
    for when, place in enumerate([KERNEL + 16, 0x401100, 0x600010, 0x1234]):
        capture.sample(0, 2000 + when, 8, place, [100 + when], [place, 0x401104], 1)
    text = os.fsencode(bad(chance, "mark"))
    capture.record(5, 0, 3000, struct.pack("<IQIIIB", 8, len(text) + 1, 1, 2, 3, 1) + text + b"\0")
    capture.custom(0, 3500, 8, 0, 42)
    capture.switch(0, 4000, 0, blocked=True, state=1)
    capture.halt(0, 5000, True, 3)
    path = os.path.join(os.fsencode(tmp), os.fsencode(bad(chance, "kbarman").replace("/", "")))
    capture.save(path)
    names = [bad(chance, name).replace("\n", "") for name in ("callee", "caller")]
    with open(path + b".kallsyms", "wb") as file:
        for at, name in enumerate(names):
            file.write(b"%x T " % (KERNEL + 0x800 * at) + os.fsencode(name) + b"\n")
    return path


READERS = [["report"], ["report", "--call-graph"], ["report", "--sort", "task,image,symbol"],
           ["report", "-j"], ["query", "SELECT * FROM records"], ["query", "--json", "SELECT * FROM hot"],
           ["query", "--format", "box", "SELECT * FROM marks JOIN facts"], ["query", ".schema"], ["script"], ["info"], ["info", "-j"], ["dump"], ["dump", "-j"],
           ["check"], *(["convert", "-o", "-", "--to", *to] for to in (
               ["folded"], ["flamegraph"], ["speedscope"], ["chrome"], ["html"],
               ["tptp", "--format=xml"]))]


def said(done):
    """What reached the terminal, which has to be text."""
    return done.stdout.decode("utf-8") + done.stderr.decode("utf-8")


def no_name_steers_the_terminal(tmp):
    print(f"# KBARMAN_SEED={SEED}")
    chance = random.Random(SEED)
    shown = dict.fromkeys(["task", "mark", "callee", "host", "fallback", "lost", "why", "row"], 0)
    for _ in range(12):
        folder = os.path.join(tmp, "x")
        os.mkdir(folder)
        path = make(folder, chance)
        for reader in READERS:
            # a question is the last word
            words = [*reader[:-1], path, reader[-1]] if reader[0] == "query" else [*reader, path]
            done = subprocess.run([tap.KBARMAN, *words], capture_output=True, check=False,
                                  timeout=300, stdin=subprocess.DEVNULL)
            assert done.returncode in (0, 1), (reader, done)
            text = said(done)
            steered = STEERS.search(text.replace("\t", " ") if reader[0] == "script" else text)
            assert not steered or reader[-1] in ("html", "flamegraph") and steered[0] == "\t", (
                reader, steered, text[max(0, steered.start() - 40):steered.end() + 40])
            for name in shown:
                shown[name] += name in text
        shutil.rmtree(folder)
    # the names were there to be seen
    assert all(shown.values()), shown


def no_complaint_steers_the_terminal(tmp):
    for args in (["check", "no\x9b2J\u202esuch"], ["report", "no\x1b[2J"], ["convert", "--to", "\x9b2J"],
                 ["\u202etxet"], ["report", "--\x9b2J"], ["stat", "no\x9b2J\u202esuch"],
                 ["check", "\udc9b2J"]):
        done = subprocess.run([tap.KBARMAN, *args], cwd=tmp, capture_output=True, check=False,
                              timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode and not STEERS.search(said(done)), (args, done)


def what_is_harmless_stays_as_it_is(tmp):
    capture = Maker(facts={"host": "rechner-für-größe"})
    capture.task(8, "日本 😀")
    capture.switch(0, 1000, 8)
    capture.switch(0, 3000, 0)
    path = capture.save(os.path.join(tmp, "größe.cap"))
    assert "日本 😀" in tap.run("report", path).stdout
    assert "日本 😀" in tap.run("script", path).stdout and "日本 😀" in tap.run("dump", path).stdout
    assert "rechner-für-größe" in tap.run("info", path).stdout
    assert "größe.cap: a valid" in tap.run("check", path).stdout


if __name__ == "__main__":
    tap.main(globals())
