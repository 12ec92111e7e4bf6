#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What all viewers' formats have in common: pipes, full disks, damage, any word size and
byte order, memory."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402

FORMATS = {"perfetto": ".perfetto", "html": ".html", "chrome": ".trace.json", "pprof": ".pb.gz",
           "speedscope": ".speedscope.json", "firefox": ".firefox.json"}
KEEP_SAMPLES = "speedscope", "firefox"     # which the manual says


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def output_has_the_name_of_the_capture(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.b.cap"))
    for name, extension in FORMATS.items():
        assert tap.run("convert", path, "--to", name).returncode == 0
        assert os.path.getsize(os.path.join(tmp, "a.b" + extension)) > 100


def help_and_manual_list_them(tmp):
    del tmp
    text = tap.run("convert", "--help").stdout
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../user/man/kbarman-convert.1")
    sections = bytes_of(manual).decode()
    for name in (*FORMATS, "ctf"):
        assert f"\n  {name} " in text, text
        assert name.upper() in sections, name


def standard_output_gets_the_same(tmp):
    path = viewers.random_capture().save(os.path.join(tmp, "a.cap"))
    for name in FORMATS:
        viewers.convert(path, name, os.path.join(tmp, "out"))
        result = tap.run("convert", path, "--to", name, "-o", "-", text=False)
        assert result.returncode == 0 and result.stdout == bytes_of(os.path.join(tmp, "out")), name
        with open(path, "rb") as file:
            piped = tap.run("convert", "-", "--to", name, stdin=file, text=False)
        assert piped.returncode == 0 and piped.stdout == result.stdout, (name, piped.stderr)


def a_full_disk_is_told_and_leaves_nothing(tmp):
    path = viewers.random_capture().save(os.path.join(tmp, "a.cap"))
    for name in FORMATS:
        result = tap.run("convert", path, "--to", name, "-o", "/dev/full")
        assert result.returncode == 2 and "No space left" in result.stderr, (name, result)

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        out = os.path.join(tmp, "limited")
        result = subprocess.run([tap.KBARMAN, "convert", path, "--to", name, "-o", out],
                                capture_output=True, check=False, preexec_fn=limit)
        assert result.returncode != 0 and sorted(os.listdir(tmp)) == ["a.cap"], (name, result, os.listdir(tmp))


def what_is_before_the_damage_is_written(tmp):
    whole = viewers.random_capture().bytes()
    path, out = os.path.join(tmp, "a.cap"), os.path.join(tmp, "out")
    with open(path, "wb") as file:
        file.write(whole[:-len(whole) // 3])
    for name in FORMATS:
        result = tap.run("convert", path, "--to", name, "-o", out)
        assert result.returncode == 1 and result.stderr, (name, result)
        assert os.path.getsize(out) > 5000, name


def captures_cut_or_flipped_anywhere_end(tmp):
    whole = viewers.small().bytes()
    path, out = os.path.join(tmp, "a.cap"), os.path.join(tmp, "out")
    for at in range(0, len(whole), 23):
        data = bytearray(whole)
        data[at] ^= 0xff
        for name, content in ((n, c) for n in FORMATS for c in (whole[:at], data)):
            with open(path, "wb") as file:
                file.write(content)
            result = tap.run("convert", path, "--to", name, "-o", out, timeout=tap.HANG, errors="replace")
            assert result.returncode in (0, 1, 2), (at, name, result)


def memory_does_not_grow_with_the_capture(tmp):
    c = viewers.begin()
    for at in range(0, 4000, 8):
        c.switch(0, BASE + at, 10 + at // 8 % 2)
        c.sample(1, BASE + at, 10, 0x10010, (1, 1), (0x10010, 0x10020))
    peaks = {}
    for name in FORMATS:
        for repeat in 1, 400:
            path = c.save(os.path.join(tmp, "a.cap"), repeat)
            peaks[name, repeat] = tap.peak_kib("convert", path, "--to", name, "-o", os.devnull)
        samples = 400 * 500 if name in KEEP_SAMPLES else 0
        assert peaks[name, 400] < peaks[name, 1] + 12000 + samples * 200 / 1024, (name, peaks)


def nothing_becomes_something_that_can_be_opened(tmp):
    for capture in CaptureWriter(), viewers.begin():
        path = capture.save(os.path.join(tmp, "a.cap"))
        for name in FORMATS:
            viewers.convert(path, name, os.path.join(tmp, "out"))
            assert os.path.getsize(os.path.join(tmp, "out")) > 60, name


if __name__ == "__main__":
    tap.main(globals())
