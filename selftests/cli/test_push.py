#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""push: every request is sent once, kept or said to be lost, whatever the server and the disk do."""
import base64
import gzip
import json
import os
import random
import re
import resource
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import protobuf  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE, CaptureWriter  # noqa: E402
from collector import Collector, Request, cut, cut_in_the_body, field, garbage, nobody  # noqa: E402
from test_viewers_pprof import PROFILE as PPROF  # noqa: E402

MINUTE = 60 * 10**9
# what this machine's own collector is called is for none of these tests
for variable in [name for name in os.environ if name.startswith("OTEL_EXPORTER_OTLP_")]:
    del os.environ[variable]


def capture(tmp, minutes=1, name="a.cap", pc=0x1000):
    """One request for each minute, with two samples."""
    c = CaptureWriter(cores=1)
    c.fact("name", name)
    c.task(5, b"five")
    c.map(5, 0, 2**32, 0, b"[anon]")
    for minute in range(minutes):
        for step in range(2):
            c.sample(0, BASE + minute * MINUTE + step, 5, pc + 16 * minute + step)
    return c.save(os.path.join(tmp, name))


def push(url, *args, **kwargs):
    kwargs.setdefault("errors", "replace")
    return tap.run("push", "--otlp", url, *args, **kwargs)


def kept(folder):
    """The names of the files in the spool below it."""
    folder = os.path.join(folder, "spool")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def ids(bodies):
    return [profile["id"] for body in bodies for profile in Request(body).profiles]


