#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An option has one meaning in all verbs, and what to record has the same words wherever it is chosen.

Older names of options work until 1.0: kbarman(1) lists them, and nothing else shows them."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TREE, "selftests", "lib"))
import tap  # noqa: E402
from make_capture import Maker  # noqa: E402

# What each option that several verbs have means. Its help begins so in all of them; a format of
# convert that alone has the option stands before it.
MEANINGS = {
    "--all": "show all", "--all-cpus": "use the whole system", "--call-graph": "use call chains",
    "--color": "always, never or auto", "--counters": "show all counters",
    "--cpu": "use only these CPUs, as in 0-3,8", "--event": "use (these events|this event)",
    "--format": "the form of the output", "--freq": "take HZ samples per second and CPU", "--help": "this text",
    "--inline": "treat inlined functions as called ones", "--input": "the same as (an|the) argument FILE",
    "--interval": "time between two readings", "--json": "print JSON",
    "--kallsyms": "kernel symbols, in the format of /proc/kallsyms", "--latency": "why tasks ran late",
    "--lines": "with lines of source files", "--metrics": "show metrics",
    "--no-commands": "leave out the command lines of processes", "--no-demangle": "keep C[+][+] and Rust names mangled",
    "--no-objects": "don't record what tasks wait for", "--output": "write to (FILE|OUT|DIR)",
    "--percent-limit": "leave out rows below N percent", "--pid": "use only these processes, comma-separated",
    "--rotate": "let groups of events take turns of about TIME", "--sources": "also record these, comma-separated",
    "--symfs": "look for programs and libraries below DIR", "--task": "use only tasks with this name",
    "--tid": "use only this task, or the tasks of this process", "--time": "use only the time from FROM to TO",
    "--timeout": "end after TIME", "--to": "write this format",
    "--waits": "time off the CPU", "--vmlinux": "the kernel with debug information, for source lines",
}
# Letters of two options, and why.
LETTERS = {
    "-F": {"--freq", "--fields"},			# record, script: as in perf
    "-c": {"--count", "--counter"},			# record: as in perf
    "-d": {"--detailed", "--interval"},			# stat, top: as in perf
    "-n": {"--samples", "--channel", "--number"},	# report: as in perf; top: as in top(1)
}


def read(*path):
    with open(os.path.join(TREE, *path), encoding="utf-8") as file:
        return file.read()


def verbs():
    return sorted(set(re.findall(r"^  (\w+) +\S", tap.run("--help").stdout, re.M)) - {"help"})


def options(verb):
    """[(letter, name, text)] of the help of a verb."""
    lines = tap.run(verb, "--help").stdout.splitlines()
    column, = {line.rindex("this text") for line in lines if line.startswith("  -h, --help ")}
    found = []
    for line in lines:
        begin = re.match(r" {2}(?:(-\w)(?:, )?| {4})(--[\w-]+)?(?<=\w)", line)
        if begin:
            # the text of an option with long words is in the next line
            found.append([begin[1], begin[2], line[column:] if line[column - 1:column] == " " else ""])
        elif found and line[:column].isspace():
            found[-1][2] = f"{found[-1][2]} {line[column:]}".strip()
        elif found:
            break
    return found


def an_option_means_the_same_in_all_verbs(tmp):
    texts = {}
    for verb in verbs():
        for _, name, text in options(verb):
            if name:
                texts.setdefault(name, {})[verb] = text
    shared = {name: said for name, said in texts.items() if len(said) > 1}
    assert set(shared) == set(MEANINGS), set(shared) ^ set(MEANINGS)
    for name, said in shared.items():
        for verb, text in said.items():
            assert re.match(rf"([a-z, ]+: )?{MEANINGS[name]}", text), (name, verb, text, MEANINGS[name])


def a_letter_means_the_same_in_all_verbs(tmp):
    names = {}
    for verb in verbs():
        for letter, name, _ in options(verb):
            if letter and name:
                names.setdefault(letter, set()).add(name)
    several = {letter: found for letter, found in names.items() if len(found) > 1}
    assert several == LETTERS, several


def cpus_have_the_same_sentence_on_all_pages(tmp):
    found = 0
    for verb in verbs():
        if "--cpu" in {name for _, name, _ in options(verb)}:
            page = read("user", "man", f"kbarman-{verb}.1").replace("\\-", "-")
            entry = re.search(r"^\.BR -C \", \" --cpu .*\n(.*)", page, re.M)[1]
            assert entry.startswith("Use only these CPUs, as in"), (verb, entry)
            found += 1
    assert found >= 7, found


def older_names():
    """{(verb, older name): name} as kbarman(1) has them."""
    page = read("user", "man", "kbarman.1").replace("\\-", "-")
    lines = re.findall(r"^(--?[\w-]+) of ([\w, ]+?)\t(--[\w-]+)$", page, re.M)
    return {(verb, older): name for older, of, name in lines for verb in re.split(r", | and ", of)}


