#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `make install` leaves, as a program that is built against it would find it."""
import glob
import os
import re
import subprocess
import sys

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "selftests", "lib"))
import tap
from make_capture import Maker

EXAMPLE = os.path.join(TREE, "user", "examples", "dump_switches.c")
with open(os.path.join(TREE, "VERSION"), encoding="ascii") as file_of_version:
    VERSION = file_of_version.read().strip()
SONAME = "libkbarman.so." + VERSION.split(".", maxsplit=1)[0]
STRICT = ["-Wall", "-Wextra", "-Werror"]


def command(*args, **kwargs):
    """Run it; what it printed. Its complaints are the test's."""
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, check=False, **kwargs)
    assert done.returncode == 0, f"{' '.join(args)}: {done.stderr}{done.stdout[-2000:]}"
    return done.stdout


def make(target, root, *variables):
    # what a make that runs this was told is not for this one
    other = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "ARCH", "CROSS_COMPILE")
    env = {key: value for key, value in os.environ.items() if key not in other}
    command("make", "-C", TREE, target, f"DESTDIR={root}", *variables, env=env)


def files(root):
    return sorted(os.path.relpath(os.path.join(where, name), root)
                  for where, _, names in os.walk(root) for name in names)


def installed(directory):
    root = os.path.join(directory, "root")
    make("install", root)
    return root


def pkg_config(root, *args):
    env = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": root,
           "PKG_CONFIG_PATH": os.path.join(root, "usr/local/lib/pkgconfig")}
    return command("pkg-config", *args, "kbarman", env=env).split()


def capture(directory):
    """Two tasks, one of them renamed, one sampled; and the kernel's symbols beside it."""
    path = os.path.join(directory, "kbarman.cap")
    maker = Maker(cores=2, counters=[17], facts={"counter.0.0": "cycles"})
    maker.task(0, "swapper")
    maker.task(8, "before")
    maker.task(8, "after", timestamp=3000)
    maker.map(0, 0xffffffff81000000, 0x1000, 0, "[kernel.kallsyms]")
    maker.switch(1, 1000, 8)
    maker.sample(1, 2000, 8, 0xffffffff81000010, [123])
    maker.switch(1, 2500, 0, blocked=True)
    maker.switch(0, 3000, 8)
    maker.save(path)
    with open(path + ".kallsyms", "w", encoding="ascii") as file:
        file.write("ffffffff81000000 T a_function\nffffffff81000800 T another\n")
    return path


def man3_pages():
    """One for each function and header, and one more."""
    pages = command(os.path.join(TREE, "scripts", "man3"), "--list").split()
    assert {"libkbarman.3", "libkbarman-barman.3", "kb_barman_open.3"} < set(pages), pages
    return pages


SWITCHES = """\
0.000001000 [001] ? -> before (preempted)
0.000002500 [001] before -> swapper (blocked, last seen in a_function)
0.000003000 [000] ? -> after (preempted)
"""


def python_of(root, front=""):
    """Where the package of Python is, below usr/local."""
    place, = glob.glob(os.path.join(root, "usr/local/lib/python3*/*-packages/kbarman"))
    return front + os.path.relpath(place, os.path.join(root, "usr/local"))


def all_that_is_promised_is_installed(tmp):
    root = installed(tmp)

    def there(pattern, target):
        return {os.path.join("usr/local", target, os.path.basename(path))
                for path in glob.glob(os.path.join(TREE, pattern))}

    libraries = ["libkbarman.a", "libkbarman.so", SONAME, f"libkbarman.so.{VERSION}",
                 "pkgconfig/kbarman.pc"]
    wanted = {"usr/local/bin/kbarman", "usr/local/bin/kbarman-push", "usr/local/sbin/kbarmand"} | {"usr/local/lib/" + name for name in libraries} | \
        there("user/include/kbarman/*.h", "include/kbarman") | \
        there("kmod/uapi/*.h", "include/kbarman/uapi") | \
        there("user/man/*.1", "share/man/man1") | there("user/man/*.5", "share/man/man5") | \
        there("user/man/*.7", "share/man/man7") | there("user/man/*.8", "share/man/man8") | \
        {f"usr/local/share/man/man3/{name}" for name in man3_pages()} | \
        {"usr/local/share/bash-completion/completions/kbarman",
         "usr/local/share/zsh/site-functions/_kbarman"} | \
        there("user/python/kbarman/*.py", python_of(root)) | {python_of(root, "usr/local/") + "/py.typed"}
    assert set(files(root)) == wanted, set(files(root)) ^ wanted
    for name in wanted:
        path = os.path.join(root, name)
        mode = 0o755 if name.endswith(("bin/kbarman", "bin/kbarman-push", "bin/kbarmand")) else 0o644
        assert os.path.islink(path) or os.stat(path).st_mode & 0o777 == mode, name
    for link in ("libkbarman.so", SONAME):
        path = os.path.join(root, "usr/local/lib", link)
        assert os.path.islink(path) and os.path.exists(path), link


