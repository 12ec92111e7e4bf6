#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman record --annotate-socket`, with a client written from the specification alone:
"Annotate v3 (DS-5 v5.22) Protocol", byte by byte, and what its siblings for v1 (5.20) and v2
(5.21) have otherwise. There is no text for v4 (gator 5.24) and v5 (7.9): what Arm's client of these
releases sends is the fact, with the setup's 20 bytes of v3. v4 has the messages 0x0e (a job starts:
view, job, track, time, colour, name), 0x0f (its dependencies: view, job, time, primary, their
number, they) and 0x10 (it stops: view, job, time); v5's client has counter values of 64 bits. What
gatord answers: a byte 0 to the parents' connections when a capture begins, and when it ends if it
is of one application. In a network
namespace of its own, so that neither gatord nor another of these tests is in the way."""
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
import test_record as recorder
from capture import Capture

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def own_network():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET if os.getuid() == 0 else CLONE_NEWUSER | CLONE_NEWNET):
        return False
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
    return True


# ---- the client ----

def packed(value):
    """Seven bits a byte, low ones first; the last byte's bit 6 is the sign."""
    out = bytearray()
    while True:
        byte = value & 0x7f
        value >>= 7
        if (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40):
            return bytes(out + bytes([byte]))
        out.append(byte | 0x80)


def setup(tid, pid, mangle=0, version=3):
    ids = struct.pack("<ii", tid, pid)
    return b"ANNOTATE %d\n" % version + ids + (bytes([mangle]) if version >= 3 else b"")


def message(marker, *parts):
    body = b"".join(parts)
    return struct.pack("<Bi", marker, len(body)) + body


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def string(when, channel, text):
    return message(1, packed(when), packed(channel), text.encode())


def counter(key, title, name, kind=2, display=1, modifier=1, activities=(), **flags):
    return message(8, packed(key), packed(flags.get("per_cpu", 0)), packed(kind), packed(display),
                   packed(modifier), packed(2), packed(3), packed(1), packed(0), packed(1),
                   packed(len(activities)), packed(flags.get("cores", 1)), b"\x11\x22\x33\x1b",
                   *[text.encode() + b"\0" + flags.get("color", b"\1\2\3\x1b")
                     for text in activities],
                   title.encode() + b"\0", name.encode() + b"\0", b"units\0", b"description")


def value(when, core, key, number):
    return message(9, packed(when), packed(core), packed(key), packed(number))


UNIX = (socket.AF_UNIX, "\0streamline-annotate")
UNIX_PARENT = (socket.AF_UNIX, "\0streamline-annotate-parent")
TCP = (socket.AF_INET, ("127.0.0.1", 8083))
TCP_PARENT = (socket.AF_INET, ("127.0.0.1", 8082))


def connect(where):
    client = socket.socket(where[0], socket.SOCK_STREAM)
    client.settimeout(tap.HANG)
    client.connect(where[1])
    return client


# ---- a recording ----