def older_names_are_taken_and_not_shown(tmp):
    older = older_names()
    assert len(older) > 5, older
    sources = "".join(read(folder, name) for folder, _, names in
                      [*os.walk(os.path.join(TREE, "user", "cli")), *os.walk(os.path.join(TREE, "user", "push"))]
                      for name in names if name.endswith((".c", ".h")))
    rows = re.findall(r"\{ [^{},]+, \"([\w-]+)\", (?:\"[^\"]+\"|NULL), NULL \}", sources)
    assert {f"--{name}" for name in rows} == {name for _, name in older if name.startswith("--")}, (rows, older)
    for (verb, before), name in older.items():
        listed = tap.run(verb, "--list-options").stdout.split()
        names = {word.rstrip("=") for word in listed}
        assert name in names and before not in names, (verb, before, name, listed)
        assert not re.search(rf"{before}\b(?!-)", tap.run(verb, "--help").stdout), (verb, before)
        # a wrong word is refused by both, with the name of today; what takes none is taken
        words = ["--no-such-option"] if f"{name}=" not in listed else ["no such word"]
        first, second = (tap.run(verb, option, *words, cwd=tmp) for option in (before, name))
        assert (first.returncode, first.stderr) == (second.returncode, second.stderr), (first, second)
        assert first.returncode == 2 and "no option -" + before not in first.stderr, first


def older_names_do_what_they_did(tmp):
    maker = Maker(counters=[8])
    maker.task(7, "worker")
    maker.switch(0, 1000, 7)
    maker.sample(0, 2000, 7, 0x400010, [12345])
    maker.save(os.path.join(tmp, "kbarman.cap"))
    for before, now in ((("script", "-e", "switch"), ("script", "--kinds", "switch")),
                        (("script", "--events=sample,idle"), ("script", "-k", "sample,idle")),
                        (("report", "--count"), ("report", "--samples")),
                        (("query", "--mode", "csv", "SELECT 1"), ("query", "--format", "csv", "SELECT 1")),
                        (("convert", "--to", "chrome", "--counters", "delta", "-o", "-"),
                         ("convert", "--to", "chrome", "--counter-values", "delta", "-o", "-"))):
        first, second = tap.run(*before, cwd=tmp), tap.run(*now, cwd=tmp)
        assert first.returncode == 0 and first.stdout and first.stdout == second.stdout, (first, second)
        assert first.stderr == second.stderr and "older" not in first.stderr, first


def words_of(text):
    return set(re.findall(r"\b[a-z]+\b", text))


def what_to_record_has_the_same_words_everywhere(tmp):
    """The list of the library, from which come JSON and messages, beside those that are written out."""
    table = re.findall(r'\{ KBARMAN_SOURCE_(\w+), "(\w+)", ', read("user/lib/record/device/source_words.c"))
    all_words = {word for _, word in table}
    defined = dict(re.findall(r"#define KBARMAN_SOURCE_(\w+)\s+(\(1U << \d+\)|0x[\da-f]+)U?", read("kmod/uapi/kbarman.h")))
    some = int(defined["DETAILS"], 16)
    details = {word for bit, word in table if some >> int(re.search(r"<< (\d+)", defined[bit])[1]) & 1}
    assert len(all_words) >= 10 and len(details) == 8, (all_words, details)

    boot = dict((word, bit) for word, bit in
                re.findall(r'\{ "(\w+)", KBARMAN_SOURCE_(\w+) \}', read("kmod/sessions/boot.c")))
    assert {word: bit for bit, word in table if bit != "PMU"} == {w: b for w, b in boot.items() if w != "latency"}

    said = tap.run("record", "--sources", "x", "true", cwd=tmp).stderr
    assert words_of(said.split("some of")[1].split("with")[0]) == details, said
    for verb in "record", "top":
        text, = [text for _, name, text in options(verb) if name == "--sources"]
        assert words_of(text.split(":")[1]) == details, text

    agent = re.search(r"there are ((?:\w+, )+\w+ and \w+)", re.sub(r'"\s*"', "", read("user/agent/config.c")))[1]
    assert words_of(agent) - {"and"} == all_words - {"samples", "maps"}, agent
    page = re.sub(r"\\f.|^\.[A-Z]+ |\"", "", read("user/man/kbarmand.conf.5"), flags=re.M)
    entry = re.search(r"^sources\n(.*?)\n(?:TP|\.TP)$", page, re.M | re.S)[1]
    for word in all_words - {"samples", "maps"}:
        assert re.search(rf"\b{word}\b", entry), (word, entry)
    for path in "user/completion/kbarman.bash", "user/completion/_kbarman":
        assert details <= words_of(read(path)), path


if __name__ == "__main__":
    tap.main(globals())
