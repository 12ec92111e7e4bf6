#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What takes longer than a second says how far it is: on a terminal, and nowhere else."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker


def capture(directory):
    maker = Maker()
    maker.task(7, "worker")
    for i in range(100):
        maker.switch(0, 1000 + i, 7)
    with open(maker.save(os.path.join(directory, "a.cap")), "rb") as file:
        return file.read()


def waiting(pipe):
    """Bytes that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def slow(tmp, *args, terminal=True):
    """The verb reads a capture that takes more than a second to come; its exit status, and stderr."""
    data = capture(tmp)
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with subprocess.Popen([tap.KBARMAN, *args], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=theirs, cwd=tmp) as child:
        os.close(theirs)
        child.stdin.write(data[:8])
        child.stdin.flush()
        tap.until(lambda: not waiting(child.stdin), "a reader")     # it may begin late
        time.sleep(1.2)
        child.stdin.write(data[8:])
        child.stdin.close()
        said = tap.read_all(ours)
    return child.returncode, said.decode()


READERS = [("convert", "--to", "heph", "-o", "out", "-"), ("report", "-"), ("script", "-"),
           ("info", "-"), ("recover", "-o", "out.cap", "-"), ("check", "-"), ("dump", "-"),
           ("merge", "-o", "out.cap", "-")]


def what_takes_long_says_how_far_it_is(tmp):
    for args in READERS:
        status, said = slow(tmp, *args)
        assert status == 0, (args, said)
        assert f"kbarman {args[0]}: " in said and "%" in said, (args, said)
        # one line, that goes away
        line = said[said.index(f"kbarman {args[0]}: "):]
        assert "\r\033[K" in line, (args, said)


def nothing_is_said_where_nobody_looks(tmp):
    for args in READERS:
        for how in {"terminal": False}, {"terminal": True, "quiet": True}:
            quiet = ["--quiet"] if how.get("quiet") else []
            status, said = slow(tmp, args[0], *quiet, *args[1:], terminal=how["terminal"])
            assert status == 0 and "%" not in said and "\033" not in said, (args, how, said)


if __name__ == "__main__":
    tap.main(globals())
