#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`kbarman recover --previous`: recordings in memory that survived a reset, on fake_device.c."""
import gzip
import json
import os
import stat
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
from examples import BLACKBOX, TREE, examples
from test_record import fake, main
from test_recover_memory import BASE, KALLSYMS, Memory, PAGE, content, facts, maps_of, merged, stamp

PANIC = "previous-20261129T061500Z.cap"
REBOOT = "previous-20261129T061640Z.cap"


def former(tmp, name, maps, seed=7, symbols=None, **end):
    """The memory of a recording: its stamp, and pages behind that. Returns it and its path."""
    memory = Memory(40, seed)
    memory.free = sorted(memory.free, reverse=True)[:-1]
    memory.add(maps)
    if symbols:
        memory.add_symbols(gzip.compress(symbols))
    memory.pages = memory.pages[:memory.free[-1]]
    memory.pages[0] = stamp(memory.capture, **{"size": len(memory.pages) * PAGE, **end})
    memory.save(os.path.join(tmp, name))
    return memory, os.path.join(tmp, name)


def two(folder):
    maps = maps_of(1), maps_of(1, state=2)
    return maps, [former(folder, "half.0", maps[0])[1],
                  former(folder, "half.1", maps[1], 8, end=1, text=b"restart", began=1795933000)[1]]


def previous(tmp, *options, formers=(), **settings):
    return tap.run("recover", "--previous", *options, cwd=tmp, env=fake(FAKE_FORMER=":".join(formers), **settings))


def each_recording_has_a_capture_that_says_when_it_began_and_how_it_ended(tmp):
    maps, formers = two(tmp)
    done = previous(tmp, formers=formers)
    assert done.returncode == 0, done
    assert "ended with a panic: Fatal exception" in done.stderr and "ended with a reboot: restart" in done.stderr, done
    for name, its, how in (PANIC, maps[0], b"panic"), (REBOOT, maps[1], b"reboot"):
        assert facts(tmp, name)[b"end"] == how
        os.rename(os.path.join(tmp, name), os.path.join(tmp, "got"))
        script = tap.run("script", "got", cwd=tmp).stdout
        merged(tmp, its)
        assert script == tap.run("script", "merged", cwd=tmp).stdout and len(script.splitlines()) > 900
        assert stat.S_IMODE(os.stat(os.path.join(tmp, "got")).st_mode) == 0o640
    assert os.path.exists(formers[0]) and os.path.exists(formers[1])


def the_kernels_symbols_are_beside_it(tmp):
    _, path = former(tmp, "half", maps_of(1), symbols=KALLSYMS)
    done = previous(tmp, "--release", formers=[path])
    assert done.returncode == 0 and content(tmp, PANIC + ".kallsyms") == KALLSYMS, done
    assert "in panic < sysrq_handle_crash" in tap.run("report", PANIC, cwd=tmp).stdout


def memory_stays_if_they_cant_be_written(tmp):
    _, path = former(tmp, "half", maps_of(1), symbols=KALLSYMS)
    os.mkdir(os.path.join(tmp, PANIC + ".kallsyms"))
    done = previous(tmp, "--release", formers=[path])
    assert done.returncode == 2 and f"can't write {PANIC}.kallsyms" in done.stderr and os.path.exists(path), done
    assert facts(tmp, PANIC)[b"end"] == b"panic"


def one_of_two_is_chosen_by_its_number(tmp):
    _, formers = two(tmp)
    done = previous(tmp, "-o", "out.cap", formers=formers)
    assert done.returncode == 2 and "--previous=0" in done.stderr and not os.path.exists(os.path.join(tmp, "out.cap"))
    for number, how in enumerate((b"panic", b"reboot")):
        done = tap.run("recover", f"--previous={number}", "-o", "out.cap", cwd=tmp,
                       env=fake(FAKE_FORMER=":".join(formers)))
        assert done.returncode == 0 and facts(tmp)[b"end"] == how, done
    for number in "2", "x", "01", "":
        done = tap.run("recover", f"--previous={number}", cwd=tmp, env=fake(FAKE_FORMER=formers[0]))
        assert done.returncode == 2 and "give 0 or 1" in done.stderr, (number, done)
    done = tap.run("recover", "--previous=1", cwd=tmp, env=fake(FAKE_FORMER=formers[0]))
    assert done.returncode == 2 and "with that number" in done.stderr, done


