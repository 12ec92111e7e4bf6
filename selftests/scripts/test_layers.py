#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the include graph from the source, and checks that its arrows go down.

A .c and a .h of one name are one file of the graph, and so are all files of a folder one folder.
`test_layers.py --draw` prints the graph between the folders, as ARCHITECTURE.md shows it.
"""
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position

ROOT = os.path.normpath(os.path.join(HERE, "../.."))

# The folders of a tree from the bottom up. A folder includes those of the rows below it: those
# beside it know nothing of each other. After the colon: the public headers whose functions it has,
# it or the folders in it.
# Of the module, the files at the top are two layers, whose files are after the colon.
TREES = {
    "user": [
        ["kmod/uapi"],
        ["user/lib/base: cpulist error mark out progress text version"],
        ["user/lib/format: annotate barman chain event heph tptp tptp_tables"],
        ["user/lib/unwind", "user/lib/metrics: metrics", "user/lib/stats", "user/lib/schema"],
        ["user/lib/sym: symbol tasks"],
        ["user/lib/analysis: arrow columns diff ended filter latency losses names path report tiles trace waits"],
        ["user/lib/export: diff_export export openmetrics report_text", "user/lib/record: device kernel_maps merge perf_events recorder",
         "user/lib/query"],
        ["user/lib/trigger: trigger"],
        ["user/cli", "user/agent", "user/examples"],
        ["user/push"],
    ],
    "kmod": [
        ["kmod/uapi", "kmod/compat"],
        ["kmod/ring"],
        ["kmod/capture"],
        ["kmod/shared: session here source"],
        ["kmod/maps"],
        ["kmod/stacks"],
        ["kmod/pmu", "kmod/marks"],
        ["kmod/sources"],
        ["kmod/sessions"],
        ["kmod/device: chardev chardev_configure chardev_former chardev_map main"],
    ],
}

# The folders in a folder, from the bottom up, a row in each string; ".": its own files and its public
# headers, which are below all others if they are in no row.
ROOMS = {
    "user/lib/base": ["io", "text"],
    "user/lib/format": ["annotate barman memory parquet tptp"],
    "user/lib/sym": ["files", "tables tasks", "question", "names elf jit", "lines", "image",
                     "unwind symbolizer"],
    "user/lib/analysis": ["facts", "trace", "time", "samples latency columns", "classes diff report"],
    "user/lib/export": ["arm html openmetrics otlp parquet text traces viewers", "diff"],
    "user/lib/record": ["device merge perf", "recorder"],
    "user/cli": ["base", "net session", "diff dump record report script stat", "query top", "."],
}

PUBLIC = "user/include/kbarman"
# As the compiler is told.
PLACES = ["user/include", "user/lib", "kmod", "user"]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
# A function at the beginning of a line, up to its arguments. What follows them says which it is.
FUNCTION = re.compile(r"^(?!static|typedef|return|else|#)[a-z][\w \t*]*[ \t*](\w+)\(", re.M)
WORD = re.compile(r"\b[a-z]\w+\b(?=[(),;}\s])")
STATIC = re.compile(r"^static[^;={]*[ *](\w+)[(\[]", re.M)
# A function with its body, static or not.
DEFINED = re.compile(r"^(?!typedef|return|else|#)[a-z][\w \t*\n]*?[ \t*\n](\w+)\([^;{}]*\)\n\{", re.M)
WIRE = re.compile(r"\b(ioctl|kb_(?:load|store|cursor)_?\w*|[bl]e(?:16|32|64)toh|"
                  r"hto[bl]e(?:16|32|64)|[nh]to[hn][sl])[ \t]*\(")


def behind_brackets(text, at):
    """The first character behind the brackets that open in front of @at, and attributes."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    rest = text[at:].lstrip()
    return behind_brackets(rest, rest.find("((") + 2) if rest.startswith("__attribute__((") else \
        rest.lstrip(")").lstrip()[:1]


