#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A function that has no symbol has the name of its place in the file: FILE+0xADDRESS.

Where it begins is what the unwind tables of the file say; readelf(1) shows the same.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from make_capture import Maker
from test_report import lines

SOURCE = """
#define HIDDEN static __attribute__((noinline, noclone)) int
HIDDEN one(int x) { return x * 7 + 1; }
HIDDEN two(int x) { return one(x) * 5 / (x + 2); }
int shown(int x) { return two(x) + one(x + 1) * 3; }
#ifdef PROGRAM
int main(int argc, char **argv) { return shown(argc); }
#endif
"""
LIBRARY = ("-shared", "-fPIC")
PROGRAM = ("-DPROGRAM", "-pie", "-fPIE")
TEXT = 0x7f0000000000


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(tmp, name, *flags):
    """Returns the path of a stripped file, the path of its debug file, and its functions."""
    source, path = os.path.join(tmp, "source.c"), os.path.join(tmp, name)
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-Wl,--build-id", "-o", path, source, *flags], check=True)
    functions = {line.split()[2]: int(line.split()[0], 16)
                 for line in output("nm", path).splitlines() if len(line.split()) == 3}
    debug = path + ".debug"
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, path], check=True)
    hidden = os.path.join(tmp, "away")
    os.rename(debug, hidden)
    return path, (hidden, debug), functions


def segment(path):
    load = next(line.split() for line in output("readelf", "-lW", path).splitlines()
                if line.strip().startswith("LOAD") and " E " in line)
    return (int(load[i], 16) for i in (1, 2, 4))


def save(tmp, path, addresses, image=None, **facts):
    """A capture with a sample at each of these addresses of the file."""
    offset, vaddr, size = segment(path)
    capture = Maker(facts={"host": os.uname().nodename, **facts})
    capture.task(7, "app")
    capture.map(7, TEXT, (size + 4095) // 4096 * 4096, offset, image or path)
    for number, address in enumerate(addresses):
        capture.sample(0, 1000 + number, 7, TEXT + address - vaddr)
    capture.save(os.path.join(tmp, "kbarman.cap"))


def shown(directory, *args):
    """The names in `script`, in the order of the samples, and the complaints."""
    result = tap.run("script", *args, cwd=directory)
    assert result.returncode == 0, result
    found = re.findall(r"sample: +[0-9a-f]+ (.*) \(.*\)$", result.stdout, re.M)
    return [re.sub(r"\+0x[0-9a-f]+$", "", name) for name in found], result.stderr


def a_function_of_a_stripped_library_has_a_name(tmp):
    path, _, functions = build(tmp, "libtruth.so.1.2", *LIBRARY)
    one, two = functions["one"], functions["two"]
    save(tmp, path, [one, one + 1, two + 2, functions["shown"]])
    names, errors = shown(tmp)
    assert names == [f"libtruth.so.1.2+{one:#x}"] * 2 + [f"libtruth.so.1.2+{two:#x}", "shown"], \
        names
    assert "stripped" in errors and path in errors, errors


def it_is_one_row_of_the_report(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY)
    one, two = functions["one"], functions["two"]
    save(tmp, path, [one, one + 1, one + 2, two])
    rows, _ = lines(tmp, "--sort", "image,symbol")
    found = [(row["symbol"], row["samples"]) for row in rows if row["kind"] == "symbol"]
    assert found == [(f"libtruth.so+{one:#x}", 3), (f"libtruth.so+{two:#x}", 1)], found


def a_stripped_program_begins_in_start(tmp):
    path, _, functions = build(tmp, "program", *PROGRAM)
    wanted = ["_start", "_init", "_fini"]
    save(tmp, path, [functions[name] for name in wanted + ["main", "one"]])
    names, _ = shown(tmp)
    assert names == wanted + [f"program+{functions[name]:#x}" for name in ("main", "one")], names


def a_library_does_not_begin_in_start(tmp):
    flags = (*LIBRARY, "-Wl,-soname,libtruth.so")
    two = build(tmp, "libtruth.so", *flags)[2]["two"]
    path, _, functions = build(tmp, "libtruth.so", *flags, f"-Wl,-e,{two:#x}")
    assert functions["two"] == two
    save(tmp, path, [two, functions["_init"]])
    names, _ = shown(tmp)
    assert names == [f"libtruth.so+{two:#x}", "_init"], names


def code_without_a_table_has_a_name(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY, "-fno-asynchronous-unwind-tables",
                               "-nostartfiles")
    save(tmp, path, [functions["one"], functions["two"]])
    names, _ = shown(tmp)
    assert len(set(names)) == 1 and names[0].startswith("libtruth.so+0x"), names


def a_file_without_sections_has_a_name(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY)
    with open(path, "r+b") as file:
        file.seek(40)           # e_shoff
        file.write(bytes(8))
        file.seek(60)           # e_shnum, e_shstrndx
        file.write(bytes(4))
    save(tmp, path, [functions["one"], functions["two"]])
    names, _ = shown(tmp)
    assert len(set(names)) == 1 and names[0].startswith("libtruth.so+0x"), names


def symbols_come_first(tmp):
    path, debug, functions = build(tmp, "libtruth.so", *LIBRARY)
    save(tmp, path, [functions[name] for name in ("one", "two", "shown")])
    os.rename(*debug)
    names, errors = shown(tmp)
    assert names == ["one", "two", "shown"] and not errors, (names, errors)


def the_bundle_has_these_names(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY)
    addresses = [functions[name] for name in ("one", "two", "shown", "_init")]
    save(tmp, path, addresses)
    here, _ = shown(tmp)
    assert here[0] == f"libtruth.so+{functions['one']:#x}" and here[3] == "_init", here
    assert tap.run("bundle", cwd=tmp).returncode == 0
    with gzip.open(os.path.join(tmp, "kbarman.cap.symbols"), "rt", encoding="ascii") as file:
        text = file.read()
    assert re.search(rf"^symbol {functions['one']:x} [0-9a-f]+ libtruth\.so\+0x", text, re.M), text
    os.rename(path, path + ".gone")
    assert shown(tmp)[0] == here
    save(tmp, path + ".gone", addresses, image=path, host="elsewhere")
    assert shown(tmp)[0] == here


def a_debug_file_that_came_after_the_bundle_is_read(tmp):
    path, debug, functions = build(tmp, "program", *PROGRAM)
    save(tmp, path, [functions["main"], functions["_start"]])
    assert tap.run("bundle", cwd=tmp).returncode == 0
    names, errors = shown(tmp)
    assert names == [f"program+{functions['main']:#x}", "_start"], names
    folder = os.path.join(tmp, "usr/lib/debug/.build-id")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-n", path)).group(1)
    os.makedirs(os.path.join(folder, build_id[:2]))
    os.rename(debug[0], os.path.join(folder, build_id[:2], build_id[2:] + ".debug"))
    assert shown(tmp, "--symfs", tmp)[0] == ["main", "_start"]


def every_verb_and_export_has_them(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY)
    name = f"libtruth.so+{functions['one']:#x}"
    save(tmp, path, [functions["one"]] * 3)
    assert name in tap.run("report", cwd=tmp).stdout
    for to in "folded", "perfetto", "chrome", "speedscope", "firefox", "html", "flamegraph":
        out = os.path.join(tmp, "out." + to)
        result = tap.run("convert", "--to", to, "-o", out, cwd=tmp)
        assert result.returncode == 0, result
        with open(out, "rb") as file:
            data = file.read()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        assert name.encode() in data, to


def packages_with_the_names_are_told(tmp):
    path, _, functions = build(tmp, "libtruth.so", *LIBRARY)
    lists = os.path.join(tmp, "var/lib/dpkg/info")
    os.makedirs(lists)
    os.makedirs(tmp + "/usr/lib")
    os.rename(path, tmp + "/usr/lib/libtruth.so")
    for name, content in (("libtruth1:amd64", "/.\n/lib\n/lib/libtruth.so\n"),
                          ("other", "/usr/lib/libtruth.so.1\n/usr/lib/libtruth\n"),
                          ("libc6", "/usr/lib/libtruth.so\n"), ("empty", "")):
        with open(os.path.join(lists, name + ".list"), "w", encoding="ascii") as file:
            file.write(content)
    os.mkfifo(os.path.join(lists, "fifo.list"))
    save(tmp, tmp + "/usr/lib/libtruth.so", [functions["one"]], image="/usr/lib/libtruth.so")
    _, errors = shown(tmp, "--symfs", tmp)
    assert "look for libc6-dbg, libtruth1-dbgsym in" in errors, errors
    shutil.rmtree(lists)
    _, errors = shown(tmp, "--symfs", tmp)
    assert "stripped" in errors and "look for" not in errors, errors


def functions_of(path):
    """[start, end) of each function that readelf(1) shows."""
    text = output("readelf", "--debug-dump=frames", path)
    return sorted({(int(start, 16), int(end, 16))
                   for start, end in re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)})


