#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What was recorded before this boot, in the folder of kbarmand: fake_device.c's memory that survived a reset."""
import gzip
import os
import shutil
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import preload
import tap
import test_record
from test_agent import STUCK, Running, captures, configure, facts, state_of, until
from test_previous import former, two
from test_record import fake, main
from test_recover_memory import KALLSYMS, PAGE, content, maps_of, merged


def running(tmp, *formers, **settings):
    return Running(tmp, env=fake(FAKE_FORMER=":".join(formers), **settings))


def of(tmp, session, suffix=".cap"):
    return [path for path in captures(tmp, suffix) if os.path.basename(path).startswith(session + "-")]


def until_released(*formers):
    until(lambda: not any(os.path.exists(path) for path in formers), "the memory is not released")


def each_recording_is_a_capture_of_the_folder_and_its_memory_is_free(tmp):
    maps, formers = two(tmp)
    configure(tmp)
    with running(tmp, *formers) as agent:
        until_released(*formers)
        assert state_of(tmp)["health"] == "well", state_of(tmp)
    assert agent.status == 0 and not captures(tmp, ".part"), agent.said
    ours = of(tmp, "before_boot")
    assert sorted(facts(path)["end"] for path in ours) == ["panic", "reboot"], ours
    for path in ours:
        assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(of(tmp, "all")[0]).st_mode)
        merged(tmp, maps[facts(path)["end"] == "reboot"])
        assert tap.run("script", path).stdout == tap.run("script", "merged", cwd=tmp).stdout
    assert "ended with a panic: Fatal exception; CPU 1 ran bash" in agent.said, agent.said
    assert agent.said.count("session before_boot: what was recorded before this boot is written") == 2, agent.said


def the_kernels_symbols_have_the_name_of_the_capture(tmp):
    _, path = former(tmp, "half", maps_of(1), symbols=KALLSYMS)
    configure(tmp)
    with running(tmp, path):
        until_released(path)
    capture, = of(tmp, "before_boot")
    assert content("", capture + ".kallsyms") == KALLSYMS and not captures(tmp, ".part.kallsyms")


def a_session_takes_memory_when_what_was_there_is_written(tmp):
    """Else it takes a half that has a recording."""
    _, formers = two(tmp)
    configure(tmp, session="reserved = yes")
    with running(tmp, *formers, FAKE_SYMBOLS=os.path.join(tmp, "kept")) as agent:
        until_released(*formers)
        until(lambda: of(tmp, "all"), "the session does not begin")
    assert agent.status == 0 and "kernel symbols" not in agent.said, agent.said
    assert b" T _stext\n" in gzip.decompress(content(tmp, "kept"))
    assert sorted(facts(path)["end"] for path in of(tmp, "before_boot")) == ["panic", "reboot"], agent.said


def what_is_written_and_not_released_is_not_written_again(tmp):
    """Also if it has not got its name, or was taken away meanwhile."""
    _, path = former(tmp, "half", maps_of(1))
    kept = shutil.copy(path, os.path.join(tmp, "kept"))
    configure(tmp)
    with running(tmp, path):
        until_released(path)
    capture, = of(tmp, "before_boot")
    for change in (lambda: None, lambda: os.rename(capture, capture.replace(".cap", ".part")),
                   lambda: os.remove(capture)):
        shutil.copy(kept, path)
        change()
        there = os.path.exists(capture.replace(".cap", ".part")) or os.path.exists(capture)
        with running(tmp, path):
            until_released(path)
        assert of(tmp, "before_boot") == [capture] * there, captures(tmp)


def another_recording_of_the_same_time_is_another_one(tmp):
    """A machine without a clock begins all its recordings in one second."""
    configure(tmp)
    for seed in 7, 8:
        _, path = former(tmp, "half", maps_of(1), seed)
        with running(tmp, path):
            until_released(path)
    assert len(of(tmp, "before_boot")) == 2, captures(tmp)


