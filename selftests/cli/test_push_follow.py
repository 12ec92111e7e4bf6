#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""push --follow: each capture that comes into a folder is sent once, whatever ends in between."""
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from collector import Collector, Request  # noqa: E402
from test_push import capture, kept  # noqa: E402


class Follower:
    """push --follow of tmp/in, until the block ends."""

    def __init__(self, tmp, url, *options):
        self.folder, self.spool = os.path.join(tmp, "in"), os.path.join(tmp, "spool")
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen(  # pylint: disable=R1732
            [tap.KBARMAN, "push", "--otlp", url, "--retry", "0", "--follow", self.folder, "--spool", self.spool,
             *options], stderr=subprocess.PIPE, text=True, start_new_session=True)
        tap.ENDINGS.append(self.process.kill)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        said = self.process.communicate(timeout=tap.HANG)[1]
        return self.process.returncode, said


def give(tmp, *names, pc=0x1000):
    """As kbarmand does: a file has its name when it is whole."""
    os.makedirs(os.path.join(tmp, "in"), exist_ok=True)
    for i, name in enumerate(names):
        path = capture(tmp, name="new", pc=pc + 0x100 * i)
        os.rename(path, os.path.join(tmp, "in", name))


def taken(collector):
    """The addresses in what was taken: which captures it was."""
    return [min(location["address"] for location in Request(body).tables["locations"][1:]) for body in collector.taken]


def noted(folder):
    path = os.path.join(folder, "spool", "followed")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def what_is_there_and_what_comes_is_sent_once(tmp):
    give(tmp, "a-1.cap", "a-2.cap")
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: noted(tmp) == ["a-1.cap", "a-2.cap"])
        give(tmp, "a-3.cap", "a-4.cap", pc=0x5000)
        tap.until(lambda: len(noted(tmp)) == 4)
        status, said = follower.end()
        assert status == 0 and said.count("sent 1 request: 2 samples") == 4, (status, said)
        assert taken(collector) == [0x1000, 0x1100, 0x5000, 0x5100], taken(collector)


def a_start_sends_nothing_again(tmp):
    give(tmp, "a-1.cap", "a-2.cap")
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: len(noted(tmp)) == 2)
        follower.end()
        os.unlink(os.path.join(tmp, "in", "a-1.cap"))
        give(tmp, "a-3.cap", pc=0x5000)
        follower = Follower(tmp, collector.url)
        tap.until(lambda: noted(tmp) == ["a-2.cap", "a-3.cap"])
        follower.end()
        assert taken(collector) == [0x1000, 0x1100, 0x5000], taken(collector)


def notes_do_not_grow_with_captures_that_are_gone(tmp):
    """As they go where kbarmand keeps the newest ones, and somebody else has others."""
    with open(os.path.join(tmp, "bad"), "w", encoding="utf-8") as file:
        file.write("no capture")
    give(tmp, "b-0.cap")
    os.rename(os.path.join(tmp, "bad"), os.path.join(tmp, "in", "a-bad.cap"))
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        for i in range(1, 40):
            tap.until(lambda want=f"b-{i - 1}.cap": want in noted(tmp))
            if i > 1:
                os.unlink(os.path.join(tmp, "in", f"b-{i - 1}.cap"))
            give(tmp, f"b-{i}.cap", pc=0x1000 + 0x100 * i)
        tap.until(lambda: "b-39.cap" in noted(tmp))
        assert "b-0.cap" in noted(tmp) and len(noted(tmp)) < 30, noted(tmp)
        status, said = follower.end()
        # the notes that were left out lose nothing: each was sent once, and what can't be read was told once
        assert status == 0 and said.count("a-bad.cap") == 1, (status, said)
        assert taken(collector) == [0x1000 + 0x100 * i for i in range(40)], taken(collector)


def what_a_server_does_not_take_is_sent_later(tmp):
    give(tmp, "a-1.cap", "a-2.cap")
    with Collector(503, 503, 503) as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: len(noted(tmp)) == 2)
        assert len(kept(tmp)) == 3 and not collector.taken     # with the notes
        give(tmp, "a-3.cap", pc=0x5000)
        tap.until(lambda: len(noted(tmp)) == 3)
        collector.answers = []
        give(tmp, "a-4.cap", pc=0x6000)
        tap.until(lambda: len(noted(tmp)) == 4)
        follower.end()
        assert sorted(taken(collector)) == [0x1000, 0x1100, 0x5000, 0x6000], taken(collector)


