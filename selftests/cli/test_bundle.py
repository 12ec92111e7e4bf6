#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A capture and its bundle give the names without the machine it was recorded on."""
import gzip
import os
import random
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import preload
import tap
from make_capture import Maker
from test_report import build, lines, make, only

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "man",
                      "kbarman-bundle.1")


def bundle(directory):
    program = make(directory, os.path.join(directory, "kbarman.cap"))
    result = tap.run("bundle", cwd=directory)
    assert result.returncode == 0 and not result.stdout, result
    size = os.path.getsize(os.path.join(directory, "kbarman.cap.symbols"))
    assert result.stderr == f"kbarman bundle: wrote kbarman.cap.symbols: {size} bytes\n", result
    return program, os.path.join(directory, "kbarman.cap.symbols")


def names_are_the_same_without_the_images(tmp):
    program, _ = bundle(tmp)
    before = lines(tmp)
    os.remove(program)
    assert lines(tmp) == before
    assert only(before[0], kind="symbol", symbol="burn_sixty")["samples"] == 60


def programs_that_only_waited_are_in_it(tmp):
    program, symbols, offset, vaddr, size = build(tmp, "-pie", "-fPIE")
    capture = Maker()
    capture.task(7, "truth")
    capture.map(7, 0x1000, size, offset, program)
    capture.switch(0, 1000, 7)
    place = 0x1000 + symbols["burn_sixty"] - vaddr + 1
    capture.switch(0, 2000, 0, blocked=True, chain=[place])
    capture.switch(0, 3000, 7)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    assert tap.run("bundle", cwd=tmp).returncode == 0
    os.remove(program)
    assert "burn_sixty" in tap.run("script", cwd=tmp).stdout


def an_address_that_has_another_file_later_has_both(tmp):
    program, symbols, offset, vaddr, size = build(tmp, "-pie", "-fPIE")
    second = shutil.copy(program, os.path.join(tmp, "second"))
    capture = Maker()
    capture.task(7, "truth")
    place = 0x1000 + symbols["burn_sixty"] - vaddr + 1
    for at, mapped in (1000, program), (5000, second), (9000, program):
        capture.map(7, 0x1000, size, offset, mapped, at)
        for i in range(3):
            capture.switch(0, at + 10 * i + 1, 7)
            capture.switch(0, at + 10 * i + 2, 0, blocked=True, chain=[place])
    capture.save(os.path.join(tmp, "kbarman.cap"))
    assert tap.run("bundle", cwd=tmp).returncode == 0
    with gzip.open(os.path.join(tmp, "kbarman.cap.symbols"), "rt") as file:
        images = [line for line in file if line.startswith("image ")]
    assert [sum(line.endswith(f" {name}\n") for line in images) for name in (program, second)] == [1, 1], images


def another_machine_does_not_overwrite_it(tmp):
    _, path = bundle(tmp)
    with open(path, "rb") as file:
        saved = file.read()
    name = os.path.join(tmp, "kbarman.cap")
    with open(name, "rb") as file:
        capture = file.read()
    host = os.uname().nodename.encode()
    assert b"host=" + host in capture
    with open(name, "wb") as file:
        file.write(capture.replace(b"host=" + host, b"host=" + host[:-1] + b"~"))
    result = tap.run("bundle", cwd=tmp)
    assert result.returncode == 2 and "nothing was saved" in result.stderr, result
    with open(path, "rb") as file:
        assert file.read() == saved
    # unless it is told to have that machine's files
    assert tap.run("bundle", "--symfs", "/", cwd=tmp).returncode == 0


def moved(tmp, *suffixes, host="elsewhere"):
    """A capture of another machine, renamed; these of its side files came along."""
    name = os.path.join(tmp, "kbarman.cap")
    program = make(tmp, name, name="kbarman.cap", host=os.uname().nodename)
    assert tap.run("bundle", cwd=tmp).returncode == 0
    make(tmp, name, name="kbarman.cap", host=host)
    os.remove(program)
    os.mkdir(os.path.join(tmp, "far"))
    for suffix in suffixes:
        os.rename(name + suffix, os.path.join(tmp, "far", "kbarman.cap" + suffix))
    os.rename(name, os.path.join(tmp, "far", "renamed.cap"))
    return os.path.join(tmp, "far", "renamed.cap")


