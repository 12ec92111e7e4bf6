#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""push while the network is cut, the disk is full, the server answers anything, and clocks are set:
nothing is lost unsaid, and nothing is there twice that a server can't tell."""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)
import tap
from capture_writer import BASE, CaptureWriter
from collector import Collector, Request, cut, cut_in_the_body, garbage
from test_push import MINUTE, ids, kept, push

# CLOCK_REALTIME is another one each time that somebody looks: minutes to years away.
STEPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long step(void)
{
	static const long steps[] = { 0, 3600, -3600, 86400 * 365, -86400L * 365 * 30, 1, -1, 120 };
	static unsigned int turn;
	return steps[turn++ % 8];
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int ret = real(clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec += step();
	return ret;
}
time_t time(time_t *at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec at;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &at);
	now->tv_sec = at.tv_sec;
	now->tv_usec = at.tv_nsec / 1000;
	return 0;
}
"""


def steps(tmp, name="steps.so"):
    """The environment of a process whose wall clock is set all the time."""
    if not shutil.which("cc"):
        raise tap.Skip("no compiler here")
    library = os.path.join(tmp, name)
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], check=True,
                   input=STEPS.encode())
    probe = subprocess.run([tap.KBARMAN, "version"], env={**os.environ, "LD_PRELOAD": library},
                           capture_output=True, check=False)
    if probe.returncode or b"LD_PRELOAD" in probe.stderr:
        raise tap.Skip("this tool can't be given another clock")
    return {**os.environ, "LD_PRELOAD": library}


def capture(tmp, number, minutes=1, unix_base=1_700_000_000 * 10**9):
    made = CaptureWriter(cores=1)
    made.unix_base = unix_base
    made.fact("name", f"{number}.cap")
    made.task(5, b"five")
    made.map(5, 0, 2**32, 0, b"[anon]")
    for minute in range(minutes):
        for step in range(2):
            made.sample(0, BASE + minute * MINUTE + step, 5, 0x1000 * (number + 1) + 16 * minute + step)
    return made.save(os.path.join(tmp, f"{number}.cap"))


class Cable:
    """Between a push and a collector. Cut, it resets what is on the way, takes connections and lets
    nothing through, or takes none."""

    def __init__(self, url):
        self.port = int(url.rsplit(":", 1)[1])
        self.state, self.pairs, self.done = "whole", [], False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.done:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.state == "refuses":
                client.close()
                continue
            pair = [client]
            self.pairs.append(pair)
            if self.state == "whole":
                pair.append(socket.create_connection(("127.0.0.1", self.port)))
                for one, other in (0, 1), (1, 0):
                    threading.Thread(target=self.pass_on, args=(pair[one], pair[other]), daemon=True).start()

    @staticmethod
    def pass_on(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:     # one of the two was reset
            Cable.cut(one, other)

    @staticmethod
    def cut(*ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def set(self, state):
        self.state = state
        if state != "whole":
            pairs, self.pairs = self.pairs, []
            for pair in pairs:
                self.cut(*pair)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done = True
        self.set("refuses")
        self.listener.close()


def requests(collector):
    """Each request that was taken, by the ids of its profiles."""
    return [tuple(ids([body])) for body in collector.taken]


def counted(said):
    """{fate: requests} of the last messages."""
    fates = {}
    for word in "sent", "kept", "lost", "it is not known what became of":
        fates[word] = sum(map(int, re.findall(rf"push: {word} (\d+) request", said)))
    return fates


def a_clock_that_is_set_changes_nothing(tmp):
    env, spool = steps(tmp), os.path.join(tmp, "spool")
    bad = [500, 429, {"status": 503, "headers": {"Retry-After": "1"}}, cut,
           {"status": 503, "headers": {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"}},
           {"status": 503, "headers": {"Retry-After": "Wed, 21 Oct 1999 07:28:00 GMT"}}]
    rng, want = random.Random(3), []
    with Collector() as collector:
        for turn in range(12):
            collector.answers = [rng.choice(bad + [200] * 3) for _ in range(rng.randrange(5))]
            path = capture(tmp, turn, rng.randrange(1, 4))
            want.append(path)
            start = time.monotonic()
            result = push(collector.url, path, "--retry", 2, "--spool", spool, env=env)
            assert result.returncode in (0, 3) and "lost" not in result.stderr, result
            # patience is measured by a clock that nobody sets
            assert time.monotonic() - start < 120, result
        collector.answers = []
        assert push(collector.url, "--spool", spool, "--spool-only", env=env).returncode == 0
        got = requests(collector)
        assert not kept(tmp)
    with Collector() as collector:
        assert push(collector.url, *want).returncode == 0
        assert set(got) == set(requests(collector)), "lost"
        assert len(got) == len(set(got)), "twice"


def a_capture_from_before_the_clock_was_set_back_is_sent_as_it_is(tmp):
    """Two captures of one time, in the same spool."""
    spool, noon = os.path.join(tmp, "spool"), 1_700_000_000 * 10**9
    first, second = capture(tmp, 1, 2, noon), capture(tmp, 2, 2, noon - 3600 * 10**9)
    with Collector(500, 500) as collector:
        assert push(collector.url, first, second, "--retry", 0, "--spool", spool).returncode == 3
        assert push(collector.url, "--spool", spool, "--spool-only").returncode == 0
        times = [profile["time"] for body in collector.taken for profile in Request(body).profiles]
        assert len(collector.taken) == 4 and len(set(ids(collector.taken))) == len(ids(collector.taken))
        hours = [round((at - noon) / 3600e9) for at in times]
        assert sorted(set(hours)) == [-1, 0], hours


def a_network_that_comes_back_gets_everything(tmp):
    """While one push runs, which has patience."""
    with Collector() as collector, Cable(collector.url) as cable:
        cable.set("refuses")
        with subprocess.Popen([tap.KBARMAN, "push", "--otlp", cable.url, "--retry", "300", "--timeout", "1",
                               capture(tmp, 1, 6)], stderr=subprocess.PIPE, text=True) as process:
            for state in "refuses", "silent", "whole", "silent", "whole":
                cable.set(state)
                time.sleep(0.7)
            said = process.communicate(timeout=300)[1]
        assert process.returncode == 0 and "sent 6 requests: 12 samples" in said, said
        # more than once only those whose answer was cut, or came too late on a busy machine
        assert len(set(requests(collector))) == 6, requests(collector)


def a_name_that_nobody_knows_is_a_network_that_is_cut(tmp):
    spool = os.path.join(tmp, "spool")
    result = push("http://collector.invalid:4318", capture(tmp, 1, 2), "--retry", 0, "--spool", spool)
    assert result.returncode == 3 and "kept 2 requests: 4 samples" in result.stderr, result
    assert len(kept(tmp)) == 2


def everything_at_once(tmp):
    """Each request has one fate that was said; the server and the spool have all that are not lost."""
    env, rng = steps(tmp), random.Random(11)
    disk = os.path.join(tmp, "disk")
    os.mkdir(disk)
    small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", disk], capture_output=True,
                           check=False).returncode == 0
    spool, want, lost, unclear = os.path.join(disk, "spool"), {}, 0, 0
    page = {"status": 200, "body": b"thank you", "not_taken": True}
    bad = [429, 500, 503, cut, cut_in_the_body, garbage, page]
    try:
        with Collector() as collector, Cable(collector.url) as cable:
            for turn in range(40):
                state = rng.choice(("whole", "whole", "whole", "refuses", "silent"))
                cable.set(state)
                collector.answers = [rng.choice(bad + [200] * 6) for _ in range(rng.randrange(8))]
                minutes = rng.randrange(1, 4)
                path = capture(tmp, turn, minutes)
                there = len(kept(disk))
                # on a busy machine an answer may take long
                result = push(cable.url, path, "--retry", 0, "--timeout", 0.5 if state == "silent" else 60,
                              "--spool", spool, env=env)
                fates = counted(result.stderr)
                assert fates["sent"] + fates["lost"] + fates["it is not known what became of"] + \
                    len(kept(disk)) == minutes + there, (fates, minutes, there, kept(disk), result.stderr)
                assert (result.returncode == 0) == (fates["sent"] == minutes + there), (fates, result)
                lost += fates["lost"]
                unclear += fates["it is not known what became of"]
                want[turn] = path
            cable.set("whole")
            collector.answers = []
            assert push(cable.url, "--spool", spool, "--spool-only", env=env).returncode == 0
            assert not kept(disk)
            got = requests(collector)
        with Collector() as collector:
            assert push(collector.url, *want.values()).returncode == 0
            every = requests(collector)
        missing = set(every) - set(got)
        assert set(got) <= set(every) and len(missing) < len(every)
        # what is lost was said; of what is not clear, and of cut answers, some may have arrived
        assert len(missing) <= lost + unclear, (len(missing), lost, unclear)
        assert unclear and (lost or not small), "the disk was never full"
    finally:
        if small:
            subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    tap.main(globals())