class Source:
    """The files of a tree, which include what, and in which folder each is at home."""

    def __init__(self, root, tree):
        self.root, self.tree, self.text = root, tree, {}
        self.rows, self.home = {}, {}
        for row, folders in enumerate(TREES[tree]):
            for name, _, headers in (folder.partition(":") for folder in folders):
                self.rows[name] = row, 0
                for inner, rooms in enumerate(ROOMS.get(name, [])):
                    for room in rooms.split():
                        self.rows[os.path.normpath(os.path.join(name, room))] = row, inner + 1
                for header in headers.split():
                    for path in self.called(name, header):
                        self.home[path] = name
        for top in sorted({name.split("/")[0] for name in self.rows}):
            for where, _, names in os.walk(os.path.join(root, top)):
                for name in names:
                    if name.endswith((".c", ".h")):
                        self.add(os.path.relpath(os.path.join(where, name), root))
        self.arrows = {path: self.included(path) for path in self.text if self.folder(path)}

    @staticmethod
    def called(folder, name):
        """The files that @name stands for after the colon of @folder."""
        if folder.startswith("kmod/"):
            return [f"kmod/{name}.c", f"kmod/{name}.h"]
        return [f"{PUBLIC}/{name}.h"]

    def add(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            self.text[path] = COMMENT.sub("", file.read())

    def folder(self, path):
        """The folder that @path belongs to; None: it is in no row of this tree."""
        if path in self.home or path.startswith(PUBLIC):
            return self.home.get(path)
        folder = os.path.dirname(path)
        return folder if folder in self.rows else None

    def part(self, folder):
        """The folder of TREES that @folder is or belongs to."""
        return next(name for name in (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder)))
                    if any(name == other.partition(":")[0] for row in TREES[self.tree] for other in row))

    def is_above(self, folder, other):
        """Whether @folder may include @other."""
        rows, below = self.rows[folder], self.rows[other]
        return below < rows if self.part(folder) == self.part(other) else below[0] < rows[0]

    def included(self, path):
        """The files of this repository that @path includes."""
        found = set()
        for quote, name in INCLUDE.findall(self.text[path]):
            places = ([os.path.dirname(path)] if quote == '"' else []) + PLACES
            for place in places:
                other = os.path.normpath(os.path.join(place, name))
                if other in self.text:
                    found.add(other)
                    break
        return found

    def ambiguous(self):
        """The includes for which the compiler finds several files, and those by "." and ".."."""
        found = []
        for path in sorted(self.text):
            for name in (name for quote, name in INCLUDE.findall(self.text[path]) if quote == '"'):
                others = {os.path.normpath(os.path.join(place, name))
                          for place in [os.path.dirname(path)] + PLACES} & self.text.keys()
                if len(others) > 1 or name.startswith("."):
                    found.append(f"{path}: \"{name}\": " + " ".join(sorted(others)))
        return found

    def files(self):
        """The graph of files: from each to those that it includes."""
        graph = collections.defaultdict(set)
        for path, others in self.arrows.items():
            graph[path[:-2]] |= {other[:-2] for other in others} - {path[:-2]}
        return graph

    def folders(self):
        graph = collections.defaultdict(set)
        for path, others in self.arrows.items():
            graph[self.folder(path)] |= {self.folder(other) for other in others
                                         if self.folder(other)} - {self.folder(path)}
        return graph

    def upwards(self):
        """The arrows that do not go down, and those that leave the tree."""
        for path, others in sorted(self.arrows.items()):
            for other in sorted(others):
                here, there = self.folder(path), self.folder(other)
                if here != there and (there is None or not self.is_above(here, there)):
                    yield f"{path} -> {other}"

    def strangers(self):
        """Files of the tree that are in no folder of its rows."""
        return [path for path in sorted(self.text)
                if path.startswith(self.tree + "/") and not self.folder(path)]

    def functions(self, path, end):
        """The names of the functions in @path behind whose arguments is @end."""
        text = STRING.sub('""', self.text[path])
        return {match.group(1) for match in FUNCTION.finditer(text)
                if behind_brackets(text, match.end()) == end}

    def calls(self, top):
        """The graph of files below @top: from each to those whose functions it names."""
        defined = collections.defaultdict(set)
        for path in self.arrows:
            if path.startswith(top):
                for name in self.functions(path, "{"):
                    defined[name].add(path[:-2])
        graph = collections.defaultdict(set)
        for path in self.arrows:
            if path.startswith(top) and path.endswith(".c"):
                words = set(WORD.findall(STRING.sub("", self.text[path])))
                own = set(STATIC.findall(self.text[path])) | self.functions(path, "{")
                graph[path[:-2]] |= set().union(*(defined[name] for name in words - own
                                                  if name in defined)) - {path[:-2]}
        return graph

    def is_at_home(self, header, source):
        """Whether functions that @header declares may be in @source."""
        home, folder = self.folder(header), self.folder(source)
        return folder == home or header.startswith(PUBLIC) and folder.startswith(home + "/")

    def misplaced(self):
        """Functions that are declared in one folder and defined in another one."""
        defined = {name: path for path in self.arrows if path.endswith(".c")
                   for name in self.functions(path, "{")}
        for path in sorted(self.arrows):
            if not path.startswith(self.tree + "/"):
                continue
            for name in sorted(self.functions(path, ";")):
                # a verb's function is declared with all others
                if name in defined and not name.startswith("cmd_") and \
                        not self.is_at_home(path, defined[name]):
                    yield f"{name}() of {path} is in {defined[name]}"