class Recording:
    def __init__(self, tmp, *args, **device):
        self.tmp = tmp
        self.child = subprocess.Popen([tap.KBARMAN, "record", "--annotate-socket", *args,
                                       "sh", "-c", "touch started; "
                                       "while [ ! -e stop ]; do sleep 0.05; done"],
                                      cwd=tmp, env=recorder.fake(FAKE_RATE=1, **device), text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not os.path.exists(os.path.join(tmp, "started")):
            assert self.child.poll() is None, self.child.communicate()
            time.sleep(0.01)

    def sockets(self):
        """How many the recorder has open."""
        def kind(fd):
            try:
                return os.readlink(os.path.join(place, fd)).partition(":")[0]
            except FileNotFoundError:   # it was closed meanwhile
                return ""

        place = f"/proc/{self.child.pid}/fd"
        return [kind(fd) for fd in os.listdir(place)].count("socket")

    def stop(self):
        with open(os.path.join(self.tmp, "stop"), "w", encoding="ascii"):
            pass
        out, self.said = self.child.communicate(timeout=300)
        assert self.child.returncode == 0 and not out, (self.child.returncode, self.said)
        self.path = os.path.join(self.tmp, "kbarman.cap")
        self.capture = Capture(self.path)
        self.records = self.capture.records()
        times = [when for _, _, when, _ in self.records]
        # A machine that is starved is late, and says so.
        assert (times != sorted(times)) == ("came late" in self.said), self.said
        done = tap.run("check", self.path)
        assert done.returncode == 0, done
        return self

    def raw(self, timestamp):
        """As the fake's clock is CLOCK_MONOTONIC in ns, and that of clients is not."""
        tries = [(time.monotonic_ns(), now(), time.monotonic_ns()) for _ in range(100)]
        before, between, behind = min(tries, key=lambda t: t[2] - t[0])
        return timestamp - (before + behind) // 2 + between

    def annotations(self):
        """(type, task, channel, group, colour, text, time)"""
        found = []
        for kind, _, when, data in self.records:
            if kind == "annotation":
                task, size, channel, group, colour, sort = struct.unpack_from("=IQIIIB", data, 16)
                text = data[16 + 25:16 + 25 + size]
                assert len(text) == size and (not size or text[-1] == 0), data
                found.append((sort, task, channel, group, colour, text[:-1].decode(), when))
        return found

    def values(self):
        """(series' name, core, value, time)"""
        found = []
        for kind, core, when, data in self.records:
            if kind == "custom_counter":
                _, series, number = struct.unpack_from("=IIQ", data, 16)
                found.append((self.capture.string(self.capture.series[series][1]), core, number,
                              when))
        return found


def sent(client, *messages):
    """All of it, in pieces that end anywhere; closed when it was taken."""
    data = b"".join(messages)
    for at in range(0, len(data), 7):
        client.sendall(data[at:at + 7])
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    client.close()


def me(tid=0, version=3):
    return setup(tid or os.getpid(), os.getpid(), version=version)


def texts_arrive_with_their_own_times(tmp):
    recording = Recording(tmp)
    begin = now()
    time.sleep(0.02)
    sent(connect(UNIX), me(4711),
         message(4, packed(begin + 1000), packed(7), b"a group"),
         message(3, packed(begin + 2000), packed(3), packed(7), b"a channel"),
         string(begin + 3000, 3, "plain"),
         message(2, packed(begin + 4000), packed(3), b"\x10\x20\x30\x1b", "coloured ü".encode()),
         string(begin + 5000, 3, ""),
         message(6, packed(begin + 6000), b"a marker"),
         message(7, packed(begin + 7000), b"\x01\x00\x00\x02", b"a coloured marker"))
    recording.stop()
    found = recording.annotations()
    assert [entry[:6] for entry in found] == [
        (3, 4711, 0, 7, 0, "a group"),
        (2, 4711, 3, 7, 0, "a channel"),
        (0, 4711, 3, 0, 0, "plain"),
        (0, 4711, 3, 0, 0x1b102030, "coloured ü"),
        (0, 4711, 3, 0, 0, ""),
        (1, 4711, 0, 0, 0, "a marker"),
        (1, 4711, 0, 0, 0x02010000, "a coloured marker")], found
    # a microsecond apart, as they were sent
    steps = [b[6] - a[6] for a, b in zip(found, found[1:])]
    assert all(900 <= step <= 1100 for step in steps), steps
    off = recording.raw(found[0][6]) - begin
    assert abs(off) < 3000000, off
    assert int(recording.capture.facts()["inserted"]) == 7
    assert not os.path.exists(recording.path + ".annotate-side")


def the_same_by_tcp(tmp):
    recording = Recording(tmp)
    sent(connect(TCP), me(), string(now(), 0, "by TCP"))
    recording.stop()
    assert [entry[5] for entry in recording.annotations()] == ["by TCP"]


def a_client_that_is_late_gets_its_place(tmp):
    """What comes within the time that records are held back stands in order."""
    recording = Recording(tmp)
    first, second = connect(UNIX), connect(UNIX)
    begin = now()
    second.sendall(me() + string(begin + 2000000, 0, "second"))
    first.sendall(me() + string(begin, 0, "first"))
    time.sleep(0.5)
    recording.stop()
    assert [entry[5] for entry in recording.annotations()] == ["first", "second"]
    assert "unordered" not in recording.capture.facts()


def a_machine_that_slept_leaves_times_as_they_were(tmp):
    """The counter went on, the clients' clock did not: a second is one all the same."""
    recording = Recording(tmp, FAKE_SLEEP=20000)
    time.sleep(0.5)
    begin = now()
    time.sleep(0.08)
    client = connect(UNIX)
    client.sendall(me() + b"".join(string(begin + step * 10000000, 0, str(step))
                                   for step in range(8)))
    time.sleep(0.5)
    recording.stop()
    times = [entry[6] for entry in recording.annotations()]
    steps = [b - a for a, b in zip(times, times[1:])]
    assert len(steps) == 7 and all(9900000 <= step <= 10100000 for step in steps), steps


def counters_become_series(tmp):
    recording = Recording(tmp)
    begin = now()
    sent(connect(UNIX), me(),
         counter(1, "Frames", "fps", kind=2, display=4, modifier=10),
         counter(2, "Frames", "drawn", kind=4, display=2, per_cpu=1),
         counter(3, "Work", "done", kind=1, display=3),
         value(begin, 0, 1, 599), value(begin + 1000, 1, 2, 3), value(begin + 2000, 0, 3, 1 << 62),
         value(begin + 3000, 0, 1, -5), value(begin + 4000, 99, 2, 4))
    recording.stop()
    assert [entry[:3] for entry in recording.values()] == [
        ("fps", 0, 599), ("drawn", 1, 3), ("done", 0, 1 << 62), ("fps", 0, 2**64 - 5),
        ("drawn", 0, 4)], recording.values()
    capture = recording.capture
    rows = {capture.string(row[1]): row for row in capture.series if capture.string(row[1])}
    assert set(rows) == {"Lost records", "fps", "drawn", "done"}, rows
    assert rows["fps"][4:8] == (0x112233, 0.1, 3, 4), rows["fps"]
    assert rows["drawn"][6:8] == (2, 1) and rows["done"][6:8] == (1, 3), rows
    assert capture.string(rows["fps"][2]) == "units"
    assert capture.string(rows["fps"][3]) == "description"
    chart = capture.charts[rows["drawn"][0]]
    assert capture.string(chart[0]) == "Frames" or chart[3] & 8, chart


def processes_have_series_of_their_own(tmp):
    """The same key and name in two processes; a second thread of one of them."""
    recording = Recording(tmp)
    begin = now()
    for pid, number in (10, 1), (20, 2), (10, 3):
        sent(connect(TCP), setup(pid, pid), counter(1, "Frames", "fps"),
             value(begin + number, 0, 1, number))
    recording.stop()
    assert [entry[:3] for entry in recording.values()] == [
        ("fps", 0, 1), ("fps (20)", 0, 2), ("fps", 0, 3)], recording.values()


def values_of_64_bits_are_whole(tmp):
    """Of a client of any version: all texts have 64 bits, and so has v5's client."""
    numbers = (1 << 31, (1 << 40) + 7, (1 << 63) - 1, -(1 << 40))
    for version in 1, 3, 4, 5:
        recording = Recording(tmp)
        begin = now()
        sent(connect(UNIX), me(version=version), counter(1, "Frames", "fps"),
             *[value(begin + 1000 * i, 0, 1, number) for i, number in enumerate(numbers)])
        recording.stop()
        assert [entry[2] for entry in recording.values()] == [n % 2**64 for n in numbers], version
        assert "negative" not in recording.said, recording.said
        out = os.path.join(tmp, "out.annotate")
        done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
        assert done.returncode == 0 and "more than 32 bits (4)" in done.stderr, done
        with open(out, "rb") as file:
            data = file.read()
        found = []
        for marker, body in stream(data):
            fields, at = [], 0
            while marker == 9 and at < len(body):
                field, at = unpacked(body, at)
                fields.append(field)
            found += fields[3:]
        assert found == list(numbers), found
        os.unlink(os.path.join(tmp, "stop"))
        os.unlink(os.path.join(tmp, "started"))


def values_that_a_client_has_cut_are_said(tmp):
    """Arm's client for v3 and v4 takes uint32_t and packs that as int32: 2^31 is -2^31."""
    for version, said in (3, True), (4, True), (5, False):
        recording = Recording(tmp)
        sent(connect(UNIX), me(version=version), counter(1, "Memory", "bytes"),
             value(now(), 0, 1, 5), value(now(), 0, 1, -(1 << 31)), value(now(), 0, 1, -1))
        recording.stop()
        assert ("sent 2 negative values" in recording.said) == said, recording.said
        os.unlink(os.path.join(tmp, "stop"))
        os.unlink(os.path.join(tmp, "started"))


def cores_that_the_machine_has_not_are_kept_apart(tmp):
    """A GPU's, for example: the capture has two CPUs."""
    recording = Recording(tmp)
    begin = now()
    sent(connect(UNIX), me(), counter(1, "GPU", "busy", per_cpu=1, cores=4),
         *[value(begin + core, core, 1, 100 + core) for core in range(4)])
    recording.stop()
    assert not recording.values()
    out = os.path.join(tmp, "out.annotate")
    done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
    assert done.returncode == 0, done
    found = []
    with open(out, "rb") as file:
        for marker, body in stream(file.read()):
            at, fields = 0, []
            while marker == 9 and at < len(body):
                field, at = unpacked(body, at)
                fields.append(field)
            if fields:
                found.append((fields[1], fields[3]))
    assert found == [(core, 100 + core) for core in range(4)], found


VISUAL = "a picture".encode() + b"\0" + bytes(range(256)) * 300


def all_thirteen(when):
    """One message of each type, those first that a capture can hold."""
    return [string(when, 0, "one"),
            message(2, packed(when), packed(0), b"\1\2\3\x1b", b"two"),
            message(3, packed(when), packed(1), packed(2), b"three"),
            message(4, packed(when), packed(2), b"four"),
            message(5, packed(when), VISUAL),
            message(6, packed(when), b"six"),
            message(7, packed(when), b"\1\2\3\x1b", b"seven"),
            counter(8, "Title", "eight"),
            value(when, 0, 8, 9),
            counter(10, "Activities", "ten", kind=3, activities=("busy", "waits")),
            message(10, packed(when), packed(0), packed(10), packed(1), packed(77)),
            message(11, packed(5), packed(1), packed(-1), b"eleven"),
            message(12, packed(5), packed(1), packed(1), packed(when), packed(1000),
                    b"\1\2\3\x1b", packed(-1), packed(0), b"twelve"),
            message(13, packed(5), b"thirteen")]


def steps(when):
    """A job in three steps, as version 4 has it."""
    return [message(14, packed(5), packed(2), packed(1), packed(when), b"\1\2\3\x1b", b"fourteen"),
            message(15, packed(5), packed(2), packed(when + 1), packed(-1), packed(2), packed(1),
                    packed(7)),
            message(16, packed(5), packed(2), packed(when + 2))]


KEPT_ASIDE = (4, 9, 10, 11, 12, 13)	# indices


def what_a_capture_cannot_hold_is_beside_it(tmp):
    recording = Recording(tmp)
    messages = all_thirteen(now())
    sent(connect(UNIX), me(), *messages)
    recording.stop()
    with open(recording.path + ".annotate-side", "rb") as file:
        side = file.read()
    assert side == me() + b"".join(messages[i] for i in KEPT_ASIDE), len(side)
    assert os.stat(recording.path + ".annotate-side").st_mode & 0o007 == 0
    assert sorted(entry[5] for entry in recording.annotations()) == sorted([
        "one", "two", "three", "four", "a picture", "six", "seven"])
    assert [entry[:3] for entry in recording.values()] == [("eight", 0, 9)]
    assert f"{len(KEPT_ASIDE)} of {len(messages)} messages" in recording.said, recording.said
    assert tap.run("check", recording.path + ".annotate-side").returncode == 0


def every_version_is_taken(tmp):
    for version, last in (1, 9), (2, 13), (3, 13), (4, 16), (5, 16):
        recording = Recording(tmp)
        when = now()
        # the activities of a counter are not in the list of version 1: its colours differ
        messages = [m for m in all_thirteen(when) + steps(when)
                    if m[0] <= last and not (version == 1 and b"ten\0" in m)]
        sent(connect(UNIX), me(version=version), *messages)
        recording.stop()
        assert sorted(entry[5] for entry in recording.annotations()) == sorted([
            "one", "two", "three", "four", "a picture", "six", "seven"]), version
        assert [entry[:3] for entry in recording.values()] == [("eight", 0, 9)], version
        with open(recording.path + ".annotate-side", "rb") as file:
            side = file.read()
        aside = [m for m in messages if m[0] in (5, 10, 11, 12, 13, 14, 15, 16) or b"ten\0" in m]
        assert side == me(version=version) + b"".join(aside), (version, side)
        done = tap.run("check", recording.path + ".annotate-side")
        assert done.returncode == 0, done
        out = os.path.join(tmp, "out.annotate")
        done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
        assert done.returncode == 0 and tap.run("check", out).returncode == 0, done
        with open(out, "rb") as file:
            data = file.read()
        # no more than it needs
        assert data.startswith(b"ANNOTATE 4\n" if last == 16 else b"ANNOTATE 3\n"), data[:11]
        found = stream(data)
        for one in messages:
            if one[0] in (5, 11, 12, 13, 14, 15, 16):
                assert found.count((one[0], one[5:])) == 1, one
        os.unlink(os.path.join(tmp, "stop"))
        os.unlink(os.path.join(tmp, "started"))


def activities_of_version_1_have_short_colours(tmp):
    """Three bytes by its text, and four from version 2 on: the export has four."""
    recording = Recording(tmp)
    sent(connect(UNIX), me(version=1),
         counter(10, "Activities", "ten", kind=3, activities=("busy", "waits"),
                 color=b"\1\2\3"))
    recording.stop()
    out = os.path.join(tmp, "out.annotate")
    done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
    assert done.returncode == 0, done
    with open(out, "rb") as file:
        assert any(b"busy\0\1\2\3\x1bwaits\0\1\2\3\x1b" in body
                   for _, body in stream(file.read()))


def a_stream_of_its_version_has_its_messages_only(tmp):
    when = now()
    for version, marker in (1, 10), (1, 13), (2, 14), (3, 14), (3, 16), (4, 17), (5, 17):
        one = next((m for m in all_thirteen(when) + steps(when) if m[0] == marker),
                   message(17, packed(1)))
        with open(os.path.join(tmp, "stream"), "wb") as file:
            file.write(me(version=version) + one)
        done = tap.run("check", os.path.join(tmp, "stream"))
        assert done.returncode == 1 and "version" in done.stdout + done.stderr, (version, done)


def unpacked(body, at):
    value = shift = 0
    while True:
        byte = body[at]
        value |= (byte & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            return value - (1 << shift if byte & 0x40 else 0), at


def stream(data):
    """(type, body) of the messages behind the setup."""
    assert data.startswith((b"ANNOTATE 3\n", b"ANNOTATE 4\n")), data[:20]
    at, found = 20, []
    while at < len(data):
        marker, length = struct.unpack_from("<Bi", data, at)
        found.append((marker, data[at + 5:at + 5 + length]))
        at += 5 + length
    assert at == len(data)
    return found


def all_of_it_comes_back_as_annotate(tmp):
    recording = Recording(tmp)
    begin = now()
    messages = all_thirteen(begin)
    sent(connect(UNIX), me(), *messages)
    # another process with a counter of that key
    sent(connect(TCP), setup(5, 5), counter(10, "Other", "activity", kind=3, activities=("x",)),
         message(10, packed(begin), packed(0), packed(10), packed(1), packed(78)))
    recording.stop()
    out = os.path.join(tmp, "out.annotate")
    done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
    assert done.returncode == 0, done
    assert tap.run("check", out).returncode == 0
    with open(out, "rb") as file:
        found = stream(file.read())
    assert {marker for marker, _ in found} == set(range(1, 14)), found
    for index in 4, 11, 12, 13:
        wanted = (messages[index][0], messages[index][5:])
        assert found.count(wanted) == 1, index
    assert sum(b"a picture" in body for _, body in found) == 1
    for text in b"one", b"two", b"three", b"four", b"six", b"seven", b"eight", b"ten":
        assert any(text in body for _, body in found), text
    # each activity is of the counter of its own process
    keys = {}
    for name in b"Activities", b"Other":
        body, = (body for marker, body in found if marker == 8 and name + b"\0" in body)
        keys[name] = unpacked(body, 0)[0]
    tids = {}
    for marker, body in found:
        if marker == 10:
            at, fields = 0, []
            while at < len(body):
                field, at = unpacked(body, at)
                fields.append(field)
            tids.setdefault(fields[2], set()).add(fields[4])
    assert tids[keys[b"Activities"]] == {77} and tids[keys[b"Other"]] == {78}, (keys, tids)


def what_is_beside_a_capture_may_be_damaged(tmp):
    recording = Recording(tmp)
    sent(connect(UNIX), me(), *all_thirteen(now()))
    recording.stop()
    out = os.path.join(tmp, "out.annotate")
    with open(recording.path + ".annotate-side", "rb") as file:
        side = file.read()
    for damaged in side[:-3], side[:15], b"A" * 40, b"", side + b"ANNOTATE 9\n" + b"\0" * 9:
        with open(recording.path + ".annotate-side", "wb") as file:
            file.write(damaged)
        done = tap.run("convert", recording.path, "--to", "annotate", "-o", out)
        assert done.returncode in (0, 1) and done.stderr, (damaged[:40], done)
        assert tap.run("check", out).returncode == 0


def pictures_survive_a_renamed_capture_and_are_missed_without_their_file(tmp):
    recording = Recording(tmp)
    sent(connect(UNIX), me(), *all_thirteen(now()))
    recording.stop()
    outs = [os.path.join(tmp, f"{number}.annotate") for number in range(2)]
    assert tap.run("convert", recording.path, "--to", "annotate", "-o", outs[0]).returncode == 0
    renamed = os.path.join(tmp, "renamed.cap")
    os.rename(recording.path, renamed)
    done = tap.run("convert", renamed, "--to", "annotate", "-o", outs[1])
    with open(outs[0], "rb") as one, open(outs[1], "rb") as other:
        assert done.returncode == 0 and one.read() == other.read(), done
    os.remove(recording.path + ".annotate-side")
    done = tap.run("convert", renamed, "--to", "annotate", "-o", outs[1])
    name = os.path.basename(recording.path) + ".annotate-side"
    assert f"there is no {name} beside the capture" in done.stderr, done


def all_was_read():
    """By those that listen here, of what came by TCP."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return not any(int(row[4].split(":")[1], 16) for row in rows if row[1].endswith(":1F93") and row[3] == "01")


def each_clients_setup_is_beside_it(tmp):
    recording = Recording(tmp)
    first, second = connect(TCP), connect(TCP)
    view = message(13, packed(5), b"view")
    for client, data in (first, setup(1, 9) + view), (second, setup(2, 9) + view), (first, view):
        client.sendall(data)
        tap.until(all_was_read, "the recorder's reading")
    first.close()
    second.close()
    recording.stop()
    with open(recording.path + ".annotate-side", "rb") as file:
        side = file.read()
    assert side == setup(1, 9) + view + setup(2, 9) + view + setup(1, 9) + view, side


def parents_are_told_of_the_beginning(tmp):
    """Who asks before the recording begins: which is soon, so it is tried some times."""
    for attempt in range(20):
        told = []

        def ask():
            end = time.monotonic() + 30
            while time.monotonic() < end:
                try:
                    parent = connect(UNIX_PARENT)
                except ConnectionRefusedError:
                    continue
                while not told or told[-1]:
                    told.append(parent.recv(10))
                return

        asking = threading.Thread(target=ask)
        asking.start()
        folder = os.path.join(tmp, str(attempt))
        os.mkdir(folder)
        Recording(folder).stop()
        asking.join()
        if b"".join(told) == b"\0\0":
            return
        assert b"".join(told) == b"\0", told
    raise AssertionError("nobody was told")


def parents_are_told_of_the_end(tmp):
    recording = Recording(tmp)
    before = recording.sockets()
    parents = [connect(UNIX_PARENT), connect(TCP_PARENT)]
    tap.until(lambda: recording.sockets() == before + 2, "that they are taken")
    recording.stop()
    for parent in parents:
        assert parent.recv(10) == b"\0" and parent.recv(10) == b""


def what_was_sent_before_the_end_is_there(tmp):
    recording = Recording(tmp)
    client = connect(UNIX)
    client.sendall(me() + b"".join(string(now(), 0, f"number {i}") for i in range(2000)))
    recording.stop()
    assert {entry[5] for entry in recording.annotations()} == {f"number {i}" for i in range(2000)}
    client.close()


def a_bad_client_is_dropped_alone(tmp):
    recording = Recording(tmp)
    good = connect(UNIX)
    good.sendall(me() + string(now(), 0, "before"))
    for rubbish in (b"GET / HTTP/1.0\r\n\r\n" + b" " * 20, b"ANNOTATE 6\n" + b"\0" * 9,
                    me() + b"\x0e\0\0\0\0", me() + b"\1\xff\xff\xff\x7f", me() + b"\1\xff\xff\xff\xff",
                    me() + message(1, b"\xff" * 20), me() + message(9, packed(1)),
                    me() + counter(1, "a", "b")[:-20] + b"\xff" * 20,
                    me() + b"\5\0\0\0\x70" + b"x" * 100):
        client = connect(UNIX)
        client.sendall(rubbish)
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            pass
        client.close()
    good.sendall(string(now(), 0, "after"))
    time.sleep(0.2)
    recording.stop()
    assert [entry[5] for entry in recording.annotations()] == ["before", "after"]
    assert "was dropped" in recording.said, recording.said


def times_outside_the_recording_are_at_its_ends(tmp):
    recording = Recording(tmp)
    sent(connect(UNIX), me(), string(1, 0, "long ago"), string(now(), 0, "now"),
         string(2**62, 0, "far off"), string(-5, 0, "before the beginning"))
    recording.stop()
    times = [when for _, _, when, _ in recording.records]
    found = {entry[5]: entry[6] for entry in recording.annotations()}
    assert len(found) == 4 and max(found.values()) <= recording.capture.last_timestamp, found
    assert found["long ago"] == found["before the beginning"] <= found["now"] <= found["far off"]
    assert max(times) - min(times) < 30e9


def who_says_he_is_another_is_not_believed(tmp):
    recording = Recording(tmp)
    sent(connect(UNIX), setup(1, 1), string(now(), 0, "I am init"))
    recording.stop()
    assert recording.annotations()[0][1] == os.getpid()


def one_listens_at_a_time(tmp):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind("\0streamline-annotate")
        other.listen()
        done = recorder.record(tmp, "--annotate-socket", "true")
    assert done.returncode == 2 and "gatord" in done.stderr, done
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 8083))
        other.listen()
        done = recorder.record(tmp, "--annotate-socket", "true")
    assert done.returncode == 2 and "8083" in done.stderr, done


def nothing_listens_unless_asked(tmp):
    with recorder.start(tmp, env=recorder.fake(FAKE_RATE=1)) as child:
        for where in UNIX, TCP, UNIX_PARENT, TCP_PARENT:
            try:
                connect(where)
            except ConnectionRefusedError:
                continue
            raise AssertionError(where)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=300)


def tcp_listens_on_loopback_only(tmp):
    recording = Recording(tmp)
    listening = []
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                listening.append(fields[1])
    recording.stop()
    assert sorted(listening) == ["0100007F:1F92", "0100007F:1F93"], listening


def overwrite_mode_has_them_too(tmp):
    recording = Recording(tmp, "--mode", "overwrite")
    begin = now()
    sent(connect(UNIX), me(), *[string(begin + i, 0, f"number {i}") for i in range(3000)])
    recording.stop()
    assert {entry[5] for entry in recording.annotations()} == {f"number {i}" for i in range(3000)}


if __name__ == "__main__":
    own_network()
    recorder.main(globals())