def memory_is_released_when_its_capture_is_on_the_disk(tmp):
    _, formers = two(tmp)
    done = previous(tmp, "--release", "-o", "-", formers=formers[:1])
    assert done.returncode == 2 and "--release needs" in done.stderr and os.path.exists(formers[0]), done
    with open(os.path.join(tmp, REBOOT), "wb"):
        pass
    done = previous(tmp, "--release", formers=formers)
    assert done.returncode == 1 and "exists already" in done.stderr, done
    assert not os.path.exists(formers[0]) and os.path.exists(formers[1])
    assert facts(tmp, PANIC)[b"end"] == b"panic"
    assert content(tmp, REBOOT) == b""


def both_are_released(tmp):
    _, formers = two(tmp)
    done = previous(tmp, "--release", formers=formers)
    assert done.returncode == 0 and not os.path.exists(formers[0]) and not os.path.exists(formers[1]), done


def memory_without_a_capture_stays(tmp):
    memory, path = former(tmp, "half", maps_of(1))
    for number in memory.beacons:
        memory.pages[number] = bytes(PAGE)
    memory.save(path)
    done = previous(tmp, "--release", formers=[path])
    assert done.returncode == 2 and "has no capture" in done.stderr and os.path.exists(path), done


def what_is_left_of_other_recordings_is_left_out(tmp):
    memory, path = former(tmp, "half", maps_of(1))
    capture = memory.capture
    memory.pages += [bytes(PAGE)] * 40
    memory.free = list(range(len(memory.pages) - 1, len(memory.pages) - 40, -1))
    memory.add(maps_of(2))
    memory.pages[0] = stamp(capture, size=len(memory.pages) * PAGE)
    memory.save(path)
    done = previous(tmp, formers=[path])
    assert done.returncode == 0 and "task_2" not in tap.run("script", PANIC, cwd=tmp).stdout, done
    assert os.listdir(tmp).count(PANIC) == 1 and len([name for name in os.listdir(tmp) if ".cap" in name]) == 1


def memory_that_ends_early_is_told(tmp):
    _, path = former(tmp, "half", maps_of(1))
    size = os.path.getsize(path)
    for cut in 0, 100, PAGE, size // 2, size - PAGE:
        with open(path, "r+b") as file:
            whole = file.read()
            file.truncate(cut)
        done = previous(tmp, formers=[path], FAKE_FORMER_BYTES=size)
        assert done.returncode in (1, 2), (cut, done)
        done = previous(tmp, "-o", "cut.cap", formers=[path])
        assert done.returncode in (1, 2), (cut, done)
        with open(path, "wb") as file:
            file.write(whole)


def any_byte_may_be_wrong(tmp):
    memory, path = former(tmp, "half", maps_of(1))
    for _ in range(40):
        damaged = Memory(0)
        damaged.pages = [bytearray(page) for page in memory.pages]
        for _ in range(20):
            page = memory.random.choice(damaged.pages)
            page[memory.random.choice([memory.random.randrange(PAGE), memory.random.randrange(72)])] ^= \
                1 << memory.random.randrange(8)
        damaged.save(path)
        done = previous(tmp, "-o", "out.cap", formers=[path])
        assert done.returncode in (0, 1, 2) and "stopped by the sandbox" not in done.stderr, done