def released_when_synced(tmp, name):
    """Files that have @name in theirs."""
    _, path = former(tmp, "half", maps_of(1), symbols=KALLSYMS)
    hold = os.path.join(tmp, "hold")
    with open(hold, "wb"):
        pass
    stuck = preload.build(tmp, "stuck", STUCK)
    configure(tmp)
    with running(tmp, path, LD_PRELOAD=f"{test_record.FAKE}:{stuck}", STUCK=hold, STUCK_NAME=name) as agent:
        until(lambda: of(tmp, "before_boot", ".part"), "it does not begin")
        time.sleep(1)
        assert os.path.exists(path) and not of(tmp, "before_boot"), (captures(tmp), agent.text())
        os.remove(hold)
        until_released(path)


def a_full_disk_keeps_the_memory_for_the_next_start(tmp):
    _, path = former(tmp, "half", maps_of(1))
    caps = os.path.join(tmp, "caps")
    os.mkdir(caps)
    configure(tmp)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", caps], capture_output=True,
                      check=False).returncode:
        raise tap.Skip("only root can mount a small disk")
    try:
        with running(tmp, path) as agent:
            until(lambda: "stays in its memory" in agent.text(), "it is not told")
            state = until(lambda: [s for s in [state_of(tmp)] if "recover" in s["trouble"]], "it is no trouble")[0]
            assert state["health"] == "trouble", state
        assert agent.status == 0 and "No space left" in agent.said, agent.said
        assert os.path.exists(path) and not of(tmp, "before_boot"), captures(tmp)
        subprocess.run(["mount", "-o", "remount,size=64m", caps], check=True)
        with running(tmp, path):
            until_released(path)
        assert len(of(tmp, "before_boot")) == 1, captures(tmp)
    finally:
        subprocess.run(["umount", caps], check=True)


def memory_is_kept_until_the_disk_has_the_capture(tmp):
    released_when_synced(tmp, "")


def memory_is_kept_until_the_disk_has_the_symbols(tmp):
    released_when_synced(tmp, ".kallsyms")


def damaged_memory_is_told_and_stays_and_the_agent_records(tmp):
    memory, path = former(tmp, "half", maps_of(1))
    for number in memory.beacons:
        memory.pages[number] = bytes(PAGE)
    memory.save(path)
    _, other = former(tmp, "other", maps_of(2), 8, end=1)
    configure(tmp, session="file_time = 1s")
    with running(tmp, path, other) as agent:
        until_released(other)
        until(lambda: "stays in its memory: 'kbarman recover' made no capture" in agent.text(), "it is not told")
        until(lambda: len(of(tmp, "all")) > 1, "nothing is recorded")
    assert agent.status == 0 and "has no capture" in agent.said, agent.said
    assert os.path.exists(path) and not captures(tmp, ".part") and len(of(tmp, "before_boot")) == 1, captures(tmp)


def a_crash_is_a_moment_of_the_session_with_that_trigger_and_a_restart_is_none(tmp):
    for seed, (end, ours, others) in enumerate(((2, 1, 0), (1, 0, 1), (0, 1, 0))):
        _, path = former(tmp, "half", maps_of(1), seed, end=end, text=b"what")
        configure(tmp, session="trigger = offcpu:*>3600s boot:crash\nbuffer = 256K", name="late")
        with running(tmp, path) as agent:
            until_released(path)
            until(lambda: [s for s in [state_of(tmp)] if s["session.late.moments"] == ours], "it is not counted")
        assert (len(of(tmp, "late")), len(of(tmp, "before_boot"))) == (ours, others), (end, captures(tmp), agent.said)
        assert ("session late: boot:crash: what was" in agent.said) == ours, agent.said
        shutil.rmtree(os.path.join(tmp, "caps"))
        os.remove(os.path.join(tmp, "said"))


def an_agent_that_ends_meanwhile_leaves_nothing_behind(tmp):
    _, path = former(tmp, "half", maps_of(1))
    configure(tmp)
    with running(tmp, path):
        pass
    assert os.path.exists(path) != bool(of(tmp, "before_boot")), captures(tmp)
    until(lambda: not [name for name in os.listdir(os.path.join(tmp, "caps")) if ".part" in name], "a file is left")


if __name__ == "__main__":
    main(globals())
