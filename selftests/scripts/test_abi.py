#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs that exist rely on: the layouts in kmod/uapi/, whatever the compiler, and the ABI of the
library and of these headers, which scripts/abi compares with selftests/abi/."""
import glob
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "selftests", "lib"))
import tap

# As clang names the machines; and those of them for which gcc may be installed.
MACHINES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "armhf": "arm-linux-gnueabihf",
            "i386": "i686-linux-gnu", "riscv64": "riscv64-linux-gnu", "s390x": "s390x-linux-gnu"}


def load():
    """The script, whose name has no .py, as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("abi", os.path.join(ROOT, "scripts", "abi"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("abi", loader))
    loader.exec_module(module)
    return module


abi = load()


def wanted(*programs):
    for program in programs:
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed: run scripts/setup")


# ---- layouts

def compilers():
    """A name and a command for each compiler that is here. Linux's headers are those of this machine."""
    headers = [option for folder in ["/usr/include"] + glob.glob("/usr/include/*-linux-gnu")
               for option in ("-isystem", folder)]
    for machine, triplet in MACHINES.items():
        if shutil.which("clang"):
            yield f"clang {machine}", ["clang", f"--target={triplet}", "-nostdinc", *headers]
        if shutil.which(f"{triplet}-gcc"):
            yield f"gcc {machine}", [f"{triplet}-gcc", "-nostdinc", *headers]
    if shutil.which("gcc") and os.uname().machine == "x86_64":
        yield "gcc -m32", ["gcc", "-m32", "-nostdinc", *headers]


def layouts(command, source, tmp):
    """"struct field" to its offset, and "struct" to its size, of all structs of a source text."""
    binary = os.path.join(tmp, "layouts.o")
    subprocess.run([*command, "-ffreestanding", "-w", "-g", "-fno-eliminate-unused-debug-types",
                    "-I", os.path.join(ROOT, "kmod"), "-xc", "-c", "-", "-o", binary],
                   input=source, text=True, check=True)
    found, struct, entry = {}, None, ""
    lines = subprocess.run(["readelf", "--debug-dump=info", binary], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    for entry in re.split(r"^ <", lines, flags=re.M)[1:]:
        kind = re.search(r"\((DW_TAG_\w+)\)", entry)
        facts = {key: value.split(": ")[-1].split("\t")[0].strip()
                 for key, value in re.findall(r"DW_AT_(\w+) *: (.*)$", entry, re.M)}
        if kind and kind.group(1) == "DW_TAG_structure_type" and "name" in facts:
            struct = facts["name"]
            found[struct] = int(facts["byte_size"], 0)
        elif kind and kind.group(1) == "DW_TAG_member":
            # a union in a struct may have no name, and a bit has no byte
            if "data_member_location" in facts:
                found[f"{struct} {facts.get('name')}"] = int(facts["data_member_location"], 0)
        elif kind:
            struct = None
    # perf_event_attr is Linux's own, and in each of its headers as long as it was then
    return {name: value for name, value in found.items() if not name.startswith(("None", "perf_"))}


def differences(source, tmp):
    """What not all compilers lay out in the same way; and how many compilers, and structs and fields, there are."""
    tables = {name: layouts(command, source, tmp) for name, command in compilers()}
    names = set().union(*tables.values())
    return [f"{name}: " + ", ".join(f"{compiler} {table.get(name)}" for compiler, table in tables.items())
            for name in sorted(names) if len({table.get(name) for table in tables.values()}) > 1], \
        len(tables), len(names)


UAPI = "".join(f'#include "uapi/{os.path.basename(path)}"\n' for path in abi.headers_of(abi.UAPI))


def layouts_are_the_same_on_all_machines(tmp):
    wanted("clang", "readelf")
    found, count, names = differences(UAPI, tmp)
    assert count >= len(MACHINES) and names > 200, (count, names)
    assert not found, "\n".join(found)


def every_struct_of_the_headers_is_compared(tmp):
    wanted("gcc", "readelf")
    names = layouts(["gcc"], UAPI, tmp)
    for path in abi.headers_of(abi.UAPI):
        for struct in re.findall(r"^struct (\w+) \{", abi.read(path), re.M):
            assert struct in names, struct


def layouts_that_differ_are_found(tmp):
    wanted("clang", "readelf")
    found, _, _ = differences("#include <linux/types.h>\n"
                              "struct word { unsigned long word; };\n"
                              "struct hole { __u32 first; __u64 second; };\n"
                              "struct tail { __u64 first; __u32 second; };\n"
                              "struct same { __u32 first, second; __u64 third; };\n", tmp)
    assert {line.split(":")[0] for line in found} == {"word", "hole", "hole second", "tail"}, found


def a_program_must_say_which_word_size_it_means(tmp):
    wanted("gcc")
    text = '#include "uapi/barman_v2.h"\nunsigned long size = sizeof(struct bm_protocol_annotation);\n'
    command = ["gcc", "-I", os.path.join(ROOT, "kmod"), "-xc", "-c", "-", "-o", os.path.join(tmp, "words.o")]
    for bits, compiles in ("", False), ("32", True), ("64", True):
        define = f"#define BM_WORD_BITS {bits}\n" if bits else ""
        done = subprocess.run(command, input=define + text, text=True, stderr=subprocess.PIPE, check=False)
        assert (done.returncode == 0) == compiles, done.stderr


# ---- the ABI

def library(tmp, header, functions):
    """The ABI of a library with one header."""
    folder = os.path.join(tmp, "include")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "library.h"), "w", encoding="utf-8") as file:
        file.write("#include <linux/types.h>\n" + header)
    path = os.path.join(tmp, "library.so")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", folder, "-xc", "-", "-o", path], text=True, check=True,
                   input='#include "library.h"\n' + functions)
    return abi.record(path, folder), abi.growing(folder)


