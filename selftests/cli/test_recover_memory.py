#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman recover` of memory: captures whose pages are anywhere, with beacons that say where.

KBARMAN_SEED is the chance's seed."""
import gzip
import json
import os
import random
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tap
from barman_image import Image

SEED = int(os.environ.get("KBARMAN_SEED", "7"))
PAGE = 4096
MAGIC = 0x424541434f4e3031
STAMP = 0x5354414d50303031
BASE = 0x40000000
RUNNING = 2
SWITCH = 3
SYMBOLS = (1 << 64) - 1
KALLSYMS = b"ffffffff81000000 T panic\nffffffff81000018 t sysrq_handle_crash\nffffffffc0000000 t probe\t[kbarman]\n"


def total_of(words, magic):
    total = magic
    for word in words:
        total = ((total ^ word) * 0x100000001b3) % (1 << 64)
    return total


def sealed(order, words, magic=MAGIC):
    """A beacon with these @words behind its sum; the begin of a stamp, too."""
    return struct.pack(f"{order}{2 + len(words)}Q", magic, total_of(words, magic), *words)


def beacon(order, capture, header_bytes, map_bytes, part, first, frames):
    return sealed(order, [capture, PAGE, header_bytes, map_bytes, part, first, len(frames), *frames])


def stamp(capture, order="<", address=BASE, began=1795932900, size=PAGE, **end):
    """How a recording ended: see uapi/stamp.h."""
    end = {"end": 2, "cpu": 1, "task": 1234, "ticks": 7000, "comm": b"bash", "text": b"Fatal exception",
           "chain": [0xffffffff81000010, 0xffffffff81000020], **end}
    said = struct.pack(f"{order}QIIII16s128s16Q", end["ticks"], end["end"], end["cpu"], end["task"],
                       end.get("nr", len(end["chain"])), end["comm"], end["text"], *(end["chain"] + [0] * 16)[:16])
    total = total_of(struct.unpack(f"{order}{len(said) // 8}Q", said), STAMP) if end["end"] else 0
    return (sealed(order, [capture, address, 1000, 1, began * 10**9], STAMP) +
            struct.pack(f"{order}QQ", size, total) + said).ljust(PAGE, b"\0")


