#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What stands on several pages is the same on each, and what they list is what there is.

docs/costs.md has the figures; whoever repeats one elsewhere is compared with it."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests", "lib"))
import tap

# The tracers as the pages call them.
TRACERS = "BPF ring buffer", "LTTng", "ftrace", "perf"
# Words that a page may have; what needs more is a page of its own in docs/.
WORDS = {"README.md": 1500, "CONTRIBUTING.md": 1500, "ARCHITECTURE.md": 2500}
# Words that pages use in a sense of our own: who uses one explains it in docs/glossary.md.
TERMS = """agent awake bundle capture chosen collector delay detail fact gap halt late lost mark moment part piece raised
    ring row series session slice source trace trigger turn payer condemned buried disowned""".split()
TERMS = [*TERMS, "call chain", "overwrite mode", "sparse stack"]
# From the word of a machine on: what the table of costs calls the row of the other one.
ROWS = {"switch": "added to a context switch", "arm64": "the same on arm64", "wakeup": "added to a wakeup"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def manual(name):
    return re.sub(r"\\f.|\\&|\\(?=-)", "", read(os.path.join("user", "man", name)))


def row(text, begin):
    """The cells behind the first one of the first row of a table that begins so."""
    cells, = re.findall(rf"^\s*\| {re.escape(begin)}[^|\n]*\|(.*)\|$", text, re.M)[:1] or [""]
    assert cells, begin
    return [cell.strip() for cell in cells.split("|")]


def costs(which):
    """{tracer: instructions} of a row of the costs; "probe" is an empty one."""
    cell, = row(read("docs/costs.md"), ROWS[which])
    ours, probe = re.match(r"(\d+) instructions, (\d+) of which an empty probe takes", cell).groups()
    found = {"kbarman": int(ours), "probe": int(probe)}
    for tracer in TRACERS:
        found[tracer] = int(re.search(rf"\b{tracer} (\d+)", cell)[1])
    return found


def costs_beside_others_are_the_same_in_the_manual(tmp):
    page, switch = manual("kbarman-perf.7"), costs("switch")
    cell, = row(read("docs/costs.md"), "bytes a switch")
    sizes = {"kbarman": int(cell.split(";")[0])}
    sizes.update((tracer, int(re.search(rf"\b{tracer} (\d+)", cell)[1])) for tracer in TRACERS)
    for tracer, size in sizes.items():
        said = re.search(rf"^{tracer}\t(\d+)\t(\d+)$", page, re.M)
        assert [int(word) for word in said.groups()] == [switch[tracer], size], (tracer, said)
    assert f"An empty probe takes {switch['probe']} of these instructions" in page
    texts, = row(read("docs/costs.md"), "records a second as text")
    ours, perf = re.search(r"`script` ([\d.]+) M,.*`perf script` ([\d.]+) M", texts).groups()
    assert f"costs {switch['kbarman']} instructions more" in " ".join(read("README.md").split())
    text = " ".join(page.split())
    assert f".B kbarman script {ours} million, .B perf script {perf} million" in text, (ours, perf)


def parts_of_others_are_divided_right(tmp):
    cell, = row(read("docs/costs.md"), "kbarman's part of these")
    for tracer, name in (("BPF ring buffer", "BPF's ring buffer"), ("LTTng", "LTTng"), ("ftrace", "ftrace"),
                         ("perf", "perf")):
        parts = re.search(rf"((?:[\d.]+(?:, | and )?)+) of {name}", cell)[1]
        said = [float(part) for part in re.findall(r"0\.\d+", parts)]
        want = [round(costs(which)["kbarman"] / costs(which)[tracer], 2) for which in ROWS]
        assert sorted(set(said)) == sorted(set(want)), (tracer, said, want)


def what_a_session_costs_is_the_same_for_security(tmp):
    rows = {cells[1].strip(): cells[0].strip() for cells in
            re.findall(r"^  \| ([^|]*)\|([^|]*)\|$", read("SECURITY.md"), re.M)}
    assert rows["a task switch"] == f"{costs('switch')['kbarman']}; on arm64 {costs('arm64')['kbarman']}", rows
    assert rows["a wakeup, in a session that records them"] == str(costs("wakeup")["kbarman"]), rows


def what_the_agent_costs_is_the_same_for_a_fleet(tmp):
    cell, = row(read("docs/costs.md"), "added by `kbarmand`")
    instructions, part, switches, memory = re.match(
        r"(\d+) instructions; ([\d.]+) % of a CPU at ([\d,]+) switches a second, ([\d.]+) MiB$", cell).groups()
    page = " ".join(read("docs/fleet.md").split())
    assert f"at {switches} switches a second and CPU it adds {instructions} instructions to a switch, which is " \
           f"{part} % of a CPU" in page and f"takes {memory} MiB of memory" in page, cell


def verbs():
    return set(re.findall(r'^\t\{ "(\w+)", cmd_', read("user/cli/main.c"), re.M))


def verbs_are_those_of_the_tool(tmp):
    table = re.search(r"^\| question \| verb \|\n(.*?)\n\n", read("README.md"), re.M | re.S)[1]
    listed = {word for line in table.splitlines() for word in re.findall(r"`(\w+)\b", line.split("|")[2])}
    own = {"help", "version"}
    assert listed == verbs() - own, listed ^ (verbs() - own)
    first = manual("kbarman.1")
    there = set(re.findall(r"^\.BR kbarman-(\w+) \(1\)", first, re.M))
    assert verbs() - {"help"} <= there, verbs() - there


def formats_are_those_of_the_tool(tmp):
    formats = set(re.findall(r"kb_export_(\w+);", read("user/lib/export/list.h")))
    assert len(formats) > 10
    table = re.search(r"^\| `--to` \| open it with .*?\n(?:\n|\Z)", read("docs/viewers.md"), re.M | re.S)[0].rstrip()
    viewers = {word for line in table.splitlines()[2:] for word in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert viewers == formats - {"annotate", "heph", "tptp"}, viewers ^ formats
    said = re.search(r"^convert\t.*\t(\d+) formats$", manual("kbarman-perf.7"), re.M)
    assert int(said[1]) == len(formats), (said, len(formats))
    page = manual("kbarman-convert.1")
    for name in formats:
        assert re.search(rf"\b{name}\b", page), name


def machines_of_call_chains_are_the_same(tmp):
    names = r"((?:\w+, )+\w+ and \w+)"
    limits = re.search(rf"The user's part\s+exists on {names}", " ".join(read("docs/limits.md").split()))[1]
    page = " ".join(manual("kbarman-perf.7").split())
    said = re.search(rf"user's part of call chains is on {names}", page)[1]
    assert said == limits, (said, limits)


def kernels():
    """(flavour, version, architectures) of each line of the table."""
    lines = [line.split() for line in read("scripts/kernels.txt").splitlines() if line and line[0] != "#"]
    return [(line[0], line[2], line[5:]) for line in lines]


def kernels_are_those_that_scripts_know(tmp):
    versions = sorted({tuple(map(int, version.split("."))) for _, version, _ in kernels() if version != "any"})
    span = "Linux {}.{} to {}.{}".format(*versions[0], *versions[-1])
    for page in "README.md", "docs/kernels.md", "NEWS":
        assert span in read(page), (page, span)
    matrix = re.search(r"<!-- matrix -->\n(.*?)<!-- end of matrix -->", read("docs/kernels.md"), re.S)[1]
    rows = set(re.findall(r"^\| (\w+-[\w.-]+) \|", matrix, re.M))
    targets = {f"{arch}-{flavour}" for flavour, _, archs in kernels() for arch in archs}
    assert rows == targets, rows ^ targets


WORDS_OF = {8: "eight", 16: "sixteen"}
# A number of the source, and where pages say it: {} is the number, {w} the number as a word.
LIMITS = (
    ("kmod/sessions/sessions.c", r"sessions_most = (\d+);",
     {"docs/limits.md": "Up to {w} recordings", "NEWS": "Up to {w} sessions", "SECURITY.md": "Up to {w} exist",
      "user/man/kbarmand.conf.5": "for each session: one to {w}"}),
    ("kmod/sessions/configure.c", r"DEFAULT_TASKS\s+(\d+)",
     {"docs/limits.md": "has room for {} tasks", "user/man/kbarmand.conf.5": "Rows for tasks (default {})",
      "user/man/kbarman-record.1": "Default: {}, or 16 for each CPU"}),
    ("kmod/sessions/configure.c", r"DEFAULT_MAPS\s+(\d+)", {"docs/limits.md": "and {} mappings of code"}),
    ("kmod/maps/space.h", r"KBARMAN_MAX_BYTES\s+\((\d+)U << 20\)",
     {"docs/limits.md": "remembers {} MiB of mappings", "SECURITY.md": "at most {} MiB of mappings",
      "user/man/kbarman-unknown.7": "remembers {} MiB of mappings"}),
    ("kmod/maps/space.h", r"KBARMAN_MAX_MAPPINGS\s+(\d+)",
     {"docs/limits.md": "and {} of one process", "user/man/kbarman-unknown.7": "and {} of one process"}),
    ("kmod/maps/queue.h", r"KBARMAN_QUEUE_SIZE\s+(\d+)U", {"SECURITY.md": "at most half of {}."}),
    ("kmod/uapi/kbarman.h", r"KBARMAN_MARK_RATE\s+(\d+)",
     {"SECURITY.md": "at most {} marks a second", "user/include/kbarman/mark.h": "may write {} marks a second"}),
    ("selftests/vm/uninterrupted.py", r"MOST = (\d+)",
     {"SECURITY.md": "executes at most {} instructions", "docs/testing/instructions.md": "none may take more than {};"}),
    ("user/lib/record/device/annotate_server.c", r"CLIENTS_MAX\s+(\d+)",
     {"SECURITY.md": "at most {} connections", "user/man/kbarman-record.1": "may be {} connections"}),
    ("user/lib/record/recorder/waits.c", r"WAITING_MAX\s+\(\(size_t\)(\d+) << 20\)",
     {"user/man/kbarman-record.1": "up to {} MiB of them"}),
)


def limits_are_those_of_the_source(tmp):
    for path, pattern, places in LIMITS:
        most = int(re.search(pattern, read(path))[1])
        for page, text in places.items():
            said = " ".join((manual(os.path.basename(page)) if "/man/" in page else read(page)).replace("\n *", "\n")
                            .split())
            assert any(text.format(number, w=WORDS_OF.get(most)) in said for number in (most, f"{most:,}")), \
                (path, most, page, text)


def what_waits_for_a_disk_is_the_same_everywhere(tmp):
    source = read("user/lib/base/io/behind.c")
    kib = re.search(r"PIECE_BYTES\s+\(\(size_t\)(\d+) << 10\)", source)[1]
    mib = int(re.search(r"PIECES_MAX\s+(\d+)U", source)[1]) * int(kib) >> 10
    assert f"up to {mib} MiB wait in memory" in " ".join(read("docs/limits.md").split()), mib
    assert f"A writer thread buffers up to {mib} MiB." in manual("kbarman-record.1"), mib


def pages():
    return ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md",
            *sorted(os.path.relpath(path, ROOT) for path in
                    glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))]


