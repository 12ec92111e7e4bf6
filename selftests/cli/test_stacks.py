#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Call chains as folded stacks and as a flame graph."""
import json
import os
import re
import shutil
import subprocess
import sys
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker

KALLSYMS = ("ffffffff81000000 T schedule\nffffffff81001000 T do_syscall_64\n"
            "ffffffff81002000 T _etext\n")
SCHEDULE, SYSCALL = 0xffffffff81000010, 0xffffffff81001010


def make(tmp, name="truth"):
    path = os.path.join(tmp, "stacks.cap")
    capture = Maker(counters=[17], facts={"command": f"./{name} <&>"})
    capture.task(7, name)
    capture.map(7, 0x1000, 0x1000, 0, "/gone/program")
    capture.map(0, 0xffffffff81000000, 0x2000, 0, "[kernel.kallsyms]")
    for weight in 100, 300:
        capture.sample(0, weight, 7, SCHEDULE, [weight], [SCHEDULE, SYSCALL, 0x1010, 0x1800], 2)
    capture.sample(0, 500, 7, 0x1020, [50], [0x1020])
    capture.sample(0, 600, 7, 0x1020, [0xffffffffffffffff])
    capture.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write(KALLSYMS)
    return path


def convert(path, *args):
    result = tap.run("convert", path, *args, "-o", "-")
    assert result.returncode == 0, result
    return result.stdout


def folded_stacks_are_the_true_ones(tmp):
    path = make(tmp)
    stacks = dict(line.rsplit(" ", 1) for line in convert(path, "--to", "folded").splitlines())
    # the frame that entered the kernel and the one that called it are of one image
    assert stacks == {
        "truth;[program];[program];do_syscall_64_[k];schedule_[k]": "400",
        "truth;[program]": "200",       # 50, and one sample of the mean, 150
    }, stacks


def samples_can_be_counted(tmp):
    stacks = convert(make(tmp), "--to", "folded", "--format", "samples").splitlines()
    assert sorted(int(line.rsplit(" ", 1)[1]) for line in stacks) == [2, 2], stacks


def separators_in_names_are_replaced(tmp):
    lines = convert(make(tmp, "a;b\nc"), "--to", "folded").splitlines()
    assert len(lines) == 2 and all(line.startswith("a:b?c;") for line in lines), lines


def picture_is_xml_with_every_frame(tmp):
    path = make(tmp, "<i>&\"'\033\u00e9")
    text = convert(path, "--to", "flamegraph")
    tree = xml.dom.minidom.parseString(text.encode())
    frames = [g for g in tree.getElementsByTagName("g") if g.getAttribute("class") == "f"]
    titles = [g.getElementsByTagName("title")[0].firstChild.data for g in frames]
    names = [title.split("\n")[0] for title in titles]
    assert names == ["all", "<i>&\"'?\u00e9", "[program]", "[program]", "do_syscall_64",
                     "schedule"], names
    assert "[kernel.kallsyms] [k] 66.67%, 400; itself 66.67%" in titles[-1], titles
    for g in frames:
        rect = g.getElementsByTagName("rect")[0]
        left, width = float(rect.getAttribute("x")), float(rect.getAttribute("width"))
        assert 10 <= left and left + width <= 1190.01, (left, width)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "needs the network"


def picture_nests_frames_in_their_callers(tmp):
    text = convert(make(tmp), "--to", "flamegraph")
    frames = [(float(x), float(w), int(d)) for x, w, d in
              re.findall(r'data-x="([\d.]+)" data-w="([\d.]+)" data-d="(\d+)"', text)]
    for x, w, d in frames:
        if d:
            assert any(d2 == d - 1 and x2 <= x + .01 and x + w <= x2 + w2 + .01
                       for x2, w2, d2 in frames), (x, w, d)


def script_of_the_picture_parses(tmp):
    if not shutil.which("node"):
        raise tap.Skip("no node")
    text = convert(make(tmp), "--to", "flamegraph")
    script = os.path.join(tmp, "flame.js")
    with open(script, "w", encoding="utf-8") as file:
        file.write(text.split("<![CDATA[")[1].split("]]>")[0])
    subprocess.run(["node", "--check", script], check=True)


