#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs and libraries however linkers lay them out, where the kernel really puts them.

Each one runs, and says where its functions are and what it has mapped; a capture with
those mappings has a sample in every function.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker
from test_report import lines

# Of each function the first byte, and one behind.
SOURCE = """
#include <stdio.h>
#define F(name) __attribute__((noinline)) int name(int x) { return x * 7 + __LINE__; }
#ifdef LIBRARY
F(library_first)
F(library_last)
#else
int library_first(int), library_last(int);
F(first)
__attribute__((section(".text.unlikely"))) F(unlikely)
__attribute__((section(".text.hot"))) F(hot)
static F(hidden)
F(last)
int data[5000] = { 1 };
int main(void)
{
	static char text[65536];
	FILE *maps = fopen("/proc/self/maps", "r");
#define SAY(name) printf("%lx " #name "\\n", (unsigned long)name)
	SAY(first); SAY(unlikely); SAY(hot); SAY(hidden); SAY(last);
#ifdef WITH_LIBRARY
	SAY(library_first); SAY(library_last);
#endif
	fwrite(text, 1, fread(text, 1, sizeof(text), maps), stdout);
	return !data[0];
}
#endif
"""

# Text in two segments that share a page of the file, each with the other's bytes in its memory.
SHARED_PAGE = """
PHDRS {
	headers PT_PHDR PHDRS; interp PT_INTERP;
	one PT_LOAD FILEHDR PHDRS FLAGS(5); two PT_LOAD FLAGS(5);
	data PT_LOAD FLAGS(6); dynamic PT_DYNAMIC;
}
SECTIONS {
	. = 0x700000 + SIZEOF_HEADERS;
	.interp : { *(.interp) } :one :interp
	.hash : { *(.hash) *(.gnu.hash) } :one
	.dynsym : { *(.dynsym) }
	.dynstr : { *(.dynstr) }
	.version : { *(.gnu.version*) }
	.rela.dyn : { *(.rela.dyn) *(.rela.got) *(.rela.data*) *(.rela.bss*) *(.rela.*_array) }
	.rela.plt : { *(.rela.plt) }
	.init : { KEEP(*(.init)) }
	.plt : { *(.plt*) }
	.hot : { *(.text.hot*) }
	. = . + 0x3000;
	.text : { *(.text*) } :two
	.fini : { KEEP(*(.fini)) }
	.rodata : { *(.rodata*) *(.eh_frame*) }
	. = . + 0x2000;
	.data : { *(.init_array) *(.fini_array) *(.data*) *(.got*) *(.tm_clone_table) } :data
	.dynamic : { *(.dynamic) } :data :dynamic
	.bss : { *(.bss*) *(COMMON) } :data
}
"""


def link(tmp, name, *flags):
    source, path = os.path.join(tmp, "part.c"), os.path.join(tmp, name)
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", path, source, *flags], check=True, cwd=tmp)
    return path


def executable(path):
    """(offset, vaddr, bytes in the file) of each executable segment."""
    text = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True,
                          text=True).stdout
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("LOAD")]
    return [tuple(int(row[i], 16) for i in (1, 2, 4)) for row in rows if "E" in "".join(row[6:-1])]


def check(tmp, program):
    """Every function that the program says it has is found where it says."""
    run = subprocess.run([program], check=True, capture_output=True, text=True, cwd=tmp,
                         env={**os.environ, "LD_LIBRARY_PATH": tmp})
    capture, expected, now = Maker(), {}, 1000
    capture.task(7, "program")
    for line in run.stdout.splitlines():
        fields = line.split()
        if len(fields) == 2 and "-" not in fields[0]:
            expected[fields[1]] = int(fields[0], 16)
        elif "x" in fields[1] and len(fields) > 5 and fields[5][0] == "/":
            low, high = (int(part, 16) for part in fields[0].split("-"))
            capture.map(7, low, high - low, int(fields[2], 16), fields[5])
    for address in expected.values():
        for pc in address, address + 1:
            now += 1
            capture.sample(0, now, 7, pc)
    capture.save(os.path.join(tmp, "kbarman.cap"))
    rows, errors = lines(tmp, "--percent-limit", "0")
    found = {row["symbol"]: row["samples"] for row in rows if row["kind"] == "symbol"}
    assert found == {name: 2 for name in expected} and not errors, (found, errors)
    assert len(expected) >= 5, expected