def directories_can_be_chosen(tmp):
    chosen = ["prefix=/opt/k", "libdir=/opt/k/lib64", "mandir=/opt/man", "pythondir=/opt/python"]
    make("install", tmp, *chosen)
    for name in ("opt/k/bin/kbarman", "opt/k/lib64/libkbarman.a", "opt/man/man3/libkbarman.3",
                 "opt/man/man5/kbarman-formats.5", "opt/k/include/kbarman/barman.h",
                 "opt/python/kbarman/__init__.py"):
        assert os.path.isfile(os.path.join(tmp, name)), name
    with open(os.path.join(tmp, "opt/k/lib64/pkgconfig/kbarman.pc"), encoding="utf-8") as file:
        text = file.read()
    assert "\nlibdir=/opt/k/lib64\n" in text and "@" not in text and tmp not in text, text
    make("uninstall", tmp, *chosen)
    assert not files(tmp), files(tmp)


def uninstall_takes_its_own_files_only(tmp):
    other = os.path.join(tmp, "root/usr/local/lib/libother.a")
    os.makedirs(os.path.dirname(other))
    with open(other, "w", encoding="ascii"):
        pass
    root = installed(tmp)
    make("uninstall", root)
    assert files(root) == ["usr/local/lib/libother.a"], files(root)
    assert not os.path.exists(os.path.join(root, "usr/local/include/kbarman"))
    assert not glob.glob(os.path.join(root, "usr/local/lib/python3*/*/kbarman"))


def tool_and_package_are_of_one_version(tmp):
    root = installed(tmp)
    said = command(os.path.join(root, "usr/local/bin/kbarman"), "--version")
    assert pkg_config(root, "--modversion") == [VERSION] and VERSION in said, said


def each_header_compiles_alone_as_c_and_as_cxx(tmp):
    root = installed(tmp)
    flags = pkg_config(root, "--cflags")
    where = os.path.join(root, "usr/local/include/kbarman")
    for name in sorted(name for name in files(where) if name.endswith(".h")):
        # twice: headers guard themselves, or are meant to be taken several times
        source = f"#include <kbarman/{name}>\n" * 2 + "int unit_of_test;\n"
        for compiler in (["cc", "-xc", "-std=c11"], ["c++", "-xc++", "-std=c++11"]):
            command(*compiler, *STRICT, *flags, "-fsyntax-only", "-", input=source)


def library_exports_what_the_headers_declare(tmp):
    root = installed(tmp)
    headers = [name for name in files(os.path.join(root, "usr/local/include/kbarman"))
               if name.endswith(".h")]
    unit, listing = os.path.join(tmp, "unit.c"), os.path.join(tmp, "unit.X")
    with open(unit, "w", encoding="ascii") as file:
        file.writelines(f"#include <kbarman/{name}>\n" for name in headers)
    # the compiler's own list of what is declared, and where
    command("gcc", "-std=c11", *pkg_config(root, "--cflags"), "-fsyntax-only", "-aux-info",
            listing, unit)
    with open(listing, encoding="ascii") as file:
        declared = set(re.findall(r"^/\* \S*/include/kbarman/\S+ \*/ extern .*?\b(\w+) \(",
                                  file.read(), re.M))
    library = os.path.join(root, "usr/local/lib/libkbarman.so")
    exported = set(re.findall(r"^\S+ [^A] (\w+)@@KBARMAN_\S+$",
                              command("nm", "-D", "--defined-only", library), re.M))
    with open(os.path.join(TREE, "user/libkbarman.map"), encoding="utf-8") as file:
        listed = set(re.findall(r"^\t(kb_\w+);", file.read(), re.M))
    assert len(declared) > 100 and all(name.startswith("kb_") for name in declared), declared
    assert exported == declared, f"library or header only: {sorted(exported ^ declared)}"
    assert listed == exported, f"map or library only: {sorted(listed ^ exported)}"