class Memory:
    """Sessions are put where there is room, page by page; the rest is noise."""

    def __init__(self, pages=400, seed=SEED):
        self.random = random.Random(seed)
        self.pages = [self.random.randbytes(PAGE) for _ in range(pages)]
        self.free = list(range(pages))
        self.random.shuffle(self.free)
        self.beacons = []       # numbers of their pages
        self.capture = 0        # of the last session

    def put(self, page):
        at = self.free.pop()
        self.pages[at] = page.ljust(PAGE, b"\0")
        return at + BASE // PAGE

    def add(self, maps, order="<", header_bytes=PAGE):
        """The @maps of the CPUs of a session, whose first @header_bytes are the same."""
        self.capture = self.random.getrandbits(64)
        rings = [its[header_bytes:] for its in maps]
        for part, data in enumerate([maps[0][:header_bytes], *rings]):
            self.add_part(part, data, order, header_bytes, len(maps[0]))

    def add_part(self, part, data, order="<", header_bytes=PAGE, map_bytes=6 * PAGE):
        frames = [self.put(data[at:at + PAGE]) for at in range(0, len(data), PAGE)]
        for first in range(0, len(frames), 3):
            self.beacons.append(self.put(beacon(order, self.capture, header_bytes, map_bytes, part, first,
                                                frames[first:first + 3])) - BASE // PAGE)

    def add_symbols(self, packed, order="<", size=None):
        """Beside the rings of the last session."""
        self.add_part(SYMBOLS, struct.pack(f"{order}Q", len(packed) if size is None else size) + packed, order)

    def put_stamp(self, *args, **end):
        at = self.free.pop()
        self.pages[at] = stamp(self.capture, *args, address=BASE + at * PAGE, **end)
        return at

    def save(self, path):
        with open(path, "wb") as file:
            file.write(b"".join(self.pages))


def maps_of(session, word=8, order="<", state=0):
    """Two CPUs, each with a map as the device has it: a page of header, a ring of four pages, a tail."""
    maps = []
    for cpu in range(2):
        def image(pad):
            made = Image(word, order, max_maps=0, counters=0, strings=["kbarman.ext=1", "x" * pad])
            made.task(0, 7 + session, f"task_{session}")
            return made
        made = image(PAGE - (len(image(1).bytes()) - 40) + 1 & ~3)
        for i in range(500):
            made.record(SWITCH, cpu, 2000 + 10 * i + cpu, "IBB", 7 + session if i % 2 else 0, 0, 0)
        length = len(made.data)
        made.data = made.data.ljust(4 * PAGE, b"\0")
        made.offsets = (4 * PAGE, length, 0, length)
        data = made.bytes()
        assert len(data) == 5 * PAGE + 40, len(data)
        data += struct.pack(f"{order}IIIIQQII20Q", 208, 3, cpu, word, session, 1, 0, state, *[0] * 20)
        maps.append(data.ljust(6 * PAGE, b"\0"))
    return maps


def merged(tmp, maps):
    """What `kbarman merge` makes of the same maps in files."""
    paths = []
    for cpu, data in enumerate(maps):
        paths.append(os.path.join(tmp, f"map.{cpu}"))
        with open(paths[-1], "wb") as file:
            file.write(data)
    done = tap.run("merge", "-o", os.path.join(tmp, "merged"), *paths)
    assert done.returncode == 0, done
    with open(os.path.join(tmp, "merged"), "rb") as file:
        return file.read()


def recover(tmp, memory, *options):
    memory.save(os.path.join(tmp, "raw"))
    return tap.run("recover", "--base", hex(BASE), *options, "raw", cwd=tmp)


def content(tmp, name):
    with open(os.path.join(tmp, name), "rb") as file:
        return file.read()


def pages_that_are_anywhere_become_the_capture_of_the_maps(tmp):
    for word in 4, 8:
        for order in "<", ">":
            memory, maps = Memory(), maps_of(5, word, order)
            memory.add(maps, order)
            done = recover(tmp, memory, "-o", "out.cap")
            assert done.returncode == 0, done
            assert content(tmp, "out.cap") == merged(tmp, maps), (word, order)
    assert len(tap.run("script", "out.cap", cwd=tmp).stdout.splitlines()) > 900


def each_session_has_a_capture_of_its_own(tmp):
    memory = Memory()
    for session in 9, 4:
        memory.add(maps_of(session))
    done = recover(tmp, memory)
    assert done.returncode == 0, done
    for session in 4, 9:
        assert content(tmp, f"raw.{session}.cap") == merged(tmp, maps_of(session)), session
    done = recover(tmp, memory, "-o", "one.cap")
    assert done.returncode == 2 and "--session" in done.stderr and not os.path.exists(os.path.join(tmp, "one.cap"))
    done = recover(tmp, memory, "--session", "9", "-o", "one.cap")
    assert done.returncode == 0 and content(tmp, "one.cap") == content(tmp, "raw.9.cap"), done
    done = recover(tmp, memory, "--session", "5")
    assert done.returncode == 2 and "no capture of session 5" in done.stderr, done


def a_capture_that_exists_is_not_replaced(tmp):
    memory = Memory()
    memory.add(maps_of(3))
    assert recover(tmp, memory).returncode == 0
    before = content(tmp, "raw.3.cap")
    done = recover(tmp, memory)
    assert done.returncode == 2 and "exists already" in done.stderr, done
    assert content(tmp, "raw.3.cap") == before


def a_session_that_ran_is_told(tmp):
    memory = Memory()
    memory.add(maps_of(3, state=RUNNING))
    done = recover(tmp, memory)
    assert done.returncode == 0 and "session 3 was recording when the machine stopped" in done.stderr, done


def facts(tmp, name="out.cap"):
    return dict(re.findall(rb"kbarman\.(end\w*)=([^\0]*)", content(tmp, name)))


def a_stamp_says_how_a_recording_ended(tmp):
    for order in "<", ">":
        memory, maps = Memory(), maps_of(5, order=order)
        memory.add(maps, order)
        memory.put_stamp(order)
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode == 0, done
        assert "ended with a panic: Fatal exception; CPU 1 ran bash (task 1234)" in done.stderr, done
        assert facts(tmp) == {b"end": b"panic", b"end_ticks": b"7000", b"end_cpu": b"1", b"end_task": b"1234,bash",
                              b"end_text": b"Fatal exception",
                              b"end_chain": b"0xffffffff81000010,0xffffffff81000020"}, facts(tmp)
        assert re.search(r"# ended    : -?[\d.]+ s: with a panic: Fatal exception; CPU 1 ran bash \(task 1234\)",
                         tap.run("report", "out.cap", cwd=tmp).stdout)
        assert re.search(r"^ended +with a panic: Fatal exception", tap.run("info", "out.cap", cwd=tmp).stdout, re.M)
        lines = map(json.loads, tap.run("info", "-j", "out.cap", cwd=tmp).stdout.splitlines())
        end, = (line for line in lines if line["kind"] == "end")
        assert (end["how"], end["cpu"], end["tid"], end["task"], end["text"]) == \
            ("panic", 1, 1234, "bash", "Fatal exception"), end


def an_end_that_linux_did_not_finish_to_tell_is_told_as_far_as_it_is(tmp):
    for end, says in ({"end": 0}, "without a word from Linux"), \
            ({"end": 1, "text": b"power off", "comm": b"init"}, "ended with a reboot: power off; CPU 1 ran init"):
        memory = Memory()
        memory.add(maps_of(5))
        memory.put_stamp(**end)
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode == 0 and says in done.stderr, done
        assert facts(tmp)[b"end"] == [b"unknown", b"reboot", b"panic"][end["end"]]
        assert (b"end_cpu" in facts(tmp)) == (end["end"] == 1), facts(tmp)


def the_kernels_symbols_are_beside_the_capture(tmp):
    for order in "<", ">":
        memory, maps = Memory(), maps_of(5, order=order)
        memory.add(maps, order)
        memory.add_symbols(gzip.compress(KALLSYMS), order)
        memory.put_stamp(order)
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode == 0 and content(tmp, "out.cap.kallsyms") == KALLSYMS, done
        assert "\n#            in panic < sysrq_handle_crash\n" in tap.run("report", "out.cap", cwd=tmp).stdout
        done = recover(tmp, memory)
        assert done.returncode == 0 and content(tmp, "raw.5.cap.kallsyms") == KALLSYMS, done
        os.remove(os.path.join(tmp, "raw.5.cap"))
    memory.save(os.path.join(tmp, "raw"))
    with open(os.path.join(tmp, "piped"), "wb") as pipe:
        done = tap.run("recover", "-q", "--base", hex(BASE), "-o", "-", "raw", cwd=tmp, capture_output=False, stdout=pipe)
    assert done.returncode == 0 and not os.path.exists(os.path.join(tmp, "-.kallsyms")), done
    done = recover(tmp, memory, "-o", "/dev/null")
    assert done.returncode == 0 and not os.path.exists("/dev/null.kallsyms"), done


def without_symbols_there_are_none_beside_it(tmp):
    for symbols in None, b"":       # a crash before all of them were there
        memory = Memory()
        memory.add(maps_of(5))
        if symbols is not None:
            memory.add_symbols(symbols)
        with open(os.path.join(tmp, "out.cap.kallsyms"), "wb"):
            pass                    # of a former capture
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode == 0 and "symbols" not in done.stderr, done
        assert not os.path.exists(os.path.join(tmp, "out.cap.kallsyms"))


def symbols_that_are_damaged_are_told_and_cost_nothing_else(tmp):
    packed = gzip.compress(random.Random(SEED).randbytes(3 * PAGE))
    broken = bytearray(packed)
    broken[2 * PAGE] ^= 1
    bomb = gzip.compress(bytes((64 << 20) + 1))
    for its, size, says in (broken, None, "damaged"), (packed[:-9], None, "damaged"), (b"x" * 99, None, "damaged"), \
            (bomb, None, "more than 64 MiB"), (packed, len(packed) + PAGE, "lacks pages"), \
            (packed, (16 << 20) + 1, "how many"), (packed, (1 << 64) - 1, "how many"):
        memory, maps = Memory(), maps_of(5)
        memory.add(maps)
        memory.add_symbols(its, size=size)
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode == 1 and "symbols are left out: " in done.stderr and says in done.stderr, (size, done)
        assert content(tmp, "out.cap") == merged(tmp, maps), (size, says)
        assert not os.path.exists(os.path.join(tmp, "out.cap.kallsyms"))


def symbols_alone_are_no_capture(tmp):
    memory = Memory()
    memory.capture = 7
    memory.add_symbols(gzip.compress(KALLSYMS))
    done = recover(tmp, memory)
    assert done.returncode == 2 and "has no capture" in done.stderr, done


def with_damaged_stamps(tmp, wrong, places):
    """What recover says of stamps with these @wrong fields, and with a bit wrong in each byte of @places."""
    for fields, at in [(fields, None) for fields in wrong] + [({}, at) for at in places]:
        memory = Memory()
        memory.add(maps_of(5))
        number = memory.put_stamp(**fields)
        if at is not None:
            page = bytearray(memory.pages[number])
            page[at] ^= 1 << at % 8
            memory.pages[number] = bytes(page)
        yield fields or at, recover(tmp, memory, "-o", "out.cap")


def no_end_is_believed_that_is_damaged(tmp):
    wrong = [{"end": 3}, {"nr": 17}, {"text": b"x" * 128}, {"comm": b"y" * 16}]
    for at, done in with_damaged_stamps(tmp, wrong, range(64, 368, 11)):
        assert done.returncode == 0 and "1 pages begin as" in done.stderr and "without a word" in done.stderr, (at, done)
        assert facts(tmp) == {b"end": b"unknown"}


def no_stamp_is_believed_that_is_damaged(tmp):
    wrong = [{"size": 0}, {"size": PAGE + 1}]
    for at, done in with_damaged_stamps(tmp, wrong, range(8, 56, 5)):
        assert done.returncode == 0 and "1 pages begin as" in done.stderr and "recording ended" not in done.stderr, (at, done)
        assert not facts(tmp)


def what_a_stamp_says_controls_no_terminal(tmp):
    memory = Memory()
    memory.add(maps_of(5))
    memory.put_stamp(text=b"a\x1b[2Jb\nkbarman: \xff", comm=b"e\x07\x9bvil")
    done = recover(tmp, memory, "-o", "out.cap")
    assert done.returncode == 0 and "a?[2Jb?kbarman: ?; CPU 1 ran e??vil" in done.stderr, done
    for verb in "report", "info":
        assert "a?[2Jb?kbarman: ?; CPU 1 ran e??vil" in tap.run(verb, "out.cap", cwd=tmp).stdout, verb


def a_stamp_of_another_recording_or_place_says_nothing(tmp):
    memory = Memory()
    memory.add(maps_of(5))
    memory.capture += 1
    memory.put_stamp()
    memory.pages[memory.free.pop()] = stamp(memory.capture - 1, address=BASE + 17)
    done = recover(tmp, memory, "-o", "out.cap")
    assert done.returncode == 0 and "recording ended" not in done.stderr and not facts(tmp), done


def memory_that_ends_early_is_told(tmp):
    memory, maps = Memory(60), maps_of(3)
    memory.add(maps)
    last = max(i for i, page in enumerate(memory.pages) if any(its[at:at + PAGE] == page for its in maps
                                                               for at in range(PAGE, 4 * PAGE, PAGE)))
    beacons = [memory.pages[at] for at in memory.beacons]
    del memory.pages[last:]
    memory.pages = beacons + memory.pages[len(beacons):]
    done = recover(tmp, memory, "-o", "out.cap")
    assert done.returncode in (1, 2) and "the memory lacks pages" in done.stderr, done


def memory_without_a_capture_says_so(tmp):
    done = recover(tmp, Memory())
    assert done.returncode == 2 and "has no capture" in done.stderr, done


def a_page_that_only_begins_as_a_beacon_is_told(tmp):
    memory = Memory()
    memory.add(maps_of(3))
    memory.pages[memory.free[0]] = struct.pack("<Q", MAGIC) + bytes(PAGE - 8)
    done = recover(tmp, memory)
    assert done.returncode == 0 and "1 pages begin as" in done.stderr, done


def no_beacon_is_believed_that_has_a_wrong_byte(tmp):
    whole, maps = Memory(), maps_of(3)
    whole.add(maps)
    right = merged(tmp, maps)
    for at in range(8, 80, 3):      # a beacon has one frame at least
        memory, number = Memory(), whole.beacons[at % len(whole.beacons)]
        memory.pages = list(whole.pages)
        page = bytearray(memory.pages[number])
        page[at] ^= 1 << at % 8
        memory.pages[number] = bytes(page)
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode in (1, 2) and "1 pages begin as" in done.stderr, (at, done)
        if done.returncode == 1:
            assert content(tmp, "out.cap") != right and "the memory lacks pages" in done.stderr, done


def what_beacons_say_of_memory_may_be_anything(tmp):
    """They are whole, and lie."""
    chance = random.Random(SEED)
    for _ in range(60):
        memory, maps = Memory(), maps_of(3)
        memory.add(maps)
        memory.add_symbols(gzip.compress(KALLSYMS) + bytes(3 * PAGE))
        for number in chance.sample(memory.beacons, 3):
            words = list(struct.unpack("<9Q", memory.pages[number][:72]))
            frames = list(struct.unpack("<3Q", memory.pages[number][72:96]))[:words[8]]
            for _ in range(chance.randrange(1, 4)):
                which = chance.randrange(2, 9)
                words[which] = chance.choice([0, 1, words[which] + 1, words[which] << 1, 1 << 40, (1 << 64) - 1,
                                              chance.getrandbits(64)]) % (1 << 64)
            frames = [chance.choice([frame, 0, (1 << 64) - 1, chance.getrandbits(40)]) for frame in frames]
            memory.pages[number] = sealed("<", words[2:] + frames).ljust(PAGE, b"\0")
        done = recover(tmp, memory, "-o", "out.cap")
        assert done.returncode in (0, 1, 2), done


def options_of_memory_are_for_memory(tmp):
    Image().save(os.path.join(tmp, "x.cap"))
    done = tap.run("recover", "--session", "3", "x.cap", cwd=tmp)
    assert done.returncode == 2 and "no memory dump" in done.stderr, done
    for value in "", "x", "-1", "0x", "1G":
        done = tap.run("recover", "--base", value, "x.cap", cwd=tmp)
        assert done.returncode == 2 and "--base wants a number" in done.stderr, (value, done)


if __name__ == "__main__":
    tap.main(globals())