def headers_and_code_in_one_segment(tmp):
    path = link(tmp, "program", "-pie", "-fPIE", "-Wl,-z,noseparate-code")
    assert executable(path)[0][0] == 0
    check(tmp, path)


def fixed_programs(tmp):
    path = link(tmp, "program", "-no-pie", "-Wl,-z,noseparate-code")
    assert executable(path)[0][1] != 0
    check(tmp, path)


def fixed_programs_at_another_base(tmp):
    path = link(tmp, "program", "-no-pie", "-Wl,-Ttext-segment=0x12340000")
    assert 0x12340000 <= executable(path)[0][1] < 0x12350000
    check(tmp, path)


def movable_programs_that_do_not_begin_at_0(tmp):
    path = link(tmp, "program", "-pie", "-fPIE", "-Wl,-Ttext-segment=0x7000000")
    assert executable(path)[0][1] >= 0x7000000
    check(tmp, path)


def libraries_that_do_not_begin_at_0(tmp):
    """As prelink has them."""
    path = link(tmp, "libpart.so", "-shared", "-fPIC", "-DLIBRARY",
                "-Wl,-Ttext-segment=0x41000000", "-Wl,-z,noseparate-code")
    assert executable(path)[0][1] >= 0x41000000
    check(tmp, link(tmp, "program", "-DWITH_LIBRARY", path))


def libraries_with_packed_relocations(tmp):
    path = link(tmp, "libpart.so", "-shared", "-fPIC", "-DLIBRARY", "-Wl,-z,pack-relative-relocs",
                "-Wl,-Ttext-segment=0x30000", "-Wl,-z,noseparate-code")
    check(tmp, link(tmp, "program", "-DWITH_LIBRARY", "-Wl,-z,pack-relative-relocs", path))


def code_that_shares_a_page_of_the_file_with_data(tmp):
    if not shutil.which("ld.gold"):
        raise tap.Skip("there is no gold here")
    path = link(tmp, "program", "-pie", "-fPIE", "-fuse-ld=gold")
    check(tmp, path)


def two_segments_of_code_in_one_page_of_the_file(tmp):
    script = os.path.join(tmp, "script")
    with open(script, "w", encoding="ascii") as file:
        file.write(SHARED_PAGE)
    path = link(tmp, "program", "-no-pie", "-fno-pie", f"-Wl,-T,{script}",
                "-Wl,-z,norelro", "-Wl,--build-id=none")
    one, two = executable(path)
    assert (one[0] + one[2] - 1) // 4096 == two[0] // 4096, (one, two)
    assert two[1] - two[0] != one[1] - one[0], (one, two)
    check(tmp, path)


def segments_for_large_pages(tmp):
    for size in "0x10000", "0x200000":
        path = link(tmp, "program", "-pie", "-fPIE", f"-Wl,-z,max-page-size={size}",
                    f"-Wl,-z,common-page-size={size}")
        assert executable(path)[0][0] % int(size, 16) == 0
        check(tmp, path)


def segments_that_are_not_page_aligned_in_the_file(tmp):
    path = link(tmp, "program", "-no-pie", "-fno-pie", "-Wl,-Ttext=0x654321c0",
                "-Wl,-z,noseparate-code")
    assert any(offset % 4096 for offset, _, _ in executable(path)), executable(path)
    check(tmp, path)


if __name__ == "__main__":
    tap.main(globals())
