#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who looks for a flight recorder is not in the way of one that begins at that moment."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import preload
import tap
import test_record as recorder


def wait_until(condition, child):
    """Until it is true; the child may not end before."""
    while not condition():
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)


def is_stopped(child):
    with open(f"/proc/{child.pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def flight(tmp, *args, output=subprocess.PIPE, **settings):
    return subprocess.Popen([tap.KBARMAN, "flight", *args], cwd=tmp, stdout=output,
                            stderr=output, text=True,
                            env={**recorder.fake(**settings), "KBARMAN_RUNTIME_DIR": tmp})


def a_recorder_can_begin_while_somebody_looks_for_one(tmp):
    pid_file = os.path.join(os.path.realpath(tmp), "kbarman-flight.pid")
    with open(pid_file, "w", encoding="ascii") as file:
        file.write("1\n")              # of one that is gone
    looks = flight(tmp, "status", FAKE_STOP=pid_file)
    wait_until(lambda: is_stopped(looks), looks)
    runs = flight(tmp, "run")
    try:
        def runs_now():
            with open(pid_file, encoding="ascii") as file:
                return file.read() == f"{runs.pid}\n"
        wait_until(runs_now, runs)
    finally:
        looks.send_signal(signal.SIGCONT)
        said = looks.communicate()[1]
        assert looks.returncode == 1 and "no flight recorder" in said, said
        runs.terminate()
        runs.communicate()


def a_recorder_that_runs_is_found(tmp):
    runs = flight(tmp, "run")
    looks = None
    while not looks or looks.returncode:
        looks = flight(tmp, "status", "-j")
        said = looks.communicate()[0]
        assert runs.poll() is None, runs.communicate()
    assert f'"pid":{runs.pid},' in said.replace(" ", ""), said
    second = flight(tmp, "run")
    assert "runs already" in second.communicate()[1] and second.returncode == 2
    runs.terminate()
    runs.communicate()
    assert flight(tmp, "status").wait() == 1


def a_recorder_can_begin_while_a_child_of_the_last_one_still_ends(tmp):
    waits, there, pid_file = (os.path.join(tmp, name) for name in ("waits", "there", "kbarman-flight.pid"))
    open(waits, "wb").close()
    late = preload.build(tmp, "late", preload.late("setsid(void)"))
    # the child that decodes files begins so, before it closes what it has of the recorder
    first = flight(tmp, "run", output=subprocess.DEVNULL, FAKE_RATE=1, CHILD_WAITS=waits,
                   CHILD_IS_THERE=there, LD_PRELOAD=f"{recorder.FAKE}:{late}")
    try:
        wait_until(lambda: os.path.exists(there), first)
        first.kill()
        first.wait()
        second = flight(tmp, "run", FAKE_RATE=1)

        def second_runs():
            with open(pid_file, encoding="ascii") as file:
                return file.read() == f"{second.pid}\n"
        wait_until(second_runs, second)
        second.terminate()
        said = second.communicate()[1]
        assert second.returncode == 0, said
    finally:
        os.unlink(waits)


if __name__ == "__main__":
    recorder.main(globals())
