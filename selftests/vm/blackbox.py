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
import os
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
PAGE = 4096
BASE = {"amd64": 0, "arm64": 0x40000000}[ARCH]


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
    unflatten(os.path.join(PLACE, "kdump"))
    return PLACE


def unflatten(path):
    """Of QEMU's compressed form, which is a list of pieces with their places, the file that they make."""
    with open(path, "rb") as pieces, open(path + ".whole", "wb") as file:
        pieces.seek(PAGE)
        while (place := struct.unpack(">qq", pieces.read(16)))[0] >= 0:
            file.seek(place[0])
            file.write(pieces.read(place[1]))
    os.replace(path + ".whole", path)


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