def circles(graph):
    """Each strongly connected part of @graph as a sentence."""
    reach = {}

    def reached(start):
        if start not in reach:
            seen, todo = set(), [start]
            while todo:
                for other in graph.get(todo.pop(), ()):
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            reach[start] = seen
        return reach[start]

    parts = {tuple(sorted(b for b in reached(a) if a in reached(b)))
             for a in list(graph) if a in reached(a)}
    return ["; ".join(f"{a} -> {b}" for a in part for b in sorted(graph[a]) if b in part)
            for part in sorted(parts)]


def draw(tree="user"):
    """The arrows between the folders of TREES, one line each, the top first."""
    source = Source(ROOT, tree)
    graph = collections.defaultdict(set)
    for name, others in source.folders().items():
        graph[source.part(name)] |= {source.part(other) for other in others} - {source.part(name)}
    order = [folder.partition(":")[0] for row in reversed(TREES[tree]) for folder in row]
    short = {name: name.removeprefix("kmod/").removeprefix("user/lib/").removeprefix("user/")
             for name in order}
    columns = [name for name in order if any(name in others for others in graph.values())]
    lines = [f"    {short[name]:<9} ─▶ " + "".join(
        f"{short[other] if other in graph[name] else '.':<{len(short[other]) + 2}}"
        for other in columns) for name in order if source.rows[name][0]]
    return "".join(line.rstrip() + "\n" for line in lines)


def none(found):
    found = list(found)
    assert not found, "\n".join(found)


