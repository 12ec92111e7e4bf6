#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman recover`, and what `check` says of captures that were cut off: by kill -9 at any
moment, on the device that is not there; and by hand, at every kind of place.

KBARMAN_SEED is the chance's seed, KBARMAN_KILLS how often the recorder is killed."""
import concurrent.futures
import hashlib
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import preload
import tap
import test_record as recorder
from barman_image import Image
from capture import Capture, ORDER, PADDING, WORD

SEED = int(os.environ.get("KBARMAN_SEED", "7"))
KILLS = int(os.environ.get("KBARMAN_KILLS", "100"))
AT_ONCE = 10                    # they mostly sleep


MAKES_AND_DIES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
int mkostemp64(char *name, int flags)
{
	int (*next)(char *name, int flags) = dlsym(RTLD_NEXT, "mkostemp64");
	int fd = next(name, flags);

	raise(SIGTERM);
	return fd;
}
"""


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def recover(tmp, *args, **kwargs):
    return tap.run("recover", *args, cwd=tmp, **kwargs)


def kept(done):
    return int(re.search(r"kept (\d+) records", done.stderr).group(1))


def dropped(done):
    found = re.search(r"dropped (\d+) bytes", done.stderr)
    return int(found.group(1)) if found else 0


def recovered(tmp, name="x.cap", status=0):
    """Recover it; the input stays, the output is valid, and reported. Returns (said, Capture)."""
    path, out = os.path.join(tmp, name), os.path.join(tmp, "out.cap")
    before = digest(path)
    done = recover(tmp, "-o", "out.cap", name)
    assert done.returncode == status, done
    assert digest(path) == before, "the input was written"
    checked = tap.run("check", out)
    assert checked.returncode == 0 and checked.stdout.endswith(": a valid Barman capture\n"), checked
    capture = Capture(out)
    assert len(capture.records()) == kept(done), done
    return done, capture


def a_recording(tmp, name="whole.cap"):
    """A capture with its own name and rows, of some 10000 records."""
    done = recorder.record(tmp, "--no-bundle", "-o", name, "sleep", "0.2",
                           env=recorder.fake(FAKE_RATE=40))
    assert done.returncode == 0, done
    return Capture(os.path.join(tmp, name))


def blocks(capture):
    """The offset of each block in the file, and of the end of the last one."""
    at, end = capture.header_length, capture.header_length + capture.write
    found = [at]
    while at < end:
        at += WORD + (struct.unpack_from(ORDER + ("Q" if WORD == 8 else "I"), capture.data,
                                         at)[0] & ~PADDING)
        found.append(at)
    return found


# ---- killed

def kill_once(tmp, number):
    """One recorder, killed at one moment. Returns how many records were recovered."""
    chance = random.Random(SEED * 1000 + number)
    child = recorder.start(tmp, env=recorder.fake(FAKE_RATE=chance.choice((5, 40, 100))))
    time.sleep(chance.uniform(0, 0.4) if chance.random() < 0.9 else chance.uniform(0.9, 1.2))
    if chance.random() < 0.5:
        child.terminate()       # and while it ends
        time.sleep(chance.uniform(0, 0.03))
    child.kill()
    child.communicate()
    names = [n for n in recorder.files(tmp) if n in ("kbarman.cap", "kbarman.cap.partial")]
    assert len(names) == 1, names
    _, told = recorder.check(os.path.join(tmp, names[0]))
    checked = tap.run("check", names[0], cwd=tmp)
    assert checked.returncode == 0 and "damaged" not in checked.stdout, checked
    done, capture = recovered(tmp, names[0])
    records = capture.records()
    assert [r[3] for r in records[:len(told)]] == [r[3] for r in told], "records have changed"
    assert ("not yet counted in the header" in done.stderr) == (len(records) > len(told)) == \
        ("that the header counts" in checked.stdout)
    times = [r[2] for r in records]
    assert times == sorted(times) and capture.target == "fake"
    return len(records)


def killed_at_any_moment_all_that_was_written_is_recovered(tmp):
    print(f"# seed {SEED}, {KILLS} kills")
    recorder.fake()             # skips where it could not be built
    dirs = [os.path.join(tmp, str(i)) for i in range(KILLS)]
    for path in dirs:
        os.mkdir(path)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        counts = list(pool.map(kill_once, dirs, range(KILLS)))
    print(f"# {sum(counts)} records recovered, {min(counts)} to {max(counts)}")
    assert sum(counts) > KILLS * 100, counts


def killed_before_any_write_there_is_a_capture_or_none(tmp):
    captures = 0
    for number in range(1, 25):
        directory = os.path.join(tmp, str(number))
        os.mkdir(directory)
        done = recorder.record(directory, "sleep", "0.1", env=recorder.fake(FAKE_RATE=5, FAKE_KILL=number))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        with open(os.path.join(directory, "kbarman.cap.partial"), "rb") as partial:
            if not any(partial.read(8)):
                continue
        captures += 1
        checked = tap.run("check", "kbarman.cap.partial", cwd=directory)
        assert checked.returncode == 0 and "damaged" not in checked.stdout, (number, checked)
    assert captures > 1, captures


def a_killed_recording_gets_its_name_and_symbols(tmp):
    child = recorder.start(tmp, env=recorder.fake(FAKE_RATE=100))
    tap.until(lambda: Capture(os.path.join(tmp, "kbarman.cap.partial")).records(), "a sync")
    child.kill()
    child.communicate()
    done = recover(tmp, "kbarman.cap.partial")
    assert done.returncode == 0 and done.stdout == "" and kept(done) > 0, done
    names = ["kbarman.cap", "kbarman.cap.kallsyms", "kbarman.cap.partial",
             "kbarman.cap.partial.kallsyms"]
    assert recorder.files(tmp) == names, recorder.files(tmp)
    assert digest(os.path.join(tmp, names[1])) == digest(os.path.join(tmp, names[3]))
    assert Capture(os.path.join(tmp, "kbarman.cap")).facts()["tgid.1"] == "7"
    report = tap.run("report", "kbarman.cap", cwd=tmp)
    assert report.returncode == 0 and "fake task" in report.stdout, report
    again = recover(tmp, "kbarman.cap.partial")
    assert again.returncode == 2 and "-o OUT" in again.stderr, again


def what_stands_beside_a_recovered_capture_is_its_own(tmp):
    """Copies of what stood beside the input, and nothing that was there under its name."""
    image = Image()
    image.record(3, 0, 1000, "IB", 1, 0)
    image.save(os.path.join(tmp, "x.cap"))
    for there, gone in ("annotate-side", "kallsyms"), ("kallsyms", "annotate-side"):
        for suffix in "annotate-side", "kallsyms", "symbols":
            put(os.path.join(tmp, f"out.cap.{suffix}"), b"stale")
        put(os.path.join(tmp, f"x.cap.{there}"), there.encode())
        assert recover(tmp, "-o", "out.cap", "x.cap").returncode == 0
        os.unlink(os.path.join(tmp, f"x.cap.{there}"))
        with open(os.path.join(tmp, f"out.cap.{there}"), "rb") as file:
            assert file.read() == there.encode()
        left = {"out.cap", f"out.cap.{there}", "x.cap"}
        assert set(os.listdir(tmp)) == left, (gone, os.listdir(tmp))


def what_stands_beside_a_capture_and_is_no_file_is_left(tmp):
    """A FIFO without a writer, a device without an end."""
    image = Image()
    image.record(3, 0, 1000, "IB", 1, 0)
    image.save(os.path.join(tmp, "x.cap"))
    os.mkfifo(os.path.join(tmp, "x.cap.kallsyms"))
    os.symlink("/dev/zero", os.path.join(tmp, "x.cap.symbols"))
    done = recover(tmp, "-o", "out.cap", "x.cap")
    assert done.returncode == 0 and "x.cap.kallsyms" in done.stderr and "x.cap.symbols" in done.stderr, done
    assert {"out.cap"} == {name for name in os.listdir(tmp) if name.startswith("out")}, os.listdir(tmp)


def a_merged_capture_has_nothing_of_another_beside_it(tmp):
    image = Image()
    image.record(3, 0, 1000, "IB", 1, 0)
    image.save(os.path.join(tmp, "x.cap"))
    for suffix in "annotate-side", "kallsyms", "symbols":
        put(os.path.join(tmp, f"out.cap.{suffix}"), b"stale")
    assert tap.run("merge", "-o", "out.cap", "x.cap", cwd=tmp).returncode == 0
    assert sorted(os.listdir(tmp)) == ["out.cap", "x.cap"], os.listdir(tmp)


def a_killed_recording_in_overwrite_mode_has_nothing_and_says_so(tmp):
    env = recorder.fake()
    child = subprocess.Popen([tap.KBARMAN, "record", "--mode", "overwrite"], cwd=tmp, env=env,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    partial = os.path.join(tmp, "kbarman.cap.partial")
    tap.until(lambda: os.path.exists(partial), partial)
    child.kill()
    child.wait()
    done = recover(tmp, "kbarman.cap.partial")
    assert done.returncode == 2 and "overwrite mode" in done.stderr, done
    assert "kbarman.cap" not in recorder.files(tmp)


# ---- cut at a place

def cut_anywhere_all_whole_records_are_kept(tmp):
    whole = a_recording(tmp)
    starts = blocks(whole)
    chance = random.Random(SEED)
    middle = starts[len(starts) // 2]
    batch = starts[0] + (256 << 10) // (WORD + 24) * (WORD + 24)
    places = {0, 1, 7, 8, 9, 20, 95, 96, 97, whole.header_length - 41, whole.header_length - 40,
              whole.header_length - 1, starts[0], starts[0] + 1, starts[0] + WORD, starts[1] - 1,
              starts[1], middle, middle + 1, middle + WORD - 1, middle + WORD, middle + WORD + 1,
              batch - 1, batch, batch + 1, starts[-2], starts[-1] - 1, starts[-1],
              *(chance.randrange(len(whole.data)) for _ in range(40))}
    for place in sorted(p for p in places if p <= len(whole.data)):
        put(os.path.join(tmp, "x.cap"), whole.data[:place])
        checked = tap.run("check", "x.cap", cwd=tmp)
        if place < starts[0] - 8:       # where the end of the store's fields may be missing
            done = recover(tmp, "-o", "none.cap", "x.cap")
            assert done.returncode == 2 and "x.cap" in done.stderr, (place, done)
            assert not os.path.exists(os.path.join(tmp, "none.cap"))
            assert checked.returncode == 2 and "x.cap" in checked.stdout + checked.stderr, checked
            if place >= 8:
                assert f"byte {place}, inside its header" in done.stderr, (place, done)
            continue
        done, capture = recovered(tmp)
        end = max(start for start in starts if start <= max(place, starts[0]))
        assert kept(done) == starts.index(end), (place, done)
        assert capture.data[capture.header_length:] == whole.data[starts[0]:end], place
        assert dropped(done) == max(place - end, 0), (place, done)
        assert (f"{starts[-1] - max(place, starts[0])} bytes that the header counts" in done.stderr) == \
            (place < starts[-1]), (place, done)
        assert capture.task_names() == whole.task_names() and capture.images() == whole.images()
        assert capture.facts() == whole.facts()
        assert checked.returncode == (1 if place < starts[-1] else 0), (place, checked)
        assert ("kbarman recover" in checked.stdout) == (place < starts[-1]), (place, checked)
        assert place == starts[-1] or f" {kept(done)} records in {end - starts[0]} bytes are whole" in \
            checked.stdout, (place, checked)


def what_stands_behind_the_header_s_knowledge_is_kept(tmp):
    """The header is older than the records, by as much as it likes."""
    whole = a_recording(tmp)
    starts = blocks(whole)
    for known in 0, 1, len(starts) // 3, len(starts) - 1:
        old = bytearray(whole.data)
        told = starts[known] - starts[0]
        struct.pack_into(ORDER + "QQQQ", old, whole.header_length - 40, told, told, 0, told)
        put(os.path.join(tmp, "x.cap"), old + b"\x18")
        done, capture = recovered(tmp)
        assert kept(done) == len(starts) - 1 and dropped(done) == 1, done
        assert capture.data[capture.header_length:] == whole.data[starts[0]:]
        more = len(starts) - 1 - known
        assert (f"{more} of these records were not yet counted" in done.stderr) == (more > 0), done
        for torn in b"", b"\x18":
            put(os.path.join(tmp, "x.cap"), old + torn)
            checked = tap.run("check", "x.cap", cwd=tmp)
            assert checked.returncode == 0, (torn, checked)
            assert (f" {more} records in " in checked.stdout) == (more > 0), (torn, checked)
            assert ("that the header counts" in checked.stdout) == (more > 0), (torn, checked)


def what_was_never_written_is_no_record(tmp):
    """Zeros, as of blocks that a file system had no time to write; and noise."""
    whole = a_recording(tmp)
    starts = blocks(whole)
    middle, noise = len(starts) // 2, random.Random(SEED).randbytes(4096)
    for told in middle, len(starts) - 1:
        for rest in bytes(5000), b"\xff" * 4096, noise:
            data = bytearray(whole.data[:starts[middle]] + rest)
            length = starts[told] - starts[0]
            struct.pack_into(ORDER + "QQQQ", data, whole.header_length - 40, length, length, 0,
                             length)
            put(os.path.join(tmp, "x.cap"), data)
            done, capture = recovered(tmp)
            assert kept(done) == middle and dropped(done) == len(rest), (told, rest[:8], done)
            assert capture.records() == whole.records()[:middle]


def damage_in_the_middle_is_left_out_and_said(tmp):
    whole = a_recording(tmp)
    starts = blocks(whole)
    data = bytearray(whole.data)
    struct.pack_into(ORDER + "I", data, starts[5] + WORD + 4, 999)   # its core
    put(os.path.join(tmp, "x.cap"), data)
    done, capture = recovered(tmp, status=1)
    assert "left out" in done.stderr and "core 999" in done.stderr, done
    assert capture.records() == whole.records()[:5] + whole.records()[6:]


def image(word, order, store=1):
    capture = Image(word=word, order=order, store=store)
    capture.task(1, 7, "task")
    capture.map(2, 7, 0x1000, 0x2000, 0x30, "/bin/true")
    for i in range(9):
        capture.record(3, i % 2, 1000 + i, "IB", 7, 0)
        capture.record(2, i % 2, 1000 + i, "IW2Q", 7, 0x1234, i, i * 2)
    return capture


def every_layout_is_recovered(tmp):
    """Other word sizes and byte orders, and rings as they were mapped."""
    for word in 4, 8:
        for order in "<", ">":
            for store in 1, 2:
                data = image(word, order, store).bytes()
                put(os.path.join(tmp, "x.cap"), data[:-3])
                done = recover(tmp, "-o", "out.cap", "x.cap")
                assert done.returncode == 0 and kept(done) == 17, (word, order, store, done)
                assert tap.run("check", "out.cap", cwd=tmp).returncode == 0
                texts = [tap.run("dump", "--json", name, cwd=tmp).stdout.splitlines()
                         for name in ("x.cap", "out.cap")]
                rows = [[re.sub(r'"(index|ns)":-?\d+,?', "", line) for line in text
                         if re.search(r'"kind":"(record|task|mmap|pmu)"', line)] for text in texts]
                assert rows[0] == rows[1] and len(rows[0]) >= 19, (word, order, store, rows)


# ---- files

def a_pipe_is_recovered_and_gets_one(tmp):
    whole = a_recording(tmp)
    cut = whole.data[:len(whole.data) * 2 // 3]
    done = subprocess.run([tap.KBARMAN, "recover", "-o", "-", "-"], input=cut, cwd=tmp,
                          capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    put(os.path.join(tmp, "out.cap"), done.stdout)
    assert tap.run("check", "out.cap", cwd=tmp).returncode == 0
    count = tap.run("dump", "--json", "out.cap", cwd=tmp).stdout.count('"kind":"record"')
    assert count > 5000 and f"kept {count} records".encode() in done.stderr, (count, done.stderr)


def the_input_is_never_the_output(tmp):
    put(os.path.join(tmp, "x.cap"), image(8, "<").bytes())
    os.symlink("x.cap", os.path.join(tmp, "link"))
    for out in "x.cap", "./x.cap", "link":
        done = recover(tmp, "-o", out, "x.cap")
        assert done.returncode == 2 and "x.cap is the input" in done.stderr, done


def what_can_not_be_recovered_is_named(tmp):
    put(os.path.join(tmp, "empty"), b"")
    put(os.path.join(tmp, "zeros"), bytes(100000))
    put(os.path.join(tmp, "text"), b"no capture\n" * 100)
    put(os.path.join(tmp, "x.cap"), image(8, "<").bytes())
    for args, says in (("empty",), "is empty"), (("zeros",), "zeros is not a Barman"), \
            (("text",), "text is not a Barman"), (("nothing",), "nothing: No such file"), \
            (("-o", "nodir/y", "x.cap"), "nodir/y: No such file"), ((), "no kbarman.cap.partial here"), \
            (("-o", "/dev/full", "x.cap"), "No space left"), (("x.cap", "x.cap"), "one FILE"), \
            (("-",), "-o OUT"):
        done = recover(tmp, *args)
        assert done.returncode == 2 and says in done.stderr, (args, done)
    assert recorder.files(tmp) == ["empty", "text", "x.cap", "zeros"], recorder.files(tmp)


def nothing_is_left_of_a_signal_that_comes_while_the_output_is_made(tmp):
    put(os.path.join(tmp, "x.cap"), image(8, "<").bytes())
    library = preload.build(tmp, "makes_and_dies", MAKES_AND_DIES)
    done = recover(tmp, "-o", "out.cap", "x.cap", env=os.environ | {"LD_PRELOAD": library})
    assert done.returncode == -signal.SIGTERM, done
    assert recorder.files(tmp) == ["makes_and_dies.so", "x.cap"], recorder.files(tmp)


def who_writes_into_a_named_pipe_is_read_to_the_end(tmp):
    """Nobody looks into the pipe first, and goes."""
    pipe = os.path.join(tmp, "pipe")
    image = Image()
    for i in range(10000):
        image.record(3, 0, 2000 + i, "IBB", 7, 0, 0)
    os.mkfifo(pipe)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for _ in range(20):
            writer = pool.submit(put, pipe, image.bytes())
            done = recover(tmp, "-o", "out.cap", "pipe")
            assert done.returncode == 0 and kept(done) == 10000, done
            writer.result()


if __name__ == "__main__":
    recorder.main(globals())
