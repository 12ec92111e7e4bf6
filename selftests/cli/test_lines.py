#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines and inlined functions, against what addr2line says of the same addresses."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import preload
import tap
from make_capture import Maker

HOST = os.uname().nodename
BASE = 0x555555554000
C_SOURCE = """
static volatile int sink;
#define INLINE static inline __attribute__((always_inline))
INLINE int deep(int x)
{
	sink += x * 3;
	return sink;
}
INLINE int middle(int x)
{
	for (int i = 0; i < x; i++) {
		int y = deep(i);
		sink ^= y;
	}
	return deep(x) + 1;
}
__attribute__((noinline)) int outer(int x)
{
	if (x > 3) {
		int z = middle(x);
		return z + deep(x + 5);
	}
	return middle(x + 1);
}
int main(int c, char **v)
{
	(void)v;
	return outer(c) + middle(c);
}
"""
CXX_SOURCE = """
namespace space {
	volatile int sink;
	template <typename T> struct box {
		T value;
		inline __attribute__((always_inline)) T get() const { sink += 1; return value; }
		__attribute__((noinline)) T twice() const { return get() + get() * sink; }
	};
}
int main(int c, char **)
{
	auto add = [&](int x) __attribute__((noinline)) { space::sink += x; return space::box<int>{x}.get(); };
	return space::box<int>{c}.twice() + add(c) + space::box<long>{c}.twice();
}
"""


def build(tmp, source, compiler, *flags):
    path, program = os.path.join(tmp, "lines" + (".cc" if "++" in compiler else ".c")), \
        os.path.join(tmp, "lines")
    with open(path, "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run([compiler, "-g", "-O1", "-pie", "-fPIE", "-o", program, path, *flags],
                   check=True, cwd=tmp)
    return program