def library_is_called_by_its_major_version(tmp):
    root = installed(tmp)
    said = command("readelf", "-d", os.path.join(root, f"usr/local/lib/libkbarman.so.{VERSION}"))
    assert f"soname: [{SONAME}]" in said, said


def example_runs_with_the_shared_library(tmp):
    root, program = installed(tmp), os.path.join(tmp, "dump_switches")
    command("cc", *STRICT, EXAMPLE, *pkg_config(root, "--cflags", "--libs"), "-o", program)
    assert f"[{SONAME}]" in command("readelf", "-d", program)
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(root, "usr/local/lib")}
    said = command(program, capture(tmp), env=env)
    assert said == SWITCHES, said


def static_libelf_is_whole(directory):
    """Debian 13's lacks functions that it calls, and the next one's has a crc32() as zlib has."""
    source = os.path.join(directory, "libelf.c")
    libraries = command("pkg-config", "--static", "--libs", "libelf", "zlib").split()
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <libelf.h>\n#include <zlib.h>\n"
                   "int main(void) { return elf_end(elf_memory(0, 0)) + crc32(0, 0, 0) + deflate(0, 0); }\n")
    return not subprocess.run(["cc", "-static", source, "-o", source[:-2], *libraries],
                              capture_output=True, check=False).returncode


def example_runs_with_the_static_library(tmp):
    if not static_libelf_is_whole(tmp):
        raise tap.Skip("no program can be linked with this machine's libelf.a")
    root, program = installed(tmp), os.path.join(tmp, "dump_switches")
    command("cc", *STRICT, "-static", EXAMPLE,
            *pkg_config(root, "--static", "--cflags", "--libs"), "-o", program)
    said = command(program, capture(tmp))
    assert said == SWITCHES, said


def client_header_needs_nothing_else(tmp):
    """Units of three languages in one program, on a machine without a device."""
    root, objects = installed(tmp), []
    flags = [*pkg_config(root, "--cflags"), *STRICT, "-Wpedantic", "-O2", "-c"]
    for name, compiler in [("c99", ["cc", "-xc", "-std=c99"]), ("gnu11", ["cc", "-xc", "-std=gnu11"]),
                           ("cxx17", ["c++", "-xc++", "-std=c++17"])]:
        source = f"""
            #include <kbarman/mark.h>
            {'extern "C" int' if name == "cxx17" else 'int'} mark_{name}(void);
            int mark_{name}(void)
            {{
                static struct kb_mark_series series = KB_MARK_SERIES("chart", "name", "units");
                static struct kb_mark_channel channel = KB_MARK_CHANNEL(1, "name");
                kb_mark_open();
                kb_mark_string(1, KB_MARK_RGB(0xff0000), "text");
                kb_mark_end(1);
                kb_mark_bookmark(0, "text");
                kb_mark_name_channel(1, 2, "name");
                kb_mark_name_group(2, "name");
                kb_mark_on(&channel, "text");
                kb_mark_off(&channel);
                kb_mark_value(&series, 1);
                return kb_mark_recording() ? 1 : 0;
            }}"""
        objects.append(os.path.join(tmp, f"{name}.o"))
        command(*compiler, *flags, "-", "-o", objects[-1], input=source)
    main = "int mark_c99(void), mark_gnu11(void), mark_cxx17(void);" \
           "int main(void) { return mark_c99() + mark_gnu11() + mark_cxx17(); }"
    program = os.path.join(tmp, "program")
    command("cc", "-xc", "-", "-xnone", *objects, "-o", program, input=main)
    command(program)
    # one descriptor for all units
    said = command("nm", program)
    assert len(re.findall(r" [VvWw] kb_mark_fd_$", said, re.M)) == 1, said


def client_example_runs_where_nobody_records(tmp):
    root, program = installed(tmp), os.path.join(tmp, "marks")
    command("cc", *STRICT, "-O2", os.path.join(TREE, "user", "examples", "marks.c"),
            *pkg_config(root, "--cflags"), "-o", program)
    assert command(program) == "216816 primes\n"


def example_says_what_it_cannot_open(tmp):
    root, program = installed(tmp), os.path.join(tmp, "dump_switches")
    command("cc", EXAMPLE, *pkg_config(root, "--cflags", "--libs"), "-o", program)
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(root, "usr/local/lib")}
    done = subprocess.run([program, "missing.cap"], env=env, cwd=tmp, capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 1 and "missing.cap" in done.stderr, done


if __name__ == "__main__":
    tap.main(globals())
