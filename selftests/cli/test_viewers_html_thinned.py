#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to html of captures with more records than a page can show: no record is missing, sums are
exact, and what a browser shows is what it shows of the page that is not thinned."""
import base64
import collections
import copy
import functools
import json
import os
import random
import re
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
import tap  # noqa: E402
import viewers  # noqa: E402
from capture_writer import BASE  # noqa: E402
from protobuf import varint  # noqa: E402

CORES = 3
# of the whole time: all, a few pieces, less than one, both ends, most of it, and most of the second half
VIEWS = (0, 1), (0.31, 0.42), (0.311, 0.312), (0, 0.05), (0.95, 1), (0.2, 0.9), (0.4999, 1)


@functools.lru_cache
def everything(records=150000):
    """Switches, halts of any length, samples, marks, losses, values, handlers, wakeups."""
    rng, c, now = random.Random(7), viewers.begin(CORES), BASE
    for core in range(CORES):
        c.fact(f"counter.{core}.1", "instructions")
    c.fact("sources", "wake,irq,freq")
    c.fact("objects", "1")
    for name in b"Wakeups", b"Interrupts", b"Frequency", b"Migrations":
        c.custom(name, series_class=3 if name == b"Frequency" else 2)
    for task in range(20, 60):
        c.task(task, b"task%d" % task)
        c.map(task, 0x10000, 0x8000, 0, b"/gone/program%d" % (task % 3))
    chains = [[0x10000 + rng.randrange(0x9000) for _ in range(rng.randrange(1, 8))] for _ in range(200)]
    handled = [0] * CORES
    for number in range(records):
        now += rng.randrange(1, 2000 if number % 1000 else 10**6)
        core, what, task = rng.randrange(CORES), rng.random(), rng.randrange(20, 60)
        if core == 2 and number % 20000 > 3000:     # nothing happens there for long
            continue
        if handled[core]:
            handled[core] = 0
            c.about(core, now, task, 3, viewers.IRQ_EXIT, 33, 0, 2, 0)
        elif what < 0.45:
            blocked = rng.randrange(2)
            c.switch(core, now, rng.choice((0, task)), blocked=blocked,
                     waits_for=(202, 8, 0, 0, 4096 + task) if blocked and number % 3 else None)
        elif what < 0.6:
            c.halt(core, now, rng.randrange(2), rng.choice((None, 0, 1, 2)))
        elif what < 0.8:
            chain = rng.choice(chains)
            c.sample(core, now, task, chain[0], (rng.randrange(10**6), rng.choice((rng.randrange(10**6), viewers.INVALID))),
                     chain)
        elif what < 0.84:
            c.value(core, now, 0, rng.randrange(50000), task)
        elif what < 0.88:
            c.about(core, now, task, 4, viewers.FREQUENCY, 0, core, 3, rng.randrange(10**6))
        elif what < 0.93:
            c.about(core, now, task, 2, viewers.WAKING, rng.randrange(20, 60), rng.randrange(CORES), 0, 1)
        elif what < 0.98:
            handled[core] = 1
            c.about(core, now, task, 3, viewers.IRQ_ENTRY, 33, 0, 2, 1)
        elif what < 0.985:
            c.annotation(core, now, task, b"mark %d" % now, kind=rng.randrange(4), channel=rng.randrange(3))
        elif what < 0.987:
            c.value(core, now, 1, rng.randrange(1, 100))
    return c


def pages(tmp, capture=None):
    """(the capture, its full page, its thinned page)"""
    path = (capture or everything()).save(os.path.join(tmp, "a.cap"))
    made = []
    for form in "full", "thinned":
        made.append(os.path.join(tmp, form + ".html"))
        viewers.convert(path, "html", made[-1], "--format", form)
    return path, *made


def read(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


def tables(text):
    return json.loads(re.search(r'<script type="application/json" id="tables">\n(.*?)\n?</script>', text, re.S)[1])


def unpacked(text, name):
    """The elements of a class, without their packing."""
    found = re.findall(rf'<script type="text/plain" class="{name}">\n(.*?)</script>', text, re.S)
    return [zlib.decompress(b"".join(map(base64.b64decode, one.split())), 31) for one in found]


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


# the column of a kind's first field behind the time, and the number of those fields
FIELDS = {0: (2, 1), 1: (2, 1), 2: (2, 1), 3: (7, 3), 4: (11, 2), 5: (14, 2), 7: (17, 2)}
TIMES = {0: 1, 1: 1, 2: 1, 3: 6, 4: 10, 5: 13, 6: 26, 7: 16}
COLUMNS = 26


def columns_of(piece):
    at, found = 0, []
    for _ in range(COLUMNS):
        length, at = varint(piece, at)
        found.append(piece[at:at + length])
        at += length
    assert at == len(piece)
    return found


def events(columns):
    """(CPU, kind, time, …) of events, without marks; those of a full page are in one column."""
    at, last, found = [0] * len(columns), collections.Counter(), []

    def number(column):
        column = column if len(columns) > 1 else 0
        value, at[column] = varint(columns[column], at[column])
        return value

    while at[0] < len(columns[0]):
        tag = number(0)
        kind, cpu, delta = tag & 7, tag >> 3, number(TIMES[tag & 7])
        clock = 0 if kind < 3 else kind
        last[cpu, clock] += delta >> 1 ^ -(delta & 1)
        when = last[cpu, clock]
        if kind == 6:
            length = [number(26) for _ in range(5)][4]
            at[0] += length
            continue
        first, nr = FIELDS[kind]
        event = [cpu, kind, when, *(number(first + i) for i in range(nr))]
        if kind < 3:
            event.append(number(3 + kind))
            if kind == 0 and event[-1] & 3 == 3:
                event.append(number(3))
                event += [number(3)] if event[-1] & 2 else []
            last[cpu, 0] += event[3]
        elif kind == 7:
            event += [number((22 if event[3] else 19) + i) for i in range(4 if event[3] else 3)]
        found.append(tuple(event))
    assert at == list(map(len, columns))
    return found


def events_of_pages(full, thinned):
    whole = re.search(r'id="events">\n(.*?)</script>', read(full), re.S)[1]
    return (events([b"".join(map(base64.b64decode, whole.split()))]),
            [event for piece in unpacked(read(thinned), "piece") for event in events(columns_of(piece))])


def every_record_is_in_a_piece(tmp):
    _, full, thinned = pages(tmp)
    want, got = events_of_pages(full, thinned)
    assert len(unpacked(read(thinned), "piece")) > 16 and len({kind for _, kind, *_ in want}) == 7
    viewers.same("events", want, got)


def tables_are_those_of_the_full_page(tmp):
    _, full, thinned = map(lambda path: path.endswith(".html") and tables(read(path)), pages(tmp))
    assert thinned.pop("thinned")["group"] == 16
    assert full == thinned


def sums_are_those_of_the_report(tmp):
    path, _, thinned = pages(tmp)
    said = viewers.Said(path)
    names, all_of_it = tables(read(thinned))["tasks"], unpacked(read(thinned), "all")
    assert len(all_of_it) == 1
    idle, lost, nr, *rest = numbers(all_of_it[0])
    rows = [rest[5 * i:5 * i + 5] for i in range(nr)]
    run, left, samples = collections.Counter(), collections.Counter(), collections.Counter()
    for task, ns, runs, preempted, blocked in rows:
        run[names[task][0]] += ns
        left[names[task][0], 0] += preempted
        left[names[task][0], 1] += blocked
        assert runs >= preempted + blocked
    calls = rest[5 * nr:]
    for i in range(0, len(calls), 5):
        samples[names[calls[i]][0]] += calls[i + 2]
    assert idle == sum(said.truth.idle.values()) and lost > 0
    viewers.same("run", sorted((+said.truth.run).items()), sorted((+run).items()))
    viewers.same("left", sorted((+said.truth.left).items()), sorted((+left).items()))
    want = collections.Counter()
    for (_, task), number in said.samples.items():
        want[task] += number
    viewers.same("samples", sorted(want.items()), sorted((+samples).items()))
    # the sums of all pieces, and those of all groups, are the same
    for name in "sums", "group":
        totals = [numbers(one)[:2] for one in unpacked(read(thinned), name)]
        assert [sum(one) for one in zip(*totals)] == [idle, lost], name


def report_has_the_same_times(tmp):
    path, _, thinned = pages(tmp)
    names = tables(read(thinned))["tasks"]
    _, _, nr, *rest = numbers(unpacked(read(thinned), "all")[0])
    run = collections.Counter()
    for i in range(nr):
        run[names[rest[5 * i]][0]] += rest[5 * i + 1]
    result, want = tap.run("report", path, "--json"), collections.Counter()
    for line in map(json.loads, result.stdout.splitlines()):
        if line["kind"] == "task_time":
            want[line["tid"]] += line["run_ns"]
    viewers.same("report", sorted((+want).items()), sorted((+run).items()))


LOOK = """<script>
const settle = async () => {
  page.update();
  while (page.thinned && (page.thinned.loading !== undefined || page.thinned.summing !== undefined)) await new Promise(done => setTimeout(done, 1));
  page.update();
};
const rowsOf = (columns, key, names) => {
  const { start, end } = page.timeline, out = [];
  for (let i = lowerBound(columns[key], start); i < lowerBound(columns[key], end); i++) out.push(names.map(name => columns[name][i]));
  return out;
};
const look = async ([from, to]) => {
  const { timeline: t, capture, flame } = page, all = capture.length;
  t.show(from * all, to * all);
  await settle();
  const seen = { full: !page.thinned || page.thinned.isFull, says: byId('thinned').textContent, tasks: page.tasks.rows, idle: page.tasks.idle, lost: page.tasks.lost,
    nodes: [...flame.self].map((n, i) => [i, n]).filter(([, n]) => n), marks: capture.marks.length,
    busy: capture.cpus.map(cpu => t.busyBetween(cpu, t.start, t.end)), labels: t.rows.map(row => row.label),
    rates: t.rows.filter(row => row.rates || row.values).map(row => [...row.rates || row.values].map(n => Number.isFinite(n) ? n : null)) };
  seen.notes = t.rows.map(row => row.note || '');
  seen.levels = t.rows.filter(row => ['cpu', 'value', 'latency'].includes(row.kind)).map(row => [row.label, row.note]);
  seen.totals = capture.counterTracks.map(track => [track.id, track.cpu, track.sum[track.sum.length - 1]]).sort();
  if (!seen.full) return seen;
  seen.slices = capture.cpus.map(c => { const out = []; for (let i = lowerBound(c.end, t.start); i < lowerBound(c.start, t.end); i++) out.push([c.start[i], c.end[i], c.kind[i], c.what[i], c.how[i], c.object[i] || 0]); return out; });
  seen.samples = capture.cpus.map(c => rowsOf(c.samples, 'time', ['time', 'task', 'node', 'weight']));
  seen.handlers = capture.cpus.map(c => rowsOf(c.handlers, 'start', ['start', 'length', 'task', 'which', 'depth']));
  seen.wakeups = rowsOf(capture.wakeups, 'to', ['from', 'to', 'waker', 'woken', 'fromCpu', 'toCpu', 'context', 'wait']);
  seen.arrows = t.sources.arrows().length;
  seen.values = t.rows.filter(row => row.kind === 'value').map(row => [row.label, rowsOf(row.track, 'time', ['time', 'value'])]);
  return seen;
};
MORE
</script>
"""
LOOK_AT_VIEWS = """Promise.resolve(opened).then(async () => {
  const said = [];
  for (const view of VIEWS) said.push(await look(view));
  document.body.dataset.said = JSON.stringify(said);
});"""


def ask(page, script):
    """What a script says that runs behind those of the page."""
    with open(page + ".asked.html", "w", encoding="utf-8") as file:
        file.write(read(page) + LOOK.replace("MORE", script))
    dom = browser.dom(page + ".asked.html", "--virtual-time-budget=60000")
    return json.loads(browser.attribute(dom, "data-said"))


def are_close(one, other):
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-6 * max(1, abs(one), abs(other))
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(are_close, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(are_close(one[key], other[key]) for key in one)
    return one == other


def browser_shows_what_it_shows_of_the_full_page(tmp):
    _, full, thinned = pages(tmp)
    script = LOOK_AT_VIEWS.replace("VIEWS", json.dumps(VIEWS))
    want, got = ask(full, script), ask(thinned, script)
    assert [view["full"] for view in got] == [False, True, True, True, True, False, False]
    for where, one, other in zip(VIEWS, want, got):
        exact = ["tasks", "idle", "lost", "nodes", "marks", "labels"]
        if other["full"]:
            exact += ["busy", "rates", "notes", "slices", "samples", "handlers", "wakeups", "arrows", "values"]
            assert "does not say how long tasks waited" in other["says"], other["says"]
            assert sum(map(len, other["slices"])) > 5 and other["says"].startswith("each record in view is shown, of ")
        else:
            assert re.match(r"thinned: [\d,]+ records in cells of [\d.]+ \S+; zoom in to less than [\d.]+ \S+ to see each;",
                            other["says"]), other["says"]
        if where == (0, 1):
            exact += ["levels", "totals"]
        for key in exact:
            assert are_close(one[key], other[key]), (where, key, str(one[key])[:500], str(other[key])[:500])
        # cells have what is in them, but not where in them
        cell = tables(read(thinned))["thinned"]["cell"]
        for ns, about in zip(one["busy"], other["busy"]):
            assert abs(ns - about) <= 2 * cell, (where, ns, about, cell)


def zoom_that_is_promised_shows_each_record(tmp):
    _, _, thinned = pages(tmp)
    said = ask(thinned, """opened.then(async () => {
  const said = [];
  for (const at of [0.01, 0.3, 0.5, 0.77, 0.999]) {
    const all = page.capture.length, middle = at * all, longest = page.thinned.longest(middle);
    page.timeline.show(0, all);
    page.timeline.show(Math.max(0, middle - longest / 2), Math.min(all, middle + longest / 2));
    await settle();
    said.push(page.thinned.isFull);
  }
  document.body.dataset.said = JSON.stringify(said);
});""")
    assert said == [True] * 5, said


def search_finds_what_is_in_no_cell(tmp):
    """A task that runs once, for a few nanoseconds."""
    capture = copy.deepcopy(everything(30000))
    capture.task(999, b"rare")
    at = capture.last + 100
    capture.switch(0, at, 999)
    capture.switch(0, at + 3, 20)
    rng = random.Random(1)
    for number in range(60000):
        capture.switch(rng.randrange(2), at + 1000 + 1000 * number, rng.randrange(20, 60))
    _, _, thinned = pages(tmp, capture)
    said = ask(thinned, """opened.then(async () => {
  page.search('rare');
  page.timeline.show(0, 1000);
  await page.timeline.jump(true);
  await settle();
  document.body.dataset.said = JSON.stringify([(page.timeline.start + page.timeline.end) / 2, page.thinned.isFull]);
});""")
    assert abs(said[0] - (at - BASE)) < 1 and said[1], (said, at)


def memory_of_the_page_is_bounded(tmp):
    _, _, thinned = pages(tmp)
    said = ask(thinned, """opened.then(async () => {
  const all = page.capture.length, said = [];
  for (let at = 0; at < 1; at += 0.01) {
    page.timeline.show(at * all, (at + 0.02) * all);
    await settle();
    said.push([page.thinned.kept.all.size, page.thinned.window.last - page.thinned.window.first]);
  }
  document.body.dataset.said = JSON.stringify([Math.max(...said.map(([kept]) => kept)), Math.max(...said.map(([, pieces]) => pieces)), page.thinned.pieces.length]);
});""")
    assert said[0] <= 20 < said[2] and said[1] < 14, said


def small_and_hostile_captures_can_be_thinned(tmp):
    for path in viewers.all_captures(tmp):
        out = os.path.join(tmp, "a.html")
        viewers.convert(path, "html", out, "--format", "thinned")
        assert len(unpacked(read(out), "all")) == 1, path
    for capture in viewers.small(), viewers.hostile(), viewers.CaptureWriter():
        path = capture.save(os.path.join(tmp, "b.cap"))
        viewers.convert(path, "html", out, "--format", "thinned")
        dom = browser.dom(out)
        assert browser.attribute(dom, "data-ready"), path


def part_of_a_capture_is_thinned_like_all_of_it(tmp):
    path, made = everything(30000).save(os.path.join(tmp, "a.cap")), []
    for form in "full", "thinned":
        out = os.path.join(tmp, form + ".html")
        viewers.convert(path, "html", out, "--format", form, "--time", "0.01,0.02", "--cpu", "0,2")
        made.append(out)
    want, got = events_of_pages(*made)
    assert want and want == got
    script = LOOK_AT_VIEWS.replace("VIEWS", "[[0, 1], [0.2, 0.3]]")
    for one, other in zip(ask(made[0], script), ask(made[1], script)):
        assert are_close(one["tasks"], other["tasks"])


def page_from_a_pipe_is_thinned_only_if_asked(tmp):
    path = everything(30000).save(os.path.join(tmp, "a.cap"))
    for form in "auto", "thinned":
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            result = tap.run("convert", "-", "--to", "html", "--format", form, "-o", os.path.join(tmp, "a.html"),
                             stdin=cat.stdout)
        assert result.returncode == 0, result
        assert bool(unpacked(read(os.path.join(tmp, "a.html")), "piece")) == (form == "thinned")


def short_captures_are_not_thinned(tmp):
    path, full, _ = pages(tmp)
    viewers.convert(path, "html", os.path.join(tmp, "a.html"))
    assert read(full) == read(os.path.join(tmp, "a.html"))


if __name__ == "__main__":
    tap.main(globals())