def a_renamed_capture_finds_what_was_beside_it(tmp):
    path = moved(tmp, ".kallsyms", ".symbols")
    rows, errors = lines(tmp, path)
    found = {row["symbol"] for row in rows if row["kind"] == "symbol"}
    assert {"burn_sixty", "schedule", "mod_work"} <= found and not errors, (found, errors)
    info = tap.run("info", path).stdout
    assert "kbarman.cap.symbols" in info and "taken from" not in info, info


def what_another_capture_of_that_name_has_is_not_taken(tmp):
    path = moved(tmp, ".kallsyms", ".symbols")
    shutil.copy(path, os.path.join(tmp, "far", "kbarman.cap"))
    rows, _ = lines(tmp, path)
    assert not {row["symbol"] for row in rows if row["kind"] == "symbol"} - {None}, rows


def a_side_file_that_is_missing_is_named(tmp):
    path = moved(tmp)
    _, errors = lines(tmp, path)
    assert "bring kbarman.cap.symbols along" in errors, errors
    assert "no kbarman.cap.kallsyms beside the capture" in errors, errors
    info = tap.run("info", path).stdout
    assert "made on elsewhere; copy kbarman.cap.symbols from there" in info, info
    assert "taken from" not in info, info


def a_replaced_program_does_not_change_names(tmp):
    program, _ = bundle(tmp)
    before = lines(tmp)
    os.remove(program)
    os.symlink("/bin/sh", program)
    assert lines(tmp) == before


def format_is_the_documented_one(tmp):
    program, path = bundle(tmp)
    with gzip.open(path, "rt", encoding="ascii") as file:
        text = file.read().splitlines()
    assert text[0] == "kbarman-symbols 1", text[0]
    images = [line.split(" ", 2) for line in text if line.startswith("image ")]
    assert len(images) == 1 and images[0][2] == program and len(images[0][1]) == 40, images
    symbols = {line.split(" ", 3)[3] for line in text if line.startswith("symbol ")}
    assert {"main", "burn_ten", "burn_thirty", "burn_sixty"} <= symbols, symbols
    assert [line for line in text if line.startswith("segment ") and line.endswith(" x")], text


def a_link_at_its_temporary_name_is_not_followed(tmp):
    victim = os.path.join(tmp, "victim")
    with open(victim, "w", encoding="ascii") as file:
        file.write("mine")
    os.symlink(victim, os.path.join(tmp, "kbarman.cap.symbols.tmp"))
    _, path = bundle(tmp)
    with open(victim, encoding="ascii") as file:
        assert file.read() == "mine"
    assert not os.path.islink(path) and os.stat(path).st_mode & 0o007 == 0


# A signal comes when the file is written, and has no name yet.
SIGNAL = """
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int rename(const char *from, const char *to)
{
	size_t length = strlen(from);
	if (length > 12 && !strcmp(from + length - 12, ".symbols.tmp"))
		raise(atoi(getenv("SIGNAL")));
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}
"""


