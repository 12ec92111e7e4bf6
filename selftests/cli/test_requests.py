#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `kbarman report --request` says of captures whose requests are slow for known causes."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from latency_capture import IRQ, SOFTIRQ, TIMER, Late

MS = 1_000_000
WEB, OTHER, HOLDER, PEER, HOG = 7, 8, 9, 10, 11
READ, WRITE, CLOSE, FSYNC = 0, 1, 3, 74
FILE, FAULT = 3, 13
IOWAIT, OUTSIDE = 1, 4
NAMES = {WEB: "web", OTHER: "web", HOLDER: "holder", PEER: "peer", HOG: "hog"}


class Server(Late):
    """Web is on CPU 0, and whom it waits for on CPU 1."""

    def __init__(self, cores=2, **facts):
        super().__init__(cores=cores, facts={"written.0": "1", "irq.40": "disk", "machine": "x86_64",
                                             "sources": "wake,irq,softirq,syscalls", **facts})
        for task, name in NAMES.items():
            self.task(task, name)
        self.now = 0
        self.switch(0, 0, WEB)

    def put(self, tmp):
        self.save(os.path.join(tmp, "kbarman.cap"))

    def mark(self, when, text, task=WEB, core=0):
        data = text.encode() + b"\0"
        self.record(5, core, when, struct.pack("<IQIIIB", task, len(data), 0, 0, 0, 1) + data)

    def request(self, wait, text=""):
        """One that runs 1 ms, waits, and runs 1 ms again."""
        self.mark(self.now, "begin" + text)
        wait(self.now + MS)
        self.now += MS
        self.mark(self.now, "end" + text)
        self.now += MS

    def task_works(self, task, ms):
        """@task has what web wants, and works before it gives it."""
        def wait(now):
            self.switch(0, now, 0, blocked=True, state=1)
            self.switch(1, now, task)
            self.now = now + ms * MS
            self.waking(1, self.now, waker=task, woken=WEB)
            self.switch(1, self.now, 0, blocked=True, state=1)
            self.switch(0, self.now, WEB)
        return wait

    def disk(self, now, waits_for=None):
        self.switch(0, now, 0, blocked=True, state=2, waits_for=waits_for)
        self.now = now + 40 * MS
        self.irq_entry(1, self.now, 40)
        self.waking(1, self.now, waker=0, woken=WEB, context=IRQ)
        self.irq_exit(1, self.now, 40)
        self.switch(0, self.now, WEB)

    def page_in(self, now):
        self.disk(now, (0, FAULT, OUTSIDE | IOWAIT, 0, 0x602000))

    def fsync(self, now):
        """Holder, a task of Linux without an object, works for it, and waits for the disk."""
        self.switch(1, now - MS // 2, HOLDER)
        self.switch(0, now, 0, blocked=True, state=2, waits_for=(FSYNC, FILE, 0, 8 << 20 | 1, 12))
        self.switch(1, now + MS, 0, blocked=True, state=2)
        self.irq_entry(0, now + 21 * MS, 40)
        self.waking(0, now + 21 * MS, waker=0, woken=HOLDER, context=IRQ)
        self.irq_exit(0, now + 21 * MS, 40)
        self.switch(1, now + 21 * MS, HOLDER)
        self.now = now + 23 * MS
        self.waking(1, self.now, waker=HOLDER, woken=WEB)
        self.switch(1, self.now, 0, blocked=True, state=1)
        self.switch(0, self.now, WEB)

    def timer(self, now):
        self.switch(0, now, 0, blocked=True, state=1)
        self.now = now + 50 * MS
        self.softirq_entry(0, self.now, TIMER)
        self.waking(0, self.now, waker=0, woken=WEB, context=SOFTIRQ)
        self.softirq_exit(0, self.now, TIMER)
        self.switch(0, self.now, WEB)

    def contention(self, now):
        self.switch(0, now, HOG)
        self.now = now + 60 * MS
        self.switch(0, self.now, WEB)

    def nothing(self, now):
        self.now = now


def make(tmp):
    server = Server()
    causes = [server.task_works(HOLDER, 30), server.disk, server.task_works(PEER, 35), server.timer, server.contention]
    for cause in causes:
        for _ in range(3):
            server.request(server.nothing)
        server.request(cause)
    server.switch(0, server.now, 0, blocked=True, state=1)
    server.put(tmp)


def ask(tmp, *options):
    """The head, the rows, and for each of the slowest requests its path and links."""
    done = tap.run("report", "--json", "--request", *options, cwd=tmp)
    assert done.returncode == 0, done
    head, *lines = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [line for line in lines if line["kind"] == "requests_link"]
    slowest = []
    for line in lines[len(rows):]:
        if line["kind"] == "path":
            slowest.append((line, []))
        else:
            slowest[-1][1].append(line)
    assert sum(row["sum_ns"] for row in rows) == head["sum_ns"], (head, rows)
    for path, links in slowest:
        at = path["from_ns"]
        for link in links:
            assert link["at_ns"] == at, (links, "a gap or an overlap")
            at = link["end_ns"]
        assert at == path["until_ns"] and len(links) == path["links"], (path, links)
    return head, rows, slowest


def seen(links):
    return [(link["what"], link["task"], link["at_ns"] / MS, link["end_ns"] / MS, link.get("by_name")) for link in links]


def the_path_of_each_slow_request_names_its_cause_first(tmp):
    make(tmp)
    text = tap.run("report", "--request", "begin..end", cwd=tmp).stdout
    assert "# requests : 20, begin..end\n# duration : median 2.000000 ms, p99 62.000000 ms, longest 62.000000 ms" in \
        text.replace("2.031615", "2.000000"), text
    first = [lines.splitlines()[0] for lines in text.split("What\n#\n")[2:]]
    assert [line.split("  ")[-1] for line in first] == [
        "web (7) preempted, waited for its CPU behind hog (11)", "web (7) waited for TIMER (softirq)",
        "web (7) waited for disk (interrupt)", "peer (10) ran", "holder (9) ran"], text


def what_requests_waited_for_is_added_up(tmp):
    make(tmp)
    head, rows, slowest = ask(tmp, "begin..end")
    assert (head["requests"], head["open"], head["max_ns"], len(slowest)) == (20, 0, 62 * MS, 5), head
    assert [(row["what"], row["own"], row.get("task"), row.get("by_name"), row["requests"], row["max_ns"] / MS)
            for row in rows] == [
        ("preempted", True, None, "hog", 1, 60), ("wait", True, None, "TIMER", 1, 50), ("run", True, None, None, 20, 2),
        ("wait", True, None, "disk", 1, 40), ("run", False, "peer", None, 1, 35), ("run", False, "holder", None, 1, 30)], rows
    assert [path["until_ns"] - path["from_ns"] for path, _ in slowest] == [ms * MS for ms in (62, 52, 42, 37, 32)]


def full(directory):
    """A capture whose report has all keys."""
    server = Server(objects="1", **{f"object.3.12.{8 << 20 | 1}.0": "/srv/log"})
    server.request(server.page_in)
    for _ in range(3):
        server.request(server.fsync)
    server.put(directory)


def links_say_for_what_and_for_whom_they_waited(tmp):
    full(tmp)
    _, rows, slowest = ask(tmp, "begin..end")
    waited = [(row["what"], row.get("task"), row.get("by_name"), row.get("waiter"), row.get("call"), row.get("object"),
               row.get("object_name"), row.get("iowait"), row["requests"], row["sum_ns"] / MS) for row in rows]
    assert waited == [
        ("wait", "holder", "disk", "web", "fsync", "file", "/srv/log", False, 3, 60),
        ("wait", None, "disk", "web", None, "fault", None, True, 1, 40),
        ("run", "holder", None, "web", "fsync", "file", "/srv/log", False, 3, 9),
        ("run", None, None, None, None, None, None, None, 4, 8)], waited
    fault, = [link for link in slowest[0][1] if link["what"] == "wait"]
    assert (fault["object_value"], fault["waiter_tid"]) == (0x602000, WEB), fault
    text = tap.run("report", "--request", "begin..end", cwd=tmp).stdout
    for part in ("web (7) waited for disk (interrupt), in [in no call] page fault at 0x602000 (disk)\n",
                 "holder waited for disk (interrupt), web (7) waited in fsync /srv/log\n",
                 "holder (9) ran, web (7) waited in fsync /srv/log\n", "itself ran\n"):
        assert part in text, (part, text)


def so_many_of_the_slowest_are_shown_as_asked_for(tmp):
    make(tmp)
    for number in 0, 1, 20, 1000:
        assert len(ask(tmp, "begin..end", "--slowest", number)[2]) == min(number, 20)
    for wrong in "-1", "", "x", "1001", "99999":
        done = tap.run("report", "--request", "begin..end", "--slowest", wrong, cwd=tmp)
        assert done.returncode == 2 and "give a number from 0 to 1000" in done.stderr, done


def the_path_of_a_request_is_that_of_its_time(tmp):
    make(tmp)
    for path, links in ask(tmp, "begin..end")[2]:
        done = tap.run("report", "--json", "--critical-path", "web", "--time",
                       f"{path['from_ns'] / 1e9:.9f},{path['until_ns'] / 1e9:.9f}", cwd=tmp)
        assert [json.loads(line) for line in done.stdout.splitlines()] == [path, *links], done


def marks_with_numbers_are_named_by_a_pattern(tmp):
    server = Server()
    for number in range(4):
        server.request(server.disk, f" {number}")
    server.put(tmp)
    assert ask(tmp, "begin *..end *")[0]["requests"] == 4
    assert ask(tmp, "mark:begin ?..mark:end 2")[0]["requests"] == 1


def a_request_that_begins_again_begins_anew(tmp):
    server = Server()
    for when, text in (1, "begin"), (2, "begin"), (5, "end"), (6, "end"), (7, "begin"):
        server.mark(when * MS, text)
    server.switch(0, 9 * MS, 0, blocked=True, state=1)
    server.put(tmp)
    head, _, slowest = ask(tmp, "begin..end")
    assert (head["requests"], head["sum_ns"], head["open"]) == (1, 3 * MS, 1), head
    assert seen(slowest[0][1]) == [("run", "web", 2, 5, None)]
    assert "; 1 more had no end\n" in tap.run("report", "--request", "begin..end", cwd=tmp).stdout


def one_mark_ends_a_request_and_begins_the_next_one(tmp):
    server = Server()
    for when in range(4):
        server.mark(when * MS, "tick")
    server.put(tmp)
    head, _, _ = ask(tmp, "tick..tick")
    assert (head["requests"], head["sum_ns"], head["open"]) == (3, 3 * MS, 1), head


def requests_of_tasks_do_not_mix(tmp):
    server = Server()
    server.switch(1, 0, OTHER)
    for when, text, task in (1, "begin", WEB), (2, "begin", OTHER), (5, "end", WEB), (9, "end", OTHER):
        server.mark(when * MS, text, task, core=task - WEB)
    server.put(tmp)
    assert [(path["tid"], path["from_ns"], path["until_ns"]) for path, _ in ask(tmp, "begin..end")[2]] == [
        (OTHER, 2 * MS, 9 * MS), (WEB, 1 * MS, 5 * MS)]
    for options in ("--critical-path", str(OTHER)), ("--tid", str(OTHER)):
        head, _, slowest = ask(tmp, "begin..end", *options)
        assert head["requests"] == 1 and slowest[0][0]["tid"] == OTHER, slowest
    assert ask(tmp, "begin..end", "--critical-path", "web")[0]["requests"] == 2
    assert ask(tmp, "begin..end", "--time", "0,0.006")[0]["requests"] == 1


def a_time_before_the_first_record_of_a_task_is_said(tmp):
    """Nothing is known of the holder before it woke web."""
    server = Server()
    server.mark(1 * MS, "begin")
    server.switch(0, 2 * MS, 0, blocked=True, state=1)
    server.waking(1, 8 * MS, waker=HOLDER, woken=WEB)
    server.switch(0, 8 * MS, WEB)
    server.mark(9 * MS, "end")
    server.put(tmp)
    assert seen(ask(tmp, "begin..end")[2][0][1]) == [("run", "web", 1, 2, None), ("unseen", "holder", 2, 8, None),
                                                    ("run", "web", 8, 9, None)]


# ---- system calls ----

def calls(tmp, options, *records):
    """@records: name or number of a call, its begin and end in ms, what it returned and its descriptor."""
    server = Server()
    for number, begin, end, result, fd in records:
        server.syscall(0, end * MS, WEB, number, begin * MS, result, (fd, 0, 0))
    server.switch(0, 100 * MS, 0, blocked=True, state=1)
    server.put(tmp)
    return [(path["from_ns"] / MS, path["until_ns"] / MS) for path, _ in ask(tmp, *options)[2]]


def a_request_is_from_the_end_of_a_call_to_the_begin_of_another(tmp):
    assert calls(tmp, ["syscall:read..syscall:write"], (READ, 1, 3, 10, 5), (WRITE, 7, 9, 10, 5)) == [(3, 7)]
    assert calls(tmp, ["syscall:r*d..syscall:write"], (READ, 1, 3, 10, 5), (CLOSE, 4, 5, 0, 5), (WRITE, 7, 9, 10, 6)) == [(3, 7)]


def a_call_that_failed_begins_no_request(tmp):
    assert calls(tmp, ["syscall:read..syscall:write"], (READ, 1, 3, 10, 5), (READ, 4, 5, -11, 5),
                 (WRITE, 7, 9, 10, 5)) == [(3, 7)]


def a_descriptor_chooses_calls(tmp):
    records = [(READ, 1, 3, 10, 5), (READ, 4, 5, 10, 6), (WRITE, 7, 9, 10, 6), (WRITE, 10, 12, 10, 5)]
    assert calls(tmp, ["syscall:read(5)..syscall:write(5)"], *records) == [(3, 10)]
    assert calls(tmp, ["syscall:read(fd)..syscall:write(fd)"], *records) == [(3, 10), (5, 7)]
    assert calls(tmp, ["syscall:read..syscall:write"], *records) == [(5, 7)]


def a_mark_and_a_call_make_a_request(tmp):
    server = Server()
    server.mark(2 * MS, "begin")
    server.syscall(0, 9 * MS, WEB, WRITE, 7 * MS, 1)
    server.put(tmp)
    assert ask(tmp, "begin..syscall:write")[0]["sum_ns"] == 5 * MS


def what_the_last_call_of_a_request_waits_for_is_no_part_of_it(tmp):
    """A disk brings a page, then web writes into a pipe that is full: who reads it wakes web."""
    server = Server()
    server.syscall(0, 2 * MS, WEB, READ, 1 * MS, 10)
    server.disk(4 * MS)
    server.switch(1, 20 * MS, PEER)
    server.switch(0, 50 * MS, 0, blocked=True, state=1)
    server.waking(1, 70 * MS, waker=PEER, woken=WEB)
    server.switch(0, 71 * MS, WEB)
    server.switch(0, 72 * MS, 0, blocked=True, state=1)
    server.waking(1, 80 * MS, waker=PEER, woken=WEB)
    server.switch(0, 81 * MS, WEB)
    server.syscall(0, 82 * MS, WEB, WRITE, 46 * MS, 10)
    server.put(tmp)
    assert seen(ask(tmp, "syscall:read..syscall:write")[2][0][1]) == [
        ("run", "web", 2, 4, None), ("wait", "web", 4, 44, "disk"), ("run", "web", 44, 46, None)]


# ---- many, and none ----

def many_requests_are_read_in_one_walk(tmp):
    """Their chain is longer than a path is kept."""
    server = Server()
    for _ in range(10_000):
        server.mark(server.now, "begin")
        for _ in range(5):
            server.task_works(PEER, 1)(server.now + MS)
        server.mark(server.now, "end")
    server.put(tmp)
    head, rows, _ = ask(tmp, "begin..end")
    assert (head["requests"], head["max_ns"], head["sum_ns"]) == (10_000, 10 * MS, 100_000 * MS), head
    assert [(row["requests"], row["max_ns"], row["p99_ns"]) for row in rows] == [(10_000, 5 * MS, 5 * MS)] * 2, rows


def what_is_not_there_is_said(tmp):
    make(tmp)
    for options, said in [
            (["start..end"], "there is no mark 'start'"),
            (["begin..stop"], "there is no request: no 'stop' is behind a 'begin' of the same task"),
            (["begin..end", "--critical-path", "hog"], "there is no request that is wanted"),
            (["begin..end", "--critical-path", "nobody"], "nobody"),
            (["begin..end", "--tid", "4711"], "4711"),
            (["begin..end", "--time", "5,6"], "nothing is in the time of --time"),
            (["syscall:read..syscall:write"], "there are no system calls: 'kbarman record --sources syscalls' records them"),
            (["begin"], "--request begin: give FROM..UNTIL"), (["..end"], "give FROM..UNTIL"),
            (["syscall:..end"], "'syscall:' is no end of a request: write syscall:NAME"),
            (["syscall:read(x)..end"], "'syscall:read(x)' is no end of a request"),
            (["syscall:read(5..end"], "'syscall:read(5' is no end of a request"),
            (["syscall:read(fd)..syscall:write"], "write (fd) in both ends of a request, or in none"),
            (["begin..end", "--waits"], "--request is a report of its own"),
            (["begin..end", "-C", "0"], "--request is a report of its own"),
            (["begin..end", "--critical-path", "a..b"], "--request is a report of its own")]:
        done = tap.run("report", "--request", *options, cwd=tmp)
        assert done.returncode == 2 and said in done.stderr and not done.stdout, done
    assert calls(tmp, ["syscall:read..syscall:write"], (READ, 1, 3, 10, 5), (WRITE, 7, 9, 10, 5))
    done = tap.run("report", "--request", "syscall:fsync..syscall:write", cwd=tmp)
    assert done.returncode == 2 and "there is no 'syscall:fsync' that did not fail" in done.stderr, done


def a_capture_without_wakeups_has_no_paths(tmp):
    server = Server(sources="syscalls")
    server.mark(1 * MS, "begin")
    server.mark(2 * MS, "end")
    server.put(tmp)
    done = tap.run("report", "--request", "begin..end", cwd=tmp)
    assert done.returncode == 2 and "kbarman.cap has no wakeups: record with 'kbarman record --latency'" in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
