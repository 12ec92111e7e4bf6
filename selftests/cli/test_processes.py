#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows of mappings with numbers of processes, thread groups in pages of a map, and
`convert --to barman`, which makes rows of threads again."""
import json
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from barman_image import Image
from make_capture import Maker

PAGE = 0x1000


def ask(path, question):
    done = tap.run("query", "--json", path, question)
    assert done.returncode == 0, done.stderr
    return [list(row.values()) for row in json.loads(done.stdout or "[]")]


def of_processes(**facts):
    return Maker(cores=2, counters=[8], facts={"maps": "process", **facts})


def threads(folder):
    """A process 10 with threads 11 and 12; number 11 was that of another process before."""
    c = of_processes(**{"tgid.3": "10", "tgid.4": "10"})
    c.task(0, "swapper")
    c.task(10, "main", 100)
    c.task(11, "former", 100)
    c.task(11, "worker", 1000)
    c.task(12, "other", 1000)
    c.map(11, 0x400000, 0x10000, 0, "/former", 200)
    c.map(10, 0x400000, 0x10000, 0, "/first", 200)
    c.map(10, 0x500000, 0x1000, 0, "/early", 300)
    c.map(10, 0x400000, 0x1000, 0, "/second", 2000)
    c.sample(0, 500, 11, 0x400010, [1])
    c.sample(0, 1500, 11, 0x400010, [1])
    c.sample(0, 1600, 12, 0x500010, [1])
    c.sample(0, 2500, 11, 0x400010, [1])
    c.sample(0, 2600, 12, 0x401010, [1])
    c.sample(0, 2700, 10, 0x400010, [1])
    return c.save(os.path.join(folder, "threads.cap"))


ANSWERS = ["/former", "/first", "/early", "/second", "/first", "/second"]


def a_thread_has_the_mappings_of_its_process(tmp):
    path = threads(tmp)
    assert [row[0] for row in ask(path, "SELECT image FROM samples")] == ANSWERS


def rows_of_threads_are_read_as_before(tmp):
    """Without the fact a thread has rows of its own, before those of its process."""
    c = Maker(cores=1, counters=[8], facts={"tgid.2": "10"})
    c.task(0, "swapper")
    c.task(10, "main")
    c.task(11, "thread")
    c.map(10, 0x400000, PAGE, 0, "/process")
    c.map(11, 0x400000, PAGE, 0, "/thread")
    c.sample(0, 500, 11, 0x400010, [1])
    path = c.save(os.path.join(tmp, "old.cap"))
    assert ask(path, "SELECT image FROM samples") == [["/thread"]]
    out = os.path.join(tmp, "again.cap")
    assert tap.run("convert", path, "--to", "barman", "-o", out).returncode == 0
    assert ask(out, "SELECT image FROM samples") == [["/thread"]]


# ---- a reader that knows numbers of tasks alone ----

class Reader:
    """Barman v2 of 64 bits, little endian, by its text alone: no fact of kbarman's is looked at."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = self.data = file.read()
        length, = struct.unpack_from("<I", data, 12)
        cores, tasks, maps, counters, strings, series = struct.unpack_from("<6I", data, 36)
        assert not series
        at = 96 + strings + cores * (28 + 4 * counters)
        self.counters = [struct.unpack_from("<I", data, 96 + strings + core * (28 + 4 * counters) + 24)[0]
                         for core in range(cores)]
        at += 4 + 16 * tasks
        self.maps, count = [], struct.unpack_from("<I", data, at)[0]
        assert count <= maps
        for row in range(count):
            timestamp, task, base, size, _, name = struct.unpack_from("<QIQQQI", data, at + 4 + 40 * row)
            self.maps.append((timestamp, row, task, base, size, self.string(name)))
        self.maps.sort()
        size, written, read, total = struct.unpack_from("<QQQQ", data, length - 40)
        assert read == 0 and size == written == total == len(data) - length
        self.records = length

    def string(self, at):
        return self.data[96 + at:self.data.index(b"\0", 96 + at)].decode()

    def image(self, task, timestamp, pc):
        later = None
        for wanted in task, 0:
            found = None
            for since, _, whose, base, size, name in self.maps:
                if whose != wanted or not 0 <= pc - base < size:
                    continue
                if since <= timestamp:
                    found = name
                elif later is None:
                    later = name
            if found:
                return found
        return later

    def samples(self):
        """(task, image) of each."""
        at = self.records
        while at < len(self.data):
            length, = struct.unpack_from("<Q", self.data, at)
            kind, core, timestamp = struct.unpack_from("<IIQ", self.data, at + 8)
            if kind == 2:
                task, pc = struct.unpack_from("<IQ", self.data, at + 24)
                yield task, self.image(task, timestamp, pc)
            at += 8 + length


def to_threads(path, *args):
    out = path + ".threads"
    done = tap.run("convert", path, "--to", "barman", "-o", out, *args)
    assert done.returncode == 0, done.stderr
    assert tap.run("check", out).returncode == 0
    return out


