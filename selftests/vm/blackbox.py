#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is recovered of the memory of a virtual machine that is stopped while blackbox.c records in it.

    selftests/vm/blackbox.py ARCH GUEST-DIRECTORY TOOL

GUEST-DIRECTORY is what `make guest` made.
"""
# pylint: disable=unused-argument
import filecmp
import functools
import glob
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import qmp  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ARCH, GUEST = sys.argv[1:3]
tap.KBARMAN = os.path.abspath(sys.argv[3])
PLACE = os.path.abspath(os.path.join(GUEST, "blackbox"))
MIB = 256
MACHINE, ELF, BASE = {"amd64": ("x86_64", 62, 0), "arm64": ("aarch64", 183, 0x40000000)}[ARCH]


@functools.cache
def stopped():
    """The machine has been stopped: its memory is in files of PLACE."""
    shutil.rmtree(PLACE, ignore_errors=True)
    os.mkdir(PLACE)
    path = os.path.join(PLACE, "monitor")
    with subprocess.Popen([os.path.join(TOP, "scripts", "vm"), "--arch", ARCH, "--share", GUEST, "--mem", str(MIB),
                           "--timeout", "600", "--qemu-arg", "-qmp", "--qemu-arg", f"unix:{path},server=on,wait=off",
                           "--", "sh", "-c", "export KBARMAN_TEST_VM=1 BLACKBOX=/host/blackbox;"
                           " cd kselftest/kbarman && ./blackbox"], stdin=subprocess.DEVNULL) as vm:
        tap.ENDINGS.append(vm.terminate)
        tap.until(lambda: os.path.exists(os.path.join(PLACE, "ready")) or vm.poll() is not None, "the recording")
        assert vm.poll() is None, vm.returncode
        monitor = qmp.Monitor(path)
        monitor.ask("stop")
        monitor.ask("dump-guest-memory", paging=False, protocol="file:" + os.path.join(PLACE, "elf"))
        monitor.ask("dump-guest-memory", paging=False, protocol="file:" + os.path.join(PLACE, "kdump"),
                    format="kdump-zlib")
        monitor.ask("pmemsave", val=BASE, size=MIB << 20, filename=os.path.join(PLACE, "raw"))
        vm.terminate()
    return PLACE


@functools.cache
def vmcore():
    """The memory as a crash kernel shows it. QEMU's ELF file has no note of Linux, and its headers are where makedumpfile
    does not look."""
    place = os.path.join(PLACE, "vmcore")
    with open(os.path.join(stopped(), "raw"), "rb") as raw, open(place, "wb") as file:
        with mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            note, = re.finditer(rb"\x0b\0\0\0(....)\0\0\0\0VMCOREINFO\0\0(?=OSRELEASE=)", memory, re.S)
            note = memory[note.start():note.end() + int.from_bytes(note[1], "little")]
        file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, ELF, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 4, 0, 176, 0, 0, len(note), len(note), 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 7, 2 * 4096, 0, BASE, MIB << 20, MIB << 20, 0))
        file.write(note.ljust(2 * 4096 - 176, b"\0"))
        shutil.copyfileobj(raw, file)
    return place


def makedumpfile(name, *options):
    """The dump as makedumpfile writes it into a pipe."""
    if not shutil.which("makedumpfile"):
        raise tap.Skip("makedumpfile is not installed (scripts/setup)")
    if os.uname().machine != MACHINE:
        raise tap.Skip("makedumpfile only knows the architecture that it was built for")
    with open(os.path.join(stopped(), name), "wb") as file:
        done = subprocess.run(["makedumpfile", *options, "-F", vmcore()], stdout=file, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, (options, done)


def recovered(tmp, form, *options):
    """The captures of both sessions, in their order."""
    memory = os.path.join(tmp, form)
    os.symlink(os.path.join(stopped(), form), memory)
    done = tap.run("recover", *options, memory)
    assert done.returncode == 0, done
    one, other = sorted(glob.glob(memory + ".*.cap"))
    return one, other, done.stderr


def a_stopped_session_is_recovered_byte_by_byte(tmp):
    done = tap.run("merge", "-o", os.path.join(tmp, "merged"), *sorted(glob.glob(os.path.join(stopped(), "map.*"))))
    assert done.returncode == 0, done
    one, _, _ = recovered(tmp, "elf")
    assert filecmp.cmp(one, os.path.join(tmp, "merged"), shallow=False)


def a_session_that_ran_is_recovered_with_its_names(tmp):
    _, other, said = recovered(tmp, "elf")
    assert "was recording when the machine stopped" in said, said
    done = tap.run("report", "--waits", other)
    assert done.returncode == 0 and "last_work" in done.stdout, done


def makedumpfile_drops_nothing_of_a_session(tmp):
    elf = recovered(tmp, "elf")[:2]
    for form, level in ("-c", "0"), ("-c", "31"), ("-E", "31"):
        makedumpfile("level" + form + level, form, "-d", level)
        for one, other in zip(elf, recovered(tmp, "level" + form + level)):
            assert filecmp.cmp(one, other, shallow=False), (form, level, one)


def every_form_gives_the_same_captures(tmp):
    elf = recovered(tmp, "elf")[:2]
    for form, *options in ("raw", "--base", hex(BASE)), ("kdump",):
        for one, other in zip(elf, recovered(tmp, form, *options)):
            assert filecmp.cmp(one, other, shallow=False), (form, one)


if __name__ == "__main__":
    try:
        tap.main(globals())
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