def a_kill_loses_nothing_and_at_most_the_last_is_sent_again(tmp):
    with Collector() as collector:
        for i in range(5):
            give(tmp, f"a-{i}.cap", pc=0x1000 * (i + 1))
            follower = Follower(tmp, collector.url)
            tap.until(lambda want=i + 1: len(set(taken(collector))) == want)
            follower.end(signal.SIGKILL)
        assert set(taken(collector)) == {0x1000 * (i + 1) for i in range(5)}
        # each process began with what the one before may not have noted
        assert len(taken(collector)) <= 9, taken(collector)


def what_is_no_capture_is_said_and_left(tmp):
    give(tmp, "a-2.cap")
    with open(os.path.join(tmp, "in", "a-1.cap"), "w", encoding="utf-8") as file:
        file.write("no capture")
    for name in ".a.cap", "a.txt":
        os.link(os.path.join(tmp, "in", "a-2.cap"), os.path.join(tmp, "in", name))
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: noted(tmp) == ["a-2.cap"])
        status, said = follower.end(signal.SIGINT)
        assert status == 0 and "a-1.cap" in said and len(collector.taken) == 1, (status, said)


def a_folder_that_is_made_anew_is_followed(tmp):
    give(tmp, "a-1.cap")
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: noted(tmp) == ["a-1.cap"])
        os.rename(os.path.join(tmp, "in"), os.path.join(tmp, "gone"))
        give(tmp, "b-1.cap", pc=0x5000)
        # an event of the folder that it follows yet lets it look
        os.rename(os.path.join(tmp, "gone", "a-1.cap"), os.path.join(tmp, "gone", "again.cap"))
        tap.until(lambda: "b-1.cap" in noted(tmp))
        follower.end()
        assert taken(collector) == [0x1000, 0x5000], taken(collector)


class Held:
    """An answer that comes when it is let go; None: the connection ends."""

    def __init__(self, status):
        self.status, self.asked, self.let_go = status, threading.Event(), threading.Event()

    def __call__(self, handler):
        self.asked.set()
        assert self.let_go.wait(tap.HANG)
        handler.close_connection = True
        return self.status


def an_end_that_all_processes_get_loses_nothing(tmp):
    """As Ctrl-C does, in a terminal."""
    give(tmp, "a-1.cap")
    held = Held(503)
    with Collector(held) as collector:
        follower = Follower(tmp, collector.url)
        assert held.asked.wait(tap.HANG)
        os.killpg(follower.process.pid, signal.SIGINT)
        held.let_go.set()
        follower.process.communicate(timeout=tap.HANG)
        give(tmp, "a-2.cap", pc=0x5000)
        follower = Follower(tmp, collector.url)
        tap.until(lambda: "a-2.cap" in noted(tmp))
        follower.end()
        assert sorted(taken(collector)) == [0x1000, 0x5000], taken(collector)


def a_process_that_is_killed_while_it_sends_is_told(tmp):
    give(tmp, "a-1.cap")
    held = Held(None)
    with Collector(held) as collector:
        follower = Follower(tmp, collector.url)
        assert held.asked.wait(tap.HANG)
        with open(f"/proc/{follower.process.pid}/task/{follower.process.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        give(tmp, "a-2.cap", pc=0x5000)
        tap.until(lambda: noted(tmp) == ["a-2.cap"])
        said = follower.end()[1]
        held.let_go.set()
        assert "a-1.cap: signal 9 ended the process" in said, said
        follower = Follower(tmp, collector.url)
        tap.until(lambda: "a-1.cap" in noted(tmp))
        follower.end()


def what_is_no_file_is_left(tmp):
    give(tmp, "a-3.cap")
    os.mkfifo(os.path.join(tmp, "in", "a-1.cap"))
    os.symlink("a-1.cap", os.path.join(tmp, "in", "a-2.cap"))
    with Collector() as collector:
        follower = Follower(tmp, collector.url)
        tap.until(lambda: noted(tmp) == ["a-3.cap"])
        follower.end()


def wrong_uses_are_refused(tmp):
    for options, why in ((["--follow", tmp], "give --spool as well"), (["--follow", tmp, "--spool", tmp, "x.cap"], "leave out 'x.cap'"),
                         (["--follow", tmp, "--spool", tmp, "--spool-only"], "leave out --spool-only"),
                         (["--follow", tmp + "/none", "--spool", tmp], "No such file"),
                         (["--follow", tmp, "--spool", "/proc/none"], "/proc/none")):
        result = tap.run("push", "--otlp", "http://127.0.0.1:1", *options)
        assert result.returncode == 2 and why in result.stderr, result


if __name__ == "__main__":
    tap.main(globals())