def pages_end(tmp):
    for page, most in WORDS.items():
        words = len(read(page).split())
        assert words <= most, (page, words)


def nothing_stands_on_two_pages(tmp):
    seen = {}
    for page in pages():
        for line in read(page).splitlines():
            assert len(line) < 70 or seen.setdefault(line, page) == page, (line, page, seen[line])


def links_lead_somewhere(tmp):
    for page in pages():
        for link in re.findall(r"\]\(([^)\s]+)\)", read(page)):
            path = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), link.split("#")[0]))
            assert "://" in link or os.path.exists(path), (page, link)


def every_page_is_in_an_index(tmp):
    linked = {os.path.normpath(os.path.join(os.path.dirname(index), link)) for index in
              ("README.md", "docs/README.md", "CONTRIBUTING.md") for link in re.findall(r"\]\(([^)\s]+)\)", read(index))}
    assert set(pages()) <= linked | {"README.md"}, set(pages()) - linked


def paths_that_pages_name_are_there(tmp):
    checked = 0
    for page in pages():
        for path in re.findall(r"`((?:kmod|user|selftests|scripts|packaging|docs)/[^\s`]*)`", read(page)):
            if not re.search(r"NAME|[*…{]", path):
                # a program is called as its source
                assert any(os.path.exists(os.path.join(ROOT, path + end)) for end in ("", ".c")), (page, path)
                checked += 1
    assert checked > 100, checked