# Just enough of a browser to run the script on the frames of a picture.
BROWSER = r"""
const fs = require('fs');
const svg = fs.readFileSync(process.argv[2], 'utf8');
const element = extra => Object.assign({
  attributes: {}, style: {}, textContent: '', classes: new Set(), listeners: {},
  setAttribute(k, v) { this.attributes[k] = v; },
  addEventListener(name, f) { this.listeners[name] = f; },
}, extra);
const ids = {};
const frames = [...svg.matchAll(/<g class="f" data-x="(.*?)" data-w="(.*?)" data-d="(.*?)"><title>([^]*?)<\/title>/g)]
  .map(m => {
    const parts = { title: element({ textContent: m[4] }), rect: element(), text: element() };
    const g = element({ dataset: { x: m[1], w: m[2], d: m[3] }, querySelector: name => parts[name] });
    g.classList = { toggle: (c, on) => on ? g.classes.add(c) : g.classes.delete(c),
                    contains: c => g.classes.has(c) };
    g.closest = () => g;
    return Object.assign(g, parts);
  });
global.document = {
  getElementById: id => ids[id] = ids[id] || element(),
  querySelectorAll: () => frames,
};
let keys = {};
global.addEventListener = (name, f) => { keys[name] = f; };
global.prompt = () => 'sched|syscall';
(0, eval)(svg.split('<![CDATA[')[1].split(']]>')[0]);
const shown = () => frames.filter(f => f.style.display !== 'none').map(f => f.text.textContent);
const out = {};
ids.frames.listeners.click({ target: frames[frames.length - 1] });
out.zoomed = shown();
out.width = frames[frames.length - 1].rect.attributes.width;
out.outer = frames.filter(f => f.classes.has('outer')).length;
ids.search.listeners.click();
out.matched = ids.matched.textContent;
keys.keydown({ key: 'Escape' });
out.all = shown().length;
out.reset = +frames[frames.length - 1].rect.attributes.width;
out.unmatched = ids.matched.textContent;
ids.frames.listeners.mouseover({ target: frames[0] });
out.details = ids.details.textContent;
console.log(JSON.stringify(out));
"""


def script_zooms_and_searches(tmp):
    if not shutil.which("node"):
        raise tap.Skip("no node")
    picture, browser = os.path.join(tmp, "f.svg"), os.path.join(tmp, "browser.js")
    with open(picture, "w", encoding="utf-8") as file:
        file.write(convert(make(tmp), "--to", "flamegraph"))
    with open(browser, "w", encoding="utf-8") as file:
        file.write(BROWSER)
    result = subprocess.run(["node", browser, picture], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, result.stderr
    out = json.loads(result.stdout)
    assert out["zoomed"] == ["all", "truth", "[program]", "[program]", "do_syscall_64",
                             "schedule"], out
    assert out["width"] == 1179.5 and out["outer"] == 5, out
    assert out["matched"] == "matched: 66.67%" and out["unmatched"] == " ", out
    assert out["all"] == 6 and abs(out["reset"] - 786.167) < .01, out
    assert out["details"].startswith("all: 100.00%"), out


def picture_of_nothing_is_a_picture(tmp):
    path = Maker().save(os.path.join(tmp, "empty.cap"))
    result = tap.run("convert", path, "--to", "flamegraph", "-o", "-")
    xml.dom.minidom.parseString(result.stdout)
    assert result.returncode == 0 and "no samples" in result.stderr, result


def a_name_with_what_xml_has_not_is_drawn(tmp):
    capture = Maker(facts={"host": "a\ufffe"})
    capture.task(7, "worker\uffff")
    capture.sample(0, 1, 7, 0x1000, [], [0x1000])
    path = capture.save(os.path.join(tmp, "odd.cap"))
    svg = convert(path, "--to", "flamegraph")
    assert "worker?" in svg, svg
    xml.dom.minidom.parseString(svg)


def deep_chains_are_cut(tmp):
    path = os.path.join(tmp, "deep.cap")
    capture = Maker()
    capture.sample(0, 1, 7, 0x1000, [], [0x1000 + i for i in range(5000)])
    capture.save(path)
    line = convert(path, "--to", "folded").strip()
    assert line.count(";") == 512, line.count(";")
    xml.dom.minidom.parseString(convert(path, "--to", "flamegraph"))


if __name__ == "__main__":
    tap.main(globals())
