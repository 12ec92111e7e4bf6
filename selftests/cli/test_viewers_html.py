#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert --to html: what is in the page, by a reader of its own, and what a browser makes
of it."""
import base64
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import browser  # noqa: E402
import tap  # noqa: E402
import test_waits  # noqa: E402
import viewers  # noqa: E402
from make_capture import Maker  # noqa: E402
from protobuf import varint  # noqa: E402
from simulate import Machine  # noqa: E402

RUN, IDLE, LOST, SAMPLE, COUNTER, SERIES, MARK, SOURCE = range(8)


def page_of(tmp, path, name="a.html"):
    out = os.path.join(tmp, name)
    viewers.convert(path, "html", out)
    return out


def signed(number):
    """As 64 bits have it."""
    return (number + 2**63) % 2**64 - 2**63


class Data:
    """The events in a page and the tables behind them."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        events = re.search(r'<script type="text/plain" id="events">\n(.*?)</script>', text, re.S)
        tables = re.search(r'<script type="application/json" id="tables">\n(.*?)\n?</script>', text, re.S)
        self.text, self.tables = text, json.loads(tables[1])
        self.data, self.at = b"".join(map(base64.b64decode, events[1].split())), 0
        self.cpus = self.tables["facts"]["cpus"]
        self.last = collections.Counter()
        self.slices, self.samples, self.values, self.marks = [], [], [], []
        self.handlers, self.wakeups, self.left, self.objects = [], [], {}, {}
        while self.at < len(self.data):
            tag = self.number()
            self.take(tag & 7, tag >> 3)

    def number(self):
        value, self.at = varint(self.data, self.at)
        return value

    def time(self, cpu, kind):
        delta = self.number()
        self.last[cpu, kind] = signed(self.last[cpu, kind] + (delta >> 1 ^ -(delta & 1)))
        return self.last[cpu, kind]

    def take(self, kind, cpu):
        assert cpu < self.cpus or (cpu == self.cpus and kind in (SERIES, MARK)), cpu
        if kind <= LOST:
            start, length, what = self.time(cpu, RUN), self.number(), self.number()
            self.last[cpu, RUN] = signed(start + length)
            if kind == RUN and what & 3 == 3:
                left = self.number()
                what, self.left[start] = what - 2 + (left & 1), left >> 2
                if left & 2:
                    self.objects[start + length] = self.tables["objects"][self.number()]
            self.slices.append((kind, cpu, start, signed(start + length), what))
        elif kind == SAMPLE:
            self.samples.append((cpu, self.time(cpu, kind), self.number(), self.number(), self.number() - 1))
        elif kind == SOURCE:
            start, is_wakeup, length = self.time(cpu, kind), self.number(), self.number()
            if is_wakeup:
                waker, woken, to_cpu, context = (self.number() for _ in range(4))
                self.wakeups.append((cpu, start, to_cpu, start + length, self.tables["tasks"][waker][0],
                                     self.tables["tasks"][woken][0], context))
            else:
                task, which, depth = (self.number() for _ in range(3))
                self.handlers.append((cpu, start, start + length, self.tables["tasks"][task][0],
                                      *self.tables["handlers"][which], depth))
        elif kind == MARK:
            when, task, sort, channel, colour, length = (
                self.time(cpu, kind), *(self.number() for _ in range(5)))
            text = self.data[self.at:self.at + length].decode()
            self.at += length
            self.marks.append((when, self.tables["tasks"][task][0], sort, text))
            assert channel < 2**32 and colour < 2**32
        else:
            self.values.append((kind, cpu, self.time(cpu, kind), self.number(), self.number()))


def page_has_what_the_capture_has(tmp):
    for path in viewers.all_captures(tmp):
        said, data = viewers.Said(path), Data(page_of(tmp, path))
        tasks = data.tables["tasks"]
        idle, run, left, lost = (collections.Counter() for _ in range(4))
        for kind, cpu, start, end, what in data.slices:
            assert end >= start
            if kind == IDLE:
                idle[cpu] += end - start
            elif kind == LOST:
                lost[0] += what
            else:
                run[tasks[what >> 2][0]] += end - start
                if what & 3:
                    left[tasks[what >> 2][0], (what & 3) - 1] += 1
        if "golden" not in path:    # whose samples say who runs without a PC, too
            viewers.same(path, sorted((+said.truth.idle).items()), sorted((+idle).items()))
            viewers.same(path, sorted((+said.truth.run).items()), sorted((+run).items()))
            viewers.same(path, sorted((+said.truth.left).items()), sorted(left.items()))
        assert lost[0] == said.truth.lost == data.tables["facts"]["lost"]
        got = collections.Counter((cpu, tasks[task][0]) for cpu, _, task, _, _ in data.samples)
        viewers.same(path, sorted(said.samples.items()), sorted(got.items()))
        want = [(*mark[:3], mark[3][:1024]) for mark in said.marks]
        viewers.same(path, sorted(want, key=str), sorted(data.marks, key=str))
        series = [s["name"] for s in data.tables["series"]]
        viewers.same(path, sorted((ns, series.index(name), value) for ns, _, name, value in
                                  said.values_and("migrate", "frequency", "idle_miss", "syscall", "fault", "block")),
                     sorted((ns, which, value) for kind, _, ns, which, value in data.values if kind == SERIES))
        if "golden" not in path:    # whose counters are not deltas
            sums = collections.Counter()
            for kind, _, _, which, value in data.values:
                if kind == COUNTER:
                    sums[which] += value
            assert sorted(filter(None, sums.values())) == viewers.counter_sums(said), path