def a_library_of_the_distribution_has_a_name_everywhere(tmp):
    found = glob.glob("/usr/lib/*/liblzma.so.5.*")
    if not found:
        raise tap.Skip("liblzma is not installed")
    path = os.path.realpath(found[0])
    symbols = {line.split()[-1].split("@")[0] for line in output("nm", "-D", path).splitlines()}
    functions = functions_of(path)
    assert len(functions) > 100, functions
    save(tmp, path, [(start + end) // 2 for start, end in functions])
    names, _ = shown(tmp)
    assert len(names) == len(functions)
    base = os.path.basename(path)
    for name, (start, end) in zip(names, functions):
        assert name in (f"{base}+{start:#x}", "_start") or name in symbols or \
            name.endswith("@plt"), (name, hex(start), hex(end))
    assert sum("+0x" in name for name in names) > 50, names


def no_code_of_a_library_is_unknown(tmp):
    path, _, _ = build(tmp, "libtruth.so", *LIBRARY)
    sections = re.findall(r"^\s*\[ *\d+\] (\S+)\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) .*AX",
                          output("readelf", "-SW", path), re.M)
    assert ".text" in [section[0] for section in sections], sections
    save(tmp, path, [int(start, 16) + at for _, start, size in sections
                     for at in range(0, int(size, 16))])
    names, _ = shown(tmp)
    unknown = sum(name == "[unknown]" for name in names)
    # the bytes that align the next function
    assert unknown < 16 * len(sections), (unknown, len(names))


if __name__ == "__main__":
    tap.main({name: test for name, test in globals().items()
              if getattr(test, "__module__", None) == "__main__"})
