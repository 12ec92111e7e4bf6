#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a VM recorded of threads whose waits are known (selftests/truth/waits.c) gives exactly the
graph of these waits.

    waits.py GUEST-DIRECTORY TOOL

In results/ there, waits.cap is the recording, waits.out what the program says it did, and
waits.interrupts the machine's /proc/interrupts. `disk` in waits.out is the device of the file.
"""
import functools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

RESULTS = os.path.join(sys.argv[1], "results")
TOOL = os.path.abspath(sys.argv[2])
CAPTURE = os.path.join(RESULTS, "waits.cap")
CLOCK = ("irq", "ipi")      # timers are among the devices' interrupts on some machines
ROUNDS = 5
MOST = 3                    # of the rounds: what else the machine does may disturb others
STOPPER = re.compile(r"migration/\d+$")     # of each CPU: Linux runs it in front of any priority


@functools.cache
def tool(*args):
    ran = subprocess.run([TOOL, *args], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, (args, ran.returncode, ran.stderr)
    return ran.stdout


def objects(*args):
    return [json.loads(line) for line in tool(*args).splitlines()]


@functools.cache
def did():
    """What the program says it did."""
    with open(os.path.join(RESULTS, "waits.out"), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file)


def numbers(key):
    found = [int(number) for number in did()[key].split(",") if number]
    assert found, key
    return found


def marks(graph):
    """The two marks of each round to look at."""
    rounds = numbers(graph + ".rounds")
    assert len(rounds) == ROUNDS, rounds
    return [(f"{graph}-{n}-begin", f"{graph}-{n}-end") for n in rounds]


# ---- the critical path

def path(begin, end):
    """The head, and the links in their order, which tile the time of the path."""
    head, *links = objects("report", "--critical-path", f"{begin}..{end}", "--json", CAPTURE)
    at = head["from_ns"]
    for link in links:
        assert link["at_ns"] == at and link["duration_ns"] > 0, (begin, links)
        at += link["duration_ns"]
    assert at == head["until_ns"] and not head["cut"] and not head["damaged"], (begin, head)
    assert not any(link["gap"] for link in links), (begin, links)
    return head, links


def text_of(begin, end):
    return tool("report", "--critical-path", f"{begin}..{end}", CAPTURE)


def shown(links):
    """For a message."""
    return [(link["what"], link["task"], link.get("by_name"), link["duration_ns"]) for link in links]


def in_order(steps):
    """Each of `steps` as long as it lasts in one piece."""
    return [step for n, step in enumerate(steps) if n == 0 or step != steps[n - 1]]


def tasks_in_order(links):
    return in_order([link["tid"] for link in links])


# ---- the wakeups themselves

@functools.cache
def records():
    return [line for line in objects("dump", "--json", CAPTURE) if line["kind"] == "record"]


@functools.cache
def times():
    """When each mark was written."""
    return {line["text"]: line["at_ns"] for line in records() if line["type"] == "annotation"}


def woken(begin, end):
    return [line for line in records() if times()[begin] <= line["at_ns"] <= times()[end] and
            line.get("what") == "waking"]


def wakeups(begin, end, tasks):
    """(who, whom) between the marks, of `tasks`, in order; `who` is a context if it is no task."""
    return [(line["tid"] if line["context"] == "task" else line["context"], line["about_id"])
            for line in woken(begin, end) if line["about_id"] in tasks]


@functools.cache
def sleeps():
    """(task, when): each time that a task left its CPU and could not run."""
    runs, found = {}, []
    for line in records():
        if line["type"] == "task_switch":
            if line["cpu"] in runs and line["prev_state_letter"] != "R":
                found.append((runs[line["cpu"]], line["at_ns"]))
            runs[line["cpu"]] = line["tid"]
    return found


@functools.cache
def names():
    return {line["tid"]: line["task"] for line in objects("dump", "--json", CAPTURE)
            if line["kind"] == "task"}


# ---- graphs of threads that wake each other

def is_a_chain(graph):
    """Each thread wakes the next one, and nobody else wakes them."""
    tasks = numbers(graph)
    assert len(tasks) == 4, tasks
    for begin, end in marks(graph):
        head, links = path(begin, end)
        assert tasks_in_order(links) == tasks and head["tid"] == tasks[-1], (begin, shown(links))
        assert {link["what"] for link in links} <= {"run", "queue", "preempted"}, shown(links)
        assert [link["tid"] for link in links if link["what"] == "queue"] == tasks[1:], shown(links)
        assert wakeups(begin, end, tasks) == list(zip(tasks, tasks[1:])), (
            begin, wakeups(begin, end, tasks))


def a_pipe_leads_from_each_reader_to_its_writer(tmp):
    is_a_chain("pipe")


def a_futex_convoy_leads_through_all_owners_of_the_lock(tmp):
    is_a_chain("futex")


def work_leads_from_the_reader_to_its_worker_to_the_writer(tmp):
    """A worker may be woken for other work, too: then it is not known who is in front of it."""
    writer, reader = numbers("work")
    workers = {tid for tid, name in names().items() if re.match(r"kworker/u", name)}
    alone = 0
    for begin, end in marks("work"):
        head, links = path(begin, end)
        order = tasks_in_order(links)
        assert head["tid"] == reader == order[-1] and order[-2] in workers, (begin, shown(links))
        assert wakeups(begin, end, [reader]) == [(order[-2], reader)], begin
        if wakeups(begin, end, {writer, reader} | workers) != [(writer, order[-2]),
                                                               (order[-2], reader)]:
            continue
        assert {link["what"] for link in links} <= {"run", "queue", "preempted"}, shown(links)
        assert order == [writer, order[-2], reader], (begin, shown(links))
        assert [link["tid"] for link in links if link["what"] == "queue"] == order[1:], shown(links)
        alone += 1
    assert alone >= MOST, alone


# ---- a thread that waits for what is no task

def is_woken_early(begin, end, task):
    """What it waits for was there when it still had its CPU, on its way to sleep."""
    when, = [line["at_ns"] for line in woken(begin, end) if line["about_id"] == task]
    left = [ns for tid, ns in sleeps() if tid == task and times()[begin] <= ns <= times()[end]]
    return when < left[0]


def waits_alone(graph, kinds):
    """The links in which the thread waits; it does nothing else but run and queue."""
    task, = numbers(graph)
    waits = []
    for begin, end in marks(graph):
        head, links = path(begin, end)
        assert tasks_in_order(links) == [task] and head["tid"] == task, (begin, shown(links))
        assert {link["what"] for link in links} <= {"run", "wait", "queue", "preempted"}, (
            begin, shown(links))
        assert wakeups(begin, end, [task]) == [("irq", task)], (begin, wakeups(begin, end, [task]))
        found = [link["by"] for link in links if link["what"] == "wait"]
        if is_woken_early(begin, end, task):
            assert found == [], (begin, shown(links))
            continue
        assert len(found) == 1 and found[0] in kinds, (begin, shown(links))
        waits += [link for link in links if link["what"] == "wait"]
    assert len(waits) >= MOST, (graph, waits)
    return waits


def a_nap_leads_to_the_interrupt_of_the_timer(tmp):
    for wait in waits_alone("timer", CLOCK):
        assert re.search(r"timer", wait["by_name"], re.I), wait


@functools.cache
def interrupts_of(device):
    """{number: name} of those in /proc/interrupts."""
    with open(os.path.join(RESULTS, "waits.interrupts"), encoding="utf-8") as file:
        rows = [re.match(rf" *(\d+):.* ({device}-\S+)$", line.rstrip()) for line in file]
    return {int(row[1]): row[2] for row in rows if row}


def a_read_leads_to_the_interrupt_of_its_device(tmp):
    device = did()["disk"]
    waits = waits_alone("device", ("irq",))
    assert interrupts_of(device), device
    for wait in waits:
        assert interrupts_of(device).get(wait["by_id"]) == wait["by_name"], (
            wait, interrupts_of(device))
    number, name = waits[0]["by_id"], waits[0]["by_name"]
    said = [text_of(*pair) for pair in marks("device")]
    assert any(f"device ({numbers('device')[0]}) waited for {name} (interrupt), in pread64 " in text
               for text in said), said
    print(f"# {name} is interrupt {number}")


# ---- priority inversion

def order_of(task, links):
    """What `task` did: (what, behind whom), without the stopper. Only tasks are whom."""
    steps = [(link["what"], link["by_id"] if link.get("by") == "task" else None)
             for link in links if link["tid"] == task and
             not STOPPER.match(link.get("by_name", ""))]
    return in_order(steps)


def inverts(graph, in_front):
    """
    The thread `high` waits for a lock of `low`. `mid` keeps `low` from running, or, if it is not
    `in_front`, nobody does. The path begins while `high` still runs. On a busy
    machine an emulated interrupt may take longer than a task that it interrupts.
    """
    low, mid, high = numbers(graph)
    want = [("run", None)]
    want += [("preempted", mid), ("run", None)] if in_front else []
    exactly = 0
    for begin, end in marks(graph):
        head, links = path(begin, end)
        assert head["tid"] == high and tasks_in_order(links) == [high, low, high], (begin, shown(links))
        order = order_of(low, links)
        assert [what for what, _ in order] == [what for what, _ in want] and all(
            step in (wanted, (wanted[0], None)) for step, wanted in zip(order, want)), (
                begin, shown(links))
        exactly += order == want
        of_high = in_order([what for what, behind in order_of(high, links)
                            if what != "preempted" or behind])
        assert of_high in (["run", "queue", "run"], ["run", "run"]), (begin, shown(links))
        assert wakeups(begin, end, [low, mid, high]) == [(low, mid), (low, high)], (
            begin, wakeups(begin, end, [low, mid, high]))
    assert exactly >= MOST, exactly
    return low, mid, high


def who_runs_in_front_of_the_owner_of_a_lock_is_on_the_path(tmp):
    low, mid, high = inverts("lock", in_front=True)
    said = [text_of(*pair) for pair in marks("lock")]
    assert all(f"lock-high ({high}) ran\n" in text for text in said), said
    assert any(f"lock-low ({low}) preempted, waited for its CPU behind lock-mid ({mid}), "
               f"lock-high ({high}) waited in futex 0x" in text for text in said), said


def nobody_runs_in_front_of_an_owner_that_inherits_the_priority(tmp):
    inverts("boost", in_front=False)
    assert not any("boost-mid" in text_of(*pair) for pair in marks("boost"))


# ---- how late it made them

def latency(*args):
    return objects("report", "--latency", "--json", *args, CAPTURE)


def between(begin, end):
    """The option of the report that chooses waits which began between these times."""
    return ["--time", f"{begin / 1e9:.9f},{end / 1e9:.9f}"]


def late(task, begin, end):
    """
    Waits of the task that began between these times: (preempted, which tasks ran in front), without
    the stopper.
    """
    rows = [row for row in latency("--tid", str(task), *between(begin, end))
            if row["kind"] == "latency_wait"]
    waits = [(row["preempted"], {name for kind, name, _ in row["ran"] if kind == "task"},
              {name for kind, name, _ in row["ran"] if kind == "task" and not STOPPER.match(name)})
             for row in sorted(rows, key=lambda row: row["at_ns"])]
    return [(preempted, others) for preempted, ran, others in waits if others or not ran]


def given_back(begin, end, low, high):
    """When `low` woke `high`."""
    when, = [line["at_ns"] for line in records() if times()[begin] <= line["at_ns"] <= times()[end] and
             line.get("what") == "waking" and (line["tid"], line["about_id"]) == (low, high)]
    return when


def the_latency_says_who_ran_in_front_of_the_owner_of_a_lock(tmp):
    low, mid, high = numbers("lock")
    for begin, end in marks("lock"):
        until = given_back(begin, end, low, high)
        assert late(low, times()[begin], until) == [(True, {"lock-mid"})]
        assert late(mid, times()[begin], until) == [(False, {"lock-low"})]


def the_latency_says_what_an_owner_that_inherits_the_priority_costs_others(tmp):
    low, mid, high = numbers("boost")
    for begin, end in marks("boost"):
        until = given_back(begin, end, low, high)
        assert late(low, times()[begin], until) == []
        assert late(mid, times()[begin], until) == [(False, {"boost-low", "boost-high"})]


def the_latency_says_who_gave_the_lock(tmp):
    for graph in "lock", "boost":
        low, _, high = numbers(graph)
        for begin, end in marks(graph):
            table = latency("--tid", str(high), *between(times()[begin], times()[end]))
            assert [(row["by"], row["id"], row["waits"]) for row in table
                    if row["kind"] == "latency_waker"] == [("task", low, 1)], (begin, table)


def nothing_is_lost(tmp):
    head = latency()[0]
    assert (head["lost"], head["gaps"], head["cut"], head["damaged"]) == (0, 0, 0, False), head


if __name__ == "__main__":
    tap.main(globals())