def sources_are_handlers_and_wakeups(tmp):
    data = Data(page_of(tmp, viewers.sources().save(os.path.join(tmp, "a.cap"))))
    assert sorted(data.handlers) == [
        (0, 1000, 1200, 10, "virtio0", "irq", 0), (0, 1300, 1400, 10, "eth0", "irq", 0),
        (0, 1500, 1900, 10, "NET_RX", "softirq", 0),
        (0, 1700, 1800, 10, "Rescheduling interrupts", "ipi", 1)], data.handlers
    assert sorted(data.wakeups) == [(0, 1600, 0, 2000, 10, 11, 1), (0, 2500, 1, 2750, 11, 12, 0)], \
        data.wakeups
    # what is no handler and no wakeup is a value, and nothing is both
    assert sorted((when, cpu, which, value) for _, cpu, when, which, value in data.values) == [
        (1650, 0, 3, 1), (2600, 1, 6, 1200000), (2700, 1, 7, 1), (2800, 1, 2, 5),
        (2960, 0, 8, 1), (2970, 0, 8, 1), (2972, 0, 9, 1), (2974, 0, 9, 1), (2976, 0, 9, 1), (2980, 1, 10, 1),
        (2984, 1, 10, 1)], data.values


LOOK_AT_SOURCES = """<script>
const said = [], t = page.timeline, s = t.sources;
said.push(t.rows.map(row => row.kind + ' ' + row.label));
const [cpu0] = t.rows.filter(row => row.kind === 'cpu'), [irq] = t.rows.filter(row => row.kind === 'irq');
t.show(1500, 2100);
said.push(s.arrows().length, s.describeHandler(irq, 1750)[0], s.describeHandler(irq, 1850)[0], s.describeHandler(irq, 1950));
said.push(t.describeSlice(cpu0, t.slice(cpu0.cpu, 2000))[1]);
said.push(s.describeLatency(2000)[0]);
said.push(new Largest(Float64Array.from([3, 1, 4, 1, 5, 9, 2])).between(1, 5));
let wrong = 0;
const values = Float64Array.from({ length: 77 }, (_, i) => i * 7919 % 101), largest = new Largest(values);
for (let i = 0; i <= 77; i++) for (let j = i; j <= 77; j++)
  if (largest.between(i, j) !== values.slice(i, j).reduce((a, b) => Math.max(a, b), 0)) wrong++;
said.push(wrong);
document.body.dataset.said = JSON.stringify(said);
</script>
"""


def browser_shows_interrupts_and_wakeups(tmp):
    page = page_of(tmp, viewers.sources().save(os.path.join(tmp, "a.cap")))
    with open(page, "a", encoding="utf-8") as file:
        file.write(LOOK_AT_SOURCES)
    said = json.loads(browser.attribute(browser.dom(page), "data-said"))
    assert said[0][:5] == ["cpu CPU 0", "irq interrupts", "cpu CPU 1", "latency woken to running",
                           "rate Wakeups"], said[0]
    assert said[1:5] == [1, "Rescheduling interrupts", "NET_RX", None], said
    assert "woken by alpha (10), from a softirq, 400 ns before" in said[5], said
    assert said[6:] == ["beta (10/11) waited 400 ns", 5, 0], said


def samples_have_their_symbols(tmp):
    for path in viewers.all_captures(tmp):
        if "golden" in path or "hostile" in path:
            continue
        said, data = viewers.Said(path), Data(page_of(tmp, path))
        symbols = collections.Counter()
        for _, _, _, node, _ in data.samples:
            name, image, _ = data.tables["frames"][data.tables["nodes"][node]]
            image = os.path.basename(image)
            symbols[image, "[unknown]" if name in (image, f"[{image}]") else name] += 1
        viewers.same(path, sorted(said.symbols.items()), sorted((k, symbols[k]) for k in said.symbols))