def nothing_is_left_when_a_signal_ends_it(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    library = preload.build(tmp, "signal", SIGNAL)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        result = tap.run("bundle", cwd=tmp, env=os.environ | {"LD_PRELOAD": library, "SIGNAL": str(int(number))})
        assert result.returncode == -number, result
        assert not [name for name in os.listdir(tmp) if "symbols" in name], os.listdir(tmp)


def nothing_is_left_of_a_failure(tmp):
    make(tmp, os.path.join(tmp, "kbarman.cap"))
    os.mkdir(os.path.join(tmp, "kbarman.cap.symbols"))
    result = tap.run("bundle", cwd=tmp)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result
    assert not [name for name in os.listdir(tmp) if "tmp" in name], os.listdir(tmp)
    assert tap.run("bundle", "-", cwd=tmp).returncode == 2
    assert tap.run("bundle", "none.cap", cwd=tmp).returncode == 2


def missing_images_are_told(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    os.remove(program)
    result = tap.run("bundle", cwd=tmp)
    assert result.returncode == 0 and program in result.stderr, result


def damaged_bundles_are_survived(tmp):
    _, path = bundle(tmp)
    with gzip.open(path, "rb") as file:
        good = file.read()
    random.seed(int(os.environ.get("KB_SEED", "8")))
    for number in range(60):
        data = bytearray(good)
        if number % 3 == 0:
            data = data[:random.randrange(len(data))]
        else:
            for _ in range(random.randrange(1, 20)):
                data[random.randrange(len(data))] = random.choice(b"\n 0x\\-\0zsi")
        with open(path, "wb") as file:
            file.write(data if number % 2 else gzip.compress(data))
        result = tap.run("report", cwd=tmp)
        assert result.returncode == 0 and "burn" in result.stdout + result.stderr or \
            result.returncode == 0, result
    with open(path, "wb") as file:
        file.write(gzip.compress(good)[:-20])
    result = tap.run("report", cwd=tmp)
    assert result.returncode == 0 and "kbarman.cap.symbols" in result.stderr, result
    with open(path, "wb") as file:
        file.write(b"something else\n")
    assert "not a bundle" in tap.run("report", cwd=tmp).stderr


def long_bundle(tmp, filler):
    """A report on a capture whose bundle has, in front of its last name, 540 MiB of lines that nobody needs."""
    capture = Maker(facts={"host": "elsewhere"})
    capture.task(7, "x")
    capture.map(7, 0x1000, 0x1000, 0, "/opt/last")
    capture.sample(0, 1, 7, 0x1010)
    path = capture.save(os.path.join(tmp, "kbarman.cap"))
    lines_of_it = "".join(f"symbol 0 1 {filler(60000)}\n" for _ in range(3))
    with open(path + ".symbols", "wb") as file:
        file.write(gzip.compress(b"kbarman-symbols 1\nimage 1234 /opt/first\nsymbol 0 1 one\n"
                                 b"image 1234 /opt/first\n"))
        file.write(gzip.compress(lines_of_it.encode()) * (540 * 1024 * 1024 // len(lines_of_it)))
        file.write(gzip.compress(b"image 5678 /opt/last\nsegment 0 0 1000 x\nsymbol 0 1000 last_one\n"))
    return lines(tmp, path)


def no_bundle_of_real_names_is_too_long(tmp):
    rows, errors = long_bundle(tmp, lambda size: random.randbytes(size // 60).hex().ljust(size, "x"))
    assert only(rows, kind="symbol")["symbol"] == "last_one" and not errors, (rows, errors)


def names_behind_too_much_are_told(tmp):
    rows, errors = long_bundle(tmp, "x".__mul__)
    assert only(rows, kind="symbol")["symbol"] is None, rows
    assert "kbarman.cap.symbols has too much: what stands there from line" in errors, errors
    assert "--symfs DIR" in errors, errors


def many_missing_images_are_told_in_few_lines(tmp):
    capture = Maker(facts={"host": os.uname().nodename})
    capture.task(7, "x")
    for number in range(40):
        place = 0x10000 * (number + 1)
        capture.map(7, place, 0x10000, 0, f"/nowhere/{number}")
        for sample in range(1, 9 if number == 33 else 2):
            capture.sample(0, 1000 + number, 7, place + sample)
            capture.sample(0, 1000 + number, 7, 0x1)
    path = capture.save(os.path.join(tmp, "kbarman.cap"))
    few = tap.run("report", path).stderr.splitlines()
    told = [line for line in few if "/nowhere/" in line]
    assert len(told) == 10 and "/nowhere/33 " in told[0], few
    assert sum("and 30 more files" in line and "-v" in line for line in few) == 1, few
    every = tap.run("report", "-v", path).stderr
    assert all(f"/nowhere/{number} " in every for number in range(40)), every
    assert "more files" not in every, every
    bundled = tap.run("bundle", path).stderr
    assert bundled.count("/nowhere/") == 10, bundled


def strange_names_come_back(tmp):
    program = make(tmp, os.path.join(tmp, "kbarman.cap"))
    strange = os.path.join(tmp, "a b\\c\nd\u00e9")
    os.rename(program, strange)
    capture = Maker()
    capture.task(7, "x")
    capture.map(7, 0x1000, 0x10000, 0, strange)
    capture.sample(0, 1, 7, 0x2000)
    path = capture.save(os.path.join(tmp, "strange.cap"))
    assert tap.run("bundle", path).returncode == 0
    os.remove(strange)
    rows, errors = lines(tmp, path)
    assert only(rows, kind="symbol")["image"] == strange and not errors, (rows, errors)


def manual_has_every_option(tmp):
    text = tap.run("bundle", "--help", cwd=tmp).stdout
    with open(MANUAL, encoding="utf-8") as manual:
        described = manual.read().replace("\\-", "-")
    assert "--symfs" in text and "--symfs" in described


if __name__ == "__main__":
    tap.main({name: test for name, test in globals().items()
              if getattr(test, "__module__", None) == "__main__"})