def a_taken_request_is_sent_once(tmp):
    with Collector() as collector:
        result = push(collector.url, capture(tmp, 3), "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 0 and "sent 3 requests: 6 samples" in result.stderr, result
        assert len(collector.asked) == 3 and len(set(ids(collector.taken))) == len(ids(collector.taken))
        assert not kept(tmp)
        assert push(collector.url, "-q", capture(tmp)).stderr == ""


def several_files_and_standard_input_are_sent(tmp):
    one, two = capture(tmp), capture(tmp, 2, "b.cap", 0x2000)
    with Collector() as collector:
        with open(two, "rb") as file:
            result = push(collector.url, one, "-", stdin=file)
        assert result.returncode == 0 and "sent 3 requests" in result.stderr, result
        assert push(collector.url, one, os.path.join(tmp, "none.cap")).returncode == 2
        assert len(collector.taken) == 4


def a_busy_server_is_asked_again_when_it_says(tmp):
    for status in 429, 503:
        with Collector({"status": status, "headers": {"Retry-After": "2"}}) as collector:
            began = time.monotonic()
            result = push(collector.url, capture(tmp), "--retry", 20)
            assert result.returncode == 0 and time.monotonic() - began >= 2, result
            assert len(collector.asked) == 2 and len(collector.taken) == 1


def a_server_that_fails_is_asked_again(tmp):
    with Collector(500, cut, 502, cut_in_the_body, 504, garbage) as collector:
        result = push(collector.url, capture(tmp), "--retry", 60)
        assert result.returncode == 0 and "sent 1 request" in result.stderr, result
        assert len(collector.taken) == 1


def pauses_get_longer(tmp):
    times = []

    def late(handler):
        times.append(time.monotonic())
        return 503

    with Collector(*[late] * 5) as collector:
        assert push(collector.url, capture(tmp), "--retry", 60).returncode == 0
    pauses = [b - a for a, b in zip(times, times[1:])]
    # half of it at least: 0.25, 0.5, 1, 2
    assert all(pause >= 0.25 * 2**n for n, pause in enumerate(pauses)) and len(pauses) == 4, pauses


def a_server_that_wants_more_time_than_there_is_is_given_up_at_once(tmp):
    with Collector({"status": 429, "headers": {"Retry-After": "3600"}}) as collector:
        result = push(collector.url, capture(tmp, 2), "--retry", 20, "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and "asks to wait for 3600 s" in result.stderr, result
        assert len(collector.asked) == 1 and len(kept(tmp)) == 2


def what_is_refused_is_lost_and_said(tmp):
    with Collector({"status": 400, "body": field(2, b"no such profile")}, 422) as collector:
        result = push(collector.url, capture(tmp, 3), "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 1 and "status 400: no such profile" in result.stderr, result
        assert "lost 2 requests: 4 samples" in result.stderr and "sent 1 request" in result.stderr
        assert len(collector.asked) == 3 and not kept(tmp)


def a_spool_survives_what_is_no_fault_of_its_requests(tmp):
    """A token that has run out, a server that has moved or has a lower limit: all is sent afterwards."""
    spool, minutes = os.path.join(tmp, "spool"), 3
    elsewhere = {"Location": nobody() + "/new?key=hidden"}
    with Collector(503) as collector:
        assert push(collector.url, capture(tmp, minutes), "--retry", 0, "--spool", spool).returncode == 3
        whole = [open(os.path.join(spool, name), "rb").read() for name in kept(tmp)]  # pylint: disable=R1732
        assert len(whole) == minutes
        for status, headers, why in (
                (401, {}, "status 401"), (403, {}, "status 403"), (404, {}, "status 404"), (501, {}, "status 501"),
                (301, elsewhere, "/new'"), (302, {"Location": "/new"}, "/new'"), (308, elsewhere, "/new'"),
                (307, {"Location": "/v1development/profiles"}, "moved to"), (304, {}, "status 304"),
                (413, {}, "raise its limit")):
            asked = len(collector.asked)
            collector.answers = [{"status": status, "headers": headers}] * 20
            result = push(collector.url, "--retry", 20, "--spool", spool, "--spool-only")
            assert result.returncode == 3 and why in result.stderr, (status, result)
            assert "3 earlier requests stay" in result.stderr and "hidden" not in result.stderr, (status, result)
            assert [open(os.path.join(spool, name), "rb").read() for name in kept(tmp)] == whole, status
            # the server is left alone, unless it is only this request that it does not take; that is sent in parts
            assert len(collector.asked) - asked == {413: 9, 307: 6}.get(status, 1), status
        collector.answers = []
        assert push(collector.url, "--spool", spool, "--spool-only").returncode == 0
        assert not kept(tmp) and len(collector.taken) == len(set(collector.taken)) == minutes
        assert sorted(collector.taken) == sorted(data.split(b"\n\n", 1)[1] for data in whole)


def many_programs(tmp, programs=6):
    """One request with two profiles of each program, with chains of its own."""
    c = CaptureWriter(cores=1)
    rng = random.Random(3)
    for tid in range(5, 5 + programs):
        c.task(tid, b"program%d" % tid)
        c.map(tid, 0, 2**32, 0, b"[anon]")
    for step in range(40 * programs):
        c.sample(0, BASE + step * 1000, 5 + step % programs, rng.randrange(2**30),
                 chain=[rng.randrange(2**30) for _ in range(5)])
    return c.save(os.path.join(tmp, "many.cap"))


def no_more_than(limit):
    """Answers for a collector that takes no larger requests."""
    return [lambda handler: 413 if int(handler.headers["Content-Length"]) > limit else 200] * 1000


def samples_of(requests):
    return sorted(str((profile["id"], profile["resource"], profile["type"], sample)) for request in requests
                  for profile in request.profiles for sample in profile["samples"])


def a_request_that_is_too_large_is_sent_in_halves(tmp):
    path, spool = many_programs(tmp), os.path.join(tmp, "spool")
    with Collector() as collector:
        assert push(collector.url, path).returncode == 0
        whole = collector.requests()[0]
        size = len(collector.taken[0])
    sizes = set()
    for limit in size // 2, size // 4:
        with Collector(*no_more_than(limit)) as collector:
            result = push(collector.url, path, "--retry", 0)
            assert result.returncode == 0 and "it is sent in parts" in result.stderr, result
            assert f"sent {len(collector.taken)} requests: 240 samples" in result.stderr, result
            assert len(collector.taken) > 2 and samples_of(collector.requests()) == samples_of([whole])
            sizes |= {len(body) for body in collector.taken}
    # what no profile can be sent with stays, and it alone
    with Collector(*no_more_than(max(sizes) // 8)) as collector:
        result = push(collector.url, path, "--retry", 0, "--spool", spool)
        assert result.returncode == 3 and "raise its limit" in result.stderr and not collector.taken, result
        assert "kept 1 request: 240 samples" in result.stderr and len(kept(tmp)) == 1, result
        collector.answers = [413, 413, 200, 413] + no_more_than(0)
        result = push(collector.url, "--spool", spool, "--spool-only")
        assert result.returncode == 3 and "1 earlier request stays" in result.stderr and len(kept(tmp)) == 1, result
        some = len(ids(collector.taken))
        assert 0 < some < len(whole.profiles), some
        collector.answers = []
        result = push(collector.url, "--spool", spool, "--spool-only")
        assert result.returncode == 0 and not kept(tmp) and "sent 1 request" in result.stderr, result
        assert samples_of(collector.requests()) == samples_of([whole])


def a_spool_that_is_refused_is_kept_until_another_request_is_taken(tmp):
    """A server that takes nothing at all refuses for another reason than what a request says."""
    spool = os.path.join(tmp, "spool")
    for status in 400, 415, 422:
        with Collector(503) as collector:
            assert push(collector.url, capture(tmp, 12), "--retry", 0, "--spool", spool).returncode == 3
            wrong = {"status": status, "body": field(2, b"no tenant"), "headers": {"Content-Type": "text/plain"}}
            collector.answers = [wrong] * 100
            asked = len(collector.asked)
            result = push(collector.url, capture(tmp, 3, "b.cap", 0x9000), "--spool", spool)
            assert result.returncode == 3 and "no tenant" in result.stderr and "may be right" in result.stderr, result
            # not each of them is sent again and again to who takes none
            assert len(kept(tmp)) == 15 and len(collector.asked) - asked < 12, (status, len(collector.asked) - asked)
            # those that are wrong do not keep others back
            collector.answers = [wrong] * 8
            result = push(collector.url, "--spool", spool, "--spool-only")
            assert result.returncode == 1 and "lost 8 requests: 16 samples" in result.stderr, result
            assert "sent 1 request" in result.stderr and len(kept(tmp)) == 6, (result, kept(tmp))
            result = push(collector.url, "--spool", spool, "--spool-only")
            assert result.returncode == 0 and len(set(collector.taken)) == 7 and not kept(tmp), result


def a_request_follows_its_server_to_another_path(tmp):
    with Collector() as collector, Collector() as other:
        collector.answers = [{"status": 308, "headers": {"Location": "/new"}},
                             {"status": 307, "headers": {"Location": collector.url + "/newer?a=b"}}]
        url = collector.url.replace("http://", "http://me:hidden@")
        result = push(url, capture(tmp), "--http-header", "X-Secret: 1")
        assert result.returncode == 0 and len(collector.taken) == 1, result
        assert [path for path, _, _ in collector.asked[1:]] == ["/new", "/newer?a=b"], collector.asked
        assert collector.asked[2][1]["Authorization"] == collector.asked[0][1]["Authorization"]
        collector.answers = [{"status": 308, "headers": {"Location": other.url + "/new"}}]
        result = push(collector.url, capture(tmp), "--http-header", "X-Secret: 1", "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and not other.asked and f"'{other.url}/new'" in result.stderr, result


def an_answer_without_an_end_is_left(tmp):
    written = []

    def endless(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        handler.send_response(400)
        handler.end_headers()
        handler.close_connection = True
        try:
            while len(written) < 5000:
                handler.wfile.write(b"x" * 65536)
                written.append(1)
        except OSError:
            pass

    with Collector(endless) as collector:
        result = push(collector.url, capture(tmp))
        assert result.returncode == 1 and "status 400" in result.stderr, result
        assert len(written) < 1000, len(written)     # of 328 MB; sockets have some


def a_hostile_server_gets_no_more_than_its_time_and_loses_nothing(tmp):
    """Headers and bodies without an end, byte by byte, in chunks that are none; a place that is no URL."""
    def talks(head, more, pause=0.0):
        def talk(handler):
            handler.rfile.read(int(handler.headers["Content-Length"]))
            handler.close_connection = True
            try:
                handler.wfile.write(head)
                while more:
                    handler.wfile.write(more)
                    time.sleep(pause)
            except OSError:
                pass
        return talk

    spool = os.path.join(tmp, "spool")
    line, chunks = b"HTTP/1.1 400 Bad Request\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
    for talk in (talks(line, b"X-Header: " + b"x" * 4000 + b"\r\n"), talks(line, b"X: 1\r\n", 0.05),
                 talks(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), talks(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.05),
                 talks(line + chunks, b"ffffffffffffffffff\r\n"), talks(line + chunks, b"-1\r\nx"),
                 talks(b"HTTP/9.9 -1 \x1b[2J\r\n\r\n", b""), talks(b"HTTP/1.1 99999 no\r\n\r\n", b""),
                 talks(b"HTTP/1.1 308 x\r\nLocation: //\r\nContent-Length: 0\r\n\r\n", b""),
                 talks(b"HTTP/1.1 308 x\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", b""),
                 talks(b"HTTP/1.1 307 x\r\nLocation: http://[::1\x1b/\r\nContent-Length: 0\r\n\r\n", b"")):
        with Collector(*[talk] * 20) as collector:
            result = push(collector.url, capture(tmp), "--timeout", 2, "--retry", 0, "--spool", spool)
            assert result.returncode == 3 and len(kept(tmp)) == 1, result
            assert "\x1b" not in result.stderr and "passwd" not in result.stdout, result
            collector.answers = []
            assert push(collector.url, "--spool", spool, "--spool-only").returncode == 0 and not kept(tmp)


def headers_without_an_end_are_no_answer(tmp):
    """They come behind the answer, where libcurl has no limit, and longer than a test may take."""
    def talk(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
        try:
            while True:
                handler.wfile.write(b"X-Header: " + b"x" * 4000 + b"\r\n")
        except OSError:
            pass

    with Collector(talk) as collector:
        result = push(collector.url, capture(tmp), "--timeout", 3 * tap.HANG, "--retry", 0, "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and len(kept(tmp)) == 1, result


def the_name_of_another_place_is_not_longer_than_a_line(tmp):
    with Collector({"status": 301, "headers": {"Location": "http://other/" + "x" * 60000}}) as collector:
        result = push(collector.url, capture(tmp), "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 3 and "http://other/xxx" in result.stderr and len(result.stderr) < 2000, result


def what_a_server_rejects_is_said(tmp):
    partial = field(1, field(1, 3) + field(2, b"too old"))
    with Collector({"status": 200, "body": partial}) as collector:
        result = push(collector.url, capture(tmp))
        assert result.returncode == 1 and "not 3 profiles of it: too old" in result.stderr, result


def an_answer_that_is_no_answer_is_said_and_nothing_is_sent_twice(tmp):
    with Collector({"status": 200, "body": b"thank you"}) as collector:
        result = push(collector.url, capture(tmp), "--spool", os.path.join(tmp, "spool"))
        assert result.returncode == 1 and "something that is not OTLP" in result.stderr, result
        assert "not known what became of 1 request: 2 samples" in result.stderr
        assert len(collector.asked) == 1 and not kept(tmp)


def a_page_for_people_takes_nothing(tmp):
    """A portal answers everything with its own page."""
    page = {"status": 200, "body": b"\r\n <!DOCTYPE html>log in", "headers": {"Content-Type": "text/html"},
            "not_taken": True}
    for kind in "--otlp", "--pprof":
        with Collector(page) as collector:
            result = tap.run("push", kind, collector.url, capture(tmp, 3), "--spool", os.path.join(tmp, "spool"))
            assert result.returncode == 3 and "page for people" in result.stderr, result
            assert len(collector.asked) == 1 and kept(tmp), collector.asked
            result = tap.run("push", kind, collector.url, "--spool", os.path.join(tmp, "spool"), "--spool-only")
            assert result.returncode == 0 and not kept(tmp), result


def without_a_spool_it_is_said_what_is_lost(tmp):
    result = push(nobody(), capture(tmp, 2), "--retry", 0)
    assert result.returncode == 1 and "lost 2 requests: 4 samples" in result.stderr, result
    assert "--spool DIR would have kept them" in result.stderr


def what_was_kept_is_sent_first_and_once(tmp):
    spool = os.path.join(tmp, "spool")
    with Collector(500, 500) as collector:
        result = push(collector.url, capture(tmp, 3), "--retry", 0, "--spool", spool)
        assert result.returncode == 3 and "kept 3 requests: 6 samples" in result.stderr, result
        # after the first one the server is left alone
        assert len(collector.asked) == 1 and len(kept(tmp)) == 3, kept(tmp)
        assert os.stat(spool).st_mode & 0o077 == 0
        result = push(collector.url, "--retry", 0, "--spool", spool, "--spool-only")
        assert result.returncode == 3 and "3 earlier requests stay in the spool" in result.stderr, result
        result = push(collector.url, capture(tmp, 1, "b.cap", 0x5000), "--spool", spool)
        assert result.returncode == 0 and "sent 4 requests: 8 samples" in result.stderr, result
        pcs = [[sample["stack"][0]["address"] for sample in Request(body).profiles[0]["samples"]]
               for body in collector.taken]
        assert [min(pc) for pc in pcs] == [0x1001, 0x1010, 0x1020, 0x5001], pcs
        assert not kept(tmp)


def requests_for_other_servers_stay(tmp):
    spool = os.path.join(tmp, "spool")
    assert push(nobody(), capture(tmp), "--retry", 0, "--spool", spool).returncode == 3
    with Collector() as collector:
        result = push(collector.url, "--spool", spool, "--spool-only")
        assert result.returncode == 0 and "1 requests are for other servers" in result.stderr, result
        assert not collector.asked and len(kept(tmp)) == 1


def a_file_that_is_pushed_again_is_kept_and_sent_once(tmp):
    spool, path = os.path.join(tmp, "spool"), capture(tmp, 2)
    with Collector(503, 503, 503) as collector:
        for _ in range(3):
            result = push(collector.url, path, "--retry", 0, "--spool", spool)
            assert result.returncode == 3 and "kept 2 requests" in result.stderr, result
        assert len(kept(tmp)) == 2, kept(tmp)
        result = push(collector.url, path, capture(tmp, 1, "b.cap"), "--spool", spool)
        assert result.returncode == 0 and not kept(tmp), result
        assert len(collector.taken) == len(set(collector.taken)) == 3, len(collector.taken)


def a_password_is_not_in_the_spool_and_may_change(tmp):
    spool, path = os.path.join(tmp, "spool"), capture(tmp, 2)
    with Collector(503) as collector:
        def url(user, query):
            return collector.url.replace("http://", f"http://{user}@") + "/way?" + query

        push(url("me:hidden", "key=covered"), path, "--retry", 0, "--spool", spool)
        for name in kept(tmp):
            with open(os.path.join(spool, name), "rb") as file:
                head = file.read().split(b"\n\n")[0]
            assert b"hidden" not in head and b"covered" not in head and b"/way" in head, head
        # a query may be that of another tenant
        result = push(url("me:hidden", "key=other"), "--spool", spool, "--spool-only")
        assert "2 requests are for other servers" in result.stderr and len(kept(tmp)) == 2, result
        # as earlier versions wrote it
        first = os.path.join(spool, kept(tmp)[0])
        with open(first, "rb") as file:
            data = file.read()
        with open(first, "wb") as file:
            file.write(re.sub(rb"url: \S+", b"url: " + url("me:hidden", "key=covered").encode(), data, count=1))
        result = push(url("me:changed", "key=covered"), "--spool", spool, "--spool-only")
        assert result.returncode == 0 and len(collector.taken) == 2 and not kept(tmp), result


def the_oldest_make_room_in_a_full_spool(tmp):
    spool, url = os.path.join(tmp, "spool"), nobody()
    assert push(url, capture(tmp), "--retry", 0, "--spool", spool).returncode == 3
    size = os.path.getsize(os.path.join(spool, kept(tmp)[0]))
    result = push(url, capture(tmp, 5, "b.cap"), "--retry", 0, "--spool", spool, "--spool-size", 7 * size // 2)
    assert result.returncode == 1 and "kept 3 requests: 6 samples" in result.stderr, result
    assert "lost 3 requests: 6 samples, 0 waits; they were the oldest" in result.stderr, result
    assert kept(tmp) == [f"{n:012}.request" for n in (4, 5, 6)], kept(tmp)
    result = push(url, capture(tmp), "--retry", 0, "--spool", spool, "--spool-size", 100)
    assert "larger than the spool may be" in result.stderr and "lost 1 request:" in result.stderr, result
    assert len(kept(tmp)) == 3


def a_full_disk_is_said(tmp):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    result = push(nobody(), capture(tmp, 2), "--retry", 0, "--spool", os.path.join(tmp, "spool"),
                  preexec_fn=small_files)
    assert result.returncode == 1 and "can't keep a request: " in result.stderr, result
    assert "lost 2 requests: 4 samples" in result.stderr and not kept(tmp), kept(tmp)


def a_full_disk_is_said_by_its_name(tmp):
    disk = os.path.join(tmp, "disk")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], capture_output=True,
                      check=False).returncode:
        raise tap.Skip("only root can mount a small disk")
    try:
        result = push(nobody(), capture(tmp, 4), "--retry", 0, "--spool", os.path.join(disk, "spool"))
        assert result.returncode == 1 and "No space left on device" in result.stderr, result
        stays = int(re.search(r"kept (\d) request", result.stderr)[1])
        lost = int(re.search(r"lost (\d) request", result.stderr)[1])
        assert stays + lost == 4 and len(kept(disk)) == stays, result
    finally:
        subprocess.run(["umount", disk], check=True)


def damaged_files_of_the_spool_are_left_alone(tmp):
    spool = os.path.join(tmp, "spool")
    url = nobody()
    assert push(url, capture(tmp, 2), "--retry", 0, "--spool", spool).returncode == 3
    first, second = (os.path.join(spool, name) for name in kept(tmp))
    with open(first, "rb") as file:
        whole = file.read()
    for data in b"", b"\n\n", whole[:-1], whole + b"x", whole.replace(b"samples: 2", b"samples: -2"), \
            os.urandom(5000):
        with open(first, "wb") as file:
            file.write(data)
        result = push(url, "--retry", 0, "--spool", spool, "--spool-only")
        assert result.returncode == 1 and "not a whole request" in result.stderr, (data, result)
    assert os.path.exists(first) and os.path.exists(second)
    # nobody writes to this one, and it is not waited for
    os.remove(first)
    os.mkfifo(first)
    result = push(url, "--retry", 0, "--spool", spool, "--spool-only")
    assert result.returncode == 1 and "not a whole request" in result.stderr, result


def a_signal_keeps_what_is_not_sent(tmp):
    spool = os.path.join(tmp, "spool")
    with Collector(*[503] * 100) as collector, \
            subprocess.Popen([tap.KBARMAN, "push", "--otlp", collector.url, "--retry", "600", "--spool", spool,
                              capture(tmp, 3)], stderr=subprocess.PIPE, text=True) as process:
        while not collector.asked:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 3 and "kept 3 requests: 6 samples" in said, (process.returncode, said)
    assert len(kept(tmp)) == 3


def a_request_that_was_cut_off_is_said(tmp):
    spool = os.path.join(tmp, "spool")
    os.mkdir(spool, 0o700)
    with open(os.path.join(spool, "new.part"), "wb") as file:
        file.write(b"kbarman-push 1\n")
    with Collector() as collector:
        result = push(collector.url, "--spool", spool, "--spool-only")
        assert "cut off while it wrote a request" in result.stderr and not kept(tmp), result


def a_reader_that_is_killed_is_said(tmp):
    """What it had passed on has been sent."""
    def held(handler):
        parent = handler.server.kbarman
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
            os.kill(int(file.read().split()[0]), signal.SIGKILL)
        return 200

    path = capture(tmp, 2000)       # more than a pipe holds
    with Collector(held) as collector, \
            subprocess.Popen(["sh", "-c", 'read go; exec "$@"', "sh", tap.KBARMAN, "push", "--otlp", collector.url,
                              path], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        collector.server.kbarman = process.pid
        _, said = process.communicate("go\n", timeout=300)
        taken = len(collector.taken)
    assert process.returncode == 2 and "ended by signal 9: what follows was not sent" in said, said
    assert 0 < taken < 2000 and f"sent {taken} request" in said, (taken, said)


def two_at_once_wait_for_each_other(tmp):
    spool, path = os.path.join(tmp, "spool"), capture(tmp, 4)
    with Collector() as collector:
        assert push(nobody(), path, "--retry", 0, "--spool", spool).returncode == 3
        for name in kept(tmp):       # for this server
            with open(os.path.join(spool, name), "rb") as file:
                data = file.read()
            with open(os.path.join(spool, name), "wb") as file:
                file.write(re.sub(rb"url: \S+", b"url: " + collector.url.encode() +
                                  b"/v1development/profiles", data, count=1))
        both = [subprocess.Popen([tap.KBARMAN, "push", "--otlp", collector.url, "--spool", spool,
                                  "--spool-only"], stderr=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait(tap.HANG) for process in both] == [0, 0]
        assert len(collector.asked) == 4 and not kept(tmp)


def whatever_a_server_does_nothing_is_lost_unsaid_or_taken_twice(tmp):
    """A server that answers at random, and pushes that are killed at random."""
    rng, spool = random.Random(7), os.path.join(tmp, "spool")
    bad = [429, 500, 503, cut, cut_in_the_body, {"status": 503, "headers": {"Retry-After": "0"}}]
    want = []
    with Collector() as collector:
        for turn in range(25):
            collector.answers = [rng.choice(bad + [200] * 4) for _ in range(rng.randrange(12))]
            path = capture(tmp, rng.randrange(1, 4), f"{turn}.cap", 0x1000 * (turn + 1))
            if rng.randrange(3):
                result = push(collector.url, path, "--retry", 0, "--spool", spool)
                assert result.returncode in (0, 3) and "lost" not in result.stderr, result
                want.append(path)
            else:       # only its own requests may be lost: it did not say that it was done
                with subprocess.Popen([tap.KBARMAN, "push", "--otlp", collector.url, "--retry", "0", "--spool",
                                       spool, "--spool-only"], stderr=subprocess.DEVNULL) as process:
                    time.sleep(rng.random() / 20)
                    process.kill()
        collector.answers = []
        taken = len(collector.taken)
        assert push(collector.url, "--spool", spool, "--spool-only").returncode == 0
        assert not kept(tmp) and len(collector.taken) >= taken
        got = ids(collector.taken)
    with Collector() as collector:
        assert push(collector.url, *want).returncode == 0
        assert set(got) == set(ids(collector.taken)), "lost"
    # A kill between the answer and the removal of the file sends it again: with the same id.
    assert len(got) - len(set(got)) <= 8 * 2, len(got) - len(set(got))


def headers_are_sent_and_secrets_not_shown(tmp):
    secrets = os.path.join(tmp, "headers")
    with open(secrets, "w", encoding="ascii") as file:
        file.write("Authorization: Bearer hidden\n\nX-Scope-OrgID: 7\n")
    with Collector({"status": 400}) as collector:
        url = collector.url.replace("http://", "http://me:hidden@") + "/way?key=hidden"
        result = push(url, capture(tmp), "--http-header", "X-More: 1", "--http-header", "@" + secrets)
        where, headers, _ = collector.asked[0]
        assert where == "/way?key=hidden" and headers["X-More"] == "1", (where, headers)
        assert headers["Authorization"] == "Bearer hidden" and headers["X-Scope-OrgID"] == "7"
        assert "hidden" not in result.stderr and "/way" in result.stderr, result


def a_slow_server_is_not_waited_for_longer_than_the_timeout(tmp):
    ended = threading.Event()

    def slow(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        ended.wait(tap.HANG)

    with Collector(slow) as collector:
        result = push(collector.url, capture(tmp), "--timeout", 0.5, "--retry", 0)
        ended.set()
        assert result.returncode == 1 and "lost 1 request" in result.stderr, result


def certificate(tmp, name):
    """Files with a certificate that it signed itself, and its key."""
    key, cert = os.path.join(tmp, name + ".key"), os.path.join(tmp, name + ".pem")
    if subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                       "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                      capture_output=True, check=False).returncode:
        raise tap.Skip("no openssl here")
    return cert, key


def encrypted(collector, cert, key, clients=None):
    """The URL of the collector, which speaks TLS from now on; to clients with this certificate only, if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    collector.server.socket = context.wrap_socket(collector.server.socket, server_side=True)
    return collector.url.replace("http:", "https:")


def certificates_are_checked(tmp):
    cert, key = certificate(tmp, "server")
    with Collector() as collector:
        url = encrypted(collector, cert, key)
        result = push(url, capture(tmp), "--retry", 0)
        assert result.returncode == 1 and not collector.taken, result
        result = push(url, capture(tmp), "--retry", 0, "--cacert", cert)
        assert result.returncode == 0 and len(collector.taken) == 1, result


def a_server_that_wants_to_know_who_asks_is_shown_a_certificate(tmp):
    cert, key = certificate(tmp, "server")
    own, own_key = certificate(tmp, "own")
    both = os.path.join(tmp, "both.pem")
    with open(both, "wb") as file:
        for part in own, own_key:
            with open(part, "rb") as opened:
                file.write(opened.read())
    path = capture(tmp)
    with Collector() as collector:
        url = encrypted(collector, cert, key, own)
        for options in [], ["--cert", cert, "--key", key]:
            result = push(url, path, "--retry", 0, "--cacert", cert, *options)
            assert result.returncode == 1 and not collector.taken, result
        for options in ["--cert", own, "--key", own_key], ["--cert", both]:
            result = push(url, path, "--retry", 0, "--cacert", cert, *options)
            assert result.returncode == 0, result
        assert len(collector.taken) == 2
        result = tap.run("push", path, "--retry", 0, env={
            **os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_CERTIFICATE": cert,
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": own, "OTEL_EXPORTER_OTLP_CLIENT_KEY": own_key})
        assert result.returncode == 0 and len(collector.taken) == 3, result


def opentelemetrys_variables_say_what_the_command_does_not(tmp):
    path = capture(tmp)

    def run(*args, **variables):
        env = {**os.environ, **{"OTEL_EXPORTER_OTLP_" + name: value for name, value in variables.items()}}
        return tap.run("push", path, "--retry", 0, *args, env=env)

    with Collector() as collector:
        for variables, where in (({"ENDPOINT": collector.url}, "/v1development/profiles"),
                                 ({"ENDPOINT": collector.url + "/base//"}, "/base/v1development/profiles"),
                                 ({"ENDPOINT": "http://127.0.0.1:1", "PROFILES_ENDPOINT": collector.url + "/own"}, "/own"),
                                 ({"ENDPOINT": collector.url, "PROFILES_ENDPOINT": ""}, "/v1development/profiles"),
                                 ({"PROFILES_ENDPOINT": collector.url}, "/")):
            result = run(HEADERS="authorization=Bearer%20hidden, x-a = 1 ,,X-Given=other", **variables)
            assert result.returncode == 0 and "hidden" not in result.stderr, result
            place, headers, _ = collector.asked[-1]
            assert (place, headers["authorization"], headers["x-a"]) == (where, "Bearer hidden", "1"), (place, headers)
        result = run("--otlp", collector.url + "/given", "--http-header", "x-given: this", ENDPOINT="http://127.0.0.1:1",
                     HEADERS="authorization=hidden,X-Given=other", PROTOCOL="grpc")
        place, headers, _ = collector.asked[-1]
        assert result.returncode == 0 and place == "/given" and headers["authorization"] == "hidden", (result, headers)
        assert {name: value for name, value in headers.items() if name.lower() == "x-given"} == {"x-given": "this"}, headers
        result = run("--pprof", collector.url, HEADERS="authorization=hidden")
        assert result.returncode == 0 and "authorization" not in collector.asked[-1][1], result
    for variables, why in (({"PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_PROTOCOL 'http/json'"), ({"HEADERS": "hidden"}, "NAME=VALUE"),
                           ({"PROFILES_TIMEOUT": "x"}, "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT x"),
                           ({"CERTIFICATE": "/none"}, "/none: No such file")):
        result = run(ENDPOINT="http://127.0.0.1:1", **variables)
        assert result.returncode == 2 and why in result.stderr and "hidden" not in result.stderr, result


def the_timeout_of_the_environment_is_in_milliseconds(tmp):
    ended = threading.Event()

    def slow(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        ended.wait(tap.HANG)

    with Collector(slow) as collector:
        result = tap.run("push", capture(tmp), "--retry", 0, env={
            **os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "500"})
        ended.set()
        assert result.returncode == 1 and "lost 1 request" in result.stderr, result


def a_proxy_is_asked_to_send(tmp):
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with Collector() as proxy:
        for args, more in (["--proxy", proxy.url], {}), ([], {"http_proxy": proxy.url}):
            result = tap.run("push", "--otlp", "http://collector.invalid:4318", capture(tmp), "--retry", 0, *args,
                             env={**env, **more})
            assert result.returncode == 0, result
            assert proxy.asked[-1][0] == "http://collector.invalid:4318/v1development/profiles", proxy.asked[-1]


def pprof_is_sent_as_pyroscope_takes_it(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    with Collector(503) as collector:
        result = tap.run("push", "--pprof", collector.url, "--resource", "service.name=my shop",
                         "--resource", "host=here", path)
        assert result.returncode == 0 and "sent 1 request: 3 samples, 0 waits, to" in result.stderr, result
        where, headers, body = collector.asked[-1]
        url = urllib.parse.urlsplit(where)
        assert url.path == "/ingest" and headers["Content-Type"] == "application/octet-stream"
        assert urllib.parse.parse_qs(url.query) == {
            "name": ["my shop{host=here}"], "from": ["1700000000"], "until": ["1700000001"],
            "format": ["pprof"]}, url
    out = os.path.join(tmp, "out.pb.gz")
    viewers.convert(path, "pprof", out)
    with gzip.open(out) as file:
        assert gzip.decompress(body) == file.read()


def labels_of_pyroscope_stay_what_they_are(tmp):
    """Its names have no quotes: a ',' or '}' in a value would begin another label, or end them all."""
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    with Collector() as collector:
        result = tap.run("push", "--pprof", collector.url, "--resource", "service.name=a{b", "--resource",
                         "k8s/pod=x,env=prod}y", "--resource", "zone=ä=1%", path)
        assert result.returncode == 0, result
        where, = urllib.parse.parse_qs(urllib.parse.urlsplit(collector.asked[0][0]).query)["name"]
    name, labels = re.fullmatch(r"([^{]*){([^{}]*)}", where).groups()
    assert name == "a%7Bb", where
    assert dict(label.split("=", 1) for label in labels.split(",")) == {
        "k8s_pod": "x%2Cenv=prod%7Dy", "zone": "ä=1%"}, where


def pprof_is_sent_as_parca_takes_it(tmp):
    path = viewers.small().save(os.path.join(tmp, "a.cap"))
    with Collector() as collector:
        result = tap.run("push", "--pprof", collector.url + "/profiles/writeraw", "--resource",
                         'service.name=my "shop"', "--resource", "9=nine", path)
        assert result.returncode == 0, result
        (where, headers, body), = collector.asked
    assert where == "/profiles/writeraw" and headers["Content-Type"] == "application/json", headers
    series, = json.loads(body)["series"]
    assert series["labels"]["labels"] == [
        {"name": "__name__", "value": "kbarman"}, {"name": "service_name", "value": 'my "shop"'},
        {"name": "_", "value": "nine"}], series
    sample, = series["samples"]
    out = os.path.join(tmp, "out.pb.gz")
    viewers.convert(path, "pprof", out)
    with gzip.open(out) as file:
        assert gzip.decompress(base64.b64decode(sample["rawProfile"], validate=True)) == file.read()


def profile_of(body):
    """A profile of pprof, also in the form of Parca."""
    if body[:1] == b"{":
        sample, = json.loads(body)["series"][0]["samples"]
        body = base64.b64decode(sample["rawProfile"], validate=True)
    return protobuf.read(gzip.decompress(body), PPROF)


def samples_of_pprof(profile):
    """What its samples say, by name."""
    text = profile["strings"]
    tables = {name: {row["id"]: row for row in profile[name]} for name in ("locations", "mappings", "functions")}
    kinds = [(text[kind["type"]], text[kind["unit"]]) for kind in profile["types"]]
    for sample in profile["samples"]:
        places = [tables["locations"][number] for number in sample["locations"]]
        names = [text[tables["functions"][line["function"]]["name"]] for place in places for line in place["lines"]]
        files = [text[tables["mappings"][place["mapping"]]["file"]] for place in places if "mapping" in place]
        labels = [(text[label["key"]], text[label["str"]]) for label in sample["labels"]]
        yield str((kinds, sample["values"], [place["address"] for place in places], names, files, labels))


def a_profile_of_pprof_that_is_too_large_is_sent_in_halves(tmp):
    path, spool = many_programs(tmp), os.path.join(tmp, "spool")
    for place in "", "/profiles/writeraw":
        with Collector() as collector:
            assert tap.run("push", "--pprof", collector.url + place, path).returncode == 0
            size, whole = len(collector.taken[0]), profile_of(collector.taken[0])
        for limit in size // 2, size // 8:
            with Collector(*no_more_than(limit)) as collector:
                result = tap.run("push", "--pprof", collector.url + place, path, "--retry", 0)
                assert result.returncode == 0 and "it is sent in parts" in result.stderr, result
                assert f"sent {len(collector.taken)} requests: 240 samples" in result.stderr, result
                parts = [profile_of(body) for body in collector.taken]
            assert len(parts) > 2 and [part["time"] for part in parts] == [
                whole["time"] + number * 10**6 for number in range(len(parts))]
            assert sorted(sample for part in parts for sample in samples_of_pprof(part)) == \
                sorted(samples_of_pprof(whole))
            for part in parts:
                assert part["mappings"][0] == whole["mappings"][0] and part["duration"] == whole["duration"]
        # what was not taken stays, begins behind what was, and follows
        with Collector(413, 413, 200, 503) as collector:
            result = tap.run("push", "--pprof", collector.url + place, path, "--retry", 0, "--spool", spool)
            assert result.returncode == 3 and "sent 1 request" in result.stderr and len(kept(tmp)) == 1, result
            collector.answers = []
            result = tap.run("push", "--pprof", collector.url + place, "--spool", spool, "--spool-only")
            assert result.returncode == 0 and not kept(tmp), result
            parts = [profile_of(body) for body in collector.taken]
        assert [part["time"] - whole["time"] for part in parts] == [0, 10**6], parts
        assert sorted(sample for part in parts for sample in samples_of_pprof(part)) == sorted(samples_of_pprof(whole))


def a_server_that_takes_not_even_a_sample_is_not_asked_for_each(tmp):
    path, spool = many_programs(tmp), os.path.join(tmp, "spool")
    for place in "", "/profiles/writeraw":
        with Collector(*no_more_than(100)) as collector:
            result = tap.run("push", "--pprof", collector.url + place, path)
            assert result.returncode == 1 and "lost 1 request: 240 samples" in result.stderr, result
            result = tap.run("push", "--pprof", collector.url + place, "--spool", spool, path)
            assert result.returncode == 3 and "kept 1 request: 240 samples" in result.stderr, result
            assert "one sample" in result.stderr and not collector.taken, result
            assert len(collector.asked) < 20, len(collector.asked)
            collector.answers = []
            result = tap.run("push", "--pprof", collector.url + place, "--spool", spool, "--spool-only")
            assert result.returncode == 0 and "sent 1 request: 240 samples" in result.stderr, result
            assert len(collector.taken) == 1 and not kept(tmp)


def commands_of_the_page_of_the_fleet_send_each_capture_once(tmp):
    """Its loop, while the collector is down, and again when it is there."""
    with open(os.path.join(HERE, "..", "..", "docs", "fleet.md"), encoding="utf-8") as file:
        loop = "\n".join(re.search(r"^    kbarman convert \S+all-00000042.*?^    done$", file.read(),
                                  re.M | re.S)[0].splitlines())
    folder, programs = os.path.join(tmp, "var", "lib"), os.path.join(tmp, "bin")
    os.makedirs(os.path.join(folder, "kbarmand"))
    os.mkdir(programs)
    os.symlink(tap.KBARMAN, os.path.join(programs, "kbarman"))

    def run(url):
        script = loop.replace("/var/lib/", folder + "/").replace("/var/spool/kbarman", os.path.join(tmp, "spool"))
        script = script.replace("/srv/fleet", os.path.join(tmp, "fleet")).replace("https://collector:4318", url)
        # who waits for a server waits for it here as well
        script = script.replace("kbarman push", "kbarman push --retry 0")
        result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=tap.HANG, check=False,
                                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
        assert "usage" not in result.stderr, result
        return result

    with Collector(503) as collector:
        for number in 41, 42:
            capture(os.path.join(folder, "kbarmand"), 1, f"all-000000{number}-20260101T000000Z.cap", 0x1000 * number)
        result = run(collector.url)
        collector.answers = []
        left = os.listdir(os.path.join(folder, "kbarmand"))
        assert not left and os.path.isdir(os.path.join(tmp, "fleet", "captures")), (left, result)
        if kept(tmp):
            assert push(collector.url, "--spool", os.path.join(tmp, "spool"), "--spool-only").returncode == 0
        assert len(collector.taken) == len(set(collector.taken)) == 2, (len(collector.taken), result)


def wrong_uses_are_refused(tmp):
    path = capture(tmp)
    for args, why in (
            ([], "where to?"), (["--otlp", "localhost:4318"], "begins with http"),
            (["--otlp", "http://h", "--pprof", "http://h"], "give one of"),
            (["--otlp", "file:///etc/passwd"], "begins with http"),
            (["--otlp", "http://h", "--http-header", "x"], "this is no header"),
            (["--otlp", "http://h", "--http-header", "@/none"], "/none"),
            (["--otlp", "http://h", "--resource", "x"], "give KEY=VALUE"),
            (["--otlp", "http://h", "--cert", "/none"], "--cert /none: No such file"),
            (["--otlp", "http://h", "--key", "/dev/null"], "give --cert as well"),
            (["--otlp", "http://h", "--retry", "-1"], "give a time"),
            (["--otlp", "http://h", "--timeout", "0"], "give a time from 1ms to 1d"),
            (["--otlp", "http://h", "--spool-size", "x"], "give a number of bytes"),
            (["--otlp", "http://h", "--spool-only"], "give --spool as well")):
        result = tap.run("push", *args, *([] if "--spool-only" in args else [path]))
        assert result.returncode == 2 and why in result.stderr, (args, result)


if __name__ == "__main__":
    tap.main(globals())