def uapi(tmp, old="", new=""):
    """The ABI of the headers in kmod/uapi/, with @new in place of @old."""
    folder = os.path.join(tmp, "uapi")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(abi.UAPI, folder)
    for path in abi.headers_of(folder):
        text = abi.read(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new) if old else text)
    return abi.record_uapi(folder), abi.growing(folder)


def library_and_headers_are_what_programs_were_built_with(tmp):  # pylint: disable=unused-argument
    wanted("abidw", "abidiff", "gcc")
    if os.uname().machine != "x86_64":
        raise tap.Skip("selftests/abi/ is of amd64")
    done = subprocess.run([os.path.join(ROOT, "scripts", "abi")], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr + "CONTRIBUTING.md says what to do (\"The ABI\")"


OPTIONS = "struct options {\n\t__u32 size;\n\t__u32 flags;\n\t__u64 reserved[2];\n%s};\n"
ROW = "struct row {\n\t__u64 at;\n\t__u32 cpu;\n%s};\n"
CODE = "int take(struct options *o, struct row *r) { return 0; }\nint more(int n) { return n; }\n"


def what_breaks_programs_is_found(tmp):
    wanted("abidw", "abidiff", "gcc")
    old, grown = library(tmp, OPTIONS % "" + ROW % "", CODE)
    for name, header, code in (
            ("function", OPTIONS % "" + ROW % "", CODE.split("\n", 1)[0]),
            ("argument", OPTIONS % "" + ROW % "", CODE.replace("int n", "long n")),
            ("result", OPTIONS % "" + ROW % "", CODE.replace("int more", "short more")),
            ("name", OPTIONS.replace("flags", "flagged") % "" + ROW % "", CODE),
            ("middle", OPTIONS.replace("\t__u32 flags;\n", "\t__u32 mode, flags;\n") % "" + ROW % "", CODE),
            ("end", OPTIONS.replace("\t__u64 reserved[2];\n", "") % "" + ROW % "", CODE),
            ("wider", OPTIONS.replace("__u32 flags", "__u64 flags") % "" + ROW % "", CODE),
            ("row", OPTIONS % "" + ROW % "\t__u64 pc;\n", CODE)):
        assert abi.compare(old, library(tmp, header, code)[0], grown), name


# A struct of Linux, whose headers here may be newer or older.
OTHER = "struct perf_event_attr {\n%s};\n"
UNNAMED = "\t__u32 unknown : 32;\n"
NAMED = "\t__u32 known : 1, unknown : 31;\n\t__u64 more;\n"
TAKES = "void other(struct perf_event_attr *attr) { }\n"


def what_programs_can_live_with_is_none_of_it(tmp):
    wanted("abidw", "abidiff", "gcc")
    options, rest, code = OPTIONS % "", ROW % "" + OTHER % UNNAMED, CODE + TAKES
    old, grown = library(tmp, options + rest, code)
    for name, header, functions in (
            ("function", options + rest, code + "int another(struct options *o) { return 0; }\n"),
            ("end", OPTIONS % "\t__u64 limit;\n" + rest, code),
            ("other", options + ROW % "" + OTHER % NAMED, code),
            ("reserved", options.replace("reserved[2]", "limit, reserved[1]") + rest, code)):
        found = abi.compare(old, library(tmp, header, functions)[0], grown)
        assert not found, (name, found)


def what_breaks_programs_of_the_device_is_found(tmp):
    wanted("abidw", "abidiff", "gcc")
    old, grown = uapi(tmp)
    assert not abi.compare(old, uapi(tmp)[0], grown)
    for name, before, after in (
            ("constant", "#define KBARMAN_CPU_ALL\t\t0xffffffffU", "#define KBARMAN_CPU_ALL\t\t0xfffffffeU"),
            ("enumerator", "BM_RECORD_ANNOTATION\t\t= 5", "BM_RECORD_ANNOTATION\t\t= 7"),
            ("element", "struct kbarman_clock_pair {\n", "struct kbarman_clock_pair {\n\t__u64 first;\n")):
        assert any(before in abi.read(path) for path in abi.headers_of(abi.UAPI)), name
        assert abi.compare(old, uapi(tmp, before, after)[0], grown), name


def a_struct_and_a_list_that_grow_are_none_of_it(tmp):
    wanted("abidw", "abidiff", "gcc")
    old, grown = uapi(tmp)
    before = re.search(r"^struct kbarman_clock \{.*?^\};$", abi.read(os.path.join(abi.UAPI, "kbarman.h")),
                       re.M | re.S).group(0)
    new, _ = uapi(tmp, before, before.replace("\n};", "\n\t__u64 more;\n};") + "\n#define KBARMAN_MORE\t1\n")
    assert new != old
    found = abi.compare(old, new, grown)
    assert not found, found


if __name__ == "__main__":
    tap.main(globals())