def what_is_missing_is_said_with_what_to_do(tmp):
    done = tap.run("recover", "--previous", cwd=tmp, env=fake())
    assert done.returncode == 2 and "load it with its parameter memory" in done.stderr, done
    assert done.stderr.count("parameter memory") == 1, done
    done = previous(tmp)
    assert done.returncode == 2 and "has no recording of before this boot" in done.stderr, done
    done = previous(tmp, FAKE_FAIL="former:1")
    assert done.returncode == 2 and "run as root" in done.stderr, done
    if not os.path.exists("/dev/kbarman"):
        done = tap.run("recover", "--previous", cwd=tmp)
        assert done.returncode == 2 and "load the module" in done.stderr, done


def options_that_do_not_go_together_are_told(tmp):
    for options in (["x.cap"], ["--session", "1"], ["--base", "0"]):
        done = previous(tmp, *options)
        assert done.returncode == 2 and "leave out FILE" in done.stderr, done
    done = tap.run("recover", "--release", cwd=tmp)
    assert done.returncode == 2 and "give --previous" in done.stderr, done


def list_shows_them(tmp):
    _, formers = two(tmp)
    env = fake(FAKE_FORMER=":".join(formers), TZ="UTC")
    done = tap.run("list", "--sessions", cwd=tmp, env=env)
    assert done.returncode == 0, done
    assert "before this boot, number 0: began 2026-11-29 06:15:00, ended by panic, 1 MiB: " \
        "'kbarman recover --previous=0'\n" in done.stdout, done
    assert "number 1: began 2026-11-29 06:16:40, ended by reboot" in done.stdout, done
    done = tap.run("list", "--sessions", "-j", cwd=tmp, env=env)
    assert [json.loads(line) for line in done.stdout.splitlines()][0] == {
        "kind": "former", "number": 0, "end": "panic", "began_ns": 1795932900 * 10**9,
        "bytes": os.path.getsize(formers[0]), "uid": 1000}, done
    done = tap.run("list", "--sessions", cwd=tmp, env=fake(FAKE_FORMER=formers[0], FAKE_FAIL="former:1"))
    assert done.returncode == 0 and "run as root" in done.stderr and not done.stdout, done


def record_uses_the_memory(tmp):
    done = tap.run("record", "--reserved", "true", cwd=tmp, env=fake(FAKE_FORMER="/nowhere"))
    assert done.returncode == 0, done
    done = tap.run("record", "--reserved", "true", cwd=tmp, env=fake())
    assert done.returncode == 2 and "load it with its parameter memory" in done.stderr, done
    for error, says in (28, "into a half of the memory"), (98, "others have the memory"):
        done = tap.run("record", "--reserved", "true", cwd=tmp,
                       env=fake(FAKE_FORMER="/nowhere", FAKE_FAIL=f"configure:{error}"))
        assert done.returncode == 2 and says in done.stderr, (error, done)
    done = tap.run("record", "true", cwd=tmp, env=fake(FAKE_FAIL="configure:16"))
    assert done.returncode == 2 and "as many programs record" in done.stderr and "reset" not in done.stderr, done


def each_command_of_the_page_works(tmp):
    _, formers = two(tmp)
    with open(formers[0], "rb") as file:
        memory = file.read()
    # as LiME writes it
    with open(os.path.join(tmp, "dump.202611290615"), "wb") as file:
        file.write(struct.pack("<IIQQQ", 0x4c694d45, 1, BASE, BASE + len(memory) - 1, 0) + memory)
    with open(os.path.join(tmp, "memory.raw"), "wb") as file:
        file.write(memory)
    with open(os.path.join(tmp, "app"), "w", encoding="ascii") as file:
        os.chmod(file.name, 0o755)
        file.write("#!/bin/sh\n")
    commands = [command.split()[1:] for place, command in examples() if place.startswith(BLACKBOX)]
    assert len(commands) == 7, commands
    for command in commands:
        done = tap.run(*command, cwd=tmp, env=fake(FAKE_FORMER=":".join(formers)))
        assert done.returncode == 0, (command, done)
        if "--previous" in command:
            with open(os.path.join(TREE, "user", "man", "kbarman-blackbox.7"), encoding="utf-8") as page:
                said, = (line for line in page if line.startswith("ended with"))
            assert said in done.stderr, done


if __name__ == "__main__":
    main(globals())
