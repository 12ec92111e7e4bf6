#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that only a living process still has: deleted, replaced, a container's."""
import gzip
import json
import os
import re
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


class Container(Process):
    """Another program of the same path, in a mount namespace of its own."""

    def __init__(self, process):
        self.directory = os.path.join(process.directory, "image")
        os.mkdir(self.directory)
        super().__init__(self.directory)
        self.place = process.program

    def __enter__(self):
        self.child = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && exec "$1"',
             self.program, self.place], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.child.stdout.read(1) != b"x":
            self.__exit__()
            raise tap.Skip("no mount namespace may be made here")
        return self


def facts():
    """A capture of this machine, made now."""
    uname = os.uname()
    return Maker(facts={"host": uname.nodename, "release": uname.release},
                 unix_base=time.time_ns())


def fill(maker, process, path, timestamp, shift=0, inode=None):
    """What the module would record of a process that runs @path, and a sample in it.

    @inode: as if the file had had that one.
    """
    pid, bias = process.child.pid, None
    maker.task(pid, "program")
    found = os.stat(f"/proc/{pid}/root{path}")
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        for line in maps:
            place, flags, offset, device, number, *name = line.split(None, 5)
            if not name or name[0].strip() != path:
                continue
            low, high = (int(part, 16) for part in place.split("-"))
            major, minor = (int(part, 16) for part in device.split(":"))
            bias = low + shift if bias is None else bias
            if "x" in flags:
                file = f"{major}:{minor}:{inode or number}:{found.st_size}:{found.st_mtime_ns}"
                maker.map(pid, low + shift, high - low, int(offset, 16), path, timestamp, file)
    maker.sample(0, timestamp, pid, bias + process.symbol)


def both(tmp, process, container):
    maker = facts()
    fill(maker, process, process.program, 1000)
    fill(maker, container, process.program, 2000)
    maker.save(os.path.join(tmp, "kbarman.cap"))


def with_container(directory):
    """The host's program has only_here(), the container's its_own() in that place."""
    process = Process(directory)
    container = Container(process)
    with open(container.program + ".c", "w", encoding="ascii") as file:
        file.write(SOURCE.replace("only_here", "its_own"))
    subprocess.run(["gcc", "-O1", "-o", container.program, container.program + ".c"], check=True)
    return process, container


def two_files_of_one_path_are_two_images(tmp):
    process, container = with_container(tmp)
    with process, container:
        process.is_readable()
        both(tmp, process, container)
        found, errors = names(tmp)
        assert (sorted(found), errors) == (["its_own", "only_here"], "")
        assert tap.run("bundle", cwd=tmp).returncode == 0
    found, errors = names(tmp)
    assert (sorted(found), errors) == (["its_own", "only_here"], "")


def on_another_machine(directory):
    """The capture there: what it says of its host is not of this one."""
    name = os.path.join(directory, "kbarman.cap")
    with open(name, "rb") as file:
        capture = file.read()
    host = b"host=" + os.uname().nodename.encode()
    assert host in capture
    with open(name, "wb") as file:
        file.write(capture.replace(host, host[:-1] + b"~"))


def two_files_of_one_path_are_two_images_on_another_machine(tmp):
    process, container = with_container(tmp)
    with process, container:
        process.is_readable()
        both(tmp, process, container)
        assert tap.run("bundle", cwd=tmp).returncode == 0
    os.remove(process.program)
    on_another_machine(tmp)
    found, errors = names(tmp)
    assert (sorted(found), errors) == (["its_own", "only_here"], "")
    with gzip.open(os.path.join(tmp, "kbarman.cap.symbols"), "rt") as file:
        images = [line.split() for line in file if line.startswith("image ")]
    assert [image[2] for image in images] == [process.program] * 2, images
    assert all(re.search(r"@\d+:\d+:\d+:\d+:\d+$", image[1]) for image in images), images


def before_and_after_an_update_each_has_its_names(tmp):
    old = Process(tmp)
    with old:
        old.is_readable()
        with open(old.program + ".c", "w", encoding="ascii") as file:
            file.write(SOURCE.replace("only_here", "its_own"))
        new = Process.__new__(Process)
        new.directory, new.program, new.symbol = old.directory, old.program, old.symbol
        maker = facts()
        fill(maker, old, old.program, 1000)
        os.rename(old.program, old.program + ".old")
        subprocess.run(["gcc", "-O1", "-o", new.program, old.program + ".c"], check=True)
        os.remove(old.program + ".old")
        with new:
            fill(maker, new, new.program, 2000)
            maker.save(os.path.join(tmp, "kbarman.cap"))
            found, errors = names(tmp)
        assert (sorted(found), errors) == (["its_own", "only_here"], "")
    # the old one is nowhere now
    found, errors = names(tmp)
    assert sorted(found, key=str) == [None, "its_own"], found
    assert "one of 2 of that name" in errors and len(errors.splitlines()) == 1, errors