def a_reader_of_task_numbers_finds_every_image(tmp):
    out = to_threads(threads(tmp))
    assert [image for _, image in Reader(out).samples()] == ANSWERS
    assert [row[0] for row in ask(out, "SELECT image FROM samples")] == ANSWERS
    assert ask(out, "SELECT value FROM facts WHERE key = 'maps'") == []


def a_converted_capture_has_the_same_records(tmp):
    path = threads(tmp)
    out = to_threads(path)
    one, other = (tap.run("script", "--json", name).stdout for name in (path, out))
    assert one == other and one
    with open(path, "rb") as file:
        done = tap.run("convert", "-", "--to", "barman", text=False, stdin=None, input=file.read())
    assert done.returncode == 0, done.stderr
    with open(out, "rb") as file:
        assert file.read() == done.stdout
    small = to_threads(path, "--tid", "12")
    assert [row[0] for row in ask(small, "SELECT tid FROM samples")] == [12, 12]


def any_history_of_numbers_is_read_alike(tmp):
    """Numbers go from process to thread and back, and mappings are replaced: both readers agree."""
    for seed in range(40):
        rng = random.Random(seed)
        facts, tasks = {}, [(0, 0, "swapper")]
        for tid in range(1, 6):
            for since in sorted(rng.sample(range(1, 1000), rng.randrange(1, 4))):
                facts[f"tgid.{len(tasks)}"] = str(rng.choice((tid, tid, rng.randrange(1, 6))))
                tasks.append((since, tid, f"t{tid}"))
        c = of_processes(**facts)
        for since, tid, name in tasks:
            c.task(tid, name, since)
        made = {"": 0}
        for number in range(30):
            made[f"/{number}"] = rng.randrange(1000)
            c.map(rng.randrange(0, 6), 0x1000 * rng.randrange(1, 8), 0x1000 * rng.randrange(1, 4), 0,
                  f"/{number}", made[f"/{number}"])
        for timestamp in range(0, 1000, 10):
            c.sample(0, timestamp, rng.randrange(1, 6), 0x1000 * rng.randrange(1, 11), [1])
        path = c.save(os.path.join(tmp, f"{seed}.cap"))
        here = [(image or "").replace("[unknown]", "") for image, in ask(path, "SELECT image FROM samples")]
        there = [image or "" for _, image in Reader(to_threads(path)).samples()]
        assert len(here) == len(there) == 100
        compared = 0
        for tick, (one, other) in enumerate(zip(here, there)):
            # A row that is newer than the record is a guess.
            if one and made[one] <= 10 * tick:
                # What hides a former owner's rows hides those of task 0, which has no user's addresses.
                assert other in (one, "[unknown]"), (seed, tick, one, other)
                compared += one == other
        assert compared > 10, (seed, compared)


def too_many_rows_are_refused(tmp):
    """1,100 threads with 1,000 mappings each are more rows than a capture may have."""
    c = of_processes(**{f"tgid.{row}": "1" for row in range(2, 1101)})
    c.task(0, "swapper")
    c.task(1, "main")
    for tid in range(2, 1101):
        c.task(tid, "thread")
        c.sample(0, 10 * tid, tid, 0x100010, [1])
    for number in range(1000):
        c.map(1, 0x100000 + PAGE * number, PAGE, 0, "/lib")
    path = c.save(os.path.join(tmp, "many.cap"))
    done = tap.run("convert", path, "--to", "barman", "-o", os.path.join(tmp, "out"))
    assert done.returncode == 2 and not os.path.exists(os.path.join(tmp, "out"))
    assert "1099 threads" in done.stderr and "1048576" in done.stderr and "--tid" in done.stderr, done.stderr
    out = to_threads(path, "--time", "0,0.000005")
    assert all(image == "/lib" for _, image in Reader(out).samples())


# ---- pages of a map ----