def chains_are_callers_first(tmp):
    data = Data(page_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap"))))
    node, names = data.samples[1][3], []
    while node:
        names.append(data.tables["frames"][data.tables["nodes"][node]][0])
        assert data.tables["parents"][node] < node
        node = data.tables["parents"][node]
    assert names == ["[libbeta.so]", "[alpha]", "[alpha]"], names


def page_needs_nothing_else(tmp):
    with open(page_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap"))), encoding="utf-8") as file:
        text = file.read()
    assert "default-src 'none'" in text
    for word in "http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "XMLHttp", "WebSocket":
        assert word not in text, word


def names_stay_out_of_the_markup(tmp):
    clean = Data(page_of(tmp, viewers.small().save(os.path.join(tmp, "small.cap"))))
    worst = Data(page_of(tmp, viewers.hostile().save(os.path.join(tmp, "hostile.cap"))))
    for text in "<script", "</script", "<!--":
        assert worst.text.count(text) == clean.text.count(text), text
    names = {task[0]: task[2] for task in worst.tables["tasks"]}
    for number, name in enumerate(viewers.HOSTILE):
        assert names[100 + number] == name.decode(errors="replace")[:256], (name, names)


def browser_shows_the_tasks(tmp):
    path = viewers.random_capture(3).save(os.path.join(tmp, "a.cap"))
    said, dom = viewers.Said(path), browser.dom(page_of(tmp, path))
    rows, got = browser.Rows(dom).rows, {}
    for name, tid, _, _, runs, preempted, _, blocked, _, samples in rows:
        got[int(tid)] = (name, int(preempted.replace(",", "")), int(blocked.replace(",", "")),
                         int(samples.replace(",", "")))
        assert int(runs.replace(",", "")) >= got[int(tid)][1] + got[int(tid)][2]
    samples = collections.Counter()
    for (_, task), number in said.samples.items():
        samples[task] += number
    want = {task: (said.names[task], said.truth.left[task, 0], said.truth.left[task, 1], samples[task])
            for task in set(samples) | set(said.truth.run)}
    assert got == want, (got, want)
    assert browser.attribute(dom, "data-ready"), "it did not come to its end"


def asked(page, script):
    """What a script says that runs behind those of the page."""
    with open(page, "a", encoding="utf-8") as file:
        file.write(f"<script>document.body.dataset.said = JSON.stringify((() => {{ {script} }})());</script>")
    return json.loads(browser.attribute(browser.dom(page), "data-said"))


def a_page_of_a_part_says_so(tmp):
    path = viewers.random_capture(3).save(os.path.join(tmp, "a.cap"))
    for args, part in ([], False), (["--cpu", "0"], True):
        page = os.path.join(tmp, "a.html")
        done = tap.run("convert", "--to", "html", *args, "-o", page, path)
        assert done.returncode == 0, done
        assert ("which options chose" in asked(page, "return document.getElementById('facts').textContent;")) == part


WAITS = """
const said = [], { tasks, timeline } = page, all = page.capture.length;
for (const [from, to] of [[0, 1], [0.2, 0.55], [0.5, 0.500001]]) {
  timeline.show(from * all, to * all);
  page.update();
  const sums = {};
  page.capture.tasks.forEach(([tid], i) => {
    const sum = sums[tid] = sums[tid] || [0, 0];
    sum[0] += tasks.waited.ready[i];
    sum[1] += tasks.waited.away[i];
  });
  said.push([timeline.start, timeline.end, sums]);
}
return said;
"""


def waits_of_tasks_are_those_of_the_report(tmp):
    path = Machine(4).save(os.path.join(tmp, "a.cap"))
    for start, end, sums in asked(page_of(tmp, path), WAITS):
        done = tap.run("report", "-j", "--time", f"{start / 1e9:.12f},{end / 1e9:.12f}", path)
        rows = [row for row in map(json.loads, done.stdout.splitlines()) if row["kind"] == "task_time"]
        want = {row["tid"]: (row["preempted_ns"], row["blocked_ns"]) for row in rows
                if row["tid"] and row["preempted_ns"] + row["blocked_ns"]}
        got = {int(tid): sum for tid, sum in sums.items() if sum[0] + sum[1] > 0.5}
        assert got.keys() == want.keys(), (start, end, got, want)
        for tid, (ready, away) in want.items():
            assert abs(got[tid][0] - ready) < 2 and abs(got[tid][1] - away) < 2, (tid, got[tid], ready, away)
    assert rows


BY_STACK = """
const said = [], { flame, timeline } = page, select = byId('weight'), choose = value => {
  select.value = value;
  select.dispatchEvent(new Event('change'));
};
const chain = node => node ? [...chain(page.capture.parents[node]), flame.name(node)] : [];
const look = () => [byId('flame-of').textContent, Object.fromEntries([...flame.self].map((ns, node) => [chain(node).join(';'), ns]).filter(([, ns]) => ns))];
said.push([...select.options].map(option => option.textContent));
choose('waits');
said.push(look());
const node = flame.children.get(0).find(n => flame.name(n) === 'do_wait');
if (node) said.push(flame.describe(node));
page.choose(page.capture.tasks.findIndex(([tid]) => tid === 8));
said.push(look());
page.clear();
timeline.show(1200, 2200);
page.update();
said.push(look());
const cpu = timeline.rows.find(row => row.kind === 'cpu');
said.push(timeline.describeSlice(cpu, 0)[1]);
choose('samples');
said.push(look()[0]);
return said;
"""


def waits_stand_at_the_call_chain_with_which_they_began(tmp):
    path = test_waits.make(tmp)
    options, everything, node, burner, part, tip, samples = asked(page_of(tmp, path), BY_STACK)
    assert options == ["cycles", "samples", "waiting time"], options
    assert everything == ["of all tasks", {"schedule": 5000, "do_poll;schedule": 500, "do_wait;schedule": 1000}], everything
    assert node == "do_wait: [kernel.kallsyms]: 15.38 %, 1.00 µs waiting time; itself 0.00 %", node
    assert burner == ["of burner (8)", {"schedule": 5000}], burner
    # the page begins with 0, the capture with 1000: one wait is cut at its begin, the other one at its end
    assert part == ["of all tasks", {"schedule": 200, "do_wait;schedule": 800}], part
    assert tip.splitlines()[1:4] == ["then blocked in", "schedule", "do_wait"], tip
    assert samples == "no samples here", samples
    folded = os.path.join(tmp, "a.folded")
    viewers.convert(path, "folded", folded, "--format", "offcpu")
    with open(folded, encoding="utf-8") as file:
        other = dict(line.rsplit(" ", 1) for line in file.read().splitlines())
    assert sum(map(int, other.values())) == sum(everything[1].values()), (other, everything)


CLICKED = """
const { timeline, capture } = page, said = [];
const click = tid => [...byId('body').children].find(row => capture.tasks[row.dataset.task][0] === tid).firstChild.click();
const own = () => timeline.rows.filter(row => row.kind === 'task').map(row => row.label);
const before = timeline.rows.map(row => row.y);
click(7);
said.push(own(), page.nameOf(page.chosen));
click(8);
said.push(own(), page.nameOf(page.chosen));
timeline.draw();
const box = byId('timeline').getBoundingClientRect(), hover = (row, time) => timeline.describe({ clientX: box.left + timeline.x(time), clientY: box.top + row.y + 10 });
const [first, second] = timeline.rows;
said.push([500, 1500, 3000, 6800].map(time => hover(first, time)[0]), [1500, 4000].map(time => hover(second, time)[0]), second.note);
click(8);
said.push(own(), page.chosen === undefined);
click(7);
said.push(own(), JSON.stringify(timeline.rows.map(row => row.y)) === JSON.stringify(before));
return said;
"""


def a_task_has_a_row_of_its_own_until_the_next_click(tmp):
    said = asked(page_of(tmp, test_waits.make(tmp)), CLICKED)
    assert said[:4] == [["waiter (7)"], "waiter (7)", ["waiter (7)", "burner (8)"], "burner (8)"], said
    assert said[4] == [f"waiter (7): {state}" for state in ("running", "waiting", "running", "waiting")], said
    assert said[5] == ["burner (8): running", "burner (8): runnable"], said
    assert said[6].endswith(" % running") and said[7:] == [["waiter (7)"], True, [], True], said


def page_has_what_tasks_wait_for(tmp):
    data = Data(page_of(tmp, test_waits.make_objects(tmp)))
    assert [row for _, row in sorted(data.objects.items())] == 2 * [
        ["pipe", "read", "pipe 4711", 0, 0], ["file", "fsync", "file 8:1 inode 12", 0, 1],
        ["futex", "futex", "0x7f001000 of process 7", 0, 0], ["call", "clock_nanosleep", "", 0, 0],
        ["no_call", "", "", 0, 5], ["call", "", "", 0, 0], ["other", "read", "", 0, 0],
        ["rwsem_write", "write", "Linux's rwsem_write 0xffff888001000000", 3, 0],
        ["mutex", "", "Linux's mutex", 4, 4], ["fault", "", "page fault", 0, 5], ["fault", "read", "page fault", 0, 0],
        ["fault", "", "page fault", 0, 5]], data.objects
    assert len(data.tables["objects"]) == 11    # the same thing is there once
    assert [data.tables["tasks"][i][0] for i in (2, 3)] == [8, 9], data.tables["tasks"]
    assert "objects" not in Data(page_of(tmp, test_waits.make(tmp))).tables


PICKED = """
const { timeline, capture } = page, said = [], canvas = byId('timeline'), [row] = (page.toggle(capture.tasks.findIndex(([tid]) => tid === 7)), timeline.rows);
canvas.setPointerCapture = () => {};
timeline.draw();
const { start, end, state } = statesOf(row, capture).intervals;
const at = (row, time) => {
  const box = canvas.getBoundingClientRect();
  return { button: 0, clientX: box.left + timeline.x(time), clientY: box.top + row.y + 10 };
};
const click = i => {
  for (const type of ['pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(type, at(row, (start[i] + end[i]) / 2)));
  return byId('picked').hidden ? null : byId('picked').textContent;
};
const key = key => {
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  return byId('picked').textContent.split('\\n')[0];
};
const painted = new Map(), { fillRect } = timeline.context;
timeline.context.fillRect = function(x, y, width, height) {
  if (width === 1 && height > CPU_ROW - 1 && y < row.y + 1) painted.set(x, this.fillStyle);
  fillRect.call(this, x, y, width, height);
};
const colourAt = i => painted.get(Math.floor(timeline.x((start[i] + end[i]) / 2)));
"""


def a_click_on_a_wait_says_for_what(tmp):
    capture = test_waits.Late(cores=1, facts={"machine": "x86_64", "objects": "1", "tgid.2": "7",
                                              f"object.3.12.{8 << 20 | 1}.0": "/srv/log"})
    for tid, name in (7, "waiter"), (8, "holder"), (9, "other"):
        capture.task(tid, name)
    waits = [(202, 8, 0, 8, 0x1000), (74, 3, 1, 8 << 20 | 1, 12), (0, 6, 0, 4, 98), (0, 5, 0, 5, 4711), (230, 1, 0, 0, 0),
             (7, 1, 0, 0, 0), (0, 13, 5, 0, 0x602000), (61, 1, 0, 0, 0), (34, 1, 0, 0, 0), None]
    for i, waits_for in enumerate(waits):
        capture.switch(0, 1000 * i, 7)
        capture.switch(0, 1000 * i + 200, 9, blocked=True, state=1, waits_for=waits_for)
        if not i:
            capture.waking(0, 900, 9, 7)
    capture.switch(0, 1000 * len(waits), 7)
    page = page_of(tmp, capture.save(os.path.join(tmp, "a.cap")))
    groups = ["lock", "file", "socket", "pipe", "timer", "poll", "fault", "child", "other", "idle"]
    said = asked(page, PICKED + f"""
const waits = [...start.keys()].filter(i => state[i] >= WAITING), groups = {groups};
said.push(byId('groups').hidden ? [] : [...byId('groups').children].map(one => one.textContent));
said.push(waits.map(i => timeline.describe(at(row, (start[i] + end[i]) / 2))[0]));
said.push(waits.map(click), click(waits.at(-1)));
for (const dark of [false, true]) {{
  page.setTheme(dark);
  timeline.draw();
  waits.forEach((i, k) => said.push(colourAt(i) === colours[groups[k]] ? '' : groups[k] + dark + colourAt(i)));
}}
said.push([key('w'), key('w'), key('W'), page.picked.start], key('Escape'), byId('groups').hidden);
return said;""")
    legend, titles, picked, again, *colours, keys, none, hidden = said
    names = ["lock", "file or disk", "socket", "pipe", "timer", "poll", "page fault", "child process", "other"]
    assert legend == names and titles == [f"waiter (7): waiting: {name}" for name in names] + ["waiter (7): waiting"], said[:2]
    assert [text.split("\n")[2:] for text in picked] == [
        ["futex 0x1000 of process 7", "held by holder (7/8) when it began", "woken by other (9) 100 ns before"],
        ["fsync /srv/log (disk)"], ["read socket 98"], ["read pipe 4711"], ["clock_nanosleep"], ["poll"],
        ["page fault (disk)"], ["wait4"], ["pause"], []], picked
    assert picked[0].startswith("waiter (7): waiting: lock\n700 ns from 200") and again is None, picked[0]
    assert not any(colours), colours
    assert keys == [titles[0], titles[1], titles[0], 200] and none == "" and hidden, keys


def a_capture_without_objects_has_no_legend(tmp):
    said = asked(page_of(tmp, test_waits.make(tmp)), PICKED + """
const i = state.indexOf(WAITING);
return [byId('groups').hidden, click(i), (timeline.draw(), colourAt(i)) === colours.idle];""")
    assert said[0] and said[2], said
    assert said[1].split("\n") == ["waiter (7): waiting", "1.00 µs from 1.00 µs", "in schedule ← do_wait"], said


def objects_that_the_page_has_no_room_for_are_told(tmp):
    test_waits.make_many(tmp)
    page = page_of(tmp, os.path.join(tmp, "kbarman.cap"))
    objects = Data(page).tables["objects"]
    assert len(objects) == 16385 and objects[-1] == ["pipe", "read", "", 0, 2], objects[-1]
    text = asked(page, PICKED + "return click(start.length - 2);")
    assert text.split("\n")[2] == "read one of more objects than the page has room for: 16,384", text


def names_of_objects_stay_out_of_the_markup(tmp):
    bad = "</script><script>document.body.dataset.bad = 1</script><img src=x onerror=alert(1)>"
    page = page_of(tmp, test_waits.named(os.path.join(tmp, "a.cap"), {"3.12.5.0": bad, "3.13.5.0": test_waits.HOSTILE},
                                         [(0, 3, 0, 5, 12), (0, 3, 0, 5, 13)]))
    clean = Data(page_of(tmp, viewers.small().save(os.path.join(tmp, "small.cap")), "small.html"))
    for text in "<script", "</script", "<!--", "<img":
        assert Data(page).text.count(text) == clean.text.count(text), text
    said = asked(page, PICKED + "return [click(1), click(3), document.body.dataset.bad === undefined, byId('picked').children.length];")
    assert bad in said[0] and "|<b>" in said[1] and said[2:] == [True, 0], said


def waits_without_call_chains_say_so(tmp):
    said = asked(page_of(tmp, test_waits.make(tmp, chains=False)), BY_STACK)
    assert said[1] == ["of all tasks; the task switches have no call chains: record with -g --off-cpu",
                       {"[preempted]": 5000, "[blocked]": 1500}], said


K = 0xffffffff81000000
KALLSYMS = "".join(f"{K + at:x} T {name}\n" for at, name in (
    (0, "_stext"), (0, "do_idle"), (0x100, "handle_irq"), (0x200, "work"), (0x300, "_etext")))


def idling(folder):
    """Half of the samples are of the idle loop; one is of an interrupt in it. The recorder runs most."""
    capture = Maker(cores=1, counters=[17], facts={"host": "elsewhere", "counter.0.0": "cycles"})
    for task, name in (0, "swapper"), (7, "worker"), (8, "kbarman"):
        capture.task(task, name)
    capture.map(0, K, 0x3000, 0, "[kernel.kallsyms]")
    capture.switch(0, 1000, 0)
    for i in range(10):
        capture.sample(0, 2000 + i * 100, 0, K + 8, [100], [K + 8], kernel=1)
    capture.sample(0, 3500, 0, K + 0x108, [100], [K + 0x108, K + 8], kernel=2)
    capture.switch(0, 4000, 7)
    for i in range(9):
        capture.sample(0, 4100 + i * 100, 7, K + 0x208, [100], [K + 0x208], kernel=1)
    capture.switch(0, 6000, 8)
    capture.switch(0, 60000, 0)
    path = capture.save(os.path.join(folder, "a.cap"))
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(KALLSYMS)
    return path


IDLING = """
const { flame, timeline, tasks } = page, said = [], look = () => {
  const node = flame.children.get(0).find(n => flame.name(n) === 'work');
  said.push([byId('flame-of').textContent, flame.total[0], flame.describe(node)]);
};
look();
byId('with-idle').click();
look();
said.push([...byId('body').children].map(row => row.firstChild.title));
page.search('handle_irq');
timeline.draw();
said.push([timeline.foundSamples, byId('flame-of').textContent, byId('found').textContent, byId('range').textContent]);
timeline.show(0, 500);
timeline.jump(true);
said.push((timeline.start + timeline.end) / 2);
page.search('no such');
timeline.show(0, timeline.capture.length);
timeline.draw();
said.push(timeline.foundSamples, byId('idle').hidden);
const box = byId('timeline').getBoundingClientRect();
said.push(timeline.describe({ clientX: box.left + 5, clientY: box.top + timeline.rows[0].y + 2 })[0]);
return said;
"""


def the_idle_loop_is_no_work_and_a_function_is_found_in_the_timeline(tmp):
    path = idling(tmp)
    without, full, rows, found, at, none, hidden, label = asked(page_of(tmp, path), IDLING)
    assert without[:2] == ["of all tasks, without the idle loop (50.0 %)", 1000], without
    assert full[:2] == ["of all tasks", 2000], full
    # shares are those of the report
    lines = [json.loads(line) for line in tap.run("report", "-j", path).stdout.splitlines()]
    share = next(row["percent"] for row in lines if row["kind"] == "symbol" and row["symbol"] == "work")
    for text in without[2], full[2]:
        assert text.startswith(f"work: [kernel.kallsyms]: {share:.2f} %"), (text, share)
    assert rows[-1] == "kbarman" and set(rows) == {"worker", "swapper", "kbarman"}, rows
    nr, of, text, left = found
    assert (nr, at, none, hidden, label) == (1, 2500, 0, False, "CPU 0"), (nr, at, none, hidden, label)
    assert of == "of all tasks, 5.0 % found", of
    assert text == "0 tasks, 1 function, 0 marks" and left.endswith(" of 3 tasks left out by the search"), (text, left)


FOLDED = """
const rows = () => [...byId('body').children], texts = () => rows().map(row => [row.className, ...[...row.children].slice(0, 3).map(cell => cell.textContent)]);
const said = [texts()];
rows().at(-1).click();
said.push(texts(), document.activeElement.className);
rows().at(-1).click();
said.push(page.nameOf(page.chosen), texts().length);
page.clear();
rows().find(row => row.className === 'fold').click();
said.push(texts());
page.search('kbarman');
said.push(texts().map(row => row[1]));
return said;
"""


def rows_of_the_recorder_are_one_until_it_is_clicked(tmp):
    capture = Maker(cores=1)
    for task, name in (0, "swapper"), (7, "worker"), (8, "kbarman"), (9, "kbarmand"):
        capture.task(task, name)
    for time, task in (1000, 7), (2000, 8), (4000, 9), (7000, 0), (8000, 0):
        capture.switch(0, time, task)
    folded, unfolded, focused, chosen, nr, again, found = asked(page_of(tmp, capture.save(os.path.join(tmp, "a.cap"))), FOLDED)
    assert folded[-1] == ["fold", "▸kbarman: 2 tasks", "", "5.00 µs"], folded
    assert [row[1] for row in folded[:-1]] and not any("kbarman" in row[1] for row in folded[:-1]), folded
    assert [row[1:] for row in unfolded[-3:]] == [
        ["▾kbarman: 2 tasks", "", "5.00 µs"], ["kbarmand", "9", "3.00 µs"], ["kbarman", "8", "2.00 µs"]], unfolded
    assert focused == "fold" and chosen == "kbarman (8)" and nr == len(unfolded) - 1, (focused, chosen, nr)
    assert again == folded and found == ["kbarmand", "kbarman"], (again, found)


LABELS = """
const said = [], { timeline } = page, c = timeline.context;
timeline.draw();
for (const row of timeline.rows) {
  c.font = timeline.labelFont(row);
  said.push([row.label, fitText(c, row.label, gutter - 14)]);
}
said.push(gutter < timeline.width / 2);
return said;
"""


def labels_of_rows_are_whole(tmp):
    name = "requests that wait for a free connection"
    capture = Maker(cores=2, series=[name])
    capture.task(7, "worker")
    capture.switch(0, 1000, 7)
    capture.custom(0, 2000, 7, 0, 5)
    capture.switch(0, 9000, 0)
    *labels, narrow = asked(page_of(tmp, capture.save(os.path.join(tmp, "a.cap"))), LABELS)
    assert any(name in label for label, _ in labels), labels
    assert all(label == shown for label, shown in labels) and narrow, labels


def browser_is_not_fooled_by_names(tmp):
    paths = [viewers.hostile().save(os.path.join(tmp, "a.cap")),
             viewers.CaptureWriter().save(os.path.join(tmp, "empty.cap")),
             os.path.join(viewers.GOLDEN, "golden_32_big_circular")]     # of times without reason
    for path in paths:
        dom = browser.dom(page_of(tmp, path))
        assert browser.attribute(dom, "data-ready"), "it did not come to its end"
        names = [row[0] for row in browser.Rows(dom).rows]
        if path.endswith("a.cap"):
            assert "</script><script>alert(1)</script>" in names, names


SCRIPT = """<script>
const said = [], press = (key, target = document.body) =>
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
const view = () => [page.timeline.start, page.timeline.end].map(Math.round).join('-');
said.push(view());
press('+'); said.push(view());
press('ArrowRight'); said.push(view());
press('0'); said.push(view());
press('/'); said.push(document.activeElement.id);
byId('search').value = 'beta'; byId('search').dispatchEvent(new Event('input'));
said.push(byId('found').textContent, byId('range').textContent);
byId('search').blur();
press('+'); press('+'); press('n'); said.push(page.timeline.start > 0);
press('Escape'); said.push(byId('found').textContent, page.query);
press('t'); said.push(document.documentElement.className); press('t');
const row = byId('body').querySelector('tr'); row.focus(); press('Enter', row);
said.push(page.nameOf(page.chosen), byId('flame-of').textContent);
press('ArrowDown', byId('body').querySelector('tr')); said.push(document.activeElement.dataset.task !== undefined);
press('Escape'); press('0'); page.update();
byId('flame-scroll').focus(); press('ArrowDown', byId('flame-scroll'));
said.push(byId('flame-at').textContent);
press('?'); said.push(byId('keys').open);
document.body.dataset.said = JSON.stringify(said);
</script>
"""


METRIC_SCRIPT = """<script>
const line = page.timeline, row = line.rows.find(row => row.kind === 'metric');
const middle = (a, b) => row.values[Math.floor(line.x((a + b) / 2) - gutter)];
const draw = () => { line.draw(); line.drawMetric(line.context, row, 0); };
line.show(0, line.capture.length); draw();
const said = [row.label, row.note, middle(10e6, 20e6), middle(20e6, 30e6)];
line.show(11e6, 12e6); draw();
said.push(middle(11e6, 12e6));
document.body.dataset.said = JSON.stringify(said);
</script>
"""


def metrics_are_those_of_the_visible_time(tmp):
    """Of all CPUs: 2 CPUs with 1000 cycles each in 10 ms."""
    capture = viewers.CaptureWriter(cores=2, counters=2)
    for core in range(2):
        for number, name in enumerate(("cycles", "instructions")):
            capture.fact(f"counter.{core}.{number}", name)
    for ms, instructions in (0, (0, 0)), (10, (1000, 3000)), (20, (500, 1500)), (30, (2000, 4000)):
        for core in range(2):
            capture.sample(core, 1000 + ms * 10**6, 5, 0x1000, (1000 if ms else 0, instructions[core]))
    path = capture.save(os.path.join(tmp, "a.cap"))
    data = Data(page_of(tmp, path))
    assert [(m["name"], m["steps"]) for m in data.tables["metrics"]] == [
        ("ipc", [[1], [0], "/"]), ("cpi", [[0], [1], "/"])], data.tables["metrics"]
    page = page_of(tmp, path)
    with open(page, "a", encoding="utf-8") as file:
        file.write(METRIC_SCRIPT)
    said = json.loads(browser.attribute(browser.dom(page), "data-said"))
    assert said[:2] == ["ipc", "max 3.000 instruction/cycle"], said
    assert [round(value, 2) for value in said[2:]] == [1, 3, 1], said


FEW_SCRIPT = """<script>
const line = page.timeline, rows = line.rows.filter(row => row.kind === 'metric'), said = [];
const show = (start, end) => {
  line.show(start, end);
  line.draw();
  for (const row of rows) {
    line.drawMetric(line.context, row, 0);
    said.push(row.label, row.note, row.values.some(value => value === Infinity));
  }
};
show(0, line.capture.length);
show(12e6, 13e6);
document.body.dataset.said = JSON.stringify(said);
</script>
"""


def few_counts_make_no_infinite_metrics(tmp):
    """No cycles in 10 of 20 ms; and core 0 alone counts them, but both count their time."""
    capture = viewers.CaptureWriter(cores=2, counters=[[1, 2], [1]])
    for key, name in ("0.0", "task-clock"), ("0.1", "big/cycles/"), ("1.0", "task-clock"):
        capture.fact(f"counter.{key}", name)
    for ms, cycles in (10, 0), (20, 40 * 10**6), (30, 0), (40, 0):
        capture.sample(0, 1000 + ms * 10**6, 5, 0x1000, (10**7 if ms == 20 else 0, cycles))
        capture.sample(1, 1000 + ms * 10**6, 5, 0x1000, (10**7,))
    capture.sample(0, 1000 + 50 * 10**6, 5, 0x1000, (0, 1))
    page = page_of(tmp, capture.save(os.path.join(tmp, "a.cap")))
    with open(page, "a", encoding="utf-8") as file:
        file.write(FEW_SCRIPT)
    said = json.loads(browser.attribute(browser.dom(page), "data-said"))
    assert said == ["big/ghz", "max 4.000 cycle/ns", False, "big/ghz", "", False], said


def keys_work(tmp):
    page = page_of(tmp, viewers.small().save(os.path.join(tmp, "a.cap")))
    with open(page, "a", encoding="utf-8") as file:
        file.write(SCRIPT)
    said = json.loads(browser.attribute(browser.dom(page), "data-said"))
    assert said[:5] == ["0-8000", "1500-6500", "2500-7500", "0-8000", "search"], said
    assert said[5] == "1 task, 1 function, 0 marks", said
    assert said[6].endswith(", 2 of 3 tasks left out by the search"), said
    assert said[7:10] == [True, "", ""] and said[10] in ("dark", ""), said
    assert said[11:14] == ["alpha (10)", "of alpha (10)", True], said
    assert said[14].startswith("[alpha]: /gone/alpha: 100.00 %, 180 cycles"), said
    assert said[15] is True


def dark_and_light_are_drawn(tmp):
    page, sizes = page_of(tmp, viewers.random_capture(5).save(os.path.join(tmp, "a.cap"))), {}
    for theme in 0, 1:
        shot = browser.screenshot(page, os.path.join(tmp, f"{theme}.png"),
                                  f"--blink-settings=preferredColorScheme={theme}")
        with open(shot, "rb") as file:
            sizes[theme] = file.read()
        assert sizes[theme][:8] == b"\x89PNG\r\n\x1a\n" and len(sizes[theme]) > 20000
    assert sizes[0] != sizes[1]


if __name__ == "__main__":
    tap.main(globals())
