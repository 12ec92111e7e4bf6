#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that only a living process still has: deleted and replaced ones."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker
from test_report import lines

SOURCE = """
#include <unistd.h>
__attribute__((noinline)) int only_here(int x) { return x * 7; }
int main(int c, char **v) { (void)v; write(1, "x", 1); pause(); return only_here(c); }
"""


class Process:
    """A program of its own, running; its capture has one sample in only_here()."""

    def __init__(self, directory):
        self.directory = directory
        self.program = os.path.join(directory, "program")
        source = self.program + ".c"
        with open(source, "w", encoding="ascii") as file:
            file.write(SOURCE)
        subprocess.run(["gcc", "-O1", "-o", self.program, source], check=True)
        symbols = subprocess.run(["nm", self.program], check=True, capture_output=True,
                                 text=True).stdout
        self.symbol = [int(line.split()[0], 16) for line in symbols.splitlines()
                       if line.endswith(" only_here")][0]

    def __enter__(self):
        self.child = subprocess.Popen([self.program], stdout=subprocess.PIPE)
        assert self.child.stdout.read(1) == b"x"
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def capture(self, unix_base=None):
        """As the module would record it now."""
        pid = self.child.pid
        uname = os.uname()
        maker = Maker(facts={"host": uname.nodename, "release": uname.release},
                      unix_base=unix_base or time.time_ns())
        maker.task(pid, "program")
        bias = None
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            for line in maps:
                fields = line.split(None, 5)
                low, high = (int(part, 16) for part in fields[0].split("-"))
                if self.program not in line:
                    continue
                bias = low if bias is None else bias
                if "x" in fields[1]:
                    maker.map(pid, low, high - low, int(fields[2], 16), fields[5].strip())
        maker.sample(0, 1000, pid, bias + self.symbol)
        maker.save(os.path.join(self.directory, "kbarman.cap"))

    def is_readable(self):
        try:
            files = os.listdir(f"/proc/{self.child.pid}/map_files")
            os.readlink(f"/proc/{self.child.pid}/map_files/{files[0]}")
        except PermissionError as error:
            raise tap.Skip(f"map_files is for root only: {error}") from error


def names(directory):
    rows, errors = lines(directory)
    return [row["symbol"] for row in rows if row["kind"] == "symbol"], errors


def deleted_programs_have_names_while_they_run(tmp):
    with Process(tmp) as process:
        process.is_readable()
        os.remove(process.program)
        process.capture()
        assert names(tmp) == (["only_here"], "")
        assert tap.run("bundle", cwd=tmp).returncode == 0
    assert names(tmp) == (["only_here"], "")


def replaced_programs_are_told_from_their_successors(tmp):
    with Process(tmp) as process:
        process.is_readable()
        process.capture()
        os.remove(process.program)
        shutil.copy("/bin/true", process.program)
        assert names(tmp) == (["only_here"], "")


def dead_programs_are_told_to_be_gone(tmp):
    with Process(tmp) as process:
        os.remove(process.program)
        process.capture()
    found, errors = names(tmp)
    assert found == [None] and "replaced or deleted" in errors, (found, errors)


def processes_of_an_earlier_boot_are_not_asked(tmp):
    with Process(tmp) as process:
        os.remove(process.program)
        process.capture(unix_base=1_500_000_000_000_000_000)
        found, errors = names(tmp)
        assert found == [None] and "replaced or deleted" in errors, (found, errors)


if __name__ == "__main__":
    tap.main(globals())