def every_file_is_in_a_layer(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(Source(ROOT, tree).strangers())


def files_make_no_circle(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(circles(Source(ROOT, tree).files()))


def folders_make_no_circle(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(circles(Source(ROOT, tree).folders()))


def no_arrow_goes_upwards(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(Source(ROOT, tree).upwards())


def functions_are_in_the_folder_of_their_header(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(Source(ROOT, tree).misplaced())


def files_make_no_circle_by_their_calls(tmp):  # pylint: disable=unused-argument
    source = Source(ROOT, "user")
    for top in "user/lib/", "user/cli/", "user/push/":
        none(circles(source.calls(top)))
    none(circles(Source(ROOT, "kmod").calls("kmod/")))


def each_folder_begins_with_a_header_that_says_what_is_there(tmp):  # pylint: disable=unused-argument
    none(f"{folder}: {len(found)} headers with '{name}/: …': {' '.join(found)}"
         for folder, name, found in said_of_folders(ROOT) if len(found) != 1)


def said_of_folders(root):
    """Each folder with C files, its name, and the headers in it that say what is there."""
    folders = collections.defaultdict(list)
    for path in sorted(Source(root, "user").text | Source(root, "kmod").text):
        folder = os.path.dirname(path)
        if folder not in ("kmod", "kmod/uapi", "kmod/compat", PUBLIC, "user/examples"):
            name = re.sub(r"^(?:kmod|user/lib|user)/", "", folder)
            with open(os.path.join(root, path), encoding="utf-8") as file:
                begins = re.match(r"[^\n]*\n/\*\n \* " + name + r"/: ", file.read())
            folders[folder, name] += [path] * (bool(begins) and path.endswith(".h"))
    return [(folder, name, found) for (folder, name), found in folders.items()]


def each_include_is_found_in_one_place(tmp):  # pylint: disable=unused-argument
    none(Source(ROOT, "user").ambiguous() + Source(ROOT, "kmod").ambiguous())


MAKES_FILES = re.compile(r'\bO_CREAT\b|\bcreat\(|\b(?:fopen|freopen|gzopen)\([^;"]*,\s*"[wa]')
# It makes files; the sandbox refuses to make some.
MAY_MAKE_FILES = "user/lib/base/io/create.c", "user/cli/base/sandbox.c"


def files_are_made_where_no_link_leads(tmp):  # pylint: disable=unused-argument
    """kb_create() follows no link of somebody else."""
    source = Source(ROOT, "user")
    none(f"{path}: {match.group(0)}" for path in source.text if path.startswith("user/")
         for match in MAKES_FILES.finditer(source.text[path]) if path not in MAY_MAKE_FILES)
    assert MAKES_FILES.search('file = fopen(path, "we");') and not MAKES_FILES.search('f = fopen(path, "re");')


CONNECTS = re.compile(r"\b(?:bind|connect|listen|getaddrinfo|curl_\w+)[ \t]*\(")
# live connections of `convert`, the program that pushes, and the listener for Annotate clients
MAY_CONNECT = "user/cli/net/connect.c", "user/cli/net/serve.c", "user/lib/record/device/annotate_server.c"


def networks_are_reached_from_few_files(tmp):  # pylint: disable=unused-argument
    source = Source(ROOT, "user")
    found = {path for path in source.text if path.startswith("user/") and CONNECTS.search(STRING.sub("", source.text[path]))}
    none(sorted(path for path in found if path not in MAY_CONNECT and not path.startswith("user/push/")))
    assert found >= set(MAY_CONNECT), found


def the_tool_calls_no_wire_primitive_and_no_ioctl(tmp):  # pylint: disable=unused-argument
    source = Source(ROOT, "user")
    tool = [path for path in source.text if path.startswith(("user/cli/", "user/push/"))]
    none(f"{path}: {match.group(1)}()" for path in tool
         for match in WIRE.finditer(source.text[path]))
    # the parts of a codec are not for the tool
    none(f"{path} -> {other}" for path in tool for other in sorted(source.arrows[path])
         if other.startswith("user/lib/format/"))


def the_architecture_shows_this_graph(tmp):  # pylint: disable=unused-argument
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        shown = file.read()
    for tree in TREES:
        assert draw(tree) in shown, "test_layers.py --draw prints:\n" + draw(tree)


ARCHITECTURES = re.compile(r"^kmod/stacks/frames_(?:x86|arm64|riscv|other)$")


def functions_of_the_module(root):
    """Each function of the module with the files that define it. Only one architecture is built."""
    source = Source(root, "kmod")
    where = collections.defaultdict(set)
    for path, text in source.text.items():
        if path.startswith("kmod/") and not os.path.basename(path).startswith("probe_"):
            file = ARCHITECTURES.sub("kmod/stacks/frames_*", path[:-2])
            for name in DEFINED.findall(STRING.sub('""', text)):
                where[name].add(file)
    return where


def no_two_functions_of_the_module_have_one_name(tmp):  # pylint: disable=unused-argument
    none(f"{name}: " + " ".join(sorted(files))
         for name, files in sorted(functions_of_the_module(ROOT).items()) if len(files) > 1)


def each_function_of_the_module_names_what_it_works_on(tmp):  # pylint: disable=unused-argument
    none(name for name in functions_of_the_module(ROOT) if "_" not in name)


def named_by_tests():
    """(file, function of the module) for those that tests of the module know by name."""
    for path, table in (("selftests/bench/switch/sections.c", r"entries\[\] = \{(.*?)\};"),
                        ("selftests/vm/uninterrupted.py", r"PATHS = \[(.*?)^\]"),
                        ("selftests/debug/coverage.py", r"REASONS = \{(.*?)^\}")):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = re.search(table, file.read(), re.M | re.S)[1]
        for name in re.findall(r'"(\w+)"(?!:)', re.sub(r'\("(?:lock|entry|off)"', "", text)):
            yield path, name


def functions_that_tests_name_are_there(tmp):  # pylint: disable=unused-argument
    source = "\n".join(text for path, text in Source(ROOT, "kmod").text.items() if path.startswith("kmod/"))
    named = list(named_by_tests())
    assert len(named) > 60, named
    none(f"{path}: {name}()" for path, name in named
         if not re.search(rf"^(?:static |[a-z])[^;=()]*\b{name}\(", source, re.M))


MOST_FILES = 40


def crowded(root):
    """Folders of the module, of the library and the tool that have too many files to look through."""
    return [f"{os.path.relpath(where, root)}: {len(names)} files"
            for top in ("kmod", "user") for where, _, names in os.walk(os.path.join(root, top))
            if len(names) > MOST_FILES and not where.endswith("__pycache__")]


def no_folder_has_more_files_than_one_can_look_through(tmp):  # pylint: disable=unused-argument
    none(crowded(ROOT))


def folders_make_no_circle_by_their_calls(tmp):  # pylint: disable=unused-argument
    source = Source(ROOT, "user")
    for top in ("user/lib/", "user/cli/"):
        graph = collections.defaultdict(set)
        for path, others in source.calls(top).items():
            here = os.path.dirname(path)
            graph[here] |= {os.path.dirname(other) for other in others} - {here}
        none(circles(graph))


# The name of a parameter: behind its type, or in the brackets of a pointer to a function.
CALLED = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\(|[\s*](\w+)\s*(?:\[[^\]]*\]\s*)*$")
TYPES = {"int", "long", "char", "short", "unsigned", "void"}


def parameters(arguments):
    """The names of the parameters between the brackets of a function; None for one without a name."""
    depth, texts = 0, [""]
    for letter in re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", "", arguments, flags=re.S):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            texts.append("")
        else:
            texts[-1] += letter
    found = [CALLED.search(" " + text.strip()) for text in texts]
    names = [match and (match.group(1) or match.group(2)) for match in found]
    return [None if name in TYPES else name for name in names]


def differing_parameters(source, tree):
    """Functions whose parameters have other names in the header than in the source."""
    found = {"{": collections.defaultdict(set), ";": collections.defaultdict(set)}
    for path, text in sorted(source.text.items()):
        if not path.startswith(tree + "/"):
            continue
        text = STRING.sub('""', text)
        for match in FUNCTION.finditer(text):
            end = behind_brackets(text, match.end())
            if end in found and (end == "{" or path.endswith(".h")):
                depth, at = 1, match.end()
                while depth and at < len(text):
                    depth += {"(": 1, ")": -1}.get(text[at], 0)
                    at += 1
                found[end][match.group(1)].add((path, tuple(parameters(text[match.end():at - 1]))))
    for name in sorted(found["{"].keys() & found[";"].keys()):
        for header, declared in sorted(found[";"][name], key=str):
            for path, defined in sorted(found["{"][name], key=str):
                if declared != defined:
                    yield f"{name}() of {path}: {declared} in {header}, {defined} in the source"


def parameters_have_one_name_in_header_and_source(tmp):  # pylint: disable=unused-argument
    for tree in TREES:
        none(differing_parameters(Source(ROOT, tree), tree))


# ---- whether it would find what it looks for ----

def plant(tmp, files):
    """A tree with @files: path, text."""
    for path, text in {"user/lib/base/out.c": "", "user/cli/main.c": "", **files}.items():
        os.makedirs(os.path.join(tmp, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(tmp, path), "w", encoding="utf-8") as file:
            file.write(text)
    return Source(tmp, "user")


def a_good_tree_is_good(tmp):
    source = plant(tmp, {
        "user/lib/base/in.h": "int kb_in(int a);\n",
        "user/lib/base/in.c": '#include "base/in.h"\nint kb_in(int a)\n{\n}\n',
        "user/lib/sym/elf.c": '#include <kbarman/symbol.h>\n#include "base/in.h"\n',
        f"{PUBLIC}/symbol.h": "#include <kbarman/error.h>\n",
        f"{PUBLIC}/error.h": "",
        "user/cli/main.c": '#include "base/in.h"\n#include <stdio.h>\n'})
    none(source.upwards())
    none(source.misplaced())
    none(source.strangers())
    none(circles(source.files()) + circles(source.folders()))


def an_arrow_upwards_is_found(tmp):
    source = plant(tmp, {"user/lib/sym/elf.h": "",
                         "user/lib/format/heph.c": '# include "sym/elf.h"\n'})
    assert list(source.upwards()) == ["user/lib/format/heph.c -> user/lib/sym/elf.h"]


def an_arrow_to_the_layer_beside_is_found(tmp):
    source = plant(tmp, {"user/lib/export/walk.h": "",
                         "user/lib/record/merge.c": '#include "export/walk.h"\n'})
    assert list(source.upwards()) == ["user/lib/record/merge.c -> user/lib/export/walk.h"]


def an_arrow_upwards_through_a_public_header_is_found(tmp):
    source = plant(tmp, {f"{PUBLIC}/export.h": "",
                         "user/lib/sym/elf.c": "#include <kbarman/export.h>\n"})
    assert list(source.upwards()) == [f"user/lib/sym/elf.c -> {PUBLIC}/export.h"]


def an_arrow_into_the_module_is_found(tmp):
    source = plant(tmp, {"kmod/ring/ring.h": "", "user/cli/main.c": '#include "ring/ring.h"\n'})
    assert list(source.upwards()) == ["user/cli/main.c -> kmod/ring/ring.h"]


def an_include_of_two_files_is_found(tmp):
    source = plant(tmp, {"user/lib/base/in.h": "", "user/cli/base/in.h": "",
                         "user/cli/main.c": '#include "base/in.h"\n'})
    assert source.ambiguous() == ['user/cli/main.c: "base/in.h": user/cli/base/in.h user/lib/base/in.h']


def a_circle_of_files_is_found(tmp):
    source = plant(tmp, {"user/lib/sym/a.h": '#include "sym/b.h"\n', "user/lib/sym/b.h": "",
                         "user/lib/sym/b.c": '#include "sym/c.h"\n', "user/lib/sym/c.h": "",
                         "user/lib/sym/c.c": '#include "a.h"\n'})
    assert circles(source.files()) == ["user/lib/sym/a -> user/lib/sym/b; user/lib/sym/b -> "
                                       "user/lib/sym/c; user/lib/sym/c -> user/lib/sym/a"]


def a_circle_of_folders_is_found(tmp):
    source = plant(tmp, {"user/lib/sym/a.h": "", "user/lib/format/b.h": "",
                         "user/lib/format/c.c": '#include "sym/a.h"\n',
                         "user/lib/sym/d.c": '#include "format/b.h"\n'})
    assert not circles(source.files())
    assert circles(source.folders()) == ["user/lib/format -> user/lib/sym; "
                                         "user/lib/sym -> user/lib/format"]


def a_circle_of_calls_is_found(tmp):
    source = plant(tmp, {
        "user/lib/sym/all.h": "int kb_a(void);\nint kb_b(void);\n",
        "user/lib/sym/a.c": '#include "sym/all.h"\nint kb_a(void)\n{\n\treturn kb_b();\n}\n',
        "user/lib/sym/b.c": '#include "sym/all.h"\nint kb_b(void)\n{\n\treturn kb_a();\n}\n'})
    assert not circles(source.files())
    assert circles(source.calls("user/lib/")) == ["user/lib/sym/a -> user/lib/sym/b; "
                                                  "user/lib/sym/b -> user/lib/sym/a"]


def a_header_without_a_layer_is_found(tmp):
    source = plant(tmp, {f"{PUBLIC}/other.h": "", "user/lib/stray.c": ""})
    assert source.strangers() == [f"{PUBLIC}/other.h", "user/lib/stray.c"]


def a_function_declared_round_the_layers_is_found(tmp):
    source = plant(tmp, {
        "user/lib/base/a.h": "void kb_f(int a,\n\t  int (*b)(void))\n\t__attribute__((cold));\n",
        "user/lib/sym/a.c": "void kb_f(int a, int (*b)(void))\n{\n}\n"})
    assert list(source.misplaced()) == ["kb_f() of user/lib/base/a.h is in user/lib/sym/a.c"]


def a_parameter_of_two_names_is_found(tmp):
    source = plant(tmp, {
        "user/lib/base/a.h": "int kb_f(const char *name, void (*call)(void), int b[2]);\nvoid kb_g(void);\n",
        "user/lib/base/a.c": "int kb_f(const char *text,\n\t void (*call)(void), int b[2])\n{\n}\n"
                             "void kb_g(void)\n{\n}\n"})
    assert [line.partition(" of ")[0] for line in differing_parameters(source, "user")] == ["kb_f()"]


def a_crowded_folder_is_found(tmp):
    plant(tmp, {f"user/lib/sym/a{i}.c": "" for i in range(MOST_FILES + 1)})
    assert crowded(tmp) == ["user/lib/sym: 41 files"]


def a_folder_that_says_nothing_is_found(tmp):
    plant(tmp, {"user/lib/sym/elf/a.h": "/* L */\n/*\n * sym/elf/: all.\n */\n",
                "user/lib/sym/elf/b.h": "/* L */\n/*\n * See sym/elf/: all.\n */\n",
                "user/lib/export/c.h": "/* L */\n/* What export is. */\n"})
    found = {folder: len(headers) for folder, _, headers in said_of_folders(tmp)}
    assert found["user/lib/sym/elf"] == 1 and found["user/lib/export"] == 0


def two_functions_of_one_name_are_found(tmp):
    plant(tmp, {"kmod/ring/ring.c": "static int\twalk(int a)\n{\n}\n\nint kb_f(void)\n{\n}\n",
                "kmod/maps/spaces.c": "static void *walk(int a,\n\t\t  int b)\n{\n}\n",
                "kmod/stacks/frames_x86.c": "void kb_g(void)\n{\n}\n",
                "kmod/stacks/frames_other.c": "void kb_g(void)\n{\n}\n"})
    assert {name: len(files) for name, files in functions_of_the_module(tmp).items()} == {
        "walk": 2, "kb_f": 1, "kb_g": 1}


if __name__ == "__main__":
    if sys.argv[1:] == ["--draw"]:
        sys.stdout.write("\n".join(draw(tree) for tree in TREES))
    else:
        tap.main(globals())