def with_pages(folder, order="<", word=8, size=16, element=16, offset=None, strings=512, count=None):
    """The copy of a map: its room for strings ends with the pages."""
    pages = -(-(96 + strings) // 8) * 8
    image = Image(word=word, order=order, max_tasks=4, max_maps=2, cores=1, counters=1,
                  strings=["kbarman.ext=1", "kbarman.maps=process",
                           f"kbarman.tasks={pages if offset is None else offset}"])
    for timestamp, tid, name in (0, 0, "swapper"), (1000, 10, "main"), (1000, 11, "worker"):
        image.task(timestamp, tid, name)
    image.map(1000, 10, 0x400000, 0x1000, 0, "/process")
    image.record(2, 0, 2000, "IWQ", 11, 0x400010, 5)
    table = image.pack("IIII", size, element, 4 if count is None else count, 0).ljust(size, b"\xee")
    for tid, tgid, end in (0, 0, 0), (10, 10, 0), (11, 10, 1900), (77, 10, 0):
        table += image.pack("IIQ", tid, tgid, end).ljust(element, b"\xee")
    used = image.strings
    image.strings = used.ljust(pages - 96, b"\0") + table
    data = bytearray(image.bytes())
    data[92:96] = image.pack("I", len(used))
    path = os.path.join(folder, "copy.cap")
    with open(path, "wb") as file:
        file.write(data)
    return path


def the_copy_of_a_map_has_thread_groups(tmp):
    for order in "<>":
        for word in 4, 8:
            path = with_pages(tmp, order, word)
            assert ask(path, "SELECT tid, pid FROM tasks") == [[0, 0], [10, 10], [11, 10]]
            assert ask(path, "SELECT pid, image FROM samples") == [[10, "/process"]]


def pages_may_have_more_than_a_reader_knows(tmp):
    path = with_pages(tmp, size=24, element=32)
    assert ask(path, "SELECT tid, pid FROM tasks") == [[0, 0], [10, 10], [11, 10]]


def pages_that_are_not_in_the_room_are_a_finding(tmp):
    for wrong in ({"offset": 4}, {"offset": 1 << 40}, {"offset": 612}, {"element": 8}, {"size": 8},
                  {"count": 1 << 30}, {"size": 1 << 20}):
        if wrong.get("size") == 1 << 20:
            wrong = {"offset": 96}      # strings, taken for sizes
        path = with_pages(tmp, **wrong)
        done = tap.run("check", path)
        assert done.returncode == 1 and "kbarman.tasks" in done.stdout + done.stderr, (wrong, done)
        assert ask_damaged(path)[-1] == [11, 11], wrong


def ask_damaged(path):
    done = tap.run("query", "--json", path, "SELECT tid, pid FROM tasks")
    return [list(row.values()) for row in json.loads(done.stdout)]


def notes_are_those_of_the_process_at_the_time(tmp):
    """A number that two processes had; one that got another name, and had ended when it was to be noted."""
    capture = Maker(cores=1, counters=[8], facts={
        "tgid.3": "20", "exit.0": "500", "cgroup.0": "/old", "cgroup.1": "/new", "cgroup.2": "/none",
        "cgroup_of.0": "0", "command.0": "old -x", "cgroup_of.2": "1", "command.2": "new",
        # nothing of these is harmful
        "cgroup_of.9": "1", "cgroup_of.-1": "1", "cgroup_of.x": "0", "cgroup_of.4294967298": "1", "cgroup_of.3": "9",
        "command.9": "far", "command.": "none", "command.3": "of a thread", "command.4": "", "command": "./all"})
    for row in ((10, "old", 100), (10, "young", 600), (20, "fork", 100), (21, "thread", 100), (20, "exec", 300)):
        capture.task(*row)
    capture.sample(0, 1000, 10, 0x400010, [1])
    path = capture.save(os.path.join(tmp, "a.cap"))
    assert ask(path, "SELECT task, cgroup, command FROM tasks") == [
        ["old", "/old", "old -x"], ["young", "", ""], ["fork", "/new", "new"], ["thread", "/new", "new"],
        ["exec", "/new", ""]]


def merge_keeps_thread_groups_and_ends(tmp):
    """Rows that come in another order have other numbers, and facts are about numbers of rows."""
    paths = []
    for number in 0, 1:
        c = Maker(cores=2, facts={
            "maps": "process", "tgid.0": "10", "exit.0": "5000",
            "cgroup.0": "/none", "cgroup.1": "/shop", "cgroup_of.1": "1", "command.1": "main -a"} if number else {
                "maps": "process", "tgid.1": "10", "cgroup.0": "/shop", "cgroup_of.0": "0", "command.0": "main -a"},
                  counters=[8])
        for row in ((12, "late", 900), (10, "main", 100)) if number else ((10, "main", 100),
                                                                          (11, "early", 500)):
            c.task(*row)
        c.map(10, 0x400000, PAGE, 0, "/process", 100)
        c.sample(number, 1000 + number, 12 - (not number), 0x400010, [1])
        paths.append(c.save(os.path.join(tmp, f"{number}.cap")))
    out = os.path.join(tmp, "both.cap")
    done = tap.run("merge", "-o", out, *paths)
    assert done.returncode == 0, done.stderr
    assert ask(out, "SELECT tid, pid FROM tasks ORDER BY tid") == [[10, 10], [11, 10], [12, 10]]
    assert ask(out, "SELECT value FROM facts WHERE key = 'exit.2'") == [["5000"]]
    assert ask(out, "SELECT DISTINCT cgroup, command FROM tasks") == [["/shop", "main -a"]]
    assert ask(out, "SELECT key, value FROM facts WHERE key LIKE 'c%.%' AND key NOT LIKE 'counter%'") == [
        ["cgroup.0", "/shop"], ["cgroup_of.0", "0"], ["command.0", "main -a"]]
    assert ask(out, "SELECT image FROM samples") == [["/process"], ["/process"]]


def recover_writes_what_pages_say(tmp):
    path = with_pages(tmp)
    out = os.path.join(tmp, "out.cap")
    done = tap.run("recover", path, "-o", out)
    assert done.returncode == 0, done.stderr
    assert ask(out, "SELECT tid, pid FROM tasks") == [[0, 0], [10, 10], [11, 10]]
    assert ask(out, "SELECT key, value FROM facts WHERE key LIKE '%.2'") == [["tgid.2", "10"],
                                                                            ["exit.2", "1900"]]
    assert ask(out, "SELECT value FROM facts WHERE key = 'tasks'") == []


if __name__ == "__main__":
    tap.main(globals())