def samples_from_before_and_after_a_copy_up_are_of_one_image(tmp):
    """Such as a hard link to it makes where / is an overlay: only the inode is another."""
    with Process(tmp) as process:
        process.is_readable()
        maker = facts()
        fill(maker, process, process.program, 1000, inode=1)
        fill(maker, process, process.program, 2000)
        maker.save(os.path.join(tmp, "kbarman.cap"))
    assert names(tmp) == (["only_here"], "")
    assert tap.run("bundle", cwd=tmp).returncode == 0
    os.remove(process.program)
    on_another_machine(tmp)
    assert names(tmp) == (["only_here"], "")


def a_container_that_is_gone_has_no_names_of_the_host(tmp):
    process, container = with_container(tmp)
    with process:
        process.is_readable()
        with container:
            both(tmp, process, container)
        found, errors = names(tmp)
        assert sorted(found, key=str) == [None, "only_here"], found
        assert f"{process.program} is not the file that was recorded" in errors, errors
        assert "one of 2 of that name" in errors and "run 'kbarman bundle' while" in errors, errors
    # nor those that have come into the place of others
    with open(process.program + ".new", "wb") as file, open("/bin/true", "rb") as other:
        shutil.copyfileobj(other, file)
    os.replace(process.program + ".new", process.program)
    assert names(tmp)[0] == [None, None] or names(tmp)[0] == [None], names(tmp)


def files_are_found_below_the_root_of_their_process(tmp):
    """Of a mapping that is there no more: the process has gone on to another one."""
    process, container = with_container(tmp)
    with process, container:
        process.is_readable()
        maker = facts()
        fill(maker, container, process.program, 1000, shift=0x10000000)
        maker.save(os.path.join(tmp, "kbarman.cap"))
        assert names(tmp) == (["its_own"], "")


def the_vdso_has_names(tmp):
    with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/mem", "rb") as memory:
        place = [line.split()[0] for line in maps if line.rstrip().endswith("[vdso]")]
        if not place:
            raise tap.Skip("there is no vdso here")
        low, high = (int(part, 16) for part in place[0].split("-"))
        memory.seek(low)
        image = os.path.join(tmp, "vdso")
        with open(image, "wb") as file:
            file.write(memory.read(high - low))
    symbols = subprocess.run(["nm", "-D", "--defined-only", image], check=True, capture_output=True,
                             text=True).stdout
    at = [int(line.split()[0], 16) for line in symbols.splitlines() if "clock_gettime" in line][0]
    maker = facts()
    maker.map(7, 0x70000000, high - low, 0, "[vdso]")
    maker.sample(0, 1000, 7, 0x70000000 + at)
    maker.save(os.path.join(tmp, "kbarman.cap"))
    found, errors = names(tmp)
    assert "clock_gettime" in (found[0] or "") and not errors, (found, errors)


def memory_without_a_path_is_one_image(tmp):
    maker = Maker()
    for i in range(2):
        maker.map(7, 0x1000 * (i + 1), 0x1000, 0, "/memfd:code (deleted)", file=f"0:1:{i + 4}")
        maker.sample(0, 1000 + i, 7, 0x1000 * (i + 1))
    maker.save(os.path.join(tmp, "kbarman.cap"))
    rows = [row for row in lines(tmp)[0] if row["kind"] == "symbol"]
    assert [row["samples"] for row in rows] == [2], rows


def files_of_one_path_stay_two_when_captures_are_merged(tmp):
    files, captures = ("0:33:77:100:1", "8:1:77:100:1600000000000000000"), []
    for i in range(2):
        maker = Maker()
        for file in files:
            maker.map(7 + i, 0x1000, 0x1000, 0, "/lib/a", file=file)
        maker.sample(0, 1000 + i, 7 + i, 0x1000)
        captures.append(maker.save(os.path.join(tmp, f"{i}.cap")))
    merged = os.path.join(tmp, "both.cap")
    assert tap.run("merge", "-o", merged, *captures).returncode == 0
    dump = tap.run("dump", "-j", merged)
    rows = [json.loads(line) for line in dump.stdout.splitlines()]
    found = [(row["tid"], row["image"], row["identity"]) for row in rows if row["kind"] == "image"]
    assert sorted(found) == [(task, "/lib/a", file) for task in (7, 8) for file in files], found


if __name__ == "__main__":
    tap.main(globals())