def sources():
    """{path: text} of what the module, the library, the tool and their tests are made of."""
    found = {}
    for top in "kmod", "user", "selftests/lib":
        for where, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                path = os.path.relpath(os.path.join(where, name), ROOT)
                if "/man/" in path or name.endswith((".c", ".h", ".py", ".bash")) or name == "_kbarman":
                    found[path] = read(path)
    return found


def the_page_of_event_sources_names_all_places(tmp):
    """Those of a source that exists, whose words it says to search for."""
    page = read("docs/adding/event-source.md")
    words = re.search(r"search for its words \(([^)]*)\)", page)[1].replace("`", "").split()
    words = [word.strip(",") for word in words]
    assert len(words) >= 4, words
    word = re.compile("|".join(re.escape(text) if text[0] == '"' else rf"\b{text}\b" for text in words))
    places = {path for path, text in sources().items() if word.search(text)}
    named = set(re.findall(r"`([\w./-]+/[\w.-]+)`", page))
    assert len(places) > 15 and places <= named, places - named


def the_glossary_has_the_terms_that_pages_use(tmp):
    glossary = re.findall(r"^\| \*\*([\w ]+)\*\* \|", read("docs/glossary.md"), re.M)
    assert 10 < len(glossary) <= 30 and glossary == sorted(glossary), glossary
    manuals = [path for path in sources() if "/man/" in path]
    text = "\n".join(read(path) for path in [*pages(), "NEWS", *manuals] if path != "docs/glossary.md")
    for term in TERMS:
        used = re.search(rf"\b{term}s?\b", text, re.I)
        assert not used or term in glossary, (term, text[used.start() - 80:used.end() + 80])
    for word in glossary:
        assert re.search(rf"\b{word}s?\b", text, re.I), word


if __name__ == "__main__":
    tap.main(globals())