def code(program, *functions):
    """Addresses of all instructions of these functions."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True,
                          capture_output=True, text=True).stdout
    found, inside = [], False
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            inside = any(name in head.group(1) for name in functions)
        elif inside and re.match(r"^ +[0-9a-f]+:\t", line) and "nop" not in line:
            found.append(int(line.split(":")[0], 16))
    assert len(found) > 10, text
    return found


def truth(program, addresses, *flags):
    """[(function, file, line)...] of each address, innermost first."""
    asked = "\n".join(f"{address:#x}" for address in addresses)
    out = subprocess.run(["addr2line", "-fiaC", "-e", program, *flags], input=asked, check=True,
                         capture_output=True, text=True).stdout.splitlines()
    answers, at = [], 0
    while at < len(out):
        if out[at].startswith("0x"):
            answers.append([])
            at += 1
            continue
        place = re.match(r"^(.*):(\d+|\?)", out[at + 1])
        answers[-1].append((out[at], os.path.basename(place.group(1)),
                            int(place.group(2).replace("?", "0"))))
        at += 2
    assert len(answers) == len(addresses)
    return answers


def capture(tmp, program, addresses, name="kbarman.cap", facts=None):
    maker = Maker(counters=[17], facts={"host": HOST, "counter.0.0": "cycles", **(facts or {})})
    maker.task(7, "lines")
    headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True,
                             text=True).stdout
    load = [line.split() for line in headers.splitlines()
            if line.strip().startswith("LOAD") and " E " in line][0]
    offset, vaddr, size = (int(load[i], 16) for i in (1, 2, 4))
    page = vaddr & -4096
    maker.map(7, BASE + page, size + vaddr - page, offset - (vaddr - page), program)
    maker.switch(0, 100, 7)
    for number, address in enumerate(addresses):
        maker.sample(0, 1000 + number, 7, BASE + address, [1])
    return maker.save(os.path.join(tmp, name))


def frames(tmp, *args, path="kbarman.cap"):
    """[(function, file, line)...] of each sample of `script --lines --inline`."""
    result = tap.run("script", "--lines", "--inline", *args, path, cwd=tmp)
    assert result.returncode == 0, result
    found = []
    for line in result.stdout.splitlines():
        frame = re.match(r"^(?:.*cycles: )? +[0-9a-f]{6,} (.+?)(?:\+0x[0-9a-f]+)? \(\S+\)$", line)
        if " cycles:" in line:
            found.append([])
        if frame:
            found[-1].append([frame.group(1), "??", 0])
        elif re.match(r"^  \S+:\d+$", line):
            found[-1][-1][1:] = [line.strip().rsplit(":", 1)[0], int(line.rsplit(":", 1)[1])]
    return [[tuple(frame) for frame in sample] for sample in found], result.stderr


def plain(answers):
    """Names without arguments, which tools differ in."""
    return [[(re.sub(r"\(.*", "", name).split("::")[-1], file, line)
             for name, file, line in frames_] for frames_ in answers]


def agrees(tmp, source, compiler, functions, *flags, trust=None):
    program = build(tmp, source, compiler, *flags)
    addresses = code(program, *functions)
    capture(tmp, program, addresses)
    got, errors = frames(tmp)
    want = truth(program, addresses, *(trust or ()))
    assert not errors, errors
    assert any(len(answer) >= 2 for answer in want), want
    for address, ours, theirs in zip(addresses, plain(got), plain(want)):
        assert ours == theirs, (hex(address), ours, theirs)


def inlined_functions_are_those_of_addr2line(tmp):
    agrees(tmp, C_SOURCE, "gcc", ["outer", "main"])


def older_dwarf_is_read_too(tmp):
    agrees(tmp, C_SOURCE, "gcc", ["outer", "main"], "-gdwarf-4")
    agrees(tmp, C_SOURCE, "gcc", ["outer", "main"], "-gdwarf-3")


def compressed_sections_are_read(tmp):
    agrees(tmp, C_SOURCE, "gcc", ["outer", "main"], "-gz=zlib")


def compressed_by_zstd(directory):
    """Frames of a program, and the same when its debug sections are compressed."""
    program = build(directory, C_SOURCE, "gcc")
    capture(directory, program, code(program, "outer", "main"))
    before = frames(directory)
    assert any(len(sample) > 1 for sample in before[0]) and not before[1], before
    done = subprocess.run(["objcopy", "--compress-debug-sections=zstd", program], capture_output=True,
                          text=True, check=False)
    if done.returncode or "zstd" in done.stderr:
        raise tap.Skip("this objcopy knows no zstd: " + done.stderr.strip())
    return before


def sections_compressed_by_zstd_are_read(tmp):
    before = compressed_by_zstd(tmp)
    assert frames(tmp) == before, frames(tmp)


def without_libzstd_it_says_so(tmp):
    compressed_by_zstd(tmp)
    env = {**os.environ, "LD_PRELOAD": preload.build(tmp, "without", preload.NO_LIBZSTD)}
    result = tap.run("script", "--lines", cwd=tmp, env=env)
    (line,) = result.stderr.splitlines()
    assert result.returncode == 0 and "outer" in result.stdout, result
    assert os.path.join(tmp, "lines") + " has no lines" in line and "libzstd1" in line, line


def another_compiler_without_aranges_agrees(tmp):
    if not shutil.which("clang"):
        raise tap.Skip("no clang here: scripts/setup installs it")
    agrees(tmp, C_SOURCE, "clang", ["outer", "main"])


def names_of_templates_and_lambdas_are_readable(tmp):
    agrees(tmp, CXX_SOURCE, "g++", ["twice", "main"])
    got, _ = frames(tmp)
    names = {name for sample in got for name, _, _ in sample}
    assert "space::box<int>::get() const" in names, names
    raw, _ = frames(tmp, "--no-demangle")
    assert "_ZNK5space3boxIiE3getEv" in {name for sample in raw for name, _, _ in sample}, raw


def report(tmp, *args):
    result = tap.run("report", "--json", "--percent-limit", 0, *args, cwd=tmp)
    assert result.returncode == 0, result
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in rows if row["kind"] == "symbol"], result.stderr


def report_sums_up_by_line(tmp):
    program = build(tmp, C_SOURCE, "gcc")
    addresses = code(program, "outer", "main")
    capture(tmp, program, addresses)
    want = {}
    for answer in truth(program, addresses):
        want[answer[0][1:]] = want.get(answer[0][1:], 0) + 1
    rows, errors = report(tmp, "--sort", "line")
    assert {(os.path.basename(r["source"]), r["line"]): r["samples"] for r in rows} == want, rows
    assert not errors and not any("symbol" in row for row in rows), rows
    text = tap.run("report", "--sort", "symbol", "--lines", cwd=tmp).stdout
    assert re.search(r"^ +\d+\.\d\d% +\d+ +lines +lines\.c:\d+ +\[\.\] outer$", text, re.M), text


def inlined_functions_have_rows_of_their_own(tmp):
    program = build(tmp, C_SOURCE, "gcc")
    addresses = code(program, "outer", "main")
    capture(tmp, program, addresses)
    answers = truth(program, addresses)
    rows, _ = report(tmp, "--sort", "symbol", "--inline", "--children")
    for name in "deep", "middle", "outer", "main":
        row = [r for r in rows if r["symbol"] == name]
        self = sum(answer[0][0] == name for answer in answers)
        total = sum(any(frame[0] == name for frame in answer) for answer in answers)
        assert sum(r["samples"] for r in row) == self, (name, self, row)
        assert sum(r["children"] for r in row) == total, (name, total, row)
    assert all(r["inlined"] == (r["symbol"] in ("deep", "middle")) for r in rows), rows
    rows, _ = report(tmp, "--sort", "symbol")
    assert {row["symbol"] for row in rows} == {"outer", "main"}, rows


def calls_go_through_inlined_functions(tmp):
    program = build(tmp, C_SOURCE, "gcc")
    addresses = code(program, "outer")
    capture(tmp, program, addresses)
    result = tap.run("report", "--json", "--call-graph", "--inline", cwd=tmp)
    calls = [json.loads(line) for line in result.stdout.splitlines()]
    calls = [(row["depth"], row.get("symbol")) for row in calls if row["kind"] == "call"]
    assert (2, "outer") in calls and (3, "middle") in calls and (4, "deep") in calls, calls


def lines_come_from_the_debug_file(tmp):
    program = build(tmp, C_SOURCE, "gcc", "-Wl,--build-id=sha1")
    addresses = code(program, "outer", "main")
    want = truth(program, addresses)
    debug = os.path.join(tmp, ".debug")
    os.mkdir(debug)
    subprocess.run(f"objcopy --only-keep-debug {program} {debug}/lines.debug && "
                   f"strip {program} && "
                   f"objcopy --add-gnu-debuglink={debug}/lines.debug {program}", shell=True,
                   check=True)
    capture(tmp, program, addresses)
    got, errors = frames(tmp)
    assert plain(got) == plain(want) and not errors, (got, errors)


def lines_after_a_bundle_need_the_same_file(tmp):
    program = build(tmp, C_SOURCE, "gcc", "-Wl,--build-id=sha1")
    addresses = code(program, "outer", "main")
    want = truth(program, addresses)
    capture(tmp, program, addresses)
    assert tap.run("bundle", cwd=tmp).returncode == 0
    got, errors = frames(tmp)
    assert plain(got) == plain(want) and not errors, (got, errors)
    build(tmp, C_SOURCE + "int more;\n", "gcc", "-Wl,--build-id=sha1", "-Wl,-z,now")
    got, errors = frames(tmp)
    assert {file for sample in got for _, file, _ in sample} == {"??"}, got
    assert {sample[0][0] for sample in got} == {"outer", "main"}, got
    assert "build-id differs" in errors and program in errors, errors


def no_debug_information_is_told_in_one_line(tmp):
    program = build(tmp, C_SOURCE, "gcc", "-g0")
    capture(tmp, program, code(program, "outer"))
    rows, errors = report(tmp, "--lines")
    assert all(row["source"] is None and row["line"] == 0 for row in rows), rows
    assert len(errors.splitlines()) == 1 and "no debug information" in errors, errors


def kernel(tmp, *flags):
    """A program that plays the kernel: it has a _stext."""
    source, vmlinux = os.path.join(tmp, "kernel.c"), os.path.join(tmp, "vmlinux")
    with open(source, "w", encoding="ascii") as file:
        file.write('asm(".globl _stext\\n_stext: nop");\n#ifdef OTHER\n'
                   "int other(int x) { return x / 7; }\n#endif\n" +
                   C_SOURCE.replace("int main(int c, char **v)", "int _start(int c, char **v)"))
    subprocess.run(["gcc", "-g", "-O1", "-fno-toplevel-reorder", *flags, "-nostdlib", "-static",
                    "-no-pie", "-fno-pie", "-Wl,-Ttext=0x81000000", "-o", vmlinux, source],
                   check=True)
    return vmlinux


def kernel_capture(tmp, vmlinux):
    """Samples in this kernel, which is somewhere else than linked; its addresses and kallsyms."""
    shift = 0xffffffff00000000 + 0x1200000
    symbols = subprocess.run(["nm", vmlinux], check=True, capture_output=True, text=True).stdout
    kallsyms = os.path.join(tmp, "kallsyms")
    with open(kallsyms, "w", encoding="ascii") as file:
        for line in symbols.splitlines():
            address, kind, name = line.split()
            file.write(f"{int(address, 16) + shift:x} {kind} {name}\n")
    addresses = code(vmlinux, "outer", "_start")
    maker = Maker(counters=[17], facts={"host": "elsewhere", "counter.0.0": "cycles"})
    maker.map(0, 0x81000000 + shift, 0x1000, 0, "[kernel.kallsyms]")
    for number, address in enumerate(addresses):
        maker.sample(0, 1000 + number, 0, address + shift, [1])
    maker.save(os.path.join(tmp, "kbarman.cap"))
    return addresses, kallsyms


def kernel_lines_come_from_vmlinux(tmp):
    vmlinux = kernel(tmp)
    addresses, kallsyms = kernel_capture(tmp, vmlinux)
    got, errors = frames(tmp, "--kallsyms", kallsyms, "--vmlinux", vmlinux)
    assert plain(got) == plain(truth(vmlinux, addresses)) and not errors, (got, errors)


def refuses(tmp, kallsyms, vmlinux):
    got, errors = frames(tmp, "--kallsyms", kallsyms, "--vmlinux", vmlinux)
    assert f"{vmlinux} is not of the kernel that was recorded" in errors, errors
    assert {file for sample in got for _, file, _ in sample} == {"??"}, got


def vmlinux_of_another_source_is_refused(tmp):
    _, kallsyms = kernel_capture(tmp, kernel(tmp))
    refuses(tmp, kallsyms, kernel(tmp, "-DOTHER"))


def vmlinux_with_others_at_the_same_addresses_is_refused(tmp):
    vmlinux = kernel(tmp)
    _, kallsyms = kernel_capture(tmp, vmlinux)
    subprocess.run(["objcopy", "--redefine-sym", "outer=some_other", vmlinux], check=True)
    refuses(tmp, kallsyms, vmlinux)


if __name__ == "__main__":
    assert shutil.which("addr2line"), "the tests need binutils"
    tap.main(globals())
